"""What the matmuls of whole tensors mean on numpy values, whatever their dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..numerics.mxarray import MXArray
from ..types import TensorType
from . import meaning, meaning_matmul
from .meaning_tensors import fresh, whole
from .rules_tensor_matmul import TRANSPOSED
from .values import TensorValue, TileValue

if TYPE_CHECKING:
    from .values import Evaluation

    Operand = MXArray | TensorValue


def multiply(run: Evaluation, lhs: Operand, rhs: Operand) -> TensorValue:
    """Multiply two matrices, from +0."""
    if isinstance(lhs, MXArray) and isinstance(rhs, MXArray):
        return meaning.multiply_tensors(run, lhs, rhs)
    product = meaning_matmul.multiply(run, *_turned(run, lhs, rhs))
    assert isinstance(run.result_type, TensorType), run.result_type
    dtype = run.result_type.dtype
    return fresh(TileValue(meaning.converted(product, dtype), dtype))


def multiply_acc(
    run: Evaluation, acc: TensorValue, lhs: Operand, rhs: Operand, init: bool = False
) -> TensorValue:
    """Multiply two matrices, from what another one holds, or from +0 where the condition holds."""
    if isinstance(lhs, MXArray) and isinstance(rhs, MXArray):
        return meaning.multiply_tensors_acc(run, acc, lhs, rhs)
    left, right = _turned(run, lhs, rhs)
    return fresh(meaning_matmul.multiply_acc(run, whole(acc), left, right, init))


def multiply_bias(
    run: Evaluation, lhs: TensorValue, rhs: TensorValue, bias: TensorValue
) -> TensorValue:
    """Multiply two matrices, from a row of biases."""
    return fresh(meaning_matmul.multiply_bias(run, *_turned(run, lhs, rhs), whole(bias)))


def _turned(run: Evaluation, lhs: Operand, rhs: Operand) -> tuple[TileValue, TileValue]:
    """Return two operands as [M, K] and [K, N]."""
    assert isinstance(lhs, TensorValue), lhs
    assert isinstance(rhs, TensorValue), rhs
    row, kwargs = run.site.row, run.site.kwargs
    turned: list[TileValue] = []
    for flag, tensor in zip(TRANSPOSED, (lhs, rhs), strict=True):
        tile = whole(tensor)
        if flag in row.by_name and row.attribute(kwargs, flag):
            tile = TileValue(tile.codes.T, tile.dtype)
        turned.append(tile)
    return turned[0], turned[1]
