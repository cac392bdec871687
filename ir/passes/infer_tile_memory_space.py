"""InferTileMemorySpace: every tile has a memory, and lies where its consumer needs it.

A load that names no memory goes to Mat when some consumer feeds the cube from it, else to Vec. A
consumer that needs its operand elsewhere gets a move just before it, one for each sequence of
statements. What a kernel placed itself is never changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import AssignStmt, Function, SeqStmts, Stmt
from ..expr import Call, Expr, Op, Var, frozen_mapping, replace
from ..ops import ROWS, create_op_call
from ..properties import IRProperty
from ..types import MemorySpace, TileType
from ..visitor import IRVisitor
from .base import FunctionPass
from .inserting import InsertingMutator

if TYPE_CHECKING:
    from ..ops.row import OpRow

_FED_FROM_MAT = frozenset(
    {
        MemorySpace.Left,
        MemorySpace.Right,
        MemorySpace.LeftScale,
        MemorySpace.RightScale,
        MemorySpace.Bias,
        MemorySpace.Mat,
    }
)


@dataclass(frozen=True)
class InferTileMemorySpace(FunctionPass):
    """Place unplaced loads and insert the moves that consumers need."""

    name = "InferTileMemorySpace"
    required = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})
    produced = frozenset({IRProperty.TileMemoryInferred})

    def transform_function(self, function: Function) -> Function:
        """Place the tiles of one function."""
        demand = _Demand()
        demand.visit_function(function)
        return _Placer(demand.spaces).rewrite(function)


def _row(call: Call) -> OpRow | None:
    return ROWS.get(call.op.name) if isinstance(call.op, Op) else None


class _Demand(IRVisitor):
    """Collects for each tile the memories in which consumers want it."""

    def __init__(self) -> None:
        self.spaces: dict[Var, set[MemorySpace]] = {}

    def visit_call(self, op: Call) -> None:
        row = _row(op)
        if row is not None:
            for operand, arg in zip(row.operands, op.args, strict=False):
                if isinstance(arg, Var) and operand.spaces:
                    self.spaces.setdefault(arg, set()).update(operand.spaces)
            target = op.kwargs.get("target_memory")
            source = op.args[0] if op.args else None
            if op.op.name == "tile.move" and isinstance(source, Var) and target in _FED_FROM_MAT:
                self.spaces.setdefault(source, set()).add(MemorySpace.Mat)
        self.visit_children(op)


class _Placer(InsertingMutator):
    def __init__(self, demand: dict[Var, set[MemorySpace]]) -> None:
        super().__init__()
        self._demand = demand
        self._moved: dict[tuple[Var, MemorySpace], Var] = {}

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        outer, self._moved = self._moved, {}
        done = super().visit_seq_stmts(op)
        self._moved = outer
        return done

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = self.visit_expr(op.value)
        var = op.var
        if value is not op.value and value.type is not op.value.type:
            var = replace(op.var, type=value.type)
            self.variables[op.var] = var
        return op if value is op.value else replace(op, var=var, value=value)

    def visit_call(self, op: Call) -> Call:
        row = _row(op)
        if row is None:
            return self.visit_children(op)
        if op.op.name == "tile.load" and "target_memory" not in op.kwargs:
            return self._placed_load(op)
        new = self.visit_children(op)
        args = tuple(
            self._where_needed(arg, operand.spaces)
            for operand, arg in zip(row.operands, new.args, strict=False)
        )
        if all(a is b for a, b in zip(args, new.args, strict=True)):
            return new
        return replace(new, args=args)

    def _placed_load(self, op: Call) -> Call:
        new = self.visit_children(op)
        space = self._space_for_load(op)
        kwargs = {**new.kwargs, "target_memory": space}
        placed = create_op_call("tile.load", new.args, kwargs, new.span)
        return replace(placed, attrs=frozen_mapping(new.attrs))

    def _space_for_load(self, op: Call) -> MemorySpace:
        wanted = self._wanted_by_load.get(op, set())
        return MemorySpace.Mat if wanted & _FED_FROM_MAT else MemorySpace.Vec

    def visit_function(self, op: Function) -> Function:
        finder = _LoadResults(self._demand)
        finder.visit_function(op)
        self._wanted_by_load = finder.wanted
        return super().visit_function(op)

    def _where_needed(self, arg: Expr, spaces: tuple[MemorySpace, ...]) -> Expr:
        if not spaces or not isinstance(arg, Var) or not isinstance(arg.type, TileType):
            return arg
        if arg.type.memory_space in spaces:
            return arg
        (space, *_others) = spaces
        known = self._moved.get((arg, space))
        if known is None:
            move = create_op_call("tile.move", [arg], {"target_memory": space}, arg.span)
            known = Var(f"{arg.name_hint}_{space.name}", move.type, arg.span)
            self.insert(AssignStmt(known, move, arg.span))
            self._moved[arg, space] = known
        return known


class _LoadResults(IRVisitor):
    """Finds for each load what its result's consumers want."""

    def __init__(self, demand: dict[Var, set[MemorySpace]]) -> None:
        self._demand = demand
        self.wanted: dict[Call, set[MemorySpace]] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if isinstance(op.value, Call) and op.value.op.name == "tile.load":
            self.wanted[op.value] = self._demand.get(op.var, set())
        self.visit_children(op)
