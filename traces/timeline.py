"""A run as a timeline that Perfetto and chrome://tracing open.

The file is a Chrome trace in JSON: a process a core, a thread a pipe. Viewers want the slices of a
thread to nest or to stand apart, so what overlaps on one pipe is spread over further lanes. The text
is made piece by piece, as it is written: a long run has millions of slices.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .whole import written_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

_MICROSECONDS_PER_SECOND = 1_000_000
# Times are multiples of 2^-16 microseconds, which floats add without rounding: a slice that ends
# where the next begins does so in the file too. A cycle of 1.65 GHz is 40 of these.
_GRID = 1 << 16
_LANES = 1000
_DEVICE_PROCESS = 1_000_000
_PIECE = 1 << 16

DEVICE = -1
"""The number of what is no core, but the device as a whole."""


class Slice(NamedTuple):
    """What a pipe of a core did from one cycle to another.

    Attributes:
        core: Number of the core.
        pipe: Name of the pipe.
        name: What was done, such as the mnemonic.
        category: The kind of what was done: work, or what was waited for.
        start: First cycle.
        end: The cycle after the last one; `start` for what takes no time.
        args: Further facts that a viewer shows, as plain values.
        tail_of: Number of the arrow that begins here, if one does.
        head_of: Number of the arrow that ends here, if one does.
    """

    core: int
    pipe: str
    name: str
    category: str
    start: int
    end: int
    args: Mapping[str, Any] = {}
    tail_of: int | None = None
    head_of: int | None = None


class Sample(NamedTuple):
    """The values of a counter from a cycle on.

    Attributes:
        core: Number of the core, or `DEVICE`.
        counter: What is counted, with its unit.
        cycle: From when on.
        values: Name of a series to its value.
    """

    core: int
    counter: str
    cycle: int
    values: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """What a timeline shows.

    Attributes:
        slices: Returns the slices by their start; of those that start together, which must not cross,
            those of no length first, then the longer ones.
        samples: Returns the values of counters, each counter's by their cycles.
        clock_hz: Cycles in a second.
        pipes: Names of pipes in the order in which a viewer shows them; others follow.
        cores: What the cores are, by their numbers.
        notes: Further facts of the run, as plain values.
    """

    slices: Callable[[], Iterable[Slice]]
    samples: Callable[[], Iterable[Sample]] = tuple
    clock_hz: float
    pipes: Sequence[str] = ()
    cores: Sequence[str] = ()
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records of the Chrome trace.

        Times are in microseconds; whole cycles stand in the `args` of each slice. An arrow leads from
        its tail to its head, never back in time. Names of processes and threads come last.
        """
        assert self.clock_hz > 0, "the machine record guarantees a clock"
        lanes, arrows = _Lanes(self.pipes), _Arrows()
        for each in self.slices():
            thread = lanes.thread(each)
            start = self._microseconds(each.start)
            cycles = {"start_cycle": each.start, "end_cycle": each.end}
            yield {
                "ph": "X",
                "name": each.name,
                "cat": each.category,
                "pid": _process(each.core),
                "tid": thread,
                "ts": start,
                "dur": self._microseconds(each.end) - start,
                "args": {**cycles, "cycles": each.end - each.start, **each.args},
            }
            for phase, number, cycle, core, at in arrows.meet(each, thread):
                arrow = {"ph": phase, "name": "flag", "cat": "flag", "id": number}
                end = {"bp": "e"} if phase == "f" else {}
                place = {"pid": _process(core), "tid": at, "ts": self._microseconds(cycle)}
                yield arrow | place | end
        for sample in self.samples():
            yield {
                "ph": "C",
                "name": sample.counter,
                "pid": _process(sample.core),
                "ts": self._microseconds(sample.cycle),
                "args": dict(sample.values),
            }
        yield from self._names(lanes.names)

    def text(self) -> Iterator[str]:
        """Yield the JSON text of the Chrome trace, in pieces."""
        head = {"displayTimeUnit": "ns", "otherData": {"clock_hz": self.clock_hz, **self.notes}}
        yield json.dumps(head, separators=(",", ":"))[:-1] + ',"traceEvents":[\n'
        encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
        piece: list[str] = []
        size, between = 0, ""
        for record in self.records():
            piece.append(between + encode(record))
            size, between = size + len(piece[-1]), ",\n"
            if size >= _PIECE:
                yield "".join(piece)
                piece, size = [], 0
        yield "".join([*piece, "\n]}\n"])

    def as_trace(self) -> dict[str, Any]:
        """Return the Chrome trace as plain values."""
        return json.loads("".join(self.text()))

    def _microseconds(self, cycle: int) -> float:
        return round(cycle * _MICROSECONDS_PER_SECOND * _GRID / self.clock_hz) / _GRID

    def _names(self, threads: Mapping[tuple[int, int], str]) -> Iterator[dict[str, Any]]:
        """Yield the records that name and order processes and threads."""
        shown = sorted({core for core, _ in threads})
        for core in shown:
            name = self.cores[core] if core < len(self.cores) else f"core {core}"
            yield _metadata("process_name", _process(core), 0, {"name": name})
            yield _metadata("process_sort_index", _process(core), 0, {"sort_index": core + 1})
        if shown:
            process = _process(DEVICE)
            yield _metadata("process_name", process, 0, {"name": "device"})
            yield _metadata("process_sort_index", process, 0, {"sort_index": 0})
        for (core, thread), name in sorted(threads.items()):
            yield _metadata("thread_name", _process(core), thread, {"name": name})
            yield _metadata("thread_sort_index", _process(core), thread, {"sort_index": thread})


def write_timeline(path: Path, timeline: Timeline) -> None:
    """Write `timeline` to `path` as JSON, whole or not at all.

    Raises:
        InputError: The file cannot be written.
    """
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(timeline.text())


class _Lanes:
    """The threads on which slices stand: the first lane of their pipe where they nest or are apart."""

    def __init__(self, pipes: Sequence[str]) -> None:
        self.names: dict[tuple[int, int], str] = {}
        """Core and thread to name."""
        self._ranks = {name: rank for rank, name in enumerate(dict.fromkeys(pipes), start=1)}
        self._open_ends: defaultdict[tuple[int, str], list[list[int]]] = defaultdict(list)

    def thread(self, each: Slice) -> int:
        """Return the thread of the next slice."""
        assert each.end >= each.start, "a slice ends no earlier than it starts"
        lanes = self._open_ends[each.core, each.pipe]
        lane = next((n for n, ends in enumerate(lanes) if _fits(each, ends)), len(lanes))
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append(each.end)
        rank = self._ranks.setdefault(each.pipe, len(self._ranks) + 1)
        thread = rank * _LANES + lane
        self.names[each.core, thread] = each.pipe if lane == 0 else f"{each.pipe} ({lane + 1})"
        return thread


def _fits(each: Slice, ends: list[int]) -> bool:
    """Close what has ended by the slice; return whether the innermost open one can hold it."""
    while ends and ends[-1] <= each.start:
        ends.pop()
    return not ends or each.end <= ends[-1]


class _Arrows:
    """The arrows of which one end has been seen."""

    def __init__(self) -> None:
        self._tails: dict[int, int] = {}
        self._heads: dict[int, tuple[int, int, int]] = {}

    def meet(self, each: Slice, thread: int) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield phase, number, cycle, core and thread of the ends of arrows that can be drawn now.

        An end is bound to the slice around it. A head comes after its tail, whatever comes first.
        """
        if each.head_of is not None:
            begun = self._tails.pop(each.head_of, None)
            if begun is None:
                self._heads[each.head_of] = each.start, each.core, thread
            else:
                yield "f", each.head_of, max(begun, each.start), each.core, thread
        if each.tail_of is not None:
            yield "s", each.tail_of, each.start, each.core, thread
            waiting = self._heads.pop(each.tail_of, None)
            if waiting is None:
                self._tails[each.tail_of] = each.start
            else:
                came, core, at = waiting
                yield "f", each.tail_of, max(came, each.start), core, at


def _process(core: int) -> int:
    # Viewers give process 0 to the idle task, so that cores count from 1.
    return _DEVICE_PROCESS if core == DEVICE else core + 1


def _metadata(what: str, process: int, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": args}
