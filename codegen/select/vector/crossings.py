"""Instruction selection for moves of tiles that begin or end in UB, those between cores included.

What the cube core and the first vector core of a cluster hand to each other goes from L0C to UB, where
rows stand as the vector core has them, and from UB to L1, into the boxes that the cube expects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ....ir.errors import IRTypeError, IRValueError
from ....ir.ops.checks import arrangement_name
from ....ir.tile_bytes import FRACTAL_ROWS, round_up, tile_bytes
from ....ir.types import SCALE_ARRANGEMENT, TileLayout
from ...isa.vector_rules import UB_UNIT
from ...isa.vocabulary import ElementBits, Space
from ..cube import drained, fill_up
from ..places import place_of, space_name
from .elementwise import copy
from .tiles import tile_at

if TYPE_CHECKING:
    from ....ir.expr import Call, Expr, Var
    from ....ir.types import TileType, TileView
    from ...tree import Fields, Step
    from ..operands import Operands
    from .tiles import UbTile

_BYTE = 8
#: Which vector core of the cluster works with the cube core; the other one has nothing to do.
_MATE = 0


def select_crossing(operands: Operands, var: Var, call: Call) -> tuple[Step, ...]:
    """Return the move of what is valid of a tile into UB, or from there into L1 and what fills it up.

    Raises:
        IRTypeError: For elements that no instruction carries that way.
        IRValueError: For a way or an arrangement that no instruction has.
    """
    source, target = place_of(call.args[0], call.span), place_of(var, call.span)
    match source.space, target.space:
        case Space.UB, Space.UB:
            return copy(operands, tile_at(var, call.span), tile_at(call.args[0], call.span), call)
        case Space.UB, Space.L1:
            return _to_l1(operands, var, call)
        case Space.L0C, Space.UB:
            return _from_l0c(operands, var, call)
        case _:
            message = (
                "A tile must move within Vec, from Vec to Mat or from Acc to Vec here, not from "
                f"{space_name(call.args[0])} to {space_name(var)}"
            )
            raise IRValueError(message, call.span)


def _view(value: Expr) -> TileView:
    return cast("TileType", value.type).get_effective_tile_view()


def _to_l1(operands: Operands, var: Var, call: Call) -> tuple[Step, ...]:
    place, view = place_of(var, call.span), _view(var)
    if view.arrangement in SCALE_ARRANGEMENT.values():
        return _scales_to_l1(operands, var, call)
    source = tile_at(call.args[0], call.span)
    if source.is_empty:
        return ()
    _check_rows(source, call)
    fields: Fields = {"ub": source.address, "l1": place.address}
    if view.slayout is TileLayout.none_box:
        fields |= {
            "lines": source.rows,
            "units": -(-source.cols * source.type.bits // (UB_UNIT * _BYTE)),
            "ub_pitch": source.pitch,
            "l1_pitch": -(-place.cols * source.type.bits // (UB_UNIT * _BYTE)),
        }
        return (operands.step("ub_to_l1", fields, call), *fill_up(operands, var, place, call))
    if (view.blayout, view.slayout) != (TileLayout.col_major, TileLayout.row_major):
        message = (
            "A tile must move from Vec to Mat as it lies or into boxes in columns, not into "
            f"{arrangement_name(view)}"
        )
        raise IRValueError(message, call.span)
    if source.type.bits not in set(map(int, ElementBits)):
        message = (
            f"A tile must have elements of at most 32 bits to move from Vec to Mat, not "
            f"{source.dtype.name}"
        )
        raise IRTypeError(message, call.span)
    fields |= source.shape
    fields |= {
        "bits": ElementBits(source.type.bits),
        "l1_rows": round_up(place.rows, FRACTAL_ROWS),
        "pitch": source.pitch,
    }
    return (operands.step("ub_to_l1_nz", fields, call), *fill_up(operands, var, place, call))


def _scales_to_l1(operands: Operands, var: Var, call: Call) -> tuple[Step, ...]:
    """Return the copy of all boxes of scales; they stand in UB as they will in L1."""
    source = call.args[0]
    if _view(source).arrangement != _view(var).arrangement:
        message = (
            f"A tile of scales must stand in the boxes of its side to move to Mat as "
            f"{arrangement_name(_view(var))}, not as {arrangement_name(_view(source))}"
        )
        raise IRValueError(message, call.span, hint="pl.quant_mx makes them so")
    units = tile_bytes(cast("TileType", source.type)) // UB_UNIT
    fields: Fields = {
        "ub": place_of(source, call.span).address,
        "l1": place_of(var, call.span).address,
        "lines": 1,
        "units": units,
        "ub_pitch": units,
        "l1_pitch": units,
    }
    return (operands.step("ub_to_l1", fields, call),)


def _from_l0c(operands: Operands, var: Var, call: Call) -> tuple[Step, ...]:
    source, target = place_of(call.args[0], call.span), tile_at(var, call.span)
    if target.is_empty:
        return ()
    _check_rows(target, call)
    fields: Fields = {
        "l0c": source.address,
        "ub": target.address,
        "core": _MATE,
        "pitch": target.pitch,
        **drained(source, place_of(var, call.span), call),
    }
    mnemonic = "l0c_to_ub_quant" if "xs" in fields else "l0c_to_ub"
    return (operands.step(mnemonic, fields | target.shape, call),)


def _check_rows(tile: UbTile, call: Call) -> None:
    """Refuse a packed column, whose rows have no pitch."""
    if not tile.pitch:
        message = (
            "A tile that moves between Vec and the cube core must have rows of 32 bytes or more, not "
            "be a column"
        )
        raise IRValueError(message, call.span, hint="give it more columns, with valid_shape")
