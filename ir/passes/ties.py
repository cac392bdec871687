"""Ties: which values are one value over time.

A loop's initial value, its iteration argument, what a trip yields and its result belong together, as
do what both arms of a branch yield and its result, and a variable and another name of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from ..core import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt, YieldStmt, flatten_to_stmts
from ..expr import Var
from ..verification.walk import bodies

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from ..expr import Expr

K = TypeVar("K", bound="Hashable")


class Ties(Generic[K]):
    """A partition that grows: things that were tied, however indirectly, are in one part."""

    def __init__(self) -> None:
        self._parent: dict[K, K] = {}

    def tie(self, one: K, other: K) -> None:
        """Put both into one part; its first member is that of `one`'s part."""
        root, child = self.first(one), self.first(other)
        if root != child:
            self._parent[child] = root

    def first(self, member: K) -> K:
        """Return the member that stands for the part of `member`."""
        root = member
        while root in self._parent:
            root = self._parent[root]
        while member != root:
            self._parent[member], member = root, self._parent[member]
        return root


def yielded(body: Stmt | None) -> tuple[Expr, ...]:
    """Return what the last statement of a body hands on."""
    stmts = flatten_to_stmts(body)
    return stmts[-1].value if stmts and isinstance(stmts[-1], YieldStmt) else ()


def ties_of(body: Stmt) -> Iterator[tuple[Expr, Expr]]:
    """Yield the pairs of values of a body that are one value over time, outer ones first."""
    for stmt in flatten_to_stmts(body):
        match stmt:
            case AssignStmt(var, Var() as value):
                yield value, var
            case ForStmt() | WhileStmt():
                for arg in stmt.iter_args:
                    yield arg.init_value, arg
                yield from zip(stmt.iter_args, yielded(stmt.body), strict=False)
                yield from zip(stmt.iter_args, stmt.return_vars, strict=False)
            case IfStmt():
                yield from zip(yielded(stmt.then_body), stmt.return_vars, strict=False)
                yield from zip(stmt.return_vars, yielded(stmt.else_body), strict=False)
            case _:
                pass
        for inner in bodies(stmt):
            yield from ties_of(inner)
