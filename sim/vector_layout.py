"""Instructions of the vector core that move elements of tiles in UB and compute nothing; jitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from .jit import compiled, inner
from .kernels import TRACK, Memory, copy_bytes, fill_bytes
from .vector_places import mark, part, place, ready
from .vector_plan import COLS, FLAG, MEANING, PITCH, ROWS, SIZE, WIDTH, Meaning

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


@compiled
def lay_out(memory: Memory, line: Line, r0: int, r1: int, mode: int) -> bool:
    """Execute an instruction that computes nothing.

    Args:
        memory: The memories.
        line: The instruction, as `vector_plan` has it.
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
        copy_bytes(memory.local, at + row * part(line, 0, PITCH), memory.local, at, size)
    mark(memory, line, 0, mode)


@inner
def _transpose(memory: Memory, line: Line, mode: int) -> None:
    """Turn the rows of a tile into columns."""
    there, here, width = place(memory, line, 0), place(memory, line, 1), part(line, 0, WIDTH) // 8
    rows, cols, size = part(line, 1, ROWS), part(line, 1, COLS), part(line, 0, SIZE)
    pitch, other = part(line, 0, PITCH), part(line, 1, PITCH)
    for column in range(cols):
        first, source = there + column * pitch, here + column * width
        if width == 1:
            narrow = memory.local[first : first + size]
            for row in range(rows):
                narrow[row] = memory.local[source + row * other]
        elif width == 2 and other % 2 == 0:
            halves = memory.local[source : source + (rows - 1) * other + 2].view(np.uint16)
            turned = memory.local[first : first + size].view(np.uint16)
            for row in range(rows):
                turned[row] = halves[row * (other // 2)]
        elif width == 4:
            words = memory.local[source : source + (rows - 1) * other + 4].view(np.uint32)
            placed = memory.local[first : first + size].view(np.uint32)
            for row in range(rows):
                placed[row] = words[row * (other // 4)]
        else:
            for row in range(rows):
                copy_bytes(
                    memory.local, first + row * width, memory.local, source + row * other, width
                )
    mark(memory, line, 0, mode)


@inner
def _select(memory: Memory, line: Line, mode: int) -> None:
    """Take elements of a tile where a mask says so."""
    width, invert = part(line, 0, WIDTH) // 8, line[FLAG] != 0
    for row in range(part(line, 0, ROWS)):
        there = place(memory, line, 0) + row * part(line, 0, PITCH)
        here = place(memory, line, 1) + row * part(line, 1, PITCH)
        masks = place(memory, line, 2) + row * part(line, 2, PITCH)
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
        there, here = place(memory, line, 0) + row * part(line, 0, PITCH), place(memory, line, 1)
        if line[FLAG] != 0:
            copy_bytes(memory.local, there, memory.local, here, size)
            continue
        for column in range(part(line, 0, COLS)):
            for byte in range(width):
                memory.local[there + column * width + byte] = memory.local[
                    here + row * other + byte
                ]
    mark(memory, line, 0, mode)
