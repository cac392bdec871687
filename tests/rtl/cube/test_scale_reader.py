"""The scale reader turns requests into beats: in order, without a gap, none lost under stalls."""

from __future__ import annotations

import random
from typing import Any

import pytest
from amaranth.sim import Simulator

from scalebox.codegen.isa.scale_unit import BEATS_BYTES
from scalebox.rtl.cube.scale_reader import ScaleReader

BASE, BLOCKS = 9, 3
REQUESTS = [(tile, block) for tile in range(4) for block in range(BLOCKS)]


def read(beat_bytes: int, *, idle: float, stall: float) -> tuple[list[int], list[int]]:
    """Return beats, each the address of its word, and the cycles in which they were taken."""
    dut, chance = ScaleReader(beat_bytes=beat_bytes, left=True), random.Random(2)
    wanted = len(REQUESTS) * 32 // beat_bytes
    beats: list[int] = []
    cycles: list[int] = []

    async def memory(ctx: Any) -> None:
        while True:
            _, _, enable, address = await ctx.tick().sample(dut.memory.enable, dut.memory.address)
            if enable:
                ctx.set(dut.memory.data, address)

    async def ask(ctx: Any) -> None:
        ctx.set(dut.base, BASE)
        ctx.set(dut.blocks, BLOCKS)
        for tile, block in REQUESTS:
            while chance.random() < idle:
                await ctx.tick()
            ctx.set(dut.request.payload, {"tile": tile, "block": block})
            ctx.set(dut.request.valid, 1)
            await ctx.tick().until(dut.request.ready)
            ctx.set(dut.request.valid, 0)

    async def take(ctx: Any) -> None:
        cycle, held = 0, None
        while len(beats) < wanted:
            ready = chance.random() >= stall
            ctx.set(dut.beat.ready, ready)
            _, _, valid, payload = await ctx.tick().sample(
                dut.beat.valid, dut.beat.payload.as_value()
            )
            assert held is None or (valid and payload == held), "a beat stays until it is taken"
            held = payload if valid and not ready else None
            if valid and ready:
                beats.append(payload)
                cycles.append(cycle)
            cycle += 1

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(memory, background=True)
    sim.add_testbench(ask, background=True)
    sim.add_testbench(take)
    sim.run()
    return beats, cycles


@pytest.mark.parametrize("beat_bytes", BEATS_BYTES)
@pytest.mark.parametrize(("idle", "stall"), [(0, 0), (0, 0.5), (0.5, 0), (0.5, 0.5)])
def test_beats_are_those_of_the_boxes_in_order(beat_bytes: int, idle: float, stall: float) -> None:
    beats, cycles = read(beat_bytes, idle=idle, stall=stall)
    each = 32 // beat_bytes
    boxes = [BASE + tile * BLOCKS + block for tile, block in REQUESTS]
    assert beats == [box * each + index for box in boxes for index in range(each)]
    if not idle and not stall:
        assert cycles == [ScaleReader.READ_CYCLES + index for index in range(len(beats))]
