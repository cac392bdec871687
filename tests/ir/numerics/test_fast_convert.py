"""Compiled conversions of rows against ml_dtypes and numpy, for every code of 16 bits."""

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.dtypes import BFloat16, DType, Float16
from scalebox.ir.numerics import fast_convert
from scalebox.ir.numerics.functions import from_float64

Words = npt.NDArray[np.uint32]
ALL_CODES = np.arange(1 << 16, dtype=np.uint16)
KINDS = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
NAN, HALF_NAN, BRAIN_NAN = 0x7FC00000, 0x7E00, 0x7FC0


def narrowed(bits: Words, name: str) -> npt.NDArray[np.uint16]:
    """Return codes of 16 bits as ml_dtypes and numpy round, with one NaN."""
    values = np.ascontiguousarray(bits).view(np.float32)
    with np.errstate(all="ignore"):
        codes = values.astype(KINDS[name]).view(np.uint16)
    codes[np.isnan(values)] = HALF_NAN if name == "float16" else BRAIN_NAN
    return codes


@pytest.mark.parametrize("name", KINDS)
def test_every_code_widens_as_its_type_says(name: str) -> None:
    wanted = ALL_CODES.view(KINDS[name]).astype(np.float32).view(np.uint32)
    wanted[np.isnan(wanted.view(np.float32))] = NAN
    found = np.empty_like(wanted)
    getattr(fast_convert, f"{name}_to_float32")(ALL_CODES, found)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", KINDS)
def test_every_code_and_every_tie_and_its_neighbours_round_to_even(name: str) -> None:
    exact = np.empty(ALL_CODES.size, np.uint32)
    getattr(fast_convert, f"{name}_to_float32")(ALL_CODES, exact)
    values = exact.view(np.float32)
    with np.errstate(all="ignore"):
        ties = ((values[:-1].astype(np.float64) + values[1:]) / 2).astype(np.float32)
    edges = ties.view(np.uint32)[:, None] + np.array([-1, 0, 1]).astype(np.uint32)
    bits = np.concatenate([exact, edges.reshape(-1)])
    found = np.empty(bits.size, np.uint16)
    getattr(fast_convert, f"float32_to_{name}")(bits, found)
    np.testing.assert_array_equal(found, narrowed(bits, name))


@given(st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=64))
def test_any_float32_rounds_as_ml_dtypes_and_numpy_round(patterns: list[int]) -> None:
    bits = np.array(patterns, np.uint32)
    codes = np.empty(bits.size, np.uint16)
    for name in KINDS:
        getattr(fast_convert, f"float32_to_{name}")(bits, codes)
        np.testing.assert_array_equal(codes, narrowed(bits, name))
    kept = np.empty_like(bits)
    fast_convert.canonical_float32(bits, kept)
    is_nan = np.isnan(bits.view(np.float32))
    assert (kept[is_nan] == NAN).all()
    np.testing.assert_array_equal(kept[~is_nan], bits[~is_nan])


@given(st.lists(st.floats(width=64), min_size=1, max_size=64), st.integers(-6, 6))
def test_a_float64_is_as_if_it_had_been_rounded_once(values: list[float], power: int) -> None:
    with np.errstate(all="ignore"):
        row = np.array(values) * 2.0**power
        halves = row.astype(np.float16).astype(np.float64)
        near_ties = np.concatenate([row, halves * (1 + 2.0**-11), halves * (1 + 2.0**-40)])
    bits, codes = np.empty(near_ties.size, np.uint32), np.empty(near_ties.size, np.uint16)
    with np.errstate(all="ignore"):
        fast_convert.float64_to_float32(near_ties, True, bits)
        np.testing.assert_array_equal(
            np.where(np.isnan(near_ties), NAN, bits), from_float64(near_ties, DType.Float32)
        )
        for name, dtype in (("float16", Float16), ("bfloat16", BFloat16)):
            fast_convert.float64_to_float32(near_ties, False, bits)
            getattr(fast_convert, f"float32_to_{name}")(bits, codes)
            np.testing.assert_array_equal(codes, from_float64(near_ties, dtype))
