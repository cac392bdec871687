# amaranth: UnusedElaboratable=no
"""The unit behind its streams, in Amaranth's own simulator."""

import random
from typing import Any, NamedTuple

import pytest
from amaranth.hdl import ResetInserter, Signal
from amaranth.sim import Simulator, SimulatorContext

from scalebox.codegen.isa.vocabulary import ElementType
from scalebox.rtl.dot.unit import DotUnit

from .exact import MIXES, added, bits_of, code_of, term_bits

MOST_SUMS = 7
"""Sums that the unit keeps when nobody takes them."""


class Step(NamedTuple):
    """A step: codes by lane, scale codes by group."""

    kinds: tuple[ElementType, ElementType]
    a: list[int]
    b: list[int]
    a_scales: list[int]
    b_scales: list[int]
    second: bool
    first: bool
    last: bool
    start: int

    def word(self) -> dict[str, Any]:
        bits = self.kinds[0].bits
        a, b = (
            sum(code << bits * lane for lane, code in enumerate(codes))
            for codes in (self.a, self.b)
        )
        scales = [
            {
                "exponent": [code - 127 for code in codes],
                "is_nan": sum((code == 255) << group for group, code in enumerate(codes)),
            }
            for codes in (self.a_scales, self.b_scales)
        ]
        return {
            "a": a,
            "b": b,
            "a_type": self.kinds[0],
            "b_type": self.kinds[1],
            "a_scales": scales[0],
            "b_scales": scales[1],
            "second": self.second,
            "first": self.first,
            "last": self.last,
            "start": self.start,
        }


def draw(rng: random.Random, count: int, *, last: float = 0.4) -> list[Step]:
    """Draw steps of all mixes, in sums of random lengths; the very last step ends a sum."""
    steps: list[Step] = []
    first = True
    for index in range(count):
        kinds = rng.choice(MIXES)
        narrow = kinds[0].bits == 4
        lanes = 64 if narrow else 32
        most = 16 if narrow else 256 if rng.random() < 0.1 else 0x78
        ends = index == count - 1 or rng.random() < last
        steps.append(
            Step(
                kinds=kinds,
                a=[rng.randrange(most) for _ in range(lanes)],
                b=[rng.randrange(most) for _ in range(lanes)],
                a_scales=[
                    rng.choice([rng.randrange(110, 140), 255, 0][: 1 + 2 * (rng.random() < 0.05)])
                ]
                * 2,
                b_scales=[rng.randrange(110, 140), rng.randrange(110, 140)],
                second=narrow and rng.random() < 0.7,
                first=first,
                last=ends,
                start=bits_of(rng.choice([0.0, -0.0, 1.5, -1e30])),
            )
        )
        first = ends
    return steps


def expected(steps: list[Step]) -> list[int]:
    sums: list[int] = []
    total = 0
    for step in steps:
        total = step.start if step.first else total
        for group in range(1 + step.second):
            cut = slice(32 * group, 32 * group + 32)
            scales = step.a_scales[group], step.b_scales[group]
            total = added(total, term_bits(step.a[cut], step.b[cut], step.kinds, *scales))
        if step.last:
            sums.append(total)
    return sums


class Played(NamedTuple):
    """What was seen: (cycle, sum) of every transfer, and the cycle in which each step was taken."""

    sums: list[tuple[int, int]]
    taken: list[int]


def play(
    steps: list[Step],
    *,
    idle: float = 0.0,
    stall: float = 0.0,
    cycles: int | None = None,
    seed: int = 0,
    reset_in: int | None = None,
) -> Played:
    """Offer steps and take sums with random pauses; hold the rules of streams in every cycle.

    Without `cycles` it goes on until all sums are taken. A reset forgets what came before it.
    """
    dut = DotUnit()
    played = Played([], [])
    total = sum(step.last for step in steps)
    rng = random.Random(seed)

    async def bench(ctx: SimulatorContext) -> None:
        offers = False
        held: int | None = None
        cycle = 0
        while cycle != cycles and (cycles is not None or len(played.sums) < total):
            if reset_in == cycle:
                for port in (dut.i.valid, dut.o.ready):
                    ctx.set(port, 0)
                await reset(ctx)
                offers, held = False, None
                played.sums.clear()
                played.taken.clear()
                assert not ctx.get(dut.o.valid)
            place = len(played.taken)
            if not offers and place < len(steps) and rng.random() >= idle:
                ctx.set(dut.i.payload, steps[place].word())
                offers = True
            ctx.set(dut.i.valid, offers)
            ready, valid = ctx.get(dut.i.ready), ctx.get(dut.o.valid)
            takes = rng.random() >= stall
            ctx.set(dut.o.ready, takes)
            # Nothing that the unit says depends on what it is told in the same cycle.
            assert (ctx.get(dut.i.ready), ctx.get(dut.o.valid)) == (ready, valid)
            if held is not None:
                assert valid
                assert ctx.get(dut.o.payload) == held
            held = ctx.get(dut.o.payload) if valid and not takes else None
            if valid and takes:
                played.sums.append((cycle, ctx.get(dut.o.payload)))
            if offers and ready:
                played.taken.append(cycle)
                offers = False
            await ctx.tick("sync")
            cycle += 1

    async def reset(ctx: SimulatorContext) -> None:
        ctx.set(restart, 1)
        await ctx.tick("sync")
        ctx.set(restart, 0)

    restart = Signal()
    simulator = Simulator(ResetInserter(restart)(dut))
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return played


@pytest.mark.parametrize(("idle", "stall"), [(0, 0), (0.6, 0), (0, 0.7), (0.4, 0.4)])
def test_sums_are_right_and_in_order_under_pauses(idle: float, stall: float) -> None:
    steps = draw(random.Random(5), 60)
    played = play(steps, idle=idle, stall=stall)
    assert [bits for _, bits in played.sums] == expected(steps)


def test_a_step_a_cycle_with_the_stated_latency_however_short_the_sums() -> None:
    for last in (1.0, 0.3):
        steps = draw(random.Random(6), 40, last=last)
        played = play(steps)
        assert played.taken == list(range(40))
        ends = [cycle for cycle, step in enumerate(steps) if step.last]
        latency = DotUnit().latency_cycles
        assert [cycle for cycle, _ in played.sums] == [cycle + latency for cycle in ends]


def test_sums_that_nobody_takes_are_kept_and_stop_the_steps() -> None:
    steps = draw(random.Random(7), 30, last=1.0)
    played = play(steps, stall=2.0, cycles=60)
    assert not played.sums
    assert played.taken == list(range(MOST_SUMS))


def test_a_step_that_waits_is_added_once_even_where_a_sum_goes_on_behind_its_last() -> None:
    kind = ElementType.E4M3
    ones = [code_of(kind, 1.0)] * 32
    step = Step((kind, kind), ones, ones, [127, 0], [127, 0], False, False, True, 0)
    steps = [step._replace(first=index == 0) for index in range(MOST_SUMS + 5)]
    played = play(steps, stall=0.8)
    assert [bits for _, bits in played.sums] == [
        bits_of(32.0 * (count + 1)) for count in range(len(steps))
    ]
    assert played.taken[-1] > len(steps), "some had to wait"


def test_a_reset_forgets_steps_and_sums() -> None:
    steps = draw(random.Random(8), 24, last=0.5)
    for moment in (3, 9):
        played = play(steps, stall=0.5, idle=0.2, reset_in=moment)
        assert [bits for _, bits in played.sums] == expected(steps)


def test_a_sum_by_hand() -> None:
    kind = ElementType.E4M3
    codes = [code_of(kind, value) for value in (1.5, -2.0, 0.25)] + [0] * 29
    others = [code_of(kind, value) for value in (2.0, 0.5, 8.0)] + [0] * 29
    step = Step((kind, kind), codes, others, [128, 0], [129, 0], False, True, True, bits_of(10.0))
    # (3 - 1 + 2) * 2 * 4 + 10
    assert [bits for _, bits in play([step]).sums] == [bits_of(42.0)]
