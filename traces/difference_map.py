"""Where in an output the elements lie that differ: a mark a tile."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..ir.dtypes.boxes import BOX_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_Item = TypeVar("_Item", bound=np.generic)

_MOST_ROWS, _MOST_COLS = 16, 48
_EQUAL, _ALL = ".", "#"


@dataclass(frozen=True, slots=True)
class DifferenceMap:
    """An output as a grid of cells. Axes before the last two are laid into the rows.

    Attributes:
        cell: Rows and columns of a cell; those at the end may be cut short.
        shares: Share of a cell's elements that differ, rows of cells.
        shape: Rows and columns of the output.
    """

    cell: tuple[int, int]
    shares: tuple[tuple[float, ...], ...]
    shape: tuple[int, int]

    def lines(self) -> list[str]:
        """Return the map as text: what a mark means, then a line a row of cells."""
        rows, cols = self.cell
        several = "element" if self.cell == (1, 1) else f"{rows} x {cols} elements"
        head = f"a mark for every {several}: {_EQUAL} equal, {_ALL} all differ"
        if self.cell != (1, 1):
            head = f"a mark for every {several}: {_EQUAL} equal, 1-9 tenths differ, {_ALL} all"
        wide = len(str(self.shape[0]))
        marks = ("".join(_mark(share) for share in line) for line in self.shares)
        return [head, *(f"{at * rows:>{wide}}  {line}" for at, line in enumerate(marks))]


def difference_map(
    differs: npt.NDArray[np.bool_], tile: Sequence[int] | None
) -> DifferenceMap | None:
    """Return the map of an output, or None for one that is a single cell.

    Args:
        differs: Where elements differ, in the output's shape.
        tile: Shape of the tiles in which the output was made, if it is known.
    """
    flat = as_matrix(differs)
    rows, cols = flat.shape
    for cell in (*_of_tile(tile), (BOX_ROWS, BOX_ROWS), (1, 1)):
        if math.ceil(rows / cell[0]) * math.ceil(cols / cell[1]) > 1:
            whole = (_widened(cell[0], rows, _MOST_ROWS), _widened(cell[1], cols, _MOST_COLS))
            return DifferenceMap(whole, _shares(flat, whole), (rows, cols))
    return None


def as_matrix(array: npt.NDArray[_Item]) -> npt.NDArray[_Item]:
    """Return an array as rows and columns, the axes before the last one laid into the rows."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1] if array.ndim else 1)


def _of_tile(tile: Sequence[int] | None) -> tuple[tuple[int, int], ...]:
    if not tile:
        return ()
    return ((tile[-2] if len(tile) > 1 else 1, tile[-1]),)


def _widened(extent: int, whole: int, most: int) -> int:
    """Return the least multiple of a cell's extent of which at most `most` cover the whole."""
    return extent * math.ceil(math.ceil(whole / extent) / most)


def _shares(flat: npt.NDArray[np.bool_], cell: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    found = flat.astype(np.int64)
    sizes = np.ones(flat.shape, np.int64)
    for axis, extent in enumerate(cell):
        starts = range(0, flat.shape[axis], extent)
        found = np.add.reduceat(found, starts, axis=axis)
        sizes = np.add.reduceat(sizes, starts, axis=axis)
    return tuple(tuple(float(each) for each in row) for row in found / sizes)


def _mark(share: float) -> str:
    if share in (0, 1):
        return _ALL if share else _EQUAL
    return str(min(9, max(1, int(10 * share))))
