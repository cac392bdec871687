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
    """Verify `properties`; the structural ones when none are named.

    With `strict_valid_k` a matmul's valid K must reach into every group of its physical K.
    """

    properties: frozenset[IRProperty] = STRUCTURAL
    strict_valid_k: bool = False

    name = "RunVerifier"

    def transform(self, program: Program) -> Program:
        """Return `program` as it is.

        Raises:
            VerificationError: With a report of every rule that it breaks.
        """
        from ..verifier import verify_or_throw

        verify_or_throw(program, self.properties, strict_valid_k=self.strict_valid_k)
        return program


def run_verifier(
    properties: IRPropertySet | Iterable[IRProperty] | None = None, *, strict_valid_k: bool = False
) -> RunVerifier:
    """Return a pass that verifies a program and hands it back.

    Args:
        properties: What the program is to have; what holds of every program by default.
        strict_valid_k: As for :func:`scalebox.ir.verifier.verify`.
    """
    wanted = STRUCTURAL if properties is None else frozenset(properties)
    return RunVerifier(wanted, strict_valid_k)
