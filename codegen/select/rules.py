"""Instruction selection, op by op: a rule for each op that a kernel may use.

The rules of the cube core stand in :mod:`.select_cube` and :mod:`.select_moves`, those of the vector core
in :mod:`.vector`. An op that both have, such as a load, goes by where its tile lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...ir.errors import IRValueError
from ...ir.expr import Op
from ..isa.vocabulary import Space
from .cube import RULES as CUBE_RULES
from .cube import select_acc_move, select_acc_store, select_l1_load
from .moves import select_extract, select_move
from .places import place_of
from .vector import RULES as VECTOR_RULES
from .vector.crossings import select_crossing
from .vector.transfers import select_load, select_store

if TYPE_CHECKING:
    from ...ir.expr import Call, Var
    from ..tree import Step
    from .operands import Operands, Rule


def select_call(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the instructions of a call, perhaps none.

    Args:
        operands: The kernel's tensors, scales and views; views are added.
        var: What the result is assigned to.
        call: The call.

    Raises:
        IRValueError: For an op that no core has an instruction for.
        IRTypeError: For a tile or tensor that no instruction takes.
    """
    rule = RULES.get(call.op.name) if isinstance(call.op, Op) else None
    if rule is None:
        kind = "use" if isinstance(call.op, Op) else "call"
        message = f"A kernel that is compiled must not {kind} {call.op.name}"
        raise IRValueError(message, call.span, hint=f"it can use {', '.join(sorted(RULES))}")
    return rule(operands, var, call)


def _load(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    place = place_of(var, call.span)
    if place.space is Space.UB:
        return select_load(operands, place, call)
    return select_l1_load(operands, var, place, call)


def _move(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is None:
        return ()
    source, target = (place_of(each, call.span) for each in (call.args[0], var))
    if (source.space, target.space) == (Space.L0C, Space.L1):
        return select_acc_move(operands, var, call)
    if Space.UB not in (source.space, target.space):
        return select_move(operands, var, call)
    return select_crossing(operands, var, call)


def _nothing(_operands: Operands, _var: Var | None, _call: Call) -> tuple[Step, ...]:
    """No instruction: where a scale tile lies follows from its data tile."""
    return ()


def _store(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    source = place_of(call.args[0], call.span)
    if var is not None:
        operands.tensors[var] = operands.tensors[cast("Var", call.args[2])]
    if source.space is Space.UB:
        return select_store(operands, source, call)
    return select_acc_store(operands, source, call)


def _view(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    if var is not None:
        operands.tensors[var] = operands.tensors[cast("Var", call.args[0])]
    return ()


def _create(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Nothing for a tile beside the cube, which has to be written before it is read."""
    if var is None or place_of(var, call.span).space is not Space.UB:
        return ()
    return VECTOR_RULES["tile.create"](operands, var, call)


RULES: dict[str, Rule] = {
    "tile.load": _load,
    "tile.move": _move,
    "tile.extract": select_extract,
    "tile.store": _store,
    "tile.tget_scale_addr": _nothing,
    "tensor.view": _view,
    **CUBE_RULES,
    **VECTOR_RULES,
    "tile.create": _create,
}
"""The rule of each op that has one."""
