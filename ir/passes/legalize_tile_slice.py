"""LegalizeTileSlice: a slice of a tile says where its window is and how much is valid, nothing else.

slice(t, [16, 64], [8, 0], clamp=True, pad_value=zero)  ->  w = slice(t, [16, 64], [8, 0], [8, 64])
                                                            fillpad(w, pad_value=zero)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..errors import IRValueError
from ..expr import Call, Expr, MakeTuple, Op
from ..ops import create_op_call
from ..ops.checks import clamped_extents, show_dims
from ..properties import IRProperty
from ..types import TileType, constant_dims
from .base import FunctionPass
from .inserting import InsertingMutator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core import Function
    from ..types import Dims

_SLICE = "tile.slice"


@dataclass(frozen=True)
class LegalizeTileSlice(FunctionPass):
    """Write slices of tiles in the one form that has instructions."""

    name = "LegalizeTileSlice"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )
    produced = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Rewrite the slices of one function.

        Raises:
            IRValueError: For a slice that drops an axis, or reaches beyond the tile.
        """
        return _Legalizer().rewrite(function)


class _Legalizer(InsertingMutator):
    def visit_call(self, op: Call) -> Call:
        done = self.visit_children(op)
        if not isinstance(op.op, Op) or op.op.name != _SLICE or not done.kwargs:
            return done
        tile, shape, offset = done.args[0], _dims(done.args[1]), _dims(done.args[2])
        if done.kwargs.get("drop_dims"):
            message = (
                f"{_SLICE} must keep all axes of {show_dims(shape)} to be compiled: a tile has rows "
                "and columns"
            )
            hint = "t[3:4, 0:8] takes a row, and pl.reshape turns a column into one"
            raise IRValueError(message, op.span, hint=hint)
        args: list[object] = [tile, list(shape), list(offset)]
        pad = done.kwargs.get("pad_value")
        valid: Sequence[Expr | int] | None = _dims(done.args[3]) if len(done.args) > 3 else None
        if done.kwargs.get("clamp"):
            valid = self._clamped(op, cast("TileType", tile.type), shape, offset, valid)
        if valid is not None:
            args.append(list(valid))
        window = create_op_call(_SLICE, args, {}, op.span)
        if pad is None:
            return window
        var = self.assign("window", window, op.span)
        return create_op_call("tile.fillpad", [var], {"pad_value": pad}, op.span)

    def _clamped(
        self,
        op: Call,
        tile: TileType,
        shape: Dims,
        offset: Dims,
        valid: Sequence[Expr | int] | None,
    ) -> Dims:
        """Return how much of a window lies within what is valid of its tile."""
        wanted = shape if valid is None else cast("Dims", tuple(valid))
        starts, room = constant_dims(offset), constant_dims(tile.shape)
        numbers = constant_dims((*wanted, *tile.valid_shape))
        if starts is None or room is None or numbers is None:
            message = f"{_SLICE} with clamp must have numbers for its extents to be compiled"
            raise IRValueError(message, op.span, hint="valid_shape= may be computed")
        extents = constant_dims(shape) or ()
        if any(a + n > r for a, n, r in zip(starts, extents, room, strict=True)):
            message = (
                f"{_SLICE} with clamp must begin so that its window {show_dims(shape)} from "
                f"{list(starts)} on ends within the tile {show_dims(tile.shape)} to be compiled"
            )
            hint = "pl.load with clamp=True takes what there is of a tensor"
            raise IRValueError(message, op.span, hint=hint)
        return clamped_extents(offset, wanted, tile.valid_shape)


def _dims(arg: object) -> Dims:
    assert isinstance(arg, MakeTuple), arg
    return arg.elements
