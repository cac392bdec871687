"""A run in a budget of cycles: the same run as without, or cut off where it can no longer fit."""

from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.codegen.executable import Executable, HostProgram, Kernel
from scalebox.codegen.host.program import Launch
from scalebox.codegen.scalars.exprs import Const
from scalebox.ir.errors import SimulationFault
from scalebox.ir.target import Target, load_target
from scalebox.sim import budget
from scalebox.sim.device import simulate
from scalebox.sim.report import SimResult

ENDLESS = "again:\n l1_to_bias l1[0], bias[0], bytes=32\n jump again\n halt"
BODY = {
    "aic": ("l1_to_bias l1[0], bias[0], bytes=32", "nop", "pipe_barrier pipe=all"),
    "aiv": ("ub_to_l1 ub[0], l1[0], lines=1, units=1, ub_pitch=1, l1_pitch=1", "nop"),
}
SET_AND_WAIT = "set_flag src=mte1, dst=m, id=0\nwait_flag src=mte1, dst=m, id=0"


@pytest.fixture
def no_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the bound on instructions hold for the shortest streams too."""
    monkeypatch.setattr(budget, "LEAST_INSTRUCTIONS", 0)


def run(kernels: list[Kernel], target: Target, *, blocks: int = 1, **options: Any) -> SimResult:
    """Run kernels one launch after the other, each of so many blocks, for their cycles only."""
    launches = tuple(Launch(number, (), (), Const(blocks)) for number in range(len(kernels)))
    host = HostProgram("main", (), launches, ())
    executable = Executable("p", "a5", "", tuple(kernels), (host,), "main")
    return simulate(executable, {}, target=target, functional=False, checks="off", **options)


def machine(**settings: int) -> Target:
    return load_target("a5").with_settings({"launch_seconds": 0, **settings})


@st.composite
def texts(draw: st.DrawFn, core: str) -> str:
    """Draw nested loops of scalar instructions, work for pipes and flags, with branches of both kinds."""
    lines: list[str] = []
    labels = count()

    def body(depth: int) -> None:
        for _ in range(draw(st.integers(0, 3))):
            match draw(st.integers(0, 3 if depth else 2)):
                case 0 | 1:
                    lines.append(draw(st.sampled_from(BODY[core])))
                case 2 if core == "aic":
                    lines.append(SET_AND_WAIT)
                case 2:
                    label = f"over{next(labels)}"
                    lines.extend((f"beqz x{draw(st.integers(0, 5))}, {label}", "nop", f"{label}:"))
                case _:
                    label, rounds = f"loop{next(labels)}", draw(st.integers(1, 12))
                    lines.extend((f"movi x{depth}, {rounds}", f"{label}:"))
                    body(depth - 1)
                    lines.extend((f"subi x{depth}, x{depth}, 1", f"bnez x{depth}, {label}"))

    body(3)
    return "\n".join([*lines, "halt"])


@pytest.mark.usefixtures("no_slack")
@given(data=st.data())
def test_a_budget_refuses_what_takes_longer_and_changes_nothing_else(
    bench: Any, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.tuples(texts("aic"), texts("aiv")), min_size=1, max_size=2))
    kernels = [
        bench.mixed(cube, vector, name=f"k{number}")
        if data.draw(st.booleans())
        else bench.kernel(cube, name=f"k{number}")
        for number, (cube, vector) in enumerate(drawn)
    ]
    target = machine(
        scalar_cycles=data.draw(st.integers(1, 3)),
        branch_taken_cycles=data.draw(st.integers(1, 3)),
        cores=data.draw(st.integers(1, 3)),
    )
    blocks = data.draw(st.integers(1, 4))
    free = run(kernels, target, blocks=blocks)
    near = st.integers(max(1, free.cycles - 3), free.cycles + 3)
    limit = data.draw(near | st.integers(1, 2 * free.cycles + 1))
    if free.cycles <= limit:
        bound = run(kernels, target, blocks=blocks, max_cycles=limit)
        assert bound.cycles == free.cycles
        assert bound.instructions == free.instructions
        assert (bound.accounts == free.accounts).all()
    else:
        with pytest.raises(SimulationFault, match=f"^The run must end within {limit} cycles, "):
            run(kernels, target, blocks=blocks, max_cycles=limit)


@pytest.mark.usefixtures("no_slack")
@pytest.mark.parametrize(("scalar", "taken"), [(1, 2), (3, 1), (1, 1), (2, 5)])
def test_a_core_that_never_waits_may_use_every_cycle_of_its_budget(
    bench: Any, scalar: int, taken: int
) -> None:
    """A thousand of the cheaper instruction, then the halt: no other run of as many is shorter."""
    step = "nop" if scalar <= taken else "jump n{0}\nn{0}:"
    kernel = bench.kernel("\n".join(step.format(number) for number in range(1000)) + "\nhalt")
    target = machine(scalar_cycles=scalar, branch_taken_cycles=taken)
    cycles = 1000 * min(scalar, taken) + scalar
    assert run([kernel], target, max_cycles=cycles).cycles == cycles
    with pytest.raises(SimulationFault, match=r"^The run must end within"):
        run([kernel], target, max_cycles=cycles - 1)


@pytest.mark.usefixtures("no_slack")
def test_the_bound_is_that_of_a_task_and_not_of_its_core_or_of_all(bench: Any) -> None:
    """Four tasks on as many clusters at once, or on one after the other."""
    kernel = bench.kernel("nop\n" * 99 + "halt")
    for cores, cycles in ((4, 100), (1, 400)):
        target = machine(cores=cores)
        assert run([kernel], target, blocks=4, max_cycles=cycles).instructions == 400
        with pytest.raises(SimulationFault, match=r"^The run must end within"):
            run([kernel], target, blocks=4, max_cycles=cycles - 1)


def test_an_endless_loop_ends_where_its_budget_does(bench: Any) -> None:
    target = machine()
    with pytest.raises(SimulationFault) as caught:
        run([bench.kernel(ENDLESS)], target, max_cycles=200_000)
    fault = caught.value
    assert fault.message == (
        "The run must end within 200000 cycles, not still be at instruction 1 (jump -1) "
        "[kernel.py:2:1] on AIC after 200001 instructions, which take longer."
    )
    assert fault.note == "in kernel 'k'"
    assert fault.hint is not None
    assert "a loop whose condition turns false" in fault.hint


def test_the_cycles_of_a_launch_are_none_of_its_instructions(bench: Any) -> None:
    target = load_target("a5")
    launch = run([bench.kernel("halt")], target).launch_cycles
    assert launch > 1
    assert budget.instructions_within(launch + 100_000, target) == 100_001


def test_a_small_budget_still_counts_cycles_of_a_short_stream(bench: Any) -> None:
    """So that it is told where the run stood in its last cycle."""
    work = "l1_to_bias l1[0], bias[0], bytes=32\n" * 100
    with pytest.raises(SimulationFault, match=r"not still be at instruction \d+ .* on AIC then\."):
        run([bench.kernel(work + "halt")], machine(), max_cycles=50)


def test_of_two_limits_the_one_that_is_met_is_told(bench: Any) -> None:
    kernel = bench.kernel(ENDLESS)
    with pytest.raises(SimulationFault, match="must end within 100000 instructions"):
        run([kernel], machine(), max_instructions=100_000, max_cycles=200_000)
    with pytest.raises(SimulationFault, match="must end within 100000 cycles"):
        run([kernel], machine(), max_instructions=200_000, max_cycles=100_000)


def test_without_cycles_there_is_no_budget_of_them(bench: Any) -> None:
    kernel = bench.kernel("movi x1, 100000\nagain:\n subi x1, x1, 1\n bnez x1, again\n halt")
    result = run([kernel], machine(), max_cycles=1000, timing=False)
    assert result.instructions == 200_002
