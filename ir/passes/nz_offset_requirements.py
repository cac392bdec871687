"""What BlockNzTensorViews takes for granted about a function's scalar parameters.

The pass proves a parameter from the calls in the program; a function that is launched directly has
another caller, and the launcher holds its scalars to the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..expr import Call, ConstInt, MakeTuple, Var
from ..numerics.nz import NZ_ROWS, nz_columns
from ..types import TensorLayout, TensorType
from ..visitor import IRVisitor
from .mx_offset_requirements import Requirement
from .nz_offset_proof import NzFacts, prove_boxes, prove_within

if TYPE_CHECKING:
    from ..core import Program

Requirements = dict[str, tuple[Requirement, ...]]


def nz_offset_requirements(program: Program) -> Requirements:
    """Return, by function name, what the NZ pass proves about parameters from their calls.

    Args:
        program: A program that the pass is about to get, and that it accepts.
    """
    needs = _Needs(NzFacts(program))
    needs.visit_program(program)
    found: Requirements = {}
    for function in program.functions.values():
        listed = tuple(
            Requirement(param.name_hint, needs.multiples.get(param, 1), param in needs.non_negative)
            for param in function.params
            if param in needs.multiples or param in needs.non_negative
        )
        if listed:
            found[function.name] = listed
    return found


def joined(one: Requirements, other: Requirements) -> Requirements:
    """Return what either asks for."""
    names = dict.fromkeys((*one, *other))
    return {name: (*one.get(name, ()), *other.get(name, ())) for name in names}


class _Needs(IRVisitor):
    def __init__(self, facts: NzFacts) -> None:
        self._facts = facts
        self.multiples: dict[Var, int] = {}
        self.non_negative: set[Var] = set()

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
            for param, multiple in (prove_boxes(self._facts, offset, unit) or {}).items():
                self.multiples[param] = max(multiple, self.multiples.get(param, 1))
            self.non_negative.update(prove_within(self._facts, offset) or ())
