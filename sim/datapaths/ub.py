"""The datapaths into and out of UB, one jitted function each, in the form of `kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...ir.jit import lean
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
    all_written,
    clear,
    copy_local,
    local_ok,
    masks_at,
    unwritten,
    whole_bytes_ok,
    window_ok,
)
from .moves import copy_bytes, fill_bytes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Table = npt.NDArray[np.int64]
    Line = npt.NDArray[np.int64]


@lean
def _window_of_tile_ok(memory: Memory, view: Line, op: Line, r0: int, r1: int, fault: Line) -> bool:
    """Return whether a window and its tile lie inside their memories, in whole bytes."""
    rows, cols = op[2], op[3]
    if not (window_ok(view, 0, r0, rows, fault) and window_ok(view, 1, r1, cols, fault)):
        return False
    if view[BITS] < 8 and not whole_bytes_ok(view, _origin(view, r0, r1), rows, cols, fault):
        return False
    size, apart = _row_bytes(view, op)
    return local_ok(memory, SPACE.ub, op[1], (rows - 1) * apart + size, fault)


@lean
def _origin(view: Line, r0: int, r1: int) -> int:
    """Return the first element of a window, counted from the beginning of the buffer."""
    return view[OFFSET] + r0 * view[STRIDES] + r1 * view[STRIDES + 1]


@lean
def _row_bytes(view: Line, op: Line) -> tuple[int, int]:
    """Return the bytes of a row of a tile, and those from row to row."""
    size = op[3] * view[BITS] // 8
    return size, op[4] * UNIT if op[4] else size


class _Way(NamedTuple):
    """Between a window in GM and its tile in UB; in bytes.

    A row of a window without a gap is one piece in GM, another one as many as it has elements.
    """

    tile: int
    """Where the tile begins among the local bytes."""
    size: int
    """A row of the tile."""
    apart: int
    """From row to row of the tile."""
    window: int
    """Where the window begins in GM."""
    stride: int
    """From row to row of the window."""
    pieces: int
    """Pieces of a row."""
    width: int
    """A piece."""
    step: int
    """From piece to piece in GM."""


@lean
def _way(memory: Memory, view: Line, op: Line, r0: int, r1: int) -> _Way:
    """Return the way of a window and a tile that lie inside their memories."""
    size, apart = _row_bytes(view, op)
    bits, is_one = view[BITS], view[STRIDES + 1] == 1
    return _Way(
        memory.bases[SPACE.ub] + op[1],
        size,
        apart,
        view[BASE] + _origin(view, r0, r1) * bits // 8,
        view[STRIDES] * bits // 8,
        1 if is_one else op[3],
        size if is_one else bits // 8,
        view[STRIDES + 1] * bits // 8,
    )


@lean
def _copy_rows(
    into: Bytes, there: int, apart: int, of: Bytes, here: int, stride: int, rows: int, size: int
) -> None:
    """Copy `rows` runs of `size` bytes, `stride` bytes apart in `of` and `apart` in `into`."""
    if apart == size and stride == size:
        copy_bytes(into, there, of, here, rows * size)
        return
    for row in range(rows):
        copy_bytes(into, there + row * apart, of, here + row * stride, size)


@lean
def _mark_rows(masks: Bytes, at: int, apart: int, rows: int, size: int) -> None:
    """Note that `rows` runs of `size` bytes, `apart` bytes from one to the next, were written."""
    if apart == size:
        fill_bytes(masks, at, rows * size, 0xFF)
        return
    for row in range(rows):
        fill_bytes(masks, at + row * apart, size, 0xFF)


@lean
def gm_to_ub(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy a window of a rank-2 view into a tile in UB."""
    view, rows = views[op[0]], op[2]
    if not _window_of_tile_ok(memory, view, op, r0, r1, fault):
        return False
    if mode == CHECK:
        return True
    way = _way(memory, view, op, r0, r1)
    _load_pieces(memory.local, memory.gm, way.window, way, rows)
    if mode < TRACK:
        return True
    masks = masks_at(memory, way.window)
    if masks < 0:
        _mark_rows(memory.written, way.tile, way.apart, rows, way.size)
    else:
        _load_pieces(memory.written, memory.gm_written, masks, way, rows)
    return True


@lean
def _load_pieces(into: Bytes, of: Bytes, window: int, way: _Way, rows: int) -> None:
    """Copy a window, which begins at `window` of `of`, into its tile."""
    for i in range(way.pieces):
        there, here = way.tile + i * way.width, window + i * way.step
        _copy_rows(into, there, way.apart, of, here, way.stride, rows, way.width)


@lean
def _hole(masks: Bytes, at: int, apart: int, rows: int, size: int) -> int:
    """Return the first place of rows of bytes that was never written, or -1."""
    if apart == size and all_written(masks, at, rows * size):
        return -1
    for row in range(rows):
        begin = at + row * apart
        if all_written(masks, begin, size):
            continue
        for place in range(begin, begin + size):
            if masks[place] != 0xFF:
                return place
    return -1


@lean
def ub_to_gm(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Store a tile in UB to a window; in mode `REPORT` a never-written element is a fault."""
    view, rows = views[op[0]], op[2]
    if not _window_of_tile_ok(memory, view, op, r0, r1, fault):
        return False
    if mode == CHECK:
        return True
    way = _way(memory, view, op, r0, r1)
    if mode >= REPORT:
        hole = _hole(memory.written, way.tile, way.apart, rows, way.size)
        if hole >= 0:
            row, byte = divmod(hole - way.tile, way.apart)
            unwritten(memory, SPACE.ub, hole, row, byte * 8 // view[BITS], fault)
            return False
    gm, local = memory.gm, memory.local
    for i in range(way.pieces):
        there, here = way.window + i * way.step, way.tile + i * way.width
        _copy_rows(gm, there, way.stride, local, here, way.apart, rows, way.width)
    masks = masks_at(memory, way.window)
    if mode >= TRACK and masks >= 0:
        for i in range(way.pieces):
            _mark_rows(memory.gm_written, masks + i * way.step, way.stride, rows, way.width)
    return True


@lean
def ub_to_gm_boxes(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Store scale boxes to a window of a rank-5 view [1, P, Q, 16, 2]."""
    view, address, ni, nj, pitch = views[op[0]], op[1], op[2], op[3], op[4] * UNIT
    if not (window_ok(view, 1, r0, ni, fault) and window_ok(view, 2, r1, nj, fault)):
        return False
    if not local_ok(memory, SPACE.ub, address, (ni - 1) * pitch + nj * UNIT, fault):
        return False
    if mode == CHECK:
        return True
    base = memory.bases[SPACE.ub] + address
    if mode >= REPORT:
        hole = _hole(memory.written, base, pitch, ni, nj * UNIT)
        if hole >= 0:
            row, byte = divmod(hole - base, pitch)
            unwritten(memory, SPACE.ub, hole, row, byte // UNIT, fault)
            return False
    tall, wide = view[STRIDES + 1], view[STRIDES + 2]
    begin = view[BASE] + view[OFFSET] + r0 * tall + r1 * wide
    first = masks_at(memory, begin)
    for i in range(ni):
        source = base + i * pitch
        _copy_rows(memory.gm, begin + i * tall, wide, memory.local, source, UNIT, nj, UNIT)
        if mode >= TRACK and first >= 0:
            _mark_rows(memory.gm_written, first + i * tall, wide, nj, UNIT)
    return True


@lean
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


@lean
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
