"""What a run looks like on a terminal and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..codegen.isa.vocabulary import ElementType
from ..sim.pipes import BARRIER, BUSY, FLAG, QUEUE
from .pipe_work import PIPE_WORK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from ..traces.compare import Comparison, Difference
    from .api import Result

_BAR_CELLS = 20
_FULL, _FULL_ASCII = "█", "#"


class PipeShare(NamedTuple):
    """What a pipe did with the cycles of a run, all cores together."""

    name: str
    work: str
    busy_cycles: int
    busy: float
    waiting: float


@dataclass(frozen=True)
class RunReport:
    """A run and its verdict.

    Attributes:
        title: What ran.
        result: The run.
        comparison: Against golden; None when there is nothing to compare.
        bundle: The folder in which the run was saved.
        seed: Of the drawn inputs; None when they were given, or none were needed.
    """

    title: str
    result: Result
    comparison: Comparison | None
    bundle: Path
    seed: int | None

    @property
    def ok(self) -> bool:
        """Whether nothing differs from golden."""
        return self.comparison is None or bool(self.comparison)

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
        bits = [
            ElementType(each["a_type"]).bits
            for kernel in self.result.executable.kernels
            for each in kernel.program
            if each.row.has("a_type")
        ]
        one = self.result.target.peak_macs_per_cycle(max(bits, default=8))
        return one * len(self.result.pipes)

    @cached_property
    def pipes(self) -> tuple[PipeShare, ...]:
        """The pipes that had anything to do, in the order in which data flows."""
        accounts = self.result.simulation.accounts
        whole = max(1, self.work_cycles) * len(accounts)
        shares: list[PipeShare] = []
        for pipe, work in PIPE_WORK.items():
            account = accounts[:, pipe].sum(axis=0)
            waiting = int(account[FLAG] + account[BARRIER] + account[QUEUE])
            if busy := int(account[BUSY]):
                shares.append(PipeShare(pipe.name, work, busy, busy / whole, waiting / whole))
        return tuple(shares)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is suspicious, though it is no error."""
        seen = tuple(str(warning) for warning in self.result.simulation.warnings)
        return seen + (self.comparison.warnings if self.comparison is not None else ())

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
            "cycles": result.cycles,
            "launch_cycles": simulation.launch_cycles,
            "microseconds": result.microseconds,
            "instructions": simulation.instructions,
            "macs": simulation.macs,
            "macs_per_cycle": self.macs_per_cycle,
            "peak_macs_per_cycle": self.peak_macs_per_cycle,
            "pipes": [dict(core) for core in result.pipes],
            "outputs": outputs,
            "first_difference": None if first is None else difference_as_json(first),
            "warnings": list(self.warnings),
            "bundle": str(self.bundle),
        }

    def lines(self, *, full: str = _FULL) -> list[str]:
        """Return the report as text for a terminal of 80 columns.

        Args:
            full: The character that the bars are made of.
        """
        result = self.result
        source = "" if self.seed is None else f", inputs drawn with seed {self.seed}"
        lines = [f"{self.title}: {result.entry} on machine {result.target.name}{source}", ""]
        lines += self._verdict()
        lines += [f"warning  {warning}" for warning in self.warnings]
        if result.cycles:
            lines += self._cycles()
            lines += ["", *self._table(full)]
        lines += ["", f"bundle   {self.bundle}"]
        if result.cycles:
            lines.append("         its timeline.json opens in https://ui.perfetto.dev")
        return lines

    def show(self, console: Console) -> None:
        """Print the report, in colour if the console has it."""
        from rich.text import Text

        can_draw = console.encoding.lower().startswith("utf")
        for line in self.lines(full=_FULL if can_draw else _FULL_ASCII):
            text = Text(line)
            text.highlight_regex(r"^golden   equal bit for bit", "green")
            text.highlight_regex(r"^golden   DIFFERENT", "bold red")
            text.highlight_regex(r"^warning", "yellow")
            text.highlight_regex(rf"{_FULL}+$", "cyan")
            console.print(text, soft_wrap=True)

    def _verdict(self) -> Iterator[str]:
        if self.comparison is None:
            functional = self.result.options["functional"]
            reason = "an executable holds no kernel to compute golden from"
            yield f"golden   not compared: {reason if functional else 'only cycles were computed'}"
        elif self.comparison:
            names = ", ".join(output.name for output in self.comparison.outputs)
            count = f"{self.comparison.elements:,} elements"
            yield f"golden   equal bit for bit, all {count} of {names}"
            yield "         (golden is what numpy computes from the kernel as it is written)"
        else:
            yield "golden   DIFFERENT from what numpy computes from the kernel as it is written"
            yield from (f"         {line}" for line in str(self.comparison).splitlines())

    def _cycles(self) -> Iterator[str]:
        result, simulation = self.result, self.result.simulation
        clock = f"{result.target.clock_hz / 1e9:.4g} GHz"
        yield (
            f"cycles   {result.cycles:,} = {simulation.launch_cycles:,} launch + "
            f"{self.work_cycles:,} work; {result.microseconds:.3f} microseconds at {clock}"
        )
        rate, peak = self.macs_per_cycle, self.peak_macs_per_cycle
        yield f"MACs     {rate:,.0f} a work cycle, {rate / peak:.1%} of the peak of {peak:,}"

    def _table(self, full: str) -> Iterator[str]:
        yield f"pipe  {'what it does':<31}{'busy cycles':>12} {'busy':>7} {'waits':>7}"
        for share in self.pipes:
            bar = full * round(share.busy * _BAR_CELLS)
            line = (
                f"{share.name:<5} {share.work:<31}{share.busy_cycles:>12,} {share.busy:>7.1%} "
                f"{share.waiting:>7.1%}  {bar}"
            )
            yield line.rstrip()
        cores = len(self.result.pipes)
        whole = "work cycles" if cores == 1 else f"work cycles of {cores} cores"
        yield f"Shares are of the {whole}. Pipes work side by side; a pipe waits for a"
        yield "flag of another one, S also for room in their queues."


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
            }
            for output in comparison.outputs
        },
        "first_difference": None if first is None else difference_as_json(first),
        "warnings": list(comparison.warnings),
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
