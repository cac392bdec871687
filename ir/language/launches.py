"""Launches: `pl.submit` and `pl.spmd_submit`, and what a launch depends on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from ..core import AssignStmt, ParamDirection, Stmt
from ..dtypes import DType, TaskId
from ..dtypes.formats import INTEGER_FORMATS
from ..errors import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ..expr import (
    DUMP_VARS,
    Call,
    ConstInt,
    Expr,
    GlobalVar,
    ScalarType,
    Submit,
    TupleGetItemExpr,
    Var,
)
from ..ops import ROWS
from ..ops.row import is_task
from ..types import TensorLayout, TensorType, TupleType, constant_dims
from ..verification.structure import CORE_TYPES
from ..verification.walk import uses
from .context import plural
from .expressions import kind_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expr import Type
    from .context import Parameter, Signature
    from .statements import BodyParser

_SUBMIT: Final = ("deps", "dumps", "allow_early_resolve", "predicate", "attrs")
_KEYWORDS: Final = {"submit": _SUBMIT, "spmd_submit": ("core_num", "sync_start", *_SUBMIT)}


class LaunchParser:
    """Reads the launches of one function."""

    def __init__(self, body: BodyParser) -> None:
        self._body = body
        self._context = body.context

    def word(self, node: ast.expr) -> str | None:
        """Return `submit` or `spmd_submit` if `node` is a call of it, else None."""
        return next((name for name in _KEYWORDS if self._body.is_call_of(node, name)), None)

    # ------------------------------------------------------------------------ where it may stand

    def check_plane(self, word: str, node: ast.AST) -> None:
        """Refuse a launch in a function that runs on a core, or inside another region.

        Raises:
            UnsupportedFeatureError: When `node` stands in one of these.
        """
        kind = self._context.kind
        if kind in CORE_TYPES:
            message = (
                f"pl.{word} must stand in an Orchestration or a plain function, but "
                f"{self._context.function!r} is of type {kind.name} and runs on a core itself"
            )
            hint = "pl.tile.get_block_idx() says there which block of its launch it is"
            raise self._context.error(UnsupportedFeatureError, message, node, hint=hint)
        if self._body.region is not None:
            message = f"pl.{word} must not stand inside the region of a pl.{self._body.region}"
            hint = "put it before or after the region"
            raise self._context.error(UnsupportedFeatureError, message, node, hint=hint)

    # ------------------------------------------------------------------------ submits

    def submit(self, node: ast.Call) -> tuple[list[Stmt], Submit]:
        """Return a submit, and the statements that make the outputs which it leaves out."""
        word = self.word(node)
        assert word is not None, ast.unparse(node)
        self.check_plane(word, node)
        signature = self._callee(word, node)
        keywords = self.keywords(word, node, _KEYWORDS[word])
        stmts, args = self._arguments(signature, node)
        results = self._context.callees.results(signature.name)
        if results is None:
            message = f"The results of {signature.name!r} are not known here"
            hint = "annotate them with ->"
            raise self._context.error(ParserTypeError, message, node, hint=hint)
        calls = self._body.expressions.calls
        results = tuple(calls.in_caller(type_, signature, args) for type_ in results)
        core_num = self.core_num(keywords["core_num"]) if "core_num" in keywords else None
        if word == "spmd_submit" and core_num is None:
            message = "pl.spmd_submit must say core_num=, the number of blocks"
            hint = "pl.submit launches a single block"
            raise self._context.error(ParserTypeError, message, node, hint=hint)
        attrs = calls.mapping(keywords["attrs"]) if "attrs" in keywords else {}
        dumps = self.dumps(keywords.get("dumps"), args)
        if dumps:
            attrs[DUMP_VARS] = dumps
        return stmts, Submit(
            GlobalVar(signature.name),
            args,
            self.deps(keywords.get("deps")),
            {},
            attrs,
            TupleType((*results, ScalarType(TaskId))),
            self._context.span(node),
            core_num=core_num,
            sync_start=self.flag(keywords, "sync_start"),
            allow_early_resolve=self.flag(keywords, "allow_early_resolve"),
            predicate=self._predicate(keywords.get("predicate")),
        )

    def _callee(self, word: str, node: ast.Call) -> Signature:
        shape = f"pl.{word}(self.kernel, a, out)"
        match node.args[:1]:
            case [ast.Attribute(value=ast.Name(id="self"), attr=name)]:
                return self._body.expressions.calls.signature(name, node.args[0])
            case [ast.Call() as call]:
                message = f"pl.{word} must be given the function itself, not a call of it"
                hint = f"{shape}: the arguments follow the function"
                raise self._context.error(ParserTypeError, message, call, hint=hint)
            case [first]:
                function = self._body.expressions.calls.adopted(first)
                if function is not None:
                    return self._body.expressions.calls.signature(function.name, first)
            case _:
                pass
        message = f"pl.{word} must be given a function of the program first"
        where = node.args[0] if node.args else node
        raise self._context.error(ParserTypeError, message, where, hint=shape)

    def _arguments(self, signature: Signature, node: ast.Call) -> tuple[list[Stmt], list[Expr]]:
        """Return the arguments for all parameters; outputs at the end may be left out."""
        given = node.args[1:]
        params = signature.params
        outputs = [p for p in params if p.direction is ParamDirection.Out]
        missing = len(params) - len(given)
        if not 0 <= missing <= len(outputs):
            least, most = len(params) - len(outputs), plural(len(params), "argument")
            wanted = most if least == len(params) else f"{least} to {most}"
            message = f"{signature.name!r} must be submitted with {wanted}, not {len(given)}"
            hint = f"its parameters are {', '.join(p.name for p in params) or 'none'}"
            raise self._context.error(ParserTypeError, message, node, hint=hint)
        left_out = outputs[len(outputs) - missing :]
        waiting = list(given)
        stmts: list[Stmt] = []
        args: list[Expr] = []
        for param in params:
            if any(param is out for out in left_out):
                fresh = self._fresh_output(param, signature, node)
                stmts.append(fresh)
                args.append(fresh.var)
            else:
                arg = waiting.pop(0)
                args.append(self._body.expressions.calls.argument(param, signature, arg))
        return stmts, args

    def _fresh_output(self, param: Parameter, signature: Signature, node: ast.Call) -> AssignStmt:
        type_ = param.type
        if not isinstance(type_, TensorType) or type_.stride or constant_dims(type_.shape) is None:
            message = f"The output {param.name!r} of {signature.name!r} must be given"
            hint = "only a packed tensor of constant shape can be left out"
            raise self._context.error(ParserTypeError, message, node, hint=hint)
        span = self._context.span(node)
        kwargs: dict[str, object] = {"dtype": type_.dtype}
        if type_.layout is not TensorLayout.ND:
            kwargs["layout"] = type_.layout
        made = ROWS["tensor.create"].call([list(type_.shape)], kwargs, span)
        scope, name, number = self._context.scope, f"_{param.name}", 0
        while name in scope:
            number += 1
            name = f"_{param.name}_{number}"
        return AssignStmt(scope.define(name, made.type, span), made, span)

    def unpack(self, target: ast.Tuple, value: ast.Call, node: ast.stmt) -> list[Stmt]:
        """Return `out, tid = pl.submit(…)`, `(a, b), tid = …` or `(tid,) = …`."""
        stmts, made = self.submit(value)
        types = _result_types(made)
        results, task = self._targets(target, len(types) - 1, made)
        span = self._context.span(node)
        whole = self._body.assignments.temporary(made.type, span)
        stmts.append(AssignStmt(whole, made, span))
        for position, element in enumerate([*results, task]):
            name = self._body.assignments.name(element)
            var = self._body.assignments.assigned(name, types[position], element)
            stmts.append(AssignStmt(var, TupleGetItemExpr(whole, position, span), span))
        return stmts

    def _targets(
        self, target: ast.Tuple, count: int, made: Submit
    ) -> tuple[list[ast.expr], ast.expr]:
        match target.elts, count:
            case [task], 0:
                return [], task
            case [ast.Tuple(elts=results), task], _ if count > 1 and len(results) == count:
                return results, task
            case [result, task], 1 if not isinstance(result, ast.Tuple):
                return [result], task
            case _:
                name, results = made.op.name, plural(count, "result")
                message = f"A submit of {name!r} must be assigned to {results} and a TASK_ID"
                outs = ", ".join("abcdefgh"[:count])
                left = {0: "(tid,)", 1: "out, tid"}.get(count, f"({outs}), tid")
                hint = f"{left} = pl.submit(…)"
                raise self._context.error(ParserTypeError, message, target, hint=hint)

    # ------------------------------------------------------------------------ keywords

    def keywords(self, word: str, node: ast.Call, known: Sequence[str]) -> dict[str, ast.expr]:
        """Return the keywords of a call.

        Raises:
            ParserTypeError: When one is not among `known`.
        """
        for keyword in node.keywords:
            if keyword.arg not in known:
                message = f"pl.{word} must not have the keyword {keyword.arg}="
                hint = f"it takes {', '.join(known)}"
                if keyword.arg in ("core_num", "sync_start"):
                    hint = "pl.spmd_submit takes core_num= and sync_start="
                raise self._context.error(ParserTypeError, message, keyword, hint=hint)
        return {k.arg or "": k.value for k in node.keywords}

    def flag(self, keywords: dict[str, ast.expr], name: str) -> bool:
        """Return the value of a keyword that is True or False, and False where it is left out."""
        node = keywords.get(name)
        value = False if node is None else self._context.capture.fold(node)
        if not isinstance(value, bool):
            assert node is not None
            message = f"{name} must be True or False, not {ast.unparse(node)}"
            raise self._context.error(ParserTypeError, message, node)
        return value

    def core_num(self, node: ast.expr) -> Expr:
        """Return a number of blocks."""
        count = self._body.expressions.parse(node)
        integer = isinstance(count.type, ScalarType) and count.type.dtype in INTEGER_FORMATS
        if not integer or (isinstance(count, ConstInt) and count.value < 1):
            shown = count.value if isinstance(count, ConstInt) else ast.unparse(node)
            message = f"The number of blocks must be an integer of 1 or more, not {shown}"
            raise self._context.error(ParserTypeError, message, node)
        return count

    def deps(self, node: ast.expr | None) -> tuple[Expr, ...]:
        """Return the TASK_IDs of `deps=[…]`; None among them is dropped."""
        found: list[Expr] = []
        for element in self._elements(node, "deps"):
            if isinstance(element, ast.Constant) and element.value is None:
                continue
            made = self._body.expressions.parse(element)
            if not is_task(made):
                message = (
                    f"deps must hold TASK_IDs, but {ast.unparse(element)} is {kind_of(made.type)}"
                )
                hint = "a TASK_ID is the last result of a submit: out, tid = pl.submit(…)"
                raise self._context.error(ParserTypeError, message, element, hint=hint)
            found.append(made)
        return tuple(found)

    def dumps(self, node: ast.expr | None, consumed: Sequence[Expr]) -> list[Var]:
        """Return the variables of `dumps=[…]`, and the tagged ones among what is consumed."""
        found: dict[Var, None] = {}
        for element in self._elements(node, "dumps"):
            made = self._body.expressions.parse(element)
            if not isinstance(made, Var) or all(made is not var for var in uses(consumed)):
                message = f"dumps must hold arguments of the launch, not {ast.unparse(element)}"
                raise self._context.error(ParserTypeError, message, element)
            found.setdefault(made)
        for var in uses(consumed):
            if var in self._context.tagged:
                found.setdefault(var)
        return list(found)

    def _elements(self, node: ast.expr | None, name: str) -> list[ast.expr]:
        match node:
            case None | ast.Constant(value=None):
                return []
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return elements
            case _:
                message = f"{name} must be a list that is written out, not {ast.unparse(node)}"
                hint = f"{name}=[a, b]"
                raise self._context.error(UnsupportedFeatureError, message, node, hint=hint)

    def _predicate(self, node: ast.expr | None) -> Expr | None:
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return None
        made = self._body.expressions.parse(node)
        if not isinstance(made.type, ScalarType) or made.type.dtype is not DType.Bool:
            message = f"predicate must be a comparison of scalars, not {kind_of(made.type)}"
            raise self._context.error(ParserTypeError, message, node, hint="predicate=(n > 0)")
        return made

    # ------------------------------------------------------------------------ tags

    def dump_tag(self, node: ast.Call) -> None:
        """Note a tensor: the launches that consume it from here on say so."""
        self.check_plane("dump_tag", node)
        made = self._body.expressions.parse(node.args[0]) if len(node.args) == 1 else None
        if node.keywords or not isinstance(made, Var) or not isinstance(made.type, TensorType):
            message = "pl.dump_tag must be given one variable that is a tensor"
            raise self._context.error(ParserSyntaxError, message, node, hint="pl.dump_tag(x)")
        self._context.tagged.add(made)


def no_task(node: ast.expr, body: BodyParser) -> Call:
    """Return what `prev = None` assigns: the TASK_ID of no launch."""
    return ROWS["system.task_invalid"].call([], {}, body.context.span(node))


def _result_types(made: Submit) -> Sequence[Type]:
    assert isinstance(made.type, TupleType), made.type
    return made.type.types
