"""Comparison: the first difference by name, and what may not be compared at all."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from scalebox.ir.errors import InputError
from scalebox.traces.compare import Origin, compare


def test_equal_arrays_are_truthy_and_have_no_first_difference() -> None:
    result = compare(
        np.array([[1, 2], [3, np.nan]], np.float32), np.array([[1, 2], [3, np.nan]], np.float32)
    )
    assert result
    assert result.first is None
    assert (result.elements, result.differing) == (4, 0)
    assert str(result) == "out: equal, 4 elements (rule exact)"


def test_a_run_stands_for_its_outputs() -> None:
    ones = np.ones(2, np.float32)
    run = SimpleNamespace(outputs={"c": ones})
    assert compare(run, {"c": ones})
    verdict = compare(run, {"c": ones * np.array([1, 3], np.float32)})
    assert verdict.first is not None
    assert (verdict.first.output, verdict.first.index) == ("c", (1,))


def test_the_first_difference_is_named_whole() -> None:
    golden = np.arange(64, dtype=np.float32).reshape(8, 8)
    actual = golden.copy()
    actual[5, 2] = 42.5
    actual[6, 0] = -1.0

    def producer(output: str, index: tuple[int, ...]) -> Origin:
        return Origin(f"l0c_to_gm {output}, x{index[0]}", "kernel.py:31")

    result = compare(
        {"a": golden, "c": actual}, {"a": golden, "c": golden}, tile=(4, 2), producer=producer
    )
    first = result.first
    assert not result
    assert first is not None
    assert (first.output, first.index, first.tile) == ("c", (5, 2), (1, 1))
    assert (first.instruction, first.source) == ("l0c_to_gm c, x5", "kernel.py:31")
    assert (first.actual, first.golden) == (42.5, 42.0)
    assert (first.actual_bits, first.golden_bits) == (0x422A0000, 0x42280000)
    assert first.ulps == 0x20000
    assert str(result) == (
        "a: equal, 64 elements (rule exact)\n"
        "c: 2 of 64 elements differ (rule exact)\n"
        "  first at [5, 2], tile [1, 1]\n"
        "    actual  42.5  0x422A0000\n"
        "    golden  42.0  0x42280000\n"
        "    131072 ulps apart\n"
        "    written by l0c_to_gm c, x5\n"
        "    at kernel.py:31\n"
        "  how far apart\n"
        "    100,000 to 999,999 ulps  1  ##########\n"
        "    1,000,000 ulps or more   1  ##########\n"
        "  where, a mark for every 4 x 2 elements: . equal, 1-9 tenths differ, # all\n"
        "    0  ....\n"
        "    4  11.."
    )


@pytest.mark.parametrize(
    ("dtype", "actual", "golden", "lines"),
    [
        (np.float32, 0.1, 0.25, ("actual  0.1   0x3DCCCCCD", "golden  0.25  0x3E800000")),
        (np.float16, -0.0, 0.0, ("actual  -0.0  0x8000", "golden  0.0   0x0000")),
        (ml_dtypes.bfloat16, 1.1, 1.0, ("actual  1.1015625  0x3F8D", "golden  1.0        0x3F80")),
        (ml_dtypes.float8_e4m3fn, 448, 1, ("actual  448.0  0x7E", "golden  1.0    0x38")),
        (ml_dtypes.float4_e2m1fn, 6, 0.5, ("actual  6.0  0x7", "golden  0.5  0x1")),
        (np.uint8, 0x7E, 0x38, ("actual  126  0x7E", "golden  56   0x38")),
        (np.int32, -1, 1, ("actual  -1  0xFFFFFFFF", "golden  1   0x00000001")),
    ],
)
def test_values_stand_in_decimal_and_in_bits(
    dtype: Any, actual: float, golden: float, lines: tuple[str, str]
) -> None:
    result = compare(np.array([actual, 1], dtype), np.array([golden, 1], dtype))
    assert result.first is not None
    assert result.first.text.splitlines() == list(lines)


def test_every_float32_reads_back_from_its_digits() -> None:
    draw = np.random.default_rng(1)
    words = draw.integers(0, 2**32, 500, dtype=np.uint32)
    values = words.view(np.float32)
    for value in values[np.isfinite(values)]:
        first = compare(np.array([value]), np.array([np.float32(np.nan)])).first
        assert first is not None
        digits = first.text.splitlines()[0].split()[1]
        assert np.float32(digits).tobytes() == value.tobytes()


def test_ulps_are_left_out_beside_special_values() -> None:
    first = compare(np.array([np.nan], np.float32), np.array([1.0], np.float32)).first
    assert first is not None
    assert first.ulps is None
    assert "ulp" not in str(first)


def test_all_nans_are_equal_and_nan_equals_nothing_else() -> None:
    patterns = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF], np.uint32)
    nans = patterns.view(np.float32)
    assert compare(nans, np.full(4, np.nan, np.float32))
    assert not compare(np.array([np.inf], np.float32), nans[:1])
    both = np.array([0x7F, 0xFF], np.uint8).view(ml_dtypes.float8_e4m3fn)
    assert compare(both, both[::-1])


@pytest.mark.parametrize("rule", ["exact", "ulp:3", "close:1e-3,0", "fraction:1e-3,0.01"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_every_code_may_stand_beside_every_kind_of_nan(dtype: Any, rule: str) -> None:
    size = np.dtype(dtype).itemsize
    words = np.arange(1 << 8 * size, dtype=f"u{size}")
    values = words.view(dtype)
    with np.errstate(invalid="ignore"):
        nans = values[np.isnan(values)]
        finite_or_infinite = words.size - nans.size
    for nan in nans[[0, -1]]:
        result = compare(values, np.full(words.size, nan, dtype), rule=rule)
        assert result.differing == finite_or_infinite
        assert result.warnings
    assert compare(values, values, rule=rule)


def test_raw_codes_are_integers() -> None:
    assert not compare(np.array([0x7F], np.uint8), np.array([0xFF], np.uint8))


@pytest.mark.parametrize("scalar", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize("carrier", ["u", "V"])
def test_codes_beside_a_type_of_ml_dtypes_are_of_that_type(scalar: Any, carrier: str) -> None:
    values = np.array([1.5, -2.0, 0.25], scalar)
    given = values.view(f"{carrier}{values.dtype.itemsize}")
    for actual, golden in ((values, given), (given, values)):
        assert compare(actual, golden)
    doubled = (2 * values.astype(np.float32)).astype(scalar)
    assert compare(doubled, given, rule="close:1,0")
    first = compare(doubled, given).first
    assert first is not None
    assert (first.actual, first.golden) == (3.0, 1.5)


def test_another_type_is_refused_with_how_to_convert_it() -> None:
    with pytest.raises(InputError) as caught:
        compare(np.zeros(3, ml_dtypes.bfloat16), np.zeros(3, np.float32))
    assert caught.value.hint == (
        ".astype(ml_dtypes.bfloat16) rounds to it; codes in uint16 are taken for bfloat16, too"
    )


@given(
    shape=arrays.array_shapes(min_dims=0, max_dims=4, max_side=5),
    data=st.data(),
)
def test_the_first_difference_is_the_first_in_row_major_order(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    golden = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    wrong = data.draw(arrays.arrays(np.bool_, shape))
    actual = np.where(wrong, -golden, golden)
    places = list(zip(*(axis.tolist() for axis in np.nonzero(np.atleast_1d(wrong))), strict=True))
    for layout in (actual, np.array(actual, order="F")):
        result = compare(layout, golden)
        assert result.differing == len(places)
        if places:
            assert result.first is not None
            assert result.first.index == (places[0] if shape else ())
        else:
            assert result.first is None


def test_byte_order_in_memory_does_not_matter() -> None:
    assert compare(np.array([1.5, 2.5], ">f4"), np.array([1.5, 2.5], "<f4"))


@pytest.mark.parametrize(
    ("actual", "golden", "sentence"),
    [
        (
            np.zeros((2, 3), np.float32),
            np.zeros((3, 2), np.float32),
            "actual 'out' must have the shape (3, 2), not (2, 3)",
        ),
        (
            np.zeros(3, np.float32),
            np.zeros(3, ml_dtypes.bfloat16),
            "actual and golden 'out' must be of one type, not float32 and bfloat16",
        ),
        (
            {"c": np.zeros(1)},
            {"c": np.zeros(1), "d": np.zeros(1)},
            "actual must have the outputs of golden, 'c', 'd', not 'c'",
        ),
        ({}, {"c": np.zeros(1)}, "actual must have the outputs of golden, 'c', not none"),
        (
            np.zeros(1),
            {"c": np.zeros(1)},
            "actual and golden must both be arrays or both be mappings, not array and mapping",
        ),
        (
            np.array(["a"]),
            np.array(["a"]),
            "'out' must hold integers or floats of 1, 2, 4 or 8 bytes, not <U1",
        ),
        (
            np.zeros(1, np.complex64),
            np.zeros(1, np.complex64),
            "'out' must hold integers or floats of 1, 2, 4 or 8 bytes, not complex64",
        ),
        (
            np.array([None]),
            np.array([None]),
            "'out' must hold integers or floats of 1, 2, 4 or 8 bytes, not object",
        ),
    ],
)
def test_what_cannot_be_compared_is_an_error(actual: Any, golden: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        compare(actual, golden)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("tile", [(4,), (4, 0), (4, 4, 4), {"out": (2,)}])
def test_a_tile_must_have_the_rank_of_the_output(tile: tuple[int, ...] | Mapping[str, Any]) -> None:
    golden = np.ones((4, 4), np.float32)
    with pytest.raises(InputError) as caught:
        compare(golden, golden, tile=tile)
    shape = tile["out"] if isinstance(tile, Mapping) else tile
    assert str(caught.value) == (
        "tile of 'out' must be 2 extents of at least 1, as the output has the shape (4, 4), "
        f"not {shape}"
    )


@pytest.mark.parametrize(
    ("golden", "warning"),
    [
        (
            np.array([0, -0.0, 0], np.float32),
            "golden 'out' is all zero, which proves nothing of how it was computed",
        ),
        (
            np.full(3, np.nan, ml_dtypes.bfloat16),
            "golden 'out' is NaN everywhere, which proves little",
        ),
        (
            np.full((2, 2), 7, np.uint8),
            "golden 'out' is one value everywhere, 7, which proves little",
        ),
        (np.zeros((0, 4), np.float32), "golden 'out' has no elements, which proves nothing"),
    ],
)
def test_a_golden_result_that_proves_nothing_is_said_to(golden: np.ndarray, warning: str) -> None:
    result = compare(golden.copy(), golden)
    assert result
    assert result.warnings == (warning,)
    assert str(result).endswith(f"warning: {warning}")


def test_a_golden_result_of_scales_that_all_underflow_is_said_to_prove_nothing() -> None:
    data = np.full((16, 32), 448, np.float64) @ np.full((32, 16), 448, np.float64)
    golden = (data * 2.0 ** (10 + 19 - 254)).astype(np.float32)
    assert compare(golden, golden).warnings


@pytest.mark.parametrize(
    "golden",
    [np.array([1, 2], np.float32), np.array([3], np.float32), np.array([np.nan, 1], np.float32)],
)
def test_a_golden_result_with_content_carries_no_warning(golden: np.ndarray) -> None:
    assert compare(golden, golden).warnings == ()


def test_an_output_within_its_allowed_share_still_shows_what_differs() -> None:
    golden = np.arange(1, 101, dtype=np.float32)
    actual = golden.copy()
    actual[9] = 0
    result = compare(actual, golden, rule="fraction:0,0.01")
    assert result
    assert result.first is not None
    assert result.first.index == (9,)
    assert str(result).startswith(
        "out: 1 of 100 elements differs, which the rule allows (rule fract"
    )
