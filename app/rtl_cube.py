"""Who multiplies: the compiled matmul, or the cube's Verilog, whose cycles are then held to account.

The cube in hardware has a latency L of its own where the machine has a head. What both have in
common are the steps: for every mad, RTL cycles - L = machine cycles - head = steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..ir.dtypes.boxes import BOX_BYTES
from ..ir.errors import InputError
from ..ir.given import describe_given
from ..ir.numerics.elements import Summation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..ir.target import Target
    from ..rtl.cosim.cube import CubeMad, RtlCube
    from ..sim.report import SimResult

_MAD = "mad_mx"


class Multiplier(Enum):
    """Who multiplies: what `cube` and `--cube` may say."""

    NUMBA = "numba"
    RTL = "rtl"

    @classmethod
    def of(cls, name: object) -> Multiplier:
        """Return the choice called `name`.

        Raises:
            InputError: If there is none.
        """
        for choice in cls:
            if name == choice.value or name is choice:
                return choice
        message = f"cube must be 'numba' or 'rtl', not {describe_given(name)}"
        raise InputError(message)


def engine_of(
    multiplier: Multiplier, *, target: Target, summation: Summation, functional: bool
) -> RtlCube | None:
    """Return the engine that a run hands to the machine; None for the machine's own.

    The first cube in hardware of a version is compiled, which takes some 40 seconds.

    Args:
        multiplier: Who multiplies.
        target: The machine; the cube reads scales by its `scale_beat_bytes`.
        summation: The order of summation.
        functional: Whether the run computes outputs.

    Raises:
        InputError: If the cube in hardware cannot do what the run asks for.
        IRValueError: If it cannot have the machine's beat.
        MissingSimulatorError: If Verilator is not installed.
    """
    match multiplier:
        case Multiplier.NUMBA:
            return None
        case Multiplier.RTL:
            pass
    if not functional:
        message = (
            "cube='rtl' must go with a run that computes outputs, not with one for timing only"
        )
        raise InputError(message, hint="without it, cycles are the same: the machine counts them")
    if summation is not Summation.GROUP:
        message = (
            f"cube='rtl' must go with sum='group', not {summation.value!r}: the hardware adds up a "
            "group of 32 exactly and rounds it once"
        )
        raise InputError(message, hint="cube='numba' can sum in either order")
    from ..rtl.cosim.cube import RtlCube

    return RtlCube(beat_bytes=target.scale_beat_bytes)


class OtherSteps(NamedTuple):
    """A mad that took other steps in hardware than on the machine; cycles less L, less the head."""

    number: int
    mad: CubeMad
    rtl: int
    machine: int

    def __str__(self) -> str:
        mad = self.mad
        return (
            f"mad {self.number}, m = {mad.m}, k = {mad.k}, n = {mad.n}: {self.rtl:,} steps in the "
            f"RTL, {self.machine:,} on the machine, {mad.steps:,} by its shape"
        )


@dataclass(frozen=True, kw_only=True)
class CubeAccount:
    """The cycles of the mads of a run on the cube in hardware, against those of the machine.

    Attributes:
        mads: How many mads there were.
        cycles: All their cycles in hardware.
        latency_cycles: L, what a mad takes there beside its steps.
        head_cycles: What it takes on the machine beside its steps.
        others: Mads whose steps differ, at most the first of them kept.
        differing: How many there are.
        inapplicable: Why cycles cannot be compared on this machine; None if they were.
        plain: How many mads without scales the machine model did, for the hardware has no such.
    """

    mads: int
    cycles: int
    latency_cycles: int
    head_cycles: int
    others: tuple[OtherSteps, ...] = ()
    differing: int = 0
    inapplicable: str | None = None
    plain: int = 0

    @property
    def ok(self) -> bool:
        """Whether no mad took other steps than on the machine."""
        return not self.differing

    @property
    def steps(self) -> int:
        """The cycles without L."""
        return self.cycles - self.mads * self.latency_cycles

    def as_json(self) -> dict[str, Any]:
        """Return the account as plain values; `equal` is null where cycles cannot be compared."""
        return {
            "mads": self.mads,
            "rtl_cycles": self.cycles,
            "latency_cycles": self.latency_cycles,
            "head_cycles": self.head_cycles,
            "equal": None if self.inapplicable is not None else self.ok,
            "differing": self.differing,
            "first_difference": str(self.others[0]) if self.others else None,
            "inapplicable": self.inapplicable,
            "plain_mads": self.plain,
        }

    def lines(self) -> Iterator[str]:
        """Yield the account as text for a terminal of 80 columns."""
        mads = _counted(self.mads)
        if self.inapplicable is not None:
            yield f"cube     {mads} on the Verilated RTL, {self.cycles:,} cycles, not compared:"
            yield f"         {self.inapplicable}"
        elif self.ok:
            each = "as many steps as on the machine"
            yield f"cube     {mads} on the Verilated RTL, {each}: {self.steps:,}"
            yield (
                f"         (and {self.latency_cycles} cycles a mad beside them, where the machine "
                f"has a head of {self.head_cycles})"
            )
        else:
            yield f"cube     DIFFERENT steps in {self.differing:,} of {mads} on the Verilated RTL"
            yield from (f"         {other}" for other in self.others)
        if self.plain:
            yield f"         ({_counted(self.plain)} without scales on the machine model, not the RTL)"


def _counted(mads: int) -> str:
    return "1 mad" if mads == 1 else f"{mads:,} mads"


def account_of(engine: RtlCube, simulation: SimResult, target: Target) -> CubeAccount:
    """Hold the mads that a cube in hardware has done against what the machine took for each."""
    mads, latency, head = engine.mads, engine.latency_cycles, target.mad_head_cycles
    reason = _inapplicable(target, mads)
    others: list[OtherSteps] = []
    if reason is None:
        machine = _machine_cycles(simulation, target, mads)
        assert len(machine) == len(mads), "the machine and the hardware do the same mads"
        for index, (mad, cycles) in enumerate(zip(mads, machine, strict=True)):
            other = OtherSteps(index, mad, mad.cycles - latency, cycles - head)
            if not other.rtl == other.machine == mad.steps:
                others.append(other)
    return CubeAccount(
        mads=len(mads),
        cycles=sum(mad.cycles for mad in mads),
        latency_cycles=latency,
        head_cycles=head,
        others=tuple(others[:1]),
        differing=len(others),
        inapplicable=reason,
        plain=_plain_mads(simulation),
    )


def _plain_mads(simulation: SimResult) -> int:
    """Return how many mads without scales ran."""
    from ..sim.datapaths.actions import Action

    plain = (Action.MAD, Action.MAD_IF)
    return sum(
        int(np.isin(part.decoded.action[part.stream.static], plain).sum())
        for run in simulation.tasks
        for part in run.cores
    )


def _machine_cycles(simulation: SimResult, target: Target, mads: list[CubeMad]) -> list[int]:
    """Return what each mad took on the machine: by its timeline, or by its rule without times."""
    from ..sim import costs

    if simulation.cycles:
        timeline = (event for event in simulation.timeline if event.name == _MAD)
        return [event.end - event.start for event in timeline]
    return [costs.mad_cycles(target, m=mad.m, k=mad.k, n=mad.n, bits=mad.bits) for mad in mads]


def _inapplicable(target: Target, mads: list[CubeMad]) -> str | None:
    """Say why the cycles of a machine and of the hardware are not of one kind, if so."""
    from ..rtl.cube.shapes import LINE_BYTES

    if not mads:
        return "no matmul with scales ran, and others are the machine model's"
    for bits in sorted({mad.bits for mad in mads}):
        there, here = target.mad_k_elements(bits), LINE_BYTES * 8 // bits
        if there != here:
            return f"mad_{bits}bit_k_elements is {there} on the machine and {here} in the RTL"
    if target.scale_beat_bytes < BOX_BYTES:
        return f"a beat of {target.scale_beat_bytes} bytes (scale_beat_bytes) starves the cube"
    return None
