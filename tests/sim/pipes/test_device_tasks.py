"""Which task runs on which cluster and when, in cycles by hand arithmetic; what a launch may not ask."""

from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Executable, HostProgram, Kernel, Task
from scalebox.codegen.host.program import Assign, Launch
from scalebox.codegen.isa.vocabulary import ClusterCore, CoreKind, Pipe
from scalebox.codegen.scalars.exprs import Const, Variable
from scalebox.ir.errors import InputError, SimulationFault
from scalebox.sim.device import simulate
from scalebox.sim.pipes.tables import BUSY, FLAG, IDLE, SCALES
from scalebox.sim.pipes.task_order import task_order
from scalebox.sim.report import CoreName, SimResult

BIAS = "l1_to_bias l1[0], bias[0], bytes=32"  # 9 + 32 / 32 = 10 cycles
SHORT, LONG = BIAS, "\n".join([BIAS] * 10)
# The first instruction is issued in cycle 1; from then on the pipe is never idle.
SHORT_CYCLES, LONG_CYCLES = 11, 101


def kernels(bench: Any) -> tuple[Kernel, Kernel]:
    return bench.kernel(SHORT, name="short"), bench.kernel(LONG, name="long")


def launch(bench: Any, *body: Any, clusters: int = 2, **options: Any) -> SimResult:
    """Run launches of `short` (kernel 0) and `long` (kernel 1) from cycle 0 on."""
    made = kernels(bench)
    host = HostProgram("main", (), body, ())
    executable = Executable("p", "a5", "", made, (host,), "main")
    target = bench.target.with_settings({"launch_seconds": 0.0, "cores": clusters})
    return simulate(executable, {}, target=target, **options)


def of(kernel: int, blocks: int = 1, **options: Any) -> Launch:
    return Launch(kernel, (), (), Const(blocks), **options)


def went(result: SimResult) -> list[tuple[int, int, int]]:
    """Return task, cluster and start of each task, in the order in which they began."""
    return [(run.index, run.cluster, run.start) for run in result.tasks]


def test_blocks_are_queued_and_go_to_the_lowest_idle_cluster(bench: Any) -> None:
    result = launch(bench, of(1), of(0, 4), clusters=2)
    # The long one keeps cluster 0; the short ones go through cluster 1, one behind another.
    assert went(result) == [(0, 0, 0), (1, 1, 0), (2, 1, 11), (3, 1, 22), (4, 1, 33)]
    assert result.cycles == LONG_CYCLES
    assert result.cores == (CoreName(0, ClusterCore.AIC), CoreName(1, ClusterCore.AIC))
    assert [str(core) for core in result.cores] == ["0.AIC", "1.AIC"]
    # Before, between and behind its tasks a cluster is idle.
    assert result.accounts[:, Pipe.MTE1, [BUSY, IDLE]].tolist() == [
        [100, 1],
        [40, LONG_CYCLES - 40],
    ]


def test_when_two_clusters_become_idle_at_once_the_lower_one_gets_the_first_block(
    bench: Any,
) -> None:
    result = launch(bench, of(0, 5), clusters=3)
    assert went(result) == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 0, 11), (4, 1, 11)]


def test_more_blocks_than_clusters_all_run(bench: Any) -> None:
    result = launch(bench, of(0, 100), clusters=32)
    assert [run.block for run in result.tasks] == list(range(100))
    assert result.cycles == 4 * SHORT_CYCLES
    assert {run.cluster for run in result.tasks} == set(range(32))


def test_a_task_waits_for_what_it_depends_on(bench: Any) -> None:
    body = (
        of(1, name="first"),
        of(0, name="second"),
        of(0, deps=(Variable("first"),)),
        of(0, deps=(Variable("second"),)),
    )
    result = launch(bench, *body, clusters=4)
    # A ready task overtakes one that still waits.
    assert went(result) == [(0, 0, 0), (1, 1, 0), (3, 1, 11), (2, 0, 101)]
    assert result.cycles == LONG_CYCLES + SHORT_CYCLES


def test_a_grid_waits_for_all_blocks_of_another(bench: Any) -> None:
    body = (of(0, 3, name="grid"), of(0, 2, deps=(Variable("grid"),)))
    assert went(launch(bench, *body, clusters=2)) == [
        (0, 0, 0), (1, 1, 0), (2, 0, 11), (3, 0, 22), (4, 1, 22),
    ]  # fmt: skip


def test_blocks_that_start_in_step_wait_until_all_can_and_hold_back_the_others(bench: Any) -> None:
    body = (of(1), of(0, 2, sync_start=True), of(0))
    # One cluster is idle at once, but the grid needs two; what stands behind it waits too.
    assert went(launch(bench, *body, clusters=2)) == [
        (0, 0, 0), (1, 0, 101), (2, 1, 101), (3, 0, 112),
    ]  # fmt: skip
    assert went(launch(bench, of(1), of(0, 2), of(0), clusters=2)) == [
        (0, 0, 0), (1, 1, 0), (2, 1, 11), (3, 1, 22),
    ]  # fmt: skip


def test_more_blocks_in_step_than_clusters_are_refused(bench: Any) -> None:
    with pytest.raises(InputError) as caught:
        launch(bench, of(0, 3, sync_start=True), clusters=2)
    assert caught.value.message == (
        "A launch with sync_start must have at most as many blocks as machine 'a5' has clusters, 2, "
        "not 3."
    )
    assert launch(bench, of(0, 2, sync_start=True), clusters=2).cycles == SHORT_CYCLES


def task(*depends: int) -> Task:
    return Task(0, (), (), depends)


def test_a_circle_of_tasks_is_told_as_one() -> None:
    assert task_order([task(), task(0), task(1)]) == [0, 1, 2]
    assert task_order([task(2), task(), task(1)]) == [1, 2, 0]
    with pytest.raises(InputError) as caught:
        task_order([task(), task(0, 3), task(1), task(2)])
    assert caught.value.message == (
        "The tasks of a launch must not wait for each other in a circle, as 1 -> 3 -> 2 -> 1 do."
    )
    with pytest.raises(InputError, match="Task 1 must wait for tasks 0 to 1, not for 2"):
        task_order([task(), task(2)])


def test_a_launch_that_waits_for_a_later_one_is_refused(bench: Any) -> None:
    body = (Assign("later", Const(2)), of(0, deps=(Variable("later"),)), of(0))
    with pytest.raises(InputError, match="must depend on earlier ones, 0 to 0, not on 2") as caught:
        launch(bench, *body)
    assert caught.value.hint is not None
    assert "circle" in caught.value.hint


def test_an_empty_launch_takes_no_cycles(bench: Any) -> None:
    result = launch(bench)
    assert (result.cycles, result.cores, result.tasks, result.events.size) == (0, (), (), 0)


def test_a_deadlock_names_its_cluster_where_there_are_several(bench: Any) -> None:
    stuck = bench.kernel("block_idx x1\nbeqz x1, done\nwait_flag src=m, dst=v, id=0\ndone:\nhalt")
    host = HostProgram("main", (), (Launch(0, (), (), Const(3)),), ())
    executable = Executable("p", "a5", "", (stuck,), (host,), "main")
    alone = bench.target.with_settings({"cores": 1})
    # The checks need no times, so they know of no clusters.
    for target, checks, where in (
        (bench.target, "error", ""),
        (bench.target, "off", " on cluster 1"),
        (alone, "off", ""),
    ):
        with pytest.raises(SimulationFault, match=f"kernel 'k'{where} must be able") as caught:
            simulate(executable, {}, target=target, checks=checks)
        assert caught.value.note is not None
        assert caught.value.note.endswith("it happens in block 1 of 3")


def test_a_launch_over_its_budget_says_on_which_core_of_which_cluster_it_stood(bench: Any) -> None:
    with pytest.raises(SimulationFault) as caught:
        launch(bench, of(0), of(1, 2), clusters=3, max_cycles=25)
    assert caught.value.message == (
        "The run must end within 25 cycles, not still be at instruction 2 "
        "(l1_to_bias l1[0x0], bias[0x0], bytes=32) [kernel.py:3:1] on AIC of cluster 1 then."
    )
    assert caught.value.note == (
        "in kernel 'long', which began in cycle 0; it happens in block 0 of 2"
    )
    with pytest.raises(SimulationFault, match="on AIC then"):
        launch(bench, of(1), clusters=1, max_cycles=25)


@pytest.mark.parametrize("checks", ["error", "off"])
def test_a_kernel_of_scalar_instructions_alone_may_exceed_its_budget(
    bench: Any, checks: str
) -> None:
    kernel = bench.kernel("movi x1, 100\nagain:\nsubi x1, x1, 1\nbnez x1, again")
    with pytest.raises(SimulationFault) as caught:
        bench.run(
            kernel,
            target=bench.target.with_settings({"launch_seconds": 0}),
            max_cycles=50,
            checks=checks,
        )
    assert caught.value.message == (
        "The run must end within 50 cycles, not still be at the scalar instructions of kernel 'k' "
        "then, which has no others."
    )


def test_flags_of_one_task_are_not_those_of_the_next_on_its_cluster(bench: Any) -> None:
    setter = bench.kernel("set_flag src=m, dst=v, id=0", name="setter")
    waiter = bench.kernel("wait_flag src=m, dst=v, id=0", name="waiter")
    host = HostProgram("main", (), (Launch(0, (), ()), Launch(1, (), ())), ())
    executable = Executable("p", "a5", "", (setter, waiter), (host,), "main")
    target = bench.target.with_settings({"cores": 1})
    with pytest.raises(SimulationFault, match="is still set once"):
        simulate(executable, {}, target=target)
    with pytest.raises(SimulationFault, match="kernel 'waiter' must be able"):
        simulate(executable, {}, target=target, checks="off")


def test_waits_are_told_flag_by_flag_and_add_up(bench: Any) -> None:
    flag = "src=mte1, dst=m, id={0}"
    mad = "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=32, n=16, a_type=e4m3, b_type=e4m3, init=zero"
    text = "\n".join(
        f"{BIAS}\nset_flag {flag.format(n)}\nwait_flag {flag.format(n)}\n{mad}" for n in (0, 1)
    )
    made = bench.kernel(text)
    host = HostProgram("main", (), (Launch(0, (), (), Const(3)),), ())
    executable = Executable("p", "a5", "", (made,), (host,), "main")
    target = bench.target.with_settings({"launch_seconds": 0.0, "cores": 2})
    result = simulate(executable, {}, target=target, functional=False)
    # The first wait is for 11 + 10 from cycle 3 on. The second, behind a mad of 26, for nothing.
    assert [(w.core, w.pipe, w.flag, w.cycles) for w in result.flag_totals] == [
        (0, Pipe.M, "MTE1->M 0", 36), (1, Pipe.M, "MTE1->M 0", 18),
    ]  # fmt: skip
    assert result.accounts[:, :, FLAG].sum() == sum(wait.cycles for wait in result.flag_totals)
    assert (result.accounts.sum(axis=2) == result.cycles).all()


def test_a_mad_that_starves_for_scales_says_so(bench: Any) -> None:
    mad = "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=64, k=128, n=128, a_type=e4m3, b_type=e4m3, init=zero"
    wide = bench.target.with_settings({"launch_seconds": 0.0})
    narrow = wide.with_settings({"scale_beat_bytes": 1})
    fast, slow = (bench.run(bench.kernel(mad), target=t, functional=False) for t in (wide, narrow))
    assert fast.accounts[0, Pipe.M, [BUSY, SCALES]].tolist() == [153, 0]
    starved = slow.cycles - fast.cycles
    assert starved > 0
    assert slow.accounts[0, Pipe.M, [BUSY, SCALES]].tolist() == [153, starved]
    (event,) = slow.timeline
    assert event.args["scales_cycles"] == starved


def test_every_run_of_a_launch_is_the_same(bench: Any) -> None:
    runs = [launch(bench, of(1), of(0, 9), clusters=3) for _ in range(2)]
    assert (runs[0].events == runs[1].events).all()
    assert (runs[0].accounts == runs[1].accounts).all()


def test_a_vector_task_has_its_cluster_to_itself(bench: Any) -> None:
    neg = "v_unary ub[0], ub[0], op=neg, type=fp32, rows=1, cols=8, dst_pitch=1, src_pitch=1"
    vector = bench.kernel(neg, name="vector", core=CoreKind.AIV)
    host = HostProgram("main", (), (Launch(0, (), ()), Launch(1, (), ())), ())
    executable = Executable("p", "a5", "", (kernels(bench)[1], vector), (host,), "main")
    one, two = (
        simulate(
            executable, {}, target=bench.target.with_settings({"cores": count}), functional=False
        )
        for count in (1, 2)
    )
    assert [run.cluster for run in one.tasks] == [0, 0]
    assert one.tasks[1].start == one.tasks[0].start + LONG_CYCLES
    assert one.cores == (CoreName(0, ClusterCore.AIC), CoreName(0, ClusterCore.AIV0))
    assert two.cores == (CoreName(0, ClusterCore.AIC), CoreName(1, ClusterCore.AIV0))
    assert two.tasks[0].start == two.tasks[1].start


def test_outputs_are_the_same_on_any_number_of_clusters(bench: Any) -> None:
    params = [bench.tensor("a", "E4M3", (64, 64)), bench.tensor("c", "E4M3", (64, 64), "out")]
    views = [bench.plain(place, 8, 64, 64) for place in range(2)]
    copy = (
        "block_idx x1\nmuli x1, x1, 16\n"
        "gm_to_ub v0, x1, x0, ub[0], rows=16, cols=64, pitch=2\npipe_barrier pipe=all\n"
        "ub_to_gm v1, x1, x0, ub[0], rows=16, cols=64, pitch=2"
    )
    made = bench.kernel(copy, params, views, core=CoreKind.AIV)
    host = HostProgram.of_kernel(0, made)
    body = (Launch(0, ("a", "c"), (), Const(4)),)
    host = HostProgram("main", host.params, body, host.outputs)
    executable = Executable("p", "a5", "", (made,), (host,), "main")
    image = np.arange(64 * 64, dtype=np.int64).astype(np.uint8)
    for clusters in (1, 3, 32):
        target = bench.target.with_settings({"cores": clusters, "hbm_bytes_per_cycle": 3.0})
        result = simulate(executable, {"a": image}, target=target)
        np.testing.assert_array_equal(result.outputs["c"], image)
