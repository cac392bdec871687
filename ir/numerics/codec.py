"""Codes to float32 and numbers to codes, in plain numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes.formats import FloatFormat, IntegerFormat
from ..errors import IRValueError
from .arguments import as_codes
from .elements import FLOAT32_NAN, code_type, element_of
from .parts import Parts, floats, round_to_format, shift_to_even, take_apart
from .tables import decode_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import DType

_FLOAT32_INFINITY = 0x7F800000
_FLOAT32_MAGNITUDE = 0x7FFFFFFF
_PIECE = 1 << 15
_EVEN = "even"
_POWER_ROUNDINGS = ("nearest", "up", "down")


def decode(codes: npt.ArrayLike, dtype: DType) -> npt.NDArray[np.float32]:
    """Return what `codes` stand for, float32 of the same shape.

    Args:
        codes: Codes of `dtype`, one an item, or an array of the matching ml_dtypes type.
        dtype: A simple number format whose values float32 holds. Int8 is the plain integer.

    Returns:
        float32; every NaN is 0x7FC00000.

    Raises:
        IRTypeError: `dtype` is no such format, or `codes` cannot be codes.
        IRValueError: A code does not fit the format's width.
    """
    array = as_codes(codes, dtype)
    if array.dtype == np.uint32:
        bits = array.copy()
        bits[(bits & _FLOAT32_MAGNITUDE) > _FLOAT32_INFINITY] = FLOAT32_NAN
        return bits.view(np.float32)
    return np.asarray(decode_table(dtype)[array]).view(np.float32)


def encode(
    x: npt.ArrayLike, dtype: DType, *, rounding: str | None = None, saturate: bool = True
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return the codes of `dtype` nearest to the numbers `x`, ties to even, rounded once.

    E8M0 holds nothing but powers of two: others need `rounding` `"nearest"` (ties up), `"up"` or
    `"down"`, and what lies below 2^-127 becomes 2^-127; zero and negative numbers are refused.

    Args:
        x: Real numbers of any shape: numpy floats up to float64, ml_dtypes floats, integers up to
            2^53.
        dtype: A simple number format of at most 32 bits.
        rounding: None or `"even"`; for E8M0 None, `"nearest"`, `"up"` or `"down"`.
        saturate: Whether finite values beyond the maximum become the maximum. If not, what does
            not fit becomes infinity, or else NaN, where the format has one.

    Returns:
        Unsigned integers of the width that holds a code, in the shape of `x`. An infinity stays
        one where the format has it, else it is the maximum (with `saturate`) or NaN.

    Raises:
        IRTypeError: `dtype` is no such format, or `x` are no real numbers.
        IRValueError: A NaN for a format without NaN, what does not fit a format with neither
            infinity nor NaN (without `saturate`), an unknown rounding, or a number that E8M0
            refuses.
    """
    element = element_of(dtype)
    array = np.asarray(x)
    flat = array.reshape(-1)
    codes = np.empty(flat.size, code_type(element))
    is_power = isinstance(element, FloatFormat) and not element.has_zero
    valid = _POWER_ROUNDINGS if is_power else (_EVEN,)
    is_known = isinstance(rounding, str) and rounding in valid
    if rounding is not None and not is_known:
        names = ", ".join(repr(name) for name in valid)
        message = f"rounding for {element.name} must be {names} or None, not {rounding!r}"
        raise IRValueError(message)
    for first in range(0, max(1, flat.size), _PIECE):
        piece = slice(first, first + _PIECE)
        parts = take_apart(floats(flat[piece]))
        match element:
            case IntegerFormat():
                codes[piece] = _encode_integer(parts, element, saturate=saturate)
            case FloatFormat() if is_power:
                codes[piece] = _encode_power(parts, element, rounding, saturate=saturate)
            case FloatFormat():
                codes[piece] = _encode_float(parts, element, saturate=saturate)
    return codes.reshape(array.shape)


def refuse_nan(element: FloatFormat | IntegerFormat) -> IRValueError:
    """Return the error of a NaN for a format that has none."""
    return IRValueError(f"x must be free of NaN for {element.name}, which has no code for it")


def refuse_overflow(element: FloatFormat | IntegerFormat) -> IRValueError:
    """Return the error of a number that neither fits a format nor may be saturated."""
    return IRValueError(
        f"x must lie within the range of {element.name} (up to {element.max}), "
        f"which has neither infinity nor NaN",
        hint="saturate=True takes the nearest number in range.",
    )


def _encode_float(parts: Parts, element: FloatFormat, *, saturate: bool) -> npt.NDArray[np.int64]:
    if element.nan_code is None and parts.is_nan.any():
        raise refuse_nan(element)
    codes = round_to_format(parts, element)
    beyond = codes > element.max_code
    has_infinity = element.infinity_code is not None
    escape = element.infinity_code if has_infinity else element.nan_code
    if escape is None and not saturate and (beyond | parts.is_infinite).any():
        raise refuse_overflow(element)
    outside = element.max_code if saturate or escape is None else escape
    infinity = outside if element.infinity_code is None else element.infinity_code
    codes[beyond] = outside
    codes[parts.is_infinite] = infinity
    codes[parts.negative] |= element.sign_mask
    is_nan = parts.is_nan
    if not has_infinity and not saturate:
        is_nan = is_nan | beyond | parts.is_infinite
    codes[is_nan] = element.nan_code or 0
    return codes


def _encode_integer(
    parts: Parts, element: IntegerFormat, *, saturate: bool
) -> npt.NDArray[np.int64]:
    if parts.is_nan.any():
        raise refuse_nan(element)
    is_huge = parts.is_infinite | (parts.leading > element.bits)
    rounded = shift_to_even(
        np.where(is_huge, 0, parts.significand), np.where(is_huge, 0, -parts.exponent)
    )
    rounded = np.where(is_huge, element.code_count, rounded)
    values = np.where(parts.negative, -rounded, rounded)
    if not saturate and ((values < element.min) | (values > element.max)).any():
        raise refuse_overflow(element)
    return np.clip(values, element.min, element.max) & (element.code_count - 1)


def _encode_power(
    parts: Parts, element: FloatFormat, rounding: str | None, *, saturate: bool
) -> npt.NDArray[np.int64]:
    is_zero = (parts.significand == 0) & ~parts.is_infinite & ~parts.is_nan
    if (is_zero | (parts.negative & ~parts.is_nan)).any():
        message = f"{element.name} has no zero and no sign: x must be positive throughout"
        raise IRValueError(message)
    assert element.nan_code is not None
    top = np.int64(1) << np.maximum(parts.length - 1, 0)
    rest = parts.significand - top
    codes = parts.leading + element.bias
    match rounding:
        case "nearest":
            codes = codes + (2 * rest >= top)
        case "up":
            codes = codes + (rest > 0)
        case "down":
            pass
        case _:
            exact = (rest == 0) & (codes >= 0) & (codes <= element.max_code)
            if not (exact | parts.is_nan).all():
                message = (
                    f"{element.name} holds powers of two from 2^{element.emin} to "
                    f"2^{element.emax}; x must be such, or a rounding must be named"
                )
                raise IRValueError(message, hint="Valid are: 'nearest' (ties up), 'up', 'down'.")
    codes = np.where(parts.is_infinite, element.max_code + 1, np.maximum(codes, 0))
    beyond = element.max_code if saturate else element.nan_code
    codes = np.where(codes > element.max_code, beyond, codes)
    return np.where(parts.is_nan, element.nan_code, codes)
