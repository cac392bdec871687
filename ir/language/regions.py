"""Regions that are launched: `with pl.at(…)`, `with pl.spmd(n)` and `for i in pl.spmd(n)`."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from keyword import iskeyword
from typing import TYPE_CHECKING, Final

from ..core import AssignStmt, EvalStmt, InCoreScopeStmt, Level, ScopeStmt, SpmdScopeStmt, Stmt, seq
from ..dtypes import Index, TaskId
from ..errors import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ..expr import DUMP_VARS, Call, Expr, GlobalVar, ScalarType, Var, replace
from ..ops import ROWS
from ..visitor import IRVisitor, set_call_attrs

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from .statements import BodyParser

_LEFT_OUT: Final = {
    "optimizations": "leave it out: a kernel runs on the one cube core, which has nothing to split",
    "no_dep_args": "leave it out: launches wait for what their arguments imply",
    "windowize": "leave it out: the windows are what pl.load and pl.store say",
    "role": "leave it out: the region is what a core runs",
    "predicate": "what works: out, tid = pl.spmd_submit(self.kernel, …, core_num=n, predicate=(…))",
}
_COMMON: Final = ("name_hint", "deps", "dumps", "allow_early_resolve")
_KEYWORDS: Final = {"at": ("level", *_COMMON), "spmd": ("sync_start", *_COMMON)}
_SHAPES: Final = {
    "at": "with pl.at(level=pl.Level.CORE_GROUP):",
    "spmd": "with pl.spmd(n): or for i in pl.spmd(n):",
}
_BLOCK_IDS: Final = ("tile.get_block_idx", "tile.get_block_num")
_GONE: Final = "it belongs to a region that is launched, which hands out tensors only"


class RegionParser:
    """Reads the regions of one function."""

    def __init__(self, body: BodyParser) -> None:
        self._body = body
        self._context = body.context

    def word(self, node: ast.With) -> str | None:
        """Return `at` or `spmd` if `node` is a region, else None."""
        entered = [item.context_expr for item in node.items]
        words = (w for w in _KEYWORDS for e in entered if self._body.is_call_of(e, w))
        return next(words, None)

    def region(self, node: ast.With) -> list[Stmt]:
        """Return the statements that `with pl.at(…)` or `with pl.spmd(…)` says."""
        word = self.word(node)
        assert word is not None, ast.unparse(node)
        if len(node.items) != 1:
            message = "A with must have one item, not several"
            hint = "regions stand one after another"
            raise self._context.error(UnsupportedFeatureError, message, node, hint=hint)
        item = node.items[0]
        call = item.context_expr
        assert isinstance(call, ast.Call), ast.unparse(call)
        self._body.launches.check_plane(word, call)
        stmts = self._inside(word, node.body)
        if word == "at":
            self._check_level(call)
            core = InCoreScopeStmt(body=self._filled(stmts, node), span=self._context.span(node))
            return [self._finished(core, word, call, item.optional_vars)]
        if _reads_block(stmts):
            inline = self._grid(call, self._inline(stmts, call, node), node)
            return [self._finished(inline, word, call, item.optional_vars)]
        before, launch, after = self._dispatch(stmts, node)
        grid = self._finished(self._grid(call, launch, node), word, call, item.optional_vars)
        return [*before, self._dumped(grid, launch), *after]

    def _dumped(self, grid: ScopeStmt, launch: Stmt) -> ScopeStmt:
        """Return a grid whose one call, not itself, says what is to be dumped."""
        if not grid.dumps:
            return grid
        field = "value" if isinstance(launch, AssignStmt) else "expr"
        call: Call = getattr(launch, field)
        dumps = list(dict.fromkeys([*call.attrs.get(DUMP_VARS, ()), *grid.dumps]))
        call = set_call_attrs(call, {**call.attrs, DUMP_VARS: dumps})
        return replace(grid, body=replace(launch, **{field: call}), dumps=())

    def loop(self, node: ast.For, call: ast.Call) -> list[Stmt]:
        """Return the grid that `for i in pl.spmd(…)` says."""
        self._body.launches.check_plane("spmd", call)
        if not isinstance(node.target, ast.Name):
            message = (
                f"A grid must be written for i in pl.spmd(n), not for {ast.unparse(node.target)}"
            )
            hint = "blocks run side by side and carry nothing from one to the next"
            raise self._context.error(ParserSyntaxError, message, node.target, hint=hint)
        span = self._context.span(node.target)
        block = Var(node.target.id, ScalarType(Index), span)
        number = ROWS["tile.get_block_idx"].call([], {}, span)
        with self._context.scope.loop([(node.target.id, block)], "it belongs to a grid"):
            stmts = self._inside("spmd", node.body)
        stmts = [AssignStmt(block, number, span), *stmts]
        grid = self._grid(call, self._inline(stmts, call, node), node)
        return [self._finished(grid, "spmd", call, None)]

    # ------------------------------------------------------------------------ bodies

    def _inside(self, word: str, nodes: Sequence[ast.stmt]) -> list[Stmt]:
        """Return the statements of a region; what it defines, tensors apart, ends with it."""
        from .statements import Block

        with self._context.scope.region(_GONE), self._standing_in(word):
            return self._body.statements(nodes, Block(may_yield=False))

    @contextmanager
    def _standing_in(self, word: str) -> Generator[None]:
        outer, self._body.region = self._body.region, word
        jumps = self._body.loops.enter(f"pl.{word}")
        with jumps:
            yield
        self._body.region = outer

    def _filled(self, stmts: list[Stmt], node: ast.AST) -> Stmt:
        if not stmts:
            message = "A region that is launched must hold statements, not pass alone"
            raise self._context.error(ParserSyntaxError, message, node)
        for stmt in stmts:
            for call in _kernel_calls(stmt):
                message = (
                    f"The region must hold what a core does, not the call of {call.name!r}, "
                    "which is a launch of its own"
                )
                hint = f"call self.{call.name}(…) outside of the region"
                raise self._context.error(UnsupportedFeatureError, message, call.span, hint=hint)
        return seq(stmts, self._context.span(node))

    def _inline(self, stmts: list[Stmt], call: ast.Call, node: ast.AST) -> Stmt:
        hint = self._name_hint(self._keywords("spmd", call))
        span = self._context.span(node)
        return InCoreScopeStmt(body=self._filled(stmts, node), name_hint=hint, span=span)

    def _dispatch(self, stmts: list[Stmt], node: ast.With) -> tuple[list[Stmt], Stmt, list[Stmt]]:
        """Return what stands before the launch, the launch, and what stands behind it."""
        found = [i for i, stmt in enumerate(stmts) if _is_launch(stmt)]
        calls = [call for stmt in stmts for call in _kernel_calls(stmt)]
        if len(found) != 1 or len(calls) != 1 or not all(map(_is_plain, stmts)):
            message = (
                "The body of pl.spmd must launch one kernel, or be what a block does and read "
                "pl.tile.get_block_idx()"
            )
            hint = "out = self.kernel(a, out), or for i in pl.spmd(n):"
            where = node.items[0].context_expr
            raise self._context.error(ParserSyntaxError, message, where, hint=hint)
        at = found[0]
        return stmts[:at], stmts[at], stmts[at + 1 :]

    # ------------------------------------------------------------------------ heads

    def _keywords(self, word: str, call: ast.Call) -> dict[str, ast.expr]:
        known = _KEYWORDS[word]
        kept: list[ast.keyword] = []
        for keyword in call.keywords:
            name = keyword.arg or ""
            if name not in _LEFT_OUT:
                kept.append(keyword)
            elif self._context.capture.fold(keyword.value) not in (None, False, [], ()):
                message = f"{name}= of pl.{word} is not part of this language"
                hint = _LEFT_OUT[name]
                raise self._context.error(UnsupportedFeatureError, message, keyword, hint=hint)
        plain = ast.Call(call.func, call.args, kept)
        return self._body.launches.keywords(word, ast.copy_location(plain, call), known)

    def _check_level(self, call: ast.Call) -> None:
        node = self._keywords("at", call).get("level")
        level = None if node is None else self._context.capture.fold(node)
        if call.args or level is not Level.CORE_GROUP:
            found = f", not {ast.unparse(node or call.args[0])}" if node or call.args else ""
            message = f"pl.at must say level=pl.Level.CORE_GROUP{found}"
            hint = "it is the one level whose regions are launched on a core"
            raise self._context.error(UnsupportedFeatureError, message, node or call, hint=hint)

    def _grid(self, call: ast.Call, body: Stmt, node: ast.AST) -> SpmdScopeStmt:
        if len(call.args) != 1:
            message = f"pl.spmd must have one number of blocks, not {len(call.args)}"
            raise self._context.error(ParserTypeError, message, call, hint=_SHAPES["spmd"])
        launches = self._body.launches
        return SpmdScopeStmt(
            core_num=launches.core_num(call.args[0]),
            body=body,
            sync_start=launches.flag(self._keywords("spmd", call), "sync_start"),
            span=self._context.span(node),
        )

    def _finished(
        self,
        scope: InCoreScopeStmt | SpmdScopeStmt,
        word: str,
        call: ast.Call,
        named: ast.expr | None,
    ) -> ScopeStmt:
        """Return a region with the keywords that both kinds have, and its TASK_ID."""
        keywords = self._keywords(word, call)
        launches = self._body.launches
        if word == "spmd" and named is None and "deps" in keywords:
            message = "pl.spmd must bind its TASK_ID when it has deps="
            hint = "with pl.spmd(n, deps=[…]) as tid:"
            raise self._context.error(ParserSyntaxError, message, keywords["deps"], hint=hint)
        deps = launches.deps(keywords.get("deps"))
        used: list[Expr] = list(dict.fromkeys(_reads(scope.body)))
        return replace(
            scope,
            name_hint=self._name_hint(keywords),
            deps=deps,
            dumps=tuple(launches.dumps(keywords.get("dumps"), used)),
            allow_early_resolve=launches.flag(keywords, "allow_early_resolve"),
            task_id=None if named is None else self._task_id(named),
        )

    def _task_id(self, named: ast.expr) -> Var:
        name = self._body.assignments.name(named)
        return self._body.assignments.assigned(name, ScalarType(TaskId), named)

    def _name_hint(self, keywords: dict[str, ast.expr]) -> str:
        node = keywords.get("name_hint")
        value = "" if node is None else self._context.capture.fold(node)
        if isinstance(value, str) and (not value or value.isidentifier()) and not iskeyword(value):
            return value
        assert node is not None
        message = f"name_hint must be a name for a function, not {ast.unparse(node)}"
        raise self._context.error(ParserTypeError, message, node)


class _Reads(IRVisitor):
    def __init__(self) -> None:
        self.found: list[Var] = []
        self.calls: list[Call] = []

    def visit_var_like(self, op: Var) -> None:
        self.found.append(op)

    def visit_call(self, op: Call) -> None:
        self.calls.append(op)
        self.visit_children(op)


def _read(*stmts: Stmt) -> _Reads:
    reads = _Reads()
    for stmt in stmts:
        reads.visit_stmt(stmt)
    return reads


def _reads(body: Stmt) -> list[Var]:
    return _read(body).found


def _kernel_calls(stmt: Stmt) -> list[Call]:
    return [call for call in _read(stmt).calls if isinstance(call.op, GlobalVar)]


def _reads_block(stmts: Sequence[Stmt]) -> bool:
    return any(call.name in _BLOCK_IDS for call in _read(*stmts).calls)


def _is_launch(stmt: Stmt) -> bool:
    match stmt:
        case AssignStmt(value=Call(op=GlobalVar())) | EvalStmt(expr=Call(op=GlobalVar())):
            return True
        case _:
            return False


def _is_plain(stmt: Stmt) -> bool:
    """Whether a statement beside the launch can as well stand outside of the grid."""
    tiles = any(call.name.startswith("tile.") for call in _read(stmt).calls)
    return isinstance(stmt, AssignStmt | EvalStmt) and not tiles
