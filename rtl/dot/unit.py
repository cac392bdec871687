"""The dot unit on its own: a core behind streams."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from .core import LATENCY_CYCLES, TERM_CYCLES, DotCore, delayed
from .decode import LineDecode
from .shapes import FP32, OPERAND, STEP

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["UNIT_LATENCY_CYCLES", "DotUnit"]

_CYCLES_AROUND_THE_CORE: Final = 2
"""One for the decoded operands, one for the queue of sums."""

UNIT_LATENCY_CYCLES: Final = LATENCY_CYCLES + _CYCLES_AROUND_THE_CORE
"""Cycles from the one that takes a last step to the first that offers its sum."""

_SUMS: Final = UNIT_LATENCY_CYCLES + 1
"""Sums on their way or waiting: as many as begin until the first of them is seen to have left."""


class DotUnit(wiring.Component):
    """Take steps of a sum of block-scaled products, give the sum, in FP32.

    A step brings one line of either operand. Its groups are multiplied and added up exactly,
    scaled, rounded once to FP32, and added, the first group first, to what the sum holds. The
    elements of both lines must have the same width; with others the sum means nothing.

    A step can be taken every cycle. A last step taken in cycle t offers its sum from cycle t +
    `latency_cycles` on, provided that the sums before it are taken. Sums that nobody takes are
    kept, and before there is no room for one more, the unit stops taking steps; steps that are
    under way never wait. `i.ready` and `o.valid` depend on registers only. A reset forgets all
    steps and sums.

    Attributes:
        i: Stream of steps, `STEP`.
        o: Stream of sums, FP32, one for each step that is marked `last`; a NaN is 0x7FC00000.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(STEP)), "o": Out(stream.Signature(FP32))})

    @property
    def parameters(self) -> Mapping[str, int]:
        """What the unit was built with: nothing to choose."""
        return {}

    @property
    def latency_cycles(self) -> int:
        """Cycles from the one that takes a last step to the first that offers its sum."""
        return UNIT_LATENCY_CYCLES

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.submodules.core = core = DotCore()
        m.submodules.sums = sums = SyncFIFO(width=FP32.width, depth=_SUMS)
        step = self.i.payload
        for side, operand in (("a", core.a), ("b", core.b)):
            m.submodules[f"{side}_decode"] = decode = LineDecode()
            m.d.comb += decode.line.eq(step[side])
            m.d.comb += decode.element_type.eq(step[f"{side}_type"])
            m.d.comb += decode.scales.eq(step[f"{side}_scales"])
            kept = Signal(OPERAND, name=f"{side}_operand")
            m.d.sync += kept.eq(decode.operand)
            m.d.comb += operand.eq(kept)

        taken, begins, leaves = Signal(), Signal(), Signal()
        m.d.comb += taken.eq(self.i.valid & self.i.ready)
        m.d.comb += begins.eq(taken & step.last)
        m.d.comb += leaves.eq(self.o.valid & self.o.ready)
        count = Signal(range(_SUMS + 1))
        m.d.sync += count.eq(count + begins - leaves)
        m.d.comb += self.i.ready.eq(count != _SUMS)

        to_terms = 1 + TERM_CYCLES
        for port, sent in ((core.first, step.first), (core.second, step.second)):
            m.d.comb += port.eq(delayed(m, sent, name=f"step_{port.name}", edges=to_terms))
        m.d.comb += core.start.eq(delayed(m, step.start, name="step_start", edges=to_terms))
        m.d.comb += core.add.eq(_flag_delayed(m, taken, name="step_add", edges=to_terms))

        done = _flag_delayed(m, begins, name="done", edges=1 + LATENCY_CYCLES)
        m.d.comb += [sums.w_en.eq(done), sums.w_data.eq(core.o)]
        m.d.comb += [self.o.valid.eq(sums.r_rdy), self.o.payload.eq(sums.r_data)]
        m.d.comb += sums.r_en.eq(self.o.ready)
        return m


def _flag_delayed(m: Module, flag: Signal, *, name: str, edges: int) -> Value:
    """Return a flag some clock edges later; a reset clears it everywhere on its way."""
    kept = Signal(edges, name=name)
    m.d.sync += kept.eq((kept << 1) | flag)
    return kept[-1]
