"""LegalizeTileCast: every cast of a tile is one that the machine has an instruction for.

A cast that it has not becomes the shortest chain of those it has, and gives the same values:

    u = pl.cast(t, pl.FP8E4M3FN)      t in FP4
    ->  u_bfloat16 = pl.cast(t, pl.BF16)
        u_float32 = pl.cast(u_bfloat16, pl.FP32)
        u = pl.cast(u_float32, pl.FP8E4M3FN)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..core import AssignStmt
from ..dtypes import DType
from ..errors import IRValueError
from ..expr import Call, Op, Var, replace
from ..ops import ROWS, create_op_call
from ..properties import IRProperty
from ..types import TileType
from .base import FunctionPass, current_target
from .cast_chains import any_chain, cast_chain, lossy_step
from .inserting import InsertingMutator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..cast_mode import CastMode
    from ..core import Function
    from ..dtypes import SimpleDType
    from ..target import Target
    from .cast_chains import Step

_CAST = "tile.cast"


@dataclass(frozen=True)
class LegalizeTileCast(FunctionPass):
    """Replace casts that the machine has no instruction for by chains of those it has."""

    name = "LegalizeTileCast"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )

    def transform_function(self, function: Function) -> Function:
        """Legalize the casts of one function.

        Raises:
            IRValueError: For a cast that no chain of the machine's conversions makes without loss.
        """
        return _Legalizer(current_target()).rewrite(function)


def native_casts(target: Target) -> Mapping[SimpleDType, Sequence[SimpleDType]]:
    """Return what a machine converts each dtype to in one instruction, in the order of its list."""
    made: dict[SimpleDType, list[SimpleDType]] = {}
    for one, other in target.vector_casts:
        made.setdefault(_named(one), []).append(_named(other))
    return made


def _named(name: str) -> SimpleDType:
    return cast("SimpleDType", DType.from_name(name))


class _Legalizer(InsertingMutator):
    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._casts = native_casts(target)

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        call = op.value
        if not isinstance(call, Call) or call.op != Op(_CAST):
            return op
        source, target = _ends(call)
        if target in self._casts.get(source, ()):
            return op
        mode: CastMode = ROWS[_CAST].attribute(call.kwargs, "mode")
        chain = cast_chain(self._casts, source, target, mode)
        if chain is None:
            raise self._refusal(source, target, call)
        value = call.args[0]
        for step in chain[:-1]:
            made = _cast(value, step, call)
            name = f"{op.var.name_hint}_{step.target.name.lower()}"
            var = Var(name, made.type, op.var.span)
            self.insert(AssignStmt(var, made, op.span))
            value = var
        return replace(op, value=replace(_cast(value, chain[-1], call), attrs=call.attrs))

    def _refusal(self, source: SimpleDType, target: SimpleDType, call: Call) -> IRValueError:
        machine = self._target.name
        message = f"A tile of {source.name} must be cast to a dtype that {machine} can make of it"
        known = ", ".join(d.name for d in self._casts.get(source, ())) or "no dtype"
        chain = any_chain(self._casts, source, target)
        if chain is None:
            text = f"{message}, not to {target.name}: no chain of its conversions leads there"
            return IRValueError(text, call.span, hint=f"{source.name} converts to {known}")
        shown, step = " to ".join(d.name for d in chain), lossy_step(chain)
        assert step is not None, "a chain that loses nothing would have been taken"
        text = (
            f"{message} without loss, not to {target.name}: the shortest chain is {shown}, and "
            f"{step.name} does not hold what {target.name} does"
        )
        return IRValueError(
            text, call.span, hint="if the loss is meant, write these casts one by one"
        )


def _ends(call: Call) -> tuple[SimpleDType, SimpleDType]:
    tile = call.args[0].type
    assert isinstance(tile, TileType), tile
    return cast("SimpleDType", tile.dtype), call.kwargs["target_type"]


def _cast(value: object, step: Step, call: Call) -> Call:
    kwargs = {"target_type": step.target, "mode": step.mode}
    return create_op_call(_CAST, [value], kwargs, call.span)
