"""The core: what stands at every place of the cube."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .add import AddFp32
from .fp32 import INFINITY, NAN
from .multiply import Multiply, Specials
from .rounding import RoundFp32
from .shapes import FP32, GROUPS, LANES, OPERAND, PRODUCT_EXPONENT, SHIFTED_LANES
from .sums import (
    MAGNITUDE_BITS,
    PLAIN_MAGNITUDE_BITS,
    SUM_EXPONENT,
    AlignedSum,
    Magnitude,
    PlainMagnitude,
    PlainSum,
)

__all__ = ["LATENCY_CYCLES", "TERM_CYCLES", "DotCore", "delayed"]

TERM_CYCLES: Final = 3
"""Cycles from the operands of a step to the cycle in which its terms meet the accumulator."""

LATENCY_CYCLES: Final = TERM_CYCLES + 1
"""Cycles from the operands of a step to the cycle in which `o` shows the sum with that step."""


class DotCore(wiring.Component):
    """Multiply two operands, add up each group exactly, round it once, accumulate in FP32.

    A new step may come every cycle, and nothing ever waits: there is no handshake. Operands that
    belong to no step may be anything. What happens to the accumulator is told when the terms of the
    step reach it, so that the many cores of a cube share one delay line:

        cycle t                   a, b
        cycle t + TERM_CYCLES     add, first, second, start
        cycle t + LATENCY_CYCLES  o, until a later step changes it

    The stages: products, aligned and added up; sign and magnitude; rounding to FP32; accumulation.
    The last is the longest, for both groups of a step are added one after the other in one cycle.

    Attributes:
        a: Operand of the row.
        b: Operand of the column.
        add: A step is at the accumulator; without it the accumulator keeps what it has.
        first: The step's sum starts from `start` instead of from the accumulator.
        second: The step has a second group; without it that group is not even added as zero.
        start: FP32 to start from.
        o: The accumulator, FP32; a NaN is 0x7FC00000.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(OPERAND),
                "b": In(OPERAND),
                "add": In(1),
                "first": In(1),
                "second": In(1),
                "start": In(FP32),
                "o": Out(FP32),
            }
        )

    @property
    def latency_cycles(self) -> int:
        """Clock edges from a step's operands to its sum."""
        return LATENCY_CYCLES

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.submodules.multiply = multiply = Multiply()
        m.submodules.specials = specials = Specials()
        for part in (multiply, specials):
            m.d.comb += [part.a.eq(self.a), part.b.eq(self.b)]
        first_nan, second_nan, is_infinity, infinity_sign = (
            delayed(m, flag, name=name, edges=TERM_CYCLES - 1)
            for flag, name in (
                (specials.is_nan[0], "first_nan"),
                (specials.is_nan[1], "second_nan"),
                (specials.is_infinity, "is_infinity"),
                (specials.infinity_sign, "infinity_sign"),
            )
        )
        infinity = Cat(Const(INFINITY, FP32.width - 1), infinity_sign)
        first = self._first_group(m, multiply)
        second = self._second_group(m, multiply)
        terms = [Signal(FP32, name=f"term_{group}") for group in range(GROUPS)]
        m.d.sync += terms[0].eq(Mux(first_nan, NAN, Mux(is_infinity, infinity, first)))
        m.d.sync += terms[1].eq(Mux(second_nan, NAN, second))

        m.submodules.add_first = add_first = AddFp32()
        m.submodules.add_second = add_second = AddFp32()
        m.d.comb += add_first.a.eq(Mux(self.first, self.start, self.o))
        m.d.comb += add_first.b.eq(terms[0])
        m.d.comb += add_second.a.eq(add_first.o)
        m.d.comb += add_second.b.eq(terms[1])
        with m.If(self.add):
            m.d.sync += self.o.eq(Mux(self.second, add_second.o, add_first.o))
        return m

    def _first_group(self, m: Module, multiply: Multiply) -> Value:
        """Return the rounded sum of the lanes with shifts, two edges behind their products."""
        m.submodules.aligned_sum = aligned_sum = AlignedSum()
        m.submodules.magnitude = magnitude = Magnitude()
        m.submodules.round_first = rounding = RoundFp32(
            magnitude_bits=MAGNITUDE_BITS, exponent_bits=SUM_EXPONENT.width
        )
        m.d.comb += aligned_sum.sign.eq(multiply.sign[:SHIFTED_LANES])
        for lane in range(SHIFTED_LANES):
            m.d.comb += aligned_sum.product[lane].eq(multiply.product[lane])
            m.d.comb += aligned_sum.shift[lane].eq(multiply.shift[lane])
        _link(m, magnitude.low, aligned_sum.low, name="low")
        _link(m, magnitude.high, aligned_sum.high, name="high")
        _link(m, magnitude.exponent, multiply.exponent[0], name="exponent")
        _link(m, rounding.sign, magnitude.sign, name="sign")
        _link(m, rounding.magnitude, magnitude.magnitude, name="magnitude")
        _link(m, rounding.exponent, magnitude.magnitude_exponent, name="magnitude_exponent")
        return rounding.o

    def _second_group(self, m: Module, multiply: Multiply) -> Value:
        """Return the rounded sum of the lanes without shifts, two edges behind their products."""
        m.submodules.plain_sum = plain_sum = PlainSum()
        m.submodules.plain_magnitude = magnitude = PlainMagnitude()
        m.submodules.round_second = rounding = RoundFp32(
            magnitude_bits=PLAIN_MAGNITUDE_BITS, exponent_bits=PRODUCT_EXPONENT.width
        )
        m.d.comb += plain_sum.sign.eq(multiply.sign[SHIFTED_LANES:])
        for lane in range(LANES - SHIFTED_LANES):
            m.d.comb += plain_sum.product[lane].eq(multiply.product[SHIFTED_LANES + lane])
        _link(m, magnitude.total, plain_sum.total, name="total")
        exponent = delayed(m, multiply.exponent[1], name="second_exponent", edges=1)
        _link(m, rounding.sign, magnitude.sign, name="second_sign")
        _link(m, rounding.magnitude, magnitude.magnitude, name="second_magnitude")
        _link(m, rounding.exponent, exponent, name="second_rounded_exponent")
        return rounding.o


def _link(m: Module, port: Value, sent: Value, *, name: str) -> None:
    """Drive a port with what was sent to it one edge earlier."""
    m.d.comb += port.eq(delayed(m, sent, name=name, edges=1))


def delayed(m: Module, sent: Value, *, name: str, edges: int) -> Value:
    """Return a value some clock edges later, in registers that no reset clears.

    Args:
        m: Where the registers are added.
        sent: The value.
        name: Stem of their names.
        edges: How many, at least one.
    """
    assert edges > 0, "a register takes an edge"
    for edge in range(1, edges + 1):
        kept = Signal(sent.shape(), name=f"{name}_{edge}", reset_less=True)
        m.d.sync += kept.eq(sent)
        sent = kept
    return sent
