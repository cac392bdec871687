"""How far apart elements are: every one is counted once, in the bin of its distance."""

from typing import Any

import numpy as np
import pytest

from scalebox.traces.compare import compare
from scalebox.traces.histogram import Histogram


def counted(actual: Any, golden: Any, rule: str = "exact") -> Histogram:
    found = compare(actual, golden, rule=rule).outputs[0].histogram
    assert found is not None
    return found


def away(*ulps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 numbers that lie so many units above 1.0, and the ones."""
    words = np.array([0x3F800000 + each for each in ulps], np.uint32)
    return words.view(np.float32), np.ones(len(ulps), np.float32)


def test_elements_are_counted_by_powers_of_ten() -> None:
    found = counted(*away(0, 1, 1, 2, 9, 10, 99, 100, 1_000, 10_000, 999_999, 1_000_000, 8_000_000))
    assert found.bins == (
        (1, 1, 2),
        (2, 9, 2),
        (10, 99, 2),
        (100, 999, 1),
        (1_000, 9_999, 1),
        (10_000, 99_999, 1),
        (100_000, 999_999, 1),
        (1_000_000, None, 2),
    )
    assert found.special == 0


def test_what_stands_beside_nan_or_infinity_is_counted_apart() -> None:
    actual = np.array([np.nan, 1, np.inf, -np.inf, 1.5, np.nan], np.float32)
    golden = np.array([1, np.nan, np.inf, np.inf, 1, np.nan], np.float32)
    found = counted(actual, golden)
    assert (found.bins, found.special) == (((1_000_000, None, 1),), 3)


def test_only_what_breaks_the_rule_is_counted() -> None:
    assert counted(*away(1, 2, 3, 40), rule="ulp:2").bins == ((2, 9, 1), (10, 99, 1))


def test_the_lines_stand_in_columns_and_every_bin_has_a_bar() -> None:
    assert counted(*away(*[1] * 99, 5_000)).lines() == [
        "1 ulp                99  ####################",
        "1,000 to 9,999 ulps   1  #",
    ]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_integers_are_counted_by_their_difference(dtype: Any) -> None:
    found = counted(np.array([5, 0, 100], dtype), np.array([4, 50, 100], dtype))
    assert found.bins == ((1, 1, 1), (10, 99, 1))
