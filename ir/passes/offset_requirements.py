"""What passes that prove offsets take for granted about a function's scalar parameters.

A pass proves a parameter from the calls in the program. A function that is launched directly has
another caller, whose scalars must keep the same promises; the launcher checks them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..visitor import IRVisitor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core import Program
    from ..expr import Var


@dataclass(frozen=True)
class Requirement:
    """A parameter must be a multiple of `multiple` and, if `non_negative`, not below 0."""

    param: str
    multiple: int
    non_negative: bool


Requirements = dict[str, tuple[Requirement, ...]]


class RequirementVisitor(IRVisitor):
    """Collects what the proofs of a program's offsets rest on; a subclass finds the offsets."""

    def __init__(self) -> None:
        self._multiples: dict[Var, int] = {}
        self._non_negative: set[Var] = set()

    def require(self, multiples: Iterable[tuple[Var, int]], non_negative: Iterable[Var]) -> None:
        """Note parameters that must be multiples, and those that must not be below 0."""
        for param, multiple in multiples:
            self._multiples[param] = max(multiple, self._multiples.get(param, 1))
        self._non_negative.update(non_negative)

    def of(self, program: Program) -> Requirements:
        """Return what a program needs, by function name.

        A parameter that is only handed on to the function that needs it is listed as well.
        """
        self.visit_program(program)
        found: Requirements = {}
        for function in program.functions.values():
            listed = tuple(
                Requirement(
                    param.name_hint, self._multiples.get(param, 1), param in self._non_negative
                )
                for param in function.params
                if param in self._multiples or param in self._non_negative
            )
            if listed:
                found[function.name] = listed
        return found


def joined(one: Requirements, other: Requirements) -> Requirements:
    """Return what either asks for."""
    names = dict.fromkeys((*one, *other))
    return {name: (*one.get(name, ()), *other.get(name, ())) for name in names}
