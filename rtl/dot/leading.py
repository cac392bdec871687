"""How many zeros lead a word."""

# Amaranth's concatenations are typed wider than they are.
# pyright: reportAssignmentType=false, reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Mux, Signal

if TYPE_CHECKING:
    from amaranth.hdl import Module, Value

__all__ = ["leading_zeros"]


def leading_zeros(m: Module, word: Value, *, name: str) -> Value:
    """Return the count of zeros above the highest set bit of a word.

    Where the upper half of what is left holds no set bit, the search goes on in the lower one.

    Args:
        m: Where the circuit is added.
        word: The word. If it is zero, the count is its width, or one less for a power of two.
        name: Stem of the names of what is added.
    """
    span = 1 << (len(word) - 1).bit_length()
    padding = span - len(word)
    rest: Value = Cat(Const(-1, padding), word) if padding else word
    count: list[Value] = []
    while span > 1:
        span //= 2
        empty = Signal(name=f"{name}_{span}_empty")
        half = Signal(span, name=f"{name}_{span}")
        m.d.comb += empty.eq(~rest[span:].any())
        m.d.comb += half.eq(Mux(empty, rest[:span], rest[span:]))
        count.insert(0, empty)
        rest = half
    return Cat(count)
