"""The words of the dot unit.

A **line** is what an operand brings to a step: 32 bytes along K, which are 32 elements of 8 bits
(one group) or 64 elements of 4 bits (two groups), the first in the low bits. With its scales it is
decoded once into an **operand**, which every core of a row, or of a column, then shares.

An operand has a **lane** an element: lanes 0 to 31 are the first group, lanes 32 to 63 the second,
zero where a line has 32 elements. The value of a lane is

    (-1)^sign * significand * 2^shift * 2^exponent[group]

where only the lanes of the first group have a shift (4-bit elements need none), and the exponent
of a group is that of its scale plus that of the format's unit, so that nothing behind the decoders
knows formats.
"""

from __future__ import annotations

from typing import Final

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from ...codegen.isa.vocabulary import ElementType
from ...ir.dtypes.boxes import BOX_GROUPS, GROUP
from ..shapes import BIAS, EXPONENT
from .formats import ELEMENTS, NARROW_BITS, WIDE_BITS

__all__ = [
    "ELEMENT_TYPE",
    "FP32",
    "GROUPS",
    "GROUP_EXPONENT",
    "LANES",
    "LINE",
    "LINE_BITS",
    "OPERAND",
    "PRODUCT",
    "PRODUCT_EXPONENT",
    "PRODUCT_SHIFT",
    "SCALES",
    "SHIFT",
    "SHIFTED_LANES",
    "SIGNIFICAND",
    "STEP",
]

GROUPS: Final = BOX_GROUPS
"""Groups of a step, at most."""

SHIFTED_LANES: Final = GROUP
"""Lanes of the first group, the ones with a shift."""

LANES: Final = GROUPS * GROUP
"""Lanes of an operand."""

LINE_BITS: Final = GROUP * WIDE_BITS
assert LINE_BITS == LANES * NARROW_BITS, "a line is one wide group or two narrow ones"

LINE: Final = unsigned(LINE_BITS)
ELEMENT_TYPE: Final = unsigned(max(ElementType).bit_length())
FP32: Final = unsigned(32)

_WIDE: Final = [each for each in ELEMENTS.values() if each.bits == WIDE_BITS]
_NARROW: Final = [each for each in ELEMENTS.values() if each.bits == NARROW_BITS]
_LARGEST: Final = max(
    *(each.largest_significand for each in _WIDE),
    *(each.largest_significand << each.largest_shift for each in _NARROW),
)
_LARGEST_SHIFT: Final = max(each.largest_shift for each in _WIDE)

SIGNIFICAND: Final = unsigned(_LARGEST.bit_length())
PRODUCT: Final = unsigned(2 * SIGNIFICAND.width)
PRODUCT_SHIFT: Final = unsigned((2 * _LARGEST_SHIFT).bit_length())

SHIFT: Final = PRODUCT_SHIFT
"""A shift, with room for the sum of two: so a few wide additions add all lanes at once."""

GROUP_EXPONENT: Final = EXPONENT
"""Exponent of a scale plus that of a unit: from -143 to 127, and to 128 beside a NaN flag."""

PRODUCT_EXPONENT: Final = signed(GROUP_EXPONENT.width + 1)
"""The sum of the exponents of two operands."""

_LOWEST: Final = min(each.unit_exponent for each in ELEMENTS.values()) - BIAS
assert -(1 << (GROUP_EXPONENT.width - 1)) <= _LOWEST, "a scale and a unit fit one exponent"

SCALES: Final = data.StructLayout(
    {"exponent": data.ArrayLayout(EXPONENT, GROUPS), "is_nan": unsigned(GROUPS)}
)
"""The decoded scales of a line's groups, as a half of a scale record has them; a bit a NaN flag."""

OPERAND: Final = data.StructLayout(
    {
        "sign": unsigned(LANES),
        "significand": data.ArrayLayout(SIGNIFICAND, LANES),
        "is_infinity": unsigned(SHIFTED_LANES),
        "is_zero": unsigned(SHIFTED_LANES),
        "shift": data.ArrayLayout(SHIFT, SHIFTED_LANES),
        "exponent": data.ArrayLayout(GROUP_EXPONENT, GROUPS),
        "is_nan": unsigned(GROUPS),
    }
)
"""A decoded line with its scales.

`is_infinity` and `is_zero` tell of the lanes of the first group that hold an infinity or a zero;
`is_nan` of a group whose scale, or one of whose elements, is NaN.
"""

STEP: Final = data.StructLayout(
    {
        "a": LINE,
        "b": LINE,
        "a_type": ELEMENT_TYPE,
        "b_type": ELEMENT_TYPE,
        "a_scales": SCALES,
        "b_scales": SCALES,
        "second": unsigned(1),
        "first": unsigned(1),
        "last": unsigned(1),
        "start": FP32,
    }
)
"""What the stand-alone unit takes a step: both lines with their `ElementType`s and scales.

`second` tells that the step has two groups, `first` that its sum starts from `start`, and `last`
that the sum is complete with this step and goes out.
"""
