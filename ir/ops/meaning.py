"""What each op means on numpy values: the golden answer is made of these functions.

Each gets the evaluation and the values of its operands: a tensor, an MXArray for a tensor of a
compound dtype, a tile, a tuple of integers, or an integer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..dtypes import BFloat16, DType, Float16
from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..numerics.array_matmul import matmul_arrays
from ..numerics.convert import float32_to_bfloat16, float32_to_float16
from ..numerics.reference import matmul_mx
from ..placement import window_positions
from ..types import TensorLayout, TensorType, TileType
from .checks import is_blocked
from .values import TensorValue, TileValue, empty_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

    from ..numerics.mxarray import MXArray
    from .values import Evaluation

Ints = tuple[int, ...]


def load(
    run: Evaluation, tensor: TensorValue, offsets: Ints, window: Ints, valid: Ints
) -> TileValue:
    """Read the valid part of a window."""
    assert isinstance(run.result_type, TileType), run.result_type
    extents = tuple(max(0, n) for n in run.extents(run.result_type.valid_shape))
    if is_blocked(run.call.args[0].type):
        boxes = tensor.buffer[_window(run, tensor, offsets, window)]
        logical = _unboxed(boxes, tensor.layout)
        return TileValue(logical[: extents[0], : extents[1]], tensor.dtype)
    if not run.site.kwargs.get("clamp"):
        extents = valid
    source = run.call.args[0].type
    assert isinstance(source, TensorType), source
    limits = run.extents(source.valid_shape)
    return TileValue(tensor.buffer[_window(run, tensor, offsets, extents, limits)], tensor.dtype)


def _window(
    run: Evaluation,
    tensor: TensorValue,
    offsets: Ints,
    extents: Sequence[int],
    limits: Sequence[int] = (),
) -> npt.NDArray[np.int64]:
    """Return the places of a window, after a check that it lies within the tensor's `limits`."""
    limits = limits or tensor.shape
    for axis, (start, size, dim) in enumerate(zip(offsets, extents, limits, strict=True)):
        if start < 0 or (size > 0 and start + size > dim):
            message = (
                f"the window must lie within the tensor, but takes {size} elements from offset "
                f"{start} on axis {axis}, which has {dim}"
            )
            raise run.site.value_error(message)
    cuts = [slice(start, start + size) for start, size in zip(offsets, extents, strict=True)]
    return window_positions(tensor.positions, cuts)


def _unboxed(boxes: npt.NDArray[Any], layout: TensorLayout) -> npt.NDArray[Any]:
    """Return boxes `[1, rows/16, groups/2, 16, 2]` in logical order."""
    rows, groups = boxes.shape[1] * BOX_ROWS, boxes.shape[2] * BOX_GROUPS
    logical = boxes[0].transpose(0, 2, 1, 3).reshape(rows, groups)
    return logical if layout is TensorLayout.MX_A_ZZ else logical.T


def _boxed(codes: npt.NDArray[Any], layout: TensorLayout) -> npt.NDArray[Any]:
    """Return logical scales as boxes `[1, rows/16, groups/2, 16, 2]`."""
    logical = codes if layout is TensorLayout.MX_A_ZZ else codes.T
    rows, groups = logical.shape
    cut = logical.reshape(rows // BOX_ROWS, BOX_ROWS, groups // BOX_GROUPS, BOX_GROUPS)
    return cut.transpose(0, 2, 1, 3)[None]


def store(
    run: Evaluation,
    tile: TileValue,
    offsets: Ints,
    tensor: TensorValue,
    window: Ints | None = None,
) -> TensorValue:
    """Write the valid part of a tile, converted to the tensor's dtype."""
    codes = converted(tile, tensor.dtype)
    if is_blocked(run.call.args[2].type):
        codes = _boxed(codes, tensor.layout)
    elif window is not None:
        codes = codes.reshape(window)
    tensor.buffer[_window(run, tensor, offsets, codes.shape)] = codes
    return tensor


def converted(tile: TileValue, dtype: DType) -> npt.NDArray[Any]:
    """Return a tile's codes as the fixpipe writes them into a tensor of `dtype`."""
    if dtype is tile.dtype:
        return tile.codes
    assert tile.dtype is DType.Float32, (tile.dtype, dtype)
    if dtype is Float16:
        return float32_to_float16(tile.floats)
    assert dtype is BFloat16, dtype
    return float32_to_bfloat16(tile.floats)


def move(run: Evaluation, tile: TileValue) -> TileValue:
    """Hand the tile on; UInt8 scales become E8M0."""
    assert isinstance(run.result_type, TileType), run.result_type
    return TileValue(tile.codes, run.result_type.dtype)


def bind_scale(run: Evaluation, scale: TileValue, data: TileValue) -> TileValue:
    """Hand the scale tile on: where it lies changes no value."""
    del run, data
    return scale


def multiply(
    run: Evaluation, lhs: TileValue, lhs_scale: TileValue, rhs: TileValue, rhs_scale: TileValue
) -> TileValue:
    """Multiply two block-scaled tiles, from +0."""
    return _product(run, (lhs, lhs_scale, rhs, rhs_scale))


def multiply_acc(
    run: Evaluation,
    acc: TileValue,
    lhs: TileValue,
    lhs_scale: TileValue,
    rhs: TileValue,
    rhs_scale: TileValue,
) -> TileValue:
    """Multiply two block-scaled tiles, from what the accumulator holds."""
    return _product(run, (lhs, lhs_scale, rhs, rhs_scale), acc=acc.floats)


def multiply_bias(
    run: Evaluation,
    lhs: TileValue,
    lhs_scale: TileValue,
    rhs: TileValue,
    rhs_scale: TileValue,
    bias: TileValue,
) -> TileValue:
    """Multiply two block-scaled tiles, from a row of biases."""
    return _product(run, (lhs, lhs_scale, rhs, rhs_scale), bias=bias.floats)


def _product(
    run: Evaluation,
    operands: tuple[TileValue, TileValue, TileValue, TileValue],
    *,
    acc: npt.NDArray[np.float32] | None = None,
    bias: npt.NDArray[np.float32] | None = None,
) -> TileValue:
    lhs, lhs_scale, rhs, rhs_scale = operands
    rows, depth = lhs.codes.shape
    columns = rhs.codes.shape[1]
    if rhs.codes.shape[0] != depth:
        message = (
            "the valid K must be the same on both sides, but lhs has "
            f"{depth} and rhs has {rhs.codes.shape[0]}"
        )
        raise run.site.value_error(message)
    result = matmul_mx(
        lhs.codes,
        lhs_scale.codes[:rows],
        rhs.codes,
        rhs_scale.codes[:, :columns],
        a_dtype=lhs.dtype,
        b_dtype=rhs.dtype,
        acc=acc,
        bias=bias,
        sum=run.sum,
    )
    return TileValue(result.view(np.uint32), DType.Float32)


def multiply_tensors(run: Evaluation, lhs: MXArray, rhs: MXArray) -> TensorValue:
    """Multiply two whole block-scaled arrays, from +0."""
    result = matmul_arrays(lhs, rhs, sum=run.sum)
    return TensorValue(result.view(np.uint32).reshape(-1), DType.Float32, result.shape)


def create(run: Evaluation, shape: Ints) -> TensorValue:
    """Make a tensor of zero bytes."""
    assert isinstance(run.result_type, TensorType), run.result_type
    dtype = run.result_type.dtype
    return TensorValue(empty_buffer(shape, dtype), dtype, shape, run.result_type.layout)


def view(
    run: Evaluation, tensor: TensorValue, shape: Ints | None = None, valid: Ints | None = None
) -> TensorValue:
    """Look at the same bytes in another shape or layout."""
    del shape, valid
    assert isinstance(run.result_type, TensorType), run.result_type
    extents = run.extents(run.result_type.shape)
    return TensorValue(tensor.buffer, tensor.dtype, extents, run.result_type.layout)
