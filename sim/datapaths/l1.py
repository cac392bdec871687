"""The datapaths into L1 and from L1 on, one jitted function each, in the form of `kernels`.

Boxes of 16 rows by 32 bytes that follow one another along the rows make one run of 32-byte lines, so
line r of box column c begins at (c * rows + r) * 32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.vocabulary import ScaleRows
from ..jit import inner
from .kernels import (
    BASE,
    BITS,
    CHECK,
    OFFSET,
    SPACE,
    STRIDES,
    TRACK,
    UNIT,
    Memory,
    clear,
    copy_bytes,
    copy_local,
    fetch,
    fill_bytes,
    local_ok,
    whole_bytes_ok,
    window_ok,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Table = npt.NDArray[np.int64]
    Line = npt.NDArray[np.int64]

A_DN, B_ND = int(ScaleRows.A_DN), int(ScaleRows.B_ND)
"""The layouts in which a view of scales has the pairs of groups outside."""


@inner
def _copy_lines(
    into: Bytes, there: int, of: Bytes, here: int, pitch: int, size: int, lines: int
) -> None:
    """Copy lines of `size` bytes, `pitch` bytes apart, to places 32 bytes apart."""
    for line in range(lines):
        copy_bytes(into, there + line * 32, of, here + line * pitch, size)


@inner
def _gather_nibbles(
    memory: Memory, view: Line, element: int, lines: int, count: int, target: int, mode: int
) -> None:
    """Fetch lines of 4-bit elements that lie apart, two to a byte; of a single last one, zero beside."""
    for line in range(lines):
        for i in range(count):
            number = element + line * view[STRIDES] + i * view[STRIDES + 1]
            source, there = view[BASE] + number // 2, target + line * 32 + i // 2
            half = number % 2 * 4
            _put_nibble(memory.local, there, i, memory.gm[source] >> half & 15, 0)
            if mode < TRACK:
                continue
            mask = 0xFF
            if source >= memory.gm_written_base:
                mask = memory.gm_written[source - memory.gm_written_base]
            _put_nibble(memory.written, there, i, mask >> half & 15, 0xF0)


@inner
def _put_nibble(into: Bytes, there: int, number: int, nibble: int, beside: int) -> None:
    """Put an element into its half of a byte; an even one puts `beside` into the other half."""
    if number % 2:
        into[there] = (into[there] & 15) | nibble << 4
    else:
        into[there] = nibble | beside


@inner
def _fetch_lines(
    memory: Memory, view: Line, element: int, lines: int, count: int, target: int, mode: int
) -> None:
    """Fetch `lines` times `count` elements along the last axis from `element` on.

    Lines go 32 bytes apart; the bytes up to the next multiple of 32 become zero.
    """
    bits, step = view[BITS], view[STRIDES + 1]
    size = (count * bits + 7) // 8
    if step == 1:
        here, pitch = view[BASE] + element * bits // 8, view[STRIDES] * bits // 8
        _copy_lines(memory.local, target, memory.gm, here, pitch, size, lines)
        if mode >= TRACK:
            hidden = here - memory.gm_written_base
            if hidden < 0:
                fill_bytes(memory.written, target, (lines - 1) * 32 + size, 0xFF)
            else:
                _copy_lines(memory.written, target, memory.gm_written, hidden, pitch, size, lines)
    elif bits < 8:
        _gather_nibbles(memory, view, element, lines, count, target, mode)
    else:
        width = bits // 8
        for line in range(lines):
            for i in range(count):
                here = view[BASE] + (element + line * view[STRIDES] + i * step) * width
                fetch(memory, here, target + line * 32 + i * width, width, mode)
    if size % 32:
        for line in range(lines):
            clear(memory, target + line * 32 + size, 32 - size % 32, mode)


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
    if bits < 8 and not whole_bytes_ok(view, element, rows, cols, fault):
        return False
    if not local_ok(memory, SPACE.l1, address, ((columns - 1) * tile_rows + rows) * 32, fault):
        return False
    if mode == CHECK:
        return True
    base = memory.bases[SPACE.l1] + address
    for column in range(columns):
        first = column * per_segment
        start = element + first * view[STRIDES + 1]
        count = min(per_segment, cols - first)
        _fetch_lines(memory, view, start, rows, count, base + column * tile_rows * 32, mode)
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
    if view[BITS] < 8 and not whole_bytes_ok(view, element, 1, cols, fault):
        return False
    size = cols * view[BITS] // 8
    if not local_ok(memory, SPACE.l1, address, -(-size // 32) * 32, fault):
        return False
    if mode == CHECK:
        return True
    _fetch_lines(memory, view, element, 1, cols, memory.bases[SPACE.l1] + address, mode)
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
            fetch(memory, source, base + (i * pitch + j) * 32, 32, mode)
    return True


@inner
def gm_to_l1_scales(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy pairs of scales of a rank-5 view [1, 1, rows, pairs, 2], or pairs first, into L1 boxes."""
    view, address, down, across, pitch, layout = views[op[0]], op[1], op[2], op[3], op[4], op[5]
    if not (window_ok(view, 2, r0, down, fault) and window_ok(view, 3, r1, across, fault)):
        return False
    rows, pairs, row_step, pair_step = down, across, view[STRIDES + 2], view[STRIDES + 3]
    if layout in (A_DN, B_ND):
        rows, pairs, row_step, pair_step = pairs, rows, pair_step, row_step
    if not local_ok(memory, SPACE.l1, address, ((rows - 1) // 16 * pitch + pairs) * 32, fault):
        return False
    if mode == CHECK:
        return True
    origin = view[BASE] + view[OFFSET] + r0 * view[STRIDES + 2] + r1 * view[STRIDES + 3]
    base = memory.bases[SPACE.l1] + address
    for row in range(rows):
        for pair in range(pairs):
            source = origin + row * row_step + pair * pair_step
            fetch(memory, source, base + (row // 16 * pitch + pair) * 32 + row % 16 * 2, 2, mode)
    return True


@inner
def gm_to_l1_nz_boxes(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy columns of operand boxes of a rank-5 view [1, P, Q, 16, c0] into L1."""
    view, address, columns, rows, pitch = views[op[0]], op[1], op[2], op[3], op[4]
    if not (window_ok(view, 1, r0, columns, fault) and window_ok(view, 2, r1, rows, fault)):
        return False
    if not local_ok(memory, SPACE.l1, address, ((columns - 1) * pitch + rows) * 512, fault):
        return False
    if mode == CHECK:
        return True
    width = view[BITS] // 8
    base = memory.bases[SPACE.l1] + address
    for j in range(columns):
        for i in range(rows):
            element = (r0 + j) * view[STRIDES + 1] + (r1 + i) * view[STRIDES + 2]
            source = view[BASE] + (view[OFFSET] + element) * width
            fetch(memory, source, base + (j * pitch + i) * 512, 512, mode)
    return True


@inner
def l1_to_l0_boxes(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy boxes of 512 bytes from L1 to L0A or L0B."""
    source, target, row_boxes, col_boxes = op[0] + r0 * UNIT, op[1], op[2], op[3]
    source_pitch, target_pitch, space = op[4], op[5], op[6]
    size = row_boxes * 512
    if not local_ok(memory, SPACE.l1, source, (col_boxes - 1) * source_pitch * 512 + size, fault):
        return False
    if not local_ok(memory, space, target, (col_boxes - 1) * target_pitch * 512 + size, fault):
        return False
    if mode == CHECK:
        return True
    source += memory.bases[SPACE.l1]
    target += memory.bases[space]
    for column in range(col_boxes):
        here, there = column * source_pitch * 512, column * target_pitch * 512
        copy_local(memory, source + here, target + there, size, mode)
    return True


@inner
def l1_to_l0_turned(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Transpose a k x n tile from L1 boxes (rows along K) to boxes of either operand (rows along N)."""
    source, target, bits, k, n, tile_k = op[0] + r0 * UNIT, op[1], op[2], op[3], op[4], op[5]
    space = op[6]
    per_segment = 256 // bits
    boxes_k, boxes_n = -(-k // per_segment), -(-n // 16)
    lines = (-(-n // per_segment) - 1) * tile_k + k
    if not local_ok(memory, SPACE.l1, source, lines * 32, fault):
        return False
    if not local_ok(memory, space, target, boxes_k * boxes_n * 512, fault):
        return False
    if mode == CHECK:
        return True
    source += memory.bases[SPACE.l1]
    target += memory.bases[space]
    _transpose(memory.local, source, target, bits, k, n, tile_k, 0)
    if mode >= TRACK:
        _transpose(memory.written, source, target, bits, k, n, tile_k, 0xFF)
    return True


@inner
def _transpose(
    data: Bytes, source: int, target: int, bits: int, k: int, n: int, tile_k: int, fill: int
) -> None:
    """Move elements of `bits` from boxes of K rows to boxes of N rows; `fill` what lies beyond.

    A source box gives half a line (8 bits), a quarter of one (4 bits), a line (16 bits) or two lines
    (32 bits, of which a box has 8 columns) to each of its columns.
    """
    per_segment = 256 // bits
    boxes_n = -(-n // 16)
    fill_bytes(data, target, -(-k // per_segment) * boxes_n * 512, fill)
    for first in range(0, k, 16):
        rows = np.uintp(min(16, k - first))
        line = target + first // per_segment * boxes_n * 512 + first % per_segment * bits // 8
        for column in range(n):
            line_k = column // per_segment * tile_k + first
            here = np.uintp(source + line_k * 32 + column % per_segment * bits // 8)
            there = np.uintp(line + column * 32)
            if bits == 8:
                for row in range(rows):
                    data[there + row] = data[here + row * np.uintp(32)]
            elif bits > 8:
                width = bits // 8
                for row in range(min(16, k - first)):
                    box, inside = (first + row) // per_segment, (first + row) % per_segment
                    place = target + (box * boxes_n * 16 + column) * 32 + inside * width
                    copy_bytes(
                        data,
                        place,
                        data,
                        source + (line_k + row) * 32 + column % per_segment * width,
                        width,
                    )
            else:
                shift = np.uint8(column % 2 * 4)
                for pair in range((rows + np.uintp(1)) // np.uintp(2)):
                    place = here + pair * np.uintp(64)
                    low, high = data[place] >> shift, np.uint8(fill)
                    if pair * np.uintp(2) + np.uintp(1) < rows:
                        high = data[place + np.uintp(32)] >> shift
                    data[there + pair] = low & 0xF | (high & 0xF) << 4


@inner
def l1_to_scale(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy scale boxes from L1 to the scale buffer of either operand."""
    source, target, row_boxes, col_boxes = op[0] + r0 * UNIT, op[1], op[2], op[3]
    pitch, space = op[4], op[5]
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
        copy_local(memory, source + i * pitch * 32, target + i * size, size, mode)
    return True


@inner
def l1_to_table(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy bytes from L1 to the bias table or to the parameters of the fixpipe."""
    source, target, size, space = op[0] + r0 * UNIT, op[1], op[2], op[3]
    if not local_ok(memory, SPACE.l1, source, size, fault):
        return False
    if not local_ok(memory, space, target, size, fault):
        return False
    if mode == CHECK:
        return True
    copy_local(memory, memory.bases[SPACE.l1] + source, memory.bases[space] + target, size, mode)
    return True
