"""Calls: of ops, of functions of the program, and of the language's scalar functions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final, cast

from ..core import Function, FunctionType
from ..errors import (
    InvalidOperationError,
    IRTypeError,
    IRValueError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)
from ..expr import (
    DUMP_VARS,
    Call,
    Expr,
    GlobalVar,
    Op,
    ScalarType,
    UnknownType,
    replace,
)
from ..ops import ROWS, Attribute, deduce_type
from ..ops.checks import has_pass_form
from ..suggest import near
from ..types import MemorySpace, TensorType, TileType, TupleType
from ..verification.walk import uses
from ..visitor import rewrite_type, substitute_expr
from .call_hints import call_shape, layout_hint, members
from .capture import NOT_CONSTANT, describe
from .constants import const, literal_as
from .context import plural
from .jitted import JITFunction
from .markers import Intrinsic, OpName, Unsupported
from .names import OP_ALIASES, is_attribute_value
from .scalar_calls import ScalarCallParser
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


#: Keywords of a launch, which a plain call does not have.
LAUNCH_KEYWORDS: Final = (
    "deps", "dumps", "core_num", "sync_start", "allow_early_resolve", "predicate",
)  # fmt: skip


class CallParser:
    """Reads the calls of one function."""

    def __init__(self, context: Context, expressions: ExpressionParser) -> None:
        self._context = context
        self._expressions = expressions
        self.scalars = ScalarCallParser(context, expressions)

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
                return self.scalars.const(node)
            case OpName(name):
                return self._op_call(name, node, expected)
            case Intrinsic("cast") if node.args:
                return self._cast(node, expected)
            case Intrinsic(name):
                return self.scalars.intrinsic(name, node)
            case Function() | JITFunction():
                return self._adopted_call(node, expected)
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

    def _cast(self, node: ast.Call, expected: Type | None) -> Expr:
        """Return a cast, which is an op on tiles and tensors, and a function of scalars."""
        first = self._expressions.parse(node.args[0])
        if isinstance(first.type, TileType | TensorType):
            return self._op_call("cast", node, expected, first)
        return self.scalars.intrinsic("cast", node)

    def _op_call(
        self, written: str, node: ast.Call, expected: Type | None, first: Expr | None = None
    ) -> Call:
        # What decides on the row is parsed once: else each level of nested calls would double the work.
        known = {} if first is None else {node.args[0]: first}
        row = self._row(written, node, known)
        span = self._context.span(node)
        try:
            given, attributes = row.bind(
                [_or_none(arg) for arg in node.args],
                {k.arg or "": _or_none(k.value) for k in node.keywords if k.arg != "attrs"},
                span,
            )
            operands = [known.get(arg) or self._expressions.parse(arg) for arg in given]
            if row.scalar_form is not None and isinstance(operands[-1].type, ScalarType):
                row = ROWS[row.scalar_form]
            if row.mat_form is not None and _lies_in_mat(operands[0]):
                row = ROWS[row.mat_form]
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

    def _row(self, written: str, node: ast.Call, known: dict[ast.expr, Expr]) -> OpRow:
        """Return the row of an op; a short name goes by the kind of its first operand.

        `known` has the operands that are parsed already, and takes up that one.
        """
        if written in ROWS:
            return ROWS[written]
        full = OP_ALIASES.get(written)
        found = [full] if full else [n for n in ROWS if n.partition(".")[2] == written]
        first = _first_operand(node, found) if len(found) > 1 else None
        if first is not None:
            if first not in known:
                known[first] = self._expressions.parse(first)
            prefix = "tensor." if isinstance(known[first].type, TensorType) else "tile."
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
        if row.infer_blocked is None or not has_pass_form(expected, operands):
            return row.call(operands, kwargs, span)
        if expected is None and not row.has_effect:
            message = f"pl operation {row.name!r} on boxes must have its result annotated"
            hint = "this form is written by a pass; tensors are logical before it"
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
        if part.read is not None:
            return part.read(found)
        article = "an" if part.kind.__name__[0] in "AEIOUaeiou" else "a"
        wanted = f"{article} {part.kind.__name__}"
        message = f"pl operation {written!r}: {name} must be {wanted}, not {describe(found)}"
        hint = members(part.kind, part.refused)
        raise self._context.error(InvalidOperationError, message, value, hint=hint)

    # ------------------------------------------------------------------------ functions

    def signature(self, name: str, where: ast.expr) -> Signature:
        """Return the signature of a function of the program.

        Raises:
            UndefinedVariableError: When there is none of that name.
        """
        signature = self._context.callees.signature(name)
        if signature is None:
            message = f"The program has no function {name!r}"
            hint = f"{near(name, self._context.callees.names())} (each needs @pl.function)"
            raise self._context.error(UndefinedVariableError, message, where, hint=hint)
        return signature

    def _function_call(self, name: str, node: ast.Call, expected: Type | None) -> Call:
        signature = self.signature(name, node.func)
        for keyword in node.keywords:
            if keyword.arg in LAUNCH_KEYWORDS:
                word = "spmd_submit" if keyword.arg in ("core_num", "sync_start") else "submit"
                message = f"A plain call of {name!r} must not have the keyword {keyword.arg}="
                hint = f"out, tid = pl.{word}(self.{name}, …, {keyword.arg}=…)"
                raise self._context.error(ParserTypeError, message, keyword, hint=hint)
            if keyword.arg != "attrs":
                message = (
                    f"A call of {name!r} must give its arguments by position, not {keyword.arg}="
                )
                raise self._context.error(
                    ParserTypeError, message, keyword, hint=call_shape(signature)
                )
        if len(node.args) != len(signature.params):
            wanted, found = plural(len(signature.params), "argument"), len(node.args)
            message = f"{name!r} must be called with {wanted}, not {found}"
            raise self._context.error(ParserTypeError, message, node, hint=call_shape(signature))
        args = [
            self.argument(parameter, signature, arg)
            for parameter, arg in zip(signature.params, node.args, strict=True)
        ]
        type_ = self._result_type(signature, args, expected)
        made = Call(GlobalVar(name), args, type_, self._context.span(node))
        return self._with_tags(self._with_attrs(made, node))

    def _with_tags(self, made: Call) -> Call:
        """Return a call that says which of its arguments `pl.dump_tag` has named."""
        tagged = [v for v in dict.fromkeys(uses(made.args)) if v in self._context.tagged]
        if not tagged:
            return made
        named = list(dict.fromkeys([*made.attrs.get(DUMP_VARS, ()), *tagged]))
        attrs = {**made.attrs, DUMP_VARS: named}
        return Call(made.op, made.args, made.kwargs, attrs, made.type, made.span)

    def argument(self, parameter: Parameter, signature: Signature, node: ast.expr) -> Expr:
        """Return an argument for a parameter.

        Raises:
            ParserTypeError: When it does not fit.
        """
        name = parameter.name
        given = literal_as(self._expressions.parse(node), parameter.type)
        fault = mismatch(parameter.type, given.type)
        if fault is not None:
            message = f"The argument {name!r} of {signature.name!r} {fault}"
            note = f"{name!r} is declared at {parameter.var.span}"
            hint = layout_hint(parameter.type, given.type, ast.unparse(node))
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
                return self.in_caller(results[0], signature, args)
            case _:
                return TupleType(self.in_caller(t, signature, args) for t in results)

    def in_caller(self, type_: Type, signature: Signature, args: list[Expr]) -> Type:
        """Return a result type with the caller's arguments in place of scalar parameters."""
        pairs = [
            (parameter.var, arg)
            for parameter, arg in zip(signature.params, args, strict=True)
            if isinstance(parameter.type, ScalarType)
        ]
        return rewrite_type(type_, lambda e: substitute_expr(e, pairs)) if pairs else type_

    def adopted(self, node: ast.expr) -> Function | None:
        """Return the standalone function that `node` names, taken into the program; else None.

        Raises:
            ParserTypeError: When the program has another function of its name.
        """
        function = self._context.capture.fold(node)
        if isinstance(function, JITFunction):
            if function.kind is FunctionType.Inline:
                message = f"The template {function.name!r} must be called in a statement of its own"
                hint = f"x = {function.name}(…)"
                raise self._context.error(UnsupportedFeatureError, message, node, hint=hint)
            function = function.function
        if not isinstance(function, Function):
            return None
        if not self._context.callees.adopt(function):
            message = f"The program has another function called {function.name!r}"
            raise self._context.error(ParserTypeError, message, node)
        return function

    def _adopted_call(self, node: ast.Call, expected: Type | None) -> Call:
        function = self.adopted(node.func)
        assert function is not None, ast.unparse(node)
        return self._function_call(function.name, node, expected)

    def _with_attrs(self, made: Call, node: ast.Call) -> Call:
        for keyword in node.keywords:
            if keyword.arg == "attrs":
                attrs = self.mapping(keyword.value)
                return Call(made.op, made.args, made.kwargs, attrs, made.type, made.span)
        return made

    def mapping(self, node: ast.expr) -> dict[str, Any]:
        """Return the attributes that `attrs={…}` says.

        Raises:
            ParserTypeError: When it is no dict.
        """
        attrs = self.value(node)
        if not isinstance(attrs, dict):
            message = "attrs must be a dict, written {…}"
            raise self._context.error(ParserTypeError, message, node)
        return cast("dict[str, Any]", attrs)

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


def _first_operand(node: ast.Call, names: Sequence[str]) -> ast.expr | None:
    """Return what a call gives as the first operand of one of the ops called `names`."""
    if node.args:
        return node.args[0]
    known = {ROWS[name].operands[0].name for name in names if ROWS[name].operands}
    return next((k.value for k in node.keywords if k.arg in known), None)


def _lies_in_mat(value: Expr) -> bool:
    """Whether a value is a tile that the kernel placed in Mat."""
    return isinstance(value.type, TileType) and value.type.memory_space is MemorySpace.Mat


def _or_none(node: ast.expr) -> ast.expr | None:
    return None if isinstance(node, ast.Constant) and node.value is None else node
