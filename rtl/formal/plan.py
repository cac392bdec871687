"""The proofs, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ...codegen.isa.scale_unit import BEATS_BYTES
from ..dot.add import AddFp32
from ..dot.decode import ElementDecode
from ..dot.formats import ELEMENTS
from ..dot.rounding import RoundFp32
from ..dot.shapes import PRODUCT_EXPONENT
from ..dot.sums import MAGNITUDE_BITS, PLAIN_MAGNITUDE_BITS, SUM_EXPONENT
from ..scale_decode import ScaleDecode
from ..scale_pair import ScalePair
from .check import Method, Verdict, check_circuit
from .floats import check_adder, check_rounder
from .specs import CombineSpec, DecodeSpec, LaneSpec, StreamSpec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["INDUCTION_CYCLES", "LANES", "PROOFS", "ROUNDERS", "Proof", "lane_cycles"]

INDUCTION_CYCLES: Final = 4

LANES: Final = (("a", 5, 0), ("b", 9, 1), ("a", 15, 1), ("b", 0, 0))
"""Side, row and group of the chosen lanes."""

ROUNDERS: Final = (
    (PLAIN_MAGNITUDE_BITS, PRODUCT_EXPONENT.width),
    (MAGNITUDE_BITS, SUM_EXPONENT.width),
)
"""Bits of magnitude and of exponent of the rounders in a core."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof that the plan asks for.

    Attributes:
        name: Its name.
        claim: What it shows.
        inputs: For which inputs.
        method: By which means.
        quick: Whether it takes a few seconds only.
        run: Runs it.
    """

    name: str
    claim: str
    inputs: str
    method: str
    quick: bool
    run: Callable[[], Verdict]


def lane_cycles(beat_bytes: int) -> int:
    """Return the depth of a lane's proof: enough for the slots to fill and go round."""
    return {32: 9, 16: 10, 8: 12}[beat_bytes]


def _combine(solver: str) -> Verdict:
    spec = CombineSpec(ScalePair())
    return check_circuit(spec, method=Method.BOUNDED, depth=1, solver=solver)


def _decode() -> list[Proof]:
    def run(kind: object) -> Verdict:
        element = next(each for each in ELEMENTS.values() if each.type is kind)
        return check_circuit(
            DecodeSpec(ElementDecode(element), element), method=Method.BOUNDED, depth=1
        )

    return [
        Proof(
            f"element_decode_{element.row.name.lower()}",
            "sign, value and kind of a code are those of its fields",
            f"all {1 << element.bits} codes",
            "bounded, 1 cycle, yices",
            quick=True,
            run=partial(run, kind),
        )
        for kind, element in ELEMENTS.items()
    ]


def _streams(beat_bytes: int) -> Verdict:
    spec = StreamSpec(ScaleDecode(beat_bytes=beat_bytes))
    return check_circuit(spec, method=Method.INDUCTION, depth=INDUCTION_CYCLES)


def _lane(beat_bytes: int, side: str, row: int, group: int) -> Verdict:
    unit = ScaleDecode(beat_bytes=beat_bytes)
    spec = LaneSpec(unit, beat_bytes=beat_bytes, side=side, row=row, group=group)
    return check_circuit(spec, method=Method.BOUNDED, depth=lane_cycles(beat_bytes))


def _round(magnitude_bits: int, exponent_bits: int) -> Verdict:
    unit = RoundFp32(magnitude_bits=magnitude_bits, exponent_bits=exponent_bits)
    return check_rounder(unit, magnitude_bits=magnitude_bits, exponent_bits=exponent_bits)


PROOFS: Final = (
    *(
        Proof(
            f"scale_combine_{solver}",
            "the combined exponent is the exact sum, NaN if either code is",
            "all 65,536 pairs",
            f"bounded, 1 cycle, {solver}",
            quick=True,
            run=partial(_combine, solver),
        )
        for solver in ("yices", "z3")
    ),
    *_decode(),
    *(
        Proof(
            f"streams_beat_{beat}",
            "words stay until taken, unchanged; a reset empties",
            "all inputs in all cycles, resets included",
            f"induction over {INDUCTION_CYCLES} cycles, yices",
            quick=beat == max(BEATS_BYTES),
            run=partial(_streams, beat),
        )
        for beat in BEATS_BYTES
    ),
    *(
        Proof(
            f"lane_beat_{beat}_{side}_{row}_{group}",
            "a lane's codes leave decoded, in order, none lost or twice; marks of records are right",
            f"all inputs of the first {lane_cycles(beat)} cycles without reset",
            f"bounded, {lane_cycles(beat)} cycles, yices",
            quick=False,
            run=partial(_lane, beat, side, row, group),
        )
        for beat in BEATS_BYTES
        for side, row, group in LANES
    ),
    Proof(
        "add_fp32",
        "the sum is that of IEEE 754, nearest even",
        "all 2^64 pairs",
        "SMT-LIB floating point, z3",
        quick=False,
        run=lambda: check_adder(AddFp32()),
    ),
    *(
        Proof(
            f"round_fp32_{magnitude}",
            "the exact number is rounded once, nearest even",
            f"all signs, {magnitude}-bit magnitudes and {exponent}-bit exponents",
            "SMT-LIB floating point, z3",
            quick=False,
            run=partial(_round, magnitude, exponent),
        )
        for magnitude, exponent in ROUNDERS
    ),
)
"""All of them, the quick ones first of their kind."""
