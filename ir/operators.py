"""The scalar operators: a class each, whose attributes say its symbol and its value.

Parser, printer, interpreter and code generator read these attributes.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from .errors import Span
from .node import Expr, ScalarType

if TYPE_CHECKING:
    from collections.abc import Callable

    from .dtypes import SimpleDType


def _floor_quotient(a: Any, b: Any) -> Any:
    return a // b


def _quotient(a: Any, b: Any) -> Any:
    return a / b


def _shifted_left(a: Any, b: Any) -> Any:
    return a << b


def _shifted_right(a: Any, b: Any) -> Any:
    return a >> b


def _smaller(a: Any, b: Any) -> Any:
    return min(a, b)


def _larger(a: Any, b: Any) -> Any:
    return max(a, b)


def _both(a: Any, b: Any) -> bool:
    return bool(a) and bool(b)


def _either(a: Any, b: Any) -> bool:
    return bool(a) or bool(b)


def _same(a: Any) -> Any:
    return a


@dataclass(frozen=True, eq=False)
class BinaryExpr(Expr):
    """A scalar operator of two operands; `dtype` is the dtype of the result."""

    children: ClassVar[tuple[str, ...]] = ("left", "right")
    symbol: ClassVar[str]
    evaluate: ClassVar[Callable[[Any, Any], Any]]
    is_comparison: ClassVar[bool] = False

    left: Expr
    right: Expr
    dtype: SimpleDType
    span: Span = field(default_factory=Span.unknown)

    @property
    def type(self) -> ScalarType:
        """A scalar of `dtype`."""
        return ScalarType(self.dtype)


class Add(BinaryExpr):
    """Left plus right."""

    symbol = "+"
    evaluate = staticmethod(operator.add)


class Sub(BinaryExpr):
    """Left minus right."""

    symbol = "-"
    evaluate = staticmethod(operator.sub)


class Mul(BinaryExpr):
    """Left times right."""

    symbol = "*"
    evaluate = staticmethod(operator.mul)


class FloorDiv(BinaryExpr):
    """Integer quotient, rounded toward minus infinity."""

    symbol = "//"
    evaluate = staticmethod(_floor_quotient)


class FloorMod(BinaryExpr):
    """Remainder of :class:`FloorDiv`; its sign is the divisor's."""

    symbol = "%"
    evaluate = staticmethod(operator.mod)


class FloatDiv(BinaryExpr):
    """Floating-point quotient."""

    symbol = "/"
    evaluate = staticmethod(_quotient)


class BitShiftLeft(BinaryExpr):
    """Left shifted left by right bits."""

    symbol = "<<"
    evaluate = staticmethod(_shifted_left)


class BitShiftRight(BinaryExpr):
    """Left shifted right by right bits, keeping the sign."""

    symbol = ">>"
    evaluate = staticmethod(_shifted_right)


class Min(BinaryExpr):
    """The smaller of two."""

    symbol = "min"
    evaluate = staticmethod(_smaller)


class Max(BinaryExpr):
    """The larger of two."""

    symbol = "max"
    evaluate = staticmethod(_larger)


class Eq(BinaryExpr):
    """Whether both are equal."""

    symbol = "=="
    is_comparison = True
    evaluate = staticmethod(operator.eq)


class Ne(BinaryExpr):
    """Whether both differ."""

    symbol = "!="
    is_comparison = True
    evaluate = staticmethod(operator.ne)


class Lt(BinaryExpr):
    """Whether left is smaller."""

    symbol = "<"
    is_comparison = True
    evaluate = staticmethod(operator.lt)


class Le(BinaryExpr):
    """Whether left is smaller or equal."""

    symbol = "<="
    is_comparison = True
    evaluate = staticmethod(operator.le)


class Gt(BinaryExpr):
    """Whether left is larger."""

    symbol = ">"
    is_comparison = True
    evaluate = staticmethod(operator.gt)


class Ge(BinaryExpr):
    """Whether left is larger or equal."""

    symbol = ">="
    is_comparison = True
    evaluate = staticmethod(operator.ge)


class And(BinaryExpr):
    """Whether both hold; both are evaluated."""

    symbol = "and"
    evaluate = staticmethod(_both)


class Or(BinaryExpr):
    """Whether one holds; both are evaluated."""

    symbol = "or"
    evaluate = staticmethod(_either)


BINARY_OPS: tuple[type[BinaryExpr], ...] = (
    Add, Sub, Mul, FloorDiv, FloorMod, FloatDiv, BitShiftLeft, BitShiftRight, Min, Max,
    Eq, Ne, Lt, Le, Gt, Ge, And, Or,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class UnaryExpr(Expr):
    """A scalar operator of one operand; `dtype` is the dtype of the result."""

    children: ClassVar[tuple[str, ...]] = ("operand",)
    symbol: ClassVar[str]
    evaluate: ClassVar[Callable[[Any], Any]]

    operand: Expr
    dtype: SimpleDType
    span: Span = field(default_factory=Span.unknown)

    @property
    def type(self) -> ScalarType:
        """A scalar of `dtype`."""
        return ScalarType(self.dtype)


class Neg(UnaryExpr):
    """Minus the operand."""

    symbol = "-"
    evaluate = staticmethod(operator.neg)


class Not(UnaryExpr):
    """Whether the operand does not hold."""

    symbol = "not"
    evaluate = staticmethod(operator.not_)


class BitNot(UnaryExpr):
    """Every bit of the operand turned over."""

    symbol = "~"
    evaluate = staticmethod(operator.invert)


class Cast(UnaryExpr):
    """The operand as another scalar dtype."""

    symbol = "cast"
    evaluate = staticmethod(_same)


UNARY_OPS: tuple[type[UnaryExpr], ...] = (Neg, Not, BitNot)
