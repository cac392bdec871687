"""Which variables are still needed, and where each is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import AssignStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, Stmt, WhileStmt
from ..visitor import IRVisitor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..expr import Expr, Node, Var


class _Uses(IRVisitor):
    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var_like(self, op: Var) -> None:
        self.found.setdefault(op)


def used_vars(*nodes: Node | None) -> set[Var]:
    """Return the variables that occur in expressions; for a statement, those it defines too."""
    uses = _Uses()
    for node in nodes:
        if node is not None:
            uses.visit(node)
    return set(uses.found)


def assigned_vars(stmts: Iterable[Stmt]) -> list[Var]:
    """Return the variables that statements assign or leave behind, in order, each once."""
    found: dict[Var, None] = {}
    for stmt in stmts:
        match stmt:
            case AssignStmt():
                found.setdefault(stmt.var)
            case SeqStmts():
                found.update(dict.fromkeys(assigned_vars(stmt.stmts)))
            case ForStmt() | WhileStmt():
                found.update(dict.fromkeys(assigned_vars((stmt.body,))))
                found.update(dict.fromkeys(stmt.return_vars))
            case IfStmt():
                arms = [arm for arm in (stmt.then_body, stmt.else_body) if arm is not None]
                found.update(dict.fromkeys(assigned_vars(arms)))
                found.update(dict.fromkeys(stmt.return_vars))
            case _:
                continue
    return list(found)


def live_before(stmt: Stmt, after: set[Var]) -> set[Var]:
    """Return what is needed before `stmt` when `after` is needed behind it."""
    match stmt:
        case AssignStmt():
            return (after - {stmt.var}) | used_vars(stmt.value)
        case SeqStmts():
            live = after
            for inner in reversed(stmt.stmts):
                live = live_before(inner, live)
            return live
        case ForStmt():
            inside = live_in_loop(stmt, after)
            return (
                (after - set(stmt.return_vars))
                | inside
                | _inits(stmt)
                | used_vars(stmt.start, stmt.stop, stmt.step)
            )
        case WhileStmt():
            inside = live_in_loop(stmt, after)
            return (after - set(stmt.return_vars)) | inside | _inits(stmt)
        case IfStmt():
            outer = after - set(stmt.return_vars)
            then_live = live_before(stmt.then_body, outer)
            else_live = outer if stmt.else_body is None else live_before(stmt.else_body, outer)
            return then_live | else_live | used_vars(stmt.condition)
        case ReturnStmt():
            return used_vars(*stmt.value)
        case _:
            return after | used_vars(stmt)


def live_in_loop(stmt: ForStmt | WhileStmt, after: set[Var]) -> set[Var]:
    """Return what the top of a trip needs from outside the trip, its own arguments left out."""
    own: set[Var] = set(stmt.iter_args)
    test: set[Var] = set()
    if isinstance(stmt, ForStmt):
        own |= {stmt.loop_var}
    else:
        test = used_vars(stmt.condition)
    outer = after - set(stmt.return_vars)
    once = live_before(stmt.body, outer) | test
    return (live_before(stmt.body, outer | once) | test) - own


def _inits(stmt: ForStmt | WhileStmt) -> set[Var]:
    inits: list[Expr] = [arg.init_value for arg in stmt.iter_args]
    return used_vars(*inits)


def live_after_each(stmts: Sequence[Stmt], after: set[Var]) -> dict[int, set[Var]]:
    """Return, for each loop and branch of a sequence, by its index what is needed behind it."""
    found: dict[int, set[Var]] = {}
    live = after
    for index in range(len(stmts) - 1, -1, -1):
        if isinstance(stmts[index], ForStmt | WhileStmt | IfStmt):
            found[index] = set(live)
        live = live_before(stmts[index], live)
    return found
