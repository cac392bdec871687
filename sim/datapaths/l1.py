"""The datapaths into L1 and from L1 on, one jitted function each, in the form of `kernels`.

Boxes of 16 rows by 32 bytes that follow one another along the rows make one run of 32-byte lines, so
line r of box column c begins at (c * rows + r) * 32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...codegen.isa.vocabulary import ScaleRows
from ...ir.jit import inner
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
    copy_local,
    fetch,
    local_ok,
    masks_at,
    whole_bytes_ok,
    window_ok,
)
from .moves import copy_bytes, fill_bytes
from .turned import fetch_turned, is_turned, put_nibble

if TYPE_CHECKING:
    import numpy as np
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
    if size == UNIT:
        for line in range(lines):
            copy_bytes(into, there + line * 32, of, here + line * pitch, 32)
        return
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
            put_nibble(memory.local, there, i, memory.gm[source] >> half & 15, 0)
            if mode < TRACK:
                continue
            hidden = masks_at(memory, source)
            mask = 0xFF if hidden < 0 else memory.gm_written[hidden]
            put_nibble(memory.written, there, i, mask >> half & 15, 0xF0)


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
            hidden = masks_at(memory, here)
            if hidden < 0:
                fill_bytes(memory.written, target, (lines - 1) * 32 + size, 0xFF)
            else:
                _copy_lines(memory.written, target, memory.gm_written, hidden, pitch, size, lines)
    elif bits <= 8 and is_turned(memory, view, element, mode):
        fetch_turned(memory, view, element, lines, count, target, mode)
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
    tall, wide = view[STRIDES + 1], view[STRIDES + 2]
    runs, size = (1, nj * UNIT) if wide == UNIT else (nj, UNIT)
    for i in range(ni):
        for j in range(runs):
            fetch(memory, origin + i * tall + j * wide, base + (i * pitch + j) * UNIT, size, mode)
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
