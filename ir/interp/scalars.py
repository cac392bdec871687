"""Scalar arithmetic as the scalar unit does it: integers wrap, floats round to their dtype."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..binding import Scalar, rounded
from ..dtypes import DType
from ..dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from ..errors import IRValueError
from ..expr import (
    BinaryExpr,
    BitShiftLeft,
    BitShiftRight,
    Cast,
    FloorDiv,
    FloorMod,
    ScalarType,
    UnaryExpr,
)

if TYPE_CHECKING:
    from ..dtypes import SimpleDType


def in_range(value: Scalar, dtype: SimpleDType) -> Scalar:
    """Return `value` as a scalar of `dtype` holds it: integers wrapped, floats rounded."""
    if dtype is DType.Bool:
        return bool(value)
    if dtype in INTEGER_FORMATS:
        row = INTEGER_FORMATS[dtype]
        return (int(value) - row.min) % (1 << row.bits) + row.min
    if dtype in FLOAT_FORMATS:
        return rounded(float(value), dtype)
    return value


def evaluate_binary(node: BinaryExpr, left: Scalar, right: Scalar) -> Scalar:
    """Return the value of a binary operator.

    Raises:
        IRValueError: For an integer division by zero, or a shift by a negative number.
    """
    operand = node.left.type
    assert isinstance(operand, ScalarType), operand
    if isinstance(node, FloorDiv | FloorMod) and right == 0:
        message = f"The divisor of {node.symbol!r} must not be zero"
        raise IRValueError(message, node.span)
    if isinstance(node, BitShiftLeft | BitShiftRight):
        right = _shift_count(node, int(right))
    if operand.dtype in FLOAT_FORMATS:
        with np.errstate(all="ignore"):
            result = node.evaluate(np.float64(left), np.float64(right)).item()
    else:
        result = node.evaluate(left, right)
    return in_range(result, node.dtype)


def _shift_count(node: BinaryExpr, count: int) -> int:
    if count < 0:
        message = f"The count of {node.symbol!r} must not be negative, but is {count}"
        raise IRValueError(message, node.span)
    return min(count, node.dtype.bits)


def evaluate_unary(node: UnaryExpr, operand: Scalar) -> Scalar:
    """Return the value of a unary operator; a float cast to an integer drops its fraction.

    Raises:
        IRValueError: For a cast of a NaN or an infinity to an integer.
    """
    if isinstance(node, Cast) and node.dtype in INTEGER_FORMATS and isinstance(operand, float):
        if not math.isfinite(operand):
            message = f"A cast to {node.dtype.name} must be of a finite number, not {operand}"
            raise IRValueError(message, node.span)
        return in_range(math.trunc(operand), node.dtype)
    return in_range(node.evaluate(operand), node.dtype)
