"""Rows of the matmuls on tiles without scales, and of the products of a row with a matrix."""

from __future__ import annotations

from ..types import MemorySpace
from . import meaning, meaning_matmul, rules_matmul, rules_plain_matmul
from .row import Attribute, Operand, OperandKind, OpRow


def _tile(name: str, space: MemorySpace) -> Operand:
    return Operand(name, OperandKind.TILE, (space,))


_PAIR = (_tile("lhs", MemorySpace.Left), _tile("rhs", MemorySpace.Right))
_MX_PAIR = (
    _PAIR[0],
    _tile("lhs_scale", MemorySpace.LeftScale),
    _PAIR[1],
    _tile("rhs_scale", MemorySpace.RightScale),
)
_ACC, _BIAS = _tile("acc", MemorySpace.Acc), _tile("bias", MemorySpace.Bias)
_PHASE = (Attribute("acc_phase", str, default="unspecified"),)

MATMUL_ROWS: tuple[OpRow, ...] = (
    OpRow(
        name="tile.matmul",
        operands=_PAIR,
        attributes=(),
        infer=rules_plain_matmul.infer_matmul,
        meaning=meaning_matmul.multiply,
        doc="Multiplies two tiles of FP16, BF16, FP32, FP8 or INT8.",
        output_memory=MemorySpace.Acc,
    ),
    OpRow(
        name="tile.matmul_acc",
        operands=(_ACC, *_PAIR, Operand("init_cond", OperandKind.SCALAR, optional=True)),
        attributes=(),
        infer=rules_plain_matmul.infer_matmul_acc,
        meaning=meaning_matmul.multiply_acc,
        doc="Adds the product of two tiles to an accumulator, or replaces it where init_cond holds.",
        output_memory=MemorySpace.Acc,
        reuses=0,
    ),
    OpRow(
        name="tile.matmul_bias",
        operands=(*_PAIR, _BIAS),
        attributes=(),
        infer=rules_plain_matmul.infer_matmul_bias,
        meaning=meaning_matmul.multiply_bias,
        doc="Multiplies two tiles, starting from a row of biases.",
        output_memory=MemorySpace.Acc,
    ),
    OpRow(
        name="tile.gemv",
        operands=_PAIR,
        attributes=_PHASE,
        infer=rules_plain_matmul.infer_matmul,
        meaning=meaning_matmul.multiply,
        doc="Multiplies a row with a tile.",
        output_memory=MemorySpace.Acc,
    ),
    OpRow(
        name="tile.gemv_acc",
        operands=(_ACC, *_PAIR),
        attributes=_PHASE,
        infer=rules_plain_matmul.infer_matmul_acc,
        meaning=meaning_matmul.multiply_acc,
        doc="Adds the product of a row and a tile to an accumulator.",
        output_memory=MemorySpace.Acc,
        reuses=0,
    ),
    OpRow(
        name="tile.gemv_bias",
        operands=(*_PAIR, _BIAS),
        attributes=_PHASE,
        infer=rules_plain_matmul.infer_matmul_bias,
        meaning=meaning_matmul.multiply_bias,
        doc="Multiplies a row with a tile, starting from a row of biases.",
        output_memory=MemorySpace.Acc,
    ),
    OpRow(
        name="tile.gemv_mx",
        operands=_MX_PAIR,
        attributes=(),
        infer=rules_matmul.infer_matmul_mx,
        meaning=meaning.multiply,
        doc="Multiplies a block-scaled row, whose scales are a plain row, with a block-scaled tile.",
        output_memory=MemorySpace.Acc,
    ),
    OpRow(
        name="tile.gemv_mx_acc",
        operands=(_ACC, *_MX_PAIR),
        attributes=(),
        infer=rules_matmul.infer_matmul_mx_acc,
        meaning=meaning.multiply_acc,
        doc="Adds the product of a block-scaled row and tile to an accumulator.",
        output_memory=MemorySpace.Acc,
        reuses=0,
    ),
    OpRow(
        name="tile.gemv_mx_bias",
        operands=(*_MX_PAIR, _BIAS),
        attributes=(),
        infer=rules_matmul.infer_matmul_mx_bias,
        meaning=meaning.multiply_bias,
        doc="Multiplies a block-scaled row with a block-scaled tile, starting from a row of biases.",
        output_memory=MemorySpace.Acc,
    ),
)
"""The rows."""
