"""The verifier as a pass: it changes nothing and refuses a program that breaks a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..properties import STRUCTURAL, IRProperty, IRPropertySet
from .base import Pass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core import Program


@dataclass(frozen=True)
class RunVerifier(Pass):
    """Verify `properties`; the structural ones when none are named."""

    properties: frozenset[IRProperty] = STRUCTURAL

    name = "RunVerifier"

    def transform(self, program: Program) -> Program:
        """Return `program` as it is.

        Raises:
            VerificationError: With a report of every rule that it breaks.
        """
        from ..verifier import verify_or_throw

        verify_or_throw(program, self.properties)
        return program


def run_verifier(properties: IRPropertySet | Iterable[IRProperty] | None = None) -> RunVerifier:
    """Return a pass that verifies `properties`, or the structural ones."""
    return RunVerifier() if properties is None else RunVerifier(frozenset(properties))
