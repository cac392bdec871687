"""What holds of every machine and every kernel, on random ones."""

import dataclasses
from random import Random
from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Executable, HostProgram, Kernel
from scalebox.codegen.host.program import Launch
from scalebox.codegen.isa.vocabulary import ClusterCore, CoreKind, Pipe
from scalebox.codegen.scalars.exprs import Const
from scalebox.ir.target import Target
from scalebox.sim.device import simulate
from scalebox.sim.pipes.tables import BUSY
from scalebox.sim.report import SimResult
from scalebox.sim.roofline import executed_work, roofline

from .random_kernels import BLOCK, INPUTS, busy_programs, kernel

RATES = (
    "gm_port_bytes_per_cycle",
    "l2_bytes_per_cycle",
    "hbm_bytes_per_cycle",
    "l1_to_bias_bytes_per_cycle",
    "ub_to_l1_bytes_per_cycle",
)
CYCLES = (
    "flag_cycles",
    "l2_hit_cycles",
    "l2_miss_cycles",
    "mad_head_cycles",
    "mte1_instruction_cycles",
    "vector_startup_cycles",
)
STORES = ("l0c_to_gm", "ub_to_gm")


def machine(bench: Any, rng: Random) -> Target:
    """Return a random machine, mostly too narrow for what runs on it."""
    fields: dict[str, float] = {name: rng.choice([0.5, 3.0, 17.0, 128.0, 4096.0]) for name in RATES}
    fields |= {name: rng.choice([0, 1, 13, 300]) for name in CYCLES}
    fields |= {
        "cores": rng.choice([1, 2, 3, 32]),
        "queue_entries": rng.choice([1, 2, 32]),
        "l2_bytes": rng.choice([0, 1, 2, 8]) * BLOCK,
        "l2_block_bytes": BLOCK,
        "launch_seconds": 0.0,
    }
    return bench.target.with_settings(fields)


def better(target: Target, rng: Random) -> Target:
    """Return a machine of which some rates are higher and some latencies lower."""
    changed: dict[str, float] = {
        name: getattr(target, name) * rng.choice([1.1, 2.0, 10.0])
        for name in rng.sample(RATES, rng.randint(0, 2))
    }
    changed |= {
        name: getattr(target, name) * rng.choice([0, 1, 2]) // 3
        for name in rng.sample(CYCLES, rng.randint(1, 2))
    }
    return target.with_settings(changed)


def drawn(bench: Any, rng: Random, *, with_stores: bool = True) -> Kernel:
    core = rng.choice([ClusterCore.AIC, ClusterCore.AIV0])
    (text,) = busy_programs(rng, [core])
    lines = [line for line in text.split("\n") if with_stores or not line.startswith(STORES)]
    return kernel(bench, "\n".join(lines), core)


def drawn_for_both(bench: Any, rng: Random) -> Kernel:
    """Return a kernel whose cube core and vector core have work and do not wait for each other."""
    (cube,) = busy_programs(rng, [ClusterCore.AIC])
    (vector,) = busy_programs(rng, [ClusterCore.AIV0])
    mate = kernel(bench, vector, ClusterCore.AIV0)
    return dataclasses.replace(kernel(bench, cube, ClusterCore.AIC), mate=mate)


def launch(made: Kernel, blocks: int, target: Target, **options: Any) -> SimResult:
    host = HostProgram("main", made.params, (Launch(0, ("a", "c"), (), Const(blocks)),), ())
    executable = Executable("p", "a5", "", (made,), (host,), "main")
    images = {"a": np.ones(INPUTS * BLOCK, np.uint8), "c": np.zeros(32, np.uint8)}
    return simulate(executable, images, target=target, checks="off", **options)


@pytest.mark.parametrize("seed", range(120))
def test_on_a_core_that_only_loads_a_better_machine_is_never_slower(bench: Any, seed: int) -> None:
    rng = Random(seed)
    made, target = drawn(bench, rng, with_stores=False), machine(bench, rng)
    before = launch(made, 1, target, functional=False)
    after = launch(made, 1, better(target, rng), functional=False)
    assert after.cycles <= before.cycles


@pytest.mark.parametrize("seed", range(60))
def test_nothing_is_faster_than_its_ways_allow(bench: Any, seed: int) -> None:
    rng = Random(seed)
    made, target = drawn(bench, rng), machine(bench, rng)
    result = launch(made, rng.randint(1, 7), target, functional=False)
    traffic = result.traffic
    assert traffic is not None
    assert result.cycles >= traffic.l2_bytes / target.l2_bytes_per_cycle
    memory_bytes = traffic.fetched_bytes + traffic.written_bytes
    assert result.cycles >= memory_bytes / target.hbm_bytes_per_cycle * (1 - 1e-9)
    ports = len(result.cores) * target.gm_port_bytes_per_cycle
    assert result.cycles >= traffic.l2_bytes / ports
    assert result.cycles >= result.accounts[:, :, BUSY].max()
    assert result.macs <= result.accounts[:, Pipe.M, BUSY].sum() * target.peak_macs_per_cycle(8)
    assert (result.accounts >= 0).all()
    assert (result.accounts.sum(axis=2) == result.cycles).all()


@pytest.mark.parametrize("seed", range(180))
def test_no_run_on_cores_of_both_kinds_beats_its_roofline(bench: Any, seed: int) -> None:
    """Nor is a bound lower than if all cores that have any of the work could share it out."""
    rng = Random(seed)
    made, target = drawn_for_both(bench, rng), machine(bench, rng)
    result = launch(made, rng.randint(1, 7), target, functional=False)
    parts = [
        (part.number, part.decoded.kernel, part.stream.static)
        for task in result.tasks
        for part in task.cores
    ]
    work = executed_work(parts, target, cores=len(result.cores))
    traffic = result.traffic
    assert traffic is not None
    memory_bytes = traffic.fetched_bytes + traffic.written_bytes
    kinds = [name.core.kind for name in result.cores]
    bounds = roofline(work, kinds, target, hbm_bytes=memory_bytes)
    assert bounds.cycles <= result.cycles
    all_one = roofline(work, [CoreKind.AIC] * len(kinds), target, hbm_bytes=memory_bytes)
    assert bounds.bounds.keys() == all_one.bounds.keys()
    assert all(bounds.bounds[name] >= cycles for name, cycles in all_one.bounds.items())


@pytest.mark.parametrize("seed", range(30))
def test_cycles_are_the_same_from_run_to_run_and_without_data(bench: Any, seed: int) -> None:
    rng = Random(seed)
    made, target, blocks = drawn(bench, rng), machine(bench, rng), rng.randint(1, 5)
    runs = [launch(made, blocks, target, functional=each) for each in (True, True, False)]
    for other in runs[1:]:
        assert other.cycles == runs[0].cycles
        assert (other.events == runs[0].events).all()
        assert (other.accounts == runs[0].accounts).all()
        assert other.traffic == runs[0].traffic
