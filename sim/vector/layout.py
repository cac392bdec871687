"""Instructions of the vector core that move elements of tiles in UB and compute nothing; jitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from ...ir.jit import compiled, inner
from ..datapaths.kernels import TRACK, Memory
from ..datapaths.moves import copy_bytes, fill_bytes
from .places import mark, part, place, ready, row_at
from .plan import COLS, FLAG, MEANING, PITCH, ROWS, SIZE, WIDTH, Meaning

if TYPE_CHECKING:
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]

_MOVE, _BOXES, _FILL, _TRANSPOSE, _SELECT = (
    int(meaning)
    for meaning in (
        Meaning.MOVE,
        Meaning.BOXES,
        Meaning.FILL,
        Meaning.TRANSPOSE,
        Meaning.SELECT,
    )
)

_BLOCK = 8
"""Rows and columns of bytes that are turned at once."""


@compiled
def lay_out(memory: Memory, line: Line, r0: int, r1: int, mode: int) -> bool:
    """Execute an instruction that computes nothing.

    Args:
        memory: The memories.
        line: The instruction, as `plan` has it.
        r0: What its first register holds: of a fill the code, of a move the source's distance.
        r1: What its second one holds: of a move the result's distance.
        mode: How much is done, as for `kernels`.

    Returns:
        Whether it was done; not where something that is read was never written, or where a move's
        source and result share bytes.
    """
    meaning = line[MEANING]
    if meaning == _MOVE:
        return _move(memory, line, r0, r1, mode)
    if not ready(memory, line, 1, mode):
        return False
    if meaning == _BOXES:
        _boxes(memory, line, mode)
    elif meaning == _FILL:
        _fill(memory, line, r0, mode)
    elif meaning == _TRANSPOSE:
        _transpose(memory, line, mode)
    elif meaning == _SELECT:
        _select(memory, line, mode)
    else:
        _spread(memory, line, mode)
    return True


@inner
def _boxes(memory: Memory, line: Line, mode: int) -> None:
    """Lay scales out in boxes of 16 rows by 2 groups."""
    there, here = place(memory, line, 0), place(memory, line, 1)
    rows, groups, pitch = part(line, 1, ROWS), part(line, 1, COLS), part(line, 1, PITCH)
    pairs = -(-groups // BOX_GROUPS)
    fill_bytes(memory.local, there, part(line, 0, ROWS) * BOX_BYTES, 0)
    for row in range(rows):
        target = there + row // BOX_ROWS * pairs * BOX_BYTES + row % BOX_ROWS * BOX_GROUPS
        for group in range(groups):
            byte = memory.local[here + row * pitch + group]
            memory.local[target + group // BOX_GROUPS * BOX_BYTES + group % BOX_GROUPS] = byte
    mark(memory, line, 0, mode)


@inner
def _move(memory: Memory, line: Line, source: int, target: int, mode: int) -> bool:
    """Copy a tile and, from `TRACK` on, its written masks; both lie further on than the line says.

    Returns:
        Whether it was done; not where the two share bytes.
    """
    there, here = place(memory, line, 0) + target, place(memory, line, 1) + source
    rows, size = part(line, 0, ROWS), part(line, 0, SIZE)
    pitch, other = part(line, 0, PITCH), part(line, 1, PITCH)
    if here < there + (rows - 1) * pitch + size and there < here + (rows - 1) * other + size:
        return False
    for row in range(rows):
        copy_bytes(memory.local, there + row * pitch, memory.local, here + row * other, size)
        if mode >= TRACK:
            copy_bytes(
                memory.written, there + row * pitch, memory.written, here + row * other, size
            )
    return True


@inner
def _fill(memory: Memory, line: Line, number: int, mode: int) -> None:
    """Set every element of a tile to the code in the low bits of a number."""
    at, size, width = place(memory, line, 0), part(line, 0, SIZE), part(line, 0, WIDTH) // 8
    if width == 0:
        fill_bytes(memory.local, at, size, (number & 0xF) * 0x11)
    for column in range(0, size, max(1, width)):
        for byte in range(width):
            memory.local[at + column + byte] = (number >> (8 * byte)) & 0xFF
    for row in range(1, part(line, 0, ROWS)):
        copy_bytes(memory.local, row_at(memory, line, 0, row), memory.local, at, size)
    mark(memory, line, 0, mode)


@inner
def _transpose(memory: Memory, line: Line, mode: int) -> None:
    """Turn the rows of a tile into columns."""
    there, here, width = place(memory, line, 0), place(memory, line, 1), part(line, 0, WIDTH) // 8
    rows, cols, size = part(line, 1, ROWS), part(line, 1, COLS), part(line, 0, SIZE)
    pitch, other = part(line, 0, PITCH), part(line, 1, PITCH)
    local, done_rows, done_cols = memory.local, 0, 0
    if width == 1 and (there | here | pitch | other) % _BLOCK == 0:
        done_rows, done_cols = rows // _BLOCK * _BLOCK, cols // _BLOCK * _BLOCK
        _turn_blocks(local.view(np.uint64), there, pitch, here, other, done_rows, done_cols)
    for column in range(cols):
        first, source = there + column * pitch, here + column * width
        if width == 1:
            narrow = local[first : first + size]
            for row in range(done_rows if column < done_cols else 0, rows):
                narrow[row] = local[source + row * other]
        elif width == 2 and other % 2 == 0:
            halves = local[source : source + (rows - 1) * other + 2].view(np.uint16)
            turned = local[first : first + size].view(np.uint16)
            for row in range(rows):
                turned[row] = halves[row * (other // 2)]
        elif width == 4:
            words = local[source : source + (rows - 1) * other + 4].view(np.uint32)
            placed = local[first : first + size].view(np.uint32)
            for row in range(rows):
                placed[row] = words[row * (other // 4)]
        else:
            for row in range(rows):
                copy_bytes(local, first + row * width, local, source + row * other, width)
    mark(memory, line, 0, mode)


@inner
def _turn_blocks(
    words: npt.NDArray[np.uint64],
    there: int,
    pitch: int,
    here: int,
    other: int,
    rows: int,
    cols: int,
) -> None:
    """Turn rows of bytes into columns, block by block of 8 x 8: a row of a block is one word.

    The places count bytes; they, the bytes from row to row and the extents are multiples of 8.
    """
    block = np.empty(_BLOCK, np.uint64)
    for column in range(0, cols, _BLOCK):
        for row in range(0, rows, _BLOCK):
            for i in range(_BLOCK):
                block[i] = words[np.uintp((here + (row + i) * other + column) // _BLOCK)]
            _cross(block, 4, np.uint64(32), np.uint64(0x00000000FFFFFFFF))
            _cross(block, 2, np.uint64(16), np.uint64(0x0000FFFF0000FFFF))
            _cross(block, 1, np.uint64(8), np.uint64(0x00FF00FF00FF00FF))
            for i in range(_BLOCK):
                words[np.uintp((there + (column + i) * pitch + row) // _BLOCK)] = block[i]


@inner
def _cross(
    block: npt.NDArray[np.uint64], apart: int, shift: np.uint64, low_parts: np.uint64
) -> None:
    """Exchange the high parts of each row of a block with the low parts of the row `apart` below."""
    for i in range(_BLOCK):
        if i & apart == 0:
            changed = ((block[i] >> shift) ^ block[i + apart]) & low_parts
            block[i] ^= changed << shift
            block[i + apart] ^= changed


@inner
def _select(memory: Memory, line: Line, mode: int) -> None:
    """Take elements of a tile where a mask says so."""
    width, invert = part(line, 0, WIDTH) // 8, line[FLAG] != 0
    for row in range(part(line, 0, ROWS)):
        there, here = row_at(memory, line, 0, row), row_at(memory, line, 1, row)
        masks = row_at(memory, line, 2, row)
        for column in range(part(line, 0, COLS)):
            if (memory.local[masks + column] != 0) != invert:
                for byte in range(column * width, column * width + width):
                    memory.local[there + byte] = memory.local[here + byte]
                    if mode >= TRACK:
                        memory.written[there + byte] = 0xFF


@inner
def _spread(memory: Memory, line: Line, mode: int) -> None:
    """Fill the rows of a tile with elements of a column, or the columns with those of a row."""
    width, size, other = part(line, 0, WIDTH) // 8, part(line, 0, SIZE), part(line, 1, PITCH)
    for row in range(part(line, 0, ROWS)):
        there, here = row_at(memory, line, 0, row), place(memory, line, 1)
        if line[FLAG] != 0:
            copy_bytes(memory.local, there, memory.local, here, size)
            continue
        for column in range(part(line, 0, COLS)):
            for byte in range(width):
                memory.local[there + column * width + byte] = memory.local[
                    here + row * other + byte
                ]
    mark(memory, line, 0, mode)
