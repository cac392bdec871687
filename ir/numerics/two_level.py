"""Formats with two levels of scales (NVFP4): E4M3 over a block, one float32 over the tensor.

An element is worth `element * block scale * tensor scale`. Every comparison and every product
below is exact in float64 or in integers, so each result is rounded once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType
from ..dtypes.formats import FloatFormat, format_of
from .block_format import BlockFormat, InfinityPolicy
from .elements import FLOAT32_NAN, Summation, unit_exponent
from .parts import narrowed, take_apart, widened
from .reference import round_integers, round_pair
from .tables import decode_table, integers, significands

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

_SCALE = format_of(DType.E4M3)
_HALF = 24
_LEAST_FLOAT32, _LARGEST_FLOAT32 = 1, 0x7F7FFFFF
_PRODUCT_LIMIT = 1 << 28


def tensor_scale_of(pieces: Iterable[npt.NDArray[Any]], form: BlockFormat) -> np.float32:
    """Return the scale of a tensor that comes in pieces.

    It is float32(amax / (max element * 448)) of the tensor's largest finite magnitude, 1 for a
    tensor of zeros.

    Args:
        pieces: float32 or float64 arrays of any shape, all of the tensor.
        form: The block format.
    """
    largest = (np.where(np.isfinite(x), np.abs(widened(x)), 0.0).max(initial=0.0) for x in pieces)
    amax = max(map(float, largest), default=0.0)
    if amax == 0.0:
        return np.float32(1)
    bits = narrowed(np.array(amax / (form.max * _SCALE.max)))
    return np.uint32(min(max(int(bits), _LEAST_FLOAT32), _LARGEST_FLOAT32)).view(np.float32)


def quantize_groups(
    x: npt.NDArray[Any], form: BlockFormat, *, tensor_scale: np.float32, infinity: InfinityPolicy
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Quantise rows to a format with two levels of scales.

    A block's scale is the E4M3 number nearest to amax / (max element * tensor scale).

    Args:
        x: float32 or float64 `[R, K]`; the last group of a row may be short.
        form: The block format.
        tensor_scale: The scale of the whole tensor.
        infinity: What an infinity does to its group: a NaN scale, or the largest scale with the
            infinity as the largest element.

    Returns:
        Element codes uint8 `[R, K]` and E4M3 scale codes uint8 `[R, ceil(K / block)]`.
    """
    element = form.element
    assert isinstance(element, FloatFormat), element.name
    rows, depth = x.shape
    groups = -(-depth // form.block)
    padded = np.zeros((rows, groups, form.block))
    padded.reshape(rows, groups * form.block)[:, :depth] = widened(x)
    magnitude = np.abs(padded)
    amax = np.where(np.isfinite(padded), magnitude, 0.0).max(axis=2, initial=0.0)
    whole = float(widened(np.array(tensor_scale)))

    steps = _midpoints(_SCALE) * (form.max * whole)
    scales = _nearest(amax, steps)
    largest = infinity is InfinityPolicy.SATURATE
    assert _SCALE.nan_code is not None
    has_infinity = np.isinf(padded).any(axis=2)
    scales = np.where(has_infinity, _SCALE.max_code if largest else _SCALE.nan_code, scales)
    is_nan = np.isnan(padded).any(axis=2)
    scales = np.where(is_nan, _SCALE.nan_code, scales)

    value = decode_table(DType.E4M3).view(np.float32)[scales].astype(np.float64)
    unit = value * whole
    codes = np.zeros(padded.shape, np.int64)
    for code, midpoint in enumerate(_midpoints(element)):
        edge = (midpoint * unit)[:, :, None]
        codes += (magnitude > edge) | ((magnitude == edge) & (code % 2 == 1))
    codes[unit == 0.0] = 0
    codes = np.where(np.signbit(padded), codes | element.sign_mask, codes)
    codes = np.where((scales == _SCALE.nan_code)[:, :, None], form.nan_element, codes)
    flat = codes.reshape(rows, groups * form.block)[:, :depth]
    return flat.astype(np.uint8), scales.astype(np.uint8)


def matmul_groups(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    *,
    element: DType,
    block: int,
    tensor_scale: tuple[np.float32, np.float32],
    acc: npt.NDArray[np.float32] | None = None,
    sum: Summation = Summation.GROUP,  # noqa: A002 - the public name of the choice
) -> npt.NDArray[np.float32]:
    """Multiply two matrices of a format with two levels of scales.

    For each block along K the exact sum of products times all four scales is rounded once to
    float32 and added to the float32 accumulator, blocks ascending. With the sequential order every
    element is a block of its own.

    Args:
        a: Element codes uint8 `[M, K]`.
        a_scales: E4M3 codes uint8 `[M, G]`.
        b: Element codes uint8 `[K, N]`.
        b_scales: E4M3 codes uint8 `[G, N]`.
        element: The element's dtype, with neither NaN nor infinity.
        block: Elements that share one scale.
        tensor_scale: The tensor scales of `a` and of `b`, finite.
        acc: What the accumulator starts from, float32 `[M, N]`; by default +0.
        sum: The order in which products meet the accumulator.

    Returns:
        float32 `[M, N]`; every NaN is 0x7FC00000.
    """
    whole: npt.NDArray[Any] = integers(element)
    scale_significand, scale_exponent = significands(DType.E4M3)
    values = decode_table(DType.E4M3).view(np.float32)
    top = int(np.abs(whole).max()) ** 2 * block * int(np.abs(scale_significand).max()) ** 2
    is_narrow = top < _PRODUCT_LIMIT
    if not is_narrow:
        whole = whole.astype(object)
    both = take_apart(np.array(tensor_scale, np.float32))
    tensor = int(both.significand[0]) * int(both.significand[1])
    if both.negative[0] != both.negative[1]:
        tensor = -tensor
    base = int(both.exponent.sum()) + 2 * unit_exponent(format_of(element))
    out = np.zeros((a.shape[0], b.shape[1]), np.float32) if acc is None else acc.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        step = block if sum is Summation.GROUP else 1
        for first in range(0, a.shape[1], step):
            cut = slice(first, first + step)
            left, right = a_scales[:, first // block, None], b_scales[first // block]
            product: npt.NDArray[Any] = whole[a[:, cut]] @ whole[b[cut]]
            product = product * scale_significand[left] * scale_significand[right]
            exponent = scale_exponent[left] + scale_exponent[right] + base
            if is_narrow:
                term = round_pair(
                    product * (tensor >> _HALF),
                    product * (tensor & ((1 << _HALF) - 1)),
                    low_bits=_HALF,
                    exponent=exponent,
                )
            else:
                term = round_integers(product.astype(object) * tensor, exponent)
            term[np.isnan(values[left]) | np.isnan(values[right])] = np.nan
            out += term
    out.view(np.uint32)[np.isnan(out)] = FLOAT32_NAN
    return out


def _midpoints(element: FloatFormat) -> npt.NDArray[np.float64]:
    """Return what lies halfway between each magnitude code and the next, ascending."""
    values = np.array([element.value(code) for code in range(element.max_code + 1)])
    return (values[:-1] + values[1:]) / 2


def _nearest(
    values: npt.NDArray[np.float64], midpoints: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Return the code nearest to each value, ties to the even code."""
    below = np.searchsorted(midpoints, values, side="left")
    tie = np.searchsorted(midpoints, values, side="right") > below
    return below + (tie & (below % 2 == 1))
