"""Cycles by hand arithmetic: pipes, queues, flags, barriers, the latency of global memory."""

from typing import Any

import pytest

from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.ir.errors import SimulationFault
from scalebox.sim.pipes.tables import BARRIER, BUSY, FLAG, IDLE, QUEUE
from scalebox.sim.report import SimResult

MAD = (
    "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=64, k=128, n=128, a_type=e4m3, b_type=e4m3, "
    "init=zero"
)  # 25 + 4 * 8 * 4 = 153 cycles
BIAS = "l1_to_bias l1[0], bias[0], bytes=32"  # 9 + 32 / 32 = 10 cycles
LOAD = "gm_to_l1_nz v0, x0, x0, l1[0], rows=32, cols=128, l1_rows=32"  # 4096 / 128 + 1.7: 34 cycles
FAR_LOAD = "gm_to_l1_nz v0, x1, x0, l1[0], rows=32, cols=128, l1_rows=32"


def timed(bench: Any, text: str, **settings: Any) -> SimResult:
    """Time a kernel whose view v0 is a [2048, 128] tensor, from cycle 0 on."""
    kernel = bench.kernel(
        text, [bench.tensor("a", "E4M3", (2048, 128))], [bench.plain(0, 8, 2048, 128)]
    )
    target = bench.target.with_settings({"launch_seconds": 0.0} | settings)
    result = bench.run(kernel, target=target, functional=False)
    lines = result.accounts[0]
    assert (lines.sum(axis=1) == result.cycles).all(), "every cycle of every pipe has one cause"
    assert (lines >= 0).all()
    return result


def spans(result: SimResult) -> list[tuple[str, int, int]]:
    return [(event.name, event.start, event.end) for event in result.timeline]


def test_a_mad_takes_its_head_and_its_steps(bench: Any) -> None:
    result = timed(bench, MAD)
    assert spans(result) == [("mad_mx", 1, 154)]
    assert result.cycles == 154
    assert result.pipes[0]["M"] == 153
    assert result.macs == 64 * 128 * 128


def test_a_pipe_runs_in_order_and_pipes_run_at_once(bench: Any) -> None:
    result = timed(bench, f"{MAD}\n{BIAS}\n{MAD}\n{BIAS}")
    assert spans(result) == [
        ("mad_mx", 1, 154),
        ("l1_to_bias", 2, 12),
        ("mad_mx", 154, 307),
        ("l1_to_bias", 12, 22),
    ]
    assert result.cycles == 307


def test_a_flag_arrives_ten_cycles_after_what_it_waits_for(bench: Any) -> None:
    result = timed(
        bench, f"{BIAS}\n set_flag src=mte1, dst=m, id=3\n wait_flag src=mte1, dst=m, id=3\n{MAD}"
    )
    assert spans(result) == [
        ("l1_to_bias", 1, 11),
        ("set_flag", 11, 11),
        ("wait_flag", 3, 21),
        ("mad_mx", 21, 174),
    ]
    assert result.accounts[0, Pipe.M].tolist() == [153, 18, 0, 0, 0, 0, 3]


def test_a_flag_set_long_ago_costs_nothing(bench: Any) -> None:
    text = f"set_flag src=mte1, dst=m, id=0\n{MAD}\n wait_flag src=mte1, dst=m, id=0\n{BIAS}"
    result = timed(bench, text)
    assert spans(result)[2] == ("wait_flag", 155, 155)
    assert result.accounts[0, Pipe.M, FLAG] == 0


def test_each_wait_takes_the_oldest_set_of_its_flag(bench: Any) -> None:
    flag = "src=mte1, dst=m, id=1"
    text = "\n".join(
        [f"{BIAS}\n set_flag {flag}"] * 2 + [f"wait_flag {flag}"] * 2 + [f"set_flag {flag}"]
    )
    result = timed(bench, f"{text}\n wait_flag {flag}\n{MAD}")
    waits = [span for span in spans(result) if span[0] == "wait_flag"]
    # Sets take effect at 11, 21 and 21; each wait takes the oldest.
    assert [end for _, _, end in waits] == [21, 31, 31]


def test_the_latency_of_a_load_is_not_its_pipes_and_overlaps(bench: Any) -> None:
    result = timed(bench, f"{LOAD}\n{LOAD}\n set_flag src=mte2, dst=m, id=0\n"
                          f"wait_flag src=mte2, dst=m, id=0\n{MAD}")  # fmt: skip
    # Cold: 200 + 300, 32 for the bytes, 1.7 for the one row. The second hits and follows the first.
    assert spans(result)[:3] == [
        ("gm_to_l1_nz", 1, 35),
        ("gm_to_l1_nz", 35, 69),
        ("set_flag", 569, 569),
    ]
    assert [event.args.get("done_cycle") for event in result.timeline[:2]] == [535, 569]
    assert spans(result)[4] == ("mad_mx", 579, 732)
    assert result.pipes[0]["MTE2"] == 68


def test_the_cache_knows_lines(bench: Any) -> None:
    # Rows of 128 bytes, four to a line of 512: rows 16 to 31 are there, 32 to 47 are not.
    text = "\n".join([f"movi x1, {row}\n{FAR_LOAD}\n pipe_barrier pipe=mte2" for row in (0, 16, 8, 600)])  # fmt: skip
    result = timed(bench, text)
    loads = [event for event in result.timeline if event.name == "gm_to_l1_nz"]
    latencies = [event.args["done_cycle"] - event.end for event in loads]
    assert latencies == [500, 500, 200, 500]
    assert result.traffic == (4 * 4096, 3 * 4096 - 2048, 0)


def test_a_cache_of_one_block_forgets_the_other(bench: Any) -> None:
    text = "\n".join([f"movi x1, {row}\n{FAR_LOAD}\n pipe_barrier pipe=mte2" for row in (0, 600, 0, 0)])  # fmt: skip
    result = timed(bench, text, l2_bytes=65536)
    loads = [event for event in result.timeline if event.name == "gm_to_l1_nz"]
    assert [event.args["done_cycle"] - event.end for event in loads] == [500, 500, 500, 200]


@pytest.mark.parametrize(("size", "latencies"), [(0, [500, 500]), (1 << 20, [500, 200])])
def test_a_machine_may_have_no_cache(bench: Any, size: int, latencies: list[int]) -> None:
    result = timed(bench, f"{LOAD}\n pipe_barrier pipe=mte2\n{LOAD}", l2_bytes=size)
    loads = [event for event in result.timeline if event.name == "gm_to_l1_nz"]
    assert [event.args["done_cycle"] - event.end for event in loads] == latencies


def test_a_barrier_waits_for_what_is_under_way(bench: Any) -> None:
    result = timed(bench, f"{LOAD}\n pipe_barrier pipe=mte2\n{LOAD}")
    assert spans(result) == [
        ("gm_to_l1_nz", 1, 35),
        ("pipe_barrier", 35, 535),
        ("gm_to_l1_nz", 535, 569),
    ]
    assert result.accounts[0, Pipe.MTE2].tolist() == [68, 0, 500, 0, 0, 0, 769 - 568]
    assert result.cycles == 535 + 200 + 34


def test_a_barrier_of_all_stops_the_scalar_unit(bench: Any) -> None:
    result = timed(bench, f"{MAD}\n pipe_barrier pipe=all\n{BIAS}")
    assert spans(result) == [
        ("mad_mx", 1, 154),
        ("pipe_barrier", 2, 154),
        ("l1_to_bias", 155, 165),
    ]
    assert result.accounts[0, Pipe.S, BARRIER] == 152


def test_the_scalar_unit_can_wait_for_a_flag_and_set_one(bench: Any) -> None:
    text = f"""
        {MAD}
        set_flag src=m, dst=s, id=0
        wait_flag src=m, dst=s, id=0
        set_flag src=s, dst=mte1, id=0
        wait_flag src=s, dst=mte1, id=0
        {BIAS}
    """
    result = timed(bench, text)
    assert spans(result) == [
        ("mad_mx", 1, 154),
        ("set_flag", 154, 154),
        ("wait_flag", 3, 164),
        ("set_flag", 165, 165),
        ("wait_flag", 166, 175),
        ("l1_to_bias", 175, 185),
    ]
    assert result.accounts[0, Pipe.S, FLAG] == 161


def test_a_full_queue_stalls_the_scalar_unit(bench: Any) -> None:
    # Two entries wait while one runs; the fourth mad enters when the second leaves the queue.
    result = timed(bench, f"{MAD}\n{MAD}\n{MAD}\n{MAD}\n{BIAS}", queue_entries=2)
    assert spans(result) == [
        ("mad_mx", 1, 154),
        ("mad_mx", 154, 307),
        ("mad_mx", 307, 460),
        ("mad_mx", 460, 613),
        ("l1_to_bias", 155, 165),
    ]
    assert result.accounts[0, Pipe.S].tolist() == [6, 0, 0, 150, 0, 0, 613 - 156]
    roomy = timed(bench, f"{MAD}\n{MAD}\n{MAD}\n{MAD}\n{BIAS}")
    assert spans(roomy)[-1] == ("l1_to_bias", 5, 15)
    assert roomy.accounts[0, Pipe.S, QUEUE] == 0


def test_a_loop_costs_its_scalar_instructions(bench: Any) -> None:
    text = f"movi x1, 0\n movi x2, 3\nloop:\n{BIAS}\n addi x1, x1, 1\n blt x1, x2, loop"
    result = timed(bench, text, scalar_cycles=4, branch_taken_cycles=6)
    # 4 + 4 + 4, then 4 + 6 + 4 a round.
    assert [start for _, start, _ in spans(result)] == [12, 26, 40]
    assert result.accounts[0, Pipe.S, BUSY] == 40 + 4 + 4 + 4


def test_a_kernel_that_only_halts_takes_its_cycle(bench: Any) -> None:
    assert timed(bench, "halt").cycles == 1


def test_the_launch_is_its_own_line(bench: Any) -> None:
    kernel = bench.kernel(MAD)
    result = bench.run(kernel, functional=False)
    assert result.launch_cycles == 4950  # 3 µs at 1.65 GHz
    assert result.cycles == 4950 + 154
    assert (result.accounts[0].sum(axis=1) == 154).all()
    assert result.timeline[0].start == 4951


def test_what_a_pipe_does_is_in_the_timeline_once(bench: Any) -> None:
    text = f"{LOAD}\n set_flag src=mte2, dst=mte1, id=0\n wait_flag src=mte2, dst=mte1, id=0\n"
    text += f"{BIAS}\n{BIAS}\n set_flag src=mte1, dst=m, id=0\n wait_flag src=mte1, dst=m, id=0\n"
    result = timed(bench, text + f"{MAD}\n{MAD}")
    for pipe in Pipe:
        if pipe in (Pipe.S, Pipe.ALL):
            continue
        busy = sum(
            event.end - event.start
            for event in result.timeline
            if event.pipe == pipe.name and event.name not in ("wait_flag", "set_flag")
        )
        assert busy == result.pipes[0][pipe.name]
    flows = [event.args["flow"] for event in result.timeline if "flow" in event.args]
    assert sorted(flows) == sorted([flows[0]] * 2 + [flows[2]] * 2)
    assert result.timeline[0].source == "kernel.py:1:1"


def deadlock_of(bench: Any, text: str, **settings: Any) -> str:
    with pytest.raises(SimulationFault) as caught:
        timed(bench, text, **settings)
    assert caught.value.span is not None
    return f"{caught.value.message} | {caught.value.span} | {caught.value.note}"


def test_a_wait_that_nobody_ends_is_diagnosed(bench: Any) -> None:
    assert deadlock_of(bench, f"{BIAS}\n wait_flag src=mte1, dst=m, id=5\n{MAD}") == (
        "Every pipe of kernel 'k' must be able to go on, not wait for ever: M waits at instruction "
        "1 (wait_flag src=mte1, dst=m, id=5) [kernel.py:2:1] for flag 5 from MTE1 to M, which "
        "nothing sets any more. | kernel.py:2:1 | M holds 2 instructions"
    )


def test_a_circle_of_waits_is_diagnosed(bench: Any) -> None:
    text = """
        wait_flag src=m, dst=mte1, id=0
        set_flag src=mte1, dst=m, id=0
        wait_flag src=mte1, dst=m, id=0
        set_flag src=m, dst=mte1, id=0
    """
    message = deadlock_of(bench, text)
    assert (
        "M waits at instruction 2 (wait_flag src=mte1, dst=m, id=0) [kernel.py:3:1] for flag 0 "
        "from MTE1 to M, which instruction 1 (set_flag src=mte1, dst=m, id=0) [kernel.py:2:1] "
        "would set, but it stands in the queue of MTE1" in message
    )
    assert "MTE1 waits at instruction 0" in message
    assert "MTE1 holds 2 instructions" in message


def test_a_set_behind_a_full_queue_is_diagnosed(bench: Any) -> None:
    text = "wait_flag src=m, dst=mte1, id=0\n" + f"{BIAS}\n" * 2 + "set_flag src=m, dst=mte1, id=0"
    assert timed(bench, text, queue_entries=3).cycles > 0
    message = deadlock_of(bench, text, queue_entries=2)
    assert "which instruction 3 (set_flag src=m, dst=mte1, id=0) [kernel.py:4:1] would set, but it is not yet issued" in message  # fmt: skip
    assert (
        "the scalar unit waits at instruction 2 (l1_to_bias l1[0x0], bias[0x0], bytes=32) "
        "[kernel.py:3:1] for room in the queue of MTE1, whose 2 entries are taken" in message
    )
    assert "the scalar unit has 2 instructions yet to issue" in message


def test_a_barrier_behind_a_wait_is_diagnosed(bench: Any) -> None:
    message = deadlock_of(bench, "wait_flag src=m, dst=v, id=0\n pipe_barrier pipe=all")
    assert "for the queues of V to be empty" in message


def test_a_scalar_wait_that_nobody_ends_is_diagnosed(bench: Any) -> None:
    message = deadlock_of(bench, "wait_flag src=m, dst=s, id=0")
    assert "the scalar unit waits at instruction 0" in message
    assert "which nothing sets any more" in message


def test_a_deadlock_is_a_fault_whatever_the_checks(bench: Any) -> None:
    kernel = bench.kernel("wait_flag src=m, dst=v, id=0")
    for checks in ("error", "warn", "off"):
        with pytest.raises(SimulationFault, match="not wait for ever"):
            bench.run(kernel, checks=checks)


def test_a_flag_left_over_is_a_fault_a_warning_or_nothing(bench: Any) -> None:
    kernel = bench.kernel("set_flag src=m, dst=v, id=2\n set_flag src=m, dst=v, id=2")
    sentence = (
        "Every flag that is set must be waited for, but flag 2 from M to V is still set 2 times "
        "at the end of kernel 'k', last by instruction 1 (set_flag src=m, dst=v, id=2) "
        "[kernel.py:2:1]."
    )
    with pytest.raises(SimulationFault) as caught:
        bench.run(kernel)
    assert caught.value.message == sentence
    assert [str(w.message) for w in bench.run(kernel, checks="warn").warnings] == [sentence]
    assert bench.run(kernel, checks="off").warnings == ()


def test_a_counter_that_overruns_is_a_warning(bench: Any) -> None:
    flag = "src=mte1, dst=m, id=0"
    text = [f"set_flag {flag}"] * 16 + ["pipe_barrier pipe=mte1"] + [f"wait_flag {flag}"] * 16
    result = timed(bench, "\n".join(text), flag_cycles=100)
    assert [warning.span.line for warning in result.warnings if warning.span] == [16]
    assert "at most 15 times ahead" in result.warnings[0].message
    assert timed(bench, "\n".join(text[1:-1]), flag_cycles=100).warnings == ()


def test_every_run_takes_the_same_cycles(bench: Any) -> None:
    bias = BIAS.replace("l1[0]", "l1[0x8000]")
    text = f"{LOAD}\n{MAD}\n{bias}\n pipe_barrier pipe=all\n{LOAD}\n{MAD}"
    first, second = timed(bench, text), timed(bench, text)
    assert spans(first) == spans(second)
    assert first.cycles == second.cycles
    assert first.accounts[0, :, IDLE].tolist() == second.accounts[0, :, IDLE].tolist()
