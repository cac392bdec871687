"""InsertMxScaleAddr: before every MX matmul, each scale tile is bound to its data tile's address.

The cube takes no scale operand: it finds the scales of a data tile at the data's L0 address >> 4. A
scale tile that serves one data tile, which it serves alone, is filled where the kernel moves it; any
other one is moved again just before each consumer, so that what the cube finds is always its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core import AssignStmt, Function, FunctionType, SeqStmts, Stmt
from ..errors import IRValueError
from ..expr import Call, Expr, Op, Var, replace
from ..ops import create_op_call
from ..properties import IRProperty
from ..visitor import IRVisitor
from .base import FunctionPass
from .inserting import InsertingMutator

#: Positions of (data, scale) among the operands, left pair first.
PAIRS = {
    "tile.matmul_mx": ((0, 1), (2, 3)),
    "tile.matmul_mx_bias": ((0, 1), (2, 3)),
    "tile.matmul_mx_acc": ((1, 2), (3, 4)),
}


@dataclass(frozen=True)
class InsertMxScaleAddr(FunctionPass):
    """Insert `tile.tget_scale_addr` for both scales of every MX matmul of an InCore function."""

    name = "InsertMxScaleAddr"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.TileMemoryInferred}
    )
    produced = required

    def transform_function(self, function: Function) -> Function:
        """Bind the scales of one function."""
        if function.func_type not in (FunctionType.InCore, FunctionType.AIC):
            return function
        uses = _Uses()
        uses.visit_function(function)
        return _without_unused_moves(_Binder(uses).rewrite(function))


class _Uses(IRVisitor):
    """Which data tiles each scale serves, which scales each data tile has, and where both come from."""

    def __init__(self) -> None:
        self.data_of: dict[Var, set[Var]] = {}
        self.scales_of: dict[Var, set[Var]] = {}
        self.values: dict[Var, Expr] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.values[op.var] = op.value
        self.visit_children(op)

    def visit_call(self, op: Call) -> None:
        for data_at, scale_at in PAIRS.get(op.op.name, ()):
            data, scale = op.args[data_at], op.args[scale_at]
            for operand in (data, scale):
                if not isinstance(operand, Var):
                    message = f"An operand of {op.op.name} must be a variable, not an expression"
                    raise IRValueError(message, op.span)
            assert isinstance(data, Var)
            assert isinstance(scale, Var)
            self.data_of.setdefault(scale, set()).add(data)
            self.scales_of.setdefault(data, set()).add(scale)
        self.visit_children(op)

    def alone(self, data: Var, scale: Var) -> bool:
        """Whether the two only ever serve each other."""
        return len(self.data_of[scale]) == 1 and len(self.scales_of[data]) == 1


class _Binder(InsertingMutator):
    def __init__(self, uses: _Uses) -> None:
        super().__init__()
        self._uses = uses

    def visit_call(self, op: Call) -> Call:
        pairs = PAIRS.get(op.op.name) if isinstance(op.op, Op) else None
        if pairs is None:
            return self.visit_children(op)
        args = list(op.args)
        for data_at, scale_at in pairs:
            data, scale = op.args[data_at], op.args[scale_at]
            assert isinstance(data, Var)
            assert isinstance(scale, Var)
            args[scale_at] = self._bound(data, scale, op)
        return replace(op, args=tuple(args))

    def _bound(self, data: Var, scale: Var, op: Call) -> Var:
        filled = scale if self._uses.alone(data, scale) else self._moved_again(scale, op)
        bind = create_op_call("tile.tget_scale_addr", [filled, data], {}, op.span)
        var = Var(f"{scale.name_hint}_bound", bind.type, op.span)
        self.insert(AssignStmt(var, bind, op.span))
        return var

    def _moved_again(self, scale: Var, op: Call) -> Var:
        move = self._uses.values.get(scale)
        if not isinstance(move, Call) or move.op.name != "tile.move":
            message = (
                f"The scale tile {scale.name_hint!r} must be moved to its scale buffer in this "
                "function when it serves several data tiles, or its data tile has several scales"
            )
            raise IRValueError(message, op.span)
        again = Var(f"{scale.name_hint}_again", scale.type, op.span)
        self.insert(AssignStmt(again, replace(move, span=op.span), op.span))
        return again


def _without_unused_moves(function: Function) -> Function:
    """Drop the moves of scale tiles that were all moved again; nothing reads them any more."""
    finder = _Reads()
    finder.visit_function(function)
    return _Dropper(finder.read).rewrite(function)


class _Reads(IRVisitor):
    def __init__(self) -> None:
        self.read: set[Var] = set()

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.visit_expr(op.value)

    def visit_var_like(self, op: Var) -> None:
        self.read.add(op)


class _Dropper(InsertingMutator):
    def __init__(self, read: set[Var]) -> None:
        super().__init__()
        self._read = read

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        kept = tuple(s for s in op.stmts if not self._is_unused_move(s))
        trimmed = op if len(kept) == len(op.stmts) else replace(op, stmts=kept)
        return super().visit_seq_stmts(trimmed)

    def _is_unused_move(self, stmt: Stmt) -> bool:
        from ..types import MemorySpace

        return (
            isinstance(stmt, AssignStmt)
            and isinstance(stmt.value, Call)
            and stmt.value.op.name == "tile.move"
            and stmt.value.kwargs.get("target_memory")
            in (MemorySpace.LeftScale, MemorySpace.RightScale)
            and stmt.var not in self._read
        )
