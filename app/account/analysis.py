"""Where the cycles of a run went: its pipes, its critical path, its bounds, in numbers and in words."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ...codegen.isa.vocabulary import Pipe
from ...sim.account.critical import PathShare, critical_path
from ...sim.account.records import Cause, records_of
from ...sim.roofline import Bound, executed_work, roofline
from .bottleneck import bottleneck
from .empty_loops import empty_loops
from .pipe_shares import pipe_shares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...sim.account.critical import CriticalPath
    from ...sim.account.records import Records
    from ...sim.roofline import Roofline
    from ..result import Result
    from .empty_loops import EmptyLoops
    from .pipe_shares import PipeShare

MOST_SEGMENTS = 10
"""How many lines of the critical path a report shows."""

BOUND_NAMES = {
    Bound.CUBE.value: "the cube",
    Bound.MTE1.value: "MTE1",
    Bound.DRAIN.value: "the drain of L0C",
    Bound.VECTOR.value: "the vector unit",
    Bound.LOADS.value: "loads and their rows",
    Bound.STORES.value: "stores and their rows",
    Bound.PORT.value: "the GM port",
    Bound.L2.value: "the L2",
    Bound.HBM.value: "device memory",
}
"""What the bounds of a roofline are called in a sentence."""

_WIDTH = 79


@dataclass(frozen=True)
class Analysis:
    """What is found out about the cycles of a run that was timed.

    Attributes:
        result: The run.
    """

    result: Result

    @property
    def work_cycles(self) -> int:
        """The cycles after the launch."""
        return self.result.cycles - self.result.simulation.launch_cycles

    @cached_property
    def records(self) -> Records:
        """What the pipes did."""
        return records_of(self.result.simulation, self.result.target)

    @cached_property
    def pipes(self) -> tuple[PipeShare, ...]:
        """The pipes that had anything to do, core by core."""
        return pipe_shares(self.result.simulation)

    @cached_property
    def path(self) -> CriticalPath:
        """The critical path."""
        return critical_path(self.records)

    @cached_property
    def shares(self) -> tuple[PathShare, ...]:
        """The critical path after the launch by line, pipe and cause; issuing is put together."""
        shares = [share for share in self.path.shares if share.cause is not Cause.LAUNCH]
        issues = [share for share in shares if share.cause is Cause.ISSUE]
        others = [share for share in shares if share.cause is not Cause.ISSUE]
        if issues:
            cycles, times = (
                sum(getattr(share, name) for share in issues) for name in ("cycles", "times")
            )
            others.append(PathShare(Cause.ISSUE, Pipe.S, "", "", cycles, times))
        return tuple(sorted(others, key=lambda share: -share.cycles))

    @cached_property
    def roofline(self) -> Roofline:
        """The bounds that no run of this work can beat."""
        parts = [
            (part.core.number, part.kernel, self.records.item[part.first : part.last])
            for part in self.records.parts
        ]
        simulation, target = self.result.simulation, self.result.target
        work = executed_work(parts, target, cores=len(simulation.cores))
        traffic = simulation.traffic
        fetched = 0 if traffic is None else traffic.fetched_bytes
        kinds = [name.core.kind for name in simulation.cores]
        return roofline(work, kinds, target, hbm_bytes=fetched)

    @cached_property
    def loops(self) -> EmptyLoops:
        """The loops without an iteration."""
        return empty_loops(self.result)

    @cached_property
    def sentence(self) -> str:
        """What bounds the run."""
        return bottleneck(self.shares, self.pipes, max(1, self.work_cycles))

    @property
    def reached(self) -> float:
        """The largest bound as a part of the work cycles."""
        return self.roofline.cycles / max(1, self.work_cycles)

    def as_json(self) -> dict[str, Any]:
        """Return what was found out as plain values."""
        return {
            "shares": [share.as_json() for share in self.pipes],
            "critical_path": [
                {
                    "cycles": share.cycles,
                    "share": share.cycles / max(1, self.work_cycles),
                    "cause": share.cause.value,
                    "pipe": None if share.pipe is None else share.pipe.name,
                    "instruction": share.mnemonic,
                    "source": share.source,
                    "times": share.times,
                }
                for share in self.shares[:MOST_SEGMENTS]
            ],
            "roofline": {
                "bounds": dict(self.roofline.bounds),
                "binding": self.roofline.binding,
                "cycles": self.roofline.cycles,
                "reached": self.reached,
            },
            "bottleneck": None if self.loops.are_all else self.sentence,
            "empty_loops": [loop.as_json() for loop in self.loops.loops],
        }

    def loop_lines(self) -> Iterator[str]:
        """Yield what is to be said of loops without an iteration."""
        for loop in self.loops.loops:
            yield from labelled("loops", str(loop))
        if self.loops.are_all:
            yield "         The cycles are no measure of speed: no loop did anything."

    def bound_lines(self) -> Iterator[str]:
        """Yield what the run reached of what is possible, and what bounds it."""
        bound, name = self.roofline.cycles, self.roofline.binding
        if name is not None:
            yield (
                f"roofline at least {bound:,} work cycles, for {BOUND_NAMES[name]}: "
                f"{self.reached:.1%} of the best"
            )
        yield from labelled("bound", self.sentence)

    def path_lines(self, most: int = MOST_SEGMENTS) -> Iterator[str]:
        """Yield the longest stretches of the critical path."""
        whole = max(1, self.work_cycles)
        yield "critical path, by pipe and line  cycles   share  times  line"
        shown = self.shares[:most]
        for share in shown:
            pipe = "" if share.pipe is None else share.pipe.name
            words = path_words(share.cause, share.mnemonic)
            yield (
                f"{pipe:<5} {words:<25}{share.cycles:>8,} {share.cycles / whole:>7.1%} "
                f"{share.times:>6,}  {short_source(share.source)}"
            ).rstrip()
        rest = self.shares[most:]
        if rest:
            cycles = sum(share.cycles for share in rest)
            yield f"      {f'{len(rest)} more':<25}{cycles:>8,} {cycles / whole:>7.1%}"


def labelled(label: str, text: str) -> list[str]:
    """Return a text behind its label, wrapped for a terminal."""
    start = f"{label:<9}"
    return textwrap.wrap(text, _WIDTH, initial_indent=start, subsequent_indent=" " * len(start))


def path_words(cause: Cause, mnemonic: str) -> str:
    """Return what a stretch of the critical path is, in a few words."""
    match cause:
        case Cause.LATENCY:
            return f"{mnemonic}, latency"
        case Cause.MEMORY:
            return f"{mnemonic}, sharing"
        case Cause.SCALES:
            return f"{mnemonic}, no scales"
        case Cause.FLAG:
            return "a flag on its way"
        case Cause.ISSUE:
            return "issues instructions"
        case Cause.TASK:
            return "between two tasks"
        case Cause.BARRIER:
            return "a barrier"
        case _:
            return mnemonic or "several instructions"


def short_source(source: str) -> str:
    """Return file and line of a source, without folder and column."""
    if not source:
        return ""
    file, line, *_ = [*source.rsplit(":", 2), ""]
    return f"{PurePath(file).name}:{line}"
