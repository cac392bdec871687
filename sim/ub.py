"""The datapaths into and out of UB, one jitted function each, in the form of `kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .faultcodes import UNWRITTEN
from .jit import inner
from .kernels import (
    BASE,
    BITS,
    CHECK,
    OFFSET,
    REPORT,
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
    import numpy as np
    import numpy.typing as npt

    Table = npt.NDArray[np.int64]
    Line = npt.NDArray[np.int64]


@inner
def _window_of_tile_ok(memory: Memory, view: Line, op: Line, r0: int, r1: int, fault: Line) -> bool:
    """Return whether a window and its tile lie inside their memories, in whole bytes."""
    address, rows, cols, pitch = op[1], op[2], op[3], op[4]
    if not (window_ok(view, 0, r0, rows, fault) and window_ok(view, 1, r1, cols, fault)):
        return False
    element = view[OFFSET] + r0 * view[STRIDES] + r1 * view[STRIDES + 1]
    if view[BITS] < 8 and not whole_bytes_ok(view, element, rows, cols, fault):
        return False
    size = cols * view[BITS] // 8
    apart = pitch * UNIT if pitch else size
    return local_ok(memory, SPACE.ub, address, (rows - 1) * apart + size, fault)


@inner
def gm_to_ub(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy a window of a rank-2 view into a tile in UB."""
    view, rows, cols, pitch = views[op[0]], op[2], op[3], op[4]
    if not _window_of_tile_ok(memory, view, op, r0, r1, fault):
        return False
    if mode == CHECK:
        return True
    bits, step = view[BITS], view[STRIDES + 1]
    size = cols * bits // 8
    apart = pitch * UNIT if pitch else size
    base = memory.bases[SPACE.ub] + op[1]
    origin = view[OFFSET] + r0 * view[STRIDES] + r1 * step
    for row in range(rows):
        element, target = origin + row * view[STRIDES], base + row * apart
        if step == 1:
            fetch(memory, view[BASE] + element * bits // 8, target, size, mode)
        else:
            width = bits // 8
            for i in range(cols):
                here = view[BASE] + (element + i * step) * width
                fetch(memory, here, target + i * width, width, mode)
    return True


@inner
def _store(memory: Memory, source: int, target: int, size: int, mode: int) -> None:
    """Store `size` bytes from place `source` of the local bytes to GM address `target`."""
    copy_bytes(memory.gm, target, memory.local, source, size)
    if mode >= TRACK and target >= memory.gm_written_base:
        fill_bytes(memory.gm_written, target - memory.gm_written_base, size, 0xFF)


@inner
def _hole(memory: Memory, source: int, size: int) -> int:
    """Return the first of `size` bytes from place `source` on that was never written, or -1."""
    for i in range(size):
        if memory.written[source + i] != 0xFF:
            return i
    return -1


@inner
def _unwritten(memory: Memory, place: int, row: int, column: int, fault: Line) -> None:
    fault[0], fault[1], fault[2] = UNWRITTEN, SPACE.ub, place - memory.bases[SPACE.ub]
    fault[3], fault[4] = row, column


@inner
def ub_to_gm(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Store a tile in UB to a window; in mode `REPORT` a never-written element is a fault."""
    view, rows, cols, pitch = views[op[0]], op[2], op[3], op[4]
    if not _window_of_tile_ok(memory, view, op, r0, r1, fault):
        return False
    if mode == CHECK:
        return True
    bits, step = view[BITS], view[STRIDES + 1]
    size = cols * bits // 8
    apart = pitch * UNIT if pitch else size
    base = memory.bases[SPACE.ub] + op[1]
    if mode >= REPORT:
        for row in range(rows):
            hole = _hole(memory, base + row * apart, size)
            if hole >= 0:
                _unwritten(memory, base + row * apart + hole, row, hole * 8 // bits, fault)
                return False
    origin = view[OFFSET] + r0 * view[STRIDES] + r1 * step
    for row in range(rows):
        element, source = origin + row * view[STRIDES], base + row * apart
        if step == 1:
            _store(memory, source, view[BASE] + element * bits // 8, size, mode)
        else:
            width = bits // 8
            for i in range(cols):
                there = view[BASE] + (element + i * step) * width
                _store(memory, source + i * width, there, width, mode)
    return True


@inner
def ub_to_gm_boxes(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Store scale boxes to a window of a rank-5 view [1, P, Q, 16, 2]."""
    view, address, ni, nj, pitch = views[op[0]], op[1], op[2], op[3], op[4]
    if not (window_ok(view, 1, r0, ni, fault) and window_ok(view, 2, r1, nj, fault)):
        return False
    if not local_ok(memory, SPACE.ub, address, ((ni - 1) * pitch + nj) * UNIT, fault):
        return False
    if mode == CHECK:
        return True
    base = memory.bases[SPACE.ub] + address
    if mode >= REPORT:
        for i in range(ni):
            hole = _hole(memory, base + i * pitch * UNIT, nj * UNIT)
            if hole >= 0:
                _unwritten(memory, base + i * pitch * UNIT + hole, i, hole // UNIT, fault)
                return False
    origin = view[BASE] + view[OFFSET] + r0 * view[STRIDES + 1] + r1 * view[STRIDES + 2]
    for i in range(ni):
        for j in range(nj):
            there = origin + i * view[STRIDES + 1] + j * view[STRIDES + 2]
            _store(memory, base + (i * pitch + j) * UNIT, there, UNIT, mode)
    return True


@inner
def ub_to_l1(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy lines of 32-byte units from UB to L1."""
    source, target, lines, size = op[0], op[1], op[2], op[3] * UNIT
    source_pitch, target_pitch = op[4] * UNIT, op[5] * UNIT
    if not local_ok(memory, SPACE.ub, source, (lines - 1) * source_pitch + size, fault):
        return False
    if not local_ok(memory, SPACE.l1, target, (lines - 1) * target_pitch + size, fault):
        return False
    if mode == CHECK:
        return True
    here, there = memory.bases[SPACE.ub] + source, memory.bases[SPACE.l1] + target
    for line in range(lines):
        copy_local(memory, here + line * source_pitch, there + line * target_pitch, size, mode)
    return True


@inner
def ub_to_l1_nz(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy a tile of UB into L1 boxes of 16 rows by 32 bytes."""
    source, target, rows, tall = op[0], op[1], op[3], op[5]
    pitch, size = op[6] * UNIT, op[4] * op[2] // 8
    columns = -(-size // UNIT)
    if not local_ok(memory, SPACE.ub, source, (rows - 1) * pitch + size, fault):
        return False
    if not local_ok(memory, SPACE.l1, target, ((columns - 1) * tall + rows) * UNIT, fault):
        return False
    if mode == CHECK:
        return True
    here, there = memory.bases[SPACE.ub] + source, memory.bases[SPACE.l1] + target
    for column in range(columns):
        count = min(UNIT, size - column * UNIT)
        for row in range(rows):
            line = there + (column * tall + row) * UNIT
            copy_local(memory, here + row * pitch + column * UNIT, line, count, mode)
            if count < UNIT:
                clear(memory, line + count, UNIT - count, mode)
    return True
