"""cocotb tests of the scale-decode unit; a simulator runs them, pytest starts the simulator."""

from collections.abc import Iterator
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from scalebox.ir import numerics
from scalebox.ir.dtypes import DType
from scalebox.rtl.cosim.bench import ScaleDecodeBench, bench_rng
from scalebox.rtl.cosim.streams import bursts, never, sometimes
from scalebox.rtl.scale_decode import ScaleDecode
from scalebox.rtl.shapes import DecodedBox, pack_box

LANES = 32


def random_boxes(count: int) -> list[list[int]]:
    rng = bench_rng()
    return [[rng.randrange(256) for _ in range(LANES)] for _ in range(count)]


def check(boxes: list[list[int]], results: list[DecodedBox]) -> None:
    """Hold the hardware's exponents against the values that the reference decodes."""
    values = numerics.decode(np.array(boxes, dtype=np.uint8), DType.E8M0)
    exponents = np.array([result.exponents for result in results])
    is_nan = np.array([result.is_nan for result in results])
    np.testing.assert_array_equal(is_nan, np.isnan(values))
    powers = np.ldexp(np.float32(1), exponents[~is_nan])
    np.testing.assert_array_equal(powers.view(np.uint32), values[~is_nan].view(np.uint32))


@cocotb.test()
async def every_code_in_every_lane_equals_the_reference(dut: Any) -> None:
    boxes = [[(first + 3 * lane) % 256 for lane in range(LANES)] for first in range(256)]
    bench = ScaleDecodeBench(dut)
    await bench.start()
    check(boxes, await bench.run(boxes))


@cocotb.test()
async def a_box_passes_every_cycle_and_takes_the_stated_latency(dut: Any) -> None:
    boxes = random_boxes(100)
    bench = ScaleDecodeBench(dut)
    await bench.start()
    check(boxes, await bench.run(boxes))
    entered = [transfer.cycle for transfer in bench.entered.transfers]
    left = [transfer.cycle for transfer in bench.left.transfers]
    assert entered == list(range(entered[0], entered[0] + len(boxes)))
    assert left == [cycle + ScaleDecode.LATENCY_CYCLES for cycle in entered]


@cocotb.test()
@cocotb.parametrize(idle=["never", "often", "bursts"], stall=["never", "often", "bursts"])
async def nothing_is_lost_or_doubled_under_back_pressure(dut: Any, idle: str, stall: str) -> None:
    rng = bench_rng()
    patterns = {
        "never": never,
        "often": lambda: sometimes(0.7, rng),
        "bursts": lambda: bursts(12, rng),
    }
    boxes = random_boxes(60)
    bench = ScaleDecodeBench(dut, idle=patterns[idle](), stall=patterns[stall]())
    await bench.start()
    check(boxes, await bench.run(boxes))
    assert bench.entered.words == [pack_box(box) for box in boxes]
    assert (bench.left.stalled > 0) == (stall != "never"), "the pattern must have been exercised"


@cocotb.test()
async def a_reset_drops_the_box_inside_and_the_next_run_is_clean(dut: Any) -> None:
    asleep = True

    def until_woken() -> Iterator[bool]:
        while True:
            yield asleep

    bench = ScaleDecodeBench(dut, stall=until_woken())
    await bench.start()
    bench.source.queue.extend(pack_box(box) for box in random_boxes(5))
    await ClockCycles(dut.clk, 10)
    assert len(bench.entered.transfers) == 1, "the register holds one box"
    assert dut.o__valid.value == 1
    await bench.reset()
    await ClockCycles(dut.clk, 2)
    assert dut.o__valid.value == 0
    asleep = False
    boxes = random_boxes(20)
    check(boxes, await bench.run(boxes))
    assert len(bench.left.transfers) == len(boxes)
