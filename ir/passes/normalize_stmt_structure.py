"""NormalizeStmtStructure: bodies are flat: one statement, or one sequence of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import Function, SeqStmts, Stmt, flatten_to_stmts, seq
from ..node import replace
from ..properties import IRProperty
from ..visitor import IRMutator
from .base import FunctionPass

if TYPE_CHECKING:
    from ..core import ForStmt, IfStmt, InCoreScopeStmt, SpmdScopeStmt, WhileStmt


@dataclass(frozen=True)
class NormalizeStmtStructure(FunctionPass):
    """Open nested sequences and drop sequences of one statement."""

    name = "NormalizeStmtStructure"
    produced = frozenset({IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Normalise one function."""
        return _Bodies(wrap=False).visit_function(function)


def with_sequences(function: Function) -> Function:
    """Return `function` with every body a sequence, even of one statement, for passes that insert."""
    return _Bodies(wrap=True).visit_function(function)


class _Bodies(IRMutator):
    def __init__(self, *, wrap: bool) -> None:
        super().__init__()
        self._wrap = wrap

    def visit_function(self, op: Function) -> Function:
        body = self._flat(self.visit_stmt(op.body))
        return op if body is op.body else replace(op, body=body)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return self._with_flat_bodies(op, "body")

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._with_flat_bodies(op, "body")

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        return self._with_flat_bodies(op, "then_body", "else_body")

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> Stmt:
        return self._with_flat_bodies(op, "body")

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        return self._with_flat_bodies(op, "body")

    def visit_assign_stmt(self, op: Stmt) -> Stmt:
        return op

    visit_eval_stmt = visit_assign_stmt

    def _with_flat_bodies(self, op: Stmt, *names: str) -> Stmt:
        changes: dict[str, object] = {}
        for name in names:
            old: Stmt | None = getattr(op, name)
            if old is None:
                continue
            new = self._flat(self.visit_stmt(old))
            if new is not old:
                changes[name] = new
        return replace(op, **changes) if changes else op

    def _flat(self, body: Stmt) -> Stmt:
        stmts = flatten_to_stmts(body)
        if self._wrap:
            same = isinstance(body, SeqStmts) and len(stmts) == len(body.stmts)
            return body if same else SeqStmts(stmts, body.span)
        if isinstance(body, SeqStmts) and len(stmts) == len(body.stmts) != 1:
            return body
        return body if not isinstance(body, SeqStmts) else seq(stmts, body.span)
