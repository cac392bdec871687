"""The map of differences: which cell is which, and what its mark says."""

import numpy as np
import pytest

from scalebox.traces.compare import compare
from scalebox.traces.difference_map import DifferenceMap, difference_map


def found_map(differs: np.ndarray, tile: tuple[int, ...] | None = None) -> DifferenceMap:
    found = difference_map(differs, tile)
    assert found is not None
    return found


def test_a_mark_is_a_tile_and_says_how_much_of_it_differs() -> None:
    differs = np.zeros((64, 128), bool)
    differs[16:32, 32:64] = True
    differs[32:48, :32] = np.arange(512).reshape(16, 32) < 256
    differs[63, 127] = True
    differs[48:, :32] = True
    differs[48, 0] = False
    found = found_map(differs, (16, 32))
    assert found.cell == (16, 32)
    assert found.lines() == [
        "a mark for every 16 x 32 elements: . equal, 1-9 tenths differ, # all",
        " 0  ....",
        "16  .#..",
        "32  5...",
        "48  9..1",
    ]


def test_tiles_at_the_edge_may_be_cut_short() -> None:
    differs = np.zeros((20, 40), bool)
    differs[16:, 32:] = True
    assert found_map(differs, (16, 32)).lines()[1:] == [" 0  ..", "16  .#"]


@pytest.mark.parametrize(
    ("shape", "tile", "cell"),
    [
        ((64, 128), (64, 128), (16, 16)),  # one tile: rows and columns of a scale box
        ((64, 128), None, (16, 16)),
        ((16, 16), None, (1, 1)),
        ((7,), None, (1, 1)),
        ((4096, 16384), (64, 128), (256, 384)),  # several tiles a mark, so that it fits a terminal
        ((2, 3, 32, 64), (1, 1, 16, 64), (16, 64)),
        ((128,), (32,), (1, 32)),
    ],
)
def test_the_cell_follows_from_the_tile_and_the_size(
    shape: tuple[int, ...], tile: tuple[int, ...] | None, cell: tuple[int, int]
) -> None:
    found = found_map(np.ones(shape, bool), tile)
    assert found.cell == cell
    assert len(found.shares) <= 16
    assert all(len(row) <= 48 for row in found.shares)
    assert all(share == 1 for row in found.shares for share in row)


def test_leading_axes_are_laid_into_the_rows() -> None:
    differs = np.zeros((2, 16, 32), bool)
    differs[1, :, 16:] = True
    assert found_map(differs).lines()[1:] == [" 0  ..", "16  .#"]


def test_a_single_cell_is_no_map() -> None:
    assert difference_map(np.ones((), bool), None) is None
    assert difference_map(np.ones(1, bool), None) is None
    assert difference_map(np.ones((0, 4), bool), None) is None
    only = compare(np.array([1, 2, 3]), np.array([1, 2, 4]))
    assert "where" not in str(only)  # the first difference says it all
