"""Timelines: lanes whose slices nest or stand apart, arrows, names, and true times."""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.errors import InputError
from scalebox.traces.timeline import chrome_trace, write_timeline

CLOCK_HZ = 1_650_000_000


class Event(NamedTuple):
    core: int
    pipe: str
    name: str
    start: int
    end: int
    source: str = ""
    task: int = 0
    args: Mapping[str, Any] = {}


def slices(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [record for record in trace["traceEvents"] if record["ph"] == "X"]


def assert_nested_or_apart(trace: dict[str, Any]) -> None:
    by_thread: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for record in slices(trace):
        end = record["ts"] + record["dur"]
        by_thread[record["pid"], record["tid"]].append((record["ts"], end))
    for spans in by_thread.values():
        for number, (begin, end) in enumerate(spans):
            for other_begin, other_end in spans[number + 1 :]:
                apart = end <= other_begin or other_end <= begin
                inside = (begin <= other_begin and other_end <= end) or (
                    other_begin <= begin and end <= other_end
                )
                assert apart or inside


def thread_names(trace: dict[str, Any]) -> dict[tuple[int, int], str]:
    return {
        (record["pid"], record["tid"]): record["args"]["name"]
        for record in trace["traceEvents"]
        if record["name"] == "thread_name"
    }


def test_three_overlapping_loads_on_one_pipe_stand_on_three_lanes() -> None:
    loads = [Event(0, "MTE2", "load", start, start + 100) for start in (0, 10, 20)]
    trace = chrome_trace(loads, clock_hz=CLOCK_HZ)
    assert_nested_or_apart(trace)
    names = thread_names(trace)
    assert sorted(names.values()) == ["MTE2", "MTE2 (2)", "MTE2 (3)"]
    assert len({record["tid"] for record in slices(trace)}) == 3


def test_slices_that_follow_each_other_share_a_lane() -> None:
    moves = [Event(0, "MTE1", "move", start, start + 7) for start in range(0, 700, 7)]
    trace = chrome_trace(moves, clock_hz=CLOCK_HZ)
    assert list(thread_names(trace).values()) == ["MTE1"]


def test_a_core_is_a_process_and_a_pipe_a_thread() -> None:
    events = [Event(core, pipe, "x", 0, 1) for core in (1, 0) for pipe in ("V", "M", "MTE2")]
    trace = chrome_trace(events, clock_hz=CLOCK_HZ, pipes=("MTE2", "M"))
    processes = {
        record["pid"]: record["args"]["name"]
        for record in trace["traceEvents"]
        if record["name"] == "process_name"
    }
    assert list(processes.values()) == ["core 0", "core 1"]
    names = thread_names(trace)
    shown = [(processes[pid], name) for (pid, _), name in sorted(names.items())]
    pipes = ("MTE2", "M", "V")
    assert shown == [(f"core {core}", pipe) for core in (0, 1) for pipe in pipes]
    assert 0 not in {pid for pid, _ in names} | {tid for _, tid in names}


def test_a_slice_tells_cycles_whole_and_times_in_microseconds() -> None:
    event = Event(0, "M", "mad_mx", 1650, 4950, "kernel.py:12", 3, {"macs": 65536})
    (record,) = slices(chrome_trace([event], clock_hz=CLOCK_HZ))
    assert (record["name"], record["ts"], record["dur"]) == ("mad_mx", 1.0, 2.0)
    assert record["args"] == {
        "start_cycle": 1650,
        "end_cycle": 4950,
        "cycles": 3300,
        "task": 3,
        "source": "kernel.py:12",
        "macs": 65536,
    }


@given(
    spans=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.sampled_from(["M", "V"]),
            st.integers(0, 10**12),
            st.integers(0, 40),
        ),
        max_size=25,
    ),
    near=st.booleans(),
    clock_hz=st.sampled_from([CLOCK_HZ, 1_000_000_000, 1_850_000_000, 7]),
)
def test_no_set_of_events_makes_slices_that_cross(
    spans: list[tuple[int, str, int, int]], near: bool, clock_hz: int
) -> None:
    events = [
        Event(
            core, pipe, "x", start % 60 if near else start, (start % 60 if near else start) + span
        )
        for core, pipe, start, span in spans
    ]
    trace = chrome_trace(events, clock_hz=clock_hz)
    assert_nested_or_apart(trace)
    assert len(slices(trace)) == len(events)
    for record in slices(trace):
        exact = record["args"]["start_cycle"] * 1e6 / clock_hz
        assert record["ts"] == pytest.approx(exact, rel=1e-12, abs=1e-5)


def test_a_flag_is_an_arrow_from_its_set_to_its_wait() -> None:
    events = [
        Event(0, "M", "wait_flag", 5, 31, args={"flow": 9}),
        Event(0, "MTE1", "set_flag", 20, 21, args={"flow": 9}),
        Event(0, "MTE1", "set_flag", 22, 23, args={"flow": 10}),
    ]
    trace = chrome_trace(events, clock_hz=1_000_000)
    arrows = [record for record in trace["traceEvents"] if record["ph"] in "sf"]
    names = thread_names(trace)
    assert [(a["ph"], a["id"], a["ts"], names[a["pid"], a["tid"]]) for a in arrows] == [
        ("s", 9, 20.0, "MTE1"),
        ("f", 9, 20.0, "M"),
    ]
    assert arrows[1]["bp"] == "e"
    assert arrows[0]["cat"] == arrows[1]["cat"]


def test_records_stand_in_the_order_of_time() -> None:
    events = [Event(0, "M", "x", start, start + 3) for start in (9, 0, 4)]
    times = [record["ts"] for record in slices(chrome_trace(events, clock_hz=CLOCK_HZ))]
    assert times == sorted(times)


def test_the_file_is_json_with_all_slices(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "timeline.json"
    write_timeline(path, iter([Event(0, "M", "mad", 0, 10)]), clock_hz=CLOCK_HZ)
    assert len(slices(json.loads(path.read_text()))) == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["timeline.json"]


def test_a_run_without_events_is_an_empty_timeline() -> None:
    assert chrome_trace([], clock_hz=CLOCK_HZ)["traceEvents"] == []


def test_a_place_that_cannot_be_written_is_an_error_and_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="must be a place that can be written"):
        write_timeline(tmp_path / "file" / "timeline.json", [], clock_hz=CLOCK_HZ)
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(InputError, match="must be a place that can be written"):
        write_timeline(folder, [], clock_hz=CLOCK_HZ)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]
