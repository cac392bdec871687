"""Which variables are still needed, and where each is used.

Liveness walks backwards. One set of variables is changed in place, so that a long sequence costs as
much as its statements, however many variables are alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from ..types import TileType
from ..verification.walk import defined_vars, own_exprs
from ..visitor import IRVisitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..expr import Node, Var


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
            case ScopeStmt():
                found.update(dict.fromkeys(assigned_vars((stmt.body,))))
                found.update(dict.fromkeys(defined_vars(stmt)))
            case _:
                continue
    return list(found)


def buffer_name(var: Var) -> str | None:
    """Return the name of the buffer that a tile variable lies in; None for any other variable."""
    memref = var.type.memref if isinstance(var.type, TileType) else None
    return None if memref is None else memref.name


class Live:
    """The variables that are needed at a place, also by the buffer that they lie in."""

    def __init__(self, variables: Iterable[Var] = ()) -> None:
        self._all: set[Var] = set()
        self._in_buffer: dict[str, set[Var]] = {}
        self.add(variables)

    def __contains__(self, var: object) -> bool:
        return var in self._all

    def __iter__(self) -> Iterator[Var]:
        return iter(self._all)

    def copy(self) -> Live:
        """Return the same variables, to be changed on their own."""
        made = Live()
        made._all = set(self._all)
        made._in_buffer = {name: set(found) for name, found in self._in_buffer.items() if found}
        return made

    def in_buffer(self, name: str) -> set[Var]:
        """Return the variables that lie in a buffer."""
        return self._in_buffer.get(name, set())

    def add(self, variables: Iterable[Var]) -> None:
        """Need these too."""
        for var in variables:
            self._all.add(var)
            name = buffer_name(var)
            if name is not None:
                self._in_buffer.setdefault(name, set()).add(var)

    def remove(self, variables: Iterable[Var]) -> None:
        """Need these no longer."""
        for var in variables:
            self._all.discard(var)
            name = buffer_name(var)
            if name is not None:
                self._in_buffer.get(name, set()).discard(var)

    # ------------------------------------------------------------------- walking backwards

    def pass_by(self, stmt: Stmt) -> None:
        """Go from behind `stmt` to before it."""
        match stmt:
            case AssignStmt():
                self.remove((stmt.var,))
                self.add(used_vars(stmt.value))
            case SeqStmts():
                for inner in reversed(stmt.stmts):
                    self.pass_by(inner)
            case ForStmt() | WhileStmt():
                self.remove(stmt.return_vars)
                self.add(self.at_top_of(stmt))
                self.add(used_vars(*(arg.init_value for arg in stmt.iter_args)))
                if isinstance(stmt, ForStmt):
                    self.add(used_vars(stmt.start, stmt.stop, stmt.step))
            case IfStmt():
                self.remove(stmt.return_vars)
                other = self.copy()
                self.pass_by(stmt.then_body)
                if stmt.else_body is not None:
                    other.pass_by(stmt.else_body)
                self.add(other)
                self.add(used_vars(stmt.condition))
            case ScopeStmt():
                self.remove(defined_vars(stmt))
                self.pass_by(stmt.body)
                self.add(used_vars(*own_exprs(stmt)))
            case ReturnStmt():
                self.remove(tuple(self._all))
                self.add(used_vars(*stmt.value))
            case _:
                self.add(used_vars(stmt))

    def at_top_of(self, stmt: ForStmt | WhileStmt) -> Live:
        """Return what the top of a trip needs, when this is what is needed behind the loop.

        The loop's own variables are left out. One walk suffices: what a trip leaves to the next one
        is what the next one uses first, and the walk has met that already.
        """
        top = self.copy()
        top.remove(stmt.return_vars)
        top.pass_by(stmt.body)
        if isinstance(stmt, WhileStmt):
            top.add(used_vars(stmt.condition))
        else:
            top.remove((stmt.loop_var,))
        top.remove(stmt.iter_args)
        return top


def walk_backwards(body: Stmt, live: Live, look: Callable[[Stmt, Live], None]) -> None:
    """Call `look` with each assignment and each statement for its effect, the last one first.

    Args:
        body: What is walked, bodies of loops and branches included.
        live: What is needed behind `body`, and afterwards what is needed before it.
        look: Gets a statement and what is needed behind it.
    """
    for stmt in reversed(flatten_to_stmts(body)):
        match stmt:
            case AssignStmt() | EvalStmt():
                look(stmt, live)
            case ForStmt() | WhileStmt():
                inside = live.copy()
                inside.remove(stmt.return_vars)
                inside.add(live.at_top_of(stmt))
                walk_backwards(stmt.body, inside, look)
            case IfStmt():
                for arm in (stmt.then_body, stmt.else_body):
                    inside = live.copy()
                    inside.remove(stmt.return_vars)
                    if arm is not None:
                        walk_backwards(arm, inside, look)
            case _:
                pass
        live.pass_by(stmt)


def live_after_each(stmts: Sequence[Stmt], after: Iterable[Var]) -> dict[int, Live]:
    """Return, for each statement with a body, by its index what is needed behind it."""
    found: dict[int, Live] = {}
    live = Live(after)
    for index in range(len(stmts) - 1, -1, -1):
        if isinstance(stmts[index], ForStmt | WhileStmt | IfStmt | ScopeStmt):
            found[index] = live.copy()
        live.pass_by(stmts[index])
    return found
