"""What BlockNzTensorViews takes for granted about a function's scalar parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..expr import Call, ConstInt, MakeTuple
from ..numerics.nz import NZ_ROWS, nz_columns
from ..types import TensorLayout, TensorType
from .nz_offset_proof import NzFacts, prove_boxes, prove_within
from .offset_requirements import RequirementVisitor

if TYPE_CHECKING:
    from ..core import Program
    from .offset_requirements import Requirements


def nz_offset_requirements(program: Program) -> Requirements:
    """Return, by function name, what the NZ pass proves about parameters from their calls.

    Args:
        program: A program that the pass is about to get, and that it accepts.
    """
    return _Needs(NzFacts(program)).of(program)


class _Needs(RequirementVisitor):
    def __init__(self, facts: NzFacts) -> None:
        super().__init__()
        self._facts = facts

    def visit_call(self, op: Call) -> None:
        if op.op.name == "tile.load" and len(op.args) > 1:
            tensor, offsets = op.args[0].type, op.args[1]
            match tensor, offsets:
                case TensorType(layout=TensorLayout.NZ), MakeTuple():
                    self._note(tensor, offsets)
                case _:
                    pass
        self.visit_children(op)

    def _note(self, tensor: TensorType, offsets: MakeTuple) -> None:
        matrix = (NZ_ROWS, nz_columns(tensor.dtype.bits))
        units = (*(1,) * (len(offsets.elements) - len(matrix)), *matrix)
        for offset, unit in zip(offsets.elements, units, strict=True):
            if isinstance(offset, ConstInt):
                continue
            self.require(
                (prove_boxes(self._facts, offset, unit) or {}).items(),
                prove_within(self._facts, offset) or (),
            )
