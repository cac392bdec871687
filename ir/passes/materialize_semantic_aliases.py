"""MaterializeSemanticAliases: what is one value over time lies in one buffer.

A loop's initial value, its iteration argument, what a trip yields and the result share a buffer, as do
both arms' yields of a branch and its result. Sharing must not overwrite a value that is still needed:
the machine has no copy between accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    ForStmt,
    Function,
    FunctionType,
    IfStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..errors import IRValueError
from ..expr import Call, Op, Var
from ..ops import ROWS
from ..properties import IRProperty
from ..visitor import IRVisitor
from .base import FunctionPass
from .liveness import live_before, live_in_loop
from .memrefs import tile_of, tile_vars, with_memrefs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expr import Expr
    from ..types import MemRef


@dataclass(frozen=True)
class MaterializeSemanticAliases(FunctionPass):
    """Join the buffers of carried tiles, and refuse a program that needs a copy for it."""

    name = "MaterializeSemanticAliases"
    required = frozenset({IRProperty.HasMemRefs})
    produced = frozenset({IRProperty.HasMemRefs})

    def transform_function(self, function: Function) -> Function:
        """Join the buffers of one function."""
        if function.func_type not in (FunctionType.InCore, FunctionType.AIC):
            return function
        groups = _Groups()
        groups.visit_function(function)
        refs: dict[Var, MemRef] = {}
        for var in tile_vars(function):
            tile = tile_of(var)
            assert tile is not None
            if tile.memref is not None:
                refs[var] = groups.joined(tile.memref)
        joined = with_memrefs(function, refs)
        _Overwrites().check(joined)
        return joined


class _Groups(IRVisitor):
    """Union-find over buffer names."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._refs: dict[str, MemRef] = {}

    def joined(self, ref: MemRef) -> MemRef:
        return self._refs.get(self._root(ref.name), ref)

    def _root(self, name: str) -> str:
        while self._parent.get(name, name) != name:
            name = self._parent[name]
        return name

    def _join(self, one: Expr, other: Expr) -> None:
        mine, theirs = tile_of(one), tile_of(other)
        if mine is None or theirs is None or mine.memref is None or theirs.memref is None:
            return
        root, child = self._root(mine.memref.name), self._root(theirs.memref.name)
        self._refs.setdefault(root, mine.memref)
        self._parent[root] = root
        self._parent[child] = root

    def visit_for_stmt(self, op: ForStmt) -> None:
        self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._loop(op)

    def _loop(self, op: ForStmt | WhileStmt) -> None:
        yielded = _yielded(op.body)
        for index, arg in enumerate(op.iter_args):
            self._join(arg.init_value, arg)
            if index < len(yielded):
                self._join(arg.init_value, yielded[index])
            if index < len(op.return_vars):
                self._join(arg.init_value, op.return_vars[index])
        self.visit_children(op)

    def visit_if_stmt(self, op: IfStmt) -> None:
        arms = [_yielded(op.then_body), _yielded(op.else_body)]
        for index, var in enumerate(op.return_vars):
            for values in arms:
                if index < len(values):
                    self._join(var, values[index])
        self.visit_children(op)


def _yielded(body: Stmt | None) -> Sequence[Expr]:
    stmts = flatten_to_stmts(body)
    return stmts[-1].value if stmts and isinstance(stmts[-1], YieldStmt) else ()


class _Overwrites:
    """Checks that no write into a buffer hits a value that is needed later."""

    def check(self, function: Function) -> None:
        self._body(function.body, set())

    def _body(self, body: Stmt, live_out: set[Var]) -> None:
        live = live_out
        for stmt in reversed(flatten_to_stmts(body)):
            match stmt:
                case AssignStmt():
                    self._assign(stmt, live)
                case ForStmt() | WhileStmt():
                    again = live_in_loop(stmt, live) | set(stmt.iter_args)
                    inside = (live - set(stmt.return_vars)) | (again - set(stmt.iter_args))
                    self._body(stmt.body, inside)
                case IfStmt():
                    inside = live - set(stmt.return_vars)
                    self._body(stmt.then_body, inside)
                    if stmt.else_body is not None:
                        self._body(stmt.else_body, inside)
                case _:
                    pass
            live = live_before(stmt, live)

    def _assign(self, stmt: AssignStmt, live_after: set[Var]) -> None:
        tile = tile_of(stmt.var)
        if tile is None or tile.memref is None or not _writes(stmt.value):
            return
        for other in live_after - {stmt.var}:
            theirs = tile_of(other)
            if theirs is None or theirs.memref is None or theirs.memref.name != tile.memref.name:
                continue
            message = (
                f"The tile {other.name_hint!r} must not be needed after this statement, which writes "
                f"{stmt.var.name_hint!r} into the same buffer: store it before, or compute it again"
            )
            raise IRValueError(message, stmt.span)


def _writes(value: Expr) -> bool:
    """Whether a right-hand side writes its result's buffer, rather than naming it again."""
    if not isinstance(value, Call) or not isinstance(value.op, Op):
        return False
    return value.op.name != "tile.tget_scale_addr" and ROWS[value.op.name].name.startswith("tile.")
