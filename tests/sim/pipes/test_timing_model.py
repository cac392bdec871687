"""The event loop of the pipes against a model that steps through every single cycle."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.vocabulary import ClusterCore, CoreKind
from scalebox.sim import decode
from scalebox.sim.pipes import tables, timing
from scalebox.sim.pipes.l2 import L2
from scalebox.sim.pipes.timing import Job, Program

from ..random_kernels import (
    BLOCK,
    CUBE_WORK,
    INPUTS,
    OWN_PIPES,
    WORK,
    blocks_of,
    busy_programs,
    program,
)
from .slow_device import Core, Counter, Device

PIPES = {kind: st.sampled_from(pipes) for kind, pipes in OWN_PIPES.items()}


def own_line(kind: CoreKind) -> st.SearchStrategy[str]:
    """Return a line, or two, that concern one core."""
    pairs = st.tuples(PIPES[kind], PIPES[kind]).filter(lambda pair: pair[0] != pair[1])
    flags = st.builds("src={0[0]}, dst={0[1]}, id={1}".format, pairs, st.integers(0, 1))
    return st.one_of(
        st.sampled_from([*WORK[kind], "nop"]),
        flags.map("set_flag {}".format),
        flags.map("wait_flag {}".format),
        flags.map("set_flag {0}\nwait_flag {0}".format),
        st.one_of(PIPES[kind], st.just("all")).map("pipe_barrier pipe={}".format),
    )


@st.composite
def programs(draw: st.DrawFn, cores: Sequence[ClusterCore]) -> list[str]:
    """Return the text of a program for each core; what waits for another core mostly comes later."""
    texts: list[list[str]] = [[] for _ in cores]
    for _ in range(draw(st.integers(0, 24))):
        setter, waiter = (draw(st.integers(0, len(cores) - 1)) for _ in range(2))
        if len(cores) == 1 or draw(st.booleans()):
            texts[setter].append(draw(own_line(cores[setter].kind)))
            continue
        number = draw(st.integers(0, 1))
        what = draw(st.sampled_from(["both", "both", "both", "set", "wait"]))
        if what != "wait":
            pipe = draw(PIPES[cores[setter].kind])
            to = cores[waiter].name.lower()
            texts[setter].append(f"set_core_flag pipe={pipe}, to={to}, id={number}")
        if what != "set":
            pipe = draw(PIPES[cores[waiter].kind])
            of = cores[setter].name.lower()
            texts[waiter].append(f"wait_core_flag pipe={pipe}, of={of}, id={number}")
    return ["\n".join(lines) for lines in texts]


MACHINES = st.fixed_dictionaries(
    {
        "queue_entries": st.integers(1, 5),
        "flag_cycles": st.integers(0, 12),
        "core_flag_cycles": st.integers(0, 30),
        "l2_hit_cycles": st.sampled_from([0, 3, 40]),
        "l2_miss_cycles": st.sampled_from([0, 50]),
        "mad_head_cycles": st.integers(0, 9),
        "l2_bytes_per_cycle": st.sampled_from([4.0, 15.0, 4096.0]),
        "hbm_bytes_per_cycle": st.sampled_from([3.0, 12.5, 970.0]),
        "drain_fixed_cycles": st.sampled_from([1.0, 11.0]),
        "drain_row_cycles": st.sampled_from([0.5, 4.59]),
    }
)
FIXED = {"l2_block_bytes": BLOCK, "gm_port_bytes_per_cycle": 10.0}


def hold_equal(target: Any, jobs: list[Job], capacity: int) -> timing.DeviceTiming:
    """Hold the event loop against the stepping model: times, orders, flags, accounts."""
    l2 = L2((INPUTS + 1) * BLOCK, BLOCK, capacity * BLOCK, BLOCK)
    timed = timing.run_all(jobs, target=target, l2=l2)
    blocks = {id(each): blocks_of(each) for job in jobs for each in job.programs}
    device = Device(target, jobs, blocks, capacity)
    assert device.step() == timed.finished
    for number, task in enumerate(timed.tasks):
        run = device.runs.get(number)
        if run is None:
            assert task.began == -1
            continue
        assert (task.cluster, task.began, task.ended) == (run.cluster, run.begin, run.end)
        for place, model in enumerate(run.cores):
            np.testing.assert_array_equal(np.stack(task.times(place), axis=1), model.times)
            assert task.issued(place) == model.next
            if not task.finished:
                for pipe, stepped in model.pipes.items():
                    assert task.queue(place, pipe) == [record for record, _ in stepped.queue]
        left = {counter: len(fired) for counter, fired in run.flags.items() if fired}
        assert left_over(task, run.cores) == left
    if not timed.finished:
        return timed
    assert timed.cycles == max(run.end for run in device.runs.values())
    assert (timed.accounts.sum(axis=2) == timed.cycles).all()
    assert (timed.accounts >= 0).all()
    memory = np.zeros((len(timed.accounts), decode.PIPES), np.int64)
    for run in device.runs.values():
        for model in run.cores:
            memory[run.cluster * len(ClusterCore) + model.program.core] += model.memory_cycles
    np.testing.assert_array_equal(timed.accounts[:, :, tables.MEMORY], memory)
    return timed


@pytest.mark.parametrize("count", [1, 2, 3])
@settings(max_examples=60)
@given(data=st.data(), machine=MACHINES, capacity=st.sampled_from([0, 1, 2, 4]))
def test_a_task_is_the_cycle_by_cycle_model(
    bench: Any, count: int, data: Any, machine: dict[str, Any], capacity: int
) -> None:
    cores = list(ClusterCore)[:count]
    target = bench.target.with_settings(machine | FIXED)
    texts = data.draw(programs(cores))
    running = [program(bench, text, core, target) for text, core in zip(texts, cores, strict=True)]
    hold_equal(target, [Job(running)], capacity)


@pytest.mark.parametrize("seed", range(60))
def test_a_launch_is_the_cycle_by_cycle_model(bench: Any, seed: int) -> None:
    rng = Random(seed)
    target = bench.target.with_settings(
        FIXED
        | {
            "cores": rng.randint(2, 3),
            "queue_entries": rng.randint(1, 5),
            "flag_cycles": rng.randint(0, 12),
            "core_flag_cycles": rng.randint(0, 30),
            "l2_hit_cycles": rng.choice([0, 3, 40]),
            "l2_miss_cycles": rng.choice([0, 50]),
            "l2_bytes_per_cycle": rng.choice([4.0, 15.0, 25.0, 4096.0]),
            "hbm_bytes_per_cycle": rng.choice([3.0, 12.5, 60.0, 970.0]),
            "drain_fixed_cycles": rng.choice([1.0, 11.0]),
            "drain_row_cycles": rng.choice([0.5, 4.59]),
        }
    )
    kernels: list[list[Program]] = []
    for _ in range(rng.randint(1, 3)):
        cores = sorted(rng.sample(list(ClusterCore), rng.randint(1, 2)))
        texts = busy_programs(rng, cores)
        kernels.append(
            [program(bench, text, core, target) for text, core in zip(texts, cores, strict=True)]
        )
    jobs: list[Job] = []
    for _ in range(rng.randint(2, 6)):
        depends = tuple(number for number in range(len(jobs)) if not rng.randrange(5))
        kernel, blocks, in_step = rng.choice(kernels), rng.randint(1, 2), rng.randrange(2)
        jobs += [Job(kernel, depends, blocks - n if in_step else 1) for n in range(blocks)]
    timed = hold_equal(target, jobs, rng.choice([0, 1, 2, 4]))
    assert timed.finished


def left_over(timed: timing.Timing, models: Sequence[Core]) -> dict[Counter, int]:
    found: dict[Counter, int] = {}
    for line in timed.counters[timed.counters[:, tables.PENDING] > 0]:
        core, record = timed.place(int(line[tables.LAST_SET]))
        counter = models[core].counter(int(models[core].stream.static[record]))
        found[counter] = int(line[tables.PENDING])
    return found


@pytest.mark.parametrize("limit", [1, 2, 5])
@settings(max_examples=50)
@given(lines=st.lists(st.sampled_from(["set", "set", "wait", "mte1", "m"]), max_size=24))
def test_a_counter_overruns_at_the_first_set_that_it_cannot_hold(
    bench: Any, limit: int, lines: list[str]
) -> None:
    flag = "src=mte1, dst=m, id=0"
    texts = {"set": f"set_flag {flag}", "wait": f"wait_flag {flag}"}
    texts |= {"mte1": CUBE_WORK[1], "m": CUBE_WORK[0]}
    lines += ["wait"] * (lines.count("set") - lines.count("wait"))
    target = bench.target.with_settings({"flag_counter_max": limit})
    running = program(bench, "\n".join(texts[each] for each in lines), ClusterCore.AIC, target)
    timed = timing.run([running], target=target, l2=L2(0, BLOCK, 0, BLOCK))
    if not timed.finished:
        return
    ends = timed.times(0).end
    sets = [at for at, each in enumerate(lines) if each == "set"]
    waits = [int(ends[at]) for at, each in enumerate(lines) if each == "wait"]
    expected = [
        at
        for number, at in enumerate(sets, start=1)
        if number - sum(end <= ends[at] for end in waits) > limit
    ]
    overruns = timed.counters[:, tables.OVERRUN]
    assert overruns[overruns >= 0].tolist() == expected[:1]
