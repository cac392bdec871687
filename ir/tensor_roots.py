"""Which tensor a variable stands for: through stores, views, calls, loops and branches back to a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .core import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from .expr import Call, GlobalVar, Submit, TupleGetItemExpr, Var
from .ops.table import ROWS
from .types import TensorType
from .verification.walk import calls, own_exprs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .core import Function, Program
    from .expr import Expr

_DEEPEST = 16
"""Calls within calls that are followed; what comes from further away is not known."""


class TensorRoots:
    """Follows some tensors through statements.

    Both arms of a branch are taken to agree; whoever compiles them sees to that.

    Args:
        sources: The tensors that are followed; other variables among them are passed over.
        program: Where functions that are called are looked up; None if there are none.
        depth: How many calls were followed to get here.

    Attributes:
        roots: The source that each variable stands for.
        returned: The source of each value that was returned, None where it is no source.
    """

    def __init__(
        self, sources: Iterable[Var], program: Program | None = None, *, depth: int = 0
    ) -> None:
        self.roots: dict[Var, Var] = {v: v for v in sources if isinstance(v.type, TensorType)}
        self.returned: tuple[Var | None, ...] = ()
        self.program = program
        self._depth = depth
        self._parts: dict[Var, tuple[Var | None, ...]] = {}

    def follow(self, body: Stmt | None) -> None:
        """Follow the sources through the statements of a body."""
        for stmt in flatten_to_stmts(body):
            for call in calls(own_exprs(stmt)):
                self.see(call)
            match stmt:
                case AssignStmt():
                    self._assign(stmt.var, stmt.value)
                case ForStmt() | WhileStmt():
                    for arg, var in zip(stmt.iter_args, stmt.return_vars, strict=True):
                        self._name(arg, self.root(arg.init_value))
                        self._name(var, self.root(arg.init_value))
                    self.follow(stmt.body)
                case IfStmt():
                    self.follow(stmt.then_body)
                    self.follow(stmt.else_body)
                    for var, value in zip(stmt.return_vars, _yielded(stmt.then_body), strict=False):
                        self._name(var, self.root(value))
                case ScopeStmt():
                    self.follow(stmt.body)
                case ReturnStmt():
                    self.returned = tuple(self.root(value) for value in stmt.value)
                case _:
                    continue

    def see(self, call: Call | Submit) -> None:
        """Look at a call before its result gets a name; there is nothing to see here."""

    def root(self, value: Expr) -> Var | None:
        """Return the source that a value stands for, if it is a variable that does."""
        return self.roots.get(value) if isinstance(value, Var) else None

    def _name(self, var: Var, root: Var | None) -> None:
        if root is not None:
            self.roots[var] = root

    def _assign(self, var: Var, value: Expr) -> None:
        match value:
            case Call(op=GlobalVar()) | Submit():
                found = self._results(value)
                self._parts[var] = found
                self._name(var, found[0] if len(found) == 1 else None)
            case Call():
                row = ROWS.get(value.op.name)
                reuses = None if row is None else row.reuses
                if reuses is not None and reuses < len(value.args):
                    self._name(var, self.root(value.args[reuses]))
            case TupleGetItemExpr(tuple=Var() as whole):
                parts = self._parts.get(whole, ())
                self._name(var, parts[value.index] if value.index < len(parts) else None)
            case _:
                self._name(var, self.root(value))

    def _results(self, call: Call | Submit) -> tuple[Var | None, ...]:
        """Return the source of each result of a function of the program."""
        callee = self.program.get_function(call.op.name) if self.program else None
        if callee is None or self._depth >= _DEEPEST or len(call.args) > len(callee.params):
            return ()
        numbers = returned_params(callee, self.program, depth=self._depth + 1)
        return tuple(
            self.root(call.args[n]) if n is not None and n < len(call.args) else None
            for n in numbers
        )


def returned_params(
    function: Function, program: Program | None = None, *, depth: int = 0
) -> tuple[int | None, ...]:
    """Return, for each returned value, the number of the parameter whose tensor it is, or None.

    Args:
        function: The function.
        program: Where functions that it calls are looked up.
        depth: How many calls were followed to get here.
    """
    found = TensorRoots(function.params, program, depth=depth)
    found.follow(function.body)
    numbers = {param: number for number, param in enumerate(function.params)}
    return tuple(None if root is None else numbers[root] for root in found.returned)


def _yielded(body: Stmt | None) -> tuple[Expr, ...]:
    last = flatten_to_stmts(body)[-1:]
    return last[0].value if last and isinstance(last[0], YieldStmt) else ()
