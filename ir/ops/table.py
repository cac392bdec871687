"""The one table of operations: a row an op."""

from __future__ import annotations

from ..dtypes import DType
from ..types import MemorySpace, TensorLayout, TileLayout
from . import meaning, rules_matmul, rules_memory, rules_tensor
from .row import Attribute, Operand, OperandKind, OpRow

_TENSOR, _TILE, _TUPLE = OperandKind.TENSOR, OperandKind.TILE, OperandKind.TUPLE


def _tile(name: str, space: MemorySpace) -> Operand:
    return Operand(name, _TILE, (space,))


_MX_OPERANDS = (
    _tile("lhs", MemorySpace.Left),
    _tile("lhs_scale", MemorySpace.LeftScale),
    _tile("rhs", MemorySpace.Right),
    _tile("rhs_scale", MemorySpace.RightScale),
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
        infer_blocked=rules_memory.infer_blocked_load,
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
        attributes=(),
        infer=rules_memory.infer_store,
        infer_blocked=rules_memory.infer_blocked_store,
        meaning=meaning.store,
        doc="Copies the valid part of a tile into a tensor and gives the tensor's new value.",
        output_memory=MemorySpace.DDR,
        reuses=2,
        has_effect=True,
    ),
    OpRow(
        name="tile.move",
        operands=(Operand("tile", _TILE),),
        attributes=(
            Attribute("target_memory", MemorySpace, required=True),
            Attribute("blayout", TileLayout),
            Attribute("slayout", TileLayout),
        ),
        infer=rules_memory.infer_move,
        meaning=meaning.move,
        doc="Copies a tile into another on-chip memory, in the arrangement that it expects.",
    ),
    OpRow(
        name="tile.tget_scale_addr",
        operands=(Operand("scale", _TILE), Operand("data", _TILE)),
        attributes=(),
        infer=rules_memory.infer_scale_address,
        meaning=meaning.bind_scale,
        doc="Binds a scale tile to the address that its data tile implies.",
        reuses=0,
        public=False,
    ),
    OpRow(
        name="tile.matmul_mx",
        operands=_MX_OPERANDS,
        attributes=(),
        infer=rules_matmul.infer_matmul_mx,
        meaning=meaning.multiply,
        doc="Multiplies two block-scaled tiles.",
        output_memory=MemorySpace.Acc,
    ),
    OpRow(
        name="tile.matmul_mx_acc",
        operands=(_tile("acc", MemorySpace.Acc), *_MX_OPERANDS),
        attributes=(),
        infer=rules_matmul.infer_matmul_mx_acc,
        meaning=meaning.multiply_acc,
        doc="Adds the product of two block-scaled tiles to an accumulator.",
        output_memory=MemorySpace.Acc,
        reuses=0,
    ),
    OpRow(
        name="tile.matmul_mx_bias",
        operands=(*_MX_OPERANDS, _tile("bias", MemorySpace.Bias)),
        attributes=(),
        infer=rules_matmul.infer_matmul_mx_bias,
        meaning=meaning.multiply_bias,
        doc="Multiplies two block-scaled tiles, starting from a row of biases.",
        output_memory=MemorySpace.Acc,
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
        doc="Makes a tensor in global memory.",
        output_memory=MemorySpace.DDR,
    ),
    OpRow(
        name="tensor.matmul",
        operands=(
            Operand("lhs", _TENSOR, compound=True),
            Operand("rhs", _TENSOR, compound=True),
        ),
        attributes=(
            Attribute("out_dtype", DType, default=DType.Float32),
            Attribute("a_trans", bool, default=False),
            Attribute("b_trans", bool, default=False),
            Attribute("c_matrix_nz", bool, default=False),
        ),
        infer=rules_tensor.infer_matmul,
        meaning=meaning.multiply_tensors,
        doc="Multiplies two tensors of block-scaled dtypes.",
        output_memory=MemorySpace.DDR,
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
)

ROWS: dict[str, OpRow] = {row.name: row for row in _ROWS}
"""Every operation by its full name."""

assert len(ROWS) == len(_ROWS), "two rows have one name"
for _row in _ROWS:
    assert _row.reuses is None or _row.reuses < len(_row.operands), _row.name
    assert _row.doc.endswith("."), _row.name
