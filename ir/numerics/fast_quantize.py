"""The quantisers of `reference_quantize` for float32 sources, compiled: the same bits.

Almost every group takes the short way: with its scale's exponent subtracted from the exponent
field, a source is the quotient already, and rounding it is one float32 addition, many lanes at a
time. Groups whose scale is so small that subnormal sources would count, and groups with an
infinity, go element by element through the integer rounding of `parts`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..dtypes import DType
from ..dtypes.boxes import GROUP
from ..dtypes.formats import FloatFormat, IntegerFormat, format_of
from ..jit import compiled
from .block_format import BlockFormat, InfinityPolicy, ScaleRule
from .elements import block_exponent
from .parts import LEAST_NORMAL, SUBNORMAL_EXPONENT

if TYPE_CHECKING:
    import numpy.typing as npt

    Integer = int | np.integer[Any]

_NAN_SCALE = 255
_MAX_SCALE = 254
_BIAS = 127
_MANTISSA = 23
_HIDDEN = 1 << _MANTISSA
_FRACTION = _HIDDEN - 1
_INFINITY = 0xFF << _MANTISSA
_MAGNITUDE = 0x7FFFFFFF
_FLOOR, _CEIL, _EVEN, _RCEIL, _NV = range(5)
_RULES = {
    ScaleRule.FLOOR: _FLOOR,
    ScaleRule.CEIL: _CEIL,
    ScaleRule.EVEN: _EVEN,
    ScaleRule.RCEIL: _RCEIL,
    ScaleRule.NV: _NV,
}
_SHORT_WAY = 48
"""Least scale code of the short way: below 2^-126 / 2^(48 - 127) = 2^-47 every element is 0."""

_SUBNORMAL_UNIT = 2.0**SUBNORMAL_EXPONENT

_LONG_WAY = 0
"""What a group with an infinity or a NaN has for a scale until it has gone the long way."""

_TILE = 256
"""Columns that the column kernel carries through a group at once."""

assert format_of(DType.E8M0).nan_code == _NAN_SCALE
assert format_of(DType.E8M0).max_code == _MAX_SCALE
assert format_of(DType.E8M0).bias == _BIAS


class Recipe(NamedTuple):
    """A block format and a rule as the compiled kernels read them."""

    rule: int
    infinity_scale: int
    """Scale code of a group with an infinity."""
    emax: int
    max_fraction: int
    """The largest element's fraction, 23 bits."""
    reciprocal: float
    """float32(1 / max)."""
    scale_mantissa_bits: int
    """Mantissa width of the rule `even`."""
    is_integer: bool
    bits: int
    mantissa_bits: int
    emin: int
    """Exponent of the smallest normal element; of an integer, of its unit."""
    max_code: int
    nan_element: int
    binade_codes: int
    """2^mantissa_bits; as a number, for a shift by an unknown count would be done in 64 bits."""
    sign_code: int
    """2^(bits - 1)."""


@compiled
def recipe_from(numbers: npt.NDArray[np.float64]) -> Recipe:
    """Return a recipe whose parts, in order, are given as numbers, for compiled code."""
    return Recipe(
        int(numbers[0]),
        int(numbers[1]),
        int(numbers[2]),
        int(numbers[3]),
        numbers[4],
        int(numbers[5]),
        numbers[6] != 0,
        int(numbers[7]),
        int(numbers[8]),
        int(numbers[9]),
        int(numbers[10]),
        int(numbers[11]),
        int(numbers[12]),
        int(numbers[13]),
    )


def quantize_groups(
    x: npt.NDArray[np.float32],
    codes: npt.NDArray[np.uint8],
    scales: npt.NDArray[np.uint8],
    form: BlockFormat,
    *,
    rule: ScaleRule,
    infinity: InfinityPolicy,
) -> None:
    """Quantise along the middle axis to a format with E8M0 scales.

    Args:
        x: float32 `[outer, K, inner]`, contiguous; the last group along K may be short.
        codes: Where the element codes go, uint8 `[outer, K, inner]`, contiguous.
        scales: Where the scale codes go, uint8 `[outer, ceil(K / block), inner]`, contiguous.
        form: The block format.
        rule: How the scale's exponent is chosen.
        infinity: What an infinity does to its group.
    """
    outer, depth, inner = x.shape
    recipe = recipe_of(form, rule, infinity)
    bits = x.view(np.uint32)
    if inner == 1:
        _quantize_rows(
            bits.reshape(outer, depth),
            form.block,
            recipe,
            codes.reshape(outer, depth),
            scales.reshape(outer, scales.shape[1]),
        )
    else:
        _quantize_columns(bits, form.block, recipe, codes, scales)


def recipe_of(form: BlockFormat, rule: ScaleRule, infinity: InfinityPolicy) -> Recipe:
    """Return what the compiled kernels read of a format, a rule and a policy."""
    saturates = rule is ScaleRule.NV or infinity is InfinityPolicy.SATURATE
    element = form.element
    match element:
        case FloatFormat():
            emin, mantissa_bits, max_code = element.emin, element.mantissa_bits, element.max_code
        case IntegerFormat():
            emin, mantissa_bits, max_code = block_exponent(element), 0, element.max
    return Recipe(
        rule=_RULES[rule],
        infinity_scale=_MAX_SCALE if saturates else _NAN_SCALE,
        emax=form.emax,
        max_fraction=round(math.ldexp(form.max, _MANTISSA - form.emax)) - _HIDDEN,
        reciprocal=float(np.float32(1) / np.float32(form.max)),
        scale_mantissa_bits=form.mantissa_bits,
        is_integer=isinstance(element, IntegerFormat),
        bits=element.bits,
        mantissa_bits=mantissa_bits,
        emin=emin,
        max_code=max_code,
        nan_element=form.nan_element,
        binade_codes=1 << mantissa_bits,
        sign_code=1 << (element.bits - 1),
    )


@compiled
def _quantize_rows(
    bits: npt.NDArray[np.uint32],
    block: int,
    recipe: Recipe,
    codes: npt.NDArray[np.uint8],
    scales: npt.NDArray[np.uint8],
) -> None:
    for row in range(bits.shape[0]):
        quantize_row(bits[row], block, recipe, codes[row], scales[row])


@compiled
def quantize_row(
    bits: npt.NDArray[np.uint32],
    block: int,
    recipe: Recipe,
    codes: npt.NDArray[np.uint8],
    scales: npt.NDArray[np.uint8],
) -> None:
    """Quantise one row, for compiled code.

    Args:
        bits: float32 bits of the sources, [K], contiguous.
        block: Elements that share a scale.
        recipe: How.
        codes: Where the element codes go, one a byte, [K].
        scales: Where the scale codes go, [ceil(K / block)].
    """
    depth = bits.size
    # A loop of a known length becomes vector instructions; a maximum does so once it is halved.
    whole = depth // GROUP if block == GROUP else 0
    half = np.empty(GROUP // 2, np.uint32)
    for group in range(whole):
        source = bits[group * GROUP : group * GROUP + GROUP]
        target = codes[group * GROUP : group * GROUP + GROUP]
        for i in range(GROUP // 2):
            low, high = source[i], source[i + GROUP // 2]
            half[i] = max(low & np.uint32(_MAGNITUDE), high & np.uint32(_MAGNITUDE))
        top = np.uint32(0)
        for pattern in half:
            top = max(top, pattern)
        scale = _scale_of(top, recipe) if top < np.uint32(_INFINITY) else _LONG_WAY
        scales[group] = scale
        if recipe.is_integer:
            for i in range(GROUP):
                target[i] = _integer_code(source[i], scale, recipe)
        else:
            for i in range(GROUP):
                target[i] = _float_code(source[i], scale, recipe)
    for group in range(scales.size):
        if group >= whole or scales[group] < _SHORT_WAY:
            first, last = group * block, min(group * block + block, depth)
            scales[group] = _any_group(bits[first:last], recipe, codes[first:last])


@compiled
def _quantize_columns(
    bits: npt.NDArray[np.uint32],
    block: int,
    recipe: Recipe,
    codes: npt.NDArray[np.uint8],
    scales: npt.NDArray[np.uint8],
) -> None:
    outer, depth, inner = bits.shape
    tops = np.empty(_TILE, np.uint32)
    column, column_codes = np.empty(block, np.uint32), np.empty(block, np.uint8)
    for plane in range(outer):
        for group in range(scales.shape[1]):
            first, last = group * block, min(group * block + block, depth)
            for left in range(0, inner, _TILE):
                right = min(left + _TILE, inner)
                tops[:] = 0
                for k in range(first, last):
                    source = bits[plane, k, left:right]
                    for j in range(right - left):
                        tops[j] = max(tops[j], np.uint32(source[j] & np.uint32(_MAGNITUDE)))
                scale = scales[plane, group, left:right]
                for j in range(right - left):
                    is_finite = tops[j] < np.uint32(_INFINITY)
                    scale[j] = _scale_of(tops[j], recipe) if is_finite else _LONG_WAY
                for k in range(first, last):
                    source, target = bits[plane, k, left:right], codes[plane, k, left:right]
                    if recipe.is_integer:
                        for j in range(right - left):
                            target[j] = _integer_code(source[j], scale[j], recipe)
                    else:
                        for j in range(right - left):
                            target[j] = _float_code(source[j], scale[j], recipe)
                for j in range(right - left):
                    if scale[j] < _SHORT_WAY:
                        count = last - first
                        for k in range(count):
                            column[k] = bits[plane, first + k, left + j]
                        scale[j] = _any_group(column[:count], recipe, column_codes)
                        for k in range(count):
                            codes[plane, first + k, left + j] = column_codes[k]


@compiled
def _scale_of(top: Integer, recipe: Recipe) -> Integer:
    """Return the scale code of a group whose largest magnitude has the finite bits `top`."""
    if top == 0:
        return 0
    if recipe.rule == _NV:
        amax = np.float64(top) * _SUBNORMAL_UNIT
        if top >= _HIDDEN:
            amax = np.float64(np.uint32(top).view(np.float32))
        ratio = amax * recipe.reciprocal
        if ratio < LEAST_NORMAL:
            # Code 0 stands for 2^-127; float32 has 2^-149 for a step here, and its tie goes down.
            return 1 if ratio > LEAST_NORMAL / 2 + _SUBNORMAL_UNIT / 2 else 0
        bits = np.int64(np.float32(ratio).view(np.uint32))
        return min((bits >> _MANTISSA) + ((bits & _FRACTION) > 0), _MAX_SCALE)
    leading, fraction = np.int64(top) >> _MANTISSA, np.int64(top) & _FRACTION
    if leading == 0:
        leading = 1
        while fraction < _HIDDEN:
            fraction <<= 1
            leading -= 1
        fraction &= _FRACTION
    up = False
    if recipe.rule == _CEIL:
        up = fraction > 0
    elif recipe.rule == _EVEN:
        drop = _MANTISSA - recipe.scale_mantissa_bits
        kept = (fraction + (1 << (drop - 1)) - 1 + ((fraction >> drop) & 1)) >> drop
        up = kept == 1 << recipe.scale_mantissa_bits
    elif recipe.rule == _RCEIL:
        up = fraction > recipe.max_fraction
    return min(max(leading + up - recipe.emax, 0), _MAX_SCALE)


@compiled
def _any_group(
    source: npt.NDArray[np.uint32], recipe: Recipe, codes: npt.NDArray[np.uint8]
) -> Integer:
    """Quantise a group of any kind, one element after the other; return its scale code."""
    top = np.uint32(0)
    for pattern in source:
        top = max(top, np.uint32(pattern & np.uint32(_MAGNITUDE)))
    if top > np.uint32(_INFINITY):
        scale = _NAN_SCALE
    elif top == np.uint32(_INFINITY):
        scale = recipe.infinity_scale
    else:
        scale = _scale_of(top, recipe)
    for i in range(source.size):
        if scale == _NAN_SCALE:
            codes[i] = recipe.nan_element
        else:
            codes[i] = _round_one(np.int64(source[i]), scale, recipe)
    return scale


@compiled
def _float_code(pattern: Integer, scale: Integer, recipe: Recipe) -> Integer:
    """Round one source the short way, for a floating element."""
    quotient = _quotient(pattern, scale)
    least = np.int32((recipe.emin + _BIAS) << _MANTISSA)
    binade = np.int32(max(quotient, least) & np.int32(_INFINITY))
    steps = _steps(quotient, np.int32(binade - np.int32(recipe.mantissa_bits << _MANTISSA)))
    skipped = np.int32(np.int32(binade - least) >> _MANTISSA) * np.int32(recipe.binade_codes)
    code = min(np.int32(steps + np.int32(skipped)), np.int32(recipe.max_code))
    sign = np.int32(pattern >> np.uint32(31)) * np.int32(recipe.sign_code)
    return np.uint8(np.int32(code | np.int32(sign)))


@compiled
def _integer_code(pattern: Integer, scale: Integer, recipe: Recipe) -> Integer:
    """Round one source the short way, for an integer element."""
    steps = _steps(_quotient(pattern, scale), np.int32((recipe.emin + _BIAS) << _MANTISSA))
    is_negative = np.int32(pattern >> np.uint32(31))
    steps = min(steps, np.int32(recipe.max_code + is_negative))
    return np.uint8(-steps if is_negative else steps)


@compiled
def _quotient(pattern: Integer, scale: Integer) -> Integer:
    """Return float32 bits of |source| / 2^(scale - 127), or of something next to 0 where tiny."""
    magnitude = np.int32(pattern & np.uint32(_MAGNITUDE))
    shifted = np.int32(magnitude - np.int32((np.int32(scale) - np.int32(_BIAS)) << _MANTISSA))
    return max(shifted, np.int32(0))


@compiled
def _steps(quotient: Integer, step: Integer) -> Integer:
    """Return how many steps a quotient is, rounded to even by one float32 addition.

    Both are float32 bits, `step` of a power of two. Beside 2^23 steps a float32 has no bits for a
    part of a step.
    """
    anchor = np.int32(step + np.int32(_MANTISSA << _MANTISSA))
    total = np.float32(np.int32(quotient).view(np.float32) + anchor.view(np.float32))
    return np.int32(total.view(np.int32) - anchor)


@compiled
def _round_one(pattern: Integer, scale: Integer, recipe: Recipe) -> Integer:
    """Round one source in integers, whatever it is and whatever the scale."""
    negative = pattern >> 31
    magnitude = pattern & _MAGNITUDE
    limit = recipe.max_code + negative if recipe.is_integer else recipe.max_code
    field = magnitude >> _MANTISSA
    significand = (magnitude & _FRACTION) + (_HIDDEN if field > 0 else 0)
    exponent = max(field, 1) - _BIAS - _MANTISSA - (scale - _BIAS)
    length = 0
    while significand >> length:
        length += 1
    leading = recipe.emin
    if length > 0 and not recipe.is_integer:
        leading = max(recipe.emin, exponent + length - 1)
    shift = leading - recipe.mantissa_bits - exponent
    if magnitude >= _INFINITY or exponent + length - leading > recipe.bits:
        code = limit
    elif shift <= 0:
        code = significand << -shift
    elif shift > _MANTISSA + 2:
        code = 0
    else:
        code = (significand + (1 << (shift - 1)) - 1 + ((significand >> shift) & 1)) >> shift
    if not recipe.is_integer:
        code += (leading - recipe.emin) << recipe.mantissa_bits
    code = min(code, limit)
    if recipe.is_integer:
        return np.uint8(-code if negative else code)
    return np.uint8(code | (negative << (recipe.bits - 1)))
