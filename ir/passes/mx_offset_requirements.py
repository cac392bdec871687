"""What BlockMxScaleTensorViews takes for granted about a function's scalar parameters.

The pass proves the alignment of a parameter from the calls in the program. A function that is launched
directly has another caller, whose scalars must keep the same promises; the launcher checks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..expr import Call, FloorDiv, MakeTuple, Var
from ..visitor import IRVisitor
from .mx_blocked_types import by_axis, layout_of
from .mx_offset_facts import OffsetFacts
from .mx_offset_proof import prove_multiple, prove_non_negative

if TYPE_CHECKING:
    from ..core import Program
    from ..expr import Expr
    from ..types import TensorLayout

#: Which argument of an op is the tensor that its offsets, argument 1, point into.
_TENSOR_AT = {"tile.load": 0, "tile.store": 2}


@dataclass(frozen=True)
class Requirement:
    """A parameter must be a multiple of `multiple` and, if `non_negative`, not below 0."""

    param: str
    multiple: int
    non_negative: bool


def offset_requirements(program: Program) -> dict[str, tuple[Requirement, ...]]:
    """Return, by function name, what the block pass proves about parameters from their calls.

    A parameter that is only handed on to the function that needs it is listed as well.

    Args:
        program: A program that the block pass is about to get, and that it accepts; or one that it
            has made, whose quotients still hold the logical offsets.
    """
    needs = _Needs(OffsetFacts.of(program))
    needs.visit_program(program)
    found: dict[str, tuple[Requirement, ...]] = {}
    for function in program.functions.values():
        listed = tuple(
            Requirement(param.name_hint, needs.multiples.get(param, 1), param in needs.non_negative)
            for param in function.params
            if param in needs.multiples or param in needs.non_negative
        )
        if listed:
            found[function.name] = listed
    return found


def _logical(offsets: tuple[Expr, ...], layout: TensorLayout) -> list[tuple[Expr, int]]:
    """Return the block and the group offset of a load or a store, each with the unit it must keep."""
    if len(offsets) == 2:
        block, group = by_axis(offsets, layout)
        return [(block, BOX_ROWS), (group, BOX_GROUPS)]
    pairs = zip(offsets[1:3], (BOX_ROWS, BOX_GROUPS), strict=False)
    return [(each.left, unit) for each, unit in pairs if isinstance(each, FloorDiv)]


class _Needs(IRVisitor):
    def __init__(self, facts: OffsetFacts) -> None:
        self._facts = facts
        self.multiples: dict[Var, int] = {}
        self.non_negative: set[Var] = set()

    def visit_call(self, op: Call) -> None:
        tensor_at = _TENSOR_AT.get(op.op.name)
        if tensor_at is not None and tensor_at < len(op.args):
            layout = layout_of(op.args[tensor_at].type)
            offsets = op.args[1]
            if layout is not None and isinstance(offsets, MakeTuple):
                for offset, unit in _logical(offsets.elements, layout):
                    for param, multiple in prove_multiple(self._facts, offset, unit) or ():
                        self.multiples[param] = max(multiple, self.multiples.get(param, 1))
                    self.non_negative.update(prove_non_negative(self._facts, offset) or ())
        self.visit_children(op)
