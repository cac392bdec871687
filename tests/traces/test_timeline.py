"""Timelines: lanes whose slices nest or stand apart, arrows, names, and times in cycles."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.errors import InputError
from scalebox.traces.timeline import DEVICE, Sample, Slice, Timeline, write_timeline

from . import importer
from .importer import opened

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
    """Hold the slices against each other as they are shown: all of them, as nothing is dropped."""
    found = opened(trace)
    assert not found.errors
    assert len(found.slices) == len(slices(trace))
    importer.assert_nested_or_apart(found)


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
    assert list(processes.values()) == ["core 0", "core 1", "device (1 us is 1 cycle)"]
    names = thread_names(trace)
    shown = [(processes[pid], name) for (pid, _), name in sorted(names.items())]
    pipes = ("MTE2", "M", "V")
    assert shown == [(f"core {core}", pipe) for core in (0, 1) for pipe in pipes]
    assert 0 not in {pid for pid, _ in names} | {tid for _, tid in names}


def test_a_microsecond_of_the_ruler_is_a_cycle_and_the_true_time_stands_beside() -> None:
    mad = event(0, "M", "mad_mx", 1650, 4950, args={"task": 3, "macs": 65536})
    (record,) = slices(chrome_trace([mad]))
    assert (record["name"], record["ts"], record["dur"]) == ("mad_mx", 1650, 3300)
    assert record["args"] == {
        "start_cycle": 1650,
        "end_cycle": 4950,
        "cycles": 3300,
        "ns": 2000.0,
        "task": 3,
        "macs": 65536,
    }
    assert (record["cat"], record["pid"]) == ("busy", 1)


def test_what_takes_no_time_has_a_nanosecond_each_and_what_follows_begins_behind() -> None:
    events = [
        event(0, "M", "wait_flag", 7, 7),
        event(0, "M", "set_flag", 7, 7),
        event(0, "M", "mad", 7, 9),
        event(0, "M", "set_flag", 9, 9),
        event(0, "V", "add", 7, 9),
    ]
    trace = chrome_trace(events)
    shown = [(each["ts"], each["dur"], each["name"]) for each in slices(trace)]
    assert sorted(shown) == [
        (7, 0, "wait_flag"),
        (7, 2, "add"),
        (7.001, 0, "set_flag"),
        (7.002, 1.998, "mad"),
        (9, 0, "set_flag"),
    ]
    assert sum(each["args"]["cycles"] for each in slices(trace)) == 4


def test_more_in_one_cycle_than_it_has_nanoseconds_spreads_over_lanes() -> None:
    moments = [event(0, "M", "set_flag", 3, 3, tail_of=number) for number in range(2500)]
    ends = [event(0, "V", "wait_flag", 3, 3, head_of=number) for number in range(2500)]
    trace = chrome_trace([*moments, event(0, "M", "mad", 3, 4), *ends])
    assert_nested_or_apart(trace)
    assert set(thread_names(trace).values()) == {"M", "M (2)", "M (3)", "V", "V (2)", "V (3)"}
    found = opened(trace)
    numbers = sorted((tail.args["arrow"], head.args["arrow"]) for tail, head in found.arrows)
    assert numbers == [(number, number) for number in range(2500)]
    assert all(tail.name == "set_flag" for tail, _ in found.arrows)
    (mad,) = [each for each in found.slices if each.name == "mad"]
    assert (mad.thread, mad.dur) == ("M", 1)


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
    for each in opened(trace).slices:
        start, end = each.args["start_cycle"], each.args["end_cycle"]
        assert start * 1000 <= each.ts < (start + 1) * 1000
        assert each.end == (end * 1000 if end > start else each.ts)


def arrows(trace: dict[str, Any]) -> list[tuple[str, int, float, str]]:
    names = thread_names(trace)
    return [
        (record["ph"], record["id"], record["ts"], names[record["pid"], record["tid"]])
        for record in trace["traceEvents"]
        if record["ph"] in "sf"
    ]


def test_a_flag_is_an_arrow_from_its_set_to_its_wait() -> None:
    events = [
        event(0, "M", "waits for a flag", 5, 30),
        event(0, "MTE1", "set_flag", 20, 20, tail_of=9),
        event(0, "MTE1", "set_flag", 22, 23),
        event(0, "M", "wait_flag", 30, 30, head_of=9),
    ]
    trace = chrome_trace(events)
    assert arrows(trace) == [("s", 9, 20, "MTE1"), ("f", 9, 30, "M")]
    ends = [record for record in trace["traceEvents"] if record["ph"] in "sf"]
    assert ends[1]["bp"] == "e"
    assert ends[0]["cat"] == ends[1]["cat"]
    numbers = {each["name"]: each["args"].get("arrow") for each in slices(trace)[:2]}
    assert numbers == {"waits for a flag": None, "set_flag": 9}


def test_flags_that_take_no_time_lead_forward_all_the_same() -> None:
    # In one cycle M sets, V waits for it and sets, M waits for that and sets, and V waits again.
    chain = [("M", None, 1), ("V", 1, None), ("V", None, 2), ("M", 2, None), ("M", None, 3)]
    events = [
        event(0, "S", "set_flag", 50, 50),
        *(
            event(0, pipe, "wait" if tail is None else "set", 50, 50, tail_of=tail, head_of=head)
            for pipe, head, tail in [*chain, ("V", 3, None)]
        ),
    ]
    found = opened(chrome_trace(events))
    ends = [(a.thread, a.name, a.args["arrow"], b.thread, b.name) for a, b in found.arrows]
    assert ends == [
        ("M", "set", 1, "V", "wait"),
        ("V", "set", 2, "M", "wait"),
        ("M", "set", 3, "V", "wait"),
    ]
    assert all(tail.ts <= head.ts for tail, head in found.arrows)
    assert not any(each.depth for each in found.slices)


def test_an_arrow_may_lead_from_core_to_core() -> None:
    events = [
        event(0, "FIX", "set_core_flag", 3, 3, tail_of=0),
        event(1, "V", "wait_core_flag", 9, 9, head_of=0),
    ]
    ends = [
        (record["ph"], record["pid"])
        for record in chrome_trace(events)["traceEvents"]
        if record["ph"] in "sf"
    ]
    assert ends == [("s", 1), ("f", 2)]


def test_a_wait_whose_set_is_not_shown_has_no_arrow() -> None:
    trace = chrome_trace([event(0, "M", "wait_flag", 9, 9, head_of=4)])
    assert arrows(trace) == []
    assert "arrow" not in slices(trace)[0]["args"]
    assert not opened(trace).errors


def test_an_end_of_an_arrow_stands_behind_its_slice_with_nothing_between_on_its_thread() -> None:
    # Viewers bind an end to what has begun last on its thread.
    events = [
        event(0, "MTE1", "set_flag", 10, 10, tail_of=1),
        event(0, "MTE1", "move", 10, 30),
        event(0, "M", "wait_flag", 20, 20, head_of=1),
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
        (1_000_000, 0, {"read": 1.5, "write": 0.0}),
        (2, 1650, {"read": 0.5, "write": 0.0}),
    ]
    assert {"name": "device (1 us is 1 cycle)"} in [
        record["args"] for record in trace["traceEvents"]
    ]


def test_notes_stand_beside_the_clock_and_what_a_microsecond_is() -> None:
    trace = chrome_trace([], notes={"machine": "a5"})
    assert trace["otherData"] == {
        "clock_hz": CLOCK_HZ,
        "ruler": "1 us of the ruler is 1 cycle of the machine, 0.6061 ns",
        "machine": "a5",
    }


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
