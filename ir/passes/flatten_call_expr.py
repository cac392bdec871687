"""FlattenCallExpr: no call stands inside another expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ..core import AssignStmt, EvalStmt, Function, SpmdScopeStmt, Stmt, WhileStmt, flatten_to_stmts
from ..expr import Call, Expr, IterArg, Submit, Var, replace
from ..properties import IRProperty
from .base import FunctionPass
from .inserting import InsertingMutator


@dataclass(frozen=True)
class FlattenCallExpr(FunctionPass):
    """Give every nested call a variable of its own, assigned just before its use.

    A call in the bounds of a loop moves before the loop; one in the condition of a while loop cannot
    move and is left for the verifier to refuse.
    """

    name = "FlattenCallExpr"
    required = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})
    produced = frozenset({IRProperty.NoNestedCalls})

    def transform_function(self, function: Function) -> Function:
        """Flatten one function."""
        return _Flattener().rewrite(function)


class _Flattener(InsertingMutator):
    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = self._root(op.value)
        return op if value is op.value else replace(op, value=value)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        expr = self._root(op.expr)
        return op if expr is op.expr else replace(op, expr=expr)

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        # A call in the condition is made anew before every trip: there is no place to put it.
        args = tuple(cast("IterArg", self.visit(arg)) for arg in op.iter_args)
        body = self.visit_stmt(op.body)
        same = body is op.body and all(a is b for a, b in zip(args, op.iter_args, strict=True))
        return op if same else replace(op, iter_args=args, body=body)

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        # A grid holds one call and nothing else: what that call is made of is computed before it.
        done = self.visit_children(op)
        if done.body is op.body:
            return done
        *before, last = flatten_to_stmts(done.body)
        for stmt in before:
            self.insert(stmt)
        return replace(done, body=last)

    def visit_call(self, op: Call) -> Expr:
        return self._hoisted(op)

    def visit_submit(self, op: Submit) -> Expr:
        return self._hoisted(op)

    def _root(self, value: Expr) -> Expr:
        """Visit a right-hand side: a call there stays, the calls inside it move out."""
        return (
            self.visit_children(value)
            if isinstance(value, Call | Submit)
            else self.visit_expr(value)
        )

    def _hoisted(self, op: Call | Submit) -> Expr:
        inner = self.visit_children(op)
        self._count += 1
        var = Var(f"_t{self._count}", op.type, op.span)
        self.insert(AssignStmt(var, inner, op.span))
        return var
