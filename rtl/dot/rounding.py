"""From an exact number to the nearest FP32."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .fp32 import BIAS, EXPONENT_BITS, FIELD_LIMIT, INFINITY, MANTISSA_BITS, PRECISION
from .leading import leading_zeros
from .shapes import FP32

__all__ = ["RoundFp32"]


class RoundFp32(wiring.Component):
    """Round `(-1)^sign * magnitude * 2^exponent` to FP32, nearest even, without a clock.

    Subnormals are kept, and what is too large becomes infinity. A magnitude of zero is +0 whatever
    its sign; a negative number that is too small is -0.

    Args:
        magnitude_bits: Bits of the magnitude.
        exponent_bits: Bits of the exponent, which is signed.

    Attributes:
        sign: Whether the number is negative.
        magnitude: Its magnitude.
        exponent: The power of two that the magnitude is to be multiplied by.
        o: The nearest FP32.
    """

    def __init__(self, *, magnitude_bits: int, exponent_bits: int) -> None:
        assert magnitude_bits > 1, "a magnitude of one bit needs no rounding"
        assert (1 << exponent_bits) > 2 * (BIAS + magnitude_bits), "exponents reach subnormals"
        self._magnitude_bits = magnitude_bits
        self._exponent_bits = exponent_bits
        super().__init__(
            {
                "sign": In(1),
                "magnitude": In(magnitude_bits),
                "exponent": In(signed(exponent_bits)),
                "o": Out(FP32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        width = self._magnitude_bits
        # The leading bit goes to the top; `field` is then the exponent field of a normal number.
        zeros = leading_zeros(m, self.magnitude, name="zeros")
        normal = Signal(width)
        field = Signal(signed(self._exponent_bits + 2))
        m.d.comb += normal.eq((self.magnitude << zeros)[:width])
        m.d.comb += field.eq(self.exponent + (BIAS + width - 1) - zeros)

        # A subnormal stands as far to the right as its exponent is below the least one; what falls
        # off the PRECISION bits and the one that follows is gathered in `sticky`.
        kept = Signal(PRECISION + 1)
        rest = Signal()
        if width > PRECISION + 1:
            m.d.comb += kept.eq(normal[-(PRECISION + 1) :])
            m.d.comb += rest.eq(normal[: -(PRECISION + 1)].any())
        else:
            m.d.comb += kept.eq(Cat(Const(0, PRECISION + 1 - width), normal))
        below = Signal(signed(self._exponent_bits + 2))
        is_subnormal = Signal()
        m.d.comb += below.eq(1 - field)
        m.d.comb += is_subnormal.eq(below > 0)
        distance = Signal(range(len(kept) + 1))
        m.d.comb += distance.eq(Mux(is_subnormal, Mux(below > len(kept), len(kept), below), 0))
        moved = Signal(2 * len(kept))
        m.d.comb += moved.eq(Cat(Const(0, len(kept)), kept) >> distance)
        significand = Signal(PRECISION + 1)
        sticky = Signal()
        m.d.comb += significand.eq(moved[len(kept) :])
        m.d.comb += sticky.eq(moved[: len(kept)].any() | rest)
        up = Signal()
        m.d.comb += up.eq(significand[0] & (significand[1] | sticky))

        # A carry out of the mantissa steps into the exponent field, to infinity at the very top.
        exponent_field = Signal(EXPONENT_BITS)
        m.d.comb += exponent_field.eq(Mux(is_subnormal, 0, field))
        magnitude = Signal(FP32.width - 1)
        m.d.comb += magnitude.eq(Cat(significand[1 : 1 + MANTISSA_BITS], exponent_field) + up)
        is_zero, overflows = ~self.magnitude.any(), field >= FIELD_LIMIT
        m.d.comb += self.o.eq(
            Mux(is_zero, 0, Cat(Mux(overflows, INFINITY, magnitude)[: FP32.width - 1], self.sign))
        )
        return m
