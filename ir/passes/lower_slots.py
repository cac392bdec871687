"""LowerSlots: a loop whose tiles go round the slots of a buffer becomes a pipelined one.

    for i in range(n):                         for i in pipeline(n, stage=2):
        x: Tile[…, buf[i % 2]] = load(…)   ->      x = load(…)

A pipelined loop has a copy of its body for each stage, each with tiles of its own; that is what the slots
ask for. Memory reuse keeps them apart from all other tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import (
    ForKind,
    ForStmt,
    Function,
    Stmt,
)
from ..errors import IRValueError
from ..expr import BinaryExpr, Call, ConstInt, Expr, Var, frozen_mapping, replace
from ..interp.scalars import evaluate_binary
from ..slots import SLOT, Slot, slot_of
from ..verification.structure import STAGES
from ..verification.walk import all_calls, calls, jumps, own_exprs, statements, uses
from ..visitor import IRMutator
from .base import FunctionPass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..errors import Span

_WAY_OUT = "buf[i % 2] in a loop over i, or pl.pipeline(…, stage=2) without slots"


@dataclass(frozen=True)
class LowerSlots(FunctionPass):
    """Turn loops over slots into pipelined ones."""

    name = "LowerSlots"

    def transform_function(self, function: Function) -> Function:
        """Turn the loops of one function.

        Raises:
            IRValueError: For a slot that is no number of its buffer, or that does not follow from the
                trips of one loop.
        """
        if not any(isinstance(c, Call) and SLOT in c.attrs for c in all_calls(function)):
            return function
        done = _Lowering().visit_function(function)
        for stmt in statements(done.body):
            for call, slot in _slots(own_exprs(stmt)):
                _check_number(slot, call.span)
        return done


class _Lowering(IRMutator):
    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        done = self.visit_children(op)
        turning = [
            (call, slot)
            for stmt in statements(done.body)
            for call, slot in _slots(own_exprs(stmt))
            if slot.index is not None and done.loop_var in uses([slot.index])
        ]
        if not turning:
            return done
        counts = {slot.count for _, slot in turning}
        for call, slot in turning:
            _check_turns(done, slot, call.span)
            if len(counts) > 1:
                listed = " and ".join(str(count) for count in sorted(counts))
                message = f"The slots of one loop must be as many for each buffer, not {listed}"
                raise IRValueError(message, call.span)
        (count,) = counts
        stages = done.attrs.get(STAGES, count)
        if done.kind not in (ForKind.Sequential, ForKind.Pipeline) or stages != count:
            found = f"one of {stages} stages" if stages != count else f"of kind {done.kind.name}"
            message = f"A loop over {count} slots must be a pl.range or have that many stages, not be {found}"
            raise IRValueError(message, op.span)
        _refuse_jumps(done.body)
        body = _Settled(done.loop_var).visit_stmt(done.body)
        attrs = frozen_mapping({**done.attrs, STAGES: count})
        return replace(done, body=body, kind=ForKind.Pipeline, attrs=attrs)


class _Settled(IRMutator):
    """Leaves it to the copy of a body which slot its tiles lie in."""

    def __init__(self, loop_var: Var) -> None:
        super().__init__()
        self._loop_var = loop_var

    def visit_call(self, op: Call) -> Call:
        done = self.visit_children(op)
        slot = slot_of(done)
        if slot is None or slot.index is None or self._loop_var not in uses([slot.index]):
            return done
        attrs = {**done.attrs, SLOT: [slot.name, slot.count, None]}
        return replace(done, attrs=frozen_mapping(attrs))


def _slots(exprs: tuple[Expr, ...]) -> Iterator[tuple[Call, Slot]]:
    for call in calls(exprs):
        slot = slot_of(call) if isinstance(call, Call) else None
        if isinstance(call, Call) and slot is not None:
            yield call, slot


def _check_number(slot: Slot, span: Span) -> None:
    """Refuse a slot that is neither settled nor a number of its buffer."""
    if slot.index is None:
        return
    value = value_of(slot.index, {})
    if value is None:
        names = ", ".join(var.name_hint for var in dict.fromkeys(uses([slot.index])))
        message = (
            f"The slot of {slot.name!r} must be a number, or follow from the variable of one pl.range "
            f"around it, not from {names}"
        )
        raise IRValueError(message, span, hint=_WAY_OUT)
    if not 0 <= value < slot.count:
        message = f"The slot of {slot.name!r} must be in 0..{slot.count - 1}, not {value}"
        raise IRValueError(message, span)


def _check_turns(loop: ForStmt, slot: Slot, span: Span) -> None:
    """Refuse slots that do not come one after another, trip by trip."""
    assert slot.index is not None
    start, step = loop.start, loop.step
    if isinstance(step, ConstInt):
        first = start.value if isinstance(start, ConstInt) else 0
        trips = [first + n * step.value for n in range(2 * slot.count)]
        found = [value_of(slot.index, {loop.loop_var: trip}) for trip in trips]
        turn = found[: slot.count]
        if turn == found[slot.count :] and sorted(n for n in turn if n is not None) == list(
            range(slot.count)
        ):
            return
    message = (
        f"The slots of {slot.name!r} must come one after another from trip to trip, each of the "
        f"{slot.count} once in {slot.count} trips"
    )
    raise IRValueError(message, span, hint=_WAY_OUT)


def value_of(expr: Expr, known: Mapping[Var, int]) -> int | None:
    """Return the value of an integer expression of which some variables are known, or None."""
    match expr:
        case ConstInt(value):
            return value
        case Var() if expr in known:
            return known[expr]
        case BinaryExpr():
            left, right = value_of(expr.left, known), value_of(expr.right, known)
            if left is None or right is None:
                return None
            found = evaluate_binary(expr, left, right)
            return found if isinstance(found, int) else None
        case _:
            return None


def _refuse_jumps(body: Stmt) -> None:
    for jump in jumps(body):
        message = "A loop over slots must not be left by break or continue"
        raise IRValueError(message, jump.span)
