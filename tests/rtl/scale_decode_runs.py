"""Mads through the scale-decode unit in Amaranth's simulator."""

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.sim import Simulator

from scalebox.rtl.scale_decode import ScaleDecode

from .benches.scale_decode_spec import BOX_BYTES, Box, Half, Mad, Record

PERIOD_SECONDS = 1e-8
READ_CYCLES = 1
PATIENCE_CYCLES = 400

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Stalls:
    """How likely each port is held back in a cycle."""

    start: float = 0.0
    a_request: float = 0.0
    b_request: float = 0.0
    a: float = 0.0
    b: float = 0.0
    o: float = 0.0


@dataclass
class Side:
    """A scale buffer: it answers requests, in order, with the beats of their boxes."""

    name: str
    requests: list[tuple[int, Box]] = field(default_factory=list[tuple[int, Box]])
    beats: list[int] = field(default_factory=list[int])
    queue: deque[tuple[int, list[int]]] = field(default_factory=deque[tuple[int, list[int]]])
    offered: list[int] | None = None


class Run:
    """Mads through a unit, cycle by cycle, in Amaranth's simulator.

    Every cycle the wires out of the unit are read first, then those into it are set: none of the
    former may depend on the latter, and the run checks that too.

    Attributes:
        starts: Cycles in which a start was taken.
        records: Records taken, each with its cycle.
        sides: Requests and beats taken, each with its cycle.
        rows: Every wire of every cycle, by the names of a trace.
    """

    def __init__(
        self,
        mads: list[Mad],
        codes: Mapping[Box, list[int]],
        *,
        beat_bytes: int = 32,
        combined: bool = False,
        stalls: Stalls | None = None,
        reset_at: int | None = None,
        seed: int = 7,
        cycles: int | None = None,
    ) -> None:
        self.unit = ScaleDecode(beat_bytes=beat_bytes, combined=combined)
        self.beat_bytes, self.codes = beat_bytes, codes
        self.stalls = stalls or Stalls()
        self.reset_at = reset_at
        self.rng = random.Random(seed)
        self.mads = mads
        self.waiting = deque(mads)
        self.offered: Mad | None = None
        self.starts: list[int] = []
        self.records: list[tuple[int, Record]] = []
        self.combined: list[tuple[Array, Array]] = []
        self.sides = {name: Side(name) for name in "ab"}
        self.rows: list[dict[str, Any]] = []
        self.kept: dict[str, dict[str, Any]] = {}
        self.cycles = cycles
        self.reset = Signal()
        top = Module()
        top.submodules.unit = ResetInserter(self.reset)(self.unit)
        simulator = Simulator(top)
        simulator.add_clock(PERIOD_SECONDS)
        simulator.add_testbench(self.bench)
        simulator.run()

    @property
    def trace(self) -> dict[str, Array]:
        """The run as arrays, an entry a cycle."""
        return {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}

    async def bench(self, ctx: Any) -> None:
        idle = 0
        for cycle in range(1_000_000):
            if cycle == self.cycles or (self.cycles is None and idle > 6):
                return
            assert self.cycles is not None or not self.stuck(cycle), "the unit must not hang"
            before = self.read(ctx)
            given = self.decide(cycle)
            self.drive(ctx, given)
            assert self.read(ctx) == before, "no output may depend on an input of the same cycle"
            self.hold_to_the_rules(before, given)
            self.rows.append(before | given)
            self.transfer(cycle, before, given)
            over = not self.waiting and self.offered is None and before["start_ready"]
            idle = idle + 1 if over and not before["o_valid"] else 0
            await ctx.tick()

    def stuck(self, cycle: int) -> bool:
        moved = [record for record, _ in self.records[-1:]] + self.starts[-1:]
        moved += [request for side in self.sides.values() for request, _ in side.requests[-1:]]
        moved += [beat for side in self.sides.values() for beat in side.beats[-1:]]
        return cycle - max(moved, default=0) > PATIENCE_CYCLES

    def read(self, ctx: Any) -> dict[str, Any]:
        unit = self.unit
        found: dict[str, Any] = {"start_ready": bool(ctx.get(unit.start.ready))}
        for side in "ab":
            request = getattr(unit, f"{side}_request")
            payload = ctx.get(request.payload)
            found[f"{side}_request_valid"] = bool(ctx.get(request.valid))
            found[f"{side}_request_tile"] = payload.tile
            found[f"{side}_request_block"] = payload.block
            found[f"{side}_ready"] = bool(ctx.get(getattr(unit, side).ready))
        found["o_valid"] = bool(ctx.get(unit.o.valid))
        payload = ctx.get(unit.o.payload)
        found["o_group"] = payload.group
        for name in ("second", "last", "end"):
            found[f"o_{name}"] = bool(payload[name])
        for name in ("a_exponent", "b_exponent", "a_nan", "b_nan"):
            found[f"o_{name}"] = [[int(entry) for entry in half[name]] for half in payload.halves]
        if self.unit.combined and found["o_valid"]:
            found["o_combined"] = [
                ([int(x) for x in pairs.exponent], [bool(x) for x in pairs.is_nan])
                for pairs in payload.combined
            ]
        return found

    def decide(self, cycle: int) -> dict[str, Any]:
        """Choose every input of this cycle; what was offered and not taken stays."""

        def wakes(port: str) -> bool:
            return self.rng.random() >= getattr(self.stalls, port)

        if self.offered is None and self.waiting and wakes("start"):
            self.offered = self.waiting.popleft()
        mad = self.offered or Mad(3, 2, self.rng.randrange(1, 100))
        given: dict[str, Any] = {
            "reset": cycle == self.reset_at,
            "start_valid": self.offered is not None,
            "start_row_tiles": mad.row_tiles,
            "start_column_tiles": mad.column_tiles,
            "start_groups": mad.groups,
            "start_paired": mad.paired,
            "o_ready": wakes("o"),
        }
        for name, side in self.sides.items():
            if side.offered is None and side.queue and side.queue[0][0] <= cycle and wakes(name):
                side.offered = side.queue.popleft()[1]
            noise = [self.rng.randrange(256) for _ in range(self.beat_bytes)]
            given[f"{name}_valid"] = side.offered is not None
            given[name] = side.offered or noise
            given[f"{name}_request_ready"] = wakes(f"{name}_request")
        return given

    def drive(self, ctx: Any, given: Mapping[str, Any]) -> None:
        unit = self.unit
        ctx.set(self.reset, given["reset"])
        ctx.set(unit.start.valid, given["start_valid"])
        names = ("row_tiles", "column_tiles", "groups", "paired")
        ctx.set(unit.start.payload, {name: int(given[f"start_{name}"]) for name in names})
        for side in "ab":
            ctx.set(getattr(unit, f"{side}_request").ready, given[f"{side}_request_ready"])
            ctx.set(getattr(unit, side).valid, given[f"{side}_valid"])
            ctx.set(getattr(unit, side).payload, given[side])
        ctx.set(unit.o.ready, given["o_ready"])

    def hold_to_the_rules(self, found: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """A word on offer stays, and stays the same, until it is taken."""
        for port in ("a_request", "b_request", "o"):
            word = {name: found[name] for name in found if name.startswith(f"{port}_")}
            if port in self.kept:
                assert word == self.kept[port], f"{port} must keep still until it is taken"
            self.kept.pop(port, None)
            if found[f"{port}_valid"] and not given[f"{port}_ready"]:
                self.kept[port] = word

    def transfer(self, cycle: int, found: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        if given["reset"]:
            self.forget()
            return
        if given["start_valid"] and found["start_ready"]:
            self.starts.append(cycle)
            self.offered = None
        for name, side in self.sides.items():
            if given[f"{name}_valid"] and found[f"{name}_ready"]:
                side.beats.append(cycle)
                side.offered = None
            if found[f"{name}_request_valid"] and given[f"{name}_request_ready"]:
                box = (name, found[f"{name}_request_tile"], found[f"{name}_request_block"])
                side.requests.append((cycle, box))
                for first in range(0, BOX_BYTES, self.beat_bytes):
                    beat = self.codes[box][first : first + self.beat_bytes]
                    side.queue.append((cycle + READ_CYCLES, beat))
        if found["o_valid"] and given["o_ready"]:
            self.records.append((cycle, record_on(found)))
            if self.unit.combined:
                exponents, flags = zip(*found["o_combined"], strict=True)
                self.combined.append((np.array(exponents), np.array(flags)))

    def forget(self) -> None:
        """Lose all that is under way; a start that was not taken is offered again."""
        if self.offered is not None:
            self.waiting.appendleft(self.offered)
        self.offered = None
        self.kept.clear()
        for side in self.sides.values():
            side.queue.clear()
            side.offered = None

    def held_against_the_specification(self) -> "Run":
        """Fail unless every request and every record came, in order, and nothing else did."""
        assert len(self.starts) == len(self.mads)
        for name, side in self.sides.items():
            asked = [box for mad in self.mads for box in mad.boxes(name)]
            assert [box for _, box in side.requests] == asked
            assert len(side.beats) == len(asked) * BOX_BYTES // self.beat_bytes
        expected = [record for mad in self.mads for record in mad.records(self.codes)]
        assert [record for _, record in self.records] == expected
        return self


def record_on(found: Mapping[str, Any]) -> Record:
    def half(which: int) -> Half:
        return (
            tuple(found["o_a_exponent"][which]),
            tuple(found["o_b_exponent"][which]),
            tuple(bool(flag) for flag in found["o_a_nan"][which]),
            tuple(bool(flag) for flag in found["o_b_nan"][which]),
        )

    flags = (found["o_second"], found["o_last"], found["o_end"])
    return Record(found["o_group"], *flags, (half(0), half(1)))


def consecutive(first: int, count: int) -> list[int]:
    return list(range(first, first + count))
