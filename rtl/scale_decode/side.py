"""One operand's side of the unit: which boxes it asks for, and where it keeps two of them."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from enum import Enum

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...codegen.isa.scale_unit import REQUEST
from ...ir.dtypes.boxes import BOX_BYTES
from ..shapes import CODE, beat_layout, word_layout
from .walk import LIMITS, Walk

__all__ = ["Operand", "Side"]


class Operand(Enum):
    """Whose scales a side brings, and so which tile its boxes belong to."""

    A = "row"
    B = "column"


class Side(wiring.Component):
    """Ask for the boxes of one operand, fill two slots with them in turn, show the oldest.

    The requests of a mad do not wait for room in the slots; the beats do. `beats.ready` is a
    register's word: it says that the slot being filled is not full, whatever its neighbours do.

    Args:
        operand: Whose boxes these are.
        beat_bytes: Bytes of a beat, a divisor of those of a box.

    Attributes:
        starts: A mad starts: ask for its boxes from the next cycle on.
        limits: How far the mad goes; still while it is under way.
        request: Stream of the boxes asked for, one word each.
        beats: Stream of their bytes, ascending.
        full: Whether the oldest slot holds a whole box.
        box: Codes of the oldest slot.
        free: Give the oldest slot up at the coming edge.
    """

    def __init__(self, *, operand: Operand, beat_bytes: int) -> None:
        self._operand = operand
        self._beats_a_box = BOX_BYTES // beat_bytes
        super().__init__(
            {
                "starts": In(1),
                "limits": In(LIMITS),
                "request": Out(stream.Signature(word_layout(REQUEST))),
                "beats": In(stream.Signature(beat_layout(beat_bytes))),
                "full": Out(1),
                "box": Out(data.ArrayLayout(CODE, BOX_BYTES)),
                "free": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        self._ask(m)
        self._keep(m)
        return m

    def _ask(self, m: Module) -> None:
        m.submodules.walk = walk = Walk()
        wiring.connect(m, wiring.flipped(self.limits), walk.limits)
        m.d.comb += self.request.payload.tile.eq(getattr(walk, self._operand.value))
        m.d.comb += self.request.payload.block.eq(walk.block)
        m.d.comb += walk.step.eq(self.request.valid & self.request.ready)
        with m.If(self.starts):
            m.d.sync += self.request.valid.eq(1)
        with m.Elif(walk.step & walk.at_last):
            m.d.sync += self.request.valid.eq(0)

    def _keep(self, m: Module) -> None:
        slots = [Signal(8 * BOX_BYTES, name=f"slot_{index}") for index in (0, 1)]
        full = [Signal(name=f"full_{index}") for index in (0, 1)]
        filling, oldest = Signal(), Signal()
        beat = Signal(range(self._beats_a_box))
        taken = self.beats.valid & self.beats.ready
        width = len(self.beats.payload.as_value())

        m.d.comb += self.beats.ready.eq(~Mux(filling, full[1], full[0]))
        m.d.comb += self.full.eq(Mux(oldest, full[1], full[0]))
        m.d.comb += self.box.as_value().eq(Mux(oldest, slots[1], slots[0]))
        # A slot is filled while it is not full and freed while it is, so never both at once.
        for index in (0, 1):
            last = Signal(name=f"last_into_{index}")
            into = taken & (filling == index)
            m.d.comb += last.eq(into & (beat == self._beats_a_box - 1))
            with m.If(into):
                m.d.sync += slots[index].word_select(beat, width).eq(self.beats.payload)
            with m.If(last):
                m.d.sync += full[index].eq(1)
                m.d.sync += filling.eq(1 - index)
            with m.Elif(self.free & (oldest == index)):
                m.d.sync += full[index].eq(0)
        with m.If(taken):
            m.d.sync += beat.eq(beat + 1)
        with m.If(self.free):
            m.d.sync += oldest.eq(~oldest)
