"""What a run looks like on a terminal and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..codegen.isa.vocabulary import ElementType

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from ..traces.compare import Comparison
    from .api import Result


@dataclass(frozen=True)
class RunReport:
    """A run and its verdict.

    Attributes:
        title: What ran.
        result: The run.
        comparison: Against golden; None when nothing was computed.
        bundle: Where the run was saved; None when it was not.
        seed: Of the drawn inputs; None when they were given.
    """

    title: str
    result: Result
    comparison: Comparison | None
    bundle: Path | None
    seed: int | None

    @property
    def ok(self) -> bool:
        """Whether nothing differs from golden."""
        return self.comparison is None or bool(self.comparison)

    @property
    def _work_cycles(self) -> int:
        return max(1, self.result.cycles - self.result.simulation.launch_cycles)

    def peak_macs_per_cycle(self) -> int:
        """Return the cube's peak for the widest operands that the kernels multiply."""
        types = [
            ElementType(each["a_type"]).bits
            for kernel in self.result.executable.kernels
            for each in kernel.program
            if each.row.has("a_type")
        ]
        return self.result.target.peak_macs_per_cycle(max(types, default=8))

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        result, simulation = self.result, self.result.simulation
        verdicts = {o.name: o for o in self.comparison.outputs} if self.comparison else {}
        outputs = {
            name: {
                "shape": list(array.shape),
                "dtype": str(array.dtype),
                "equal": verdicts[name].equal if name in verdicts else None,
                "differing": verdicts[name].differing if name in verdicts else None,
            }
            for name, array in result.outputs.items()
        }
        first = self.comparison.first if self.comparison else None
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
            "macs_per_cycle": simulation.macs / self._work_cycles,
            "peak_macs_per_cycle": self.peak_macs_per_cycle(),
            "pipes": [dict(core) for core in result.pipes],
            "outputs": outputs,
            "first_difference": None if first is None else str(first),
            "warnings": [str(warning) for warning in simulation.warnings],
            "bundle": None if self.bundle is None else str(self.bundle),
        }

    def show(self, console: Console) -> None:
        """Print the report."""
        from rich.table import Table

        result, simulation = self.result, self.result.simulation
        console.print(f"[bold]{self.title}[/bold] on {result.target.name}, entry {result.entry}")
        console.print(self._verdict(), highlight=False)
        for warning in simulation.warnings:
            console.print(f"[yellow]warning[/yellow] {warning}", highlight=False)
        if result.cycles:
            self._show_cycles(console)
            table = Table(show_edge=False, pad_edge=False, header_style="bold")
            for column in ("pipe", "busy cycles", "share"):
                table.add_column(column, justify="left" if column == "pipe" else "right")
            for core, pipes in enumerate(result.pipes):
                for name, busy in pipes.items():
                    if busy:
                        shown = name if len(result.pipes) == 1 else f"core {core} {name}"
                        table.add_row(shown, f"{busy:,}", f"{busy / self._work_cycles:.1%}")
            console.print(table)
        if self.bundle is not None:
            console.print(
                f"bundle   {self.bundle} (timeline.json opens in Perfetto)", highlight=False
            )

    def _show_cycles(self, console: Console) -> None:
        result, simulation = self.result, self.result.simulation
        rate, peak = simulation.macs / self._work_cycles, self.peak_macs_per_cycle()
        lines = (
            f"cycles   {result.cycles:,} ({self._work_cycles:,} of work, "
            f"{simulation.launch_cycles:,} of launch)",
            f"time     {result.microseconds:.3f} us at {result.target.clock_hz / 1e9:.2f} GHz",
            f"MACs     {rate:,.0f} a cycle, {rate / peak:.1%} of the cube's peak of {peak:,}",
        )
        for line in lines:
            console.print(line, highlight=False)

    def _verdict(self) -> str:
        if self.comparison is None:
            return "golden   not compared: " + (
                "timing only"
                if not self.result.outputs
                else "an executable has no source to interpret"
            )
        if self.comparison:
            names = ", ".join(output.name for output in self.comparison.outputs)
            return (
                f"golden   [green]equal bit for bit[/green] ({names}: "
                f"{self.comparison.elements:,} elements)"
            )
        return f"golden   [red]DIFFERENT[/red]\n{self.comparison}"
