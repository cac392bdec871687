"""Scalar arithmetic with casts: what a kernel's `a + b` becomes.

Both operands must be of one category. The wider dtype wins, the left one on ties, and the other side
gets a Cast; between INDEX and INT64, which are the same word, none is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import expr as nodes
from .dtypes import DType, Index, Int64, SimpleDType
from .dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from .errors import IRTypeError, Span
from .expr import (
    And,
    BinaryExpr,
    BitNot,
    Cast,
    ConstFloat,
    ConstInt,
    Expr,
    FloatDiv,
    Neg,
    Not,
    Or,
    ScalarType,
    wrap_int64,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS = (Index, Int64)
_INTEGERS_ONLY = (nodes.FloorDiv, nodes.FloorMod, nodes.BitShiftLeft, nodes.BitShiftRight)


def scalar_dtype(operand: Expr, what: str, span: Span | None = None) -> SimpleDType:
    """Return the dtype of a scalar; `what` names the operand in the error.

    Raises:
        IRTypeError: When `operand` is no scalar.
    """
    if not isinstance(operand.type, ScalarType):
        message = f"{what} must be a scalar, not {type(operand.type).__name__}"
        raise IRTypeError(message, span)
    return operand.type.dtype


def category(dtype: DType) -> str:
    """Return the word for the kind of scalar that `dtype` is: int, float, bool or opaque."""
    if dtype in INTEGER_FORMATS:
        return "int"
    if dtype in FLOAT_FORMATS:
        return "float"
    return "bool" if dtype is DType.Bool else "opaque"


def cast(operand: Expr, dtype: SimpleDType, span: Span | None = None) -> Expr:
    """Return `operand` as a scalar of `dtype`; the operand itself if it is one already.

    Raises:
        IRTypeError: When one of the two is no number.
    """
    found = scalar_dtype(operand, "What is cast", span)
    if found is dtype:
        return operand
    for side in (found, dtype):
        if category(side) == "opaque":
            message = f"A cast must be between numbers, not from {found.name} to {dtype.name}"
            raise IRTypeError(message, span)
    return Cast(operand, dtype, span or operand.span)


def binary(kind: type[BinaryExpr], left: Expr, right: Expr, span: Span | None = None) -> Expr:
    """Return the operator `kind` on two scalars, with the casts that it needs.

    Raises:
        IRTypeError: When the operands are of different categories, or not of the operator's.
    """
    where = span or left.span
    dtypes = [scalar_dtype(e, f"Each side of {kind.symbol!r}", where) for e in (left, right)]
    if kind in (And, Or):
        _want(dtypes, "bool", kind.symbol, where)
        return kind(left, right, DType.Bool, where)
    categories = {category(dtype) for dtype in dtypes}
    if len(categories) > 1 or not categories <= {"int", "float"}:
        message = (
            f"Both sides of {kind.symbol!r} must be integers or both floats, "
            f"not {dtypes[0].name} and {dtypes[1].name}"
        )
        raise IRTypeError(message, where, hint="pl.cast one side")
    if kind in _INTEGERS_ONLY:
        _want(dtypes, "int", kind.symbol, where)
    if kind is FloatDiv:
        _want(dtypes, "float", kind.symbol, where, hint="integers divide by //")
    wide = dtypes[1] if dtypes[1].bits > dtypes[0].bits else dtypes[0]
    both = (left, right)
    if not all(dtype in _WORDS for dtype in dtypes):
        both = (cast(left, wide, where), cast(right, wide, where))
    return kind(*both, DType.Bool if kind.is_comparison else wide, where)


def _want(
    dtypes: list[SimpleDType], wanted: str, symbol: str, span: Span, hint: str | None = None
) -> None:
    for dtype in dtypes:
        if category(dtype) != wanted:
            message = f"{symbol!r} must have operands of kind {wanted}, not {dtype.name}"
            raise IRTypeError(message, span, hint=hint)


def neg(operand: Expr, span: Span | None = None) -> Expr:
    """Return minus `operand`; a constant folds.

    Raises:
        IRTypeError: When it is no number.
    """
    where = span or operand.span
    match operand:
        case ConstInt(value, dtype):
            return ConstInt(wrap_int64(-value), dtype, where)
        case ConstFloat(value, dtype):
            return ConstFloat(-value, dtype, where)
        case _:
            dtype = scalar_dtype(operand, "What is negated", where)
            if category(dtype) not in ("int", "float"):
                message = f"'-' must have an operand of kind int or float, not {dtype.name}"
                raise IRTypeError(message, where)
            return Neg(operand, dtype, where)


def not_(operand: Expr, span: Span | None = None) -> Expr:
    """Return whether `operand` does not hold.

    Raises:
        IRTypeError: When it is no truth value.
    """
    where = span or operand.span
    _want([scalar_dtype(operand, "What is negated", where)], "bool", "not", where)
    return Not(operand, DType.Bool, where)


def bit_not(operand: Expr, span: Span | None = None) -> Expr:
    """Return `operand` with every bit turned over.

    Raises:
        IRTypeError: When it is no integer.
    """
    where = span or operand.span
    dtype = scalar_dtype(operand, "What is inverted", where)
    _want([dtype], "int", "~", where)
    return BitNot(operand, dtype, where)


def _helper(kind: type[BinaryExpr]) -> Callable[[Expr, Expr, Span | None], Expr]:
    def make(left: Expr, right: Expr, span: Span | None = None) -> Expr:
        return binary(kind, left, right, span)

    make.__name__ = make.__qualname__ = kind.__name__.lower()
    make.__doc__ = (kind.__doc__ or "") + "\n\nRaises:\n    IRTypeError: As :func:`binary`."
    return make


add = _helper(nodes.Add)
sub = _helper(nodes.Sub)
mul = _helper(nodes.Mul)
floordiv = _helper(nodes.FloorDiv)
mod = _helper(nodes.FloorMod)
truediv = _helper(nodes.FloatDiv)
shift_left = _helper(nodes.BitShiftLeft)
shift_right = _helper(nodes.BitShiftRight)
min_ = _helper(nodes.Min)
max_ = _helper(nodes.Max)
eq = _helper(nodes.Eq)
ne = _helper(nodes.Ne)
lt = _helper(nodes.Lt)
le = _helper(nodes.Le)
gt = _helper(nodes.Gt)
ge = _helper(nodes.Ge)
and_ = _helper(nodes.And)
or_ = _helper(nodes.Or)
