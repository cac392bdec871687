"""InferTileMemorySpace: every tile has a memory, and lies where its consumer needs it.

A load that names no memory goes to Mat when some consumer feeds the cube from it, else to Vec; where
the vector core works on it too, to Vec, from where it can go on to Mat. One that nobody uses goes to
Mat too, except in a kernel of the vector core alone, which stays one. A consumer that needs its
operand elsewhere gets moves just before it, one way for each sequence of statements. What a kernel
placed itself is never changed; tiles that a loop or a branch hands on are one value, and go where any
of them has to go: what the others are is moved there before it is handed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt, Function, SeqStmts, Stmt, YieldStmt
from ..expr import Call, Expr, IterArg, Op, Var, replace
from ..ops import ROWS, create_op_call, deduce_type
from ..ops.rules_memory import MOVES, SCALE_LAYOUT
from ..properties import IRProperty
from ..types import SCALE_ARRANGEMENT, MemorySpace, TileType, TileView, implicit_tile_view
from ..verification.walk import statements
from ..visitor import IRVisitor
from .base import FunctionPass
from .in_place import renamed
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


class _Demand(IRVisitor):
    """Collects the memories in which a value is wanted, by the first name that it goes by."""

    def __init__(self, function: Function) -> None:
        self._ties: Ties[Expr] = Ties()
        self._spaces: dict[Expr, set[MemorySpace]] = {}
        self._worked_on: set[Expr] = set()
        self._moved: set[Expr] = set()
        self._placed: dict[Expr, set[MemorySpace]] = {}
        self._unplaced: set[Expr] = set()
        self._has_cube = False
        self._has_vector = False
        for one, other in ties_of(function.body):
            if tile_of(one) is not None:
                self._ties.tie(one, other)
        for stmt in statements(function.body):
            source = renamed(stmt.value) if isinstance(stmt, AssignStmt) else None
            if isinstance(stmt, AssignStmt) and source is not None and tile_of(source) is not None:
                self._ties.tie(source, stmt.var)
        self.visit_function(function)

    def space_of(self, var: Expr) -> MemorySpace:
        """Return where an unplaced tile goes."""
        first = self._ties.first(var)
        placed = self._placed.get(first, set())
        if placed and MemorySpace.Mat not in placed:
            return MemorySpace.Vec
        if first in self._worked_on and first not in self._moved:
            return MemorySpace.Vec
        wanted = self._spaces.get(first, {self._of_the_unused})
        return MemorySpace.Mat if wanted & _FED_FROM_MAT else MemorySpace.Vec

    @property
    def _of_the_unused(self) -> MemorySpace:
        return MemorySpace.Mat if self._has_cube or not self._has_vector else MemorySpace.Vec

    def is_decided(self, value: Expr) -> bool:
        """Return whether a value is one, over time, with a tile that the kernel did not place."""
        return self._ties.first(value) in self._unplaced

    def _want(self, value: Expr, *spaces: MemorySpace) -> None:
        self._spaces.setdefault(self._ties.first(value), set()).update(spaces)

    def visit_var_like(self, op: Var) -> None:
        # Where the kernel placed one of several names of a value, the others belong too.
        tile = tile_of(op)
        if tile is None:
            return
        first = self._ties.first(op)
        if tile.memory_space is None:
            self._unplaced.add(first)
        else:
            self._has_cube |= tile.memory_space is not MemorySpace.Vec
            self._placed.setdefault(first, set()).add(tile.memory_space)
            self._want(op, tile.memory_space)

    def visit_call(self, op: Call) -> None:
        row = _row(op)
        if row is not None:
            self._has_vector |= row.vector or row.name == "tile.store"
            for operand, arg in zip(row.operands, op.args, strict=False):
                if tile_of(arg) is not None:
                    self._want(arg, *operand.spaces)
                    if operand.spaces == (MemorySpace.Vec,):
                        self._worked_on.add(self._ties.first(arg))
            if op.op.name == "tile.store":  # which comes from Vec, where a load can go, or from Acc
                self._worked_on.add(self._ties.first(op.args[0]))
            if op.op.name == "tile.move" and op.kwargs.get("target_memory") in _FED_FROM_MAT:
                self._want(op.args[0], MemorySpace.Mat)
                self._moved.add(self._ties.first(op.args[0]))
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
            if (
                made is not op
                and isinstance(made.type, TileType)
                and made.type.memory_space is not None
            ):
                init = self._where_needed(init, (made.type.memory_space,))
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
        elif isinstance(value, Call) and value is not op.value and renamed(op.value) is not None:
            value = replace(value, type=deduce_type(value))
        var = op.var
        if value is not op.value and value.type is not op.value.type:
            var = self.variables[op.var] = replace(op.var, type=value.type)
        return op if value is op.value else replace(op, var=var, value=value)

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        done = self.visit_children(op)
        values = tuple(
            self._where_needed(new, (self._demand.space_of(old),))
            if self._demand.is_decided(old)
            else new
            for old, new in zip(op.value, done.value, strict=True)
        )
        same = all(a is b for a, b in zip(values, done.value, strict=True))
        return done if same else replace(done, value=values)

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
            known = arg
            for step in _way(arg.type.memory_space, space):
                kwargs = _boxes_of(space) if step is not space else {}
                known = self._moved_to(step, known, f"{arg.name_hint}_{step.name}", kwargs)
            self._moved[arg, space] = known
        return known

    def _moved_to(
        self, space: MemorySpace, value: Var, name: str, kwargs: dict[str, object]
    ) -> Var:
        move = create_op_call("tile.move", [value], {"target_memory": space, **kwargs}, value.span)
        return self.assign(name, move, value.span)


def _way(source: MemorySpace | None, target: MemorySpace) -> tuple[MemorySpace, ...]:
    """Return the memories that a tile goes to on its shortest way; the target where there is none."""
    ways: list[tuple[MemorySpace, ...]] = [()]
    for way in ways:
        here = way[-1] if way else source
        reachable = () if here is None else MOVES.get(here, ())
        if target in reachable:
            return (*way, target)
        ways += [(*way, step) for step in reachable if step is not source and step not in way]
    return (target,)


def _boxes_of(space: MemorySpace) -> dict[str, object]:
    """Return how a tile must lie in Mat to go to `space` from there, where that is no usual way."""
    if space not in SCALE_LAYOUT:
        return {}
    blayout, slayout, _ = SCALE_ARRANGEMENT[SCALE_LAYOUT[space]]
    return {"blayout": blayout, "slayout": slayout}


def _is_unplaced_load(call: Call) -> bool:
    return call.op.name == "tile.load" and "target_memory" not in call.kwargs


def _placed_load(load: Call, space: MemorySpace) -> Call:
    placed = create_op_call(
        "tile.load", load.args, {**load.kwargs, "target_memory": space}, load.span
    )
    flat = load.type
    if isinstance(flat, TileType) and len(flat.shape) != len(getattr(placed.type, "shape", ())):
        placed = replace(placed, type=_in_space(flat, space))  # its rows are merged already
    return replace(placed, attrs=load.attrs)


def _in_space(tile: TileType, space: MemorySpace) -> TileType:
    """Return the type of an unplaced tile once it lies in `space`, as its load has it."""
    place = implicit_tile_view(tile.shape, space)
    view = TileView(tile.valid_shape, None, None, place.blayout, place.slayout, place.fractal)
    return TileType(tile.shape, tile.dtype, None, view, space)
