"""The scale-decode unit as a whole."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...codegen.isa.scale_unit import HALF, REQUEST, START
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS, box_byte
from ..shapes import (
    beat_layout,
    check_beat_bytes,
    check_flag,
    exponent_of,
    is_nan_code,
    record_layout,
    word_layout,
)
from .side import Operand, Side
from .walk import LIMITS, Walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amaranth.lib import data

__all__ = ["ScaleDecode"]

_CYCLES_AROUND_A_BOX: Final = 3
"""From a start to its request, from that to the first beat, from the last beat to the record."""


def first_record_cycle(beat_bytes: int) -> int:
    """Return the cycle of a mad in which its first record is on offer, when nobody stalls."""
    return _CYCLES_AROUND_A_BOX + BOX_BYTES // beat_bytes


class ScaleDecode(wiring.Component):
    """Turn a mad into requests for scale boxes, and the boxes into records of decoded scales.

    The cycle that takes a start word is the mad's cycle 0. Requests stand on their streams from
    cycle 1 on, one a box, in the order of `request_order`; the same box is asked for again in every
    pass over it. A side buffers two boxes. As soon as both sides' oldest box is whole, and the output
    register is empty or being emptied, the next record enters it. A pair of boxes makes two
    records, of a group each, or one of both where `paired`; what lies beyond the valid groups makes
    none, and shows as a half of zeros beside its neighbour. The next start is taken no sooner than
    the cycle after the one that took the record marked `end`, nor while a request is on offer.

    All of it obeys the rules of streams: a word on offer stays, unchanged, until it is taken; no
    wire of a handshake depends on an input of the same cycle. A reset empties everything. A beat is
    taken wherever its side has room, asked for or not; boxes that no record of a mad needed are the
    first of the next mad.

    Args:
        beat_bytes: Bytes of a beat, one of `BEATS_BYTES`. No cycle passes between beats that come: a
            record a cycle needs beats of 32 bytes where paired, else of 16, if every box has two
            groups that count.
        combined: Whether a record also carries the 16 x 16 combined exponents of either half.

    Attributes:
        start: Stream of mads, `START`.
        a_request: Stream of the boxes wanted for the rows of the left operand, `REQUEST`.
        b_request: The same for the columns of the right one.
        a: Stream of their beats: codes of a box, ascending, in the order of the requests.
        b: The same of the right operand.
        o: Stream of records, `record_layout`.

    Raises:
        IRTypeError: If `beat_bytes` is not an integer, or `combined` not a bool.
        IRValueError: If a beat cannot have so many bytes.
    """

    def __init__(self, *, beat_bytes: int = BOX_BYTES, combined: bool = False) -> None:
        self._beat_bytes = check_beat_bytes("ScaleDecode beat_bytes", beat_bytes)
        self._combined = check_flag("ScaleDecode combined", combined)
        request, beats = word_layout(REQUEST), beat_layout(beat_bytes)
        super().__init__(
            {
                "start": In(stream.Signature(word_layout(START))),
                "a_request": Out(stream.Signature(request)),
                "b_request": Out(stream.Signature(request)),
                "a": In(stream.Signature(beats)),
                "b": In(stream.Signature(beats)),
                "o": Out(stream.Signature(record_layout(combined=combined))),
            }
        )

    @property
    def beat_bytes(self) -> int:
        """Bytes of a beat."""
        return self._beat_bytes

    @property
    def combined(self) -> bool:
        """Whether a record carries combined exponents."""
        return self._combined

    @property
    def parameters(self) -> Mapping[str, int]:
        """What the unit was built with, name to value."""
        return {"beat_bytes": self._beat_bytes, "combined": int(self._combined)}

    @property
    def latency_cycles(self) -> int:
        """Cycles from the one that takes a start to the first that offers a record.

        Holds where nobody stalls and a box's first beat comes in the cycle after its request: 4
        with beats of 32 bytes.
        """
        return first_record_cycle(self._beat_bytes)

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        starts, free, load = Signal(), Signal(), Signal()
        busy, paired, odd = Signal(), Signal(), Signal()
        limits = LIMITS.create(path=("limits",))

        asking = self.a_request.valid | self.b_request.valid
        m.d.comb += self.start.ready.eq(~(busy | asking))
        m.d.comb += starts.eq(self.start.valid & self.start.ready)
        with m.If(starts):
            start = self.start.payload
            m.d.sync += busy.eq(1)
            m.d.sync += paired.eq(start.paired)
            m.d.sync += odd.eq(start.groups[0])
            m.d.sync += limits.row.eq(start.row_tiles - 1)
            m.d.sync += limits.column.eq(start.column_tiles - 1)
            m.d.sync += limits.block.eq((start.groups - 1) >> 1)
        with m.Elif(self.o.valid & self.o.ready & self.o.payload.end):
            m.d.sync += busy.eq(0)

        m.submodules.a_side = a_side = Side(operand=Operand.A, beat_bytes=self._beat_bytes)
        m.submodules.b_side = b_side = Side(operand=Operand.B, beat_bytes=self._beat_bytes)
        for side, request, beats in (
            (a_side, self.a_request, self.a),
            (b_side, self.b_request, self.b),
        ):
            wiring.connect(m, side.request, wiring.flipped(request))
            wiring.connect(m, wiring.flipped(beats), side.beats)
            wiring.connect(m, side.limits, limits)
            m.d.comb += side.starts.eq(starts)
            m.d.comb += side.free.eq(free)

        m.submodules.walk = walk = Walk()
        wiring.connect(m, walk.limits, limits)
        # Nothing is left to be loaded where there is no mad, or its last record is on offer.
        lacks = busy & ~(self.o.valid & self.o.payload.end)
        m.d.comb += load.eq(lacks & a_side.full & b_side.full & (self.o.ready | ~self.o.valid))
        m.d.comb += free.eq(walk.step)
        with m.If(load):
            m.d.sync += self.o.valid.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        # A box is done with its second group, or with the first where K ends there.
        ends_here = Signal()
        upper, whole, second = Signal(), Signal(), Signal()
        m.d.comb += ends_here.eq(walk.at_last_block & odd)
        m.d.comb += whole.eq(paired | upper | ends_here)
        m.d.comb += second.eq(paired & ~ends_here)
        m.d.comb += walk.step.eq(load & whole)

        record = Signal(record_layout())
        lower_group, upper_group = (
            self._decoded(m, a_side.box, b_side.box, group) for group in range(BOX_GROUPS)
        )
        with m.If(load):
            m.d.sync += upper.eq(~whole)
            m.d.sync += record.group.eq(Cat(upper, walk.block))
            m.d.sync += record.second.eq(second)
            m.d.sync += record.last.eq(whole & walk.at_last_block)
            m.d.sync += record.end.eq(whole & walk.at_last)
            m.d.sync += record.halves[0].eq(Mux(upper, upper_group, lower_group))
            m.d.sync += record.halves[1].eq(Mux(second, upper_group, 0))
        for name, _ in record_layout():
            m.d.comb += self.o.payload[name].eq(record[name])
        if self._combined:
            for half, combined in zip(record.halves, self.o.payload.combined, strict=True):
                _combine(m, half, combined)
        return m

    def _decoded(self, m: Module, a_box: data.View, b_box: data.View, group: int) -> Signal:
        """Return the half of a record that a group of both boxes makes."""
        half: Any = Signal(word_layout(HALF), name=f"group_{group}")
        for row in range(BOX_ROWS):
            for code, exponent, is_nan in (
                (a_box[box_byte(row, group)], half.a_exponent, half.a_nan),
                (b_box[box_byte(row, group)], half.b_exponent, half.b_nan),
            ):
                m.d.comb += exponent[row].eq(exponent_of(code))
                m.d.comb += is_nan[row].eq(is_nan_code(code))
        return half


def _combine(m: Module, half: Any, combined: Any) -> None:
    """Drive `combined` with every pair of a row and a column of a half."""
    for row in range(BOX_ROWS):
        for column in range(BOX_ROWS):
            pair = row * BOX_ROWS + column
            exponents = half.a_exponent[row] + half.b_exponent[column]
            m.d.comb += combined.exponent[pair].eq(exponents)
            m.d.comb += combined.is_nan[pair].eq(half.a_nan[row] | half.b_nan[column])
