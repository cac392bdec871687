"""The sequencer walks a mad as the instruction set says, at one step a cycle and under stalls."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from amaranth.sim import Simulator

from scalebox.codegen.isa.vocabulary import ElementType, MadInit
from scalebox.rtl.cube.sequencer import Sequencer

if TYPE_CHECKING:
    from collections.abc import Iterator


class Mad(NamedTuple):
    m: int
    k: int
    n: int
    narrow: bool = False
    a: int = 3
    b: int = 5
    c: int = 7
    bias: int = 11

    def word(self) -> dict[str, int]:
        kind = ElementType.E1M2 if self.narrow else ElementType.E5M2
        rest = {name: getattr(self, name) for name in ("m", "k", "n", "a", "b", "c", "bias")}
        return {**rest, "a_type": kind, "b_type": kind, "init": MadInit.BIAS}


class Step(NamedTuple):
    a: int
    b: int
    c: int
    bias: int
    rows: int
    columns: int
    elements: int
    first: int
    last: int
    end: int


def bits(count: int) -> int:
    return (1 << count) - 1


def steps(mad: Mad) -> Iterator[Step]:
    """Say it once more, from the table of the instruction set."""
    per_line = 64 if mad.narrow else 32
    row_tiles, column_tiles = -(-mad.m // 16), -(-mad.n // 16)
    blocks = -(-mad.k // per_line)
    for row in range(row_tiles):
        for column in range(column_tiles):
            for block in range(blocks):
                last = block == blocks - 1
                yield Step(
                    mad.a + block * row_tiles + row,
                    mad.b + block * column_tiles + column,
                    mad.c + column * row_tiles + row,
                    mad.bias + column,
                    bits(min(16, mad.m - row * 16)),
                    bits(min(16, mad.n - column * 16)),
                    bits(min(per_line, mad.k - block * per_line)),
                    block == 0,
                    last,
                    last and row == row_tiles - 1 and column == column_tiles - 1,
                )


def walk(mads: list[Mad], *, stall: float, seed: int = 1) -> tuple[list[Step], list[int]]:
    """Return the steps taken, lines read through a synchronous memory, and the cycle of each."""
    dut, chance = Sequencer(), random.Random(seed)
    taken: list[Step] = []
    cycles: list[int] = []
    wanted = sum(len(list(steps(mad))) for mad in mads)

    async def memories(ctx: Any) -> None:
        a, b = dut.l0a, dut.l0b
        while True:
            _, _, read_a, at_a, read_b, at_b = await ctx.tick().sample(
                a.enable, a.address, b.enable, b.address
            )
            if read_a:
                ctx.set(a.data, at_a)
            if read_b:
                ctx.set(b.data, at_b)

    async def give(ctx: Any) -> None:
        for mad in mads:
            ctx.set(dut.mad.payload, mad.word())
            ctx.set(dut.mad.valid, 1)
            await ctx.tick().until(dut.mad.ready)
            ctx.set(dut.mad.valid, 0)

    async def take(ctx: Any) -> None:
        cycle, held = 0, None
        while len(taken) < wanted:
            ready = chance.random() >= stall
            ctx.set(dut.step.ready, ready)
            _, _, valid, payload, a, b = await ctx.tick().sample(
                dut.step.valid, dut.step.payload, dut.l0a.data, dut.l0b.data
            )
            now = Step(a, b, *(payload[name] for name in Step._fields[2:])) if valid else None
            assert held is None or now == held, "a step stays until it is taken"
            held = now if not ready else None
            if now is not None and ready:
                taken.append(now)
                cycles.append(cycle)
            cycle += 1

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(memories, background=True)
    sim.add_testbench(give, background=True)
    sim.add_testbench(take)
    sim.run()
    return taken, cycles


SHAPES = [
    Mad(1, 1, 1),
    Mad(16, 32, 16),
    Mad(17, 33, 31),
    Mad(40, 100, 50),
    Mad(40, 100, 50, narrow=True),
    Mad(16, 64, 16, narrow=True),
    Mad(15, 65, 33, narrow=True),
    Mad(3, 127, 1, narrow=True, a=500, b=0, c=1000, bias=250),
]


@pytest.mark.parametrize("mad", SHAPES, ids=str)
def test_steps_are_those_of_the_instruction_set_without_a_gap(mad: Mad) -> None:
    taken, cycles = walk([mad], stall=0)
    assert taken == list(steps(mad))
    assert cycles == [Sequencer.FIRST_STEP_CYCLES + index for index in range(len(taken))]


@pytest.mark.parametrize("stall", [0.3, 0.8])
def test_mads_one_after_another_survive_any_stall(stall: float) -> None:
    taken, _ = walk(SHAPES, stall=stall)
    assert taken == [step for mad in SHAPES for step in steps(mad)]
