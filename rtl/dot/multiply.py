"""Products of the lanes of two operands, and what their infinities and NaNs make of them."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Final

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .shapes import (
    GROUPS,
    LANES,
    OPERAND,
    PRODUCT,
    PRODUCT_EXPONENT,
    PRODUCT_SHIFT,
    SHIFT,
    SHIFTED_LANES,
)

__all__ = ["Multiply", "Specials"]

_LANES_AT_ONCE: Final = 8
"""Lanes whose shifts are added by one addition of less than 64 bits."""


class Multiply(wiring.Component):
    """Multiply two operands lane by lane, without a clock.

    A product is `(-1)^sign * product * 2^shift * 2^exponent[group]`, exactly. Of a lane with an
    infinity or a NaN it means nothing.

    Attributes:
        a: Operand of the row.
        b: Operand of the column.
        sign: A bit a lane.
        product: Product of the significands, by lanes.
        shift: Sum of the shifts, by lanes of the first group.
        exponent: Sum of the exponents, by groups.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(OPERAND),
                "b": In(OPERAND),
                "sign": Out(LANES),
                "product": Out(PRODUCT).array(LANES),
                "shift": Out(PRODUCT_SHIFT).array(SHIFTED_LANES),
                "exponent": Out(PRODUCT_EXPONENT).array(GROUPS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.d.comb += self.sign.eq(self.a.sign ^ self.b.sign)
        for lane in range(LANES):
            m.d.comb += self.product[lane].eq(self.a.significand[lane] * self.b.significand[lane])
        width = _LANES_AT_ONCE * SHIFT.width
        for part in range(SHIFTED_LANES // _LANES_AT_ONCE):
            a, b = (each.shift.as_value().word_select(part, width) for each in (self.a, self.b))
            shifts = Signal(width, name=f"shifts_{part}")
            m.d.comb += shifts.eq(a + b)
            for lane in range(_LANES_AT_ONCE):
                sum_of_two = shifts.word_select(lane, SHIFT.width)
                m.d.comb += self.shift[part * _LANES_AT_ONCE + lane].eq(sum_of_two)
        for group in range(GROUPS):
            m.d.comb += self.exponent[group].eq(self.a.exponent[group] + self.b.exponent[group])
        return m


class Specials(wiring.Component):
    """Tell what NaNs and infinities make of the groups of two operands, as IEEE 754, without a clock.

    An infinity times zero is NaN, and so is the sum of infinities of both signs.

    Attributes:
        a: Operand of the row.
        b: Operand of the column.
        is_nan: A bit a group: its sum is NaN, whatever else is told.
        is_infinity: The sum of the first group is infinite.
        infinity_sign: Whether that infinity is negative.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(OPERAND),
                "b": In(OPERAND),
                "is_nan": Out(GROUPS),
                "is_infinity": Out(1),
                "infinity_sign": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        a, b = self.a, self.b
        sign, infinite, invalid, positive, negative = (
            Signal(SHIFTED_LANES, name=name)
            for name in ("sign", "infinite", "invalid", "positive", "negative")
        )
        m.d.comb += sign.eq(a.sign[:SHIFTED_LANES] ^ b.sign[:SHIFTED_LANES])
        m.d.comb += infinite.eq(a.is_infinity | b.is_infinity)
        m.d.comb += invalid.eq((a.is_infinity & b.is_zero) | (a.is_zero & b.is_infinity))
        m.d.comb += positive.eq(infinite & ~sign)
        m.d.comb += negative.eq(infinite & sign)
        no_sum = Signal()
        m.d.comb += no_sum.eq(invalid.any() | (positive.any() & negative.any()))
        m.d.comb += self.is_nan.eq(a.is_nan | b.is_nan | no_sum)
        m.d.comb += self.is_infinity.eq(infinite.any())
        m.d.comb += self.infinity_sign.eq(negative.any())
        return m
