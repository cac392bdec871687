"""Compiled casts against the plain ones: every pair of dtypes, every rounding, every narrow code."""

from itertools import permutations

import numpy as np
import pytest

from scalebox.ir.cast_mode import CastMode
from scalebox.ir.dtypes import (
    BFloat16,
    DType,
    Float16,
    Int16,
    Int64,
    SimpleDType,
    UInt8,
    UInt16,
    UInt32,
)
from scalebox.ir.dtypes.formats import FloatFormat
from scalebox.ir.numerics.cast import cast_codes, cast_format
from scalebox.ir.numerics.fast_cast import cast_row, float32_to_integers, form_of, goes_by_float64

DTYPES = (
    DType.E2M1, DType.E4M3, DType.E5M2, DType.Int8, UInt8, Float16, BFloat16, DType.Float32, Int16,
    UInt16, DType.Int32, UInt32, Int64,
)  # fmt: skip


def codes_of(dtype: SimpleDType, rng: np.random.Generator) -> np.ndarray:
    """Return every code of at most 16 bits; of wider dtypes short, long and outermost ones."""
    if dtype.bits <= 16:
        return np.arange(1 << dtype.bits, dtype=np.uint64)
    most = np.uint64((1 << dtype.bits) - 1)
    drawn = rng.integers(0, 1 << 63, 4000, dtype=np.uint64) * np.uint64(2) & most
    cut = rng.integers(0, dtype.bits, 4000).astype(np.uint64)
    near_zero = np.arange(64, dtype=np.uint64)
    middle = np.uint64(1 << (dtype.bits - 1))
    return np.concatenate(
        [drawn, drawn >> cut, drawn >> cut << cut & most, near_zero, most - near_zero,
         middle + near_zero, middle - near_zero - np.uint64(1)]
    )  # fmt: skip


def is_nan(codes: np.ndarray, dtype: SimpleDType) -> np.ndarray:
    """Return which codes are NaN."""
    form = cast_format(dtype)
    if not isinstance(form, FloatFormat):
        return np.zeros(codes.shape, np.bool_)
    return np.array([form.is_nan(int(code)) for code in codes])


def edges_of(target: SimpleDType, source: SimpleDType) -> np.ndarray:
    """Return codes of `source`, a wide float, at and beside the ties of a narrow dtype."""
    narrow = np.arange(1 << min(16, target.bits), dtype=np.uint64)
    exact = np.empty_like(narrow)
    cast_row(narrow, form_of(target), form_of(source), CastMode.rint.value, exact)
    values = exact.astype(np.uint32)
    with np.errstate(all="ignore"):
        floats = values.view(np.float32)
        ties = ((floats[:-1].astype(np.float64) + floats[1:]) / 2).astype(np.float32)
    beside = ties.view(np.uint32)[:, None] + np.array([-1, 0, 1]).astype(np.uint32)
    return np.concatenate([values, beside.reshape(-1)]).astype(np.uint64)


@pytest.mark.parametrize("mode", CastMode)
def test_every_cast_has_the_bits_of_the_plain_one(mode: CastMode) -> None:
    rng = np.random.default_rng(mode.value)
    for source, target in permutations(DTYPES, 2):
        codes = codes_of(source, rng)
        if source is DType.Float32 and target.bits <= 16:
            codes = np.concatenate([codes, edges_of(target, source)])
        if target is DType.E2M1:
            codes = codes[~is_nan(codes, source)]
        out = np.empty_like(codes)
        assert cast_row(codes, form_of(source), form_of(target), mode.value, out)
        wanted = cast_codes(codes, source, target, mode)
        np.testing.assert_array_equal(out, wanted, err_msg=f"{source} to {target}")


SHORT_INTEGERS = (DType.Int8, UInt8, Int16, UInt16, DType.Int32)


@pytest.mark.parametrize("mode", [mode for mode in CastMode if mode is not CastMode.odd])
def test_integers_made_by_float64_are_those_of_the_plain_cast(mode: CastMode) -> None:
    rng = np.random.default_rng(mode.value)
    for target in SHORT_INTEGERS:
        assert goes_by_float64(form_of(target), mode.value)
        edges = edges_of(target, DType.Float32)
        codes = np.concatenate([codes_of(DType.Float32, rng), edges]).astype(np.uint32)
        out = np.empty(codes.size, np.int64)
        float32_to_integers(codes.view(np.float32), form_of(target), mode.value, out)
        wanted = cast_codes(codes, DType.Float32, target, mode)
        np.testing.assert_array_equal(out.astype(wanted.dtype), wanted, err_msg=f"to {target}")


def test_what_a_float64_does_not_hold_or_round_goes_another_way() -> None:
    for target in (UInt32, Int64, Float16, DType.E4M3):
        assert not goes_by_float64(form_of(target), CastMode.rint.value)
    assert not goes_by_float64(form_of(DType.Int8), CastMode.odd.value)


@pytest.mark.parametrize("source", [DType.Float32, BFloat16, Float16, DType.E4M3, DType.E5M2])
def test_a_nan_has_no_code_of_a_dtype_without_nan(source: SimpleDType) -> None:
    codes = codes_of(source, np.random.default_rng(1))
    nans = codes[is_nan(codes, source)][:50]
    assert nans.size
    for nan in nans:
        row = np.array([0, nan, 0], np.uint64)
        assert not cast_row(row, form_of(source), form_of(DType.E2M1), 1, row.copy())
