"""InsertMxScaleAddr: before every MX matmul, each scale tile is bound to its data tile's address.

The cube takes no scale operand: it finds the scales of a data tile at the data's L0 address >> 4. A
scale tile that serves one data tile, which it serves alone, is filled where the kernel moves it; any
other one is moved again just before each consumer, so that what the cube finds is always its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..binding import source_name
from ..core import AssignStmt, ForStmt, Function, IfStmt, SeqStmts, Stmt, WhileStmt
from ..errors import IRValueError
from ..expr import Call, Expr, Op, Var, replace
from ..ops import create_op_call
from ..properties import IRProperty
from ..verification.structure import CORE_TYPES
from ..visitor import IRVisitor
from .base import FunctionPass
from .inserting import InsertingMutator
from .memrefs import BIND, SCALE_SPACES, tile_of

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The ops that fill a scale buffer.
FILLS = ("tile.move", "tile.extract")
#: Positions of (data, scale) among the operands, left pair first.
PAIRS = {
    "tile.matmul_mx": ((0, 1), (2, 3)),
    "tile.matmul_mx_bias": ((0, 1), (2, 3)),
    "tile.matmul_mx_acc": ((1, 2), (3, 4)),
    "tile.gemv_mx": ((0, 1), (2, 3)),
    "tile.gemv_mx_bias": ((0, 1), (2, 3)),
    "tile.gemv_mx_acc": ((1, 2), (3, 4)),
}


@dataclass(frozen=True)
class InsertMxScaleAddr(FunctionPass):
    """Insert `tile.tget_scale_addr` for both scales of every MX matmul of an InCore function."""

    name = "InsertMxScaleAddr"
    required = frozenset(
        {
            IRProperty.SSAForm,
            IRProperty.NormalizedStmtStructure,
            IRProperty.NoNestedCalls,
            IRProperty.TileMemoryInferred,
        }
    )
    produced = required

    def transform_function(self, function: Function) -> Function:
        """Bind the scales of one function.

        Raises:
            IRValueError: For a scale tile that is not moved into its buffer in this function, or that
                is both scales of one matmul.
        """
        if function.func_type not in CORE_TYPES:
            return function
        uses = _Uses()
        uses.visit_function(function)
        return _without_unused_moves(_Binder(uses).rewrite(function))


class _Uses(IRVisitor):
    """Which data tiles each scale serves, which scales each data tile has, and where both come from.

    A tile is known by the variable that it was made in, however often it was named or bound since.
    """

    def __init__(self) -> None:
        self.data_of: dict[Var, set[Var]] = {}
        self.scales_of: dict[Var, set[Var]] = {}
        self.moves: dict[Var, Call] = {}
        self._bound_from: dict[Var, Var] = {}
        self._loops: tuple[ForStmt | WhileStmt, ...] = ()
        self._loops_around: dict[Var, tuple[ForStmt | WhileStmt, ...]] = {}

    def origin(self, tile: Var) -> Var:
        """Return the variable that a tile was made in."""
        while tile in self._bound_from:
            tile = self._bound_from[tile]
        return tile

    def visit_for_stmt(self, op: ForStmt) -> None:
        self._loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._loop(op)

    def _loop(self, op: ForStmt | WhileStmt) -> None:
        outer, self._loops = self._loops, (*self._loops, op)
        self._carried(op.iter_args)
        self.visit_children(op)
        self._loops = outer
        self._carried(op.return_vars)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self.visit_children(op)
        self._carried(op.return_vars)

    def _carried(self, variables: Iterable[Var]) -> None:
        for var in variables:
            self._loops_around[var] = self._loops
            tile = tile_of(var)
            if tile is not None and tile.memory_space in SCALE_SPACES:
                message = (
                    f"The scale tile {source_name(var)!r} must not be carried by a loop or a branch: its "
                    "address follows from the data tile that it is used with"
                )
                hint = "carry the tile in Mat, and move it to its scale buffer where it is used"
                raise IRValueError(message, var.span, hint=hint)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self._loops_around[op.var] = self._loops
        value = op.value
        if isinstance(value, Call) and _is_move(value):
            self.moves[op.var] = value
        source = value.args[0] if isinstance(value, Call) and value.op.name == BIND else value
        if isinstance(source, Var):
            self._bound_from[op.var] = source
        self.visit_children(op)

    def visit_call(self, op: Call) -> None:
        pairs = PAIRS.get(op.op.name, ())
        if pairs and len(op.args) <= pairs[-1][-1]:
            message = f"{op.op.name} must have its four MX operands, not {len(op.args)} operands"
            raise IRValueError(message, op.span)
        for data_at, scale_at in pairs:
            data, scale = op.args[data_at], op.args[scale_at]
            if not isinstance(data, Var) or not isinstance(scale, Var):
                message = f"An operand of {op.op.name} must be a variable, not an expression"
                raise IRValueError(message, op.span)
            data, scale = self.origin(data), self.origin(scale)
            self.data_of.setdefault(scale, set()).add(data)
            self.scales_of.setdefault(data, set()).add(scale)
        if pairs and len({op.args[scale_at] for _, scale_at in pairs}) < len(pairs):
            message = f"The two scales of {op.op.name} must be two tiles, not the same one"
            raise IRValueError(message, op.span)
        self.visit_children(op)

    def stays(self, data: Var, scale: Var) -> bool:
        """Whether a scale can be filled where the kernel moves it.

        The two must only ever serve each other, and every new data tile must get its scales anew: a
        data tile that is made in a loop has scales that are moved in that loop.
        """
        around_data = self._loops_around.get(data, ())
        around_scale = self._loops_around.get(scale, ())
        return (
            len(self.data_of[scale]) == 1
            and len(self.scales_of[data]) == 1
            and around_scale[: len(around_data)] == around_data
        )


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
            args[scale_at] = self._bound(op.args[data_at], op.args[scale_at], op)
        return replace(op, args=tuple(args))

    def _bound(self, data: Expr, scale: Expr, op: Call) -> Var:
        assert isinstance(data, Var), "checked when the uses were collected"
        assert isinstance(scale, Var), "checked when the uses were collected"
        filled = self._filled(data, scale, op)
        bind = create_op_call(BIND, [filled, data], {}, op.span)
        return self.assign(f"{scale.name_hint}_bound", bind, op.span)

    def _filled(self, data: Var, scale: Var, op: Call) -> Var:
        """Return the scale tile if it stays where it was moved, else a new one just before `op`."""
        origin = self._uses.origin(scale)
        move = self._uses.moves.get(origin)
        if move is None:
            message = (
                f"The scale tile {source_name(scale)!r} must be moved to its scale buffer in the function "
                "that uses it"
            )
            raise IRValueError(message, op.span)
        if self._uses.stays(self._uses.origin(data), origin):
            return scale
        again = Var(f"{origin.name_hint}_again", origin.type, op.span)
        self.insert(AssignStmt(again, replace(move, span=op.span), op.span))
        return again


def _without_unused_moves(function: Function) -> Function:
    """Drop the moves of scale tiles that were all moved again; nothing reads them any more."""
    while True:
        reads = _Reads()
        reads.visit_function(function)
        done = _Dropper(reads.read).rewrite(function)
        if done is function:
            return function
        function = done


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
        kept = tuple(s for s in op.stmts if not self._is_unused(s))
        trimmed = op if len(kept) == len(op.stmts) else replace(op, stmts=kept)
        return super().visit_seq_stmts(trimmed)

    def _is_unused(self, stmt: Stmt) -> bool:
        """Whether a statement only moves scales, or names them again, for nobody."""
        return (
            isinstance(stmt, AssignStmt)
            and stmt.var not in self._read
            and (tile := tile_of(stmt.var)) is not None
            and tile.memory_space in SCALE_SPACES
            and (isinstance(stmt.value, Var) or _is_move(stmt.value))
        )


def _is_move(value: Expr) -> bool:
    return isinstance(value, Call) and value.op.name in FILLS
