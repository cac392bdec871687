"""A cube core and a vector core at work on one kernel: results, order, times, and what goes wrong."""

from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Executable, HostProgram, Kernel, Output
from scalebox.codegen.host.program import Launch
from scalebox.codegen.isa.vocabulary import ClusterCore, CoreKind, Pipe
from scalebox.ir.errors import SimulationFault
from scalebox.sim.device import simulate
from scalebox.sim.pipes.tables import BUSY, FLAG, IDLE
from scalebox.sim.report import CoreName, SimResult

ROUNDS = 3
CUBE = """
    movi x1, 0
    movi x2, {rounds}
    gm_to_l1_nz v1, x0, x0, l1[0x8000], rows=16, cols=16, l1_rows=16
    set_flag src=mte2, dst=mte1, id=0
    wait_flag src=mte2, dst=mte1, id=0
    l1_to_l0b l1[0x8000], l0b[0], bits=b16, k=16, n=16, src_k=16
round:
    wait_core_flag pipe=mte1, of=aiv0, id=0
    l1_to_l0a l1[0], l0a[0], row_boxes=1, col_boxes=1, src_pitch=1, dst_pitch=1
    set_core_flag pipe=mte1, to=aiv0, id=1
    set_flag src=mte1, dst=m, id=0
    wait_flag src=mte1, dst=m, id=0
    mad l0c[0], l0a[0], l0b[0], bias[0], m=16, k=16, n=16, a_type=fp16, b_type=fp16, init=zero
    set_flag src=m, dst=fix, id=0
    wait_flag src=m, dst=fix, id=0
    wait_core_flag pipe=fix, of=aiv0, id=2
    l0c_to_ub l0c[0], ub[0x4000], core=0, rows=16, cols=16, src_boxes=1, convert=fp32, relu=0, pitch=2
    set_core_flag pipe=fix, to=aiv0, id=3
    set_flag src=fix, dst=mte1, id=0
    wait_flag src=fix, dst=mte1, id=0
    addi x1, x1, 1
    blt x1, x2, round
    wait_core_flag pipe=fix, of=aiv0, id=2
"""
VECTOR = """
    movi x1, 0
    movi x2, {rows}
    movi x3, 0
    set_core_flag pipe=v, to=aic, id=2
round:
    gm_to_ub v0, x1, x0, ub[0], rows=16, cols=16, pitch=1
    set_flag src=mte2, dst=v, id=0
    wait_flag src=mte2, dst=v, id=0
    v_binary ub[0x1000], ub[0], ub[0], op=add, type=fp16, rows=16, cols=16, dst_pitch=1, a_pitch=1, b_pitch=1
    set_flag src=v, dst=mte3, id=0
    wait_flag src=v, dst=mte3, id=0
    beqz x3, fresh
    wait_core_flag pipe=mte3, of=aic, id=1
fresh:
    movi x3, 1
    ub_to_l1_nz ub[0x1000], l1[0], bits=b16, rows=16, cols=16, l1_rows=16, pitch=1
    set_core_flag pipe=mte3, to=aic, id=0
    wait_core_flag pipe=v, of=aic, id=3
    v_unary ub[0x5000], ub[0x4000], op=relu, type=fp32, rows=16, cols=16, dst_pitch=2, src_pitch=2
    set_core_flag pipe=v, to=aic, id=2
    set_flag src=v, dst=mte3, id=1
    wait_flag src=v, dst=mte3, id=1
    ub_to_gm v2, x1, x0, ub[0x5000], rows=16, cols=16, pitch=2
    pipe_barrier pipe=all
    addi x1, x1, 16
    blt x1, x2, round
    wait_core_flag pipe=mte3, of=aic, id=1
"""


class Doubled:
    """C = relu(2A · B), 16 rows a round: AIV0 doubles, the cube core multiplies, AIV0 cuts."""

    def __init__(self, bench: Any, rng: np.random.Generator, rounds: int = ROUNDS) -> None:
        rows = 16 * rounds
        params = [
            bench.tensor("a", "FP16", (rows, 16)),
            bench.tensor("b", "FP16", (16, 16)),
            bench.tensor("c", "FP32", (rows, 16), "out"),
        ]
        views = [bench.plain(0, 16, rows, 16), bench.plain(1, 16, 16, 16)]
        views.append(bench.plain(2, 32, rows, 16))
        self.cube, self.vector = CUBE.format(rounds=rounds), VECTOR.format(rows=rows)
        self.bench, self.params, self.views = bench, params, views
        self.a = rng.integers(-8, 9, (rows, 16)).astype(np.float16)
        self.b = rng.integers(-8, 9, (16, 16)).astype(np.float16)

    @property
    def kernel(self) -> Kernel:
        return self.bench.mixed(self.cube, self.vector, self.params, self.views)

    def run(self, **options: Any) -> SimResult:
        buffers = {"a": self.a.view(np.uint8).reshape(-1), "b": self.b.view(np.uint8).reshape(-1)}
        return self.bench.run(self.kernel, buffers, **options)

    def assert_right(self, result: SimResult) -> None:
        # Small integers: every product and sum is exact.
        want = np.maximum(2 * self.a.astype(np.float32) @ self.b.astype(np.float32), 0)
        got = result.outputs["c"].view(np.float32).reshape(want.shape)
        np.testing.assert_array_equal(got, want)


@pytest.fixture
def doubled(bench: Any, rng: np.random.Generator) -> Doubled:
    return Doubled(bench, rng)


@pytest.mark.parametrize("timing", [True, False])
@pytest.mark.parametrize("rounds", [1, ROUNDS, 20])
def test_two_cores_compute_what_one_hands_the_other(
    bench: Any, rng: np.random.Generator, rounds: int, timing: bool
) -> None:
    case = Doubled(bench, rng, rounds)
    result = case.run(timing=timing)
    case.assert_right(result)
    assert result.warnings == ()
    assert result.macs == rounds * 16 * 16 * 16
    assert result.moved["UB->L1"] == rounds * 16 * 16 * 2
    assert result.moved["L0C->UB"] == rounds * 16 * 16 * 4


@pytest.mark.parametrize(
    "settings",
    [
        {"queue_entries": 1},
        {"core_flag_cycles": 0, "flag_cycles": 0},
        {"core_flag_cycles": 1000},
        {"gm_port_bytes_per_cycle": 0.5, "l2_hit_cycles": 0},
        {"mad_head_cycles": 5000},
    ],
)
def test_flags_hold_the_result_on_every_machine(
    bench: Any, doubled: Doubled, settings: dict[str, float]
) -> None:
    doubled.assert_right(doubled.run(target=bench.target.with_settings(settings)))


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("cube", "wait_core_flag pipe=mte1, of=aiv0, id=0"),
        ("vector", "wait_core_flag pipe=v, of=aic, id=3"),
    ],
)
def test_a_wait_for_the_other_core_that_is_missing_shows(
    doubled: Doubled, program: str, line: str
) -> None:
    setattr(doubled, program, getattr(doubled, program).replace(line, "nop"))
    other = "cube" if program == "vector" else "vector"
    setattr(doubled, other, "nop\n" * 2000 + getattr(doubled, other))
    with pytest.raises(SimulationFault) as caught:
        doubled.run(checks="error")
    # Its flag is left over; without that check, the reader finds what was never written.
    assert "Every flag that is set must be waited for, but core flag" in caught.value.message
    warned = [str(each.message) for each in doubled.run(checks="warn").warnings]
    assert any("must use only what was written" in each for each in warned)


def test_a_fault_of_either_core_says_where_it_is(doubled: Doubled) -> None:
    doubled.vector = doubled.vector.replace("wait_core_flag pipe=v, of=aic, id=3", "nop")
    found = doubled.run(checks="warn").warnings
    (fault,) = [each for each in found if "only what was written" in each.message]
    assert fault.note is not None
    assert fault.note.startswith("in kernel 'k' on AIV0: v_unary ")
    assert str(fault.span).startswith("mate.py:")


def test_bounds_of_both_programs_are_checked_before_either_runs(doubled: Doubled) -> None:
    doubled.vector = doubled.vector.replace("ub[0x5000], rows=16", "ub[0x3bfe0], rows=16")
    doubled.vector = doubled.vector.replace("v_unary ub[0x3bfe0]", "v_unary ub[0x5000]")
    for options in ({}, {"functional": False}, {"timing": False}):
        with pytest.raises(SimulationFault, match="must stay inside the 245760 bytes of UB"):
            doubled.run(**options)


def test_every_core_has_its_account_its_pipes_and_its_events(doubled: Doubled) -> None:
    result = doubled.run()
    assert result.cores == (CoreName(0, ClusterCore.AIC), CoreName(0, ClusterCore.AIV0))
    assert result.accounts.shape[0] == len(result.pipes) == 2
    assert (result.accounts.sum(axis=2) == result.cycles - result.launch_cycles).all()
    assert (result.accounts >= 0).all()
    assert result.pipes[0]["M"] > 0
    assert result.pipes[1]["M"] == 0
    assert result.pipes[1]["V"] > 0
    assert result.accounts[0, Pipe.MTE1, FLAG] > 0
    (run,) = result.tasks
    assert [(part.number, CoreName(0, part.core)) for part in run.cores] == list(
        enumerate(result.cores)
    )
    events = result.timeline
    assert {(each.core, each.source.split(":")[0]) for each in events} == {
        (0, "kernel.py"), (1, "mate.py"),
    }  # fmt: skip
    for number, pipes in enumerate(result.pipes):
        for pipe in ("M", "V", "MTE1", "MTE2", "MTE3", "FIX"):
            busy = sum(
                each.end - each.start
                for each in events
                if (each.core, each.pipe) == (number, pipe) and "flag" not in each.args
                and each.name != "pipe_barrier"
            )  # fmt: skip
            assert busy == pipes[pipe]


def test_an_arrow_joins_a_core_flag_from_core_to_core(doubled: Doubled) -> None:
    ends: dict[int, list[tuple[int, str, str]]] = {}
    for each in doubled.run().timeline:
        if "flow" in each.args:
            ends.setdefault(each.args["flow"], []).append((each.core, each.name, each.args["flag"]))
    assert all(len(pair) == 2 for pair in ends.values())
    between = [sorted(pair) for pair in ends.values() if "core" in pair[0][1]]
    assert [(0, "wait_core_flag", "AIV0->AIC 0"), (1, "set_core_flag", "AIV0->AIC 0")] in between
    assert len(between) == 4 * ROUNDS + 1


def timed(bench: Any, cube: str, vector: str, **settings: Any) -> SimResult:
    params = [bench.tensor("a", "E4M3", (16, 64))]
    kernel = bench.mixed(cube, vector, params, [bench.plain(0, 8, 16, 64)])
    target = bench.target.with_settings({"launch_seconds": 0.0} | settings)
    return bench.run(kernel, target=target, functional=False)


BIAS = "l1_to_bias l1[0], bias[0], bytes=32"  # 9 + 32 / 32 = 10 cycles
NEG = "v_unary ub[0], ub[0], op=neg, type=fp32, rows=1, cols=8, dst_pitch=1, src_pitch=1"


def test_a_core_flag_arrives_after_its_own_time(bench: Any) -> None:
    cube = f"{BIAS}\nset_core_flag pipe=mte1, to=aiv0, id=3"
    vector = f"wait_core_flag pipe=v, of=aic, id=3\n{NEG}"
    result = timed(bench, cube, vector, core_flag_cycles=70)
    # Start-up 23, one step of one cycle, 7 of an addition, 12 to come out.
    spans = [(each.core, each.name, each.start, each.end) for each in result.timeline]
    assert spans == [
        (0, "l1_to_bias", 1, 11),
        (0, "set_core_flag", 11, 11),
        (1, "wait_core_flag", 1, 81),
        (1, "v_unary", 81, 81 + 43),
    ]
    assert result.cycles == 124
    assert result.accounts[1, Pipe.V].tolist() == [43, 80, 0, 0, 0, 0, 1]
    assert result.accounts[0, Pipe.MTE1, [BUSY, FLAG, IDLE]].tolist() == [10, 0, 114]


def test_a_wait_takes_the_set_that_is_done_first_whichever_pipe_made_it(bench: Any) -> None:
    load = "gm_to_l1_nz v0, x0, x0, l1[0x8000], rows=16, cols=64, l1_rows=16"  # done after 500 + 8 + 1.7
    cube = f"{load}\nset_core_flag pipe=mte2, to=aiv0, id=0\n{BIAS}\n"
    cube += "set_core_flag pipe=mte1, to=aiv0, id=0"
    vector = "wait_core_flag pipe=v, of=aic, id=0\nwait_core_flag pipe=v, of=aic, id=0"
    result = timed(bench, cube, vector)
    waits = [each.end for each in result.timeline if each.name == "wait_core_flag"]
    assert waits == [13 + 20, 511 + 20]


def test_the_core_that_comes_first_pays_for_the_miss(bench: Any) -> None:
    wait = "nop\n" * 50
    cube = "gm_to_l1_nz v0, x0, x0, l1[0], rows=16, cols=64, l1_rows=16"
    vector = "gm_to_ub v0, x0, x0, ub[0], rows=16, cols=64, pitch=2"
    for texts, latencies in (
        # The other one, 50 cycles later, must wait for what is under way.
        ((wait + cube, vector), [450, 500]),
        ((cube, wait + vector), [500, 450]),
        # When it has come, it is a hit.
        ((20 * wait + cube, vector), [200, 500]),
    ):
        loads = [each for each in timed(bench, *texts).timeline if each.pipe == "MTE2"]
        assert [each.args["done_cycle"] - each.end for each in loads] == latencies


def deadlock_of(bench: Any, cube: str, vector: str) -> str:
    with pytest.raises(SimulationFault) as caught:
        timed(bench, cube, vector)
    return f"{caught.value.message} | {caught.value.span} | {caught.value.note}"


def test_cores_that_wait_for_each_other_are_diagnosed(bench: Any) -> None:
    cube = "wait_core_flag pipe=m, of=aiv0, id=1\nset_core_flag pipe=m, to=aiv0, id=0"
    vector = "wait_core_flag pipe=v, of=aic, id=0\nset_core_flag pipe=v, to=aic, id=1"
    assert deadlock_of(bench, cube, vector) == (
        "Every pipe of kernel 'k' must be able to go on, not wait for ever: M of AIC waits at "
        "instruction 0 (wait_core_flag pipe=m, of=aiv0, id=1) [kernel.py:1:1] for core flag 1 from "
        "AIV0 to AIC, which instruction 1 (set_core_flag pipe=v, to=aic, id=1) [mate.py:2:1] would "
        "set, but it stands in the queue of V of AIV0; V of AIV0 waits at instruction 0 "
        "(wait_core_flag pipe=v, of=aic, id=0) [mate.py:1:1] for core flag 0 from AIC to AIV0, "
        "which instruction 1 (set_core_flag pipe=m, to=aiv0, id=0) [kernel.py:2:1] would set, but "
        "it stands in the queue of M of AIC. | kernel.py:1:1 | M of AIC holds 2 instructions, V of "
        "AIV0 holds 2 instructions; each of these waits for the next one: M of AIC, V of AIV0, M of AIC"
    )


def test_a_wait_for_a_core_that_runs_nothing_is_diagnosed(bench: Any) -> None:
    message = deadlock_of(bench, "nop", "wait_core_flag pipe=s, of=aiv1, id=15")
    assert (
        "the scalar unit of AIV0 waits at instruction 0 (wait_core_flag pipe=s, of=aiv1, id=15) "
        "[mate.py:1:1] for core flag 15 from AIV1 to AIV0, which nothing sets, since nothing runs on "
        "AIV1." in message
    )
    assert message.endswith("the scalar unit of AIV0 has 1 instruction yet to issue")


def test_a_wait_for_one_set_too_many_is_diagnosed(bench: Any) -> None:
    vector = "wait_core_flag pipe=v, of=aic, id=0\nwait_core_flag pipe=v, of=aic, id=0"
    message = deadlock_of(bench, "set_core_flag pipe=m, to=aiv0, id=0", vector)
    assert "core flag 0 from AIC to AIV0, which nothing sets any more" in message


def test_cores_that_wait_for_ever_are_a_fault_without_times_too(bench: Any) -> None:
    kernel = bench.mixed(
        "wait_core_flag pipe=m, of=aiv0, id=1\nset_core_flag pipe=m, to=aiv0, id=0",
        "wait_core_flag pipe=v, of=aic, id=0\nset_core_flag pipe=v, to=aic, id=1",
    )
    with pytest.raises(SimulationFault, match="not wait for ever"):
        bench.run(kernel, timing=False)


def test_a_core_flag_left_over_names_both_cores(bench: Any) -> None:
    kernel = bench.mixed("nop", "set_core_flag pipe=v, to=aic, id=7")
    with pytest.raises(SimulationFault) as caught:
        bench.run(kernel)
    assert str(caught.value) == (
        "Every flag that is set must be waited for, but core flag 7 from AIV0 to AIC is still set "
        "once at the end of kernel 'k', last by instruction 0 (set_core_flag pipe=v, to=aic, id=7) "
        "[mate.py:1:1] of AIV0. [mate.py:1:1]"
    )


def test_a_core_flag_that_overruns_is_a_warning(bench: Any) -> None:
    flags = "set_core_flag pipe=m, to=aiv0, id=0\n" * 16
    waits = "wait_core_flag pipe=v, of=aic, id=0\n" * 16
    result = timed(bench, flags, f"{NEG}\n{NEG}\n{waits}")
    assert [warning.span.line for warning in result.warnings if warning.span] == [16]
    assert "but core flag 0 from AIC to AIV0 is set once more" in result.warnings[0].message
    assert timed(bench, flags[: flags.rindex("set")], f"{NEG}\n{waits[: waits.rindex('wait')]}").warnings == ()  # fmt: skip


def test_without_times_pipes_may_still_overtake_each_other(
    bench: Any, rng: np.random.Generator
) -> None:
    # In program order either core would wait for the other before it has set its own flag.
    text = """
        wait_core_flag pipe=fix, of={other}, id=0
        set_core_flag pipe=mte2, to={other}, id=0
    """
    copy = "gm_to_ub v0, x0, x0, ub[0], rows=16, cols=64, pitch=2\npipe_barrier pipe=all\n"
    copy += "ub_to_gm v1, x0, x0, ub[0], rows=16, cols=64, pitch=2"
    params = [bench.tensor("a", "E4M3", (16, 64)), bench.tensor("c", "E4M3", (16, 64), "out")]
    kernel = bench.mixed(
        text.format(other="aiv0"),
        text.format(other="aic").replace("fix", "v") + copy,
        params,
        [bench.plain(place, 8, 16, 64) for place in range(2)],
    )
    image = rng.integers(0, 256, 16 * 64).astype(np.uint8)
    result = bench.run(kernel, {"a": image}, timing=False)
    np.testing.assert_array_equal(result.outputs["c"], image)
    assert result.cycles == 0


def test_tasks_of_either_kind_run_one_after_another_each_on_its_core(
    bench: Any, rng: np.random.Generator
) -> None:
    params = [bench.tensor("a", "E4M3", (16, 64)), bench.tensor("c", "E4M3", (16, 64), "out")]
    views = [bench.plain(place, 8, 16, 64) for place in range(2)]
    copy = "gm_to_ub v0, x0, x0, ub[0], rows=16, cols=64, pitch=2\npipe_barrier pipe=all\n"
    copy += "ub_to_gm v1, x0, x0, ub[0], rows=16, cols=64, pitch=2"
    cube = bench.kernel(BIAS, params, views, "cube")
    vector = bench.kernel(copy, params, views, "vector", CoreKind.AIV)
    body = (Launch(0, ("a", "c"), ()), Launch(1, ("a", "c"), ()), Launch(0, ("a", "c"), ()))
    host = HostProgram("main", tuple(params), body, (Output("c", "c"),))
    executable = Executable("p", "a5", "", (cube, vector), (host,), "main")
    image = rng.integers(0, 256, 16 * 64).astype(np.uint8)
    result = simulate(executable, {"a": image}, target=bench.target, checks="warn")
    np.testing.assert_array_equal(result.outputs["c"], image)
    assert result.cores == (CoreName(0, ClusterCore.AIC), CoreName(0, ClusterCore.AIV0))
    assert [[part.core for part in run.cores] for run in result.tasks] == [
        [ClusterCore.AIC], [ClusterCore.AIV0], [ClusterCore.AIC],
    ]  # fmt: skip
    assert (result.accounts.sum(axis=2) == result.cycles - result.launch_cycles).all()
    assert result.pipes[0]["MTE1"] == 20
    assert result.pipes[1]["MTE1"] == 0
    assert {each.core for each in result.timeline if each.task == 1} == {1}


def test_a_lone_vector_kernel_has_one_core(bench: Any) -> None:
    result = bench.run(bench.kernel(NEG, core=CoreKind.AIV), functional=False)
    assert result.cores == (CoreName(0, ClusterCore.AIV0),)
    assert [pipes["V"] for pipes in result.pipes] == [43]


def test_the_scale_recorder_keeps_the_mads_of_a_mixed_kernel(bench: Any) -> None:
    from scalebox.sim.scales.recorder import ScaleRecorder

    load = "gm_to_l1_nz v0, x0, x0, l1[0], rows=16, cols=64, l1_rows=16"
    boxes = "gm_to_l1_boxes v1, x0, x0, l1[0x8000], ni=1, nj=1, l1_nj=1"
    flag = "set_flag src={0}, dst={1}, id=0\nwait_flag src={0}, dst={1}, id=0"
    mad = (
        "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=64, n=16, a_type=e4m3, b_type=e4m3, "
        "init=zero"
    )
    cube = "\n".join(
        [
            load,
            boxes,
            flag.format("mte2", "mte1"),
            "wait_core_flag pipe=mte1, of=aiv0, id=0",
            "l1_to_l0a l1[0], l0a[0], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1",
            "l1_to_l0b l1[0], l0b[0], bits=b8, k=64, n=16, src_k=64",
            "l1_to_scale_a l1[0x8000], scale_a[0], row_boxes=1, col_boxes=1, src_pitch=1",
            "l1_to_scale_b l1[0x8000], scale_b[0], row_boxes=1, col_boxes=1, src_pitch=1",
            flag.format("mte1", "m"),
            mad,
        ]
    )
    params = [bench.tensor("a", "E4M3", (16, 64)), bench.tensor("s", "E8M0", (16, 2))]
    views = [bench.plain(0, 8, 16, 64), bench.boxes(1, 16, 2)]
    kernel = bench.mixed(cube, "set_core_flag pipe=v, to=aic, id=0", params, views)
    recorder = ScaleRecorder(bench.target)
    scales = np.arange(100, 132, dtype=np.uint8)
    buffers = {"a": np.ones(16 * 64, np.uint8), "s": scales}
    bench.run(kernel, buffers, scales=recorder, checks="off")
    stream = recorder.finish()
    assert len(stream.mad_cycles) == 1
    assert stream.a_boxes.tolist() == stream.b_boxes.tolist() == [scales.tolist()]
