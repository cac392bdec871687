"""The report command: where the cycles of a run went, at length."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...sim.account.records import COLUMNS, Cause
from ...traces.bundle import is_bundle, load_bundle
from ...traces.containers import is_container
from ..account.analysis import MOST_SEGMENTS, Analysis, path_words, short_source
from ..account.core_places import labels
from ..account.flag_waits import flag_lines, flag_waits, flags_of
from ..replay import program_of, run_bundle
from ..run_changes import Changes
from .run import refuse_options, run_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...sim.account.critical import Segment
    from ..account.flag_waits import FlagWait
    from ..account.pipe_shares import PipeShare
    from ..result import Result
    from .run import RunOptions


@dataclass(frozen=True)
class LongReport:
    """Where the cycles of a run went.

    Attributes:
        title: What ran.
        analysis: What was found out about it.
        changes: What was changed of the kernel file and of the machine.
    """

    title: str
    analysis: Analysis
    changes: Changes = field(default_factory=Changes)

    @property
    def result(self) -> Result:
        """The run."""
        return self.analysis.result

    @cached_property
    def waits(self) -> tuple[FlagWait, ...]:
        """The waits for flags, those with most of the critical path first."""
        return flag_waits(self.analysis.records, self.analysis.path)

    @cached_property
    def stretches(self) -> tuple[Segment, ...]:
        """The longest stretches of the critical path after the launch."""
        all_of_them = self.analysis.path.stretches
        work = [each for each in all_of_them if each.cause is not Cause.LAUNCH]
        return tuple(sorted(work, key=lambda each: -each.cycles)[:MOST_SEGMENTS])

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        result, simulation = self.result, self.result.simulation
        names = labels(simulation.cores)
        return {
            "ok": True,
            "kernel": self.title,
            "machine": result.target.name,
            "entry": result.entry,
            **self.changes.as_json(),
            "cycles": result.cycles,
            "launch_cycles": simulation.launch_cycles,
            "work_cycles": self.analysis.work_cycles,
            "microseconds": result.microseconds,
            "cores": list(names),
            "accounts": [
                {
                    pipe.name: {
                        cause.value: int(simulation.accounts[number, pipe, column])
                        for cause, column in COLUMNS.items()
                    }
                    for pipe in dict.fromkeys(share.pipe for share in self.analysis.pipes)
                }
                for number in range(len(names))
            ],
            **self.analysis.as_json(),
            "segments": [
                {
                    "start": each.start,
                    "end": each.end,
                    "cycles": each.cycles,
                    "cause": each.cause.value,
                    "core": None if each.core < 0 else names[each.core],
                    "pipe": None if each.pipe is None else each.pipe.name,
                    "instruction": each.mnemonic,
                    "source": each.source,
                }
                for each in self.stretches
            ],
            "warnings": [str(warning) for warning in simulation.warnings],
            "flags": [flag.as_json() for flag in flags_of(self.waits)],
            "flag_waits": [wait.as_json() for wait in self.waits],
            "moved_bytes": dict(simulation.moved),
            "tasks": [
                {
                    "kernel": kernel,
                    "tasks": len(cycles),
                    "cycles": sum(cycles),
                    "longest": max(cycles),
                }
                for kernel, cycles in self._tasks().items()
            ],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report as text for a terminal of 80 columns."""
        result, analysis = self.result, self.analysis
        launch = result.simulation.launch_cycles
        yield f"{self.title}: {result.entry} on machine {result.target.name}"
        yield from self.changes.lines()
        yield ""
        yield from (f"warning  {warning}" for warning in result.simulation.warnings)
        yield (
            f"cycles   {result.cycles:,} = {launch:,} launch + {analysis.work_cycles:,} work; "
            f"{result.microseconds:.3f} microseconds"
        )
        yield from analysis.loop_lines()
        if analysis.loops.are_all:
            return
        yield from analysis.bound_lines()
        yield from self._bounds()
        yield from self._pipes()
        yield ""
        yield from analysis.path_lines()
        yield from self._stretches()
        yield from self._flags()
        yield from self._traffic()
        yield from self._runs()

    def _bounds(self) -> Iterator[str]:
        yield ""
        yield "bound      cycles at least  of the work"
        bounds = sorted(self.analysis.roofline.bounds.items(), key=lambda each: -each[1])
        for name, cycles in bounds:
            yield f"{name:<10}{cycles:>16,}{cycles / max(1, self.analysis.work_cycles):>13.1%}"

    def _pipes(self) -> Iterator[str]:
        """Yield what each pipe did by cause; for several clusters the mean, and the busy range."""
        pipes = self.analysis.pipes
        yield ""
        heads = "".join(f"{cause.value:>9}" for cause in COLUMNS)
        differ = any(map(_range, pipes))
        yield f"core  pipe {heads}     idle" + ("  busy in the clusters" if differ else "")
        for share in pipes:
            parts = [share.busy, *share.waits.values(), share.idle]
            line = "".join(f"{part:>9.1%}" for part in parts)
            yield f"{share.core.name:<5} {share.name:<5}{line}{_range(share)}"

    def _stretches(self) -> Iterator[str]:
        yield ""
        yield "longest stretches of it             from         to   cycles  line"
        for each in self.stretches:
            pipe = "" if each.pipe is None else each.pipe.name
            words = path_words(each.cause, each.mnemonic)
            yield (
                f"{pipe:<5} {words:<25}{each.start:>10,} {each.end:>10,} {each.cycles:>8,}  "
                f"{short_source(each.source)}"
            ).rstrip()

    def _flags(self) -> Iterator[str]:
        if self.waits:
            yield ""
            yield from flag_lines(flags_of(self.waits))

    def _traffic(self) -> Iterator[str]:
        moved = self.result.simulation.moved
        if not moved:
            return
        yield ""
        yield "moved                bytes  a work cycle"
        for path, size in moved.items():
            yield f"{path:<13}{size:>13,}{size / max(1, self.analysis.work_cycles):>14.1f}"

    def _runs(self) -> Iterator[str]:
        yield ""
        yield "kernel                         tasks  cycles of one: mean, longest"
        for kernel, cycles in self._tasks().items():
            mean = sum(cycles) / len(cycles)
            yield f"{kernel:<30}{len(cycles):>6,}  {mean:,.0f}, {max(cycles):,}"

    def _tasks(self) -> dict[str, list[int]]:
        """Return the cycles of all tasks by the name of their kernel."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for run in self.result.simulation.tasks:
            found[run.cores[0].decoded.kernel.name].append(run.cycles)
        return dict(found)


def report_on(options: RunOptions) -> LongReport:
    """Run a kernel file, an executable or a bundle for its cycles, and report on them.

    Nothing is computed and nothing saved.

    Raises:
        InputError: A bundle does not hold what it takes to be run.
        UserError: For a kernel, an input or an option that is refused, or a fault of the kernel.
    """
    if not (is_bundle(options.kernel) or is_container(options.kernel)):
        launch = run_once(options)
        return LongReport(str(options.kernel), Analysis(launch.result), options.changes)
    refuse_options(options, "a bundle is run again as it was run", but="--timing-only")
    bundle = load_bundle(options.kernel)
    result = run_bundle(bundle, str(options.kernel), timing_only=True)
    if bundle.program is not None:
        result = replace(result, program=program_of(bundle.program))
    return LongReport(str(options.kernel), Analysis(result), Changes.of_bundle(bundle.options))


def _range(share: PipeShare) -> str:
    if share.least[0] == share.most[0]:
        return ""
    return f"  {share.least[0]:.1%} ({share.least[1]}) to {share.most[0]:.1%} ({share.most[1]})"
