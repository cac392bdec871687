"""The one table of operations: a row an op."""

from __future__ import annotations

from ..dtypes import DType
from ..types import MemorySpace, TensorLayout, TileLayout
from . import (
    meaning,
    meaning_shapes,
    meaning_tensor_matmul,
    meaning_tensors,
    rules_control,
    rules_forms,
    rules_memory,
    rules_moves,
    rules_quant,
    rules_tensor,
    rules_tensor_matmul,
    rules_tensor_mx,
    rules_window,
)
from .row import Attribute, Operand, OperandKind, OpRow
from .table_matmul import MATMUL_ROWS, MX_PAIR, MX_ROWS
from .table_quant import QUANT_STEP_ROWS
from .table_shapes import SHAPE_ROWS, SLICE_ATTRIBUTES
from .table_vector import VECTOR_ROWS, tile

_TENSOR, _TILE, _TUPLE = OperandKind.TENSOR, OperandKind.TILE, OperandKind.TUPLE
_MX_TENSORS = tuple(Operand(each.name, _TENSOR) for each in MX_PAIR)
_QUANT_ATTRIBUTES = (
    Attribute("group_axis", int),
    Attribute("dtype", DType, default=DType.E4M3),
    Attribute("layout", TensorLayout),
    Attribute("rule", str, default="floor"),
)

_ROWS = (
    OpRow(
        name="tile.load",
        operands=(
            Operand("tensor", _TENSOR),
            Operand("offsets", _TUPLE),
            Operand("shapes", _TUPLE),
            Operand("valid_shape", _TUPLE, optional=True),
        ),
        attributes=(
            Attribute("target_memory", MemorySpace),
            Attribute("clamp", bool, default=False),
        ),
        infer=rules_memory.infer_load,
        infer_blocked=rules_forms.infer_load_form,
        complete=rules_memory.complete_load,
        kernel_default=rules_memory.default_load_target,
        meaning=meaning.load,
        doc="Copies a window of a tensor into an on-chip memory.",
    ),
    OpRow(
        name="tile.store",
        operands=(
            Operand("tile", _TILE),
            Operand("offsets", _TUPLE),
            Operand("output_tensor", _TENSOR),
            Operand("shapes", _TUPLE, optional=True),
        ),
        attributes=(
            Attribute("pre_quant", float, read=rules_memory.read_pre_quant),
            Attribute("pre_relu", bool, default=False),
        ),
        infer=rules_memory.infer_store,
        infer_blocked=rules_forms.infer_store_form,
        meaning=meaning.store,
        doc=(
            "Copies the valid part of a tile into a tensor and gives the tensor's new value. On their "
            "way, sums of an accumulator are multiplied by pre_quant, a number, and with pre_relu "
            "negative ones become +0; those that have a pre_quant may also be stored in 8 bits, where "
            "they saturate."
        ),
        output_memory=MemorySpace.DDR,
        reuses=2,
        has_effect=True,
        instead="a tensor is put into another one by pl.assemble(target, source, offset)",
    ),
    OpRow(
        name="tile.move",
        operands=(Operand("tile", _TILE),),
        attributes=(
            Attribute("target_memory", MemorySpace, required=True),
            Attribute("blayout", TileLayout),
            Attribute("slayout", TileLayout),
            Attribute("dtype", DType),
            Attribute("pre_quant", float, read=rules_memory.read_pre_quant),
            Attribute("pre_relu", bool, default=False),
        ),
        infer=rules_moves.infer_move,
        meaning=meaning.move,
        doc="Copies a tile into another on-chip memory, in the arrangement that it expects; boxes of "
        "scales stay what they are. Sums that leave Acc for Mat or Vec may become another dtype, with "
        "pre_quant and pre_relu as a store has them.",
    ),
    OpRow(
        name="tile.extract",
        operands=(
            Operand("src", _TILE, (MemorySpace.Mat,)),
            Operand("index_row", OperandKind.SCALAR),
            Operand("index_col", OperandKind.SCALAR),
            Operand("shape", _TUPLE),
        ),
        attributes=(Attribute("target_memory", MemorySpace, required=True),),
        infer=rules_window.infer_extract,
        meaning=meaning.extract,
        doc="Copies a window of a tile in Mat into a memory of the cube, in its arrangement.",
    ),
    OpRow(
        name="tile.tget_scale_addr",
        operands=(Operand("scale", _TILE), Operand("data", _TILE)),
        attributes=(),
        infer=rules_moves.infer_scale_address,
        meaning=meaning.bind_scale,
        doc="Binds a scale tile to the address that its data tile implies.",
        reuses=0,
        renames=True,
        public=False,
    ),
    *MX_ROWS,
    OpRow(
        name="tile.quant_mx",
        operands=(tile("src"),),
        attributes=_QUANT_ATTRIBUTES,
        infer=rules_quant.infer_tile,
        kernel_default=rules_quant.default_group_axis,
        meaning=meaning_tensors.quantize_tile,
        doc="Quantises a tile to MX: elements, and one scale for 32 of them along K. With `group_axis=0`, N "
        "is a multiple of 32; of FP4, whose rows then take whole 32 bytes, one of 64.",
        output_memory=MemorySpace.Vec,
        vector=True,
    ),
    OpRow(
        name="tensor.create",
        operands=(Operand("shape", _TUPLE),),
        attributes=(
            Attribute("dtype", DType, required=True),
            Attribute("layout", TensorLayout, default=TensorLayout.ND),
        ),
        infer=rules_tensor.infer_create,
        infer_blocked=rules_tensor.infer_blocked_create,
        meaning=meaning.create,
        doc="Makes a tensor in global memory, which holds nothing until it is written.",
        output_memory=MemorySpace.DDR,
    ),
    OpRow(
        name="tensor.matmul",
        operands=(
            Operand("lhs", _TENSOR, compound=True),
            Operand("rhs", _TENSOR, compound=True),
        ),
        attributes=(
            Attribute("out_dtype", DType),
            Attribute("a_trans", bool, default=False),
            Attribute("b_trans", bool, default=False),
            Attribute("c_matrix_nz", bool, default=False),
        ),
        infer=rules_tensor_matmul.infer_matmul,
        meaning=meaning_tensor_matmul.multiply,
        doc="Multiplies two tensors, of block-scaled dtypes or of those that the cube multiplies.",
        output_memory=MemorySpace.DDR,
        instead="tiles are multiplied by pl.matmul_mx, each with the tile of its scales",
    ),
    OpRow(
        name="tensor.matmul_acc",
        operands=(
            Operand("acc", _TENSOR),
            Operand("lhs", _TENSOR, compound=True),
            Operand("rhs", _TENSOR, compound=True),
            Operand("init_cond", OperandKind.SCALAR, optional=True),
        ),
        attributes=(
            Attribute("a_trans", bool, default=False),
            Attribute("b_trans", bool, default=False),
        ),
        order=("acc", "lhs", "rhs", "a_trans", "b_trans", "init_cond"),
        infer=rules_tensor_matmul.infer_matmul_acc,
        meaning=meaning_tensor_matmul.multiply_acc,
        doc="Adds the product of two tensors to a third one, in a fresh tensor; where init_cond holds, "
        "the product alone.",
        output_memory=MemorySpace.DDR,
        instead="tiles are multiplied by pl.matmul_mx_acc, each with the tile of its scales",
    ),
    OpRow(
        name="tensor.matmul_bias",
        operands=(Operand("lhs", _TENSOR), Operand("rhs", _TENSOR), Operand("bias", _TENSOR)),
        attributes=(
            Attribute("a_trans", bool, default=False),
            Attribute("b_trans", bool, default=False),
        ),
        infer=rules_tensor_matmul.infer_matmul_bias,
        meaning=meaning_tensor_matmul.multiply_bias,
        doc="Multiplies two tensors, starting from a row of biases.",
        output_memory=MemorySpace.DDR,
    ),
    OpRow(
        name="tensor.matmul_mx",
        operands=_MX_TENSORS,
        attributes=(),
        infer=rules_tensor_mx.infer_matmul_mx,
        meaning=meaning_tensors.multiply,
        doc="Multiplies two tensors whose scales are tensors of their own.",
        output_memory=MemorySpace.DDR,
    ),
    OpRow(
        name="tensor.matmul_mx_acc",
        operands=(Operand("acc", _TENSOR), *_MX_TENSORS),
        attributes=(),
        infer=rules_tensor_mx.infer_matmul_mx_acc,
        meaning=meaning_tensors.multiply_acc,
        doc="Adds the product of two block-scaled tensors to a third one, in a fresh tensor.",
        output_memory=MemorySpace.DDR,
    ),
    OpRow(
        name="tensor.matmul_mx_bias",
        operands=(*_MX_TENSORS, Operand("bias", _TENSOR)),
        attributes=(),
        infer=rules_tensor_mx.infer_matmul_mx_bias,
        meaning=meaning_tensors.multiply_bias,
        doc="Multiplies two block-scaled tensors, starting from a row of biases.",
        output_memory=MemorySpace.DDR,
    ),
    OpRow(
        name="tensor.quant_mx",
        operands=(Operand("src", _TENSOR),),
        attributes=_QUANT_ATTRIBUTES,
        infer=rules_quant.infer_tensor,
        kernel_default=rules_quant.default_group_axis,
        meaning=meaning_tensors.quantize_tensor,
        doc="Quantises a tensor to MX: elements, and scales in the MX layout of their side.",
        output_memory=MemorySpace.DDR,
        vector=True,
    ),
    OpRow(
        name="tensor.assemble",
        operands=(
            Operand("target", _TENSOR),
            Operand("source", _TENSOR),
            Operand("offset", _TUPLE),
        ),
        attributes=(),
        infer=rules_tensor.infer_assemble,
        meaning=meaning_tensors.assemble,
        doc="Writes one tensor into a window of another and gives that one's new value.",
        output_memory=MemorySpace.DDR,
        reuses=0,
        has_effect=True,
        instead="a tile is put into a tensor by pl.store(tile, offsets, output_tensor)",
    ),
    OpRow(
        name="tensor.slice",
        operands=(
            Operand("tensor", _TENSOR, compound=True),
            Operand("shape", _TUPLE),
            Operand("offset", _TUPLE),
            Operand("valid_shape", _TUPLE, optional=True),
        ),
        attributes=SLICE_ATTRIBUTES,
        infer=rules_tensor.infer_slice,
        meaning=meaning_shapes.cut_tensor,
        doc="Takes a window of a tensor as it is now.",
        output_memory=MemorySpace.DDR,
    ),
    OpRow(
        name="tensor.slice_scales",
        operands=(
            Operand("tensor", _TENSOR),
            Operand("shape", _TUPLE),
            Operand("offset", _TUPLE),
        ),
        attributes=(),
        infer=rules_tensor.infer_slice_scales,
        meaning=meaning_tensors.cut,
        doc="Takes a window of an MX scale tensor, beside one of the elements that they scale.",
        output_memory=MemorySpace.DDR,
        public=False,
    ),
    OpRow(
        name="tensor.view",
        operands=(
            Operand("tensor", _TENSOR),
            Operand("shape", _TUPLE, optional=True),
            Operand("valid_shape", _TUPLE, optional=True),
        ),
        attributes=(Attribute("layout", TensorLayout),),
        infer=rules_tensor.infer_view,
        infer_blocked=rules_tensor.infer_blocked_view,
        meaning=meaning.view,
        doc="Looks at a tensor's bytes in another shape or layout.",
        output_memory=MemorySpace.DDR,
        reuses=0,
    ),
    OpRow(
        name="tile.get_block_idx",
        operands=(),
        attributes=(),
        infer=rules_control.infer_block,
        meaning=meaning.block_index,
        doc="Which block of its launch this is, from 0; 0 outside of a grid.",
    ),
    OpRow(
        name="tile.get_block_num",
        operands=(),
        attributes=(),
        infer=rules_control.infer_block,
        meaning=meaning.block_count,
        doc="How many blocks the launch has; 1 outside of a grid.",
    ),
    OpRow(
        name="tile.get_subblock_idx",
        operands=(),
        attributes=(),
        infer=rules_control.infer_block,
        meaning=meaning.subblock_index,
        doc="Which vector core of its group this is: always 0 on a cube core.",
    ),
    OpRow(
        name="system.task_invalid",
        operands=(),
        attributes=(),
        infer=rules_control.infer_task,
        meaning=meaning.no_task,
        doc="Names no launch: to depend on it is to wait for nothing.",
    ),
    OpRow(
        name="system.task_dummy",
        operands=(Operand("deps", OperandKind.TASKS),),
        attributes=(),
        infer=rules_control.infer_task,
        meaning=meaning.join_tasks,
        doc="Names a launch of nothing that is done when all of its dependencies are.",
    ),
    *VECTOR_ROWS,
    *SHAPE_ROWS,
    *MATMUL_ROWS,
    *QUANT_STEP_ROWS,
)

ROWS: dict[str, OpRow] = {row.name: row for row in _ROWS}
"""Every operation by its full name."""

assert len(ROWS) == len(_ROWS), "two rows have one name"
for _row in _ROWS:
    assert _row.reuses is None or _row.reuses < len(_row.operands), _row.name
    assert _row.reuses is not None or not _row.renames, _row.name
    assert _row.doc.endswith("."), _row.name
