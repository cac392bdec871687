"""How every benchmark reports: a row a measurement, as a table for people or as JSON.

The JSON is `{"machine": …, "rows": [{"name", "unit", "target", "figure", "ratio", "met", "disturbed", …}]}`.
A `ratio` of 1 or more means that the target is met, whichever direction is better; target, ratio and
`met` are null for a row that only informs. What was `disturbed` by other work should not be trusted.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

_NOTHING: Mapping[str, float | str] = {}

MOST_SPREAD = 0.15
"""A row whose middle try took so much longer than its best was disturbed by something else."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement beside what it must reach.

    Attributes:
        name: What was measured.
        unit: Unit of `target` and `figure`.
        target: What must be reached; None for what only informs.
        figure: What was measured.
        less_is_better: Whether `figure` must stay below `target` instead of reaching it.
        beside: Further figures that help to read this one.
    """

    name: str
    unit: str
    target: float | None = None
    figure: float
    less_is_better: bool = False
    beside: Mapping[str, float | str] = field(default_factory=lambda: _NOTHING)

    @property
    def ratio(self) -> float | None:
        """How well the target is met; 1 is just met. None without a target."""
        if self.target is None:
            return None
        return self.target / self.figure if self.less_is_better else self.figure / self.target

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        return None if self.ratio is None else self.ratio >= 1

    @property
    def disturbed(self) -> bool:
        """Whether something else kept the machine busy, so that the row is worth little."""
        spread = self.beside.get("spread", 0)
        return not isinstance(spread, str) and spread > MOST_SPREAD

    def as_json(self) -> dict[str, object]:
        """Return the row as plain values."""
        own: dict[str, object] = {
            "name": self.name,
            "unit": self.unit,
            "target": self.target,
            "figure": self.figure,
            "ratio": self.ratio,
            "met": self.met,
            "disturbed": self.disturbed,
        }
        return own | dict(self.beside)

    def as_text(self) -> str:
        """Return the row as a line of a table."""
        beside = "".join(f"  {name} {_short(value)}" for name, value in self.beside.items())
        beside += "  DISTURBED" * self.disturbed
        line = f"{self.name:<28} {self.figure:>10.3g} {self.unit:<7}"
        if self.ratio is None:
            return f"{line}{beside}".rstrip()
        sign = "<=" if self.less_is_better else ">="
        verdict = "met" if self.met else "MISSED"
        return f"{line} {sign} {self.target:<6g} ratio {self.ratio:<6.3g} {verdict}{beside}"


@dataclass(frozen=True)
class Times:
    """Times of some work in seconds, from a number of tries.

    Attributes:
        best: The shortest by the clock.
        middle: The middle one by the clock.
        cpu: The shortest by the processor's time.
    """

    best: float
    middle: float
    cpu: float

    @classmethod
    def of(cls, work: Callable[[], object], *, tries: int) -> "Times":
        """Measure `work`; the first run, which may have to compile, does not count."""
        return interleaved(work, tries=tries)[0]

    @classmethod
    def from_tries(cls, walls: Sequence[float], cpus: Sequence[float]) -> "Times":
        """Return what tries come to that took so long by the clock and by the processor's time."""
        return cls(min(walls), sorted(walls)[len(walls) // 2], min(cpus))

    @property
    def spread(self) -> float:
        """How much longer the middle try took than the best, as a share of the best."""
        return self.middle / self.best - 1

    def less(self, other: "Times") -> "Times":
        """Return what remains without what other work takes."""
        return Times(self.best - other.best, self.middle - other.best, self.cpu - other.cpu)

    def rate(self, name: str, count: int, *, unit: str, target: float, **beside: float) -> Row:
        """Return the row of `count` things done, in millions a second.

        Beside it stand `spread`, how much longer the middle run took than the best, and `by_cpu`,
        the same rate by the processor's time, which other processes on the machine disturb less.
        """
        own = {"spread": self.spread, "by_cpu": count / self.cpu / 1e6}
        return Row(
            name=name,
            unit=unit,
            target=target,
            figure=count / self.best / 1e6,
            beside=own | beside,
        )

    def against(
        self, rival: "Times", name: str, *, unit: str, target: float, **beside: float | str
    ) -> Row:
        """Return the row of how many times as fast this is as a rival that took turns with it.

        Beside it stands `spread`, the larger one of the two.
        """
        return Row(
            name=name,
            unit=unit,
            target=target,
            figure=rival.best / self.best,
            beside={"spread": max(self.spread, rival.spread)} | beside,
        )

    def within(self, name: str, *, seconds: float, **beside: float | str) -> Row:
        """Return the row of work that may take so many seconds."""
        return Row(
            name=name,
            unit="s",
            target=seconds,
            figure=self.best,
            less_is_better=True,
            beside={"spread": self.spread} | beside,
        )

    def alone(self, name: str, **beside: float | str) -> Row:
        """Return the row of seconds that nothing is demanded of."""
        own = {"spread": self.spread} | beside
        return Row(name=name, unit="s", figure=self.best, less_is_better=True, beside=own)


def interleaved(
    *works: Callable[[], object], tries: int, rest: float = 0, warm: bool = False
) -> list[Times]:
    """Measure works that take turns, so that they share what disturbs them.

    The first run of each, which may have to compile, does not count.

    Args:
        works: What is measured.
        tries: How often.
        warm: Whether nothing is left to be compiled or read for the first time, so that it does.
        rest: Seconds of pause before each try. Threads of OpenBLAS look out for more work for a while
            after a product, and take a core for it.
    """
    for work in works if not warm else ():
        work()
    walls: list[list[float]] = [[] for _ in works]
    cpus: list[list[float]] = [[] for _ in works]
    for _ in range(tries):
        for index, work in enumerate(works):
            time.sleep(rest)
            start, begun = time.perf_counter(), time.process_time()
            work()
            walls[index].append(time.perf_counter() - start)
            cpus[index].append(time.process_time() - begun)
    return [Times.from_tries(*each) for each in zip(walls, cpus, strict=True)]


def machine() -> str:
    """Return the host's processor, cores and the versions that a figure hangs on."""
    parts = [
        _processor(),
        f"{os.cpu_count()} cores",
        f"Python {platform.python_version()}",
        *(f"{name} {version(name)}" for name in ("numpy", "numba")),
    ]
    return ", ".join(parts)


def json_parser(description: str) -> argparse.ArgumentParser:
    """Return the command line that every benchmark has, for one that has more beside it."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def wants_json(description: str) -> bool:
    """Read the command line that every benchmark has; return whether `--json` was given."""
    return json_parser(description).parse_args().json


def report(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print `rows` with the machine that they were measured on."""
    if as_json:
        print(json.dumps({"machine": machine(), "rows": [row.as_json() for row in rows]}, indent=2))
        return
    print(machine())
    for row in rows:
        print(row.as_text())


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
