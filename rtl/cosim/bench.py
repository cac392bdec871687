"""The cocotb bench of `scale_decode`: clock, reset, scale buffers that answer, a cube that takes.

The bench knows the rules of streams and where a box's bytes come from. What a mad must give is for
the test to say.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from ...codegen.isa.scale_unit import START
from ...ir.dtypes.boxes import BOX_BYTES
from .coverage import Coverage
from .streams import Monitor, Port, Sink, Source, never
from .wires import BEATS, REQUESTS, flows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

__all__ = ["PORTS", "ScaleDecodeBench", "Words", "bench_rng", "stall_coverage"]

PORTS: Final = ("start", *REQUESTS, *BEATS, "o")
"""Every stream of the unit."""

_PERIOD_NS = 10
_RESET_CYCLES = 2
_PATIENCE_CYCLES = 1000
_LONG_WAIT_CYCLES = 4

Words = list[dict[str, "npt.NDArray[Any]"]]
"""Words taken apart, by the names of a trace's arrays."""


def bench_rng() -> random.Random:
    """Return a generator that follows cocotb's seed of the running test."""
    return random.Random(cocotb.RANDOM_SEED)


def stall_coverage(beat_bytes: int) -> dict[str, list[str]]:
    """Return every class of stall patterns that a bench of a unit must exercise.

    `waits`: for how many cycles a word stood on offer before it was taken. `gaps`: how one word
    followed another on the same stream. `moment`: what the beats of either side and the records did
    in the same cycle. `reset`: what a reset interrupted.

    Args:
        beat_bytes: Bytes of a beat.
    """
    waits = [f"{port} {how}" for port in PORTS for how in ("not", "shortly", "long")]
    gaps = [f"{port} {how}" for port in PORTS for how in ("at once", "later")]
    # A start is taken by an idle unit, which is busy in the next cycle.
    gaps.remove("start at once")
    moments = [" ".join(which) for which in product(("idle", "held", "passes"), repeat=3)]
    # Beats are held where both boxes of a side are whole. Were they on both sides, a record would
    # have been on its way in an earlier cycle.
    moments.remove("held held idle")
    resets = ["no request on offer", "request on offer", "no record on offer", "record on offer"]
    resets += ["between boxes", "in mid-box"] if beat_bytes < BOX_BYTES else ["between boxes"]
    return {"waits": waits, "gaps": gaps, "moment": moments, "reset": resets}


@dataclass
class _Waiting:
    """What coverage remembers of a stream since the last reset.

    Attributes:
        on_offer: Cycles for which the present word has been waiting.
        since: In which cycle the word before it passed.
        passed: How many words passed.
    """

    on_offer: int = 0
    since: int | None = None
    passed: int = 0


class ScaleDecodeBench:
    """Drive the unit with mads, answer its requests, and collect what it decodes.

    A box's beats may be offered from the cycle after its request on, in the order of the requests.

    Args:
        dut: The top of the design.
        boxes: The bytes of each box, by side, tile and block.
        pauses: For any port: when the bench holds it back; never, if not given.
        coverage: Where to count; it has at least the groups of :func:`stall_coverage`.

    Attributes:
        monitors: What passed on each stream.
        beat_bytes: Bytes of a beat, as the design has them.
    """

    def __init__(
        self,
        dut: Any,
        boxes: Mapping[tuple[str, int, int], Sequence[int]],
        *,
        pauses: Mapping[str, Iterator[bool]] | None = None,
        coverage: Coverage | None = None,
    ) -> None:
        pauses = {port: never() for port in PORTS} | dict(pauses or {})
        self._dut, self._boxes = dut, boxes
        self._rng = bench_rng()
        self.beat_bytes = len(dut.a__payload) // 8
        self._coverage = coverage or Coverage(stall_coverage(self.beat_bytes))
        self._waiting = {port: _Waiting() for port in PORTS}
        self._reset_seen = False
        self._flows = {flow.name: flow for flow in flows(self.beat_bytes)}
        self._ports = {name: Port(dut, name) for name in PORTS}
        self.monitors = {name: Monitor(port) for name, port in self._ports.items()}
        self._sources = {
            name: Source(self._ports[name], pause=pauses[name], rng=self._rng)
            for name in ("start", *BEATS)
        }
        self._sinks = {
            name: Sink(self._ports[name], pause=pauses[name]) for name in (*REQUESTS, "o")
        }

    async def start(self) -> None:
        """Start the clock, reset the unit, then start everything else."""
        self._dut.rst.value = 1
        Clock(self._dut.clk, _PERIOD_NS, "ns").start()
        await ClockCycles(self._dut.clk, _RESET_CYCLES)
        self._dut.rst.value = 0
        await RisingEdge(self._dut.clk)
        for monitor in self.monitors.values():
            monitor.start()
        # Requests are answered before the sources look at their queues, so that a beat can be on
        # offer in the very next cycle.
        cocotb.start_soon(self._serve())
        for part in (*self._sources.values(), *self._sinks.values()):
            part.start()

    async def reset(self) -> None:
        """Reset the unit in the midst of things; whatever was on its way is lost."""
        self._dut.rst.value = 1
        await ClockCycles(self._dut.clk, 1)
        for source in self._sources.values():
            source.clear()
        await ClockCycles(self._dut.clk, _RESET_CYCLES - 1)
        self._dut.rst.value = 0

    def send(self, **mad: int) -> None:
        """Queue a start word, given by its fields."""
        word, offset = 0, 0
        for entry in START:
            word |= int(mad[entry.name]) << offset
            offset += entry.bits
        self._sources["start"].queue.append(word)

    async def records(self, count: int) -> None:
        """Wait until so many records were taken in all, and some cycles more.

        One record too many would show itself in those.
        """
        patience, seen = _PATIENCE_CYCLES, -1
        monitor = self.monitors["o"]
        while len(monitor.transfers) < count:
            await RisingEdge(self._dut.clk)
            patience -= 1
            if len(monitor.transfers) != seen:
                seen, patience = len(monitor.transfers), _PATIENCE_CYCLES
            assert patience, f"{count} records must come, but after {seen} there were no more"
        await ClockCycles(self._dut.clk, 2 * _RESET_CYCLES)

    def taken(self, port: str, *, since: int = 0) -> Words:
        """Return the words that passed on a stream, less the first `since`, taken apart."""
        return [self._flows[port].unpack(word) for word in self.monitors[port].words[since:]]

    async def _serve(self) -> None:
        beats = BOX_BYTES // self.beat_bytes
        cycle = 0
        while True:
            await RisingEdge(self._dut.clk)
            self._count(cycle, beats)
            cycle += 1
            for side, request in zip(BEATS, REQUESTS, strict=True):
                if not self._ports[request].transfers():
                    continue
                word = self._flows[request].unpack(self._ports[request].payload.value.to_unsigned())
                box = self._boxes[side, int(word[f"{request}_tile"]), int(word[f"{request}_block"])]
                for first in range(0, BOX_BYTES, self.beat_bytes):
                    beat = bytes(box[first : first + self.beat_bytes])
                    self._sources[side].queue.append(int.from_bytes(beat, "little"))

    def _count(self, cycle: int, beats: int) -> None:
        """Count what this cycle was an example of."""
        reset = self._ports["o"].in_reset()
        states: dict[str, str] = {}
        for name, port in self._ports.items():
            valid, ready = port.valid.value == 1, port.ready.value == 1
            states[name] = "idle" if not valid else "passes" if ready else "held"
        if not reset:
            self._coverage.hit("moment", " ".join(states[name] for name in (*BEATS, "o")))
            for name, state in states.items():
                self._count_stream(name, state, cycle)
        elif not self._reset_seen:
            asking = any(states[name] != "idle" for name in REQUESTS)
            offering = states["o"] != "idle"
            partly = any(self._waiting[name].passed % beats for name in BEATS)
            self._coverage.hit("reset", f"{'' if asking else 'no '}request on offer")
            self._coverage.hit("reset", f"{'' if offering else 'no '}record on offer")
            self._coverage.hit("reset", "in mid-box" if partly else "between boxes")
            self._waiting = {port: _Waiting() for port in PORTS}
        self._reset_seen = reset

    def _count_stream(self, name: str, state: str, cycle: int) -> None:
        waiting = self._waiting[name]
        match state:
            case "held":
                waiting.on_offer += 1
            case "passes":
                cycles = waiting.on_offer
                how = "not" if not cycles else "shortly" if cycles < _LONG_WAIT_CYCLES else "long"
                self._coverage.hit("waits", f"{name} {how}")
                if waiting.since is not None:
                    adjacent = waiting.since == cycle - 1
                    self._coverage.hit("gaps", f"{name} {'at once' if adjacent else 'later'}")
                waiting.since, waiting.on_offer = cycle, 0
                waiting.passed += 1
            case _:
                waiting.on_offer = 0
