"""Windows of tiles in UB, and copies between them.

A window that begins at a constant place has a constant address: the 32 bytes in which it begins and
the elements before it in them. Where scalars say where it begins, a register holds the distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from ....ir.collapsing import plus
from ....ir.errors import IRValueError
from ....ir.expr import ConstInt, index
from ....ir.tile_bytes import round_up
from ....ir.types import SCALE_ARRANGEMENT
from ...isa.table import AT
from ...isa.vector_rules import UB_UNIT
from ...isa.vocabulary import Space
from ...tree import Region
from ..moves import times_pitch
from .tiles import tile_at

if TYPE_CHECKING:
    from ....ir.errors import Span
    from ....ir.expr import Call, Expr
    from ....ir.types import TileType
    from ...tree import Fields, Step
    from ..operands import Operands
    from .tiles import UbTile

_BYTE = 8
_AXES = ("row", "column")


@dataclass(frozen=True)
class Window:
    """A part of a tile in UB.

    Attributes:
        tile: The tile.
        skip: Elements between the tile's address and the window's first one, as far as constant.
        distance: Bytes from there to the first element, where scalars tell it.
        buffer: All bytes of the tile.
    """

    tile: UbTile
    buffer: Region
    skip: int = 0
    distance: Expr | None = None

    def operand(self, name: str) -> Fields:
        """Return the fields of an operand `name` of an instruction that takes windows."""
        per_unit = UB_UNIT * _BYTE // self.tile.type.bits
        units, rest = divmod(self.skip, per_unit)
        address = self.tile.address + units * UB_UNIT
        return {name: address, f"{name}_skip": rest, f"{name}_pitch": self.tile.pitch}


def whole(value: Expr, span: Span) -> Window:
    """Return all that is valid of a tile; errors as of `tile_at`.

    Raises:
        IRValueError: For a tile of scales that lie in boxes.
    """
    type_ = cast("TileType", value.type)
    if type_.get_effective_tile_view().arrangement in SCALE_ARRANGEMENT.values():
        message = (
            "A tile of scales in boxes must be stored or moved as it is, not cut, joined or turned"
        )
        raise IRValueError(message, span)
    tile, memref = tile_at(value, span), type_.memref
    assert memref is not None, "a placed tile has a memory reference"
    end = tile.address + round_up(memref.size, UB_UNIT)
    return Window(tile, Region(Space.UB, tile.address, end))


def window_of(
    operands: Operands,
    value: Expr,
    at: tuple[Expr, Expr],
    extents: tuple[int, int],
    call: Call,
) -> Window:
    """Return the window of a tile that begins at a row and a column.

    Args:
        operands: What is known of scalars.
        value: The tile.
        at: Row and column of its first element.
        extents: Its rows and columns.
        call: Where it is taken, for an error.

    Raises:
        IRValueError: For a window that is not known to lie within what is valid of the tile, or of
            4-bit elements of which it is not known to begin with a whole byte.
    """
    found = whole(value, call.span)
    tile = found.tile
    across = 1 if tile.pitch == 0 else tile.pitch * UB_UNIT * _BYTE // tile.type.bits
    limits = (tile.rows, tile.cols)
    for axis, place, apart, size, limit in zip(
        _AXES, at, (across, 1), extents, limits, strict=True
    ):
        if isinstance(place, ConstInt):
            found = replace(found, skip=found.skip + place.value * apart)
            continue
        step = max(1, _BYTE // tile.type.bits) if axis == "column" else 1
        _check_range(operands, axis, place, (size, limit, step), call)
        more = times_pitch(place, Fraction(apart * tile.type.bits, _BYTE))
        distance = more if found.distance is None else plus(found.distance, more)
        found = replace(found, distance=distance)
    return found


def _check_range(
    operands: Operands, axis: str, place: Expr, wanted: tuple[int, int, int], call: Call
) -> None:
    size, limit, step = wanted
    found = operands.ranges.of(place)
    if found is not None and found.low >= 0 and found.high + size <= limit:
        if found.is_multiple_of(step):
            return
        message = f"The {axis} of a window of 4-bit elements must be known to be even"
        raise IRValueError(message, call.span)
    what = "begins where no constant tells"
    if found is not None:
        what = f"takes {size} from {found.low} to {found.high} on"
    message = (
        f"The {axis} of a window must be known to lie within the {limit} valid elements of the tile, "
        f"but it {what}"
    )
    hint = "let it follow from constants and loops with constant bounds"
    raise IRValueError(message, call.span, hint=hint)


def copied(
    operands: Operands, dst: Window, src: Window, extents: tuple[int, int], call: Call
) -> tuple[Step, ...]:
    """Return the copy of rows x columns of elements from one window to another."""
    rows, cols = extents
    bits = src.tile.type.bits
    if not rows or not cols:
        return ()
    fields: Fields = {
        "type": src.tile.type,
        "rows": rows,
        "cols": round_up(cols, max(1, _BYTE // bits)),
        **dst.operand("dst"),
        **src.operand("src"),
    }
    if dst.distance is None and src.distance is None:
        return (operands.step("v_move", fields, call),)
    fields |= {"xo": src.distance or index(0), "xt": dst.distance or index(0)}
    step = operands.step("v_move" + AT, fields, call, within=src.buffer, into=dst.buffer)
    return (step,)
