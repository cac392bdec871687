"""The cube: a whole mad in hardware."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...codegen.isa.vocabulary import MadInit
from ...ir.dtypes.boxes import BOX_BYTES, BOX_ROWS, GROUP
from ..scale_decode import ScaleDecode
from .array import Array
from .scale_reader import ScaleReader
from .sequencer import Sequencer, is_narrow
from .shapes import (
    MAD,
    STEP,
    bias_port,
    l0a_port,
    l0b_port,
    l0c_read_port,
    l0c_write_port,
    scale_port,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amaranth.hdl import Value

__all__ = ["Cube"]

_GROUP_BITS: Final = (GROUP - 1).bit_length()
_TILE_BITS: Final = (BOX_ROWS - 1).bit_length()

_PLACE: Final = data.StructLayout(
    {
        **{name: STEP.members[name] for name in ("c", "bias", "rows", "columns", "init")},
        **dict.fromkeys(("first", "last", "end", "second", "taken"), unsigned(1)),
    }
)
"""What follows a step through the array, and whether there is one."""


class Cube(wiring.Component):
    """Multiply a block-scaled tile of A by one of B, onto zero, the accumulator or the bias.

    A mad is taken when the one before has been written. Each step takes a box of A, one of B and a
    record of the scale-decode unit inside, decodes every row and every column once, and hands them
    to the array; a new 16 x 16 tile of the result may begin in any cycle. Elements beyond K are
    zero from there on, so whatever the memories hold in their place means nothing. What the sums
    start from is read with a tile's first step, and they are written after its last one: only the
    rows and columns within m and n.

    Args:
        beat_bytes: Bytes of a beat of scales, one of `BEATS_BYTES`. Where they are fewer than
            a box, the cube waits for its scales.
        rows: Rows of a tile that have processing elements, from the first on; the others are not
            computed. Fewer than 16 are for tests, which a whole array would take too long.
        columns: The same of columns.
        instances: Whether the parts that the array repeats are instances of modules of their own,
            as `verilog` writes them, instead of copies inside.

    Attributes:
        mad: What to do.
        l0a: Boxes of A's elements.
        l0b: Boxes of B's.
        scale_a: Beats of A's scales.
        scale_b: Beats of B's.
        bias: Rows of 16 FP32.
        l0c_read: Boxes of FP32 to start from.
        l0c_write: Boxes of FP32 for the results.
        done: On in the cycle of a mad's last write.

    Raises:
        IRTypeError: If `beat_bytes` is not an integer.
        IRValueError: If a beat cannot have so many bytes.
    """

    def __init__(
        self,
        *,
        beat_bytes: int = BOX_BYTES,
        rows: int = BOX_ROWS,
        columns: int = BOX_ROWS,
        instances: bool = False,
    ) -> None:
        self._scales = ScaleDecode(beat_bytes=beat_bytes)
        self._array = Array(rows=rows, columns=columns, instances=instances)
        self._beat_bytes = beat_bytes
        super().__init__(
            {
                "mad": In(stream.Signature(MAD)),
                "l0a": Out(l0a_port()),
                "l0b": Out(l0b_port()),
                "scale_a": Out(scale_port(beat_bytes=beat_bytes, left=True)),
                "scale_b": Out(scale_port(beat_bytes=beat_bytes, left=False)),
                "bias": Out(bias_port()),
                "l0c_read": Out(l0c_read_port()),
                "l0c_write": Out(l0c_write_port()),
                "done": Out(1),
            }
        )

    @property
    def parameters(self) -> Mapping[str, int]:
        """What the cube was built with, name to value."""
        return {
            "beat_bytes": self._beat_bytes,
            "rows": self._array.rows,
            "columns": self._array.columns,
        }

    @property
    def latency_cycles(self) -> int:
        """What a mad takes beside a cycle a step, L, when its scales never keep it waiting.

        From the cycle that takes a mad to that of its last write, both counted. A beat of a whole
        box never starves the cube.
        """
        return self._scales.latency_cycles + self._array.latency_cycles

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.submodules.sequencer = sequencer = Sequencer()
        m.submodules.scales = scales = self._scales
        m.submodules.array = array = self._array
        step, record = sequencer.step, scales.o
        take, busy = Signal(), Signal()

        wiring.connect(m, sequencer.l0a, wiring.flipped(self.l0a))
        wiring.connect(m, sequencer.l0b, wiring.flipped(self.l0b))
        self._start(m, sequencer, scales, busy)
        self._read_scales(m, scales)
        m.d.comb += [
            take.eq(step.valid & record.valid),
            step.ready.eq(record.valid),
            record.ready.eq(step.valid),
            array.take.eq(take),
        ]
        for name, side, port in (("a", array.a, self.l0a), ("b", array.b, self.l0b)):
            m.d.comb += [
                side.lines.eq(port.data),
                side.elements.eq(step.payload.elements),
                side.element_type.eq(step.payload[f"{name}_type"]),
            ]
            for index, scales_of_line in enumerate(side.scales):
                for group, half in enumerate(record.payload.halves):
                    m.d.comb += [
                        scales_of_line.exponent[group].eq(half[f"{name}_exponent"][index]),
                        scales_of_line.is_nan[group].eq(half[f"{name}_nan"][index]),
                    ]
        self._sum(m, array, step.payload, record.payload.second, take)
        with m.If(self.mad.valid & self.mad.ready):
            m.d.sync += busy.eq(1)
        with m.Elif(self.done):
            m.d.sync += busy.eq(0)
        return m

    def _start(self, m: Module, sequencer: Sequencer, scales: ScaleDecode, busy: Signal) -> None:
        """Hand a mad to both who walk it, which are idle when nothing is left to write."""
        mad, start = self.mad.payload, scales.start.payload
        m.d.comb += [
            self.mad.ready.eq(~busy),
            sequencer.mad.valid.eq(self.mad.valid & ~busy),
            sequencer.mad.payload.eq(mad),
            scales.start.valid.eq(self.mad.valid & ~busy),
            start.row_tiles.eq(((mad.m - 1) >> _TILE_BITS) + 1),
            start.column_tiles.eq(((mad.n - 1) >> _TILE_BITS) + 1),
            start.groups.eq(((mad.k - 1) >> _GROUP_BITS) + 1),
            start.paired.eq(is_narrow(mad.a_type)),
        ]

    def _read_scales(self, m: Module, scales: ScaleDecode) -> None:
        """Answer the requests of the scale-decode unit from the two scale buffers."""
        started = self.mad.valid & self.mad.ready
        groups = scales.start.payload.groups
        blocks = Signal(len(groups))
        with m.If(started):
            m.d.sync += blocks.eq((groups + 1) >> 1)
        for left, base, request, beats, memory in (
            (True, self.mad.payload.a, scales.a_request, scales.a, self.scale_a),
            (False, self.mad.payload.b, scales.b_request, scales.b, self.scale_b),
        ):
            reader = ScaleReader(beat_bytes=self._beat_bytes, left=left)
            m.submodules[f"{'a' if left else 'b'}_reader"] = reader
            held = Signal.like(reader.base)
            with m.If(started):
                m.d.sync += held.eq(base)
            m.d.comb += [reader.base.eq(held), reader.blocks.eq(blocks)]
            wiring.connect(m, request, reader.request)
            wiring.connect(m, reader.beat, beats)
            wiring.connect(m, reader.memory, wiring.flipped(memory))

    def _sum(self, m: Module, array: Array, step: Value, second: Value, take: Value) -> None:
        """Follow a step through the array: read what its sums start from, and write them."""
        place = Signal(_PLACE, name="place_0")
        m.d.comb += [place[name].eq(step[name]) for name, _ in _PLACE if name in STEP.members]
        m.d.comb += [place.taken.eq(take), place.second.eq(second)]
        places = [place]
        for index in range(array.latency_cycles):
            following = Signal(_PLACE, name=f"place_{index + 1}")
            m.d.sync += following.eq(places[-1])
            places.append(following)

        fetch, keep, add, done = (places[array.add_cycles + shift] for shift in (-2, -1, 0, 1))
        assert done is places[-1], "the accumulator is the last register"
        begin = fetch.taken & fetch.first
        m.d.comb += [
            self.l0c_read.enable.eq(begin & (fetch.init == MadInit.ACC)),
            self.l0c_read.address.eq(fetch.c),
            self.bias.enable.eq(begin & (fetch.init == MadInit.BIAS)),
            self.bias.address.eq(fetch.bias),
            array.add.eq(add.taken),
            array.first.eq(add.first),
            array.second.eq(add.second),
        ]
        # A memory's data may come late in its cycle, and the addition is long.
        start = Signal(array.start.as_value().shape(), name="start", reset_less=True)
        m.d.comb += array.start.eq(start)
        with m.If(keep.taken & keep.first), m.Switch(keep.init):
            with m.Case(MadInit.ACC):
                m.d.sync += start.eq(self.l0c_read.data)
            with m.Case(MadInit.BIAS):
                m.d.sync += start.eq(Cat(self.bias.data for _ in range(BOX_ROWS)))
            with m.Default():
                m.d.sync += start.eq(0)
        m.d.comb += [
            self.l0c_write.enable.eq(done.taken & done.last),
            self.l0c_write.address.eq(done.c),
            self.l0c_write.rows.eq(done.rows & ((1 << array.rows) - 1)),
            self.l0c_write.columns.eq(done.columns & ((1 << array.columns) - 1)),
            self.l0c_write.data.eq(array.sums),
            self.done.eq(done.taken & done.end),
        ]
