"""Scalar expressions of the IR in the machine's own arithmetic: signed 64-bit words that wrap.

The scalar unit has no floats. It hands them on as they are, by their codes, to the vector core.

Kernels and orchestrations both go through here, so both compute what the interpreter computes: narrow
integers wrap at their width, a shift by more than a word holds empties it, a truth value is 0 or 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ...ir.dtypes import DType
from ...ir.dtypes.formats import INTEGER_FORMATS
from ...ir.errors import IRTypeError, IRValueError
from ...ir.expr import (
    Add,
    And,
    BinaryExpr,
    BitNot,
    BitShiftLeft,
    BitShiftRight,
    Call,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Not,
    Or,
    ScalarType,
    Sub,
    UnaryExpr,
    Var,
)
from ...ir.numerics.functions import FLOATS, scalar_code
from ...ir.ops.row import describe_type
from .exprs import Binary, BinaryOp, Const

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...ir.dtypes import SimpleDType
    from ...ir.errors import Span
    from .exprs import Scalar

WORD = 64

#: The machine operator of each IR operator; shifts have their own rules.
_OPERATORS: dict[type[BinaryExpr], BinaryOp] = {
    Add: BinaryOp.ADD,
    Sub: BinaryOp.SUB,
    Mul: BinaryOp.MUL,
    FloorDiv: BinaryOp.FLOORDIV,
    FloorMod: BinaryOp.FLOORMOD,
    Min: BinaryOp.MIN,
    Max: BinaryOp.MAX,
    And: BinaryOp.AND,
    Or: BinaryOp.OR,
    Eq: BinaryOp.EQ,
    Ne: BinaryOp.NE,
    Lt: BinaryOp.LT,
    Le: BinaryOp.LE,
    Gt: BinaryOp.GT,
    Ge: BinaryOp.GE,
}
#: Operators whose result may leave the range of a narrow dtype.
_GROWING = (Add, Sub, Mul, FloorDiv, BitShiftLeft)


def lower_scalar(
    expr: Expr,
    span: Span,
    variable: Callable[[Var], Scalar],
    identities: Mapping[str, Scalar] | None = None,
) -> Scalar:
    """Return a scalar expression in machine arithmetic.

    Args:
        expr: The expression.
        span: Of the statement around it, for errors.
        variable: What stands for each variable.
        identities: What stands for the ops by which a block asks for its place in the grid.

    Raises:
        IRTypeError: For a scalar that is no signed 64-bit integer and does not fit into one, other
            than a float of the vector core that is handed on as it is.
        IRValueError: For an operator that the scalar unit lacks, or a shift by a negative constant.
    """
    return _Lowering(span, variable, identities or {}).whole(expr)


def word_of(value: float, dtype: SimpleDType) -> int:
    """Return the word in which a number of a scalar dtype travels: a float's is its code."""
    return int(scalar_code(value, dtype)) if dtype in FLOATS else int(value)


class _Lowering:
    def __init__(
        self, span: Span, variable: Callable[[Var], Scalar], identities: Mapping[str, Scalar]
    ) -> None:
        self._span = span
        self._variable = variable
        self._identities = identities

    def whole(self, expr: Expr) -> Scalar:
        """Return what is asked for in machine arithmetic; a float, with which nothing is done, too."""
        match expr:
            case ConstFloat() if expr.dtype in FLOATS:
                return Const(word_of(expr.value, expr.dtype))
            case Var(type=ScalarType(dtype)) if dtype in FLOATS:
                return self._variable(expr)
            case _:
                return self.scalar(expr)

    def scalar(self, expr: Expr) -> Scalar:
        """Return an integer expression in machine arithmetic."""
        match expr:
            case ConstInt() | ConstBool():
                self._check(expr)
                return _constant(expr)
            case Var():
                self._check(expr)
                return self._variable(expr)
            case Call() if expr.name in self._identities:
                return self._identities[expr.name]
            case UnaryExpr():
                self._check(expr)
                return self._unary(expr)
            case BitShiftLeft() | BitShiftRight():
                self._check(expr)
                return self._shift(expr)
            case BinaryExpr() if type(expr) in _OPERATORS:
                self._check(expr)
                left, right = self.scalar(expr.left), self.scalar(expr.right)
                value = Binary(_OPERATORS[type(expr)], left, right)
                return _wrapped(value, expr) if isinstance(expr, _GROWING) else value
            case _:
                found = expr.name if isinstance(expr, Call) else type(expr).__name__
                message = (
                    "A scalar that is compiled must be made of integer arithmetic, comparisons and "
                    f"logic, not of {found}"
                )
                raise IRValueError(message, self._span)

    def _check(self, expr: Expr) -> None:
        type_ = expr.type
        if not isinstance(type_, ScalarType):
            message = f"A scalar that is compiled must be one, not {describe_type(expr)}"
            raise IRTypeError(message, self._span)
        row = INTEGER_FORMATS.get(type_.dtype)
        if type_.dtype is DType.Bool or (row is not None and row.max < 1 << (WORD - 1)):
            return
        message = (
            "A scalar that is compiled must be a Bool or an integer that fits a signed 64-bit word, "
            f"not {type_.dtype.name}"
        )
        raise IRTypeError(message, self._span)

    def _unary(self, expr: UnaryExpr) -> Scalar:
        operand = self.scalar(expr.operand)
        match expr:
            case Neg():
                return _wrapped(Binary(BinaryOp.SUB, Const(0), operand), expr)
            case BitNot():
                return _wrapped(Binary(BinaryOp.XOR, operand, Const(-1)), expr)
            case Not():
                return Binary(BinaryOp.EQ, operand, Const(0))
            case _:
                assert isinstance(expr, Cast), expr
                if expr.dtype is DType.Bool:
                    return Binary(BinaryOp.NE, operand, Const(0))
                return operand if _fits(expr.operand, expr) else _wrapped(operand, expr)

    def _shift(self, expr: BinaryExpr) -> Scalar:
        value, count = self.scalar(expr.left), self.scalar(expr.right)
        left = isinstance(expr, BitShiftLeft)
        if isinstance(count, Const):
            if count.value < 0:
                self._refuse_count(count.value)
            if left and count.value >= WORD:
                return Binary(BinaryOp.AND, value, Const(0))
            count = Const(min(count.value, WORD - 1))
            return _wrapped(Binary(BinaryOp.SHL, value, count), expr) if left else Binary(
                BinaryOp.SHR, value, count
            )  # fmt: skip
        # A negative count is an error: 0 // (count >= 0) divides by zero, or adds nothing.
        counted = Binary(BinaryOp.GE, count, Const(0))
        legal = Binary(BinaryOp.ADD, count, Binary(BinaryOp.FLOORDIV, Const(0), counted))
        held = Binary(BinaryOp.MIN, legal, Const(WORD - 1))
        if not left:
            return Binary(BinaryOp.SHR, value, held)
        some = Binary(BinaryOp.LT, count, Const(WORD))
        shifted = Binary(BinaryOp.MUL, Binary(BinaryOp.SHL, value, held), some)
        return _wrapped(shifted, expr)

    def _refuse_count(self, count: int) -> NoReturn:
        message = f"The count of a shift must not be negative, but is {count}"
        raise IRValueError(message, self._span)


def _constant(expr: ConstInt | ConstBool) -> Const:
    if isinstance(expr, ConstBool):
        return Const(int(expr.value))
    row = INTEGER_FORMATS[expr.dtype]
    return Const((expr.value - row.min) % (1 << row.bits) + row.min)


def _fits(operand: Expr, result: Expr) -> bool:
    """Whether every value of the operand's dtype is one of the result's."""
    types = operand.type, result.type
    assert isinstance(types[0], ScalarType)
    assert isinstance(types[1], ScalarType)
    if types[0].dtype is DType.Bool:
        return True
    small, large = INTEGER_FORMATS[types[0].dtype], INTEGER_FORMATS[types[1].dtype]
    return large.min <= small.min and small.max <= large.max


def _wrapped(value: Scalar, expr: Expr) -> Scalar:
    """Return `value` wrapped to the dtype of `expr`."""
    assert isinstance(expr.type, ScalarType)
    row = INTEGER_FORMATS[expr.type.dtype]
    if row.bits == WORD:
        return value
    if row.min == 0:
        return Binary(BinaryOp.AND, value, Const(row.max))
    distance = Const(WORD - row.bits)
    return Binary(BinaryOp.SHR, Binary(BinaryOp.SHL, value, distance), distance)
