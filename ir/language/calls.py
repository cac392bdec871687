"""Calls: of ops, of functions of the program, and of the language's scalar functions."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from .. import scalar_ops
from ..core import Function
from ..dtypes import DType, SimpleDType
from ..errors import (
    InvalidOperationError,
    IRTypeError,
    IRValueError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from ..expr import (
    Call,
    Expr,
    GlobalVar,
    Max,
    Min,
    Op,
    ScalarType,
    UnknownType,
    replace,
)
from ..ops import ROWS, Attribute, deduce_type
from ..ops.checks import is_blocked
from ..suggest import near
from ..types import TensorType, TupleType
from ..visitor import rewrite_type, substitute_expr
from .capture import NOT_CONSTANT, describe
from .constants import const, literal_as, typed_constant
from .context import plural
from .markers import INTRINSICS, Intrinsic, OpName, Unsupported
from .names import DTYPES, OP_ALIASES, enum_name, is_attribute_value
from .typecheck import mismatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..expr import Type
    from ..ops import OpRow
    from .context import Context, Parameter, Signature
    from .expressions import ExpressionParser

_PYTHON_WORDS: Final = {
    "min": "pl.min(a, b)",
    "max": "pl.max(a, b)",
    "abs": "pl.max(x, -x)",
    "range": "for i in pl.range(n)",
    "int": "pl.cast(x, pl.INT32)",
    "float": "pl.cast(x, pl.FP32)",
}


class CallParser:
    """Reads the calls of one function."""

    def __init__(self, context: Context, expressions: ExpressionParser) -> None:
        self._context = context
        self._expressions = expressions

    def parse(self, node: ast.Call, expected: Type | None) -> Expr:
        """Return the call that `node` says; `expected` is what its result is annotated with."""
        for part in (*node.args, *(k.value for k in node.keywords if k.arg is None)):
            if isinstance(part, ast.Starred) or part not in node.args:
                message = "Every argument must be written out, without stars"
                raise self._context.error(UnsupportedFeatureError, message, part)
        match node.func:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._function_call(name, node, expected)
            case _:
                pass
        callee = self._context.capture.fold(node.func)
        match callee:
            case _ if callee is const:
                return self._const(node)
            case OpName(name):
                return self._op_call(name, node, expected)
            case Intrinsic(name):
                return self._intrinsic(name, node)
            case Function():
                return self._adopted_call(callee, node, expected)
            case Unsupported():
                raise self._context.capture.unsupported(callee, node)
            case _:
                raise self._not_callable(callee, node)

    def _not_callable(self, callee: object, node: ast.Call) -> UnsupportedFeatureError:
        written = ast.unparse(node.func)
        if callee is NOT_CONSTANT and not isinstance(node.func, ast.Attribute | ast.Name):
            return self._context.error(
                UnsupportedFeatureError, f"{written} cannot be called in a kernel", node.func
            )
        if callee is NOT_CONSTANT:
            message = f"{written}: a variable of a kernel has no methods"
            hint = "ops are functions of the language: pl.load(x, …)"
            return self._context.error(UnsupportedFeatureError, message, node, hint=hint)
        works = _PYTHON_WORDS.get(written)
        message = f"{written} is {describe(callee)}, which a kernel cannot call"
        hint = f"what works: {works}" if works else "ops of the language, and self.kernel(…)"
        return self._context.error(UnsupportedFeatureError, message, node, hint=hint)

    # ------------------------------------------------------------------------ ops

    def _op_call(self, written: str, node: ast.Call, expected: Type | None) -> Call:
        row = self._row(written, node)
        span = self._context.span(node)
        try:
            given, attributes = row.bind(
                [_or_none(arg) for arg in node.args],
                {k.arg or "": _or_none(k.value) for k in node.keywords if k.arg != "attrs"},
                span,
            )
            operands = [self._expressions.parse(arg) for arg in given]
            kwargs = {
                name: self._attribute(row, name, value, written)
                for name, value in attributes.items()
            }
            if row.kernel_default is not None:
                kwargs.update(row.kernel_default(operands, kwargs))
            made = self._typed_call(row, operands, kwargs, node, expected)
        except (IRTypeError, IRValueError) as error:
            text = error.message.removeprefix(f"{row.name}: ")
            message = f"pl operation {written!r}: {text}"
            raise self._context.error(
                InvalidOperationError, message, error.span or node, hint=error.hint, note=error.note
            ) from error
        return self._with_attrs(made, node)

    def _row(self, written: str, node: ast.Call) -> OpRow:
        """Return the row of an op; a short name goes by the kind of its first operand."""
        if written in ROWS:
            return ROWS[written]
        full = OP_ALIASES.get(written)
        found = [full] if full else [n for n in ROWS if n.partition(".")[2] == written]
        if len(found) > 1 and node.args:
            kind = self._expressions.parse(node.args[0]).type
            prefix = "tensor." if isinstance(kind, TensorType) else "tile."
            found = [name for name in found if name.startswith(prefix)]
        if len(found) != 1 or found[0] not in ROWS:
            message = f"pl has no operation {written!r}"
            hint = near(written, (n for n, row in ROWS.items() if row.public))
            raise self._context.error(InvalidOperationError, message, node.func, hint=hint)
        return ROWS[found[0]]

    def _typed_call(
        self,
        row: OpRow,
        operands: Sequence[Expr],
        kwargs: Mapping[str, Any],
        node: ast.Call,
        expected: Type | None,
    ) -> Call:
        span = self._context.span(node)
        blocked = any(is_blocked(t) for t in (expected, *(o.type for o in operands)))
        if row.infer_blocked is None or not blocked:
            return row.call(operands, kwargs, span)
        if expected is None and not row.has_effect:
            message = f"pl operation {row.name!r} on blocked scales must have its result annotated"
            hint = "this form is written by a pass; logical scale tensors have rank 2"
            raise self._context.error(ParserTypeError, message, node, hint=hint)
        site = row.site(tuple(operands), kwargs, span)
        stored = Call(Op(row.name), operands, site.kwargs, expected or UnknownType(), span)
        return replace(stored, type=deduce_type(stored))

    def _attribute(self, row: OpRow, name: str, value: object, written: str) -> object:
        """Return the Python value of an attribute; defaults come through as they are."""
        if not isinstance(value, ast.expr):
            return value
        part = row.by_name[name]
        assert isinstance(part, Attribute)
        found = self._context.capture.fold(value)
        if isinstance(found, Unsupported):
            raise self._context.capture.unsupported(found, value)
        if isinstance(found, part.kind):
            return found
        if found is NOT_CONSTANT:
            message = f"pl operation {written!r}: {name} must be known when the kernel is parsed"
            raise self._context.error(InvalidOperationError, message, value)
        article = "an" if part.kind.__name__[0] in "AEIOU" else "a"
        wanted = f"{article} {part.kind.__name__}"
        message = f"pl operation {written!r}: {name} must be {wanted}, not {describe(found)}"
        hint = _members(part.kind)
        raise self._context.error(InvalidOperationError, message, value, hint=hint)

    # ------------------------------------------------------------------------ functions

    def _function_call(self, name: str, node: ast.Call, expected: Type | None) -> Call:
        signature = self._context.callees.signature(name)
        if signature is None:
            message = f"The program has no function {name!r}"
            hint = f"{near(name, self._context.callees.names())} (each needs @pl.function)"
            raise self._context.error(UndefinedVariableError, message, node.func, hint=hint)
        for keyword in node.keywords:
            if keyword.arg != "attrs":
                message = (
                    f"A call of {name!r} must give its arguments by position, not {keyword.arg}="
                )
                raise self._context.error(
                    ParserTypeError, message, keyword, hint=_call_shape(signature)
                )
        if len(node.args) != len(signature.params):
            wanted, found = plural(len(signature.params), "argument"), len(node.args)
            message = f"{name!r} must be called with {wanted}, not {found}"
            raise self._context.error(ParserTypeError, message, node, hint=_call_shape(signature))
        args = [
            self._argument(parameter, signature, arg)
            for parameter, arg in zip(signature.params, node.args, strict=True)
        ]
        type_ = self._result_type(signature, args, expected)
        made = Call(GlobalVar(name), args, type_, self._context.span(node))
        return self._with_attrs(made, node)

    def _argument(self, parameter: Parameter, signature: Signature, node: ast.expr) -> Expr:
        name = parameter.name
        given = literal_as(self._expressions.parse(node), parameter.type)
        fault = mismatch(parameter.type, given.type)
        if fault is not None:
            message = f"The argument {name!r} of {signature.name!r} {fault}"
            note = f"{name!r} is declared at {parameter.var.span}"
            hint = _layout_hint(parameter.type, given.type, ast.unparse(node))
            raise self._context.error(ParserTypeError, message, node, hint=hint, note=note)
        return given

    def _result_type(self, signature: Signature, args: list[Expr], expected: Type | None) -> Type:
        results = self._context.callees.results(signature.name)
        if results is None:
            return expected or UnknownType()
        match len(results):
            case 0:
                return UnknownType()
            case 1:
                return self._in_caller(results[0], signature, args)
            case _:
                return TupleType(self._in_caller(t, signature, args) for t in results)

    def _in_caller(self, type_: Type, signature: Signature, args: list[Expr]) -> Type:
        """Return a result type with the caller's arguments in place of scalar parameters."""
        pairs = [
            (parameter.var, arg)
            for parameter, arg in zip(signature.params, args, strict=True)
            if isinstance(parameter.type, ScalarType)
        ]
        return rewrite_type(type_, lambda e: substitute_expr(e, pairs)) if pairs else type_

    def _adopted_call(self, function: Function, node: ast.Call, expected: Type | None) -> Call:
        if not self._context.callees.adopt(function):
            message = f"The program has another function called {function.name!r}"
            raise self._context.error(ParserTypeError, message, node.func)
        return self._function_call(function.name, node, expected)

    def _with_attrs(self, made: Call, node: ast.Call) -> Call:
        for keyword in node.keywords:
            if keyword.arg == "attrs":
                attrs = self.value(keyword.value)
                if not isinstance(attrs, dict):
                    message = "attrs must be a dict, written {…}"
                    raise self._context.error(ParserTypeError, message, keyword.value)
                return Call(made.op, made.args, made.kwargs, attrs, made.type, made.span)
        return made

    def value(self, node: ast.expr) -> Any:
        """Return the value of an attribute: Python objects, and expressions where variables occur."""
        match node:
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {self._key(key, node): self.value(value) for key, value in pairs}
            case ast.List(elts=elements):
                return [self.value(e) for e in elements]
            case ast.Tuple(elts=elements):
                return tuple(self.value(e) for e in elements)
            case _:
                found = self._context.capture.fold(node)
                if found is NOT_CONSTANT:
                    return self._expressions.parse(node)
                if not is_attribute_value(found):
                    message = f"{ast.unparse(node)} must be the value of an attribute, not {describe(found)}"
                    hint = "valid: numbers, strings, members of pl's enumerations, dtypes, and lists of these"
                    raise self._context.error(ParserTypeError, message, node, hint=hint)
                return found

    def _key(self, key: ast.expr | None, node: ast.Dict) -> str:
        found = None if key is None else self._context.capture.fold(key)
        if not isinstance(found, str):
            message = "The keys of attributes must be strings"
            raise self._context.error(ParserTypeError, message, key or node)
        return found

    # ------------------------------------------------------------------------ scalar functions

    def _intrinsic(self, name: str, node: ast.Call) -> Expr:
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

    def _const(self, node: ast.Call) -> Expr:
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


def _or_none(node: ast.expr) -> ast.expr | None:
    return None if isinstance(node, ast.Constant) and node.value is None else node


def _members(kind: type) -> str | None:
    """Return what an attribute of `kind` can be."""
    if issubclass(kind, Enum):
        name = enum_name(kind) or kind.__name__
        return f"valid: {', '.join(f'pl.{name}.{m.name}' for m in kind)}"
    if kind is DType:
        return f"valid: {', '.join(f'pl.{name}' for name in DTYPES)}"
    return None


def _layout_hint(wanted: Type, given: Type, text: str) -> str | None:
    """Return how a tensor comes into another layout, if that is all that is missing."""
    if not isinstance(wanted, TensorType) or not isinstance(given, TensorType):
        return None
    if wanted.layout is given.layout or mismatch(wanted, given, check_layout=False):
        return None
    shape = ", ".join(str(getattr(d, "value", "…")) for d in wanted.shape)
    return f"pl.tensor.view({text}, [{shape}], layout=pl.{wanted.layout.name}) takes the same bytes"


def _call_shape(signature: Signature) -> str:
    names = ", ".join(p.name for p in signature.params)
    return f"it is called self.{signature.name}({names})"
