"""The model of Perfetto's importer finds what is wrong with times in real nanoseconds, and how it is mended."""

from typing import Any

import pytest

from scalebox.traces.timeline import Slice, Timeline

from .importer import DROPPED, Opened, assert_nested_or_apart, opened

CLOCK_HZ = 1_650_000_000
Record = dict[str, Any]
NAMES: list[Record] = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "core"}},
    *(
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}
        for tid, name in ((1, "M"), (2, "V"))
    ),
]


def at(cycle: int) -> float:
    """Return the true time of a cycle, in microseconds: one is 0.606 nanoseconds."""
    return cycle * 1e6 / CLOCK_HZ


def event(name: str, start: int, end: int, tid: int = 1) -> Record:
    times = {"ts": at(start), "dur": at(end) - at(start)}
    return {"ph": "X", "name": name, "cat": "busy", "pid": 1, "tid": tid, "args": {}, **times}


def arrow(phase: str, cycle: int, tid: int, number: int = 1) -> Record:
    end = {"bp": "e"} if phase == "f" else {}
    place = {"pid": 1, "tid": tid, "ts": at(cycle)}
    return {"ph": phase, "name": "flag", "cat": "flag", "id": number, **place, **end}


def found(*records: Record) -> Opened:
    return opened({"traceEvents": [*records, *NAMES]})


def in_cycles(*slices: Slice) -> Opened:
    """Return what the same is opened as in a timeline of ours."""
    return opened(Timeline(slices=lambda: slices, clock_hz=CLOCK_HZ).as_trace())


def test_slices_that_overlap_once_they_are_rounded_are_dropped() -> None:
    # 1 and 7 cycles are 0.606 and 4.242 ns, 6 are 3.636: from 1 to 5, and from 4 on.
    old = found(event("move", 1, 7), event("mad", 7, 20))
    assert old.errors == {DROPPED: 1}
    assert [each.name for each in old.slices] == ["move"]
    new = in_cycles(Slice(0, "M", "move", "busy", 1, 7), Slice(0, "M", "mad", "busy", 7, 20))
    assert not new.errors
    assert [(each.ts, each.end) for each in new.slices] == [(1000, 7000), (7000, 20_000)]


def test_what_takes_no_time_stands_in_what_begins_then_and_on_each_other() -> None:
    old = found(event("set", 10, 10), event("set", 10, 10), event("mad", 10, 30))
    assert [(each.name, each.depth) for each in old.slices] == [("mad", 0), ("set", 1), ("set", 2)]
    spans = (("set", 10, 10), ("set", 10, 10), ("mad", 10, 30))
    new = in_cycles(*(Slice(0, "M", name, "busy", start, end) for name, start, end in spans))
    assert [(each.name, each.depth) for each in new.slices] == [("set", 0), ("set", 0), ("mad", 0)]


def test_an_end_of_an_arrow_belongs_to_what_has_begun_last_at_its_time() -> None:
    wait, end = event("wait", 40, 40, tid=2), arrow("f", 40, 2)
    # Of what has no length the file has the order: the arrow is that of the first set, or the last.
    two = [event("set", 10, 10), event("set", 10, 10)]
    for place in (1, 2):
        old = found(*two[:place], arrow("s", 10, 1), *two[place:], wait, end)
        assert [(tail.name, tail.depth) for tail, _ in old.arrows] == [("set", place - 1)]
    # What has a length comes first, wherever it stands in the file.
    old = found(event("set", 10, 10), arrow("s", 10, 1), event("mad", 10, 30), wait, end)
    assert [(tail.name, tail.depth) for tail, _ in old.arrows] == [("set", 1)]
    old = found(event("set", 9, 10), arrow("s", 10, 1), event("mad", 10, 30), wait, end)
    assert [(tail.name, tail.depth) for tail, _ in old.arrows] == [("mad", 0)]


def test_an_arrow_to_a_wait_that_began_before_leads_back() -> None:
    old = found(
        event("wait", 5, 31, tid=2), event("set", 20, 20), arrow("s", 20, 1), arrow("f", 20, 2)
    )
    assert [(tail.name, head.name) for tail, head in old.arrows] == [("wait", "set")]


@pytest.mark.parametrize(
    ("records", "error"),
    [
        ([arrow("s", 3, 1)], "flow_no_enclosing_slice"),
        ([event("wait", 3, 3), arrow("f", 3, 1)], "flow_end_without_start"),
        ([event("set", 3, 3), arrow("s", 3, 1), arrow("s", 3, 1)], "flow_duplicate_id"),
    ],
)
def test_an_end_of_an_arrow_that_belongs_nowhere_is_an_error(
    records: list[Record], error: str
) -> None:
    assert found(*records).errors == {error: 1}


def test_an_end_without_a_place_belongs_to_the_slice_that_comes_next() -> None:
    end = arrow("f", 30, 2)
    del end["bp"]
    old = found(event("set", 3, 3), arrow("s", 3, 1), end, event("mad", 40, 50, tid=2))
    assert [(tail.name, head.name) for tail, head in old.arrows] == [("set", "mad")]


def test_a_counter_is_named_after_its_record_and_the_key() -> None:
    counter = {"ph": "C", "name": "UB in use, bytes", "pid": 1, "ts": 0, "args": {"bytes": 1.0}}
    assert found(counter).counters == {"UB in use, bytes bytes"}


def test_slices_that_cross_are_seen() -> None:
    crossing = found(event("a", 0, 1650))
    crossing.slices.append(crossing.slices[0]._replace(ts=500, dur=1000))
    with pytest.raises(AssertionError):
        assert_nested_or_apart(crossing)
