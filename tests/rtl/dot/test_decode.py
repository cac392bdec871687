# amaranth: UnusedElaboratable=no
"""Decoders of elements and lines, in Amaranth's own simulator."""

import math
import random

import numpy as np
import pytest
from amaranth.sim import Simulator, SimulatorContext

from scalebox.codegen.isa.vocabulary import ElementType
from scalebox.rtl.dot.decode import ElementDecode, LineDecode
from scalebox.rtl.dot.formats import ELEMENTS

from .exact import value_table

KINDS = pytest.mark.parametrize("kind", list(ElementType), ids=lambda kind: kind.name)


@KINDS
def test_every_code_of_a_format_is_its_value(kind: ElementType) -> None:
    element = ELEMENTS[kind]
    dut = ElementDecode(element)
    values = value_table(kind)

    async def check(ctx: SimulatorContext) -> None:
        for code, value in enumerate(values):
            ctx.set(dut.code, code)
            assert ctx.get(dut.is_nan) == math.isnan(value)
            assert ctx.get(dut.is_infinity) == math.isinf(value)
            assert ctx.get(dut.is_zero) == (value == 0)
            if not math.isnan(value):
                assert ctx.get(dut.sign) == np.signbit(value)
            if math.isfinite(value):
                exponent = ctx.get(dut.shift) + element.unit_exponent
                assert math.ldexp(ctx.get(dut.significand), exponent) == abs(value)

    simulator = Simulator(dut)
    simulator.add_testbench(check)
    simulator.run()


@KINDS
def test_a_line_decodes_lane_by_lane_and_carries_scale_and_unit(kind: ElementType) -> None:
    dut = LineDecode()
    values = value_table(kind)
    rng = random.Random(int(kind))
    lanes = 256 // kind.bits

    async def check(ctx: SimulatorContext) -> None:
        for _ in range(24):
            # Few lines without a NaN would be drawn from all codes.
            most = rng.choice([1 << kind.bits, 0x78 if kind.bits == 8 else 16])
            codes = [rng.randrange(most) for _ in range(lanes)]
            scales = [rng.randrange(-127, 128) for _ in range(2)]
            nan = rng.randrange(4)
            ctx.set(dut.line, sum(code << kind.bits * lane for lane, code in enumerate(codes)))
            ctx.set(dut.element_type, kind)
            ctx.set(dut.scales, {"exponent": scales, "is_nan": nan})
            operand = ctx.get(dut.operand)
            has_nan = bool(np.isnan(values[codes]).any())
            assert operand.is_nan == nan | has_nan
            unit = ELEMENTS[kind].unit_exponent
            assert [operand.exponent[0], operand.exponent[1]] == [each + unit for each in scales]
            for lane in range(64):
                value = values[codes[lane]] if lane < lanes else 0.0
                shift = operand.shift[lane] if lane < 32 else 0
                if math.isfinite(value):
                    magnitude = math.ldexp(operand.significand[lane], shift + unit)
                    assert magnitude == abs(value)
                if not math.isnan(value):
                    assert operand.sign >> lane & 1 == np.signbit(value)
                if lane < 32:
                    assert operand.is_infinity >> lane & 1 == math.isinf(value)
                    assert operand.is_zero >> lane & 1 == (value == 0)

    simulator = Simulator(dut)
    simulator.add_testbench(check)
    simulator.run()
