"""A run as a timeline that Perfetto and chrome://tracing open.

The file is a Chrome trace in JSON: a process a core, a thread a pipe. Viewers want the slices of a
thread to nest or to stand apart, so what overlaps on one pipe is spread over further lanes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .whole import written_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

_MICROSECONDS_PER_SECOND = 1_000_000
# Times are multiples of 2^-16 microseconds, which floats add without rounding: a slice that ends
# where the next begins does so in the file too. A cycle of 1.65 GHz is 40 of these.
_GRID = 1 << 16


class TimelineEvent(Protocol):
    """What a pipe of a core did from one cycle to another.

    Two events whose `args` hold the same integer under `flow` are joined by an arrow, from the one
    that ends first: a flag from where it is set to where it is waited for.
    """

    @property
    def core(self) -> int:
        """Number of the core."""
        ...

    @property
    def pipe(self) -> str:
        """Name of the pipe."""
        ...

    @property
    def name(self) -> str:
        """What was done, such as the mnemonic."""
        ...

    @property
    def start(self) -> int:
        """First cycle."""
        ...

    @property
    def end(self) -> int:
        """The cycle after the last one; `start` for what takes no time."""
        ...

    @property
    def source(self) -> str:
        """Line of the kernel that caused it, or an empty string."""
        ...

    @property
    def task(self) -> int:
        """Number of the task that it belongs to."""
        ...

    @property
    def args(self) -> Mapping[str, Any]:
        """Further facts that a viewer shows, as plain values."""
        ...


@dataclass(frozen=True, slots=True)
class _Placed:
    """An event, and the lane of its pipe that shows it; lane 0 is the pipe's own."""

    event: TimelineEvent
    lane: int

    @property
    def place(self) -> tuple[int, str, int]:
        """Core, pipe and lane, which together are a thread of the viewer."""
        return self.event.core, self.event.pipe, self.lane


def chrome_trace(
    events: Iterable[TimelineEvent],
    *,
    clock_hz: float,
    pipes: Sequence[str] = (),
    cores: Sequence[str] = (),
) -> dict[str, Any]:
    """Return `events` as a Chrome trace, ready to be written as JSON.

    Times are in microseconds at `clock_hz`; the whole cycles stand in the `args` of each slice.

    Args:
        events: What happened, in any order.
        clock_hz: Cycles in a second.
        pipes: Names of pipes in the order in which a viewer shows them; others follow.
        cores: What the cores are, by their numbers.
    """
    assert clock_hz > 0, "the machine record guarantees a clock"
    placed = _spread_over_lanes(events)
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys([*pipes, *_pipes_of(placed)]))}
    places = sorted({each.place for each in placed}, key=lambda at: (at[0], ranks[at[1]], at[2]))
    # Viewers give thread 0 and process 0 to the idle task, so that both count from 1.
    threads = {place: number for number, place in enumerate(places, start=1)}

    def microseconds(cycle: int) -> float:
        return round(cycle * _MICROSECONDS_PER_SECOND * _GRID / clock_hz) / _GRID

    timed = [_slice(each, threads, microseconds) for each in placed]
    timed += _arrows(placed, threads, microseconds)
    # What lies within a slice, be it a slice or the end of an arrow, comes after it.
    timed.sort(key=lambda record: (record["ts"], -record.get("dur", -1.0)))
    return {
        "displayTimeUnit": "ns",
        "otherData": {"clock_hz": clock_hz},
        "traceEvents": _names(threads, cores) + timed,
    }


def write_timeline(
    path: Path, events: Iterable[TimelineEvent], *, clock_hz: float, pipes: Sequence[str] = ()
) -> None:
    """Write `events` to `path` as JSON, whole or not at all; see :func:`chrome_trace`.

    Raises:
        InputError: The file cannot be written.
    """
    trace = chrome_trace(events, clock_hz=clock_hz, pipes=pipes)
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(trace, separators=(",", ":")), encoding="utf-8")


def _spread_over_lanes(events: Iterable[TimelineEvent]) -> list[_Placed]:
    """Give each event the first lane of its pipe where slices still nest or stand apart."""
    open_ends: defaultdict[tuple[int, str], list[list[int]]] = defaultdict(list)
    placed: list[_Placed] = []
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        assert event.end >= event.start, "an event ends no earlier than it starts"
        lanes = open_ends[event.core, event.pipe]
        lane = next((n for n, ends in enumerate(lanes) if _fits(event, ends)), len(lanes))
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append(event.end)
        placed.append(_Placed(event, lane))
    return placed


def _fits(event: TimelineEvent, ends: list[int]) -> bool:
    """Close what has ended by `event`; return whether the innermost open slice can hold it."""
    while ends and ends[-1] <= event.start:
        ends.pop()
    return not ends or event.end <= ends[-1]


def _pipes_of(placed: list[_Placed]) -> list[str]:
    return [each.event.pipe for each in placed]


def _slice(
    placed: _Placed,
    threads: Mapping[tuple[int, str, int], int],
    microseconds: Callable[[int], float],
) -> dict[str, Any]:
    event = placed.event
    begin = microseconds(event.start)
    own = {"start_cycle": event.start, "end_cycle": event.end, "cycles": event.end - event.start}
    context = {"task": event.task} | ({"source": event.source} if event.source else {})
    return {
        "ph": "X",
        "name": event.name,
        "cat": event.pipe,
        "pid": event.core + 1,
        "tid": threads[placed.place],
        "ts": begin,
        "dur": microseconds(event.end) - begin,
        "args": own | context | dict(event.args),
    }


def _arrows(
    placed: list[_Placed],
    threads: Mapping[tuple[int, str, int], int],
    microseconds: Callable[[int], float],
) -> list[dict[str, Any]]:
    ends: defaultdict[int, list[_Placed]] = defaultdict(list)
    for each in placed:
        if "flow" in each.event.args:
            ends[int(each.event.args["flow"])].append(each)
    records: list[dict[str, Any]] = []
    for number, pair in sorted(ends.items()):
        assert len(pair) <= 2, f"flow {number} must join two events"
        if len(pair) < 2:  # a flag that nobody has waited for yet
            continue
        tail, head = sorted(pair, key=lambda each: each.event.end)
        # An arrow is bound to the slice around its end, and it must not point back in time.
        arrival = max(tail.event.start, head.event.start)
        for phase, side, cycle in (("s", tail, tail.event.start), ("f", head, arrival)):
            records.append(
                {
                    "ph": phase,
                    "name": "flag",
                    "cat": "flag",
                    "id": number,
                    "pid": side.event.core + 1,
                    "tid": threads[side.place],
                    "ts": microseconds(cycle),
                }
                | ({"bp": "e"} if phase == "f" else {})
            )
    return records


def _names(
    threads: Mapping[tuple[int, str, int], int], cores: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the records that name and order processes and threads."""
    records: list[dict[str, Any]] = []
    for core in dict.fromkeys(core for core, _, _ in threads):
        name = f"core {core}: {cores[core]}" if core < len(cores) else f"core {core}"
        records.append(_metadata("process_name", core, 0, {"name": name}))
        records.append(_metadata("process_sort_index", core, 0, {"sort_index": core}))
    for (core, pipe, lane), thread in threads.items():
        name = pipe if lane == 0 else f"{pipe} ({lane + 1})"
        records.append(_metadata("thread_name", core, thread, {"name": name}))
        records.append(_metadata("thread_sort_index", core, thread, {"sort_index": thread}))
    return records


def _metadata(what: str, core: int, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": core + 1, "tid": thread, "args": args}
