"""Counted loops and loops with carried values."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ..core import ForKind, ForStmt, Stmt, WhileStmt
from ..dtypes import Index, Int64
from ..dtypes.formats import INTEGER_FORMATS
from ..errors import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ..expr import ConstInt, Expr, IterArg, ScalarType, Var, index
from .context import plural
from .markers import Intrinsic, Unsupported
from .typecheck import mismatch

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ..expr import Type
    from .statements import Block, BodyParser
    from .typecheck import Written

_KINDS: Final = {
    "range": ForKind.Sequential,
    "parallel": ForKind.Parallel,
    "unroll": ForKind.Unroll,
    "pipeline": ForKind.Pipeline,
}
_KEYWORDS: Final = {
    "range": ("init_values", "attrs"),
    "parallel": ("init_values", "attrs"),
    "unroll": ("attrs",),
    "pipeline": ("stage", "init_values", "attrs"),
}
#: What break and continue may stand in.
_IN_ORDER: Final = ("pl.range", "pl.while_", "while")
_GONE: Final = "it belongs to a loop that has ended"


class LoopParser:
    """Reads the loops of one function."""

    def __init__(self, body: BodyParser) -> None:
        self._body = body
        self._context = body.context
        self._around: list[str] = []

    @contextmanager
    def enter(self, what: str) -> Generator[None]:
        """Read the body of `what`, in which break and continue may stand or not."""
        self._around.append(what)
        yield
        self._around.pop()

    def check_jump(self, node: ast.Break | ast.Continue) -> None:
        """Refuse a break or continue where it has no meaning.

        Raises:
            UnsupportedFeatureError: When what it would leave has no order of trips.
        """
        word = "break" if isinstance(node, ast.Break) else "continue"
        inner = self._around[-1] if self._around else None
        if inner in _IN_ORDER:
            return
        where = f"not in {inner}" if inner else "but there is none around it"
        message = f"{word} must stand in a loop whose trips run one after another, {where}"
        hint = "what works: for i in pl.range(n): and while"
        raise self._context.error(UnsupportedFeatureError, message, node, hint=hint)

    def for_loop(self, node: ast.For) -> list[Stmt]:
        """Return the loop that `node` says."""
        if node.orelse:
            message = "else after a loop is not part of this language"
            raise self._context.error(UnsupportedFeatureError, message, node.orelse[0])
        word, call = self._head(node)
        if word == "while_":
            return [self._while_loop(node, call)]
        if word == "spmd":
            return self._body.regions.loop(node, call)
        return [self._counted(word, node, call)]

    def _head(self, node: ast.For) -> tuple[str, ast.Call]:
        """Return what a loop runs over."""
        call = node.iter
        text = ast.unparse(call)
        hint = "for i in pl.range(4): or for i in pl.pipeline(4, stage=2):"
        if isinstance(call, ast.Call):
            callee = self._context.capture.fold(call.func)
            if isinstance(callee, Unsupported):
                raise self._context.capture.unsupported(callee, call)
            words = (*_KINDS, "while_", "spmd")
            if isinstance(callee, Intrinsic) and callee.name in words:
                return callee.name, call
        message = f"A loop must run over pl.range or pl.pipeline, not over {text}"
        raise self._context.error(UnsupportedFeatureError, message, call, hint=hint)

    # ------------------------------------------------------------------------ counted

    def _counted(self, word: str, node: ast.For, call: ast.Call) -> Stmt:
        loop_name, carried = self._targets(node.target)
        keywords = self._keywords(word, call)
        start, stop, step = self._bounds(call)
        attrs = self._attrs(word, call, keywords)
        if word == "pipeline" and not isinstance(step, ConstInt):
            message = "The step of pl.pipeline must be a constant"
            raise self._context.error(ParserTypeError, message, call.args[2])
        if word == "unroll":
            self._check_unroll(call, carried, (start, stop, step))
        dtype = _loop_dtype((start, stop, step))
        loop_var = Var(loop_name, ScalarType(dtype), self._context.span(node.target))
        args = self._iter_args(carried, keywords.get("init_values"), node)
        block = self._new_block(may_yield=bool(args))
        own = [(loop_name, loop_var), *((arg.name_hint, arg) for arg in args)]
        with self._context.scope.loop(own, _GONE), self.enter(f"pl.{word}"):
            body = self._body.block(self._undeclared(node.body, args), block)
        results = self._results(args, block, node)
        return ForStmt(
            loop_var,
            start,
            stop,
            step,
            args,
            body,
            results,
            self._context.span(node),
            _KINDS[word],
            attrs,
        )

    def _check_unroll(
        self, call: ast.Call, carried: Sequence[ast.Name], bounds: Sequence[Expr]
    ) -> None:
        if carried:
            message = "pl.unroll must not carry values from trip to trip"
            hint = "assign to names from before the loop, or use pl.range"
            raise self._context.error(ParserTypeError, message, carried[0], hint=hint)
        if not all(isinstance(bound, ConstInt) for bound in bounds):
            message = "The bounds of pl.unroll must be constants"
            hint = "pl.range takes bounds that are known at run time"
            raise self._context.error(ParserTypeError, message, call, hint=hint)

    def _targets(self, target: ast.expr) -> tuple[str, list[ast.Name]]:
        """Return the loop variable's name and the carried names of `i` or `i, (a, b)`."""
        match target:
            case ast.Name(id=name):
                return name, []
            case ast.Tuple(elts=[ast.Name(id=name), ast.Tuple(elts=carried)]) if all(
                isinstance(c, ast.Name) for c in carried
            ):
                return name, [c for c in carried if isinstance(c, ast.Name)]
            case _:
                message = f"A loop must be written for i in … or for i, (s,) in …, not for {ast.unparse(target)}"
                raise self._context.error(ParserSyntaxError, message, target)

    def _keywords(self, word: str, call: ast.Call) -> dict[str, ast.expr]:
        known = _KEYWORDS[word]
        for keyword in call.keywords:
            if keyword.arg not in known:
                message = f"pl.{word} must not have the keyword {keyword.arg}="
                hint = f"it takes {', '.join(known)}"
                if keyword.arg == "stage":
                    hint = "pl.pipeline takes stage="
                elif keyword.arg == "init_values":
                    hint = "assign to names from before the loop, or use pl.range"
                raise self._context.error(ParserTypeError, message, keyword, hint=hint)
        return {k.arg or "": k.value for k in call.keywords}

    def _bounds(self, call: ast.Call) -> tuple[Expr, Expr, Expr]:
        if not 1 <= len(call.args) <= 3:
            message = f"A loop must have 1 to 3 bounds, not {len(call.args)}"
            hint = "(stop), (start, stop) or (start, stop, step)"
            raise self._context.error(ParserTypeError, message, call, hint=hint)
        parts = [self._body.expressions.scalar(arg) for arg in call.args]
        for part, arg in zip(parts, call.args, strict=True):
            if not isinstance(part.type, ScalarType) or part.type.dtype not in INTEGER_FORMATS:
                message = f"The bounds of a loop must be integers, not {ast.unparse(arg)}"
                raise self._context.error(ParserTypeError, message, arg)
        span = self._context.span(call)
        if len(parts) == 1:
            return index(0, span), parts[0], index(1, span)
        step = parts[2] if len(parts) == 3 else index(1, span)
        if isinstance(step, ConstInt) and step.value == 0:
            message = "The step of a loop must not be 0"
            raise self._context.error(ParserTypeError, message, call.args[2])
        return parts[0], parts[1], step

    def _attrs(self, word: str, call: ast.Call, keywords: dict[str, ast.expr]) -> dict[str, object]:
        attrs: dict[str, object] = {}
        if word == "pipeline":
            stage = keywords.get("stage")
            value = self._context.capture.fold(stage) if stage else None
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                found = f", not {ast.unparse(stage)}" if stage else ""
                message = f"pl.pipeline must say stage=, a constant of 1 or more{found}"
                hint = "stage=2 loads the next trip's tiles while this trip computes"
                raise self._context.error(ParserTypeError, message, stage or call, hint=hint)
            attrs["pipeline_stages"] = value
        if "attrs" in keywords:
            more = self._body.expressions.calls.value(keywords["attrs"])
            if not isinstance(more, dict):
                message = "attrs must be a dict, written {…}"
                raise self._context.error(ParserTypeError, message, keywords["attrs"])
            attrs.update(more)  # pyright: ignore[reportUnknownArgumentType]
        return attrs

    # ------------------------------------------------------------------------ carried values

    def _iter_args(
        self, carried: Sequence[ast.Name], inits: ast.expr | None, node: ast.For
    ) -> tuple[IterArg, ...]:
        if not carried and inits is None:
            return ()
        values = inits.elts if isinstance(inits, ast.Tuple | ast.List) else []
        if len(values) != len(carried):
            wanted = plural(len(carried), "value")
            message = (
                f"A loop that carries {wanted} must have as many init_values, not {len(values)}"
            )
            hint = "for i, (s,) in pl.range(n, init_values=(s0,)):"
            raise self._context.error(ParserTypeError, message, inits or node.iter, hint=hint)
        declared = self._declared(node.body, {c.id for c in carried})
        args: list[IterArg] = []
        for name, value in zip(carried, values, strict=True):
            init = self._body.expressions.parse(value)
            written = declared.get(name.id)
            type_ = self._body.assignments.checked_type(written, init.type, f"{name.id!r}", name)
            args.append(IterArg(name.id, type_, init, self._context.span(name)))
        return tuple(args)

    def _declared(self, body: Sequence[ast.stmt], names: set[str]) -> dict[str, Written]:
        """Return the types that the first lines of a loop declare for its carried values."""
        found: dict[str, Written] = {}
        for stmt in body:
            match stmt:
                case ast.AnnAssign(target=ast.Name(id=name), value=None) if name in names:
                    found[name] = self._body.annotations.local(stmt.annotation)
                case _:
                    break
        return found

    def _undeclared(self, body: Sequence[ast.stmt], args: Sequence[IterArg]) -> list[ast.stmt]:
        count = len(self._declared(body, {arg.name_hint for arg in args}))
        return list(body[count:])

    def _new_block(self, *, may_yield: bool) -> Block:
        from .statements import Block

        return Block(may_yield=may_yield)

    def _results(self, args: Sequence[IterArg], block: Block, node: ast.For) -> tuple[Var, ...]:
        if not args:
            return ()
        if len(block.yields) != len(args):
            wanted, found = plural(len(args), "value"), len(block.yields)
            message = f"A loop that carries {wanted} must end in a yield of as many, not {found}"
            hint = "end it with a_next, b_next = pl.yield_(a, b), a name for each"
            raise self._context.error(ParserSyntaxError, message, node.target, hint=hint)
        for arg, value in zip(args, block.values or (), strict=True):
            fault = mismatch(arg.type, value.type)
            if fault is not None:
                message = f"The value yielded for {arg.name_hint!r} {fault}"
                raise self._context.error(ParserTypeError, message, value.span)
        types: list[Type] = [arg.type for arg in args]
        results = self._body.yielded(block, types)
        for var in results:
            self._context.scope.bind(var.name_hint, var)
        return results

    def _while_loop(self, node: ast.For, call: ast.Call) -> Stmt:
        names = node.target.elts if isinstance(node.target, ast.Tuple) else []
        carried = [name for name in names if isinstance(name, ast.Name)]
        inits = next((k.value for k in call.keywords if k.arg == "init_values"), None)
        if call.args or inits is None or not carried or len(carried) != len(names):
            message = "A pl.while_ loop must be written for (x,) in pl.while_(init_values=(x0,)):"
            raise self._context.error(ParserSyntaxError, message, call)
        args = self._iter_args(carried, inits, node)
        body = self._undeclared(node.body, args)
        block = self._new_block(may_yield=True)
        own = [(arg.name_hint, arg) for arg in args]
        with self._context.scope.loop(own, _GONE), self.enter("pl.while_"):
            condition = self._condition(body, node)
            stmt = self._body.block(body[1:], block)
        results = self._results(args, block, node)
        return WhileStmt(condition, args, stmt, results, self._context.span(node))

    def _condition(self, body: Sequence[ast.stmt], node: ast.For) -> Expr:
        match body[:1]:
            case [ast.Expr(value=ast.Call(func=func, args=[test]))]:
                word = self._context.capture.fold(func)
                if isinstance(word, Intrinsic) and word.name == "cond":
                    return self._body.condition(test, "a loop")
            case _:
                pass
        message = "A pl.while_ loop must begin with pl.cond(condition)"
        raise self._context.error(ParserSyntaxError, message, body[0] if body else node)


def _loop_dtype(bounds: tuple[Expr, Expr, Expr]) -> Any:
    """Return INT64 when a constant bound is INT64 and none is INDEX, else INDEX."""
    found = {bound.dtype for bound in bounds if isinstance(bound, ConstInt)}
    return Int64 if Int64 in found and Index not in found else Index
