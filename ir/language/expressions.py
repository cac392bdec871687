"""Expressions: from the syntax tree to nodes of the IR."""

from __future__ import annotations

import ast
import numbers
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from .. import scalar_ops
from ..dtypes import DType, Index
from ..errors import (
    IRTypeError,
    IRValueError,
    ParserSyntaxError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from ..expr import (
    Add,
    And,
    BinaryExpr,
    BitShiftLeft,
    BitShiftRight,
    ConstBool,
    ConstFloat,
    ConstInt,
    Eq,
    Expr,
    FloatDiv,
    FloorDiv,
    FloorMod,
    Ge,
    Gt,
    Le,
    Lt,
    MakeTuple,
    Mul,
    Ne,
    Neg,
    Or,
    ScalarType,
    Sub,
    TupleGetItemExpr,
)
from ..types import MemRef, TensorType, TileType, TupleType
from .calls import CallParser
from .capture import NOT_CONSTANT, describe
from .markers import Intrinsic, OpName, Unsupported
from .windows import WindowParser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expr import Type
    from .context import Context

_BINARY: Final[dict[type[ast.operator], type[BinaryExpr]]] = {
    ast.Add: Add,
    ast.Sub: Sub,
    ast.Mult: Mul,
    ast.FloorDiv: FloorDiv,
    ast.Mod: FloorMod,
    ast.Div: FloatDiv,
    ast.LShift: BitShiftLeft,
    ast.RShift: BitShiftRight,
}
_COMPARE: Final[dict[type[ast.cmpop], type[BinaryExpr]]] = {
    ast.Eq: Eq,
    ast.NotEq: Ne,
    ast.Lt: Lt,
    ast.LtE: Le,
    ast.Gt: Gt,
    ast.GtE: Ge,
}
_REFUSED: Final[dict[type[ast.expr], tuple[str, str]]] = {
    ast.IfExp: ("A conditional expression", "an if statement that assigns in both branches"),
    ast.Lambda: ("A lambda", "a @pl.function of its own"),
    ast.ListComp: ("A comprehension", "a pl.range loop, or a list made before the kernel"),
    ast.SetComp: ("A comprehension", "a pl.range loop, or a list made before the kernel"),
    ast.DictComp: ("A comprehension", "a pl.range loop, or a list made before the kernel"),
    ast.GeneratorExp: ("A comprehension", "a pl.range loop, or a list made before the kernel"),
    ast.NamedExpr: ("An assignment inside an expression", "an assignment on a line of its own"),
    ast.JoinedStr: ("An f-string", "a plain string made before the kernel"),
    ast.Await: ("await", "a plain call"),
    ast.Starred: ("A starred argument", "every argument written out"),
    ast.Slice: ("A slice", "pl.load with offsets and shapes"),
}
_OPS: Final[dict[type[BinaryExpr], str]] = {
    Sub: "sub",
    Mul: "mul",
    FloatDiv: "div",
    FloorMod: "rem",
}
"""The ops on tiles and tensors that do what an operator does on scalars; pl.add is the other one."""

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


class ExpressionParser:
    """Reads the expressions of one function."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.calls = CallParser(context, self)

    def parse(self, node: ast.expr, expected: Type | None = None) -> Expr:
        """Return the expression that `node` says.

        Args:
            node: The text.
            expected: The type that it is annotated with, where the text says one.

        Raises:
            ParserError: When it is none of the language.
        """
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return MakeTuple(tuple(self.parse(e) for e in elements), self.context.span(node))
            case _:
                pass
        value = self.context.capture.fold(node)
        if value is not NOT_CONSTANT:
            return self.constant(value, node)
        match node:
            case ast.Name(id=name):
                return self.context.scope.variables[name]
            case ast.Call():
                return self.calls.parse(node, expected)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(_BINARY.get(type(op)), left, right, node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._binary(_COMPARE.get(type(op)), left, right, node)
            case ast.BoolOp(op=op, values=values):
                kind = And if isinstance(op, ast.And) else Or
                parts = [self.parse(v) for v in values]
                return self._left_fold(kind, parts, node)
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, operand, node)
            case ast.Subscript():
                return self._subscript(node)
            case _:
                raise self._refused(node)

    def constant(self, value: object, node: ast.expr) -> Expr:
        """Return a Python value as a constant.

        Raises:
            ParserTypeError: When a kernel has no such value.
        """
        span = self.context.span(node)
        match value:
            case Expr():
                return value
            case bool():
                return ConstBool(value, span)
            case _ if isinstance(value, Enum):
                raise self._no_value(value, node)
            case list() | tuple():
                elements = cast("Sequence[object]", value)
                return MakeTuple(tuple(self.constant(e, node) for e in elements), span)
            case _ if hasattr(type(value), "__index__"):
                number = int(cast("Any", value))
                if not _INT64_MIN <= number <= _INT64_MAX:
                    message = (
                        f"An integer of a kernel must fit into 64 bits, which {number} does not"
                    )
                    raise self.context.error(ParserTypeError, message, node)
                return ConstInt(number, Index, span)
            case numbers.Real():
                return ConstFloat(float(value), DType.Float32, span)
            case Unsupported():
                raise self.context.capture.unsupported(value, node)
            case OpName() | Intrinsic():
                message = f"pl.{value.name} must be called, with brackets after its name"
                raise self.context.error(ParserTypeError, message, node)
            case _:
                raise self._no_value(value, node)

    def _no_value(self, value: object, node: ast.expr) -> ParserTypeError:
        message = f"{ast.unparse(node)} must be a value of a kernel, not {describe(value)}"
        hint = "int, float, bool, and lists of these can be taken from around a kernel"
        if isinstance(value, MemRef):
            hint = (
                f"write buf = {ast.unparse(node)} above the program, and buf[i % 2] in annotations"
            )
        return self.context.error(ParserTypeError, message, node, hint=hint)

    def scalar(self, node: ast.expr) -> Expr:
        """Return a scalar expression.

        Raises:
            ParserTypeError: When it is no scalar.
        """
        made = self.parse(node)
        if not isinstance(made.type, ScalarType):
            message = f"{ast.unparse(node)} must be a scalar, not {kind_of(made.type)}"
            raise self.context.error(ParserTypeError, message, node)
        return made

    def make(self, kind: type[BinaryExpr], left: Expr, right: Expr, node: ast.expr) -> Expr:
        """Return the operator `kind` over two scalars.

        Raises:
            ParserTypeError: For an operand that is no scalar.
            ParserSyntaxError: When the operands are of different categories.
        """
        for side in (left, right):
            if not isinstance(side.type, ScalarType):
                message = f"Both sides of {kind.symbol!r} must be scalars, not {kind_of(side.type)}"
                op = _OPS.get(kind, "cmp" if kind in _COMPARE.values() else "add")
                hint = f"tiles and tensors are combined by ops, such as pl.{op}"
                raise self.context.error(ParserTypeError, message, node, hint=hint)
        try:
            return scalar_ops.binary(kind, left, right, self.context.span(node))
        except (IRTypeError, IRValueError) as error:
            message = f"Failed to parse function {self.context.function!r}: {error.message}"
            wrong = self.context.error(ParserSyntaxError, message, node, hint=error.hint)
            raise wrong from error

    def _binary(
        self, kind: type[BinaryExpr] | None, left: ast.expr, right: ast.expr, node: ast.expr
    ) -> Expr:
        if kind is None:
            message = f"The operator in {ast.unparse(node)} is not part of this language"
            hint = "operators on variables: + - * / // % << >> == != < <= > >= and or not"
            raise self.context.error(UnsupportedFeatureError, message, node, hint=hint)
        return self.make(kind, self.parse(left), self.parse(right), node)

    def _left_fold(self, kind: type[BinaryExpr], parts: list[Expr], node: ast.expr) -> Expr:
        result = parts[0]
        for part in parts[1:]:
            result = self.make(kind, result, part, node)
        return result

    def _unary(self, op: ast.unaryop, operand: ast.expr, node: ast.expr) -> Expr:
        value = self.scalar(operand)
        span = self.context.span(node)
        try:
            match op:
                case ast.USub():
                    number = isinstance(value, ConstInt | ConstFloat)
                    return Neg(value, value.dtype, span) if number else scalar_ops.neg(value, span)
                case ast.Not():
                    return scalar_ops.not_(value, span)
                case ast.Invert():
                    return scalar_ops.bit_not(value, span)
                case _:
                    return value
        except (IRTypeError, IRValueError) as error:
            message = f"Failed to parse function {self.context.function!r}: {error.message}"
            wrong = self.context.error(ParserSyntaxError, message, node, hint=error.hint)
            raise wrong from error

    def _subscript(self, node: ast.Subscript) -> Expr:
        owner = self.parse(node.value)
        if isinstance(owner.type, TensorType | TileType):
            return WindowParser(self.context, self).read(owner, node)
        if not isinstance(owner.type, TupleType):
            message = (
                "Square brackets must follow a tensor, a tile or a tuple of results, not "
                f"{kind_of(owner.type)}"
            )
            hint = "a window of a tensor is read by pl.load(tensor, offsets, shapes)"
            raise self.context.error(UnsupportedFeatureError, message, node, hint=hint)
        position = self.context.capture.fold(node.slice)
        count = len(owner.type.types)
        if not isinstance(position, int) or not 0 <= position < count:
            found = ast.unparse(node.slice)
            message = (
                f"The index into {count} results must be a constant in 0..{count - 1}, not {found}"
            )
            raise self.context.error(ParserTypeError, message, node)
        return TupleGetItemExpr(owner, position, self.context.span(node))

    def _refused(self, node: ast.expr) -> UnsupportedFeatureError | ParserTypeError:
        if isinstance(node, ast.Attribute):
            message = f"{ast.unparse(node)}: a variable of a kernel has no attributes"
            hint = "its shape is what the annotation says; take the numbers from there"
            return self.context.error(UnsupportedFeatureError, message, node, hint=hint)
        if isinstance(node, ast.Compare):
            message = "A comparison must have two sides, not more"
            hint = "join two comparisons by and"
            return self.context.error(UnsupportedFeatureError, message, node, hint=hint)
        what, instead = _REFUSED.get(type(node), (f"{ast.unparse(node)}", "something simpler"))
        message = f"{what} is not part of this language"
        hint = f"what works: {instead}"
        return self.context.error(UnsupportedFeatureError, message, node, hint=hint)


def kind_of(type_: Type) -> str:
    """Return what a type is, for an error message."""
    match type_:
        case ScalarType():
            return "a scalar"
        case TensorType():
            return "a tensor"
        case TileType():
            return "a tile"
        case TupleType():
            return "several values"
        case _:
            return "nothing"
