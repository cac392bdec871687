"""What BlockMxScaleTensorViews takes for granted about a function's scalar parameters.

The pass proves the alignment of a parameter from the calls in the program. A function that is launched
directly has another caller, whose scalars must keep the same promises; the launcher checks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..expr import Call, MakeTuple, Var
from ..types import TensorLayout
from ..visitor import IRVisitor
from .block_mx_scale_tensor_views import layout_of
from .mx_offset_proof import OffsetFacts, params_of_multiple, params_of_sign

if TYPE_CHECKING:
    from ..core import Function, Program


@dataclass(frozen=True)
class Requirement:
    """A parameter must be a multiple of `multiple` and, if `non_negative`, not below 0."""

    param: str
    multiple: int
    non_negative: bool


def offset_requirements(program: Program) -> dict[str, tuple[Requirement, ...]]:
    """Return, by function name, what the block pass will prove about parameters from their calls.

    Args:
        program: A program that the block pass is about to get, and that it accepts.
    """
    facts = OffsetFacts.of(program)
    found: dict[str, tuple[Requirement, ...]] = {}
    for function in program.functions.values():
        needs = _needs(function, facts)
        if needs:
            found[function.name] = needs
    return found


def _needs(function: Function, facts: OffsetFacts) -> tuple[Requirement, ...]:
    collector = _Collector(facts)
    collector.visit_function(function)
    return tuple(
        Requirement(
            param.name_hint, collector.multiples.get(param, 1), param in collector.non_negative
        )
        for param in function.params
        if param in collector.multiples or param in collector.non_negative
    )


class _Collector(IRVisitor):
    def __init__(self, facts: OffsetFacts) -> None:
        self._facts = facts
        self.multiples: dict[Var, int] = {}
        self.non_negative: set[Var] = set()

    def visit_call(self, op: Call) -> None:
        source = op.args[0] if op.args and op.op.name == "tile.load" else None
        layout = layout_of(source.type) if source is not None else None
        offsets = op.args[1] if layout is not None else None
        if isinstance(offsets, MakeTuple):
            units = (BOX_ROWS, BOX_GROUPS)
            if layout is TensorLayout.MX_B_NN:
                units = units[::-1]
            for offset, unit in zip(offsets.elements, units, strict=False):
                for param, multiple in params_of_multiple(self._facts, offset, unit):
                    self.multiples[param] = max(multiple, self.multiples.get(param, 1))
                self.non_negative.update(params_of_sign(self._facts, offset))
        self.visit_children(op)
