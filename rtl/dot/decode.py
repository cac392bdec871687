"""From codes of elements to sign, significand and shift."""

# Amaranth's layouts and `with m.If` are made at run time.
# pyright: reportArgumentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...ir.dtypes.formats import NanStyle
from .formats import ELEMENTS, NARROW_BITS, WIDE_BITS, Element
from .shapes import (
    ELEMENT_TYPE,
    GROUPS,
    LANES,
    LINE,
    OPERAND,
    SCALES,
    SHIFT,
    SHIFTED_LANES,
    SIGNIFICAND,
)

__all__ = ["ElementDecode", "LineDecode"]


class ElementDecode(wiring.Component):
    """Take the code of an element apart, without a clock.

    The value is `(-1)^sign * significand * 2^shift * 2^unit_exponent`; of a 4-bit format the shift
    is part of the significand already. Beside a set `is_nan` or `is_infinity` significand and shift
    mean nothing.

    Args:
        element: The format.

    Attributes:
        code: The code.
        sign: Whether it is negative, zeros included.
        significand: The bits of its magnitude.
        shift: How far they stand to the left.
        is_zero: Whether the value is zero.
        is_nan: Whether it is NaN.
        is_infinity: Whether it is an infinity.
    """

    def __init__(self, element: Element) -> None:
        self._element = element
        super().__init__(
            {
                "code": In(unsigned(element.bits)),
                "sign": Out(1),
                "significand": Out(SIGNIFICAND),
                "shift": Out(SHIFT),
                "is_zero": Out(1),
                "is_nan": Out(1),
                "is_infinity": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        row = self._element.row
        mantissa = self.code[: row.mantissa_bits]
        field = self.code[row.mantissa_bits : -1]
        magnitude = self.code[:-1]
        is_normal = field.any()
        significand = Cat(mantissa, is_normal)
        shift = (field - is_normal)[: len(field)]

        m.d.comb += self.sign.eq(self.code[-1])
        m.d.comb += self.is_zero.eq(~magnitude.any())
        if self._element.bits == NARROW_BITS:
            m.d.comb += self.significand.eq(significand << shift)
        else:
            m.d.comb += self.significand.eq(significand)
            m.d.comb += self.shift.eq(shift)
        match row.nan:
            case NanStyle.NONE:
                pass
            case NanStyle.ALL_ONES:
                m.d.comb += self.is_nan.eq(magnitude.all())
            case NanStyle.IEEE:
                m.d.comb += self.is_nan.eq(field.all() & mantissa.any())
        if row.has_infinity:
            m.d.comb += self.is_infinity.eq(field.all() & ~mantissa.any())
        return m


class LineDecode(wiring.Component):
    """Decode a line of elements with its scales into an operand, without a clock.

    Elements that a step must not use are to be zero in the line.

    Attributes:
        line: The elements, the first in the low bits.
        element_type: Their `ElementType`.
        scales: The scales of the line's groups; one of 8-bit elements has only the first.
        operand: What the cores take.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "line": In(LINE),
                "element_type": In(ELEMENT_TYPE),
                "scales": In(SCALES),
                "operand": Out(OPERAND),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Return the circuit."""
        m = Module()
        chosen = {
            kind: Signal(name=f"is_{element.row.name.lower()}")
            for kind, element in ELEMENTS.items()
        }
        for kind, signal in chosen.items():
            m.d.comb += signal.eq(self.element_type == kind)

        lanes = [self._lane(m, lane, chosen) for lane in range(LANES)]
        shifted = lanes[:SHIFTED_LANES]
        has_nan = Signal()
        m.d.comb += has_nan.eq(Cat(lane["is_nan"] for lane in shifted).any())
        m.d.comb += self.operand.sign.eq(Cat(lane["sign"] for lane in lanes))
        for index, lane in enumerate(lanes):
            m.d.comb += self.operand.significand[index].eq(lane["significand"])
        for index, lane in enumerate(shifted):
            m.d.comb += self.operand.shift[index].eq(lane["shift"])
        m.d.comb += self.operand.is_infinity.eq(Cat(lane["is_infinity"] for lane in shifted))
        m.d.comb += self.operand.is_zero.eq(Cat(lane["is_zero"] for lane in shifted))
        m.d.comb += self.operand.is_nan.eq(self.scales.is_nan | has_nan)

        unit = Signal(range(min(each.unit_exponent for each in ELEMENTS.values()), 0))
        for kind, element in ELEMENTS.items():
            with m.If(chosen[kind]):
                m.d.comb += unit.eq(element.unit_exponent)
        for group in range(GROUPS):
            m.d.comb += self.operand.exponent[group].eq(self.scales.exponent[group] + unit)
        return m

    def _lane(self, m: Module, lane: int, chosen: Any) -> dict[str, Value]:
        """Return the parts of a lane, each zero where the line's format does not use it."""
        parts: dict[str, Value] = {
            name: Const(0)
            for name in ("sign", "significand", "shift", "is_zero", "is_nan", "is_infinity")
        }
        for kind, element in ELEMENTS.items():
            if element.bits == WIDE_BITS and lane >= SHIFTED_LANES:
                continue
            decode = ElementDecode(element)
            m.submodules[f"{element.row.name.lower()}_{lane}"] = decode
            m.d.comb += decode.code.eq(self.line.word_select(lane, element.bits))
            for name, other in parts.items():
                parts[name] = Mux(chosen[kind], getattr(decode, name), other)
        return parts
