"""The cocotb bench of `scale_decode`: clock, reset, a box stream in, a decoded stream out."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from ..shapes import DecodedBox, pack_box, unpack_decoded_box
from .streams import Monitor, Port, Sink, Source, never

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ScaleDecodeBench", "bench_rng"]

_PERIOD_NS = 10
_RESET_CYCLES = 2
_PATIENCE_CYCLES_A_BOX = 200


def bench_rng() -> random.Random:
    """Return a generator that follows cocotb's seed of the running test."""
    return random.Random(cocotb.RANDOM_SEED)


class ScaleDecodeBench:
    """Drive the unit with boxes and collect what it decodes.

    Args:
        dut: The top of the design.
        idle: When the source holds back a box; never, if not given.
        stall: When the sink takes nothing; never, if not given.
    """

    def __init__(
        self, dut: Any, *, idle: Iterator[bool] | None = None, stall: Iterator[bool] | None = None
    ) -> None:
        self._dut = dut
        boxes, decoded = Port(dut, "i"), Port(dut, "o")
        self.source = Source(boxes, pause=idle or never(), rng=bench_rng())
        self.sink = Sink(decoded, pause=stall or never())
        self.entered = Monitor(boxes)
        self.left = Monitor(decoded)

    async def start(self) -> None:
        """Start the clock, reset the unit, then start everything else."""
        self._dut.rst.value = 1
        Clock(self._dut.clk, _PERIOD_NS, "ns").start()
        await ClockCycles(self._dut.clk, _RESET_CYCLES)
        self._dut.rst.value = 0
        await RisingEdge(self._dut.clk)
        for part in (self.source, self.sink, self.entered, self.left):
            part.start()

    async def reset(self) -> None:
        """Reset the unit in the midst of things; whatever was on its way is lost."""
        self._dut.rst.value = 1
        self.source.clear()
        await ClockCycles(self._dut.clk, _RESET_CYCLES)
        self._dut.rst.value = 0

    async def run(self, boxes: Sequence[Sequence[int]]) -> list[DecodedBox]:
        """Send boxes, and return what came out, one decoded box each, in order."""
        before = len(self.left.transfers)
        self.source.queue.extend(pack_box(box) for box in boxes)
        for _ in range(_PATIENCE_CYCLES_A_BOX * (len(boxes) + 1)):
            if len(self.left.transfers) - before >= len(boxes):
                break
            await RisingEdge(self._dut.clk)
        # Some cycles more, for a word too many to show itself.
        await ClockCycles(self._dut.clk, _RESET_CYCLES + 2)
        words = self.left.words[before:]
        assert len(words) == len(boxes), f"{len(boxes)} boxes must come out, not {len(words)}"
        return [unpack_decoded_box(word) for word in words]
