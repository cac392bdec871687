"""A mutator that puts statements before the one it is rewriting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import AssignStmt, Function, SeqStmts, Stmt, flatten_to_stmts
from ..expr import Var
from ..node import replace
from ..visitor import IRMutator
from .normalize_stmt_structure import NormalizeStmtStructure, with_sequences

if TYPE_CHECKING:
    from ..errors import Span
    from ..expr import Expr


class InsertingMutator(IRMutator):
    """Rewrites functions; what a hook gives to `insert` lands before the statement at hand."""

    def __init__(self) -> None:
        super().__init__()
        self._inserted: list[Stmt] = []

    def rewrite(self, function: Function) -> Function:
        """Return the rewritten function in normalised form; the same object when nothing changes."""
        wrapped = with_sequences(function)
        done = self.visit_function(wrapped)
        if done is wrapped:
            return function
        return NormalizeStmtStructure().transform_function(done)

    def insert(self, stmt: Stmt) -> None:
        """Put `stmt` before the statement that is being rewritten."""
        self._inserted.append(stmt)

    def assign(self, name: str, value: Expr, span: Span) -> Var:
        """Insert the assignment of `value` to a new variable, and return that."""
        var = Var(name, value.type, span)
        self.insert(AssignStmt(var, value, span))
        return var

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        """Rewrite each statement and gather what was inserted."""
        outer, done = self._inserted, list[Stmt]()
        for stmt in op.stmts:
            self._inserted = []
            new = self.visit_stmt(stmt)
            done += [*self._inserted, *flatten_to_stmts(new)]
        self._inserted = outer
        if len(done) == len(op.stmts) and all(a is b for a, b in zip(done, op.stmts, strict=True)):
            return op
        return replace(op, stmts=tuple(done))
