"""Calls that make scalars: minimum and maximum, casts, constants of a dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .. import scalar_ops
from ..dtypes import DType, SimpleDType
from ..errors import IRTypeError, IRValueError, ParserSyntaxError, ParserTypeError
from ..expr import Max, Min
from .capture import NOT_CONSTANT, describe
from .constants import typed_constant
from .markers import INTRINSICS, Unsupported
from .names import DTYPES

if TYPE_CHECKING:
    from ..expr import Expr
    from .context import Context
    from .expressions import ExpressionParser


class ScalarCallParser:
    """Reads the calls of one function that make scalars."""

    def __init__(self, context: Context, expressions: ExpressionParser) -> None:
        self._context = context
        self._expressions = expressions

    def intrinsic(self, name: str, node: ast.Call) -> Expr:
        """Return the call of a word that is no op.

        Raises:
            ParserError: For wrong arguments, or a word that belongs elsewhere.
        """
        match name, node.args, node.keywords:
            case "min" | "max", [left, right], []:
                kind = Min if name == "min" else Max
                sides = self._expressions.parse(left), self._expressions.parse(right)
                return self._expressions.make(kind, *sides, node)
            case "cast", [operand, target], []:
                return self._cast(operand, target, node)
            case "min" | "max" | "cast", _, _:
                message = f"pl.{name} must have two arguments, not {len(node.args)}"
                hint = "pl.cast(x, pl.INT32)" if name == "cast" else f"pl.{name}(a, b)"
                raise self._context.error(ParserTypeError, message, node, hint=hint)
            case _:
                message = f"pl.{name} must not stand here, but in {INTRINSICS[name]}"
                raise self._context.error(ParserSyntaxError, message, node)

    def dtype(self, node: ast.expr) -> DType:
        """Return the dtype that `node` names.

        Raises:
            ParserTypeError: When it names something else.
        """
        found = self._context.capture.fold(node)
        if isinstance(found, Unsupported):
            raise self._context.capture.unsupported(found, node)
        if not isinstance(found, DType):
            what = "a variable" if found is NOT_CONSTANT else describe(found)
            message = f"{ast.unparse(node)} must be a dtype, not {what}"
            hint = f"the dtypes are {', '.join(f'pl.{name}' for name in DTYPES)}"
            raise self._context.error(ParserTypeError, message, node, hint=hint)
        return found

    def _cast(self, operand: ast.expr, target: ast.expr, node: ast.Call) -> Expr:
        value = self._expressions.scalar(operand)
        dtype = self.dtype(target)
        try:
            if not isinstance(dtype, SimpleDType):
                message = f"A scalar must be cast to a dtype of one plane, not {dtype.name}"
                raise IRTypeError(message)
            return scalar_ops.cast(value, dtype, self._context.span(node))
        except IRTypeError as error:
            raise self._context.error(ParserTypeError, error.message, node) from error

    def const(self, node: ast.Call) -> Expr:
        """Return the constant that `pl.const(7, pl.INT32)` says.

        Raises:
            ParserTypeError: For wrong arguments.
        """
        if len(node.args) != 2 or node.keywords:
            message = f"pl.const must have two arguments, not {len(node.args)}"
            raise self._context.error(ParserTypeError, message, node, hint="pl.const(7, pl.INT32)")
        number = self._context.capture.fold(node.args[0])
        if number is NOT_CONSTANT:
            message = "pl.const must have a number that is known when the kernel is parsed"
            raise self._context.error(ParserTypeError, message, node.args[0])
        dtype = self.dtype(node.args[1])
        try:
            return typed_constant(number, dtype, self._context.span(node))
        except (IRTypeError, IRValueError) as error:
            raise self._context.error(ParserTypeError, error.message, node) from error
