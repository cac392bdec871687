"""The datapaths into and out of UB, one jitted function each, in the form of `kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    unwritten,
    was_written,
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
    rows, cols = op[2], op[3]
    if not (window_ok(view, 0, r0, rows, fault) and window_ok(view, 1, r1, cols, fault)):
        return False
    if view[BITS] < 8 and not whole_bytes_ok(view, _origin(view, r0, r1), rows, cols, fault):
        return False
    size, apart = _row_bytes(view, op)
    return local_ok(memory, SPACE.ub, op[1], (rows - 1) * apart + size, fault)


@inner
def _origin(view: Line, r0: int, r1: int) -> int:
    """Return the first element of a window, counted from the beginning of the buffer."""
    return view[OFFSET] + r0 * view[STRIDES] + r1 * view[STRIDES + 1]


@inner
def _row_bytes(view: Line, op: Line) -> tuple[int, int]:
    """Return the bytes of a row of a tile, and those from row to row."""
    size = op[3] * view[BITS] // 8
    return size, op[4] * UNIT if op[4] else size


@inner
def _pieces(view: Line, op: Line, size: int) -> tuple[int, int]:
    """Return in how many pieces a row of a window lies in GM, and the bytes of each."""
    return (1, size) if view[STRIDES + 1] == 1 else (op[3], view[BITS] // 8)


@inner
def gm_to_ub(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy a window of a rank-2 view into a tile in UB."""
    view = views[op[0]]
    if not _window_of_tile_ok(memory, view, op, r0, r1, fault):
        return False
    if mode == CHECK:
        return True
    size, apart = _row_bytes(view, op)
    pieces, width = _pieces(view, op, size)
    base, origin = memory.bases[SPACE.ub] + op[1], _origin(view, r0, r1)
    for row in range(op[2]):
        for i in range(pieces):
            element = origin + row * view[STRIDES] + i * view[STRIDES + 1]
            here = view[BASE] + element * view[BITS] // 8
            fetch(memory, here, base + row * apart + i * width, width, mode)
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
    if was_written(memory.written[source : source + size]):
        return -1
    for i in range(size):
        if memory.written[source + i] != 0xFF:
            return i
    return -1


@inner
def ub_to_gm(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Store a tile in UB to a window; in mode `REPORT` a never-written element is a fault."""
    view, rows = views[op[0]], op[2]
    if not _window_of_tile_ok(memory, view, op, r0, r1, fault):
        return False
    if mode == CHECK:
        return True
    size, apart = _row_bytes(view, op)
    pieces, width = _pieces(view, op, size)
    base, origin = memory.bases[SPACE.ub] + op[1], _origin(view, r0, r1)
    if mode >= REPORT:
        for row in range(rows):
            hole = _hole(memory, base + row * apart, size)
            if hole >= 0:
                place = base + row * apart + hole
                unwritten(memory, SPACE.ub, place, row, hole * 8 // view[BITS], fault)
                return False
    for row in range(rows):
        for i in range(pieces):
            element = origin + row * view[STRIDES] + i * view[STRIDES + 1]
            there = view[BASE] + element * view[BITS] // 8
            _store(memory, base + row * apart + i * width, there, width, mode)
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
                place = base + i * pitch * UNIT + hole
                unwritten(memory, SPACE.ub, place, i, hole // UNIT, fault)
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
