"""Instruction selection for what makes one element of each row or column, and what takes such ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ....ir.numerics.functions import Binary
from ....ir.numerics.reductions import Reduction
from ...isa.vocabulary import Axis, VectorBinary, VectorReduction
from .tiles import tile_at

if TYPE_CHECKING:
    from ....ir.expr import Call, Var
    from ...tree import Step
    from ..operands import Operands, Rule


def _reduce(
    axis: Axis, op: VectorReduction, operands: Operands, var: Var | None, call: Call
) -> tuple[Step, ...]:
    """Return the reduction of a tile; a scratch tile is not needed for it."""
    if var is None:
        return ()
    dst, src = tile_at(var, call.span), tile_at(call.args[0], call.span)
    if dst.is_empty:
        return ()
    fields = {"dst": dst.address, "op": op, "axis": axis, "type": src.type}
    return (operands.step("v_reduce", {**fields, **src.shape, **src.operand("src")}, call),)


def _expand(
    axis: Axis, op: VectorBinary, operands: Operands, var: Var | None, call: Call
) -> tuple[Step, ...]:
    """Return a function of a tile and of a column or row that stands for all others."""
    if var is None:
        return ()
    dst, a, line = (tile_at(each, call.span) for each in (var, *call.args))
    if dst.is_empty:
        return ()
    fields = {"b": line.address, "op": op, "type": a.type, "axis": axis}
    fields |= dst.operand("dst") | a.operand("a")
    return (operands.step("v_expand", {**fields, **dst.shape}, call),)


_LINES = {"row": Axis.ROW, "col": Axis.COL}
_REDUCTIONS = {
    "sum": Reduction.SUM,
    "prod": Reduction.PROD,
    "max": Reduction.MAX,
    "min": Reduction.MIN,
}
_EXPANSIONS = {
    "": Binary.SECOND,
    "_add": Binary.ADD,
    "_sub": Binary.SUB,
    "_mul": Binary.MUL,
    "_div": Binary.DIV,
    "_max": Binary.MAXIMUM,
    "_min": Binary.MINIMUM,
    "_expdif": Binary.EXPDIF,
}

RULES: dict[str, Rule] = {
    **{
        f"tile.{line}_{name}": partial(_reduce, axis, VectorReduction[each.name])
        for line, axis in _LINES.items()
        for name, each in _REDUCTIONS.items()
    },
    **{
        f"tile.{line}_expand{suffix}": partial(_expand, axis, VectorBinary[each.name])
        for line, axis in _LINES.items()
        for suffix, each in _EXPANSIONS.items()
    },
}
"""The rules of reductions and of expansions."""
