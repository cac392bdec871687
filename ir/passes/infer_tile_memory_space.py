"""InferTileMemorySpace: every tile has a memory, and lies where its consumer needs it.

A load that names no memory goes to Mat when some consumer feeds the cube from it, or nobody uses it,
else to Vec. A consumer that needs its operand elsewhere gets a move just before it, one for each
sequence of statements. What a kernel placed itself is never changed; tiles that a loop or a branch
hands on are one value, and go where any of them has to go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, Function, SeqStmts, Stmt
from ..expr import Call, Expr, IterArg, Op, Var, replace
from ..ops import ROWS, create_op_call, deduce_type
from ..properties import IRProperty
from ..types import MemorySpace, TileType, TileView, implicit_tile_view
from ..verification.walk import statements
from ..visitor import IRVisitor
from .base import FunctionPass
from .inserting import InsertingMutator
from .memrefs import tile_of
from .ties import Ties, ties_of

if TYPE_CHECKING:
    from ..expr import Type
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
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )
    produced = frozenset({IRProperty.TileMemoryInferred})

    def transform_function(self, function: Function) -> Function:
        """Place the tiles of one function."""
        demand = _Demand(function)
        return _Placer(demand).rewrite(function)


def _row(call: Call) -> OpRow | None:
    return ROWS.get(call.op.name) if isinstance(call.op, Op) else None


def _looked_at(stmt: Stmt) -> Expr | None:
    """Return the tile that a statement gives another name, in whatever memory it lies."""
    if not isinstance(stmt, AssignStmt) or not isinstance(stmt.value, Call):
        return None
    row = _row(stmt.value)
    if row is None or row.reuses is None or row.output_memory is not None:
        return None
    return stmt.value.args[row.reuses]


class _Demand(IRVisitor):
    """Collects the memories in which a value is wanted, by the first name that it goes by."""

    def __init__(self, function: Function) -> None:
        self._ties: Ties[Expr] = Ties()
        self._spaces: dict[Expr, set[MemorySpace]] = {}
        for one, other in ties_of(function.body):
            if tile_of(one) is not None:
                self._ties.tie(one, other)
        for stmt in statements(function.body):
            source = _looked_at(stmt)
            if source is not None and isinstance(stmt, AssignStmt):
                self._ties.tie(source, stmt.var)
        self.visit_function(function)

    def space_of(self, var: Var) -> MemorySpace:
        """Return where an unplaced tile goes."""
        wanted = self._spaces.get(self._ties.first(var), {MemorySpace.Mat})
        return MemorySpace.Mat if wanted & _FED_FROM_MAT else MemorySpace.Vec

    def _want(self, value: Expr, *spaces: MemorySpace) -> None:
        self._spaces.setdefault(self._ties.first(value), set()).update(spaces)

    def visit_var_like(self, op: Var) -> None:
        # Where the kernel placed one of several names of a value, the others belong too.
        tile = tile_of(op)
        if tile is not None and tile.memory_space is not None:
            self._want(op, tile.memory_space)

    def visit_call(self, op: Call) -> None:
        row = _row(op)
        if row is not None:
            for operand, arg in zip(row.operands, op.args, strict=False):
                if tile_of(arg) is not None:
                    self._want(arg, *operand.spaces)
            if op.op.name == "tile.move" and op.kwargs.get("target_memory") in _FED_FROM_MAT:
                self._want(op.args[0], MemorySpace.Mat)
        self.visit_children(op)


class _Placer(InsertingMutator):
    def __init__(self, demand: _Demand) -> None:
        super().__init__()
        self._demand = demand
        self._moved: dict[tuple[Var, MemorySpace], Var] = {}

    # ------------------------------------------------------------------- variables

    def visit_var(self, op: Var) -> Var:
        if op not in self.variables:
            self.variables[op] = self._placed(op, op.type)
        return self.variables[op]

    def visit_iter_arg(self, op: IterArg) -> Var:
        if op not in self.variables:
            init = self.visit_expr(op.init_value)
            made = cast("IterArg", self._placed(op, op.type))
            same = init is op.init_value
            self.variables[op] = made if same else replace(made, init_value=init)
        return self.variables[op]

    def _placed(self, var: Var, type_: Type) -> Var:
        if not isinstance(type_, TileType) or type_.memory_space is not None:
            return var
        return replace(var, type=_in_space(type_, self._demand.space_of(var)))

    # ------------------------------------------------------------------- statements

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        outer, self._moved = self._moved, {}
        done = super().visit_seq_stmts(op)
        self._moved = outer
        return done

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        value = self.visit_expr(op.value)
        if isinstance(value, Call) and _is_unplaced_load(value):
            value = _placed_load(value, self._demand.space_of(op.var))
        elif isinstance(value, Call) and value is not op.value and _looked_at(op) is not None:
            value = replace(value, type=deduce_type(value))
        var = op.var
        if value is not op.value and value.type is not op.value.type:
            var = self.variables[op.var] = replace(op.var, type=value.type)
        return op if value is op.value else replace(op, var=var, value=value)

    # ------------------------------------------------------------------- operands

    def visit_call(self, op: Call) -> Call:
        row = _row(op)
        new = self.visit_children(op)
        if row is None:
            return new
        args = tuple(
            self._where_needed(arg, operand.spaces)
            for operand, arg in zip(row.operands, new.args, strict=False)
        )
        if all(a is b for a, b in zip(args, new.args, strict=True)):
            return new
        return replace(new, args=args)

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


def _is_unplaced_load(call: Call) -> bool:
    return call.op.name == "tile.load" and "target_memory" not in call.kwargs


def _placed_load(load: Call, space: MemorySpace) -> Call:
    placed = create_op_call(
        "tile.load", load.args, {**load.kwargs, "target_memory": space}, load.span
    )
    return replace(placed, attrs=load.attrs)


def _in_space(tile: TileType, space: MemorySpace) -> TileType:
    """Return the type of an unplaced tile once it lies in `space`, as its load has it."""
    place = implicit_tile_view(tile.shape, space)
    view = TileView(tile.valid_shape, None, None, place.blayout, place.slayout, place.fractal)
    return TileType(tile.shape, tile.dtype, None, view, space)
