"""Proofs about the circuits: for all inputs, or for all inputs up to a stated cycle.

`specs` says what must hold, as circuits around a unit; `floats` says what an adder and a rounder must
compute, in the theory of floating point; `plan` lists the proofs; `check` runs one and reads the
answer. `python -m scalebox.rtl.formal` runs them all and prints a summary.
"""

from __future__ import annotations

from .check import Method, MissingProverError, Verdict, check_circuit
from .floats import check_adder, check_rounder
from .plan import PROOFS, Proof

__all__ = [
    "PROOFS",
    "Method",
    "MissingProverError",
    "Proof",
    "Verdict",
    "check_adder",
    "check_circuit",
    "check_rounder",
]
