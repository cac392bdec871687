"""The datapaths into L1 and from L1 on, one jitted function each.

Every kernel has the form `kernel(memory, views, op, r0, r1, fault, mode) -> bool`: `op` holds the
operands in the order that the kernel's first line names (the order of `decode.ACTIONS`), `r0` and
`r1` the values of its two registers, `mode` says how much is done. A kernel first checks its
bounds, then moves bytes and, from `TRACK` on, their written masks the same way. It returns False
and fills `fault` (see `faultcodes`) without having moved anything if a bound is broken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..codegen.isa.vocabulary import Space
from .faultcodes import LOCAL_RANGE, SUBBYTE, VIEW_RANGE
from .jit import inner

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Table = npt.NDArray[np.int64]
    Line = npt.NDArray[np.int64]


class Spaces(NamedTuple):
    """The codes of `Space`; as attributes of a tuple numba compiles no version per constant."""

    gm: int
    l1: int
    l0a: int
    l0b: int
    l0c: int
    bias: int
    scale_a: int
    scale_b: int
    ub: int


SPACE: Final = Spaces(*(int(space) for space in Space))

CHECK, MOVE, TRACK, REPORT = 0, 1, 2, 3
"""Modes: check bounds only; move bytes; move written masks too; and report what reaches a result
without ever having been written."""

BASE, OFFSET, BITS, RANK, DIMS, STRIDES, VIEW_WORDS = 0, 1, 2, 3, 4, 9, 14
"""Columns of a bound view: byte address of the buffer, offset in elements, bits of an element,
rank, five dimensions and five strides in elements."""


class Memory(NamedTuple):
    """What a kernel may touch; see `memory` for the parts."""

    gm: Bytes
    gm_written: Bytes
    gm_written_base: int
    local: Bytes
    written: Bytes
    bases: Line
    sizes: Line


@inner
def local_ok(memory: Memory, space: int, address: int, size: int, fault: Line) -> bool:
    """Return whether `size` bytes at `address` lie inside the local memory `space`."""
    if address >= 0 and address + size <= memory.sizes[space]:
        return True
    fault[0], fault[1], fault[2], fault[3] = LOCAL_RANGE, space, address, size
    fault[4] = memory.sizes[space]
    return False


@inner
def window_ok(view: Line, axis: int, first: int, extent: int, fault: Line) -> bool:
    """Return whether `extent` indices from `first` on lie inside `axis` of the view."""
    dimension = view[DIMS + axis]
    if first >= 0 and extent <= dimension and first <= dimension - extent:
        return True
    fault[0], fault[1], fault[2], fault[3], fault[4] = VIEW_RANGE, axis, first, extent, dimension
    return False


@inner
def _whole_bytes_ok(view: Line, element: int, rows: int, cols: int, fault: Line) -> bool:
    """Return whether every row of a window begins and ends on a byte and lies in one piece."""
    for row in range(min(rows, 2)):
        start = element + row * view[STRIDES]
        if (start * view[BITS]) % 8 or (cols * view[BITS]) % 8:
            fault[0], fault[1], fault[2], fault[3] = SUBBYTE, row, start, cols
            return False
    return True


@inner
def _copy_local(memory: Memory, source: int, target: int, size: int, mode: int) -> None:
    local, written = memory.local, memory.written
    for i in range(size):
        local[target + i] = local[source + i]
    if mode >= TRACK:
        for i in range(size):
            written[target + i] = written[source + i]


@inner
def _fetch(memory: Memory, source: int, target: int, size: int, mode: int) -> None:
    """Copy `size` bytes from GM address `source` to place `target` of the local bytes."""
    gm, local = memory.gm, memory.local
    for i in range(size):
        local[target + i] = gm[source + i]
    if mode >= TRACK:
        written, base = memory.written, memory.gm_written_base
        if source < base:
            for i in range(size):
                written[target + i] = 0xFF
        else:
            masks = memory.gm_written
            for i in range(size):
                written[target + i] = masks[source - base + i]


@inner
def _clear(memory: Memory, target: int, size: int, mode: int) -> None:
    for i in range(size):
        memory.local[target + i] = 0
    if mode >= TRACK:
        for i in range(size):
            memory.written[target + i] = 0xFF


@inner
def _fetch_segment(
    memory: Memory, view: Line, element: int, count: int, target: int, mode: int
) -> None:
    """Fetch `count` elements along the last axis from `element` on; zero the rest of 32 bytes."""
    bits, stride = view[BITS], view[STRIDES + 1]
    size = count * bits // 8
    if stride == 1:
        _fetch(memory, view[BASE] + element * bits // 8, target, size, mode)
    else:
        width = bits // 8
        for i in range(count):
            source = view[BASE] + (element + i * stride) * width
            _fetch(memory, source, target + i * width, width, mode)
    if size % 32:
        _clear(memory, target + size, 32 - size % 32, mode)


@inner
def gm_to_l1_nz(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy a window of a rank-2 view into L1 boxes of 16 rows by 32 bytes."""
    view, address, rows, cols, tile_rows = views[op[0]], op[1], op[2], op[3], op[4]
    if not (window_ok(view, 0, r0, rows, fault) and window_ok(view, 1, r1, cols, fault)):
        return False
    bits = view[BITS]
    per_segment = 256 // bits
    columns = -(-cols // per_segment)
    element = view[OFFSET] + r0 * view[STRIDES] + r1 * view[STRIDES + 1]
    if bits < 8 and not _whole_bytes_ok(view, element, rows, cols, fault):
        return False
    last = ((columns - 1) * (tile_rows // 16) + (rows - 1) // 16) * 512 + (rows - 1) % 16 * 32
    if not local_ok(memory, SPACE.l1, address, last + 32, fault):
        return False
    if mode == CHECK:
        return True
    base = memory.bases[SPACE.l1] + address
    for column in range(columns):
        first = column * per_segment
        count = min(per_segment, cols - first)
        for row in range(rows):
            start = element + row * view[STRIDES] + first * view[STRIDES + 1]
            box = column * (tile_rows // 16) + row // 16
            _fetch_segment(memory, view, start, count, base + box * 512 + row % 16 * 32, mode)
    return True


@inner
def gm_to_l1_row(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy elements of one row of a rank-2 view into L1, one after the other."""
    view, address, cols = views[op[0]], op[1], op[2]
    if not (window_ok(view, 0, r0, 1, fault) and window_ok(view, 1, r1, cols, fault)):
        return False
    element = view[OFFSET] + r0 * view[STRIDES] + r1 * view[STRIDES + 1]
    if view[BITS] < 8 and not _whole_bytes_ok(view, element, 1, cols, fault):
        return False
    size = cols * view[BITS] // 8
    if not local_ok(memory, SPACE.l1, address, -(-size // 32) * 32, fault):
        return False
    if mode == CHECK:
        return True
    _fetch_segment(memory, view, element, cols, memory.bases[SPACE.l1] + address, mode)
    return True


@inner
def gm_to_l1_boxes(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy scale boxes of a rank-5 view [1, P, Q, 16, 2] into L1."""
    view, address, ni, nj, pitch = views[op[0]], op[1], op[2], op[3], op[4]
    if not (window_ok(view, 1, r0, ni, fault) and window_ok(view, 2, r1, nj, fault)):
        return False
    if not local_ok(memory, SPACE.l1, address, ((ni - 1) * pitch + nj) * 32, fault):
        return False
    if mode == CHECK:
        return True
    origin = view[BASE] + view[OFFSET] + r0 * view[STRIDES + 1] + r1 * view[STRIDES + 2]
    base = memory.bases[SPACE.l1] + address
    for i in range(ni):
        for j in range(nj):
            source = origin + i * view[STRIDES + 1] + j * view[STRIDES + 2]
            _fetch(memory, source, base + (i * pitch + j) * 32, 32, mode)
    return True


@inner
def l1_to_l0a(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy boxes of 512 bytes from L1 to L0A."""
    source, target, row_boxes, col_boxes = op[0], op[1], op[2], op[3]
    source_pitch, target_pitch = op[4], op[5]
    size = row_boxes * 512
    if not local_ok(memory, SPACE.l1, source, (col_boxes - 1) * source_pitch * 512 + size, fault):
        return False
    if not local_ok(memory, SPACE.l0a, target, (col_boxes - 1) * target_pitch * 512 + size, fault):
        return False
    if mode == CHECK:
        return True
    source += memory.bases[SPACE.l1]
    target += memory.bases[SPACE.l0a]
    for column in range(col_boxes):
        here, there = column * source_pitch * 512, column * target_pitch * 512
        _copy_local(memory, source + here, target + there, size, mode)
    return True


@inner
def l1_to_l0b(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Transpose a k x n tile from L1 boxes (rows along K) to L0B boxes (rows along N)."""
    source, target, bits, k, n, tile_k = op[0], op[1], op[2], op[3], op[4], op[5]
    per_segment = 256 // bits
    boxes_k, boxes_n = -(-k // per_segment), -(-n // 16)
    last_box = (-(-n // per_segment) - 1) * (tile_k // 16) + (k - 1) // 16
    if not local_ok(memory, SPACE.l1, source, last_box * 512 + (k - 1) % 16 * 32 + 32, fault):
        return False
    if not local_ok(memory, SPACE.l0b, target, boxes_k * boxes_n * 512, fault):
        return False
    if mode == CHECK:
        return True
    source += memory.bases[SPACE.l1]
    target += memory.bases[SPACE.l0b]
    _transpose(memory.local, source, target, bits, k, n, tile_k, 0)
    if mode >= TRACK:
        _transpose(memory.written, source, target, bits, k, n, tile_k, 0xFF)
    return True


@inner
def _transpose(
    data: Bytes, source: int, target: int, bits: int, k: int, n: int, tile_k: int, fill: int
) -> None:
    """Move elements of `bits` from boxes of K rows to boxes of N rows; `fill` what lies beyond.

    A source box gives half a line (8 bits) or a quarter of one (4 bits) to each of its columns.
    """
    per_segment = 256 // bits
    boxes_n = -(-n // 16)
    for i in range(-(-k // per_segment) * boxes_n * 512):
        data[target + i] = fill
    for first in range(0, k, 16):
        rows = min(16, k - first)
        line = target + first // per_segment * boxes_n * 512 + first % per_segment * bits // 8
        for column in range(n):
            box = column // per_segment * (tile_k // 16) + first // 16
            here = source + box * 512 + column % per_segment * bits // 8
            there = line + column * 32
            if bits == 8:
                for row in range(rows):
                    data[there + row] = data[here + row * 32]
            else:
                shift = column % 2 * 4
                for row in range(0, rows, 2):
                    low = data[here + row * 32] >> shift & 0xF
                    high = fill
                    if row + 1 < rows:
                        high = data[here + row * 32 + 32] >> shift
                    data[there + row // 2] = low | (high & 0xF) << 4


@inner
def l1_to_scale(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy scale boxes from L1 to the scale buffer of either operand."""
    source, target, row_boxes, col_boxes, pitch, space = op[0], op[1], op[2], op[3], op[4], op[5]
    if not local_ok(memory, SPACE.l1, source, ((row_boxes - 1) * pitch + col_boxes) * 32, fault):
        return False
    if not local_ok(memory, space, target, row_boxes * col_boxes * 32, fault):
        return False
    if mode == CHECK:
        return True
    source += memory.bases[SPACE.l1]
    target += memory.bases[space]
    size = col_boxes * 32
    for i in range(row_boxes):
        _copy_local(memory, source + i * pitch * 32, target + i * size, size, mode)
    return True


@inner
def l1_to_bias(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy bytes from L1 to the bias table."""
    source, target, size = op[0], op[1], op[2]
    if not local_ok(memory, SPACE.l1, source, size, fault):
        return False
    if not local_ok(memory, SPACE.bias, target, size, fault):
        return False
    if mode == CHECK:
        return True
    _copy_local(
        memory, memory.bases[SPACE.l1] + source, memory.bases[SPACE.bias] + target, size, mode
    )
    return True
