"""Slices stand apart on every pipe and add up to its account; counters add up to the bytes moved."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.vocabulary import ClusterCore, Pipe
from scalebox.sim.account.records import COLUMNS, NONE, Cause, records_of
from scalebox.sim.account.slices import FULL_QUEUE, ISSUES, READ, STALLS, WRITE, Slices
from scalebox.sim.decode import Role
from scalebox.sim.report import SimResult
from scalebox.traces.timeline import DEVICE, Timeline

from ...traces.importer import Opened, opened
from .random_streams import kernel_of, texts

LOAD = "gm_to_l1_row v0, x0, x0, l1[0], cols=64"
STORE = "l0c_to_gm v3, x0, x0, l0c[0], rows=1, cols=8, src_rows=16, convert=fp32"
MAD = (
    "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=64, n=48, a_type=e4m3, b_type=e4m3, init=zero"
)


def slices_of(result: SimResult, target: Any) -> Slices:
    return Slices(records_of(result, target), cycles=result.cycles)


def assert_adds_up(result: SimResult, slices: Slices) -> None:
    """Hold the slices against the accounts; what those do not tell apart is work to them."""
    totals = slices.totals(len(result.cores))
    told: dict[Cause, Any] = {}
    for cause, cycles in totals.items():
        kept = cause if cause in COLUMNS else Cause.BUSY
        told[kept] = told.get(kept, 0) + cycles
    for cause, column in COLUMNS.items():
        np.testing.assert_array_equal(told[cause], result.accounts[:, :, column], cause.value)


@pytest.mark.parametrize("count", [1, 2])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), queue_entries=st.integers(1, 4), beat=st.sampled_from([1, 32]))
def test_slices_stand_apart_and_add_up_to_the_accounts(
    bench: Any, count: int, data: Any, queue_entries: int, beat: int
) -> None:
    target = bench.target.with_settings(
        {"queue_entries": queue_entries, "scale_beat_bytes": beat, "l2_miss_cycles": 60}
    )
    lines = data.draw(texts(list(ClusterCore)[:count]))
    result = bench.run(kernel_of(bench, lines), target=target, functional=False, checks="off")
    slices = slices_of(result, target)
    assert_adds_up(result, slices)
    on_pipe: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for each in slices.slices():
        assert result.launch_cycles <= each.start <= each.end <= result.cycles
        on_pipe.setdefault((each.core, each.pipe), []).append((each.start, each.end))
    for spans in on_pipe.values():
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize("count", [1, 3])
@settings(max_examples=60, deadline=None)
@given(
    data=st.data(), flag_cycles=st.sampled_from([0, 0, 1, 10]), core_flag=st.sampled_from([0, 3])
)
def test_every_wait_has_an_arrow_from_its_set_however_short_flags_take(
    bench: Any, count: int, data: Any, flag_cycles: int, core_flag: int
) -> None:
    times = {"flag_cycles": flag_cycles, "core_flag_cycles": core_flag, "flag_counter_max": 255}
    target = bench.target.with_settings(times)
    lines = data.draw(texts(list(ClusterCore)[:count]))
    result = bench.run(kernel_of(bench, lines), target=target, functional=False, checks="off")
    slices = slices_of(result, target)
    found = opened(Timeline(slices=slices.slices, clock_hz=target.clock_hz).as_trace())
    assert not found.errors
    assert len(found.slices) == len(slices.table)
    assert not any(each.depth for each in found.slices)
    assert_arrows(slices, found)


@pytest.mark.parametrize("flag_cycles", [0, 1])
def test_flags_of_one_cycle_stand_in_the_order_of_cause_and_of_their_pipe(
    bench: Any, flag_cycles: int
) -> None:
    # In the program every wait stands before its set.
    text = f"""
wait_flag src=mte1, dst=mte2, id=0
wait_flag src=m, dst=mte1, id=0
set_flag src=mte1, dst=mte2, id=0
{MAD}
set_flag src=m, dst=mte1, id=0
"""
    target = bench.target.with_settings({"flag_cycles": flag_cycles})
    result = bench.run(kernel_of(bench, [text]), target=target, functional=False, checks="off")
    slices = slices_of(result, target)
    moments = [each for each in slices.slices() if each.start == each.end]
    assert [(each.pipe, each.name) for each in moments] == [
        ("M", "set_flag"),
        ("MTE1", "wait_flag"),
        ("MTE1", "set_flag"),
        ("MTE2", "wait_flag"),
    ]
    assert moments[-1].end - moments[0].end == 2 * flag_cycles
    found = opened(Timeline(slices=slices.slices, clock_hz=target.clock_hz).as_trace())
    assert not found.errors
    assert_arrows(slices, found)


def assert_arrows(slices: Slices, found: Opened) -> None:
    """Hold the arrows against the records: each from its set to its wait, and not back in time."""
    records = slices.records
    pairs: dict[int, int] = {}
    for wait in np.flatnonzero((records.role == Role.WAIT) & (records.partner != NONE)).tolist():
        pairs[int(records.partner[wait])] = wait
    assert sorted(tail.args["arrow"] for tail, _ in found.arrows) == sorted(pairs)
    for tail, head in found.arrows:
        number = tail.args["arrow"]
        assert head.args["arrow"] == number
        assert tail.ts <= head.ts
        for end, record in ((tail, number), (head, pairs[number])):
            assert end.name == records.instruction(record).mnemonic
            assert end.args["source"] == records.source(record)
            assert end.ts // 1000 == records.end[record]


def test_a_slice_tells_what_an_instruction_did(bench: Any) -> None:
    result = bench.run(kernel_of(bench, [f"{LOAD}\n{MAD}"]), functional=False)
    told = {each.name: each for each in slices_of(result, bench.target).slices()}
    load, mad = told["gm_to_l1_row"], told["mad_mx"]
    assert (load.pipe, load.category) == ("MTE2", "busy")
    assert load.args["shape"] == "64"
    assert load.args["bytes"] == 64
    assert load.args["source"] == "kernel.py:1:1"
    assert load.args["done_cycle"] == load.end + 500
    assert (mad.args["shape"], mad.args["a_type"]) == ("16 x 64 x 48", "e4m3")
    assert told[ISSUES].args == {"task": 0, "instructions": 2}


def test_a_wait_names_its_flag_and_who_set_it(bench: Any) -> None:
    flag = "src=mte2, dst=m, id=3"
    text = f"{LOAD}\nset_flag {flag}\nwait_flag {flag}\n{MAD}"
    result = bench.run(kernel_of(bench, [text]), functional=False)
    told = {each.name: each for each in slices_of(result, bench.target).slices()}
    wait, set_ = told["wait_flag"], told["set_flag"]
    assert (wait.pipe, wait.category) == ("M", "flag")
    assert wait.args["cause"] == "flag"
    assert wait.args["flag"] == "MTE2->M 3"
    assert wait.args["set_by"] == "kernel.py:2:1"
    assert (set_.tail_of, set_.head_of) == (wait.head_of, wait.tail_of)
    assert wait.head_of is not None
    assert set_.start == set_.end
    assert wait.start == wait.end
    stall = told[STALLS[Cause.FLAG]]
    assert (stall.pipe, stall.category, stall.end) == ("M", "flag", wait.start)
    assert stall.args == {**wait.args, "mnemonic": "wait_flag"}
    assert (stall.tail_of, stall.head_of) == (None, None)


def test_a_wait_that_need_not_wait_is_a_moment(bench: Any) -> None:
    flag = "src=mte2, dst=m, id=3"
    text = f"set_flag {flag}\n{MAD}\nwait_flag {flag}"
    result = bench.run(kernel_of(bench, [text]), functional=False)
    (wait,) = [each for each in slices_of(result, bench.target).slices() if "wait" in each.name]
    assert (wait.name, wait.start) == ("wait_flag", wait.end)
    assert wait.head_of is not None


def test_a_full_queue_stalls_the_scalar_unit(bench: Any) -> None:
    target = bench.target.with_settings({"queue_entries": 1, "mad_head_cycles": 70})
    result = bench.run(kernel_of(bench, ["\n".join([MAD] * 3)]), target=target, functional=False)
    (stall,) = [each for each in slices_of(result, target).slices() if each.name == FULL_QUEUE]
    assert (stall.pipe, stall.category, stall.args["queue"]) == ("S", "queue", "M")
    # The first mad starts in cycle 1 and takes 76; the third is ready for the queue in cycle 3.
    assert stall.end - stall.start == 1 + 76 - 3


def test_scales_that_come_late_are_a_slice_behind_the_work(bench: Any) -> None:
    target = bench.target.with_settings({"scale_beat_bytes": 2})
    result = bench.run(kernel_of(bench, [MAD]), target=target, functional=False)
    work, stall = [each for each in slices_of(result, target).slices() if each.pipe == "M"]
    assert (work.name, work.category) == ("mad_mx", "busy")
    assert (stall.category, stall.args["mnemonic"]) == ("scales", "mad_mx")
    assert stall.start == work.end


@pytest.mark.parametrize("loads", [1, 7])
def test_the_bandwidth_adds_up_to_the_bytes_moved(bench: Any, loads: int) -> None:
    text = "\n".join([*[LOAD] * loads, STORE])
    result = bench.run(kernel_of(bench, [text]), functional=False)
    sums = {(core, name): 0.0 for core in (DEVICE, 0) for name in (READ, WRITE)}
    last: dict[int, Any] = {}
    for sample in slices_of(result, bench.target).samples():
        before = last.get(sample.core)
        if before is not None:
            for name, rate in before.values.items():
                sums[sample.core, name] += rate * (sample.cycle - before.cycle)
        last[sample.core] = sample
    assert all(sample.values == {READ: 0.0, WRITE: 0.0} for sample in last.values())
    for core in (DEVICE, 0):
        assert sums[core, READ] == pytest.approx(64 * loads)
        assert sums[core, WRITE] == pytest.approx(8 * 4)


def test_only_the_cores_that_are_asked_for_are_shown(bench: Any) -> None:
    cube = f"{LOAD}\n{MAD}"
    vector = "gm_to_ub v0, x0, x0, ub[0], rows=1, cols=64, pitch=2"
    result = bench.run(kernel_of(bench, [cube, vector]), functional=False)
    slices = slices_of(result, bench.target)
    assert {each.core for each in slices.slices()} == {0, 1}
    assert {each.core for each in slices.slices([1])} == {1}
    assert {each.core for each in slices.samples([1])} == {DEVICE, 1}


def test_what_was_not_timed_has_no_slices(bench: Any) -> None:
    result = bench.run(kernel_of(bench, [MAD]), functional=False, timing=False)
    slices = slices_of(result, bench.target)
    assert list(slices.slices()) == []
    assert list(slices.samples()) == []
    assert set(slices.totals(1)[Cause.BUSY].sum(axis=0)) == {0}
    assert slices.totals(1)[Cause.BUSY].shape == (1, Pipe.ALL)
