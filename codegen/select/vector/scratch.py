"""Which tiles are read by somebody: others are scratch, or nothing at all, and need no content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir.expr import Op
from ....ir.ops import ROWS
from ....ir.ops.row import OperandKind
from ....ir.verification.walk import own_exprs, statements
from ....ir.visitor import IRVisitor

if TYPE_CHECKING:
    from ....ir.core import Stmt
    from ....ir.expr import Call, Var


def wanted(body: Stmt) -> set[Var]:
    """Return the variables of a body whose values somebody wants.

    An op takes an optional tile as room to work in, whatever stands there.
    """
    uses = _Wanted()
    for stmt in statements(body):
        for expr in own_exprs(stmt):
            uses.visit_expr(expr)
    return uses.found


class _Wanted(IRVisitor):
    def __init__(self) -> None:
        self.found: set[Var] = set()

    def visit_var_like(self, op: Var) -> None:
        self.found.add(op)

    def visit_call(self, op: Call) -> None:
        row = ROWS.get(op.op.name) if isinstance(op.op, Op) else None
        if row is None:
            self.visit_children(op)
            return
        for operand, arg in zip(row.operands, op.args, strict=False):
            if not (operand.optional and operand.kind is OperandKind.TILE):
                self.visit_expr(arg)
