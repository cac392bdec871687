"""A run as a timeline that Perfetto and chrome://tracing open.

The file is a Chrome trace in JSON: a process a core, a thread a pipe. Viewers want the slices of a
thread to nest or to stand apart, so what overlaps on one pipe is spread over further lanes. The text
is made piece by piece, as it is written: a long run has millions of slices.

Viewers count whole nanoseconds, and a cycle is none, so the ruler counts cycles: a microsecond of it is
a cycle of the machine. The nanoseconds in between keep apart what happens on one pipe in one cycle:
what takes no time has one each, in its order, and what takes time begins behind it. That is only how
it is shown; what is true stands in the `args` of each slice.
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

_CYCLE = 1000
"""Nanoseconds of the ruler in a cycle."""
_NANOSECONDS_PER_SECOND = 1_000_000_000
_LANES = 1000
_DEVICE_PROCESS = 1_000_000
_DEVICE_NAME = "device (1 us is 1 cycle)"
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
        tail_of: Number of the arrow that begins where this starts, if one does.
        head_of: Number of the arrow that ends where this starts, if one does.
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
        counter: What is counted.
        cycle: From when on.
        values: Name of a series, with its unit, to its value. A viewer may show it behind the name of
            the counter.
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
            those of no length first, then the longer ones. A tail comes before its head.
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

        A microsecond is a cycle; whole cycles, and real nanoseconds, stand in the `args` of each slice.
        An arrow leads from its tail to its head, never back in time, and both tell its number; without
        its tail a head has none. Names of processes and threads come last.
        """
        assert self.clock_hz > 0, "the machine record guarantees a clock"
        nanoseconds = _NANOSECONDS_PER_SECOND / self.clock_hz
        lanes, tails = _Lanes(self.pipes), dict[int, int]()
        for each in self.slices():
            tail = None if each.head_of is None else tails.pop(each.head_of, None)
            thread, begin, end = lanes.place(each, 0 if tail is None else tail)
            length = each.end - each.start
            args: dict[str, Any] = {
                "start_cycle": each.start,
                "end_cycle": each.end,
                "cycles": length,
                "ns": round(length * nanoseconds, 3),
            }
            place = {"pid": _process(each.core), "tid": thread, "ts": _microseconds(begin)}
            arrows: list[dict[str, Any]] = []
            if tail is not None:
                arrows.append({"ph": "f", "bp": "e", "id": each.head_of})
            if each.tail_of is not None:
                tails[each.tail_of] = begin
                arrows.append({"ph": "s", "id": each.tail_of})
            for arrow in arrows:
                args["arrow"] = arrow["id"]
            yield {
                "ph": "X",
                "name": each.name,
                "cat": each.category,
                **place,
                "dur": _microseconds(end - begin),
                "args": {**args, **each.args},
            }
            for arrow in arrows:
                yield {**arrow, "name": "flag", "cat": "flag", **place}
        for sample in self.samples():
            yield {
                "ph": "C",
                "name": sample.counter,
                "pid": _process(sample.core),
                "ts": sample.cycle,
                "args": dict(sample.values),
            }
        yield from self._names(lanes.names)

    def text(self) -> Iterator[str]:
        """Yield the JSON text of the Chrome trace, in pieces."""
        cycle = _NANOSECONDS_PER_SECOND / self.clock_hz
        ruler = f"1 us of the ruler is 1 cycle of the machine, {cycle:.4g} ns"
        other = {"clock_hz": self.clock_hz, "ruler": ruler, **self.notes}
        head = {"displayTimeUnit": "ns", "otherData": other}
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

    def _names(self, threads: Mapping[tuple[int, int], str]) -> Iterator[dict[str, Any]]:
        """Yield the records that name and order processes and threads."""
        shown = sorted({core for core, _ in threads})
        for core in shown:
            name = self.cores[core] if core < len(self.cores) else f"core {core}"
            yield _metadata("process_name", _process(core), 0, {"name": name})
            yield _metadata("process_sort_index", _process(core), 0, {"sort_index": core + 1})
        if shown:
            process = _process(DEVICE)
            yield _metadata("process_name", process, 0, {"name": _DEVICE_NAME})
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


@dataclass(slots=True)
class _Lane:
    """A thread, in nanoseconds of the ruler: from when on it is free, and the ends of what is open."""

    free: int = 0
    ends: list[int] = field(default_factory=list[int])

    def place(self, each: Slice, earliest: int) -> tuple[int, int] | None:
        """Return from when to when the next slice is shown, or None if it cannot stand here."""
        begin = max(each.start * _CYCLE, self.free, earliest)
        if each.end == each.start:
            # The last nanosecond of a cycle is for what takes time.
            if begin >= (each.start + 1) * _CYCLE - 1:
                return None
            self.free = begin + 1
            return begin, begin
        end = each.end * _CYCLE
        while self.ends and self.ends[-1] <= begin:
            self.ends.pop()
        if self.ends and end > self.ends[-1]:
            return None
        self.ends.append(end)
        self.free = begin
        return begin, end


class _Lanes:
    """The threads on which slices stand: the first lane of their pipe where they nest or are apart."""

    def __init__(self, pipes: Sequence[str]) -> None:
        self.names: dict[tuple[int, int], str] = {}
        """Core and thread to name."""
        self._ranks = {name: rank for rank, name in enumerate(dict.fromkeys(pipes), start=1)}
        self._lanes: defaultdict[tuple[int, str, int], _Lane] = defaultdict(_Lane)

    def place(self, each: Slice, earliest: int) -> tuple[int, int, int]:
        """Return thread, begin and end of the next slice, which begins no earlier than `earliest`."""
        assert each.end >= each.start, "a slice ends no earlier than it starts"
        assert earliest < (each.start + 1) * _CYCLE - 1, "an arrow does not lead back in time"
        number = 0
        while (shown := self._lanes[each.core, each.pipe, number].place(each, earliest)) is None:
            number += 1
        rank = self._ranks.setdefault(each.pipe, len(self._ranks) + 1)
        thread = rank * _LANES + number
        self.names[each.core, thread] = each.pipe if number == 0 else f"{each.pipe} ({number + 1})"
        return thread, *shown


def _microseconds(nanoseconds: int) -> float:
    whole, rest = divmod(nanoseconds, _CYCLE)
    return nanoseconds / _CYCLE if rest else whole


def _process(core: int) -> int:
    # Viewers give process 0 to the idle task, so that cores count from 1.
    return _DEVICE_PROCESS if core == DEVICE else core + 1


def _metadata(what: str, process: int, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": args}
