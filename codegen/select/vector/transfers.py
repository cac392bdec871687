"""Instruction selection for what carries tiles between global memory and UB."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, cast

from ....ir.errors import IRTypeError, IRValueError
from ....ir.ops.checks import show_dims
from ....ir.types import TensorLayout
from ...isa.vector_rules import UB_UNIT
from ..folded import pieces, select_rows
from ..operands import coordinates
from ..places import constant
from .quantise import scale_side, select_scale_store
from .tiles import ub_tile

if TYPE_CHECKING:
    from ....ir.expr import Call
    from ....ir.types import TensorType
    from ...tree import Fields, Step
    from ..operands import Operands
    from ..places import Place
    from .tiles import UbTile

_WIDEST = 32
_MOST_PARTS = 256
"""Instructions that one load or store may become."""


def select_load(operands: Operands, place: Place, call: Call) -> tuple[Step, ...]:
    """Return the load of a window of a tensor into a tile in UB.

    Args:
        operands: The kernel's tensors and views.
        place: Where the tile lies.
        call: The load.

    Raises:
        IRTypeError: For a tensor in another layout than ND or DN, or a tile of no constant extents.
        IRValueError: For a tile or a window that no instruction takes.
    """
    tile = ub_tile(place, call.span)
    window = constant(coordinates(call, 3), "The valid shape of a load", call.span)
    return _transfer("gm_to_ub", operands, tile, call, 0, window)


def select_store(operands: Operands, place: Place, call: Call) -> tuple[Step, ...]:
    """Return the store of the valid part of a tile in UB into a tensor.

    Args:
        operands: The kernel's tensors and views.
        place: Where the tile lies.
        call: The store.

    Raises:
        IRTypeError: For a tensor in another layout than ND or DN, or a tile of no constant extents.
        IRValueError: For a tile or a window that no instruction takes.
    """
    side = scale_side(call.args[0])
    if side is not None:
        return select_scale_store(operands, place, side, call)
    tile = ub_tile(place, call.span)
    window = (tile.rows, tile.cols)
    for shapes in range(3, len(call.args)):
        window = constant(coordinates(call, shapes), "The shapes of a store", call.span)
        if (prod(window[:-1]), window[-1]) != (tile.rows, tile.cols):
            message = (
                f"A store must keep the tile's valid shape of {[tile.rows, tile.cols]}, not write "
                f"it by the shapes {list(window)}"
            )
            raise IRValueError(message, call.span)
    return _transfer("ub_to_gm", operands, tile, call, 2, window)


def _transfer(
    mnemonic: str,
    operands: Operands,
    tile: UbTile,
    call: Call,
    position: int,
    window: tuple[int, ...],
) -> tuple[Step, ...]:
    """Return the transfer between a tile and the tensor that argument `position` is."""
    tensor = cast("TensorType", call.args[position].type)
    assert tensor.dtype.bits == tile.type.bits, "a transfer keeps the dtype"
    if tile.type.bits > _WIDEST:
        message = (
            f"{call.op.name} of the vector core must move elements of at most {_WIDEST} bits, not "
            f"{tile.dtype.name}"
        )
        hint = "the vector core computes on Int32; Int64 is for scalars, which need no tile"
        raise IRTypeError(message, call.span, hint=hint)
    if tile.is_empty:
        return ()
    if len(tensor.shape) <= 2 or tensor.layout is not TensorLayout.ND:
        parts: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), window)]
    else:
        shape = constant(tensor.shape, "The shape of a tensor that is compiled", call.span)
        parts = pieces(window, shape)
    if len(parts) > _MOST_PARTS:
        message = (
            f"{call.op.name} must take at most {_MOST_PARTS} pieces of rows that follow one another, "
            f"not {len(parts)}, which {list(window)} of {show_dims(tensor.shape)} has"
        )
        raise IRValueError(message, call.span, hint="a loop that takes one matrix a trip")
    rows = tile.rows // len(parts)
    each = rows * tile.pitch * UB_UNIT if tile.pitch else rows * tile.type.bits // 8
    if len(parts) > 1 and each % UB_UNIT:
        message = (
            f"The matrices of a packed column must take a multiple of {UB_UNIT} bytes each in Vec, "
            f"not {each} bytes for {rows} rows of {tile.dtype.name}"
        )
        raise IRValueError(message, call.span, hint="a loop that takes one matrix a trip")
    steps: list[Step] = []
    for number, (first, part) in enumerate(parts):
        view, row, col = select_rows(operands, call, position, part, first)
        fields: Fields = {
            "view": view,
            "xr": row,
            "xc": col,
            "ub": tile.address + number * each,
            "pitch": tile.pitch,
        }
        steps.append(operands.step(mnemonic, {**fields, **tile.shape, "rows": rows}, call))
    return tuple(steps)
