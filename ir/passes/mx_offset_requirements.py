"""What BlockMxScaleTensorViews takes for granted about a function's scalar parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..expr import Call, FloorDiv, MakeTuple
from .mx_blocked_types import by_axis, layout_of
from .mx_offset_facts import OffsetFacts
from .mx_offset_proof import prove_multiple, prove_non_negative
from .offset_requirements import RequirementVisitor

if TYPE_CHECKING:
    from ..core import Program
    from ..expr import Expr
    from ..types import TensorLayout
    from .offset_requirements import Requirements

#: Which argument of an op is the tensor that its offsets, argument 1, point into.
_TENSOR_AT = {"tile.load": 0, "tile.store": 2}


def offset_requirements(program: Program) -> Requirements:
    """Return, by function name, what the block pass proves about parameters from their calls.

    A parameter that is only handed on to the function that needs it is listed as well.

    Args:
        program: A program that the block pass is about to get, and that it accepts; or one that it
            has made, whose quotients still hold the logical offsets.
    """
    return _Needs(OffsetFacts.of(program)).of(program)


def _logical(offsets: tuple[Expr, ...], layout: TensorLayout) -> list[tuple[Expr, int]]:
    """Return the block and the group offset of a load or a store, each with the unit it must keep."""
    if len(offsets) == 2:
        block, group = by_axis(offsets, layout)
        return [(block, BOX_ROWS), (group, BOX_GROUPS)]
    pairs = zip(offsets[1:3], (BOX_ROWS, BOX_GROUPS), strict=False)
    return [(each.left, unit) for each, unit in pairs if isinstance(each, FloorDiv)]


class _Needs(RequirementVisitor):
    def __init__(self, facts: OffsetFacts) -> None:
        super().__init__()
        self._facts = facts

    def visit_call(self, op: Call) -> None:
        tensor_at = _TENSOR_AT.get(op.op.name)
        if tensor_at is not None and tensor_at < len(op.args):
            layout = layout_of(op.args[tensor_at].type)
            offsets = op.args[1]
            if layout is not None and isinstance(offsets, MakeTuple):
                for offset, unit in _logical(offsets.elements, layout):
                    self.require(
                        prove_multiple(self._facts, offset, unit) or (),
                        prove_non_negative(self._facts, offset) or (),
                    )
        self.visit_children(op)
