"""FlattenTileNdTo2D: a tile has rows and columns; axes before the last are merged into the rows.

    t = load(x, [b, r, 0], [1, 64, 128])      ->  x_2d = view(x, [B * R, 128])
                                                  t = load(x_2d, [b * R + r, 0], [64, 128])
    store(t, [b, r, 0], y)                    ->  store(t, [b, r, 0], y, [1, 64, 128])

A load into Mat goes through a view of its tensor in two dimensions, since the hardware turns rows into
boxes. One from NZ and one into Vec keep their tensor and window, and only the tile is flat.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, cast

from ..collapsing import folded_offset, is_contiguous
from ..errors import IRValueError
from ..expr import Call, Expr, GlobalVar, MakeTuple, Type, Var, index, replace
from ..ops import ROWS, create_op_call
from ..ops.checks import same_dim, show_dims
from ..ops.rules_forms import flat_tile, merged
from ..ops.rules_memory import is_packed
from ..properties import IRProperty
from ..ranges import Ranges
from ..types import MemorySpace, TensorLayout, TensorType, TileType, constant_dim, constant_dims
from ..verification.walk import tiles
from .base import FunctionPass
from .inserting import InsertingMutator
from .memrefs import tile_of

if TYPE_CHECKING:
    from ..core import AssignStmt, Function, SeqStmts, Stmt
    from ..types import Dims

_RANK = 2
#: Ops of the cube, whose operands are single matrices, and moves: they mean the same on a flat tile.
_FLAT_OPS = (
    *(
        f"tile.{name}{more}"
        for name in ("matmul_mx", "matmul", "gemv_mx", "gemv")
        for more in ("", "_acc", "_bias")
    ),
    "tile.move",
)


@dataclass(frozen=True)
class FlattenTileNdTo2D(FunctionPass):
    """Give every tile of more than two axes two, and its loads and stores coordinates to match."""

    name = "FlattenTileNdTo2D"
    required = frozenset(
        {
            IRProperty.SSAForm,
            IRProperty.NormalizedStmtStructure,
            IRProperty.NoNestedCalls,
            IRProperty.IncoreTileOps,
        }
    )
    produced = frozenset({IRProperty.TileOps2D})

    def transform_function(self, function: Function) -> Function:
        """Flatten the tiles of one function.

        Raises:
            IRValueError: For a tile of one axis, one whose valid rows, or a load into Mat whose rows, do
                not follow one another, and for an op that has no meaning on a flat tile.
        """
        for var, tile in tiles(function):
            if len(tile.shape) < _RANK:
                message = (
                    "A tile must have rows and columns to be compiled, not the shape "
                    f"{show_dims(tile.shape)}"
                )
                row = show_dims((index(1), *tile.shape))
                hint = f"pl.tensor.view(x, {row}) of a tensor x is loaded as a tile {row}"
                raise IRValueError(message, var.span, hint=hint)
        if all(len(tile.shape) <= _RANK for _, tile in tiles(function)):
            return function
        return _Flattener(function).rewrite(function)


def _is_nd(type_: Type) -> bool:
    return isinstance(type_, TileType) and len(type_.shape) > _RANK


class _Flattener(InsertingMutator):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self._ranges = Ranges(function.body)
        self._views: dict[Expr, Var] = {}
        self._span = function.span

    def visit_type(self, type_: Type) -> Type:
        done = super().visit_type(type_)
        if not isinstance(done, TileType) or not _is_nd(done):
            return done
        self._check_view(done)
        return flat_tile(done)

    def _check_view(self, tile: TileType) -> None:
        in_part = False
        for valid, dim in zip(
            reversed(tile.valid_shape[:-1]), reversed(tile.shape[:-1]), strict=True
        ):
            if in_part and constant_dim(valid) != 1:
                message = (
                    "The valid rows of a tile of more than two axes must follow one another, as those "
                    f"of {show_dims(tile.valid_shape)} in {show_dims(tile.shape)} do not"
                )
                raise IRValueError(message, self._span)
            in_part = in_part or same_dim(valid, dim) is not True
        view = tile.tile_view
        if view is not None and (view.stride or view.start_offset is not None):
            message = (
                "A tile of more than two axes must have no strides and no start offset of its own"
            )
            raise IRValueError(message, self._span)

    # ------------------------------------------------------------------- statements

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        outer, self._views = self._views, {}
        done = super().visit_seq_stmts(op)
        self._views = outer
        return done

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        if op.span.is_known:
            self._span = op.span
        value = self.visit_expr(op.value)
        var = cast("Var", self.visit(op.var))
        return op if var is op.var and value is op.value else replace(op, var=var, value=value)

    # ------------------------------------------------------------------- calls

    def visit_call(self, op: Call) -> Call:
        if op.span.is_known:
            self._span = op.span
        is_nd = _is_nd(op.type) or any(_is_nd(arg.type) for arg in op.args)
        if not is_nd or isinstance(op.op, GlobalVar):
            return self.visit_children(op)
        match op.op.name:
            case "tile.load":
                return self._load(op)
            case "tile.store":
                return self._store(op)
            case name if name in _FLAT_OPS or ROWS[name].elementwise:
                return self.visit_children(op)
            case name:
                message = f"{name} must take and give tiles of at most two axes"
                hint = "pl.tensor.view(x, [rows, columns]) of a tensor x is loaded as such tiles"
                raise IRValueError(message, self._span, hint=hint)

    def _store(self, op: Call) -> Call:
        tile, new = tile_of(op.args[0]), self.visit_children(op)
        if len(op.args) > 3:
            return new
        assert tile is not None, op
        shapes = tuple(self.visit_expr(dim) for dim in tile.valid_shape)
        return replace(new, args=(*new.args, MakeTuple(shapes, op.span)))

    def _load(self, op: Call) -> Call:
        source = op.args[0].type
        assert isinstance(source, TensorType), source
        target = op.kwargs.get("target_memory")
        if source.layout is TensorLayout.NZ or target is MemorySpace.Vec:
            return self.visit_children(op)
        fault = _fault(op, source)
        if fault is None:
            return self._flat_load(op, source)
        if target is None:
            return self.visit_children(op)
        message = f"A load of more than two axes into Mat must {fault}"
        raise IRValueError(message, self._span)

    def _flat_load(self, op: Call, source: TensorType) -> Call:
        """Return the load of the same rows from the tensor seen in two dimensions."""
        offsets, window, valid = (cast("MakeTuple", arg).elements for arg in op.args[1:])
        extents = constant_dims(source.shape[:-1])
        assert extents is not None, source
        # An extent that only the run knows is at least 1.
        sizes = [constant_dim(size) or 1 for size in valid[:-1]]
        row = folded_offset(offsets[:-1], sizes, extents, self._ranges)
        tensor = self._flat_view(op, source, prod(extents))
        args = [
            tensor,
            MakeTuple((self.visit_expr(row), self.visit_expr(offsets[-1])), op.args[1].span),
            MakeTuple(merged(window), op.args[2].span),
            MakeTuple(tuple(map(self.visit_expr, merged(valid))), op.args[3].span),
        ]
        made = create_op_call("tile.load", args, op.kwargs, op.span)
        return replace(made, attrs=op.attrs)

    def _flat_view(self, op: Call, source: TensorType, rows: int) -> Var:
        tensor = cast("Var", self.visit_expr(op.args[0]))
        known = self._views.get(tensor)
        if known is None:
            shape = (index(rows), source.shape[-1])
            view = create_op_call("tensor.view", [tensor, MakeTuple(shape)], {}, op.span)
            known = self._views[tensor] = self.assign(f"{tensor.name_hint}_2d", view, op.span)
        return known


def _fault(op: Call, source: TensorType) -> str | None:
    """Return what a load must be and is not to be one of rows of a view in two dimensions."""
    if source.layout is not TensorLayout.ND:
        return f"be from a tensor in ND or NZ, not in {source.layout.name}"
    if source.stride and not is_packed(source):
        return f"be from a packed tensor, not from one of stride {show_dims(source.stride)}"
    if source.valid_shape:
        return f"be from a tensor that is valid as a whole, not in {show_dims(source.valid_shape)}"
    extents, window = constant_dims(source.shape), constant_dims(_elements(op, 2))
    if extents is None or window is None:
        return "be of constant extents, from a tensor of constant extents"
    if op.kwargs.get("clamp"):
        return "be written without clamp"
    if not is_contiguous(window[:-1], extents[:-1]):
        return (
            f"take rows that follow one another, which those of {list(window)} of {list(extents)} do "
            "not: load one matrix at a time"
        )
    return None


def _elements(op: Call, position: int) -> Dims:
    return cast("MakeTuple", op.args[position]).elements
