"""Exact sums of a group's products, and their sign and magnitude.

A negative number enters a sum as the complement of its bits; that is one less than it should be,
and too much by a power of two where the sum takes it for a positive one. Both are put right at the
end, from the count of negative numbers: no lane needs a carry of its own.
"""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...ir.dtypes.boxes import GROUP
from .formats import ELEMENTS, WIDE_BITS
from .shapes import PRODUCT, PRODUCT_EXPONENT, PRODUCT_SHIFT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amaranth.hdl import Value

__all__ = [
    "HALF_BITS",
    "HIGH_HALF",
    "LOW_HALF",
    "MAGNITUDE_BITS",
    "PLAIN_MAGNITUDE_BITS",
    "PLAIN_SUM",
    "SUM_EXPONENT",
    "AlignedSum",
    "Magnitude",
    "PlainMagnitude",
    "PlainSum",
]

HALF_BITS: Final = 32
MAGNITUDE_BITS: Final = 2 * HALF_BITS
"""Bits of a shifted product, and of the magnitude that is rounded."""

_COUNT_BITS: Final = GROUP.bit_length()

LOW_HALF: Final = unsigned(HALF_BITS + _COUNT_BITS)
HIGH_HALF: Final = signed(HALF_BITS + _COUNT_BITS + 1)
PLAIN_SUM: Final = signed(PRODUCT.width + _COUNT_BITS)
PLAIN_MAGNITUDE_BITS: Final = PLAIN_SUM.width - 1
SUM_EXPONENT: Final = signed(PRODUCT_EXPONENT.width + 1)

_LARGEST_PRODUCT: Final = max(
    a.largest_significand * b.largest_significand << (a.largest_shift + b.largest_shift)
    for a in ELEMENTS.values()
    for b in ELEMENTS.values()
    if a.bits == b.bits == WIDE_BITS
)
_EXCESS_BITS: Final = (_LARGEST_PRODUCT * GROUP).bit_length() - MAGNITUDE_BITS
assert _LARGEST_PRODUCT.bit_length() <= MAGNITUDE_BITS, "a product fits both halves"


class AlignedSum(wiring.Component):
    """Add up 32 products with their shifts, exactly, in two halves, without a clock.

    The sum is `high * 2^HALF_BITS + low`. Either half is narrower than 64 bits, and so are all of
    its parts.

    Attributes:
        sign: Whether a product is negative, a bit each.
        product: The products.
        shift: How far each stands to the left.
        low: What the lower bits of the shifted products add up to.
        high: The same of the upper bits, with what the signs take away.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "sign": In(GROUP),
                "product": In(PRODUCT).array(GROUP),
                "shift": In(PRODUCT_SHIFT).array(GROUP),
                "low": Out(LOW_HALF),
                "high": Out(HIGH_HALF),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        lows: list[Value] = []
        highs: list[Value] = []
        for index in range(GROUP):
            shifted = Signal(MAGNITUDE_BITS, name=f"shifted_{index}")
            bits = Signal(MAGNITUDE_BITS, name=f"bits_{index}")
            m.d.comb += shifted.eq(self.product[index] << self.shift[index])
            m.d.comb += bits.eq(Mux(self.sign[index], ~shifted, shifted))
            lows.append(bits[:HALF_BITS])
            highs.append(bits[HALF_BITS:])
        count = Signal(_COUNT_BITS)
        m.d.comb += count.eq(_ones(m, self.sign))
        m.d.comb += self.low.eq(_tree(lows) + count)
        m.d.comb += self.high.eq(_tree(highs) - (count << HALF_BITS))
        return m


class PlainSum(wiring.Component):
    """Add up 32 products that need no shift, exactly, without a clock.

    Attributes:
        sign: Whether a product is negative, a bit each.
        product: The products.
        total: Their sum.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "sign": In(GROUP),
                "product": In(PRODUCT).array(GROUP),
                "total": Out(PLAIN_SUM),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        parts: list[Value] = []
        for index in range(GROUP):
            bits = Signal(PRODUCT, name=f"bits_{index}")
            m.d.comb += bits.eq(Mux(self.sign[index], ~self.product[index], self.product[index]))
            parts.append(bits)
        count = Signal(_COUNT_BITS)
        m.d.comb += count.eq(_ones(m, self.sign))
        m.d.comb += self.total.eq(_tree(parts) + count - (count << PRODUCT.width))
        return m


class Magnitude(wiring.Component):
    """Turn a sum in two halves into sign, magnitude and exponent, without a clock.

    A magnitude beyond 64 bits is moved to the right, and what falls off sets the last bit. It then
    stands for "and a little more", which the rounding to 24 bits that follows cannot mistake for a
    tie, so that it rounds as the exact sum would.

    Attributes:
        low: Lower half of the sum.
        high: Upper half.
        exponent: Power of two that the sum is to be multiplied by.
        sign: Whether the sum is negative.
        magnitude: Its magnitude.
        magnitude_exponent: Power of two of the magnitude.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "low": In(LOW_HALF),
                "high": In(HIGH_HALF),
                "exponent": In(PRODUCT_EXPONENT),
                "sign": Out(1),
                "magnitude": Out(MAGNITUDE_BITS),
                "magnitude_exponent": Out(SUM_EXPONENT),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        upper = Signal(HIGH_HALF)
        lower = Signal(HALF_BITS)
        m.d.comb += upper.eq(self.high + self.low[HALF_BITS:])
        m.d.comb += lower.eq(self.low[:HALF_BITS])
        m.d.comb += self.sign.eq(upper[-1])

        above = Signal(HALF_BITS + _EXCESS_BITS)
        below = Signal(HALF_BITS)
        m.d.comb += below.eq(Mux(self.sign, -lower, lower))
        m.d.comb += above.eq(Mux(self.sign, ~upper + ~lower.any(), upper))

        exceeds = Signal()
        m.d.comb += exceeds.eq(above[HALF_BITS:].any())
        m.d.comb += self.magnitude.eq(
            Mux(
                exceeds,
                Cat(below[_EXCESS_BITS:], above) | below[:_EXCESS_BITS].any(),
                Cat(below, above[:HALF_BITS]),
            )
        )
        m.d.comb += self.magnitude_exponent.eq(self.exponent + Mux(exceeds, _EXCESS_BITS, 0))
        return m


class PlainMagnitude(wiring.Component):
    """Turn the sum of products without shifts into sign and magnitude, without a clock.

    Attributes:
        total: The sum.
        sign: Whether it is negative.
        magnitude: Its magnitude.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "total": In(PLAIN_SUM),
                "sign": Out(1),
                "magnitude": Out(PLAIN_MAGNITUDE_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.d.comb += self.sign.eq(self.total[-1])
        m.d.comb += self.magnitude.eq(Mux(self.sign, -self.total, self.total))
        return m


def _ones(m: Module, word: Value) -> Value:
    """Return how many bits of a word are set, all counts of as many bits added by one addition."""
    size = len(word)
    assert size & (size - 1) == 0, "counts pair up to the end"
    span = 1
    while span < size:
        mask = Const(sum(((1 << span) - 1) << place for place in range(0, size, 2 * span)), size)
        counts = Signal(size, name=f"ones_of_{2 * span}")
        m.d.comb += counts.eq((word & mask) + ((word >> span) & mask))
        word, span = counts, 2 * span
    return word


def _tree(terms: Sequence[Value]) -> Value:
    """Return the sum of some terms, added pair by pair."""
    while len(terms) > 1:
        pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + list(terms[len(pairs) * 2 :])
    return terms[0]
