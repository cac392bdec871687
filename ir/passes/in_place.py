"""Which operands lie, or may lie, where a result is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..expr import Call, Op, Var
from ..ops import ROWS
from ..ops.checks import same_dims
from .memrefs import tile_of

if TYPE_CHECKING:
    from ..expr import Expr


def renamed(value: Expr) -> Var | None:
    """Return the variable that a right-hand side gives another name; None for one that makes a value."""
    match value:
        case Var():
            return value
        case Call(op=Op(name), args=args) if name in ROWS and ROWS[name].renames:
            place = ROWS[name].reuses
            assert place is not None, "the table holds it to that"
            source = args[place]
            return source if isinstance(source, Var) else None
        case _:
            return None


def overwritable(value: Expr, result: Var) -> tuple[Var, ...]:
    """Return the operands of a right-hand side in whose place its result may be written.

    The vector core computes an element from those at its own place before it writes there. So an
    operand may be overwritten where its elements stand as those of the result will.

    Args:
        value: The right-hand side.
        result: The tile that it is assigned to.
    """
    row = ROWS.get(value.op.name) if isinstance(value, Call) and isinstance(value.op, Op) else None
    if row is None or not isinstance(value, Call):
        return ()
    places = row.in_place if row.reuses is None else (row.reuses,)
    made = tile_of(result)
    found: list[Var] = []
    for place in places:
        operand = value.args[place]
        tile = tile_of(operand)
        if made is None or tile is None or not isinstance(operand, Var):
            continue
        if same_dims(tile.shape, made.shape) and tile.dtype.bits == made.dtype.bits:
            found.append(operand)
    return tuple(found)
