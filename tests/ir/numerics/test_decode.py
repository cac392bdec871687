from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, BFloat16, DType, Float16, SimpleDType, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.numerics import codec, fast_codec

from . import oracles

ALL = (*oracles.BYTE_FLOATS, DType.E8M0, Float16, BFloat16)


def all_codes(dtype: SimpleDType) -> np.ndarray:
    return np.arange(1 << dtype.bits, dtype=np.uint8 if dtype.bits <= 8 else np.uint16)


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_every_code_decodes_as_in_the_other_library(dtype: SimpleDType) -> None:
    expected = oracles.values(dtype).view(np.uint32).copy()
    expected[np.isnan(oracles.values(dtype))] = 0x7FC00000
    for routine in (numerics.decode, codec.decode, fast_codec.decode):
        decoded = routine(all_codes(dtype), dtype)
        assert decoded.dtype == np.float32
        np.testing.assert_array_equal(decoded.view(np.uint32), expected)


def test_e1m2_counts_in_quarters() -> None:
    quarters = np.arange(8) / 4
    decoded = numerics.decode(np.arange(16), E1M2)
    np.testing.assert_array_equal(decoded, np.concatenate([quarters, -quarters]))
    assert np.signbit(decoded[8])


def test_the_first_fp4_codes_are_the_standard_s() -> None:
    expected = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    np.testing.assert_array_equal(numerics.decode(np.arange(8), DType.E2M1), expected)


@pytest.mark.parametrize(
    ("code", "bits"),
    [(0, 0x00400000), (1, 0x00800000), (127, 0x3F800000), (254, 0x7F000000), (255, 0x7FC00000)],
)
def test_e8m0_bits(code: int, bits: int) -> None:
    assert int(numerics.decode(np.uint8(code), DType.E8M0).view(np.uint32)) == bits


def test_int8_is_the_plain_integer() -> None:
    signed = np.arange(-128, 128).astype(np.int8)
    np.testing.assert_array_equal(numerics.decode(signed, DType.Int8), np.arange(-128.0, 128.0))
    np.testing.assert_array_equal(numerics.decode([0x80, 0xFF], DType.Int8), [-128.0, -1.0])
    np.testing.assert_array_equal(numerics.decode([0x80, 0xFF], UInt8), [128.0, 255.0])


def test_float32_codes_are_its_patterns_with_one_nan() -> None:
    codes = np.array([0x00000001, 0x80000000, 0x7F800000, 0xFFFFFFFF], np.uint32)
    decoded = numerics.decode(codes, DType.Float32).view(np.uint32)
    np.testing.assert_array_equal(decoded, [0x00000001, 0x80000000, 0x7F800000, 0x7FC00000])


def test_the_shape_is_kept_and_large_arrays_are_no_different() -> None:
    codes = np.random.default_rng(5).integers(0, 256, (3, 7, 11), dtype=np.uint8)
    many = np.broadcast_to(codes, (400, 3, 7, 11))
    decoded = numerics.decode(many, DType.E4M3)
    assert decoded.shape == many.shape
    expected = np.broadcast_to(codec.decode(codes, DType.E4M3).view(np.uint32), many.shape)
    np.testing.assert_array_equal(decoded.view(np.uint32), expected)


@pytest.mark.parametrize("dtype", oracles.NUMPY_TYPES, ids=lambda dtype: dtype.name)
def test_an_array_of_the_ml_dtypes_type_is_taken_as_its_codes(dtype: SimpleDType) -> None:
    codes = all_codes(dtype)
    typed = codes.view(oracles.NUMPY_TYPES[dtype])
    bits = numerics.decode(codes, dtype).view(np.uint32)
    np.testing.assert_array_equal(numerics.decode(typed, dtype).view(np.uint32), bits)


def test_codes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(IRValueError, match=r"^codes of E2M1 must lie in 0\.\.15, not in 0\.\.16$"):
        numerics.decode(np.arange(17, dtype=np.uint8), DType.E2M1)
    with pytest.raises(IRValueError, match=r"^codes of E4M3 must lie in 0\.\.255, not in -1\.\.3$"):
        numerics.decode([-1, 3], DType.E4M3)


@pytest.mark.parametrize("kind", [">u2", ">i4", ">i8", ">f2"])
@pytest.mark.parametrize("routine", [codec.decode, fast_codec.decode])
def test_codes_count_in_their_own_byte_order(
    routine: Callable[[np.ndarray, DType], np.ndarray], kind: str
) -> None:
    codes = np.array([0x3C00, 0x4000, 0x0001], np.uint16)
    given = codes.view(np.float16).astype(kind) if kind == ">f2" else codes.astype(kind)
    assert routine(given, Float16).tolist() == [1.0, 2.0, 2.0**-24]


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (DType.E4M3, ml_dtypes.float8_e5m2),
        (DType.E4M3, ml_dtypes.float8_e4m3),
        (DType.E5M2, ml_dtypes.float8_e4m3fn),
        (DType.E2M1, ml_dtypes.float8_e8m0fnu),
        (DType.Int8, ml_dtypes.float8_e5m2),
        (Float16, ml_dtypes.bfloat16),
        (BFloat16, np.float16),
    ],
)
def test_an_array_of_another_format_s_type_is_refused(dtype: SimpleDType, kind: Any) -> None:
    sentence = rf"^codes of {dtype.name} must be an array of uint\d+ codes or of the ml_dtypes type"
    with pytest.raises(IRTypeError, match=sentence):
        numerics.decode(np.zeros(3, kind), dtype)


def test_raw_bytes_of_the_width_are_codes() -> None:
    raw = np.array([0x38, 0x7E], np.uint8).view("V1")
    assert numerics.decode(raw, DType.E4M3).tolist() == [1.0, 448.0]


def test_numbers_are_no_codes() -> None:
    sentence = r"^codes of E4M3 must be an array of uint8 codes or of the ml_dtypes type, not of "
    for wrong in (np.ones(3), np.ones(3, np.float32), np.array(["a"]), np.ones(3, np.bool_)):
        with pytest.raises(IRTypeError, match=sentence):
            numerics.decode(wrong, DType.E4M3)


@pytest.mark.parametrize("dtype", [DType.Float64, DType.Int32, DType.MXFP4, DType.Floating])
def test_formats_beyond_float32_are_refused(dtype: DType) -> None:
    sentence = rf"^The dtype must be a simple number format that float32 holds, not {dtype.name}$"
    with pytest.raises(IRTypeError, match=sentence) as caught:
        numerics.decode(np.zeros(1, np.uint8), dtype)
    assert "E4M3" in (caught.value.hint or "")
