"""Numbers to block-scaled arrays and back, and the product of two of them.

Small arrays take the numpy routines, large ones the compiled twins: the bits are the same, and
who works on little never waits for a compiler to load.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..choices import choice
from ..dtypes.boxes import GROUP
from ..errors import IRTypeError, IRValueError
from ..given import describe_given
from . import codec, reference_quantize, two_level
from .array_matmul import check_operands, matmul_arrays
from .block_format import InfinityPolicy, ScaleRule, block_format_of
from .elements import FLOAT32_NAN, element_of
from .large_arrays import unfilled
from .mxarray import MXArray, checked_axis, scale_shape
from .parts import floats, narrowed, widened
from .tables import decode_table, scale_table, value_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from ..dtypes import BlockScaledDType, DType

COMPILED_FROM = 1 << 16
"""Elements, or multiplications, from which the compiled routines are worth loading."""

_WIDEST_TABLE = 16
_PIECE = 1 << 20
_SMALL_PIECE = 1 << 16
"""Elements of a piece where temporary arrays several times its size are made."""


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
    array = np.asarray(codes)
    if array.size < COMPILED_FROM or element_of(dtype).bits > _WIDEST_TABLE:
        return codec.decode(array, dtype)
    from . import fast_codec

    return fast_codec.decode(array, dtype)


def quantize(
    x: npt.ArrayLike,
    dtype: BlockScaledDType,
    *,
    axis: int = -1,
    rule: str | ScaleRule = ScaleRule.FLOOR,
    infinity: str | InfinityPolicy = InfinityPolicy.NAN,
) -> MXArray:
    """Quantise numbers to a block-scaled format.

    Along `axis` every group of the format's block shares a scale; groups never cross a row's end,
    the last of a row may be short. The scale's exponent is read from the bits of the group's
    largest magnitude by `rule` and clamped to E8M0; then each element is `x / scale`, rounded once
    to nearest even and saturated. A group of zeros has code 0 and keeps its signs; a NaN makes its
    group NaN (scale 255).

    Args:
        x: Real numbers of at least one axis: numpy floats up to float64, ml_dtypes floats, or
            integers up to 2^53.
        dtype: A block-scaled format: MXFP8_E4M3, ..., MXINT8 or NVFP4.
        axis: The axis to group.
        rule: `"floor"` (OCP), `"ceil"`, `"even"`, `"rceil"` or `"nv"`, see `ScaleRule`. NVFP4 has
            a scale of its own kind and takes no rule but the default.
        infinity: `"nan"` makes the group of an infinity NaN (with the rule nv its scale is 254
            instead); `"saturate"` gives it the largest scale and the largest element.

    Returns:
        Element codes in the shape of `x` and scale codes with one entry a group along `axis`.

    Raises:
        IRTypeError: `dtype` is not block-scaled, or `x` are no real numbers.
        IRValueError: An axis out of range, or an unknown rule or infinity policy.
    """
    form = block_format_of(dtype)
    chosen = choice(ScaleRule, rule, "rule")
    policy = choice(InfinityPolicy, infinity, "infinity")
    array = np.asarray(x)
    floats(np.empty(0, array.dtype))  # refuses what is no number, also where there is nothing
    where = checked_axis(axis, array.ndim)
    if form.has_tensor_scale and chosen is not ScaleRule.FLOOR:
        message = (
            f"rule must be left out for {dtype.name}, whose scales are no powers of two, "
            f"not {chosen.value!r}"
        )
        raise IRValueError(message)
    codes = unfilled(array.shape, np.uint8)
    scales = np.empty(scale_shape(array.shape, where, form.block), np.uint8)
    source = _middle(array, where)
    target = codes.reshape(source.shape)
    scale_target = scales.reshape(scale_shape(source.shape, 1, form.block))
    tensor_scale = None
    if form.has_tensor_scale:
        tensor_scale = two_level.tensor_scale_of(
            (floats(source[cut]) for cut in _pieces(source.shape, form.block, _SMALL_PIECE)), form
        )
        by_rows = partial(two_level.quantize_groups, form=form, tensor_scale=tensor_scale)
    else:
        by_rows = partial(reference_quantize.quantize_groups, form=form, rule=chosen)
    is_narrow = array.dtype.kind not in "iu" and array.dtype.itemsize <= 4
    is_compiled = array.size >= COMPILED_FROM and is_narrow and tensor_scale is None
    is_copied = not source.flags.c_contiguous or source.dtype != np.float32
    size = _SMALL_PIECE if is_copied or not is_compiled else _PIECE
    for planes, depth in _pieces(source.shape, form.block, size):
        groups = slice(depth.start // form.block, -(-depth.stop // form.block))
        piece = np.ascontiguousarray(floats(source[planes, depth]))
        results = target[planes, depth], scale_target[planes, groups]
        if is_compiled:
            from . import fast_quantize

            fast_quantize.quantize_groups(piece, *results, form, rule=chosen, infinity=policy)
        else:
            _quantize_middle(piece, results, partial(by_rows, infinity=policy))
    return MXArray(codes, scales, dtype, where, tensor_scale)


def dequantize(mx: MXArray) -> npt.NDArray[np.float32]:
    """Return what a block-scaled array stands for.

    Args:
        mx: The array.

    Returns:
        float32 in the shape of the array: the element times every scale that covers it, rounded
        once; overflow is infinity, every NaN is 0x7FC00000.

    Raises:
        IRTypeError: `mx` is no MXArray.
    """
    if not isinstance(mx, MXArray):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"What is dequantised must be an MXArray, not {describe_given(mx)}"
        raise IRTypeError(message)
    form = block_format_of(mx.dtype)
    elements = _middle(mx.elements, mx.axis)
    scales = _middle(mx.scales, mx.axis)
    if mx.tensor_scale is None:
        scale_values = scale_table()
    else:
        values = decode_table(form.scale).view(np.float32).astype(np.float64)
        scale_values = values * widened(np.array(mx.tensor_scale))
    table = value_table(mx.dtype.element)
    if elements.size >= COMPILED_FROM:
        from . import fast_codec

        bits = unfilled(elements.shape, np.uint32)
        fast_codec.dequantize(elements, scales, form.block, table, scale_values, bits)
    else:
        scale = np.repeat(scale_values[scales], form.block, axis=1)[:, : elements.shape[1]]
        bits = narrowed(table[elements] * scale)
    out = bits.view(np.float32)
    bits[np.isnan(out)] = FLOAT32_NAN
    return out.reshape(mx.shape)


def matmul(a: MXArray, b: MXArray) -> npt.NDArray[np.float32]:
    """Multiply two block-scaled matrices.

    For each group along K the exact sum of products, times every scale that covers it, is rounded
    once to float32 and added to a float32 accumulator that starts at +0, groups ascending.

    Args:
        a: `[M, K]`, grouped along its last axis.
        b: `[K, N]`, grouped along its first axis, with groups of the same size. The element
            formats may differ; formats with two levels of scales multiply among themselves.

    Returns:
        float32 `[M, N]`; every NaN is 0x7FC00000.

    Raises:
        IRTypeError: An operand is no MXArray, or the formats do not multiply.
        IRValueError: An operand is no matrix or grouped along another axis, or K differs.
    """
    check_operands(a, b)
    form = block_format_of(a.dtype)
    if math.prod(a.shape) * b.shape[1] < COMPILED_FROM:
        return matmul_arrays(a, b)
    from . import fast_matmul

    element = a.dtype.element
    if a.tensor_scale is not None and b.tensor_scale is not None:
        if not fast_matmul.has_exact_groups(element, form.block):
            return matmul_arrays(a, b)
        return fast_matmul.matmul_groups(
            a.elements,
            a.scales,
            b.elements,
            b.scales,
            element=element,
            block=form.block,
            tensor_scale=(a.tensor_scale, b.tensor_scale),
        )
    if form.block != GROUP:
        return matmul_arrays(a, b)
    return fast_matmul.matmul_mx(
        a.elements,
        a.scales,
        b.elements,
        b.scales,
        a_dtype=a.dtype.element,
        b_dtype=b.dtype.element,
    )


def _quantize_middle(
    x: npt.NDArray[Any],
    targets: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]],
    by_rows: Callable[[npt.NDArray[Any]], tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]],
) -> None:
    """Put codes and scales of `[outer, K, inner]` into `targets`, by what quantises `[R, K]`."""
    outer, depth, inner = x.shape
    rows = x.transpose(0, 2, 1).reshape(outer * inner, depth)
    for target, result in zip(targets, by_rows(rows), strict=True):
        target[...] = result.reshape(outer, inner, result.shape[1]).transpose(0, 2, 1)


def _middle(array: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    """Return `array` as `[outer, K, inner]` around `axis`, without a copy where that can be."""
    shape = array.shape
    match array.ndim, axis:
        case 2, 0:
            return array[None]
        case 2, 1:
            return array[:, :, None]
        case _:
            outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
            return array.reshape(outer, shape[axis], inner)


def _pieces(shape: tuple[int, ...], block: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Cut `[outer, K, inner]` at whole groups into pieces of about `size` elements."""
    outer, depth, inner = shape
    plane = max(1, depth * inner)
    planes = max(1, size // plane)
    step = depth if plane <= size else max(1, size // (block * inner)) * block
    for first in range(0, outer, planes):
        for start in range(0, depth, max(1, step)):
            yield (
                slice(first, min(first + planes, outer)),
                slice(start, min(start + step, depth)),
            )
