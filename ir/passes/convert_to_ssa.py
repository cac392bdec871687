"""ConvertToSSA: every variable is assigned once.

A second assignment makes a new variable. What a loop rebinds and still needs becomes an iteration
argument, a yield and a return variable; what both ways through a branch leave behind becomes a yield
of both arms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    ForStmt,
    Function,
    IfStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
    seq,
)
from ..errors import IRValueError
from ..expr import Expr, IterArg, Var, replace
from ..properties import IRProperty
from ..types import MemorySpace, TileType
from ..verification.walk import jumps, leaves
from ..visitor import IRMutator
from .base import FunctionPass
from .liveness import Live, assigned_vars, live_after_each

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..expr import Node

_SUFFIX = re.compile(r"__(ssa|iter|idx|rv|phi)_v\d+$")


@dataclass(frozen=True)
class ConvertToSSA(FunctionPass):
    """Give every assignment a variable of its own, and make carried values explicit."""

    name = "ConvertToSSA"
    produced = frozenset({IRProperty.SSAForm})
    invalidated = frozenset({IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Convert one function; it is returned as it is when it is in SSA form already."""
        converter = _Converter(function)
        body = converter.body(function.body, ())
        return function if body is function.body else replace(function, body=body)


class _Renamer(IRMutator):
    """Replaces uses by the current versions, types' dimensions included."""

    def visit_var(self, op: Var) -> Var:
        return self.variables.get(op, op)

    def visit_iter_arg(self, op: IterArg) -> Var:
        return self.variables.get(op, op)


class _Converter:
    def __init__(self, function: Function) -> None:
        self._renamer = _Renamer()
        self._renamer.variables = {param: param for param in function.params}
        self._taken: set[Var] = set(function.params)
        self._versions: dict[str, int] = {}

    @property
    def _current(self) -> dict[Var, Var]:
        return self._renamer.variables

    def body(self, body: Stmt, live_out: Iterable[Var], extra_yield: Sequence[Var] = ()) -> Stmt:
        """Convert a body; the versions of `extra_yield` at its end join its yield."""
        stmts = list(flatten_to_stmts(body))
        live = live_after_each(stmts, live_out)
        done = [self._stmt(stmt, live.get(index, Live())) for index, stmt in enumerate(stmts)]
        if extra_yield and not leaves(body):
            values = tuple(self._current[var] for var in extra_yield)
            span = body.span
            if done and isinstance(done[-1], YieldStmt):
                values = done[-1].value + values
                span = done.pop().span
            done.append(YieldStmt(values, span))
        if len(done) == len(stmts) and all(a is b for a, b in zip(done, stmts, strict=True)):
            return body
        flat = tuple(inner for stmt in done for inner in flatten_to_stmts(stmt))
        return seq(flat, body.span)

    def _stmt(self, stmt: Stmt, live_after: Live) -> Stmt:
        match stmt:
            case AssignStmt():
                value = self._renamer.visit_expr(stmt.value)
                var = _placed_as(self._define(stmt.var, "ssa"), value)
                self._current[stmt.var] = var
                same = value is stmt.value and var is stmt.var
                return stmt if same else replace(stmt, var=var, value=value)
            case ForStmt() | WhileStmt():
                return self._loop(stmt, live_after)
            case IfStmt():
                return self._if(stmt, live_after)
            case ScopeStmt():
                return self._scope(stmt, live_after)
            case _:
                return self._renamer.visit_stmt(stmt)

    def _scope(self, stmt: ScopeStmt, live_after: Live) -> Stmt:
        """Convert a region: it runs once for all that is around it, so its versions live on."""
        changes: dict[str, object] = {}
        for name in type(stmt).children:
            old: Node | tuple[Expr, ...] | None = getattr(stmt, name)
            match old:
                case Var() if name == "task_id":
                    new = self._define(old, "ssa")
                case Stmt():
                    new = self.body(old, live_after)
                case Expr():
                    new = self._renamer.visit_expr(old)
                case tuple():
                    visited = tuple(self._renamer.visit_expr(e) for e in old)
                    same = all(a is b for a, b in zip(visited, old, strict=True))
                    new = old if same else visited
                case _:
                    new = old
            if new is not old:
                changes[name] = new
        return replace(stmt, **changes) if changes else stmt

    def _define(self, var: Var, kind: str) -> Var:
        """Return the variable for this definition of `var`: itself the first time."""
        if var in self._taken:
            made = self._fresh(var, kind)
        else:
            new_type = self._renamer.visit_type(var.type)
            made = var if new_type is var.type else replace(var, type=new_type)
        self._taken.add(var)
        self._current[var] = made
        return made

    def _fresh(self, var: Var, kind: str) -> Var:
        unplaced = isinstance(var.type, TileType) and var.type.memory_space is None
        old = var if unplaced else self._current.get(var, var)
        return Var(self._name(var, kind), self._renamer.visit_type(old.type), var.span)

    def _name(self, var: Var, kind: str) -> str:
        base = _SUFFIX.sub("", var.name_hint)
        self._versions[base] = self._versions.get(base, 0) + 1
        return f"{base}__{kind}_v{self._versions[base]}"

    def _carried(self, stmt: ForStmt | WhileStmt, live_after: Live) -> list[Var]:
        needed = live_after.at_top_of(stmt)
        carried: list[Var] = []
        for var in assigned_vars((stmt.body,)):
            if var in self._current and (var in needed or var in live_after):
                carried.append(var)
            elif var in live_after and var not in stmt.return_vars:
                message = (
                    f"{var.name_hint!r} must have a value before the loop, since it is used after "
                    "it and the loop may run no trip"
                )
                raise IRValueError(message, stmt.span)
        return carried

    def _loop(self, stmt: ForStmt | WhileStmt, live_after: Live) -> Stmt:
        changes: dict[str, object] = {}
        if isinstance(stmt, ForStmt):
            for name in ("start", "stop", "step"):
                bound: Expr = getattr(stmt, name)
                new = self._renamer.visit_expr(bound)
                if new is not bound:
                    changes[name] = new
        carried = self._carried(stmt, live_after)
        if carried:
            _refuse_jumps(stmt.body)
        own_args = tuple(self._iter_arg(arg) for arg in stmt.iter_args)
        new_args = tuple(self._carrying(var) for var in carried)
        outer = dict(self._current)
        self._current.update(zip(stmt.iter_args, own_args, strict=True))
        self._current.update(zip(carried, new_args, strict=True))
        if isinstance(stmt, ForStmt):
            loop_var = self._define(stmt.loop_var, "idx")
            if loop_var is not stmt.loop_var:
                changes["loop_var"] = loop_var
        else:
            condition = self._renamer.visit_expr(stmt.condition)
            if condition is not stmt.condition:
                changes["condition"] = condition
        body = self.body(stmt.body, [*live_after, *carried], carried)
        if body is not stmt.body:
            changes["body"] = body
        self._renamer.variables = outer
        results = tuple(self._define(var, "rv") for var in stmt.return_vars)
        for var in carried:
            made = self._fresh(var, "rv")
            self._current[var] = made
            results = (*results, made)
        args = own_args + new_args
        if any(a is not b for a, b in zip(args, stmt.iter_args, strict=False)) or new_args:
            changes["iter_args"] = args
        if any(a is not b for a, b in zip(results, stmt.return_vars, strict=False)) or carried:
            changes["return_vars"] = results
        return replace(stmt, **changes) if changes else stmt

    def _carrying(self, var: Var) -> IterArg:
        """Return what carries a variable through a loop: where, is open if its name lies nowhere yet."""
        made = self._fresh(var, "iter")
        return IterArg(made.name_hint, made.type, self._current[var], var.span)

    def _iter_arg(self, arg: IterArg) -> Var:
        init = self._renamer.visit_expr(arg.init_value)
        known = arg in self._taken
        self._taken.add(arg)
        if init is arg.init_value and not known:
            return arg
        return replace(arg, init_value=init)

    def _if(self, stmt: IfStmt, live_after: Live) -> Stmt:
        condition = self._renamer.visit_expr(stmt.condition)
        merged = self._merged(stmt, live_after)
        outer = dict(self._current)
        then_body = self.body(stmt.then_body, live_after, merged)
        self._renamer.variables = dict(outer)
        else_body = stmt.else_body
        if else_body is not None or merged:
            else_body = self.body(else_body or SeqStmts((), stmt.span), live_after, merged)
        self._renamer.variables = outer
        results = tuple(self._define(var, "phi") for var in stmt.return_vars)
        for var in merged:
            made = self._fresh(var, "phi")
            self._current[var] = made
            results = (*results, made)
        same = (
            condition is stmt.condition
            and then_body is stmt.then_body
            and else_body is stmt.else_body
            and not merged
            and all(a is b for a, b in zip(results, stmt.return_vars, strict=True))
        )
        if same:
            return stmt
        return replace(
            stmt, condition=condition, then_body=then_body, else_body=else_body, return_vars=results
        )

    def _merged(self, stmt: IfStmt, live_after: Live) -> list[Var]:
        """Return what the arms leave behind for later: assigned in one, and defined on every way."""
        arms = [arm for arm in (stmt.then_body, stmt.else_body) if arm is not None]
        staying = [arm for arm in arms if not leaves(arm)]
        defined = [set(assigned_vars((arm,))) for arm in staying]
        needed = [
            var
            for var in assigned_vars(staying)
            if var in live_after and var not in stmt.return_vars
        ]
        if len(staying) < len(arms) and needed:
            message = (
                f"{needed[0].name_hint!r} must not be assigned in one arm of a branch and used after "
                "it when the other arm leaves"
            )
            hint = "put what follows the branch into that arm"
            raise IRValueError(message, stmt.span, hint=hint)
        for var in needed:
            on_both = len(defined) == 2 and all(var in found for found in defined)
            if var not in self._current and not on_both:
                message = (
                    f"{var.name_hint!r} must have a value on every way to its use, since it is used "
                    "after the branch and one way through that gives it none"
                )
                hint = "assign it before the branch, or in both arms"
                raise IRValueError(message, stmt.span, hint=hint)
        return needed


def _placed_as(var: Var, value: Expr) -> Var:
    """Return the variable of a value, in its memory where the name that it goes by has none yet."""
    match var.type, value.type:
        case TileType(memory_space=None), TileType(memory_space=MemorySpace()):
            return replace(var, type=value.type)
        case _:
            return var


def _refuse_jumps(body: Stmt) -> None:
    for jump in jumps(body):
        message = "A loop that carries values must not be left by break or continue"
        raise IRValueError(message, jump.span)
