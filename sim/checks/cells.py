"""Cells: the bytes of the local memories, those together that no instruction tells apart.

Memories are cut wherever a run of a footprint begins or ends. Pieces that the same rectangles cover
are always written together, so they are one cell, however many rows of a tile they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ...codegen.isa.vocabulary import Space

if TYPE_CHECKING:
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_WINDOW: Final = 1 << 40
"""More bytes than a memory has, so that all memories lie behind one another."""
_MIXERS: Final = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of some rectangles, c of them; r rectangles.

    Attributes:
        count: How many cells there are.
        begin: Where the cells of each rectangle begin in `of`, int64 [r + 1]; GM has none.
        of: The cells, one rectangle's behind another's.
        head: The cell of each rectangle's first byte, -1 in GM, int64 [r].
        size: The bytes of each cell, int64 [c].
    """

    count: int
    begin: Line
    of: Line
    head: Line
    size: Line


def cells_of(memory: Line, start: Line, count: Line, pitch: Line, size: Line) -> Cells:
    """Cut the local memories.

    Args:
        memory: The memory of each rectangle, int64 [r].
        start: Its first byte.
        count: Its runs.
        pitch: Bytes from run to run.
        size: Bytes of a run.
    """
    total = len(memory)
    runs = np.where(memory == Space.GM, 0, count)
    owner = np.repeat(np.arange(total), runs)
    firsts = np.concatenate([[0], np.cumsum(runs)])[:-1]
    number = np.arange(len(owner)) - firsts[owner]
    begins = memory[owner] * _WINDOW + start[owner] + number * pitch[owner]
    ends = begins + size[owner]
    borders = np.unique(np.concatenate([begins, ends]))
    here, there = np.searchsorted(borders, begins), np.searchsorted(borders, ends)
    marks = _marks(owner)
    change = np.zeros(len(borders) + 1, np.uint64)
    np.add.at(change, here, marks)
    np.subtract.at(change, there, marks)
    covered = np.cumsum(change)
    _, cell = np.unique(covered, return_inverse=True)
    cell = cell.astype(np.int64).reshape(-1)
    widths = np.zeros(int(cell.max(initial=0)) + 1, np.int64)
    np.add.at(widths, cell[: max(len(borders) - 1, 0)], np.diff(borders))
    pieces = there - here
    piece_owner = np.repeat(owner, pieces)
    piece_firsts = np.concatenate([[0], np.cumsum(pieces)])[:-1]
    place = np.arange(len(piece_owner)) - np.repeat(piece_firsts, pieces) + np.repeat(here, pieces)
    kinds = len(widths)
    pairs = np.unique(piece_owner * kinds + cell[place]) if len(place) else np.zeros(0, np.int64)
    owners, found = np.divmod(pairs, kinds)
    begin = np.zeros(total + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=total), out=begin[1:])
    head = np.full(total, -1, np.int64)
    local = np.flatnonzero(runs)
    head[local] = cell[here[firsts[local]]]
    return Cells(kinds, begin, found, head, widths)


def _marks(owner: Line) -> npt.NDArray[np.uint64]:
    """Return a number for each owner that no sum of others equals but by rare chance."""
    marks = (owner.astype(np.uint64) + np.uint64(1)) * np.uint64(_MIXERS[0])
    marks = (marks ^ (marks >> np.uint64(30))) * np.uint64(_MIXERS[1])
    return marks ^ (marks >> np.uint64(27))
