"""Instruction selection for the ops of the vector core that go element by element."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ....ir.expr import index
from ....ir.numerics.functions import Binary, Comparison, Unary
from ....ir.ops import ROWS
from ...isa.vocabulary import Rounding, VectorBinary, VectorComparison, VectorUnary
from .numbers import code_of
from .tiles import tile_at

if TYPE_CHECKING:
    from ....ir.cast_mode import CastMode
    from ....ir.expr import Call, Expr, Var
    from ...tree import Fields, Step
    from ..operands import Operands, Rule
    from .tiles import UbTile

BINARIES = (
    Binary.ADD,
    Binary.SUB,
    Binary.MUL,
    Binary.DIV,
    Binary.REM,
    Binary.MAXIMUM,
    Binary.MINIMUM,
)
"""The functions of two elements that are ops of their own."""


def _unary(op: VectorUnary, operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    dst, src = tile_at(var, call.span), tile_at(call.args[0], call.span)
    fields: Fields = {"op": op, "type": src.type, **dst.operand("dst"), **src.operand("src")}
    return _whole(operands, "v_unary", src, fields, call)


def _binary(op: VectorBinary, operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    dst, a, b = (tile_at(each, call.span) for each in (var, *call.args))
    fields: Fields = {"op": op, "type": a.type}
    fields |= dst.operand("dst") | a.operand("a") | b.operand("b")
    return _whole(operands, "v_binary", a, fields, call)


def _scalar(op: VectorBinary, operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    dst, a = tile_at(var, call.span), tile_at(call.args[0], call.span)
    fields: Fields = {"op": op, "type": a.type, "xs": code_of(call.args[1]), "swap": 0}
    fields |= dst.operand("dst") | a.operand("a")
    return _whole(operands, "v_scalar", a, fields, call)


def _compare(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    dst, a, b = (tile_at(each, call.span) for each in (var, *call.args))
    fields: Fields = {"op": _comparison(call), "type": a.type}
    fields |= dst.operand("dst") | a.operand("a") | b.operand("b")
    return _whole(operands, "v_compare", a, fields, call)


def _compare_scalar(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    dst, a = tile_at(var, call.span), tile_at(call.args[0], call.span)
    fields: Fields = {"op": _comparison(call), "type": a.type, "xs": code_of(call.args[1])}
    fields |= dst.operand("dst") | a.operand("a")
    return _whole(operands, "v_compare_scalar", a, fields, call)


def _comparison(call: Call) -> VectorComparison:
    found: Comparison = ROWS[call.op.name].attribute(call.kwargs, "cmp_type")
    return VectorComparison[found.name.upper()]


def _select(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Put one of the two operands where the result stands, then take what the mask says of the other."""
    if var is None:
        return ()
    dst, mask, a, b = (tile_at(each, call.span) for each in (var, *call.args))
    if dst.address == a.address:
        return _choose(operands, dst, b, mask, call, invert=True)
    return (*copy(operands, dst, b, call), *_choose(operands, dst, a, mask, call, invert=False))


def _select_scalar(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    dst, mask, a = (tile_at(each, call.span) for each in (var, *call.args[:2]))
    filled = fill(operands, dst, call.args[2], call)
    return (*filled, *_choose(operands, dst, a, mask, call, invert=False))


def _choose(
    operands: Operands, dst: UbTile, src: UbTile, mask: UbTile, call: Call, *, invert: bool
) -> tuple[Step, ...]:
    fields: Fields = {"invert": int(invert), "type": dst.type}
    fields |= dst.operand("dst") | src.operand("src") | mask.operand("mask")
    return _whole(operands, "v_select", dst, fields, call)


def _cast(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    dst, src = tile_at(var, call.span), tile_at(call.args[0], call.span)
    mode: CastMode = ROWS[call.op.name].attribute(call.kwargs, "mode")
    fields: Fields = {"type": src.type, "to": dst.type, "mode": Rounding[mode.name.upper()]}
    fields |= dst.operand("dst") | src.operand("src")
    return _whole(operands, "v_cast", src, fields, call)


def _full(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    return fill(operands, tile_at(var, call.span), call.args[1], call)


def _create(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Make the tile of zeros that the language promises, where somebody reads it."""
    if var is None or var not in operands.wanted:
        return ()
    return fill(operands, tile_at(var, call.span), index(0, call.span), call)


def copy(operands: Operands, dst: UbTile, src: UbTile, call: Call) -> tuple[Step, ...]:
    """Return the copy of what is valid of `src` to the beginning of `dst`; nothing if it is there."""
    if dst.address == src.address:
        return ()
    fields: Fields = {"type": src.type, "dst_skip": 0, "src_skip": 0}
    fields |= dst.operand("dst") | src.operand("src")
    return _whole(operands, "v_move", src, fields, call)


def fill(operands: Operands, dst: UbTile, number: Expr, call: Call) -> tuple[Step, ...]:
    """Return what gives all valid elements of `dst` the value of a scalar of its dtype."""
    fields: Fields = {"type": dst.type, "xs": code_of(number), "dst_skip": 0}
    return _whole(operands, "v_fill", dst, fields | dst.operand("dst"), call)


def _whole(
    operands: Operands, mnemonic: str, tile: UbTile, fields: Fields, call: Call
) -> tuple[Step, ...]:
    """Return the instruction over all that is valid of `tile`, none where that is nothing."""
    if tile.is_empty:
        return ()
    return (operands.step(mnemonic, fields | tile.shape, call),)


RULES: dict[str, Rule] = {
    **{f"tile.{each.value}": partial(_unary, VectorUnary[each.name]) for each in Unary},
    **{f"tile.{each.value}": partial(_binary, VectorBinary[each.name]) for each in BINARIES},
    **{f"tile.{each.value}s": partial(_scalar, VectorBinary[each.name]) for each in BINARIES},
    "tile.cmp": _compare,
    "tile.cmps": _compare_scalar,
    "tile.sel": _select,
    "tile.sels": _select_scalar,
    "tile.cast": _cast,
    "tile.full": _full,
    "tile.create": _create,
}
"""The rules of these ops."""
