"""The element formats that the cube multiplies, as the hardware sees them.

Every number here follows from the rows of `ir.dtypes.formats`. An element is taken as an integer
times a power of two that its format fixes, the **unit**: the smallest subnormal. The integer is a
**significand** shifted left by a **shift** of a few bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...codegen.isa.vocabulary import ElementType
from ...ir.dtypes import DType
from ...ir.dtypes.formats import FloatFormat, format_of
from ...ir.dtypes.hardware import E1M2

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ELEMENTS", "NARROW_BITS", "WIDE_BITS", "Element", "is_legal_pair"]


@dataclass(frozen=True, slots=True)
class Element:
    """An element format.

    Attributes:
        type: How the instruction set calls it.
        row: Its row in the table of formats.
    """

    type: ElementType
    row: FloatFormat

    @property
    def bits(self) -> int:
        """Width of a code."""
        return self.row.bits

    @property
    def unit_exponent(self) -> int:
        """The power of two of which every value is a multiple."""
        return self.row.emin - self.row.mantissa_bits

    @property
    def largest_shift(self) -> int:
        """The shift of the largest finite values; that of subnormals is 0."""
        return self.row.emax - self.row.emin

    @property
    def largest_significand(self) -> int:
        """The largest significand, before the shift."""
        return (1 << self.row.precision) - 1


ELEMENTS: Final[Mapping[ElementType, Element]] = {
    element: Element(element, format_of(dtype))
    for element, dtype in (
        (ElementType.E4M3, DType.E4M3),
        (ElementType.E5M2, DType.E5M2),
        (ElementType.E2M1, DType.E2M1),
        (ElementType.E1M2, E1M2),
    )
}
"""The formats by their type."""

WIDE_BITS: Final = max(element.bits for element in ELEMENTS.values())
NARROW_BITS: Final = min(element.bits for element in ELEMENTS.values())

assert ELEMENTS.keys() == set(ElementType), "an element type has no format"
assert all(element.bits == kind.bits for kind, element in ELEMENTS.items()), "a width differs"
assert {element.bits for element in ELEMENTS.values()} == {WIDE_BITS, NARROW_BITS}


def is_legal_pair(a: ElementType, b: ElementType) -> bool:
    """Return whether the cube multiplies elements of the one type by elements of the other."""
    return a.bits == b.bits
