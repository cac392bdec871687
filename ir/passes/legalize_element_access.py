"""LegalizeElementAccess: single elements of tiles are read and written as tiles of one element.

    s = pl.read(t, [2, 3])         ->  s_tile = pl.slice(t, [1, 1], [2, 3])
    u = pl.mul(x, s)               ->  u = pl.col_expand_mul(x, row)      row: s_tile repeated
    v = pl.write(x, [0, 1], 2.0)   ->  v = pl.assemble(x, pl.full([1, 1], pl.FP32, 2.0), [0, 1])

So nothing that a tile holds goes through the scalar unit, which runs ahead of the vector core. What
would have to steer it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..binding import source_name
from ..core import AssignStmt, EvalStmt, SeqStmts
from ..errors import IRTypeError, IRValueError
from ..expr import Call, Op, Var, index, replace
from ..numerics.functions import NUMBERS
from ..ops import ROWS, create_op_call
from ..properties import IRProperty
from ..types import constant_dims
from .base import FunctionPass
from .inserting import InsertingMutator
from .memrefs import tile_of
from .tile_forms import is_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core import Function, Stmt
    from ..errors import Span
    from ..expr import Expr
    from ..types import TileType

READ, WRITE = "tile.read", "tile.write"
#: The op on tiles that each op with a scalar at its end is a form of.
_ON_TILES = {
    row.scalar_form: row.name
    for row in ROWS.values()
    if row.scalar_form is not None and row.name.startswith("tile.")
}
#: The op that takes a row for all rows of a tile, where there is one for it.
_WITH_ROWS = {
    f"tile.{scalar}": f"tile.col_expand_{suffix}"
    for scalar, suffix in (
        ("adds", "add"),
        ("subs", "sub"),
        ("muls", "mul"),
        ("divs", "div"),
        ("maximums", "max"),
        ("minimums", "min"),
    )
}
_FULL = "tile.full"


@dataclass(frozen=True)
class LegalizeElementAccess(FunctionPass):
    """Replace reads and writes of elements of tiles by ops on tiles of one element."""

    name = "LegalizeElementAccess"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )
    produced = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Replace the reads and writes of one function.

        Raises:
            IRValueError: For a value that is read and goes into anything but ops on tiles.
            IRTypeError: For a write into a tile of a dtype that the vector core cannot fill.
        """
        return _Legalizer().rewrite(function)


class _Legalizer(InsertingMutator):
    def __init__(self) -> None:
        super().__init__()
        self._elements: dict[Expr, Var] = {}
        self._loads: dict[Expr, Span] = {}
        self._of_tensors: set[Expr] = set()

    # ------------------------------------------------------------------- statements

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        call = op.value
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            return self.visit_children(op)
        if call.op.name == "tile.load":
            self._loads[op.var] = call.span
        if call.op.name == READ:
            self._elements[op.var] = self._read(op.var, call)
            if self._is_of_tensor(call):
                self._of_tensors.add(op.var)
            return SeqStmts((), op.span)
        value = self._on_tiles(op.var, call)
        return self.visit_children(op) if value is None else replace(op, value=value)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        call = op.expr
        dropped = isinstance(call, Call) and call.op in (Op(READ), Op(WRITE))
        return SeqStmts((), op.span) if dropped else self.visit_children(op)

    def visit_var(self, op: Var) -> Var:
        if op in self._elements:
            raise _refusal(op, of_tensor=op in self._of_tensors)
        return super().visit_var(op)

    def visit_call(self, op: Call) -> Call:
        if op.op == Op(READ):
            raise _refusal(op, of_tensor=self._is_of_tensor(op))
        return self.visit_children(op)

    # ------------------------------------------------------------------- ops

    def _is_of_tensor(self, read: Call) -> bool:
        """Whether a read was one of a tensor: the load that was made for it stands where it stands."""
        return read.span.is_known and self._loads.get(read.args[0]) == read.span

    def _read(self, var: Var, call: Call) -> Var:
        tile, at = (self.visit_expr(arg) for arg in call.args)
        ones = (1,) * len(_tile(tile).shape)
        return self._made(f"{var.name_hint}_tile", "tile.slice", [tile, ones, at], call)

    def _on_tiles(self, var: Var, call: Call) -> Call | None:
        """Return what takes the place of a write, or of an op with a scalar that was read."""
        name, value = call.op.name, call.args[-1] if call.args else None
        element = self._elements.get(value) if value is not None else None
        if name == WRITE:
            target, at = (self.visit_expr(arg) for arg in call.args[:2])
            source = element or self._single(var, target, call)
            return create_op_call("tile.assemble", [target, source, at], {}, call.span)
        if element is None:
            return None
        if name == _FULL:
            shape = [constant_dims(cast("TileType", call.type).shape)]
            dtype = cast("TileType", call.type).dtype
            whole = self._made(f"{var.name_hint}_whole", "tile.create", shape, call, dtype=dtype)
            row = self._row(var, whole, element, call)
            return create_op_call("tile.col_expand", [whole, row], {}, call.span)
        if name not in _ON_TILES:
            return None
        operands = [self.visit_expr(arg) for arg in call.args[:-1]]
        row = self._row(var, operands[-1], element, call)
        if name in _WITH_ROWS:
            return create_op_call(_WITH_ROWS[name], [*operands, row], {}, call.span)
        repeated = self._made(f"{var.name_hint}_all", "tile.col_expand", [operands[-1], row], call)
        return create_op_call(_ON_TILES[name], [*operands, repeated], call.kwargs, call.span)

    def _single(self, var: Var, target: Expr, call: Call) -> Var:
        dtype = _tile(target).dtype
        if dtype not in NUMBERS:
            names = ", ".join(each.name for each in NUMBERS)
            message = (
                f"{WRITE}: x must hold {names} to be compiled with a value of the scalar unit, not "
                f"{dtype.name}"
            )
            raise IRTypeError(message, call.span)
        ones, value = (1,) * len(_tile(target).shape), self.visit_expr(call.args[-1])
        return self._made(f"{var.name_hint}_value", _FULL, [ones, value], call, dtype=dtype)

    def _row(self, var: Var, like: Expr, element: Var, call: Call) -> Var:
        """Return a row of copies of one element, valid as far as the rows of a tile are."""
        tile, name = _tile(like), var.name_hint
        one = index(1)
        made = self._made(
            f"{name}_place", "tile.create", [(one, tile.shape[1])], call, dtype=tile.dtype
        )
        row = self._made(f"{name}_row", "tile.row_expand", [made, element], call)
        if is_whole(tile):
            return row
        extents = [one, tile.valid_shape[1]]
        return self._made(f"{name}_valid", "tile.set_validshape", [row, *extents], call)

    def _made(
        self, name: str, step: str, args: Sequence[object], call: Call, **kwargs: object
    ) -> Var:
        return self.assign(name, create_op_call(step, args, kwargs, call.span), call.span)


def _tile(value: Expr) -> TileType:
    tile = tile_of(value)
    assert tile is not None, "the type rule wants a tile"
    return tile


def _refusal(where: Expr, *, of_tensor: bool) -> IRValueError:
    what = source_name(where) if isinstance(where, Var) else READ
    kind = "tensor" if of_tensor else "tile"
    message = (
        f"A value that is read from a {kind} ({what}) must go into an op on tiles or into pl.write as "
        "it is to be compiled: it may steer no control flow and no scalar, since the scalar unit "
        "does not see what the vector core makes"
    )
    hint = "compute on a tile of one element, as pl.slice(t, [1, 1], [i, j]) gives it"
    if of_tensor:
        hint = (
            "take what steers the kernel as a parameter, pl.Scalar[pl.INDEX], or compute on a tile "
            "of one element, as pl.load(x, [i, j], [1, 1]) gives it"
        )
    return IRValueError(message, where.span, hint=hint)
