"""What every code of a format stands for, computed once from the format's row.

Three views of one truth: integers in the format's unit (the reference's exact arithmetic), float32
bit patterns (decoding) and float64 values (fast exact products). All of it is integer arithmetic:
no pattern passes through a float operation that a flushing floating-point unit could spoil.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..dtypes import DType
from ..dtypes.formats import FloatFormat, IntegerFormat
from .elements import FLOAT32_NAN, block_exponent, element_of, unit_exponent

if TYPE_CHECKING:
    import numpy.typing as npt

_FLOAT32_INFINITY = 0x7F800000
_FLOAT32_SIGN = 1 << 31
_FLOAT32_MANTISSA = 23
_FLOAT32_MIN_EXPONENT = -126
_FLOAT32_BIAS = 127
_FLOAT64_MANTISSA = 52
_FLOAT64_BIAS = 1023
_WIDEST_TABLE = 16

_Number = TypeVar("_Number", bound=np.generic)


@cache
def significands(dtype: DType) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return every code's value as `significand * 2^exponent`.

    Args:
        dtype: A format of at most 16 bits.

    Returns:
        Significands and exponents, int64 `[2^bits]`, read-only; NaN and infinity have
        significand 0.
    """
    element = element_of(dtype)
    assert element.bits <= _WIDEST_TABLE, element.name
    codes = np.arange(element.code_count, dtype=np.int64)
    match element:
        case IntegerFormat():
            values = np.where(codes > element.max, codes - element.code_count, codes)
            return _frozen(values), _frozen(np.zeros_like(values))
        case FloatFormat():
            magnitude = codes & element.magnitude_mask
            field = magnitude >> element.mantissa_bits
            mantissa = codes & element.mantissa_mask
            is_normal = (field > 0) | (not element.has_subnormals)
            mantissa += is_normal * (1 << element.mantissa_bits)
            exponent = np.maximum(field - element.bias, element.emin) - element.mantissa_bits
            sign = np.where(codes & element.sign_mask, -1, 1)
            finite = magnitude <= element.max_code
            return _frozen(np.where(finite, sign * mantissa, 0)), _frozen(exponent)


@cache
def integers(dtype: DType) -> npt.NDArray[np.int64]:
    """Return every code's value in the format's unit, int64 `[2^bits]`, read-only.

    Args:
        dtype: A format of at most 8 bits other than E8M0.
    """
    significand, exponent = significands(dtype)
    return _frozen(significand << (exponent - unit_exponent(element_of(dtype))))


@cache
def decode_table(dtype: DType) -> npt.NDArray[np.uint32]:
    """Return the float32 bit pattern of every code of `dtype`, uint32 `[2^bits]`, read-only."""
    element = element_of(dtype)
    significand, exponent = significands(dtype)
    magnitude = np.abs(significand)
    length = _bit_length(magnitude)
    leading = exponent + length - 1
    is_normal = leading >= _FLOAT32_MIN_EXPONENT
    least = _FLOAT32_MIN_EXPONENT - _FLOAT32_MANTISSA
    shift = np.where(is_normal, _FLOAT32_MANTISSA + 1 - length, exponent - least)
    assert (shift[magnitude > 0] >= 0).all(), element.name
    mantissa = (magnitude << np.maximum(shift, 0)) & ((1 << _FLOAT32_MANTISSA) - 1)
    field = np.where(is_normal, leading + _FLOAT32_BIAS, 0)
    bits = np.where(magnitude > 0, (field << _FLOAT32_MANTISSA) | mantissa, 0)
    match element:
        case IntegerFormat():
            bits |= np.where(significand < 0, _FLOAT32_SIGN, 0)
        case FloatFormat():
            codes = np.arange(element.code_count)
            infinity = [element.is_infinity(code) for code in range(element.code_count)]
            nan = [element.is_nan(code) for code in range(element.code_count)]
            bits = np.where(infinity, _FLOAT32_INFINITY, bits)
            bits |= np.where(codes & element.sign_mask, _FLOAT32_SIGN, 0)
            bits = np.where(nan, FLOAT32_NAN, bits)
    return _frozen(bits.astype(np.uint32))


@cache
def value_table(dtype: DType) -> npt.NDArray[np.float64]:
    """Return what each element code counts in a block-scaled product, float64 `[256]`, read-only.

    MXINT8's factor 2^-6 is in it. Codes beyond the width of `dtype` are NaN, so that a stray bit
    never passes for a number.

    Args:
        dtype: A format of at most 8 bits other than E8M0.
    """
    values = decode_table(dtype).view(np.float32).astype(np.float64)
    table = np.full(256, np.nan)
    table[: values.size] = np.ldexp(values, block_exponent(element_of(dtype)))
    return _frozen(table)


@cache
def scale_table() -> npt.NDArray[np.float64]:
    """Return the value of every E8M0 code, NaN among them, as float64 `[256]`, read-only."""
    significand, exponent = significands(DType.E8M0)
    bits = (exponent + _FLOAT64_BIAS) << _FLOAT64_MANTISSA
    return _frozen(np.where(significand == 0, np.nan, bits.view(np.float64)))


def _bit_length(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    length = np.zeros_like(values)
    for bit in range(_FLOAT32_MANTISSA + 1):
        length = np.where(values >> bit, bit + 1, length)
    return length


def _frozen(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    values.setflags(write=False)
    return values
