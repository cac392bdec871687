"""Timelines: lanes whose slices nest or stand apart, arrows, names, and true times."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.errors import InputError
from scalebox.traces.timeline import DEVICE, Sample, Slice, Timeline, write_timeline

CLOCK_HZ = 1_650_000_000


def event(core: int, pipe: str, name: str, start: int, end: int, **more: Any) -> Slice:
    return Slice(core, pipe, name, "busy", start, end, **more)


def timeline(events: Iterable[Slice], clock_hz: float = CLOCK_HZ, **more: Any) -> Timeline:
    """Return a timeline of slices, which are brought into the order that it asks for."""
    ordered = sorted(events, key=lambda e: (e.start, e.end > e.start, e.start - e.end))
    return Timeline(slices=lambda: ordered, clock_hz=clock_hz, **more)


def chrome_trace(events: Iterable[Slice], **more: Any) -> dict[str, Any]:
    return timeline(events, **more).as_trace()


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
    loads = [event(0, "MTE2", "load", start, start + 100) for start in (0, 10, 20)]
    trace = chrome_trace(loads)
    assert_nested_or_apart(trace)
    names = thread_names(trace)
    assert sorted(names.values()) == ["MTE2", "MTE2 (2)", "MTE2 (3)"]
    assert len({record["tid"] for record in slices(trace)}) == 3


def test_slices_that_follow_each_other_share_a_lane() -> None:
    moves = [event(0, "MTE1", "move", start, start + 7) for start in range(0, 700, 7)]
    trace = chrome_trace(moves)
    assert list(thread_names(trace).values()) == ["MTE1"]


def test_a_core_is_a_process_and_a_pipe_a_thread() -> None:
    events = [event(core, pipe, "x", 0, 1) for core in (1, 0) for pipe in ("V", "M", "MTE2")]
    trace = chrome_trace(events, pipes=("MTE2", "M"))
    processes = {
        record["pid"]: record["args"]["name"]
        for record in trace["traceEvents"]
        if record["name"] == "process_name"
    }
    assert list(processes.values()) == ["core 0", "core 1", "device"]
    names = thread_names(trace)
    shown = [(processes[pid], name) for (pid, _), name in sorted(names.items())]
    pipes = ("MTE2", "M", "V")
    assert shown == [(f"core {core}", pipe) for core in (0, 1) for pipe in pipes]
    assert 0 not in {pid for pid, _ in names} | {tid for _, tid in names}


def test_a_slice_tells_cycles_whole_and_times_in_microseconds() -> None:
    mad = event(0, "M", "mad_mx", 1650, 4950, args={"task": 3, "macs": 65536})
    (record,) = slices(chrome_trace([mad]))
    assert (record["name"], record["ts"], record["dur"]) == ("mad_mx", 1.0, 2.0)
    assert record["args"] == {
        "start_cycle": 1650,
        "end_cycle": 4950,
        "cycles": 3300,
        "task": 3,
        "macs": 65536,
    }
    assert (record["cat"], record["pid"]) == ("busy", 1)


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
        event(
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


def arrows(trace: dict[str, Any]) -> list[tuple[str, int, float, str]]:
    names = thread_names(trace)
    return [
        (record["ph"], record["id"], record["ts"], names[record["pid"], record["tid"]])
        for record in trace["traceEvents"]
        if record["ph"] in "sf"
    ]


def test_a_flag_is_an_arrow_from_its_set_to_its_wait() -> None:
    events = [
        event(0, "M", "wait_flag", 5, 31, head_of=9),
        event(0, "MTE1", "set_flag", 20, 20, tail_of=9),
        event(0, "MTE1", "set_flag", 22, 23),
    ]
    trace = chrome_trace(events, clock_hz=1_000_000)
    assert arrows(trace) == [("s", 9, 20.0, "MTE1"), ("f", 9, 20.0, "M")]
    ends = [record for record in trace["traceEvents"] if record["ph"] in "sf"]
    assert ends[1]["bp"] == "e"
    assert ends[0]["cat"] == ends[1]["cat"]


def test_an_arrow_to_a_wait_that_comes_later_ends_where_that_begins() -> None:
    events = [
        event(0, "MTE1", "set_flag", 20, 20, tail_of=2),
        event(0, "M", "wait_flag", 50, 50, head_of=2),
    ]
    assert arrows(chrome_trace(events, clock_hz=1_000_000)) == [
        ("s", 2, 20.0, "MTE1"),
        ("f", 2, 50.0, "M"),
    ]


def test_an_arrow_may_lead_from_core_to_core() -> None:
    events = [
        event(0, "FIX", "set_core_flag", 3, 3, tail_of=0),
        event(1, "V", "wait_core_flag", 0, 9, head_of=0),
    ]
    ends = [
        (record["ph"], record["pid"])
        for record in chrome_trace(events)["traceEvents"]
        if record["ph"] in "sf"
    ]
    assert ends == [("s", 1), ("f", 2)]


def test_an_end_of_an_arrow_stands_behind_its_slice_with_nothing_between_on_its_thread() -> None:
    # Viewers bind an end to what has begun last on its thread.
    events = [
        event(0, "M", "wait_flag", 0, 20, head_of=1),
        event(0, "MTE1", "set_flag", 10, 10, tail_of=1),
        event(0, "MTE1", "move", 10, 30),
        event(0, "M", "mad", 20, 40),
    ]
    found: dict[int, str] = {}
    for record in chrome_trace(events)["traceEvents"]:
        if record["ph"] == "X":
            found[record["tid"]] = record["name"]
        elif record["ph"] in "sf":
            assert found[record["tid"]] == {"s": "set_flag", "f": "wait_flag"}[record["ph"]]


def test_counters_belong_to_their_core_or_to_the_device() -> None:
    samples = [
        Sample(DEVICE, "bandwidth", 0, {"read": 1.5, "write": 0.0}),
        Sample(1, "bandwidth", 1650, {"read": 0.5, "write": 0.0}),
    ]
    trace = chrome_trace([event(0, "M", "x", 0, 1)], samples=lambda: samples, cores=["a", "b"])
    counters = [record for record in trace["traceEvents"] if record["ph"] == "C"]
    assert [(each["pid"], each["ts"], each["args"]) for each in counters] == [
        (1_000_000, 0.0, {"read": 1.5, "write": 0.0}),
        (2, 1.0, {"read": 0.5, "write": 0.0}),
    ]
    assert {"name": "device"} in [record["args"] for record in trace["traceEvents"]]


def test_notes_stand_beside_the_clock() -> None:
    trace = chrome_trace([], notes={"machine": "a5"})
    assert trace["otherData"] == {"clock_hz": CLOCK_HZ, "machine": "a5"}


def test_records_stand_in_the_order_of_time() -> None:
    events = [event(0, "M", "x", start, start + 3) for start in (9, 0, 4)]
    times = [record["ts"] for record in slices(chrome_trace(events))]
    assert times == sorted(times)


def test_the_file_is_json_with_all_slices(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "timeline.json"
    write_timeline(path, timeline([event(0, "M", "mad", 0, 10)]))
    assert len(slices(json.loads(path.read_text()))) == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["timeline.json"]


def test_the_text_is_made_as_it_is_written() -> None:
    made = 0

    def many() -> Iterator[Slice]:
        nonlocal made
        for number in range(100_000):
            made += 1
            yield event(0, "M", "mad", number, number + 1)

    pieces = Timeline(slices=many, clock_hz=CLOCK_HZ).text()
    assert len([next(pieces), next(pieces)]) == 2
    assert made < 2_000
    assert max(map(len, pieces)) < 100_000
    assert made == 100_000


def test_a_fault_on_the_way_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> Iterator[Slice]:
        yield event(0, "M", "mad", 0, 10)
        raise InputError("no more")

    path = tmp_path / "timeline.json"
    path.write_text("old")
    with pytest.raises(InputError, match="no more"):
        write_timeline(path, Timeline(slices=broken, clock_hz=CLOCK_HZ))
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["timeline.json"]


def test_a_run_without_events_is_an_empty_timeline() -> None:
    assert chrome_trace([])["traceEvents"] == []


def test_a_place_that_cannot_be_written_is_an_error_and_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="must be a place that can be written"):
        write_timeline(tmp_path / "file" / "timeline.json", timeline([]))
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(InputError, match="must be a place that can be written"):
        write_timeline(folder, timeline([]))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder"]
