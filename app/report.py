"""What a run looks like on a terminal and as JSON."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.isa.vocabulary import ClusterCore, ElementType, PlainType, TimingClass
from ..sim.costs import CUBE
from ..traces.containers import SUFFIX
from ..traces.timeline import Timeline
from .account.analysis import Analysis
from .account.core_places import labels, places
from .account.pipe_table import table_lines
from .account.trace import SHOWN
from .run_changes import Changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rich.console import Console

    from ..codegen.isa.program import Instruction
    from ..ir.target import Target
    from ..traces.compare import Comparison, Difference, OutputComparison
    from .account.pipe_shares import PipeShare
    from .replay import Kept
    from .result import Result

_FULL, _FULL_ASCII = "█", "#"


class GoldenSource(Enum):
    """Where golden comes from, as the end of "golden is …"."""

    COMPUTED = "what numpy computes from the kernel as it is written"
    GIVEN = "what was given as golden"
    KEPT = "what the bundle keeps"
    UNASKED = "not asked for"


@dataclass(frozen=True)
class RunReport:
    """A run and its verdict.

    Attributes:
        title: What ran.
        result: The run.
        comparison: Against golden; None when there is nothing to compare.
        bundle: Where the run was saved, if it was.
        timeline: What was saved as its timeline, if anything.
        seed: Of the drawn inputs; None when they were given, or none were needed.
        golden: Where golden comes from.
        hints: Mistakes that explain what differs.
        kept: Of a replay, how the run compares with what it left when it was saved.
        kept_golden: Of a replay, how golden that is computed now compares with that of the bundle.
        changes: What was changed of the kernel file and of the machine.
        replaced: Whether the bundle stands where an earlier one stood.
    """

    title: str
    result: Result
    comparison: Comparison | None
    bundle: Path | None
    seed: int | None
    golden: GoldenSource = GoldenSource.COMPUTED
    hints: tuple[str, ...] = ()
    kept: Kept | None = None
    kept_golden: Comparison | None = None
    timeline: Timeline | Mapping[str, Any] | None = None
    changes: Changes = field(default_factory=Changes)
    replaced: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing differs from golden, from the hardware, or from what a replay kept."""
        verdicts = [self.comparison, self.kept_golden]
        if self.kept is not None:
            verdicts.append(self.kept.outputs)
            if not self.kept.has_same_bytes:
                return False
        if self.result.cube is not None and not self.result.cube.ok:
            return False
        return all(verdict is None or bool(verdict) for verdict in verdicts)

    @property
    def work_cycles(self) -> int:
        """The cycles after the launch."""
        return self.result.cycles - self.result.simulation.launch_cycles

    @property
    def macs_per_cycle(self) -> float:
        """Multiplications a cycle of work, all cores together."""
        return self.result.simulation.macs / max(1, self.work_cycles)

    @property
    def peak_macs_per_cycle(self) -> int:
        """What the cubes that took part could do on the widest operands that were multiplied."""
        target = self.result.target
        peaks = [
            _peak(target, each)
            for kernel in self.result.executable.kernels
            for each in kernel.program
            if each.row.timing in (TimingClass.MAD, TimingClass.PLAIN_MAD)
        ]
        one = min(peaks, default=target.peak_macs_per_cycle(8))
        cubes = [
            core for _, core in places(self.result.simulation.cores) if core is ClusterCore.AIC
        ]
        return one * len(cubes)

    @cached_property
    def analysis(self) -> Analysis:
        """Where the cycles went; of a run that was timed."""
        return Analysis(self.result)

    @property
    def pipes(self) -> tuple[PipeShare, ...]:
        """The pipes that had anything to do, core by core, in the order in which data flows."""
        return self.analysis.pipes

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is suspicious, though it is no error."""
        seen = tuple(str(warning) for warning in self.result.simulation.warnings)
        seen += self._unwritten
        if self.kept is not None and self.kept.cycles not in (None, self.result.cycles):
            seen += (f"the bundle keeps {self.kept.cycles:,} cycles, not {self.result.cycles:,}",)
        return seen + (self.comparison.warnings if self.comparison is not None else ())

    @cached_property
    def _unwritten(self) -> tuple[str, ...]:
        """Tell of outputs that no store fills: golden, which comes from the same kernel, has it so."""
        found: list[str] = []
        for name, array in self.result.outputs.items():
            if name in self.result.inputs:
                continue
            places = self.result.outputs.unwritten(name)
            if len(places) == array.size > 0:
                found.append(f"no store writes anything into {name}, which stays 0")
            elif len(places):
                first = [int(index) for index in np.unravel_index(int(places[0]), array.shape)]
                some = f"{len(places):,} of {array.size:,} elements of {name}"
                found.append(f"no store writes {some}, the first at {first}")
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        result, simulation = self.result, self.result.simulation
        compared = self.comparison.outputs if self.comparison is not None else ()
        verdicts = {output.name: output for output in compared}
        outputs = {
            name: {
                "shape": list(array.shape),
                "dtype": str(array.dtype),
                "equal": verdicts[name].equal if name in verdicts else None,
                "differing": verdicts[name].differing if name in verdicts else None,
            }
            for name, array in result.outputs.items()
        }
        first = self.comparison.first if self.comparison is not None else None
        return {
            "ok": self.ok,
            "kernel": self.title,
            "machine": result.target.name,
            "entry": result.entry,
            "seed": self.seed,
            **self.changes.as_json(),
            "dims": dict(result.dims),
            "cycles": result.cycles,
            "launch_cycles": simulation.launch_cycles,
            "microseconds": result.microseconds,
            "instructions": simulation.instructions,
            "macs": simulation.macs,
            "macs_per_cycle": self.macs_per_cycle,
            "peak_macs_per_cycle": self.peak_macs_per_cycle,
            "cores": list(labels(simulation.cores)),
            "pipes": [dict(core) for core in result.pipes],
            "cube": None if result.cube is None else result.cube.as_json(),
            "outputs": outputs,
            "first_difference": None if first is None else difference_as_json(first),
            "hints": list(self.hints),
            "warnings": list(self.warnings),
            "bundle": None if self.bundle is None else str(self.bundle),
            "replaced": self.replaced,
            "timeline_clusters": self._clusters_shown,
            "replay": None if self.kept is None else self._replay_as_json(self.kept),
            **(self.analysis.as_json() if result.cycles else {}),
        }

    def _replay_as_json(self, kept: Kept) -> dict[str, Any]:
        return {
            "same_bytes": kept.has_same_bytes,
            "kept_cycles": kept.cycles,
            "outputs": None if kept.outputs is None else comparison_as_json(kept.outputs),
            "golden": None if self.kept_golden is None else comparison_as_json(self.kept_golden),
        }

    def lines(self, *, full: str = _FULL) -> list[str]:
        """Return the report as text for a terminal of 80 columns.

        Args:
            full: The character that the bars are made of.
        """
        result = self.result
        source = "" if self.seed is None else f", inputs drawn with seed {self.seed}"
        lines = [f"{self.title}: {result.entry} on machine {result.target.name}{source}"]
        lines += [*self.changes.lines(), ""]
        if result.dims:
            lines.append(f"dims     {', '.join(f'{k} = {v}' for k, v in result.dims.items())}")
        lines += self._replayed()
        lines += self._verdict()
        if result.cube is not None:
            lines += result.cube.lines()
        lines += [f"warning  {warning}" for warning in self.warnings]
        if result.cycles:
            lines += self._cycles()
            lines += self._measures(full)
        if self.bundle is not None:
            replaced = " (replaced the one before)" if self.replaced else ""
            lines += ["", f"bundle   {self.bundle}{replaced}"]
            lines += self._viewer(self.bundle)
        return lines

    def show(self, console: Console) -> None:
        """Print the report, in colour if the console has it."""
        from rich.text import Text

        can_draw = console.encoding.lower().startswith("utf")
        for line in self.lines(full=_FULL if can_draw else _FULL_ASCII):
            text = Text(line)
            text.highlight_regex(r"^(golden|replay)   equal( (bit|byte) for (bit|byte))?", "green")
            text.highlight_regex(r"^(golden|replay|cube) +DIFFERENT", "bold red")
            text.highlight_regex(r"^warning", "yellow")
            text.highlight_regex(rf"{_FULL}+$", "cyan")
            console.print(text, soft_wrap=True)

    def _replayed(self) -> Iterator[str]:
        """Yield how a replay compares with what the bundle keeps."""
        if self.kept is None:
            return
        kept = self.kept.outputs
        if kept is None:
            yield "replay   of a run that computed only cycles"
        elif kept and self.kept.has_same_bytes:
            yield f"replay   equal byte for byte, {_all_elements(kept)}"
            yield "         (to the outputs that the bundle keeps)"
        elif kept:
            yield "replay   DIFFERENT bytes in NaNs than in those that the bundle keeps"
        else:
            yield "replay   DIFFERENT from the outputs that the bundle keeps, here as golden"
            yield from (f"         {line}" for line in str(kept).splitlines())
        if self.kept_golden is not None and not self.kept_golden:
            yield "golden   DIFFERENT: numpy computes from the kernel what the bundle does not keep"
            yield from (f"         {line}" for line in str(self.kept_golden).splitlines())

    def _verdict(self) -> Iterator[str]:
        if self.comparison is None:
            yield f"golden   not compared: {self._why_not_compared}"
            return
        source = self.golden.value
        if self.comparison:
            is_exact = self.comparison.rule == "exact"
            how = "bit for bit" if is_exact else f"by the rule {self.comparison.rule}"
            yield f"golden   equal {how}, {_all_elements(self.comparison)}"
            if self.kept_golden is not None:
                source += ", and what numpy computes from its kernel"
            yield f"         (golden is {source})"
        else:
            yield f"golden   DIFFERENT from {source}"
            yield from (f"         {line}" for line in str(self.comparison).splitlines())
            yield from (line for hint in self.hints for line in hint_lines(hint, indent=9))

    @property
    def _why_not_compared(self) -> str:
        if not self.result.options["functional"]:
            return "only cycles were computed"
        if self.golden is GoldenSource.UNASKED:
            return f"golden is {self.golden.value}"
        return "an executable holds no kernel to compute golden from"

    def _viewer(self, bundle: Path) -> Iterator[str]:
        """Yield where the timeline can be looked at, and what it does not show."""
        if self.timeline is None:
            return
        shown = self._clusters_shown
        if bundle.suffix != SUFFIX:
            part = "" if shown is None else f" ({shown} clusters)"
            yield f"         its timeline.json{part} opens in https://ui.perfetto.dev"
            yield "         (1 us on its ruler is 1 cycle)"
        elif shown is not None:
            yield f"         its timeline shows {shown} clusters"

    @property
    def _clusters_shown(self) -> str | None:
        """How many clusters the timeline shows of how many; None if it shows all."""
        return self.timeline.notes.get(SHOWN) if isinstance(self.timeline, Timeline) else None

    def _cycles(self) -> Iterator[str]:
        result, simulation = self.result, self.result.simulation
        clock = f"{result.target.clock_hz / 1e9:.4g} GHz"
        yield (
            f"cycles   {result.cycles:,} = {simulation.launch_cycles:,} launch + "
            f"{self.work_cycles:,} work; {result.microseconds:.3f} microseconds at {clock}"
        )
        if self.analysis.loops.loops:
            yield from self.analysis.loop_lines()
        rate, peak = self.macs_per_cycle, self.peak_macs_per_cycle
        if simulation.macs and not self.analysis.loops.are_all:
            yield f"MACs     {rate:,.0f} a work cycle, {rate / peak:.1%} of the peak of {peak:,}"

    def _measures(self, full: str) -> Iterator[str]:
        """Yield what is to be said of the speed of a run that did something."""
        if self.analysis.loops.are_all:
            return
        yield from self.analysis.bound_lines()
        yield ""
        yield from table_lines(self.pipes, full)
        yield ""
        yield from self.analysis.path_lines()


def _peak(target: Target, mad: Instruction) -> int:
    """Return the multiplications a cycle of a cube on operands like those of `mad`."""
    if mad.row.timing is TimingClass.MAD:
        return target.peak_macs_per_cycle(ElementType(mad["a_type"]).bits)
    match PlainType(mad["a_type"]):
        case PlainType.FP32:
            depth = target.mad_32bit_k_elements / target.mad_32bit_passes
        case PlainType.FP16 | PlainType.BF16:
            depth = target.mad_16bit_k_elements
        case _:
            depth = target.mad_8bit_k_elements
    return int(CUBE * CUBE * depth)


def hint_lines(hint: str, *, indent: int = 0) -> list[str]:
    """Return a mistake that explains what differs, wrapped for a terminal."""
    start = " " * indent
    return textwrap.wrap(
        hint, 79, initial_indent=f"{start}explained: ", subsequent_indent=f"{start}           "
    )


def _all_elements(comparison: Comparison) -> str:
    names = ", ".join(output.name for output in comparison.outputs)
    return f"all {comparison.elements:,} elements of {names}"


def comparison_as_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values."""
    first = comparison.first
    return {
        "ok": bool(comparison),
        "rule": comparison.rule,
        "elements": comparison.elements,
        "differing": comparison.differing,
        "outputs": {
            output.name: {
                "elements": output.elements,
                "differing": output.differing,
                "equal": output.equal,
                **_details_as_json(output),
            }
            for output in comparison.outputs
        },
        "first_difference": None if first is None else difference_as_json(first),
        "warnings": list(comparison.warnings),
    }


def _details_as_json(output: OutputComparison) -> dict[str, Any]:
    """Return how an output differs, as plain values; nothing for one that does not."""
    if not output.differing:
        return {}
    counts, places = output.histogram, output.map
    return {
        "histogram": None
        if counts is None
        else {
            "bins": [
                {"least_ulps": least, "most_ulps": most, "elements": count}
                for least, most, count in counts.bins
            ],
            "special": counts.special,
        },
        "map": None
        if places is None
        else {"cell": list(places.cell), "shares": [list(row) for row in places.shares]},
        "guesses": list(output.guesses),
    }


def difference_as_json(difference: Difference) -> dict[str, Any]:
    """Return a difference as plain values; what is no number in JSON stands as text."""
    return {
        "output": difference.output,
        "index": list(difference.index),
        "tile": None if difference.tile is None else list(difference.tile),
        "instruction": difference.instruction,
        "source": difference.source,
        "actual": _number(difference.actual),
        "golden": _number(difference.golden),
        "actual_bits": f"{difference.actual_bits:#x}",
        "golden_bits": f"{difference.golden_bits:#x}",
        "ulps": difference.ulps,
        "text": str(difference),
    }


def _number(value: float) -> float | str:
    return value if isinstance(value, int) or math.isfinite(value) else str(value)
