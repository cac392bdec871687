"""The sequencer: from one mad to the steps of the cube, with the operands fetched ahead."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...codegen.isa.vocabulary import ElementType
from ...ir.dtypes.boxes import BOX_ROWS
from .shapes import LINE_BITS, LINE_ELEMENTS, MAD, STEP, l0a_port, l0b_port

if TYPE_CHECKING:
    from amaranth.hdl import Value

__all__ = ["Sequencer", "is_narrow"]

_TILE_BITS: Final = (BOX_ROWS - 1).bit_length()
_NARROW_BITS: Final = LINE_BITS // LINE_ELEMENTS
_STEP_BITS: Final = {
    bits: (LINE_BITS // bits - 1).bit_length() for bits in {each.bits for each in ElementType}
}


def is_narrow(element_type: Value) -> Value:
    """Return the circuit, one bit wide, that tells the element types of 4 bits."""
    narrow = (each.value for each in ElementType if each.bits == _NARROW_BITS)
    return Cat(*(element_type == each for each in narrow)).any()


class Sequencer(wiring.Component):
    """Walk the tiles of 16 rows, in each those of 16 columns, in each K, a step a cycle.

    While a step is on offer, its lines of A and B stand on the data of the two read ports; those of
    the next one are fetched when it is taken. Valid depends on no ready, and a step stays until it
    is taken.

    Attributes:
        mad: What to do, taken when nothing is left of the one before.
        step: Steps in order; the first is on offer 2 cycles after the mad is taken.
        l0a: Fetches the lines of A.
        l0b: Fetches the lines of B.
    """

    FIRST_STEP_CYCLES: Final = 2

    def __init__(self) -> None:
        super().__init__(
            {
                "mad": In(stream.Signature(MAD)),
                "step": Out(stream.Signature(STEP)),
                "l0a": Out(l0a_port()),
                "l0b": Out(l0b_port()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        mad, running, advance = Signal(MAD), Signal(), Signal()
        # Indices of the last row, column and element of K.
        ends: list[Any] = [Signal.like(mad[name]) for name in "mnk"]
        row_end, column_end, k_end = ends
        narrow = Signal()
        m.d.comb += [
            row_end.eq(mad.m - 1),
            column_end.eq(mad.n - 1),
            k_end.eq(mad.k - 1),
            narrow.eq(is_narrow(mad.a_type)),
        ]
        wide_bits, narrow_bits = _STEP_BITS[2 * _NARROW_BITS], _STEP_BITS[_NARROW_BITS]
        row, column = (Signal(len(end) - _TILE_BITS) for end in (row_end, column_end))
        block = Signal(len(k_end) - wide_bits)
        last_row, last_column, last_block = Signal(), Signal(), Signal()
        m.d.comb += [
            last_row.eq(row == row_end[_TILE_BITS:]),
            last_column.eq(column == column_end[_TILE_BITS:]),
            last_block.eq(block == Mux(narrow, k_end[narrow_bits:], k_end[wide_bits:])),
        ]

        a, b = Signal.like(mad.a), Signal.like(mad.b)
        c, bias = Signal.like(mad.c), Signal.like(mad.bias)
        row_tiles, column_tiles = (Signal(len(end)) for end in (row, column))
        m.d.comb += [
            row_tiles.eq(row_end[_TILE_BITS:] + 1),
            column_tiles.eq(column_end[_TILE_BITS:] + 1),
        ]

        m.d.comb += [
            self.mad.ready.eq(~running & ~self.step.valid),
            advance.eq(running & (self.step.ready | ~self.step.valid)),
            *(port.enable.eq(advance) for port in (self.l0a, self.l0b)),
            self.l0a.address.eq(a),
            self.l0b.address.eq(b),
        ]
        with m.If(self.mad.ready & self.mad.valid):
            m.d.sync += [
                mad.eq(self.mad.payload),
                running.eq(1),
                *(count.eq(0) for count in (row, column, block)),
                a.eq(self.mad.payload.a),
                b.eq(self.mad.payload.b),
                c.eq(self.mad.payload.c),
                bias.eq(self.mad.payload.bias),
            ]
        with m.If(self.step.ready):
            m.d.sync += self.step.valid.eq(0)
        with m.If(advance):
            m.d.sync += [
                self.step.valid.eq(1),
                self.step.payload.eq(
                    self._step(
                        m,
                        {
                            "c": c,
                            "bias": bias,
                            "rows": _mask(row_end[:_TILE_BITS], BOX_ROWS, last_row),
                            "columns": _mask(column_end[:_TILE_BITS], BOX_ROWS, last_column),
                            "elements": Mux(
                                narrow,
                                _mask(k_end[:narrow_bits], LINE_ELEMENTS, last_block),
                                _mask(k_end[:wide_bits], LINE_ELEMENTS // 2, last_block),
                            ),
                            "a_type": mad.a_type,
                            "b_type": mad.b_type,
                            "init": mad.init,
                            "first": block == 0,
                            "last": last_block,
                            "end": last_block & last_column & last_row,
                        },
                    )
                ),
                block.eq(block + 1),
                a.eq(a + row_tiles),
                b.eq(b + column_tiles),
            ]
            with m.If(last_block):
                m.d.sync += [
                    block.eq(0),
                    column.eq(column + 1),
                    a.eq(mad.a + row),
                    b.eq(mad.b + column + 1),
                    c.eq(c + row_tiles),
                    bias.eq(bias + 1),
                ]
                with m.If(last_column):
                    m.d.sync += [
                        column.eq(0),
                        row.eq(row + 1),
                        a.eq(mad.a + row + 1),
                        b.eq(mad.b),
                        c.eq(mad.c + row + 1),
                        bias.eq(mad.bias),
                    ]
                    with m.If(last_row):
                        m.d.sync += running.eq(0)
        return m

    @staticmethod
    def _step(m: Module, fields: dict[str, Value]) -> Value:
        """Return a step made of its fields."""
        step = Signal(STEP, name="next_step")
        m.d.comb += [step[name].eq(value) for name, value in fields.items()]
        return step


def _mask(last: Any, count: int, cut: Any) -> Any:
    """Return the circuit of `count` bits, all set, or up to index `last` where `cut`."""
    assert count == 1 << len(last), "the index reaches every bit"
    return Cat(*(~cut | (last >= index) for index in range(count)))
