"""What a sweep looks like on a terminal, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .rows import DIFFERS, EQUAL, PARAM, SETTING, RowStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...ir.target_spec import Value
    from .rows import SweepRow
    from .runs import Sweep

_GAP = "  "
_WIDTH = 79
_NAME_WIDTH = 12
"""A longer name of a field heads its column in several lines."""
_MOST_NAMED = 3

FIGURES = (
    "status", "cycles", "launch_cycles", "work_cycles", "microseconds", "macs", "peak_share", "speedup",
    "bound", "bottleneck", "golden", "problem",
)  # fmt: skip
"""The columns of CSV after those of the grid, named like the attributes of a row."""


@dataclass(frozen=True)
class SweepReport:
    """A sweep, for a reader and for a program."""

    sweep: Sweep

    def as_json(self) -> dict[str, Any]:
        """Return the sweep as plain values."""
        sweep = self.sweep
        return {
            "ok": sweep.ok,
            "kernel": sweep.settings.title,
            "functional": sweep.settings.functional,
            "seed": sweep.settings.seed if self._draws else None,
            "warm": sweep.settings.warm,
            "interrupted": sweep.interrupted,
            "runs": len(sweep.rows),
            "rows": [row.as_json() for row in sweep.rows],
        }

    def csv(self) -> str:
        """Return the rows as CSV under a line of names; `param.` and `set.` stand before the grid's."""
        grid = self.sweep.grid
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        params = [f"{PARAM}{name}" for name in grid.params]
        fields = [f"{SETTING}{name}" for name in grid.settings]
        writer.writerow([*params, "machine", *fields, *FIGURES])
        for row in self.sweep.rows:
            figures = [_plain(getattr(row, name)) for name in FIGURES]
            sizes, settings = row.params.values(), map(_typed, row.settings.values())
            writer.writerow([*sizes, row.machine, *settings, *figures])
        return stream.getvalue()

    def lines(self) -> Iterator[str]:
        """Yield the sweep as text for a terminal."""
        yield from self._heading()
        yield ""
        waiting = [row for row in self.sweep.rows if row.status is RowStatus.NOT_RUN]
        table = [self._cells(row) for row in self.sweep.rows if row.status is not RowStatus.NOT_RUN]
        heads = [_broken(name) for name in self._names()]
        deep = max(map(len, heads))
        heads = [[""] * (deep - len(head)) + head for head in heads]
        widths = [
            max(map(len, (*head, *(row[column] for row in table if column < len(row) - 1))))
            for column, head in enumerate(heads)
        ]
        for line in range(deep):
            yield _line([head[line] for head in heads], widths)
        for row in table:
            yield _line(row, widths)
        if waiting:
            yield f"{len(waiting):,} runs were not run" if len(waiting) > 1 else "1 run was not run"
        yield from self._problems()

    @property
    def _draws(self) -> bool:
        return self.sweep.settings.functional and self.sweep.settings.inputs is None

    @property
    def _compares(self) -> bool:
        """Whether outputs are compared with golden, which an executable has none of."""
        ran = [row for row in self.sweep.rows if row.cycles is not None]
        return self.sweep.settings.functional and (not ran or ran[0].golden is not None)

    def _heading(self) -> Iterator[str]:
        sweep = self.sweep
        count = len(sweep.rows)
        runs = f"{count:,} runs" if count > 1 else "1 run"
        how = ", outputs computed" if sweep.settings.functional else ", for cycles only"
        how = ", compared with golden" if self._compares else how
        seed = f", inputs drawn with seed {sweep.settings.seed}" if self._draws else ""
        machines = {row.machine for row in sweep.rows if row.machine}
        where = f" on machine {machines.pop()}" if len(machines) == 1 else ""
        yield f"{sweep.settings.title}: {runs}{where}{how}{seed}"
        same = [f"--param {k}={v[0]}" for k, v in sweep.grid.params.items() if len(v) == 1]
        same += [f"--set {k}={_typed(v[0])}" for k, v in sweep.grid.settings.items() if len(v) == 1]
        same += ["--warm"] * sweep.settings.warm
        if same:
            yield f"with     {' '.join(same)}"

    def _names(self) -> list[str]:
        """Return what heads the columns: what changes, and what was found."""
        grid = self.sweep.grid
        names = [name for name, values in grid.params.items() if len(values) > 1]
        names += ["machine"] * (len(grid.machines) > 1)
        names += [name for name, values in grid.settings.items() if len(values) > 1]
        names += ["cycles", "us", "of peak", "speed-up"]
        names += ["golden"] * self._compares
        return [*names, "most of the critical path"]

    def _cells(self, row: SweepRow) -> list[str]:
        """Return a row as text; a shorter one ends with what became of it."""
        cells = self._varied(row)
        match row.status:
            case RowStatus.NOT_RUN | RowStatus.REFUSED:
                return [*cells, row.status.value]
            case RowStatus.OK | RowStatus.DIFFERS:
                pass
        cells += [
            f"{row.cycles:,}",
            f"{row.microseconds:,.3f}",
            "" if row.peak_share is None else f"{row.peak_share:.1%}",
            f"{row.speedup:.2f}x",
        ]
        if self._compares:
            cells.append({EQUAL: "equal", DIFFERS: "DIFFERENT"}.get(row.golden or "", ""))
        return [*cells, row.bound or ""]

    def _varied(self, row: SweepRow) -> list[str]:
        grid = self.sweep.grid
        cells = [str(row.params[name]) for name, values in grid.params.items() if len(values) > 1]
        cells += [row.machine] * (len(grid.machines) > 1)
        cells += [
            _typed(row.settings[name]) for name, values in grid.settings.items() if len(values) > 1
        ]
        return cells

    def _problems(self) -> Iterator[str]:
        """Yield why runs were refused, or what differs, and what is suspicious; each once."""
        problems: defaultdict[tuple[str, str], list[SweepRow]] = defaultdict(list)
        for row in self.sweep.rows:
            if row.problem is not None:
                problems[row.status.value, row.problem].append(row)
            for warning in row.warnings:
                problems["warning", warning].append(row)
        if problems:
            yield ""
        for (label, sentence), rows in problems.items():
            where = self._where(rows)
            text = f"{sentence} ({where})" if where else sentence
            yield from textwrap.wrap(
                text,
                _WIDTH,
                initial_indent=f"{label:<9}",
                subsequent_indent=" " * 9,
                break_long_words=False,
                break_on_hyphens=False,
            )

    def _where(self, rows: Sequence[SweepRow]) -> str:
        """Return which runs these are; nothing if they are all."""
        if len(rows) == len(self.sweep.rows):
            return ""
        names = [name for name in self._names() if name not in ("cycles",)]
        shown: list[str] = []
        for row in rows[:_MOST_NAMED]:
            cells = self._varied(row)
            shown.append(" ".join(f"{n}={c}" for n, c in zip(names, cells, strict=False)))
        if len(rows) > _MOST_NAMED:
            shown.append(f"{len(rows) - _MOST_NAMED:,} more")
        return "; ".join(shown)


def _plain(value: object) -> object:
    """Return a figure as CSV has it: nothing for None."""
    match value:
        case None:
            return ""
        case RowStatus():
            return value.value
        case _:
            return value


def _typed(value: Value) -> str:
    """Return the value of a field as it is typed on the command line."""
    match value:
        case float():
            return str(int(value)) if value.is_integer() else str(value)
        case int():
            return str(value)
        case _:
            return ",".join("*".join(pair) for pair in value)


def _broken(name: str) -> list[str]:
    """Return a long name of a field in several lines."""
    lines = [""]
    for number, part in enumerate(name.split("_")):
        word = part if number == 0 else f"_{part}"
        if lines[-1] and len(lines[-1]) + len(word) > _NAME_WIDTH:
            lines.append(word)
        else:
            lines[-1] += word
    return lines


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return cells in columns, to the right of theirs but for the last, which may be long."""
    *most, last = cells
    aligned = [f"{cell:>{width}}" for cell, width in zip(most, widths, strict=False)]
    return _GAP.join([*aligned, last]).rstrip()
