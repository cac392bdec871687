"""What several rules ask of statements and expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    Function,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..node_exprs import type_exprs
from ..types import TileType, TupleType
from ..visitor import IRVisitor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..expr import Call, Expr, Submit, Type, Var


def statements(body: Stmt | None) -> Iterator[Stmt]:
    """Yield every statement of a body, nested ones after the one that holds them."""
    if body is None:
        return
    yield body
    for inner in bodies(body):
        yield from statements(inner)


def bodies(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the statements directly inside a statement."""
    match stmt:
        case SeqStmts(stmts):
            return stmts
        case ForStmt() | WhileStmt() | ScopeStmt():
            return (stmt.body,)
        case IfStmt():
            arms = (stmt.then_body, stmt.else_body)
            return tuple(arm for arm in arms if arm is not None)
        case _:
            return ()


def own_exprs(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the expressions that a statement evaluates itself, before any body of its own."""
    match stmt:
        case AssignStmt():
            return (stmt.value,)
        case EvalStmt():
            return (stmt.expr,)
        case YieldStmt() | ReturnStmt():
            return stmt.value
        case ForStmt():
            initial = tuple(arg.init_value for arg in stmt.iter_args)
            return (stmt.start, stmt.stop, stmt.step, *initial)
        case WhileStmt():
            return tuple(arg.init_value for arg in stmt.iter_args)
        case IfStmt():
            return (stmt.condition,)
        case SpmdScopeStmt():
            return (stmt.core_num, *stmt.deps, *stmt.dumps)
        case ScopeStmt():
            return (*stmt.deps, *stmt.dumps)
        case _:
            return ()


class _Uses(IRVisitor):
    def __init__(self) -> None:
        self.found: list[Var] = []

    def visit_var_like(self, op: Var) -> None:
        self.found.append(op)


def uses(exprs: Iterable[Expr]) -> list[Var]:
    """Return the variables that expressions read, attributes of calls included."""
    visitor = _Uses()
    for expr in exprs:
        visitor.visit_expr(expr)
    return visitor.found


def type_uses(type_: Type) -> list[Var]:
    """Return the variables that stand in a type's dimensions."""
    return uses(type_exprs(type_))


class _Calls(IRVisitor):
    def __init__(self) -> None:
        self.found: list[Call | Submit] = []

    def visit_call(self, op: Call) -> None:
        self.visit_children(op)
        self.found.append(op)

    def visit_submit(self, op: Submit) -> None:
        self.visit_children(op)
        self.found.append(op)


def calls(exprs: Iterable[Expr]) -> list[Call | Submit]:
    """Return the calls in expressions, inner ones first."""
    visitor = _Calls()
    for expr in exprs:
        visitor.visit_expr(expr)
    return visitor.found


def all_calls(function: Function) -> Iterator[Call | Submit]:
    """Yield every call of a function."""
    for stmt in statements(function.body):
        exprs = own_exprs(stmt)
        if isinstance(stmt, WhileStmt):
            exprs = (*exprs, stmt.condition)
        yield from calls(exprs)


def defined_vars(stmt: Stmt) -> tuple[Var, ...]:
    """Return the variables that a statement itself defines."""
    match stmt:
        case AssignStmt():
            return (stmt.var,)
        case ForStmt():
            return (stmt.loop_var, *stmt.iter_args, *stmt.return_vars)
        case WhileStmt():
            return (*stmt.iter_args, *stmt.return_vars)
        case IfStmt():
            return stmt.return_vars
        case ScopeStmt():
            return () if stmt.task_id is None else (stmt.task_id,)
        case _:
            return ()


def all_vars(function: Function) -> Iterator[Var]:
    """Yield every variable that a function defines, parameters first."""
    yield from function.params
    for stmt in statements(function.body):
        yield from defined_vars(stmt)


def tile_types(type_: Type) -> tuple[TileType, ...]:
    """Return the tile types in a type."""
    match type_:
        case TileType():
            return (type_,)
        case TupleType():
            return tuple(t for inner in type_.types for t in tile_types(inner))
        case _:
            return ()


def tiles(function: Function) -> Iterator[tuple[Var, TileType]]:
    """Yield every variable of a function that holds a tile, with the tile's type."""
    for var in all_vars(function):
        for type_ in tile_types(var.type):
            yield var, type_


def jumps(body: Stmt) -> Iterator[BreakStmt | ContinueStmt]:
    """Yield what leaves a trip of the loop whose body this is; a loop inside has jumps of its own."""
    if isinstance(body, BreakStmt | ContinueStmt):
        yield body
    elif not isinstance(body, ForStmt | WhileStmt):
        for inner in bodies(body):
            yield from jumps(inner)


def leaves(body: Stmt | None) -> bool:
    """Whether a body ends by jumping away, so that nothing after it runs."""
    last = flatten_to_stmts(body)[-1:]
    return bool(last) and isinstance(last[0], ReturnStmt | BreakStmt | ContinueStmt)
