"""Where the tiles of an instruction of the vector core stand, and whether they were written; jitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.jit import inner
from ..datapaths.kernels import REPORT, SPACE, TRACK, Memory, all_written
from ..datapaths.moves import fill_bytes
from .plan import PITCH, ROWS, SIZE, START, TILE_WORDS, TILES
from .tiles import MAX_TILES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]


@inner
def place(memory: Memory, line: Line, tile: int) -> int:
    """Return where a tile begins among the local bytes."""
    return memory.bases[SPACE.ub] + line[TILES + tile * TILE_WORDS + START]


@inner
def part(line: Line, tile: int, word: int) -> int:
    """Return a number of a tile."""
    return line[TILES + tile * TILE_WORDS + word]


@inner
def row_at(memory: Memory, line: Line, tile: int, row: int) -> int:
    """Return where a row of a tile begins among the local bytes."""
    return place(memory, line, tile) + row * part(line, tile, PITCH)


@inner
def _runs(line: Line, tile: int) -> tuple[int, int, int]:
    """Return how many runs of bytes a tile is, the bytes of one, and those from run to run."""
    rows, size, pitch = part(line, tile, ROWS), part(line, tile, SIZE), part(line, tile, PITCH)
    return (1, rows * size, pitch) if pitch == size else (rows, size, pitch)


@inner
def whole(memory: Memory, line: Line, tile: int) -> bool:
    """Return whether every byte of a tile was written."""
    at = place(memory, line, tile)
    rows, size, pitch = _runs(line, tile)
    good = True
    for row in range(rows):
        good &= all_written(memory.written, at + row * pitch, size)
    return good


@inner
def mark(memory: Memory, line: Line, tile: int, mode: int) -> None:
    """Note that a tile was written."""
    if mode < TRACK:
        return
    at = place(memory, line, tile)
    rows, size, pitch = _runs(line, tile)
    for row in range(rows):
        fill_bytes(memory.written, at + row * pitch, size, 0xFF)


@inner
def ready(memory: Memory, line: Line, outputs: int, mode: int) -> bool:
    """Return whether every operand was written, or `mode` does not ask."""
    if mode < REPORT:
        return True
    for tile in range(outputs, MAX_TILES):
        if part(line, tile, ROWS) and not whole(memory, line, tile):
            return False
    return True
