"""Numbers to block-scaled groups in plain numpy: every rule of the scale exponent, from the bits.

No logarithm is taken: an exponent is read from the integer that a float is made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType
from ..dtypes.formats import FloatFormat, IntegerFormat, format_of
from .block_format import BlockFormat, InfinityPolicy, ScaleRule
from .elements import block_exponent
from .parts import FULL, Parts, narrowed, round_to_format, shift_to_even, take_apart

if TYPE_CHECKING:
    import numpy.typing as npt

_E8M0 = format_of(DType.E8M0)
_FLOAT32_MANTISSA = 23
_NV_SUBNORMAL = 1 << (_FLOAT32_MANTISSA - 1)
assert _E8M0.nan_code is not None
_NAN_SCALE = _E8M0.nan_code


def quantize_groups(
    x: npt.NDArray[Any], form: BlockFormat, *, rule: ScaleRule, infinity: InfinityPolicy
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Quantise rows to a format with E8M0 scales.

    Args:
        x: float32 or float64 `[R, K]`; the last group of a row may be short.
        form: The block format.
        rule: How the scale's exponent is chosen.
        infinity: What an infinity does to its group.

    Returns:
        Element codes uint8 `[R, K]` and scale codes uint8 `[R, ceil(K / block)]`.
    """
    rows, depth = x.shape
    groups = -(-depth // form.block)
    padded = np.zeros((rows, groups * form.block), x.dtype)
    padded[:, :depth] = x
    parts = take_apart(padded.reshape(rows, groups, form.block))
    amax = _take_apart_largest(padded.reshape(rows, groups, form.block))
    scales = _scale_codes(amax, form, rule)
    has_infinity = parts.is_infinite.any(axis=2)
    saturates = rule is ScaleRule.NV or infinity is InfinityPolicy.SATURATE
    scales = np.where(has_infinity, _E8M0.max_code if saturates else _NAN_SCALE, scales)
    scales = np.where(parts.is_nan.any(axis=2), _NAN_SCALE, scales)
    codes = _elements(parts, form, scales[:, :, None] - _E8M0.bias)
    codes = np.where((scales == _NAN_SCALE)[:, :, None], form.nan_element, codes)
    flat = codes.reshape(rows, groups * form.block)[:, :depth]
    return flat.astype(np.uint8), scales.astype(np.uint8)


def _take_apart_largest(groups: npt.NDArray[Any]) -> Parts:
    """Return the parts of each group's largest finite magnitude, found as an integer."""
    width = groups.dtype.itemsize * 8
    bits = groups.view(np.int32 if width == 32 else np.int64)
    magnitude = bits & bits.dtype.type((1 << (width - 1)) - 1)
    infinity = np.array(np.inf, groups.dtype).view(bits.dtype)
    largest = np.where(magnitude < infinity, magnitude, 0).max(axis=2, initial=0)
    return take_apart(largest.astype(bits.dtype).view(groups.dtype))


def _scale_codes(amax: Parts, form: BlockFormat, rule: ScaleRule) -> npt.NDArray[np.int64]:
    """Return E8M0 codes from finite largest magnitudes; zero gives code 0."""
    leading = amax.leading
    full = amax.significand << (FULL - amax.length)
    match rule:
        case ScaleRule.FLOOR:
            up = np.zeros_like(full, np.bool_)
        case ScaleRule.CEIL:
            up = full > 1 << (FULL - 1)
        case ScaleRule.EVEN:
            width = form.mantissa_bits + 1
            up = shift_to_even(full, np.full_like(full, FULL - width)) == 1 << width
        case ScaleRule.RCEIL:
            up = full > round(np.ldexp(form.max, FULL - 1 - form.emax))
        case ScaleRule.NV:
            return _machine_codes(amax, form)
    codes = leading + up - form.emax + _E8M0.bias
    return np.where(amax.significand == 0, 0, np.clip(codes, 0, _E8M0.max_code))


def _machine_codes(amax: Parts, form: BlockFormat) -> npt.NDArray[np.int64]:
    largest = np.ldexp(amax.significand.astype(np.float64), amax.exponent)
    reciprocal = np.float32(1) / np.float32(form.max)
    bits = narrowed(largest * np.float64(reciprocal)).astype(np.int64)
    field, mantissa = bits >> _FLOAT32_MANTISSA, bits & ((1 << _FLOAT32_MANTISSA) - 1)
    # Below 2^-126 the code 0 stands for 2^-127, half of the first normal number.
    up = np.where(field == 0, mantissa > _NV_SUBNORMAL, mantissa > 0)
    return np.minimum(field + up, _E8M0.max_code)


def _elements(
    parts: Parts, form: BlockFormat, scale: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    element = form.element
    match element:
        case FloatFormat():
            codes = np.minimum(round_to_format(parts, element, scale), element.max_code)
            codes = np.where(parts.is_infinite, element.max_code, codes)
            return np.where(parts.negative, codes | element.sign_mask, codes)
        case IntegerFormat():
            unit = parts.exponent - scale - block_exponent(element)
            is_large = parts.is_infinite | (unit + parts.length > element.bits)
            steps = shift_to_even(
                np.where(is_large, 0, parts.significand), np.where(is_large, 0, -unit)
            )
            steps = np.where(is_large, element.code_count, steps)
            values = np.where(parts.negative, -steps, steps)
            return np.clip(values, element.min, element.max) & (element.code_count - 1)
