# amaranth: UnusedElaboratable=no
"""The core's protocol: when it looks at what, in Amaranth's own simulator."""

from collections.abc import Callable, Coroutine
from typing import Any

from amaranth.sim import Simulator, SimulatorContext

from scalebox.rtl.dot.core import LATENCY_CYCLES, TERM_CYCLES, DotCore

from .exact import bits_of


def operand(*significands: int, exponent: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    """Return an operand with lanes 0 and 32 as given and no other."""
    lanes = [0] * 64
    for place, significand in zip((0, 32), significands, strict=False):
        lanes[place] = significand
    return {"significand": lanes, "exponent": list(exponent)}


def simulate(bench: Callable[[SimulatorContext, DotCore], Coroutine[Any, Any, None]]) -> None:
    dut = DotCore()
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)

    async def testbench(ctx: SimulatorContext) -> None:
        await bench(ctx, dut)

    simulator.add_testbench(testbench)
    simulator.run()


async def steps(
    ctx: SimulatorContext,
    dut: DotCore,
    script: list[tuple[Any, Any]],
    controls: list[dict[str, int]],
) -> list[int]:
    """Play operands and, apart from them, controls, an entry a cycle; return `o` of each cycle."""
    seen: list[int] = []
    for cycle in range(max(len(script), len(controls)) + 1):
        a, b = script[cycle] if cycle < len(script) else (operand(), operand())
        ctx.set(dut.a, a)
        ctx.set(dut.b, b)
        control = controls[cycle] if cycle < len(controls) else {}
        for name in ("add", "first", "second", "start"):
            ctx.set(getattr(dut, name), control.get(name, 0))
        seen.append(ctx.get(dut.o))
        await ctx.tick("sync")
    return seen


def test_operands_controls_and_sum_keep_the_stated_distances() -> None:
    async def bench(ctx: SimulatorContext, dut: DotCore) -> None:
        for stray in (-1, 0, 1):
            # Only operands of one cycle are not zero: controls a cycle off add nothing.
            controls: list[dict[str, int]] = [{} for _ in range(8)]
            controls[TERM_CYCLES + stray] = {"add": 1, "first": 1, "start": bits_of(1.0)}
            seen = await steps(ctx, dut, [(operand(2), operand(3))], controls)
            wanted = 7.0 if stray == 0 else 1.0
            assert seen[LATENCY_CYCLES + stray] == bits_of(wanted)
            assert seen[-1] == bits_of(wanted)
            assert LATENCY_CYCLES == dut.latency_cycles == TERM_CYCLES + 1

    simulate(bench)


def test_a_step_a_cycle_accumulates_and_the_first_one_starts_anew() -> None:
    async def bench(ctx: SimulatorContext, dut: DotCore) -> None:
        script = [(operand(count), operand(1)) for count in (1, 2, 3, 4, 5)]
        add = {"add": 1}
        begin = {**add, "first": 1}
        idle = {"first": 1, "second": 1, "start": bits_of(0.5)}
        controls: list[dict[str, int]] = [{}] * TERM_CYCLES + [begin, add, idle, begin, add]
        seen = await steps(ctx, dut, script, controls)
        # 1, 1 + 2, nothing, 4, 4 + 5: the step in the gap is never added, nor does it begin a sum.
        found = seen[LATENCY_CYCLES:]
        assert found == [bits_of(value) for value in (1, 3, 3, 4, 9)]

    simulate(bench)


def test_the_second_group_is_added_after_the_first_and_only_where_told() -> None:
    async def bench(ctx: SimulatorContext, dut: DotCore) -> None:
        # The terms are 2^24 and 1; to 1, only the second one still adds after the first.
        script = [(operand(1, 1, exponent=(24, 0)), operand(1, 1))] * 2
        begin = {"add": 1, "first": 1}
        controls: list[dict[str, int]] = [{}] * TERM_CYCLES + [begin, {**begin, "second": 1}]
        seen = await steps(ctx, dut, script, controls)
        assert seen[LATENCY_CYCLES:] == [bits_of(2.0**24), bits_of(2.0**24)]
        script = [(operand(1, 3, exponent=(2, 0)), operand(1, 1))] * 2
        seen = await steps(ctx, dut, script, controls)
        assert seen[LATENCY_CYCLES:] == [bits_of(4.0), bits_of(7.0)]

    simulate(bench)
