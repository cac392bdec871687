"""The combine step: the scale of a product is the product of two scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .shapes import CODE, COMBINED_EXPONENT, exponent_of, is_nan_code

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ScalePair"]


class ScalePair(wiring.Component):
    """Combine an E8M0 code of either operand, without a clock.

    Attributes:
        a: Code of the left operand's scale.
        b: Code of the right operand's scale.
        is_nan: Whether either code is NaN.
        exponent: Exact sum of both exponents; it never wraps. Means nothing beside a set `is_nan`.
    """

    def __init__(self) -> None:
        super().__init__(
            {"a": In(CODE), "b": In(CODE), "is_nan": Out(1), "exponent": Out(COMBINED_EXPONENT)}
        )

    @property
    def parameters(self) -> Mapping[str, int]:
        """What the unit was built with: nothing to choose."""
        return {}

    @property
    def latency_cycles(self) -> int:
        """Clock edges from input to output: none."""
        return 0

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        m.d.comb += self.is_nan.eq(is_nan_code(self.a) | is_nan_code(self.b))
        m.d.comb += self.exponent.eq(exponent_of(self.a) + exponent_of(self.b))
        return m
