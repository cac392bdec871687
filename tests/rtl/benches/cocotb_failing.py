"""cocotb tests for the tests of the runner: one passes, one fails."""

from typing import Any

import cocotb
from cocotb.triggers import Timer


@cocotb.test()
async def passes(dut: Any) -> None:
    dut.a.value = 255
    dut.b.value = 0
    await Timer(1, "ns")
    assert dut.is_nan.value == 1


@cocotb.test()
async def fails(dut: Any) -> None:
    dut.a.value = 0
    dut.b.value = 0
    await Timer(1, "ns")
    assert dut.is_nan.value == 1, "zero is not NaN"
