"""What a sweep found out about each run of its grid."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...ir.target_spec import Value
    from .grid import Point


PARAM, SETTING = "param.", "set."
"""What stands before the names of sizes and of fields in JSON and CSV."""

EQUAL, DIFFERS = "equal", "differs"
"""How outputs compare with golden."""


class RowStatus(Enum):
    """What became of a run."""

    OK = "ok"
    DIFFERS = "differs"
    REFUSED = "refused"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class SweepRow:
    """One run of a sweep.

    Attributes:
        index: Its place in the grid, from 0 on.
        params: Sizes of the kernel file, by name, as the sweep set them.
        machine: The name of the machine; empty where it is that of a kernel that is refused in all
            sizes.
        settings: Fields of the machine, by name, as the sweep set them.
        status: What became of it.
        cycles: All cycles, the launch included; None where there are none, as for what follows.
        launch_cycles: How many of them are the launch.
        microseconds: The cycles at the machine's clock.
        macs: Multiplications, all cores together.
        peak_share: Multiplications a work cycle, as a part of what the cubes that took part could do; None
            also where nothing is multiplied.
        speedup: How many times as fast it is as the first run of the sweep that came to an end and
            multiplies as much.
        bound: The largest part of the critical path, in a few words.
        bottleneck: What bounds the run, in a sentence.
        golden: `"equal"` or `"differs"`, as outputs are compared with golden; None where they are not.
        problem: Why it was refused, or the first difference from golden.
        warnings: What is suspicious, though it is no error.
    """

    index: int
    params: Mapping[str, int]
    machine: str
    settings: Mapping[str, Value]
    status: RowStatus
    cycles: int | None = None
    launch_cycles: int | None = None
    microseconds: float | None = None
    macs: int | None = None
    peak_share: float | None = None
    speedup: float | None = None
    bound: str | None = None
    bottleneck: str | None = None
    golden: str | None = None
    problem: str | None = None
    warnings: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Whether it ran, and nothing differs."""
        return self.status is RowStatus.OK

    @property
    def work_cycles(self) -> int | None:
        """The cycles after the launch."""
        if self.cycles is None or self.launch_cycles is None:
            return None
        return self.cycles - self.launch_cycles

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain values; `param.` and `set.` stand before the names of the grid."""
        return {
            "index": self.index,
            **{f"{PARAM}{name}": value for name, value in self.params.items()},
            "machine": self.machine,
            **{f"{SETTING}{name}": value for name, value in self.settings.items()},
            "ok": self.ok,
            "status": self.status.value,
            "cycles": self.cycles,
            "launch_cycles": self.launch_cycles,
            "work_cycles": self.work_cycles,
            "microseconds": self.microseconds,
            "macs": self.macs,
            "peak_share": self.peak_share,
            "speedup": self.speedup,
            "bound": self.bound,
            "bottleneck": self.bottleneck,
            "golden": self.golden,
            "problem": self.problem,
            "warnings": list(self.warnings),
        }


def unfinished(
    point: Point, status: RowStatus = RowStatus.NOT_RUN, problem: str | None = None
) -> SweepRow:
    """Return the row of a run that has no cycles."""
    return SweepRow(
        index=point.index,
        params=point.params,
        machine=point.machine_name or "",
        settings=point.settings,
        status=status,
        problem=problem,
    )


def with_machines(rows: Sequence[SweepRow]) -> list[SweepRow]:
    """Return rows with the kernel's own machine where a kernel was refused before it told which it is."""
    names = {row.machine for row in rows if row.machine}
    if len(names) != 1:
        return list(rows)
    (name,) = names
    return [row if row.machine else replace(row, machine=name) for row in rows]


def with_speedups(rows: Sequence[SweepRow]) -> list[SweepRow]:
    """Return rows with how much faster each is than the first one that multiplies as much."""
    first: dict[int | None, float] = {}
    found: list[SweepRow] = []
    for row in rows:
        if not row.microseconds:
            found.append(row)
            continue
        base = first.setdefault(row.macs, row.microseconds)
        found.append(replace(row, speedup=base / row.microseconds))
    return found
