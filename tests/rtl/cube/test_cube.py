"""A cube with few processing elements in Amaranth's simulator: bits, cycles, and nothing beyond."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from scalebox.codegen.isa.scale_unit import BEATS_BYTES
from scalebox.codegen.isa.vocabulary import ElementType, MadInit
from scalebox.ir.target import load_target
from scalebox.rtl.cube.cube import Cube
from scalebox.sim.scales.supply import starved_with_two_boxes

from .mads import Mad, random_mad
from .memories import BIAS, JUNK, A, B, C, Memories

ROWS, COLUMNS = 2, 1
L_CYCLES = 9
PATIENCE_CYCLES = 400
E4M3, E5M2, E2M1, E1M2 = ElementType


class Bench:
    """One cube and its memories, a mad after another."""

    def __init__(self, *, beat_bytes: int = 32) -> None:
        self.dut = Cube(beat_bytes=beat_bytes, rows=ROWS, columns=COLUMNS)
        self.beat_bytes = beat_bytes

    def run(self, mads: list[Mad]) -> list[tuple[Memories, int]]:
        """Return memories and cycles of each mad."""
        done: list[tuple[Memories, int]] = []

        async def bench(ctx: Any) -> None:
            for mad in mads:
                memories = Memories(mad)
                done.append((memories, await self.mad(ctx, mad, memories)))

        sim = Simulator(self.dut)
        sim.add_clock(1e-6)
        sim.add_testbench(bench)
        sim.run()
        return done

    async def mad(self, ctx: Any, mad: Mad, memories: Memories) -> int:
        dut: Any = self.dut
        m, k, n = memories.shape
        word = {"m": m, "k": k, "n": n, "a_type": mad.a_type, "b_type": mad.b_type}
        places = {"a": A, "b": B, "c": C, "bias": BIAS}
        ctx.set(dut.mad.payload, {**word, "init": mad.init, **places})
        ctx.set(dut.mad.valid, 1)
        reads = [
            (dut.l0a, memories.l0a, 512),
            (dut.l0b, memories.l0b, 512),
            (dut.scale_a, memories.scale_a, self.beat_bytes),
            (dut.scale_b, memories.scale_b, self.beat_bytes),
            (dut.bias, memories.bias, 64),
            (dut.l0c_read, memories.l0c.view(np.uint8), 1024),
        ]
        write = dut.l0c_write
        for cycle in range(PATIENCE_CYCLES):
            asked = [(ctx.get(port.enable), ctx.get(port.address)) for port, _, _ in reads]
            is_done = ctx.get(dut.done)
            assert cycle == 0 or not ctx.get(dut.mad.ready), "a mad is taken when none is under way"
            if ctx.get(write.enable):
                box = memories.l0c[ctx.get(write.address) * 256 :][:256]
                values = ctx.get(write.data)
                rows, columns = ctx.get(write.rows), ctx.get(write.columns)
                for place in range(256):
                    if rows >> place // 16 & 1 and columns >> place % 16 & 1:
                        box[place] = values >> place * 32 & 0xFFFFFFFF
            await ctx.tick()
            ctx.set(dut.mad.valid, 0)
            for (port, memory, size), (enable, address) in zip(reads, asked, strict=True):
                if enable:
                    data = memory[address * size :][:size]
                    assert len(data) == size, "reads stay within the memory"
                    ctx.set(port.data, int.from_bytes(data.tobytes(), "little"))
            if is_done:
                return cycle + 1
        pytest.fail("the mad does not end")


def steps_of(mad: Mad) -> int:
    (m, k), n = mad.a.shape, mad.b.shape[1]
    return -(-m // 16) * -(-n // 16) * -(-k * mad.a_type.bits // 256)


def check(mad: Mad, memories: Memories) -> None:
    """Where processing elements are, the bits are the reference's; all else is untouched."""
    expected, found = mad.expected(), memories.result()
    computed = np.zeros(expected.shape, bool)
    for i in range(ROWS):
        for j in range(COLUMNS):
            computed[i::16, j::16] = True
    before = Memories(mad)
    untouched = memories.l0c == before.l0c
    for i, j in np.argwhere(computed):
        assert found[i, j] == expected[i, j], f"element ({i}, {j}) of {mad}"
        untouched[memories.c_word(i, j)] = True
    assert untouched.all(), f"{mad} writes only what is valid"


SHAPES = [
    ((1, 1, 1), (E4M3, E4M3), MadInit.ZERO),
    ((2, 33, 17), (E4M3, E5M2), MadInit.ACC),
    ((18, 64, 1), (E5M2, E4M3), MadInit.BIAS),
    ((17, 96, 17), (E5M2, E5M2), MadInit.ACC),
    ((1, 1, 2), (E2M1, E2M1), MadInit.BIAS),
    ((2, 64, 17), (E2M1, E1M2), MadInit.ACC),
    ((17, 33, 1), (E1M2, E2M1), MadInit.ZERO),
    ((18, 160, 18), (E1M2, E1M2), MadInit.ACC),
]


@pytest.mark.parametrize("special", [0, 1], ids=["finite", "special"])
def test_mads_one_after_another_are_exact_in_steps_and_a_constant(special: int) -> None:
    rng = np.random.default_rng(5)
    mads = [random_mad(rng, *each, special=special) for each in SHAPES]
    for mad, (memories, cycles) in zip(mads, Bench().run(mads), strict=True):
        check(mad, memories)
        assert cycles - L_CYCLES == steps_of(mad), str(mad)


@pytest.mark.parametrize("beat_bytes", [each for each in BEATS_BYTES if each < 32])
def test_a_narrow_beat_costs_cycles_and_no_bits(beat_bytes: int) -> None:
    rng = np.random.default_rng(6)
    mads = [random_mad(rng, *SHAPES[index]) for index in (1, 5)]
    bench = Bench(beat_bytes=beat_bytes)
    for mad, (memories, cycles) in zip(mads, bench.run(mads), strict=True):
        check(mad, memories)
        assert cycles - bench.dut.latency_cycles - steps_of(mad) == starved(mad, beat_bytes)


def starved(mad: Mad, beat_bytes: int) -> int:
    """Return the cycles in which a cube waits for scales that nobody has read ahead."""
    (m, k), n = mad.a.shape, mad.b.shape[1]
    return starved_with_two_boxes(
        tiles=-(-m // 16) * -(-n // 16),
        groups=-(-k // 32),
        paired=mad.a_type.bits == 4,
        beats=32 // beat_bytes,
        first_record=0,
        head=0,
    )


def test_the_constant_is_stated_and_within_the_head_of_the_machine() -> None:
    bench = Bench()
    bench.run([])
    assert bench.dut.latency_cycles == L_CYCLES <= load_target("a5").mad_head_cycles


def test_junk_is_junk() -> None:
    """The byte around the operands is NaN in every format that has one, and not zero in FP4."""
    assert JUNK & 0x7F == 0x7F
    assert np.isnan(np.full(4, JUNK, np.uint8).view(np.float32)).all()
