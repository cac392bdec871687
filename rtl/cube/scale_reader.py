"""From requests for scale boxes to beats, through a memory with a synchronous read."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...codegen.isa.scale_unit import REQUEST
from ...ir.dtypes.boxes import BOX_BYTES
from ..shapes import beat_layout, word_layout
from .shapes import MAD, scale_port

if TYPE_CHECKING:
    from typing import Final

__all__ = ["ScaleReader"]


class ScaleReader(wiring.Component):
    """Fetch scale boxes, a beat a cycle, as fast as they are taken.

    Args:
        beat_bytes: Bytes of a beat: 8, 16 or 32.
        left: Whether it reads the left operand's scales.

    Attributes:
        base: Box where the scales of the mad begin.
        blocks: Boxes of a tile along K. Both must stay while boxes are requested.
        request: Which box is wanted.
        beat: Bytes of the boxes, ascending; a box's first beat 1 cycle after its request is taken.
        memory: The scale buffer.
    """

    READ_CYCLES: Final = 1

    def __init__(self, *, beat_bytes: int, left: bool) -> None:
        self._beats = BOX_BYTES // beat_bytes
        port = scale_port(beat_bytes=beat_bytes, left=left)
        base = MAD["a" if left else "b"].shape
        request = word_layout(REQUEST)
        super().__init__(
            {
                "base": In(base),
                "blocks": In(unsigned(request["block"].shape.width + 1)),
                "request": In(stream.Signature(request)),
                "beat": Out(stream.Signature(beat_layout(beat_bytes))),
                "memory": Out(port),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        asked, held, box = Signal.like(self.base), Signal.like(self.base), Signal.like(self.base)
        index = Signal(range(self._beats))
        opening, reading = Signal(), Signal()
        request = self.request.payload
        m.d.comb += [
            opening.eq(index == 0),
            asked.eq(self.base + request.tile * self.blocks + request.block),
            box.eq(Mux(opening, asked, held)),
            reading.eq((self.request.valid | ~opening) & (self.beat.ready | ~self.beat.valid)),
            self.request.ready.eq(opening & (self.beat.ready | ~self.beat.valid)),
            self.memory.enable.eq(reading),
            self.memory.address.eq(Cat(index, box)),
            self.beat.payload.eq(self.memory.data),
        ]
        with m.If(self.beat.ready):
            m.d.sync += self.beat.valid.eq(0)
        with m.If(reading):
            m.d.sync += [self.beat.valid.eq(1), held.eq(box)]
            if self._beats > 1:
                m.d.sync += index.eq(index + 1)
        return m
