"""What the block-scaled ops mean on numpy values where they take or make whole tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType, SimpleDType
from ..numerics.block_format import block_format_of
from ..numerics.mxarray import MXArray
from ..numerics.scales import pack_scales_a, pack_scales_b
from ..placement import window_positions
from ..types import TensorLayout, TensorType, TileType, TupleType
from .meaning import check_window, product, store
from .meaning_quant import quantised
from .rules_quant import group_axis
from .values import TensorValue, TileValue

if TYPE_CHECKING:
    from .values import Evaluation


def whole(tensor: TensorValue) -> TileValue:
    """Return all of a tensor, in logical order."""
    everything = [slice(None)] * len(tensor.shape)
    return TileValue(tensor.buffer[window_positions(tensor.positions, everything)], tensor.dtype)


def fresh(tile: TileValue) -> TensorValue:
    """Return a fresh tensor, row-major, of what a tile holds."""
    return TensorValue(tile.codes.reshape(-1).copy(), tile.dtype, tile.codes.shape)


def multiply(
    run: Evaluation,
    lhs: TensorValue,
    lhs_scale: TensorValue,
    rhs: TensorValue,
    rhs_scale: TensorValue,
) -> TensorValue:
    """Multiply two block-scaled tensors, from +0."""
    return fresh(product(run, _operands(lhs, lhs_scale, rhs, rhs_scale)))


def multiply_acc(
    run: Evaluation,
    acc: TensorValue,
    lhs: TensorValue,
    lhs_scale: TensorValue,
    rhs: TensorValue,
    rhs_scale: TensorValue,
) -> TensorValue:
    """Multiply two block-scaled tensors, from what another tensor holds."""
    operands = _operands(lhs, lhs_scale, rhs, rhs_scale)
    return fresh(product(run, operands, acc=whole(acc).floats))


def multiply_bias(
    run: Evaluation,
    lhs: TensorValue,
    lhs_scale: TensorValue,
    rhs: TensorValue,
    rhs_scale: TensorValue,
    bias: TensorValue,
) -> TensorValue:
    """Multiply two block-scaled tensors, from a row of biases."""
    operands = _operands(lhs, lhs_scale, rhs, rhs_scale)
    return fresh(product(run, operands, bias=whole(bias).floats))


def _operands(
    lhs: TensorValue, lhs_scale: TensorValue, rhs: TensorValue, rhs_scale: TensorValue
) -> tuple[TileValue, TileValue, TileValue, TileValue]:
    return whole(lhs), whole(lhs_scale), whole(rhs), whole(rhs_scale)


def quantize_tile(run: Evaluation, src: TileValue) -> tuple[TileValue, TileValue]:
    """Quantise a tile along its rows; along axis 0 what comes out is transposed."""
    assert isinstance(run.result_type, TupleType), run.result_type
    elements, scales = run.result_type.types
    assert isinstance(elements, TileType | TensorType), elements
    assert isinstance(scales, TileType | TensorType), scales
    assert isinstance(elements.dtype, SimpleDType), elements
    rule = run.site.row.attribute(run.site.kwargs, "rule")
    codes, scale_codes = quantised(src, elements.dtype, rule)
    if group_axis(run.site) == 0:
        codes, scale_codes = codes.T, scale_codes.T
    return TileValue(codes, elements.dtype), TileValue(scale_codes, DType.E8M0)


def quantize_tensor(run: Evaluation, src: TensorValue) -> tuple[TensorValue, TensorValue]:
    """Quantise a whole tensor; the scales stand in the boxes of their MX layout."""
    elements, scales = quantize_tile(run, whole(src))
    assert isinstance(run.result_type, TupleType), run.result_type
    made = run.result_type.types[1]
    assert isinstance(made, TensorType), made
    layout, shape = made.layout, scales.codes.shape
    pack = pack_scales_a if layout is TensorLayout.MX_A_ZZ else pack_scales_b
    boxes = TensorValue(pack(scales.codes), DType.E8M0, shape, layout)
    return fresh(elements), boxes


def cut(
    run: Evaluation,
    tensor: TensorValue | MXArray,
    shape: tuple[int, ...],
    offset: tuple[int, ...],
) -> TensorValue | MXArray:
    """Take a window of a tensor; one of a block-scaled array is made of whole blocks."""
    check_window(run, tensor.shape, offset, shape)
    if isinstance(tensor, MXArray):
        return _cut_blocks(run, tensor, shape, offset)
    cuts = [slice(start, start + size) for start, size in zip(offset, shape, strict=True)]
    codes = tensor.buffer[window_positions(tensor.positions, cuts)]
    match tensor.layout:
        case TensorLayout.MX_A_ZZ:
            return TensorValue(pack_scales_a(codes), tensor.dtype, shape, tensor.layout)
        case TensorLayout.MX_B_NN:
            return TensorValue(pack_scales_b(codes), tensor.dtype, shape, tensor.layout)
        case _:
            return fresh(TileValue(codes, tensor.dtype))


def _cut_blocks(
    run: Evaluation, array: MXArray, shape: tuple[int, ...], offset: tuple[int, ...]
) -> MXArray:
    axis, block = array.axis, block_format_of(array.dtype).block
    start, size = offset[axis], shape[axis]
    if start % block or size % block:
        message = (
            f"a window of {array.dtype.name} must be made of whole blocks: along axis {axis} its "
            f"offset and its extent must be multiples of {block}, not {start} and {size}"
        )
        raise run.site.value_error(message)
    cuts = [slice(o, o + n) for o, n in zip(offset, shape, strict=True)]
    elements = array.elements[tuple(cuts)]
    cuts[axis] = slice(start // block, (start + size) // block)
    scales = array.scales[tuple(cuts)]
    return MXArray(elements, scales, array.dtype, axis, array.tensor_scale)


def assemble(
    run: Evaluation, target: TensorValue, source: TensorValue, offset: tuple[int, ...]
) -> TensorValue:
    """Write one tensor into a window of another, as a store would."""
    return store(run, whole(source), offset, target)
