"""What each op means on numpy values: the golden answer is made of these functions.

Each gets the evaluation and the values of its operands: a tensor, an MXArray for a tensor of a
compound dtype, a tile, a tuple of integers, or an integer.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np

from ..cast_mode import CastMode
from ..dtypes import BFloat16, DType, Float16
from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..numerics.array_matmul import matmul_arrays
from ..numerics.cast import cast_codes
from ..numerics.convert import float32_to_bfloat16, float32_to_float16
from ..numerics.functions import Binary, Unary, binary, scalar_code, unary
from ..numerics.reference import matmul_mx
from ..placement import window_positions
from ..types import SCALE_ARRANGEMENT, MemorySpace, TensorLayout, TensorType, TileType
from .checks import LOADED_LESS, STORED_LESS, is_mx_blocked, is_nz_blocked
from .rules_window import steps_into
from .values import NO_TASK, TensorValue, TileValue, empty_buffer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

    from ..dtypes import SimpleDType
    from ..numerics.mxarray import MXArray
    from .values import Evaluation

Ints = tuple[int, ...]


def load(
    run: Evaluation, tensor: TensorValue, offsets: Ints, window: Ints, valid: Ints
) -> TileValue:
    """Read the valid part of a window."""
    assert isinstance(run.result_type, TileType), run.result_type
    source = run.call.args[0].type
    assert isinstance(source, TensorType), source
    if is_mx_blocked(source):
        extents = run.extents(run.result_type.valid_shape)
        boxes = tensor.buffer[_window(run, tensor, offsets, window)]
        logical = _unboxed(boxes, tensor.layout)
        return TileValue(logical[: extents[0], : extents[1]], tensor.dtype)
    if is_nz_blocked(source):
        boxes = tensor.buffer[_window(run, tensor, offsets, window)]
        whole = boxes.transpose(0, 2, 3, 1, 4).reshape(run.extents(run.result_type.shape))
        return TileValue(whole, tensor.dtype)
    check_valid(run, valid, window)
    limits = run.extents(source.valid_shape) or tensor.shape
    extents = clamped(offsets, valid, limits) if run.site.kwargs.get("clamp") else valid
    codes = tensor.buffer[_window(run, tensor, offsets, extents, limits)]
    if len(run.result_type.shape) != codes.ndim:
        codes = codes.reshape(prod(codes.shape[:-1]), codes.shape[-1])
    return TileValue(codes, tensor.dtype)


def _window(
    run: Evaluation,
    tensor: TensorValue,
    offsets: Ints,
    extents: Sequence[int],
    limits: Sequence[int] = (),
) -> npt.NDArray[np.int64]:
    """Return the places of a window, after a check that it lies within the tensor's `limits`."""
    hint = LOADED_LESS if run.site.row.name == "tile.load" else STORED_LESS
    check_window(run, limits or tensor.shape, offsets, extents, hint=hint)
    cuts = [slice(start, start + size) for start, size in zip(offsets, extents, strict=True)]
    return window_positions(tensor.positions, cuts)


def clamped(offsets: Ints, extents: Sequence[int], limits: Sequence[int]) -> Ints:
    """Return what of a window lies within the extents `limits`."""
    sizes = zip(offsets, extents, limits, strict=True)
    return tuple(max(0, min(size, limit - start)) for start, size, limit in sizes)


def check_window(
    run: Evaluation,
    limits: Sequence[int],
    offsets: Ints,
    extents: Sequence[int],
    *,
    hint: str | None = None,
) -> None:
    """Refuse a window that is not within a tensor of the extents `limits`."""
    for axis, (start, size, dim) in enumerate(zip(offsets, extents, limits, strict=True)):
        if start < 0 or (size > 0 and start + size > dim):
            message = (
                f"the window must lie within the tensor, but takes {size} elements from offset "
                f"{start} on axis {axis}, which has {dim}"
            )
            raise run.site.value_error(message, hint if start >= 0 else None)


def check_valid(run: Evaluation, valid: Sequence[int], window: Sequence[int]) -> None:
    """Refuse what is valid of a window to be more than that window, which only the run can tell."""
    for axis, (size, limit) in enumerate(zip(valid, window, strict=True)):
        if not 0 <= size <= limit:
            message = f"valid_shape must be in 0..{limit} on axis {axis}, not {size}"
            raise run.site.value_error(message)


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
    codes = _through_fixpipe(run, tile, tensor.dtype)
    if is_mx_blocked(run.call.args[2].type):
        codes = _boxed(codes, tensor.layout)
    elif window is not None:
        codes = _in_tile_order(run.call.args[0].type, codes)
        if codes.size != prod(window):
            message = (
                f"shapes must hold the {codes.size} valid elements of the tile, not {prod(window)}"
            )
            raise run.site.value_error(message)
        codes = codes.reshape(window)
    tensor.buffer[_window(run, tensor, offsets, codes.shape)] = codes
    return tensor


def _through_fixpipe(run: Evaluation, tile: TileValue, dtype: DType) -> npt.NDArray[Any]:
    """Return a tile's codes as `dtype`, multiplied and cut off at zero before as the call says."""
    scale = run.site.kwargs.get("pre_quant")
    if scale is not None:
        by = scalar_code(scale, DType.Float32)
        tile = TileValue(binary(Binary.MUL, tile.codes, by, DType.Float32), tile.dtype)
    if run.site.kwargs.get("pre_relu"):
        tile = TileValue(unary(Unary.RELU, tile.codes, DType.Float32), tile.dtype)
    return converted(tile, dtype)


def _in_tile_order(type_: object, codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return codes in the order in which a tile has them: scales that lie in boxes, box by box."""
    assert isinstance(type_, TileType), type_
    arrangement = type_.get_effective_tile_view().arrangement
    for layout, boxes in SCALE_ARRANGEMENT.items():
        if arrangement == boxes:
            return _boxed(codes, layout)
    return codes


def converted(tile: TileValue, dtype: DType) -> npt.NDArray[Any]:
    """Return a tile's codes as the fixpipe writes them into a tensor of `dtype`."""
    if dtype is tile.dtype:
        return tile.codes
    assert tile.dtype is DType.Float32, (tile.dtype, dtype)
    if dtype is Float16:
        return float32_to_float16(tile.floats)
    if dtype is BFloat16:
        return float32_to_bfloat16(tile.floats)
    return cast_codes(tile.codes, DType.Float32, cast("SimpleDType", dtype), CastMode.rint)


def move(run: Evaluation, tile: TileValue) -> TileValue:
    """Hand the tile on; UInt8 scales become E8M0, and sums what the call says."""
    assert isinstance(run.result_type, TileType), run.result_type
    dtype = run.result_type.dtype
    source = run.call.args[0].type
    assert isinstance(source, TileType), source
    if source.memory_space is MemorySpace.Acc:
        return TileValue(_through_fixpipe(run, tile, dtype), dtype)
    return TileValue(tile.codes, dtype)


def extract(run: Evaluation, tile: TileValue, row: int, col: int, shape: Ints) -> TileValue:
    """Cut a window out of a tile; UInt8 scales become E8M0."""
    del shape
    assert isinstance(run.result_type, TileType), run.result_type
    target: MemorySpace = run.site.kwargs["target_memory"]
    extents = run.extents(run.result_type.valid_shape)
    source = run.site.args[0].type
    assert isinstance(source, TileType), source
    starts, steps = (row, col), steps_into(source, target)
    for axis, (start, size, has) in enumerate(zip(starts, extents, tile.codes.shape, strict=True)):
        if start < 0 or start % steps[axis] or start + size > has:
            message = (
                f"the window must begin at a multiple of {steps[axis]} and end within the {has} valid "
                f"elements of axis {axis}, but takes {size} from {start} on"
            )
            raise run.site.value_error(message)
    window = tile.codes[row : row + extents[0], col : col + extents[1]]
    return TileValue(window, run.result_type.dtype)


def bind_scale(run: Evaluation, scale: TileValue, data: TileValue) -> TileValue:
    """Hand the scale tile on: where it lies changes no value."""
    del run, data
    return scale


def multiply(
    run: Evaluation, lhs: TileValue, lhs_scale: TileValue, rhs: TileValue, rhs_scale: TileValue
) -> TileValue:
    """Multiply two block-scaled tiles, from +0."""
    return product(run, (lhs, lhs_scale, rhs, rhs_scale))


def multiply_acc(
    run: Evaluation,
    acc: TileValue,
    lhs: TileValue,
    lhs_scale: TileValue,
    rhs: TileValue,
    rhs_scale: TileValue,
) -> TileValue:
    """Multiply two block-scaled tiles, from what the accumulator holds."""
    return product(run, (lhs, lhs_scale, rhs, rhs_scale), acc=acc.floats)


def multiply_bias(
    run: Evaluation,
    lhs: TileValue,
    lhs_scale: TileValue,
    rhs: TileValue,
    rhs_scale: TileValue,
    bias: TileValue,
) -> TileValue:
    """Multiply two block-scaled tiles, from a row of biases."""
    return product(run, (lhs, lhs_scale, rhs, rhs_scale), bias=bias.floats)


def product(
    run: Evaluation,
    operands: tuple[TileValue, TileValue, TileValue, TileValue],
    *,
    acc: npt.NDArray[np.float32] | None = None,
    bias: npt.NDArray[np.float32] | None = None,
) -> TileValue:
    """Return the product of two operands and their scales, from `acc`, from `bias`, or from +0."""
    lhs, lhs_scale, rhs, rhs_scale = operands
    left, right = _matrix(lhs.codes), _matrix(rhs.codes)
    rows, depth = left.shape
    columns = right.shape[1]
    if right.shape[0] != depth:
        message = (
            "the valid K must be the same on both sides, but lhs has "
            f"{depth} and rhs has {right.shape[0]}"
        )
        raise run.site.value_error(message)
    result = matmul_mx(
        left,
        lhs_scale.codes[:rows],
        right,
        rhs_scale.codes[:, :columns],
        a_dtype=lhs.dtype,
        b_dtype=rhs.dtype,
        acc=None if acc is None else _matrix(acc),
        bias=bias,
        sum=run.sum,
    )
    ones = (1,) * (lhs.codes.ndim - 2)
    return TileValue(result.view(np.uint32).reshape(ones + result.shape), DType.Float32)


def _matrix(codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a matrix without the axes of one element before it."""
    return codes.reshape(codes.shape[-2], codes.shape[-1])


def multiply_tensors(run: Evaluation, lhs: MXArray, rhs: MXArray) -> TensorValue:
    """Multiply two whole block-scaled arrays, from +0."""
    result = matmul_arrays(lhs, rhs, sum=run.sum)
    return TensorValue(result.view(np.uint32).reshape(-1), DType.Float32, result.shape)


def multiply_tensors_acc(
    run: Evaluation, acc: TensorValue, lhs: MXArray, rhs: MXArray
) -> TensorValue:
    """Multiply two whole block-scaled arrays, from what another tensor holds."""
    everything = window_positions(acc.positions, [slice(None)] * len(acc.shape))
    start = acc.buffer[everything].view(np.float32)
    result = matmul_arrays(lhs, rhs, acc=start, sum=run.sum)
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


def block_index(run: Evaluation) -> int:
    """Return which block runs."""
    return run.progress.block


def block_count(run: Evaluation) -> int:
    """Return how many blocks the grid has."""
    return run.progress.blocks


def subblock_index(run: Evaluation) -> int:
    """Return 0: a cube core stands alone in its group."""
    del run
    return 0


def no_task(run: Evaluation) -> int:
    """Return the TASK_ID of no launch."""
    del run
    return NO_TASK


def join_tasks(run: Evaluation, deps: Ints) -> int:
    """Return a new TASK_ID: everything before has been done here already."""
    del deps
    return run.progress.new_task()
