"""The critical path tiles the run, and each of its segments takes what the machine says it takes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.executable import Executable, HostProgram
from scalebox.codegen.host.program import Launch
from scalebox.codegen.isa.vocabulary import ClusterCore, Pipe
from scalebox.codegen.scalars.exprs import Const
from scalebox.sim import costs
from scalebox.sim.account.critical import CriticalPath, Segment, critical_path
from scalebox.sim.account.critical_walk import CAUSE, FROM, RECORD, TASK, TO
from scalebox.sim.account.records import Cause, records_of
from scalebox.sim.device import simulate
from scalebox.sim.report import SimResult

from .random_streams import kernel_of, texts

LAUNCH = 4950


def path_of(result: SimResult, target: Any) -> CriticalPath:
    return critical_path(records_of(result, target))


def timed(bench: Any, text: str, **settings_: Any) -> tuple[SimResult, tuple[Segment, ...]]:
    target = bench.target.with_settings(settings_)
    result = bench.run(kernel_of(bench, [text]), target=target, functional=False, checks="off")
    return result, path_of(result, target).segments


def told(segments: tuple[Segment, ...]) -> list[tuple[Cause, Pipe | None, str, int]]:
    return [(each.cause, each.pipe, each.mnemonic, each.cycles) for each in segments]


LOAD = "gm_to_l1_row v0, x0, x0, l1[0], cols=64"
MAD = (
    "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=64, n=48, a_type=e4m3, b_type=e4m3, init=zero"
)
BIAS = "l1_to_bias l1[0], bias[0], bytes=32"


def test_a_load_is_issued_then_moves_and_arrives_a_latency_later(bench: Any) -> None:
    _, segments = timed(
        bench, LOAD, l2_hit_cycles=7, l2_miss_cycles=30, gm_port_bytes_per_cycle=8, gm_row_cycles=0
    )
    assert told(segments) == [
        (Cause.LAUNCH, None, "", LAUNCH),
        (Cause.ISSUE, Pipe.S, "gm_to_l1_row", 1),
        (Cause.BUSY, Pipe.MTE2, "gm_to_l1_row", 8),
        (Cause.LATENCY, Pipe.MTE2, "gm_to_l1_row", 37),
    ]
    assert segments[2].source == "kernel.py:1:1"


def test_the_path_goes_through_the_flag_that_came_last(bench: Any) -> None:
    text = f"""{LOAD}
set_flag src=mte2, dst=m, id=0
{BIAS}
set_flag src=mte1, dst=m, id=0
wait_flag src=mte1, dst=m, id=0
wait_flag src=mte2, dst=m, id=0
{MAD}"""
    _, segments = timed(bench, text, flag_cycles=10, mad_head_cycles=5)
    assert [(each.cause, each.pipe) for each in segments[1:]] == [
        (Cause.ISSUE, Pipe.S),
        (Cause.BUSY, Pipe.MTE2),
        (Cause.LATENCY, Pipe.MTE2),
        (Cause.FLAG, Pipe.M),
        (Cause.BUSY, Pipe.M),
    ]
    assert segments[4].cycles == 10
    assert segments[5].cycles == 5 + 3 * 2


def test_of_a_full_queue_the_path_goes_on_with_what_had_to_leave_it(bench: Any) -> None:
    result, segments = timed(bench, "\n".join([MAD] * 6), queue_entries=2, mad_head_cycles=50)
    busy = [each for each in segments if each.cause is Cause.BUSY]
    assert [each.cycles for each in busy] == [56] * 6
    assert result.cycles == LAUNCH + 1 + 6 * 56


def test_scalar_work_without_a_pipe_is_the_path_itself(bench: Any) -> None:
    _, segments = timed(bench, "nop\nnop\nnop")
    assert told(segments) == [(Cause.LAUNCH, None, "", LAUNCH), (Cause.ISSUE, None, "", 4)]


def test_scalar_work_behind_the_last_record_ends_the_path(bench: Any) -> None:
    result, segments = timed(bench, f"{BIAS}\n" + "\n".join(["nop"] * 500))
    assert segments[-1].cause is Cause.ISSUE
    assert segments[-1].end == result.cycles
    assert segments[-1].cycles == 501


def test_a_load_behind_a_missing_one_waits_for_its_bytes(bench: Any) -> None:
    _, segments = timed(
        bench, f"{LOAD}\n{LOAD}", l2_hit_cycles=7, l2_miss_cycles=90, gm_row_cycles=0
    )
    assert told(segments)[1:] == [
        (Cause.ISSUE, Pipe.S, "gm_to_l1_row", 1),
        (Cause.BUSY, Pipe.MTE2, "gm_to_l1_row", 1),
        (Cause.LATENCY, Pipe.MTE2, "gm_to_l1_row", 97),
        (Cause.BUSY, Pipe.MTE2, "gm_to_l1_row", 1),
    ]


def test_starving_for_scales_is_a_cause_of_its_own(bench: Any) -> None:
    _, segments = timed(bench, MAD, scale_beat_bytes=2)
    starved = costs.mad_starved_cycles(
        bench.target.with_settings({"scale_beat_bytes": 2}), m=16, k=64, n=48, bits=8
    )
    assert starved > 0
    assert [each.cycles for each in segments if each.cause is Cause.SCALES] == [starved]


def test_without_times_there_is_no_path(bench: Any) -> None:
    result = bench.run(kernel_of(bench, [BIAS]), functional=False, timing=False)
    path = path_of(result, bench.target)
    assert path.segments == ()
    assert path.shares == ()


def test_shares_put_together_what_is_alike(bench: Any) -> None:
    kernel = kernel_of(bench, ["\n".join([MAD] * 4)])
    result = bench.run(kernel, functional=False)
    path = path_of(result, bench.target)
    assert sum(share.cycles for share in path.shares) == result.cycles
    assert [share.times for share in path.shares if share.cause is Cause.BUSY] == [1] * 4
    assert [each.cycles for each in path.shares] == sorted(
        (each.cycles for each in path.shares), reverse=True
    )


@pytest.mark.parametrize("count", [1, 2])
@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    queue_entries=st.integers(1, 5),
    flag_cycles=st.integers(0, 12),
    core_flag_cycles=st.integers(0, 30),
    hit_cycles=st.sampled_from([0, 3, 40]),
    miss_cycles=st.sampled_from([0, 50]),
    beat=st.sampled_from([1, 32]),
)
def test_the_path_tiles_every_run_with_what_the_machine_says(
    bench: Any, count: int, data: Any, queue_entries: int, flag_cycles: int, core_flag_cycles: int,
    hit_cycles: int, miss_cycles: int, beat: int,
) -> None:  # fmt: skip
    target = bench.target.with_settings(
        {
            "queue_entries": queue_entries,
            "flag_cycles": flag_cycles,
            "core_flag_cycles": core_flag_cycles,
            "l2_hit_cycles": hit_cycles,
            "l2_miss_cycles": miss_cycles,
            "scale_beat_bytes": beat,
            "gm_port_bytes_per_cycle": 10.0,
            "drain_fixed_cycles": 11.0,
        }
    )
    lines = data.draw(texts(list(ClusterCore)[:count]))
    result = bench.run(kernel_of(bench, lines), target=target, functional=False, checks="off")
    path = path_of(result, target)
    table, records = path.table, path.records
    assert table[0, FROM] == 0
    assert table[-1, TO] == result.cycles
    np.testing.assert_array_equal(table[1:, FROM], table[:-1, TO])
    assert (table[:, TO] > table[:, FROM]).all()
    for segment, (_, _, _, record) in zip(path.segments, table.tolist(), strict=True):
        if record < 0:
            assert segment.cause in (Cause.LAUNCH, Cause.ISSUE)
            continue
        part = records.parts[int(records.part[record])]
        item = int(records.item[record])
        work = int(costs.occupancy(part.kernel, target)[item]) - int(records.starved[record])
        allowed = {
            Cause.BUSY: {work},
            Cause.SCALES: {int(records.starved[record])},
            Cause.MEMORY: {int(records.shared[record])},
            Cause.FLAG: {flag_cycles, core_flag_cycles},
            # A line that another core has asked for is waited for, but not asked for again.
            Cause.LATENCY: range(hit_cycles, hit_cycles + miss_cycles + 1),
            Cause.ISSUE: {int(records.gap[record]), part.core.stream.tail},
        }
        assert segment.cycles in allowed[segment.cause], segment


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    clusters=st.integers(1, 3),
    grids=st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 5), st.booleans()), min_size=1, max_size=4
    ),
)
def test_the_path_goes_from_task_to_task_without_a_gap(
    bench: Any, data: Any, clusters: int, grids: list[tuple[int, int, bool]]
) -> None:
    target = bench.target.with_settings({"cores": clusters, "l2_hit_cycles": 5})
    made = tuple(
        replace(kernel_of(bench, data.draw(texts([ClusterCore.AIC]))), name=name) for name in "st"
    )
    body = tuple(
        Launch(kernel, ("a", "c"), blocks=Const(blocks), sync_start=sync and blocks <= clusters)
        for kernel, blocks, sync in grids
    )
    host = replace(HostProgram.of_kernel(0, made[0]), body=body)
    executable = Executable("p", "a5", "", made, (host,), host.name)
    result = simulate(executable, {}, target=target, functional=False, checks="off")
    table = path_of(result, target).table
    assert (table[0, FROM], table[-1, TO]) == (0, result.cycles)
    np.testing.assert_array_equal(table[1:, FROM], table[:-1, TO])
    assert (table[:, TO] > table[:, FROM]).all()
    # A task begins in the very cycle in which the one ends that it waited for.
    assert TASK not in table[:, CAUSE]


def test_columns_of_a_segment_are_those_of_the_walk(bench: Any) -> None:
    result = bench.run(kernel_of(bench, [LOAD]), functional=False)
    path = path_of(result, bench.target)
    for line, segment in zip(path.table.tolist(), path.segments, strict=True):
        assert (line[FROM], line[TO]) == (segment.start, segment.end)
        assert line[RECORD] == (-1 if segment.core < 0 else 0)
        assert line[CAUSE] >= 0
