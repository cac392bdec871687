"""Instruction selection for what cuts, joins, turns and fills up tiles: copies within UB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir.expr import index
from ....ir.ops import ROWS
from ....ir.ops.meaning_shapes import pad_code
from ....ir.ops.row import CallSite
from ....ir.ops.rules_shapes import axes_of
from ...isa.vector_rules import UB_UNIT
from ..operands import coordinates
from .windows import Window, copied, whole, window_of

if TYPE_CHECKING:
    from ....ir.expr import Call, Expr, Var
    from ...tree import Step
    from ..operands import Operands, Rule

_RANK = 2


def _site(call: Call) -> CallSite:
    return CallSite(ROWS[call.op.name], call.args, call.kwargs, call.span)


def _extents(window: Window) -> tuple[int, int]:
    return window.tile.rows, window.tile.cols


def _pair(call: Call, position: int) -> tuple[Expr, Expr]:
    row, col = coordinates(call, position)
    return row, col


def _slice(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the copy of a window of a tile."""
    if var is None:
        return ()
    whole(call.args[0], call.span)  # what cannot be cut is refused before its window is looked at
    dst = whole(var, call.span)
    src = window_of(operands, call.args[0], _pair(call, 2), _extents(dst), call)
    return copied(operands, dst, src, _extents(dst), call)


def _assemble(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the copy of a tile into a window of another, which the result takes the place of."""
    if var is None:
        return ()
    src = whole(call.args[1], call.span)
    dst = window_of(operands, var, _pair(call, 2), _extents(src), call)
    target = whole(call.args[0], call.span)
    assert target.tile.address == dst.tile.address, "what is changed in part stays where it is"
    return copied(operands, dst, src, _extents(src), call)


def _reshape(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the copy of a tile's bytes, which mean the same in its new shape: it has no gaps."""
    if var is None:
        return ()
    dst, src = whole(var, call.span), whole(call.args[0], call.span)
    tile = src.tile
    per_unit = UB_UNIT * 8 // tile.type.bits
    units, rest = divmod(tile.rows * tile.cols, per_unit)
    steps: tuple[Step, ...] = ()
    common = {"type": tile.type, "dst_skip": 0, "src_skip": 0, "dst_pitch": 1, "src_pitch": 1}
    for begin, rows, cols in ((0, units, per_unit), (units, 1, rest)):
        if not rows or not cols:
            continue
        at = {"dst": dst.tile.address + begin * UB_UNIT, "src": tile.address + begin * UB_UNIT}
        fields = {**at, **common, "rows": rows, "cols": cols}
        steps += (operands.step("v_move", fields, call),)
    return steps


def _concat(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the copies of two tiles to the left and to the right of a new one."""
    if var is None:
        return ()
    a, b = (whole(each, call.span) for each in call.args)
    right = window_of(operands, var, (index(0), index(a.tile.cols)), _extents(b), call)
    left = copied(operands, whole(var, call.span), a, _extents(a), call)
    return left + copied(operands, right, b, _extents(b), call)


def _transpose(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the exchange of rows and columns, or a copy where an axis is exchanged with itself."""
    if var is None:
        return ()
    dst, src = whole(var, call.span), whole(call.args[0], call.span)
    first, second = axes_of(_site(call), _RANK)
    if first == second:
        return copied(operands, dst, src, _extents(src), call)
    if src.tile.is_empty:
        return ()
    tile = src.tile
    fields = {"type": tile.type, **tile.shape, **dst.tile.operand("dst"), **tile.operand("src")}
    return (operands.step("v_transpose", fields, call),)


def _fillpad(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the copy of what is valid, and the filling to the right of it and below."""
    if var is None:
        return ()
    dst, src = whole(var, call.span), whole(call.args[0], call.span)
    steps = copied(operands, dst, src, _extents(src), call)
    (valid_rows, valid_cols), (rows, cols) = _extents(src), _extents(dst)
    site = _site(call)
    code = index(pad_code(site.row.attribute(site.kwargs, "pad_value"), src.tile.dtype))
    for at, extents in (
        ((0, valid_cols), (valid_rows, cols - valid_cols)),
        ((valid_rows, 0), (rows - valid_rows, cols)),
    ):
        row, col = at
        begin = window_of(operands, var, (index(row), index(col)), extents, call)
        steps += _filled(operands, begin, extents, code, call)
    return steps


def _filled(
    operands: Operands, window: Window, extents: tuple[int, int], code: Expr, call: Call
) -> tuple[Step, ...]:
    rows, cols = extents
    if not rows or not cols:
        return ()
    fields = {"xs": code, "type": window.tile.type, "rows": rows, "cols": cols}
    return (operands.step("v_fill", {**fields, **window.operand("dst")}, call),)


RULES: dict[str, Rule] = {
    "tile.assemble": _assemble,
    "tile.concat": _concat,
    "tile.fillpad": _fillpad,
    "tile.reshape": _reshape,
    "tile.slice": _slice,
    "tile.transpose": _transpose,
}
"""The rules of these ops; reading and writing of single elements are windows of one element by then."""
