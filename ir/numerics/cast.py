"""Codes of one dtype as codes of another, by each of the roundings that a cast can name.

Everything is integer arithmetic on sign, magnitude and exponent: a value is rounded once, from the
source's exact value, whatever the two widths are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cast_mode import CastMode
from ..dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS, FloatFormat, IntegerFormat
from ..errors import IRValueError
from .elements import code_type

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import SimpleDType

    Bools = npt.NDArray[np.bool_]
    Words = npt.NDArray[np.uint64]
    Ints = npt.NDArray[np.int64]

_SATURATING_BITS = 8
_ALL = np.uint64((1 << 64) - 1)
_ONE = np.uint64(1)
_HALF_WORD = np.uint64(32)
_WIDEST_SHIFT = 63


def cast_format(dtype: object) -> FloatFormat | IntegerFormat | None:
    """Return the format of a dtype that can be cast, or None: scales and compounds cannot."""
    row = FLOAT_FORMATS.get(dtype) or INTEGER_FORMATS.get(dtype)  # pyright: ignore[reportArgumentType] - any key may be asked for
    return None if isinstance(row, FloatFormat) and not row.has_zero else row


def cast_codes(
    codes: npt.NDArray[Any],
    source: SimpleDType,
    target: SimpleDType,
    mode: CastMode = CastMode.round,
) -> npt.NDArray[Any]:
    """Return the codes of `target` for values given as codes of `source`.

    Args:
        codes: Unsigned integers, each a code of `source`.
        source: A dtype with a cast format.
        target: Another one.
        mode: The rounding of what `target` cannot hold.

    Returns:
        Unsigned integers of the width that holds a code. Integers and floats of at most 8 bits
        saturate; wider floats become infinity where the rounding leads there, else the maximum. A
        NaN becomes the integer 0, or the NaN that is written.

    Raises:
        IRValueError: For a NaN when `target` is a float format without NaN.
    """
    form, goal = cast_format(source), cast_format(target)
    assert form is not None, source
    assert goal is not None, target
    flat = np.ascontiguousarray(codes).reshape(-1)
    values = _of_float(flat, form) if isinstance(form, FloatFormat) else _of_integer(flat, form)
    if isinstance(goal, FloatFormat):
        made = _to_float(values, goal, mode)
    else:
        made = _to_integer(values, goal, mode)
    return made.astype(code_type(goal)).reshape(codes.shape)


@dataclass(frozen=True)
class _Values:
    """`(-1)^negative * magnitude * 2^exponent`, or infinity, or NaN; magnitude 0 for these two."""

    negative: Bools
    magnitude: Words
    exponent: Ints
    is_infinite: Bools
    is_nan: Bools

    @property
    def length(self) -> Ints:
        """Bits of each magnitude; 0 for 0."""
        high, low = self.magnitude >> _HALF_WORD, self.magnitude & (_ALL >> _HALF_WORD)
        _, of_high = np.frexp(high.astype(np.float64))
        _, of_low = np.frexp(low.astype(np.float64))
        return np.where(high > 0, of_high + 32, of_low).astype(np.int64)


def _of_float(codes: npt.NDArray[Any], form: FloatFormat) -> _Values:
    words = codes.astype(np.uint64)
    rest = (words & np.uint64(form.magnitude_mask)).astype(np.int64)
    mantissa, field = rest & form.mantissa_mask, rest >> form.mantissa_bits
    is_nan = np.zeros(words.shape, np.bool_)
    is_infinite = np.zeros(words.shape, np.bool_)
    if form.infinity_code is not None:
        is_infinite = rest == form.infinity_code
    if form.has_nan:
        is_nan = (rest > form.max_code) & ~is_infinite
    significand = mantissa + ((field > 0).astype(np.int64) << form.mantissa_bits)
    finite = ~(is_nan | is_infinite)
    return _Values(
        (words & np.uint64(form.sign_mask)) != 0,
        np.where(finite, significand, 0).astype(np.uint64),
        np.maximum(field, 1) - form.bias - form.mantissa_bits,
        is_infinite,
        is_nan,
    )


def _of_integer(codes: npt.NDArray[Any], form: IntegerFormat) -> _Values:
    words = codes.astype(np.uint64)
    negative = (words >> np.uint64(form.bits - 1) != 0) & form.signed
    mask = _ALL >> np.uint64(64 - form.bits)
    never = np.zeros(words.shape, np.bool_)
    magnitude = np.where(negative, (~words + _ONE) & mask, words)
    return _Values(negative, magnitude, np.zeros(words.shape, np.int64), never, never)


def _rounded(values: _Values, shift: Ints, mode: CastMode) -> Words:
    """Return magnitudes divided by 2^shift and rounded; to the left they must have room."""
    right = np.clip(shift, 0, _WIDEST_SHIFT).astype(np.uint64)
    left = np.clip(-shift, 0, _WIDEST_SHIFT).astype(np.uint64)
    quotient = values.magnitude >> right
    rest = values.magnitude - (quotient << right)
    # A shift of 63 leaves every float, whose magnitude has at most 53 bits, below the half.
    half = (_ONE << right) >> _ONE
    match mode:
        case CastMode.none | CastMode.rint:
            odd = (quotient & _ONE) != 0
            up = (rest > half) | ((rest == half) & (rest > 0) & odd)
        case CastMode.round:
            up = (rest > 0) & (rest >= half)
        case CastMode.floor:
            up = (rest > 0) & values.negative
        case CastMode.ceil:
            up = (rest > 0) & ~values.negative
        case CastMode.trunc:
            up = np.zeros(rest.shape, np.bool_)
        case CastMode.odd:
            up = (rest > 0) & ((quotient & _ONE) == 0)
    return (quotient + up.astype(np.uint64)) << left


def _to_float(values: _Values, goal: FloatFormat, mode: CastMode) -> Words:
    if goal.nan_code is None and values.is_nan.any():
        message = f"What is cast to {goal.name}, which has no NaN, must be free of NaN"
        raise IRValueError(message)
    leading = np.maximum(values.exponent + values.length - 1, goal.emin)
    leading = np.where(values.magnitude > 0, leading, goal.emin)
    quantum = leading - goal.mantissa_bits
    steps = _rounded(values, quantum - values.exponent, mode).astype(np.int64)
    # One binade up a significand counts 2^mantissa_bits steps further; a carry lands in the field.
    codes = ((leading - goal.emin) << goal.mantissa_bits) + steps
    beyond = codes > goal.max_code
    codes = np.where(beyond, _beyond(values, goal, mode), codes)
    infinity = goal.max_code if goal.infinity_code is None else goal.infinity_code
    codes = np.where(values.is_infinite, infinity, codes)
    codes = codes.astype(np.uint64) | np.where(values.negative, goal.sign_mask, 0).astype(np.uint64)
    return np.where(values.is_nan, np.uint64(goal.nan_code or 0), codes)


def _beyond(values: _Values, goal: FloatFormat, mode: CastMode) -> Ints:
    """Return the codes of finite values beyond the maximum."""
    if goal.infinity_code is None or goal.bits <= _SATURATING_BITS:
        outward = np.zeros(values.negative.shape, np.bool_)
    else:
        match mode:
            case CastMode.floor:
                outward = values.negative
            case CastMode.ceil:
                outward = ~values.negative
            case CastMode.trunc | CastMode.odd:
                outward = np.zeros(values.negative.shape, np.bool_)
            case CastMode.none | CastMode.rint | CastMode.round:
                outward = np.ones(values.negative.shape, np.bool_)
    return np.where(outward, goal.infinity_code or goal.max_code, goal.max_code)


def _to_integer(values: _Values, goal: IntegerFormat, mode: CastMode) -> Words:
    is_huge = values.is_infinite | (values.exponent + values.length > 64)
    shift = np.where(is_huge, 0, -values.exponent)
    magnitude = np.where(is_huge, _ALL, _rounded(values, shift, mode))
    limit = np.where(values.negative, np.uint64(-goal.min), np.uint64(goal.max))
    magnitude = np.minimum(magnitude, limit)
    made = np.where(values.negative, ~magnitude + _ONE, magnitude)
    made &= _ALL >> np.uint64(64 - goal.bits)
    return np.where(values.is_nan, np.uint64(0), made)
