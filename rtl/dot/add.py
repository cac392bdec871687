"""Addition of two FP32."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .fp32 import EXPONENT_BITS, FIELD_LIMIT, INFINITY, MANTISSA_BITS, NAN, PRECISION
from .leading import leading_zeros
from .shapes import FP32

__all__ = ["AddFp32"]

_GUARD_BITS: Final = 3
"""Guard, round and sticky bit: enough for every rounding of a sum of two."""

_WIDTH: Final = PRECISION + _GUARD_BITS
_DISTANCE_BITS: Final = _WIDTH.bit_length()


class AddFp32(wiring.Component):
    """Add two FP32 and round to nearest even, as IEEE 754 does, without a clock.

    Subnormals are kept. A sum of zero is +0, but for two zeros that are negative; a NaN is 0x7FC00000.

    Attributes:
        a: FP32.
        b: FP32.
        o: Their sum.
    """

    def __init__(self) -> None:
        super().__init__({"a": In(FP32), "b": In(FP32), "o": Out(FP32)})

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        larger, smaller = Signal(FP32), Signal(FP32)
        swaps = Signal()
        m.d.comb += swaps.eq(self.a[:-1] < self.b[:-1])
        m.d.comb += larger.eq(Mux(swaps, self.b, self.a))
        m.d.comb += smaller.eq(Mux(swaps, self.a, self.b))
        subtracts = Signal()
        m.d.comb += subtracts.eq(larger[-1] ^ smaller[-1])

        # Field 0 of subnormals and zeros has the weight of field 1, without the leading bit.
        larger_field, smaller_field = larger[MANTISSA_BITS:-1], smaller[MANTISSA_BITS:-1]
        larger_normal, smaller_normal = larger_field.any(), smaller_field.any()
        exponent = Signal(EXPONENT_BITS)
        distance = Signal(EXPONENT_BITS)
        m.d.comb += exponent.eq(Mux(larger_normal, larger_field, 1))
        m.d.comb += distance.eq(exponent - Mux(smaller_normal, smaller_field, 1))

        # What the smaller loses on its way to the weight of the larger sets its last bit.
        reach = 1 << _DISTANCE_BITS
        significand = Cat(smaller[:MANTISSA_BITS], smaller_normal)
        moved = Signal(_WIDTH + reach)
        m.d.comb += moved.eq(
            Cat(Const(0, reach + _GUARD_BITS), significand) >> distance[:_DISTANCE_BITS]
        )
        is_far = distance[_DISTANCE_BITS:].any()
        aligned = Signal(_WIDTH)
        m.d.comb += aligned.eq(
            Mux(is_far, significand.any(), moved[reach:] | moved[:reach].any()),
        )
        minuend = Cat(Const(0, _GUARD_BITS), larger[:MANTISSA_BITS], larger_normal)
        total = Signal(_WIDTH + 1)
        m.d.comb += total.eq(Mux(subtracts, minuend - aligned, minuend + aligned))

        # The leading bit goes to the top, but no further than the exponent allows: there a mark
        # ends the search, and a number without a leading bit is subnormal.
        mark = Signal(_WIDTH + 1)
        m.d.comb += mark.eq(Const(1 << _WIDTH) >> exponent)
        searched = Signal(_WIDTH + 1)
        m.d.comb += searched.eq(total | mark)
        zeros = leading_zeros(m, searched, name="zeros")
        normal = Signal(_WIDTH + 1)
        m.d.comb += normal.eq((total << zeros)[: _WIDTH + 1])
        field = Signal(EXPONENT_BITS)
        m.d.comb += field.eq(Mux(normal[-1], exponent + 1 - zeros, 0))

        up = Signal()
        dropped = normal[: _GUARD_BITS + 1]
        mantissa = normal[_GUARD_BITS + 1 : -1]
        m.d.comb += up.eq(dropped[-1] & (dropped[:-1].any() | mantissa[0]))
        rounded = Signal(FP32.width - 1)
        m.d.comb += rounded.eq(Cat(mantissa, field) + up)
        overflows = field == FIELD_LIMIT

        sign = Signal()
        m.d.comb += sign.eq(larger[-1] & ~(subtracts & ~total.any()))
        is_infinity = larger[:-1] == INFINITY
        is_nan = (larger[:-1] > INFINITY) | (is_infinity & subtracts & (smaller[:-1] == INFINITY))
        m.d.comb += self.o.eq(
            Mux(
                is_nan,
                NAN,
                Cat(Mux(is_infinity | overflows, INFINITY, rounded)[: FP32.width - 1], sign),
            )
        )
        return m
