"""Valid extents of any size: what lies beyond them never reaches a result, on a dirty machine."""

import pytest

from .tails import (
    COLUMNS,
    PAIRS,
    ROWS,
    check,
    matrix,
    scaled_tail,
)

SLICE = 37
"""Of so many cases one is run each time; it has no factor in common with how many of an axis there are."""


pytestmark = pytest.mark.usefixtures("dirty")


def test_the_matrix_has_every_case() -> None:
    assert len(list(matrix())) == 3 * 9 * 9 * 8


def test_a_slice_of_all_tails_leaves_the_poison_behind() -> None:
    for valid, pair in list(matrix())[::SLICE]:
        check(*scaled_tail(valid, pair))


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_all_tails_leave_the_poison_behind(pair: tuple[str, str]) -> None:
    for number, (valid, each) in enumerate(matrix()):
        if each == pair and number % SLICE:
            check(*scaled_tail(valid, pair))


COMPACT = [
    (valid, pair)
    for pair in PAIRS
    for valid in [(m, 72, n) for m in ROWS for n in COLUMNS if pair[0] != "FP4" or n % 2 == 0]
]


def test_an_accumulator_with_fewer_valid_rows_than_boxes_is_read_as_it_was_written() -> None:
    for valid, pair in COMPACT[::SLICE]:
        check(*scaled_tail(valid, pair, physical=(128, 128, 128), seed=1))


@pytest.mark.slow
def test_every_accumulator_is_read_as_it_was_written() -> None:
    for valid, pair in COMPACT:
        check(*scaled_tail(valid, pair, physical=(128, 128, 128), seed=1))


@pytest.mark.parametrize("k", [968, 905, 1000])
def test_a_tail_of_what_the_compiler_cuts_is_filled_up_too(k: int) -> None:
    """128 x 1024 does not fit L0A: K goes in steps, and its operands come in pieces."""
    check(*scaled_tail((115, k, 40), PAIRS[0], physical=(128, 1024, 64)))
