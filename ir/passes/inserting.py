"""A mutator that puts statements before the one it is rewriting."""

from __future__ import annotations

from ..core import Function, SeqStmts, Stmt, flatten_to_stmts
from ..node import replace
from ..visitor import IRMutator
from .normalize_stmt_structure import NormalizeStmtStructure, with_sequences


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
