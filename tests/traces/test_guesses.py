"""Guesses: each shows for the fault that it names, and none for what has no pattern."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir import numerics
from scalebox.traces.compare import compare

RNG = np.random.default_rng(5)
GOLDEN = RNG.standard_normal((64, 96)).astype(np.float32)
LEFT = "look at the elements and scales of the left operand there"
RIGHT = "look at the elements and scales of the right operand there"


def guesses(actual: Any, golden: Any = GOLDEN) -> tuple[str, ...]:
    (output,) = compare(actual, golden).outputs
    assert output.differing
    return output.guesses


def powers(*shape: int) -> np.ndarray:
    """Return powers of two, no two neighbours equal."""
    count = int(np.prod(shape))
    return (2.0 ** (1 + np.arange(count) % 3)).reshape(shape).astype(np.float32)


def test_what_has_no_pattern_gives_no_guess() -> None:
    assert guesses(GOLDEN + RNG.standard_normal(GOLDEN.shape).astype(np.float32)) == ()


def test_equal_outputs_give_no_guess() -> None:
    assert compare(GOLDEN, GOLDEN).outputs[0].guesses == ()


@pytest.mark.parametrize(("factor", "power"), [(8, "3"), (0.25, "-2")])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_factor_of_the_whole(dtype: Any, factor: float, power: str) -> None:
    golden = np.clip(np.abs(GOLDEN), 0.1, 4).astype(dtype)
    assert guesses((golden * dtype(factor)).astype(dtype), golden) == (
        f"actual is 2^{power} times golden wherever they differ: perhaps a scale is off by {power}",
    )


def test_a_factor_of_one_row_names_the_row() -> None:
    actual = GOLDEN.copy()
    actual[5] *= 4
    assert guesses(actual) == (
        "actual is 2^2 times golden wherever they differ: perhaps a scale is off by 2",
        f"all differences lie in row 5: {LEFT}",
    )


def test_a_factor_a_row_a_column_or_a_group() -> None:
    one_power = "actual is golden times one power of two"
    # fmt: off
    cases = (
        (powers(64, 1), "every row", "(2^1 in row 0): perhaps a scale of the left operand is off"),
        (powers(1, 96), "every column",
         "(2^1 in column 0): perhaps a scale of the right operand is off"),
        (np.repeat(powers(64, 3) * powers(64, 1), 32, axis=1), "every group of 32 along a row",
         "(2^2 in [0, 0]'s): perhaps its scale is off"),
        (np.repeat(powers(2, 97)[:, :96], 32, axis=0), "every group of 32 along a column",
         "(2^1 in [0, 0]'s): perhaps its scale is off"),
    )
    # fmt: on
    for factors, where, rest in cases:
        assert guesses(GOLDEN * factors)[0] == f"in {where} {one_power} {rest}"


def test_a_factor_that_one_element_breaks_is_none() -> None:
    actual = GOLDEN * 2
    actual[3, 3] *= 1.5
    assert guesses(actual) == ()


def test_rows_and_columns_that_alone_differ() -> None:
    noise = RNG.standard_normal(GOLDEN.shape).astype(np.float32)

    def only(*places: Any) -> tuple[str, ...]:
        actual = GOLDEN.copy()
        actual[places] += noise[places]
        return guesses(actual)

    assert only([4]) == (f"all differences lie in row 4: {LEFT}",)
    assert only(slice(3, 7)) == (f"all differences lie in rows 3 to 6: {LEFT}",)
    assert only([1, 9]) == (f"all differences lie in rows 1, 9: {LEFT}",)
    assert only([1, 9, 11, 20, 30, 40]) == (
        f"all differences lie in rows 1, 9, 11, 20 and 2 more: {LEFT}",
    )
    assert only(slice(None), [95]) == (f"all differences lie in column 95: {RIGHT}",)
    assert only(3, 4) == ()  # a single element


def test_nan_and_infinity_on_one_side_only() -> None:
    actual, golden = GOLDEN.copy(), GOLDEN.copy()
    actual[0, :3] = np.nan
    golden[1, 0] = np.nan
    actual[2, 2], golden[2, 2] = np.nan, np.nan
    actual[3, :2] = [np.inf, -np.inf]
    assert guesses(actual, golden) == (
        "NaN in 3 elements of actual only: a scale code of 255 or a NaN element makes one",
        "infinite in 2 elements of actual only: a sum or a store overflows there",
        "NaN in 1 element of golden only: a scale code of 255 or a NaN element makes one",
    )


def test_zeros_and_signs() -> None:
    actual = GOLDEN.copy()
    actual[:, ::2] = 0
    assert "perhaps it was never computed or stored there" in guesses(actual)[0]
    assert "perhaps it was never computed there" in guesses(GOLDEN, actual)[0]
    assert guesses(-GOLDEN) == ("actual is golden with its sign turned wherever it differs",)
    zeros = np.zeros((4, 4), np.float32)
    assert guesses(-zeros, zeros) == ("only the sign of zeros differs",)


SCALES = RNG.integers(90, 160, (64, 8)).astype(np.uint8)


@pytest.mark.parametrize("dtype", [np.uint8, ml_dtypes.float8_e8m0fnu])
def test_scales_in_another_order(dtype: Any) -> None:
    right = np.ascontiguousarray(SCALES.T)
    # fmt: off
    cases = (
        (SCALES[:8].T.reshape(8, 8), SCALES[:8], "transposed"),
        (right.reshape(64, 8), SCALES, "transposed"),
        (numerics.pack_scales_a(SCALES), SCALES,
         "packed into boxes (ZZ), where rows were wanted"),
        (SCALES, numerics.pack_scales_a(SCALES).reshape(64, 8),
         "unpacked from boxes (ZZ), where boxes were wanted"),
        (numerics.pack_scales_b(right), right,
         "packed into boxes (NN), where rows were wanted"),
        (right, numerics.pack_scales_b(right).reshape(8, 64),
         "unpacked from boxes (NN), where boxes were wanted"),
    )
    # fmt: on
    for actual, golden, text in cases:
        shaped = np.ascontiguousarray(golden)
        like = np.ascontiguousarray(actual).reshape(shaped.shape)
        found = guesses(like.view(dtype), shaped.view(dtype))
        assert found == (f"actual is golden {text}",)


def test_codes_that_are_all_off_by_one() -> None:
    assert guesses(SCALES + np.uint8(1), SCALES) == (
        "actual is golden +1 wherever they differ: if these are scale codes, each is off by a "
        "factor of 2^1",
    )


def test_rows_and_columns_in_another_order() -> None:
    assert guesses(np.roll(GOLDEN, 1, axis=0)) == (
        "the rows of actual are those of golden in another order: perhaps the elements or scales "
        "of the left operand are",
    )
    assert guesses(np.roll(GOLDEN, 1, axis=1)) == (
        "the columns of actual are those of golden in another order: perhaps the elements or "
        "scales of the right operand are",
    )


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 1), (1, 5), (5, 1), (2, 3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, ml_dtypes.float4_e2m1fn, bool])
def test_every_rank_and_type_can_be_looked_at(shape: tuple[int, ...], dtype: Any) -> None:
    golden = np.ones(shape, np.float32).astype(dtype)
    actual = np.zeros(shape, np.float32).astype(dtype)
    verdict = compare(actual, golden)
    assert not verdict
    assert verdict.outputs[0].guesses
    assert "guess: actual is zero wherever it differs" in str(verdict)
