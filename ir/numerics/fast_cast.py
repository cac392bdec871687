"""The casts of `cast` one element after the other, compiled: the same bits."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ..cast_mode import CastMode
from ..dtypes.formats import FloatFormat
from ..jit import compiled
from .cast import cast_format

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import SimpleDType

    Words = npt.NDArray[np.uint64]
    Form = npt.NDArray[np.int64]

(
    _IS_FLOAT,
    _BITS,
    _MANTISSA,
    _BIAS,
    _EMIN,
    _MAX_CODE,
    _INFINITY,
    _NAN,
    _MAGNITUDE,
    _SIGN,
    _IS_SIGNED,
    _LEAST,
    _MOST,
    _WORDS,
) = range(14)
"""Columns of a form; what a format does not have is -1."""

_ROUND, _FLOOR, _CEIL, _TRUNC, _ODD = (
    mode.value
    for mode in (CastMode.round, CastMode.floor, CastMode.ceil, CastMode.trunc, CastMode.odd)
)
_SATURATING_BITS = 8
_WIDEST_SHIFT = 63
_INT32_MAX = (1 << 31) - 1


@cache
def form_of(dtype: SimpleDType) -> Form:
    """Return what the compiled casts read of a dtype, int64 [n]."""
    form = cast_format(dtype)
    assert form is not None, dtype
    words = np.full(_WORDS, -1, np.int64)
    words[_IS_FLOAT], words[_BITS] = isinstance(form, FloatFormat), form.bits
    if isinstance(form, FloatFormat):
        words[_MANTISSA], words[_BIAS], words[_EMIN] = form.mantissa_bits, form.bias, form.emin
        words[_MAX_CODE], words[_MAGNITUDE] = form.max_code, form.magnitude_mask
        words[_SIGN] = form.sign_mask
        words[_INFINITY] = -1 if form.infinity_code is None else form.infinity_code
        words[_NAN] = -1 if form.nan_code is None else form.nan_code
    else:
        words[_IS_SIGNED], words[_LEAST], words[_MOST] = form.signed, form.min, form.max
    return words


@compiled
def cast_row(words: Words, form: Form, goal: Form, mode: int, out: Words) -> bool:
    """Put the codes of another dtype into `out`.

    Args:
        words: Codes, uint64 [n].
        form: Their dtype, as `form_of` tells.
        goal: The other dtype.
        mode: The rounding, by the number of its `CastMode`.
        out: uint64 [n]; it may be `words`.

    Returns:
        Whether all have a code; a NaN has none where the dtype has no NaN.
    """
    good = True
    for i in range(words.size):
        word = words[i]
        negative, magnitude, exponent, is_infinite, is_nan = _taken_apart(word, form)
        if goal[_IS_FLOAT]:
            good = good and not (is_nan and goal[_NAN] < 0)
            code = _to_float(negative, magnitude, exponent, is_infinite, goal, mode)
            out[i] = np.uint64(max(goal[_NAN], 0)) if is_nan else code
        else:
            made = _to_integer(negative, magnitude, exponent, is_infinite, goal, mode)
            out[i] = np.uint64(0) if is_nan else made
    return good


@compiled
def goes_by_float64(goal: Form, mode: int) -> bool:
    """Return whether :func:`float32_to_integers` casts to a dtype in a mode of rounding."""
    return not goal[_IS_FLOAT] and goal[_MOST] <= _INT32_MAX and mode != _ODD


@compiled
def float32_to_integers(
    numbers: npt.NDArray[np.float32], goal: Form, mode: int, out: npt.NDArray[np.int64]
) -> None:
    """Put the integers nearest to floats in a mode of rounding into `out`, those of `cast_row`.

    A float64 holds every number on the way exactly, and is rounded many at a time.

    Args:
        numbers: float32 [n]; a NaN becomes 0.
        goal: The integers' dtype, as `form_of` tells; `goes_by_float64` must hold.
        mode: The rounding, by the number of its `CastMode`.
        out: int64 [n].
    """
    least, most = np.float64(goal[_LEAST]), np.float64(goal[_MOST])
    whole = np.empty(numbers.size, np.float64)
    for i in range(numbers.size):
        # Beyond the limits nothing is rounded, so that half of a unit never is lost.
        whole[i] = min(max(np.float64(numbers[i]), least), most)
    if mode == _ROUND:
        for i in range(numbers.size):
            whole[i] = np.trunc(whole[i] + np.copysign(0.5, whole[i]))
    elif mode == _FLOOR:
        for i in range(numbers.size):
            whole[i] = np.floor(whole[i])
    elif mode == _CEIL:
        for i in range(numbers.size):
            whole[i] = np.ceil(whole[i])
    elif mode == _TRUNC:
        for i in range(numbers.size):
            whole[i] = np.trunc(whole[i])
    else:
        for i in range(numbers.size):
            whole[i] = np.rint(whole[i])
    for i in range(numbers.size):
        out[i] = np.int32(whole[i]) if numbers[i] == numbers[i] else np.int32(0)


@compiled
def _taken_apart(word: np.uint64, form: Form) -> tuple[bool, np.uint64, int, bool, bool]:
    """Return sign, magnitude, exponent, and whether it is infinite or NaN; then magnitude is 0."""
    one = np.uint64(1)
    if not form[_IS_FLOAT]:
        top = word >> np.uint64(form[_BITS] - 1)
        negative = form[_IS_SIGNED] > 0 and top != 0
        mask = ~np.uint64(0) >> np.uint64(64 - form[_BITS])
        magnitude = (~word + one) & mask if negative else word
        return negative, magnitude, 0, False, False
    rest = np.int64(word & np.uint64(form[_MAGNITUDE]))
    negative = (word & np.uint64(form[_SIGN])) != 0
    field = rest >> form[_MANTISSA]
    is_infinite = rest == form[_INFINITY]
    is_nan = form[_NAN] >= 0 and rest > form[_MAX_CODE] and not is_infinite
    significand = rest & ((1 << form[_MANTISSA]) - 1)
    if field > 0:
        significand += 1 << form[_MANTISSA]
    if is_infinite or is_nan:
        significand = 0
    exponent = max(field, 1) - form[_BIAS] - form[_MANTISSA]
    return negative, np.uint64(significand), exponent, is_infinite, is_nan


@compiled
def _length(magnitude: np.uint64) -> int:
    """Return the bits of a number; 0 for 0."""
    length, step = 0, 32
    while step:
        if magnitude >> np.uint64(step):
            magnitude >>= np.uint64(step)
            length += step
        step >>= 1
    return length + (1 if magnitude else 0)


@compiled
def _rounded(negative: bool, magnitude: np.uint64, shift: int, mode: int) -> np.uint64:
    """Return a magnitude divided by 2^shift and rounded; to the left it must have room."""
    if shift <= 0:
        return magnitude << np.uint64(min(-shift, _WIDEST_SHIFT))
    right = np.uint64(min(shift, _WIDEST_SHIFT))
    quotient = magnitude >> right
    rest = magnitude - (quotient << right)
    half = (np.uint64(1) << right) >> np.uint64(1)
    is_odd = (quotient & np.uint64(1)) != 0
    if rest == 0 or mode == _TRUNC:
        up = False
    elif mode == _ROUND:
        up = rest >= half
    elif mode == _FLOOR:
        up = negative
    elif mode == _CEIL:
        up = not negative
    elif mode == _ODD:
        up = not is_odd
    else:
        up = rest > half or (rest == half and is_odd)
    return quotient + np.uint64(1) if up else quotient


@compiled
def _to_float(
    negative: bool, magnitude: np.uint64, exponent: int, is_infinite: bool, goal: Form, mode: int
) -> np.uint64:
    leading = goal[_EMIN]
    if magnitude:
        leading = max(exponent + _length(magnitude) - 1, leading)
    shift = leading - goal[_MANTISSA] - exponent
    steps = np.int64(_rounded(negative, magnitude, shift, mode))
    code = ((leading - goal[_EMIN]) << goal[_MANTISSA]) + steps
    has_infinity = goal[_INFINITY] >= 0
    if is_infinite:
        code = goal[_INFINITY] if has_infinity else goal[_MAX_CODE]
    elif code > goal[_MAX_CODE]:
        outward = has_infinity and goal[_BITS] > _SATURATING_BITS
        if mode == _FLOOR:
            outward = outward and negative
        elif mode == _CEIL:
            outward = outward and not negative
        elif mode in (_TRUNC, _ODD):
            outward = False
        code = goal[_INFINITY] if outward else goal[_MAX_CODE]
    return np.uint64(code | goal[_SIGN]) if negative else np.uint64(code)


@compiled
def _to_integer(
    negative: bool, magnitude: np.uint64, exponent: int, is_infinite: bool, goal: Form, mode: int
) -> np.uint64:
    one = np.uint64(1)
    limit = ~np.uint64(goal[_LEAST]) + one if negative else np.uint64(goal[_MOST])
    made = limit
    if not is_infinite and exponent + _length(magnitude) <= 64:
        made = min(_rounded(negative, magnitude, -exponent, mode), limit)
    if negative:
        made = ~made + one
    return made & (~np.uint64(0) >> np.uint64(64 - goal[_BITS]))
