"""Which flags the pipes of a run waited for, how long, and who set them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.isa.vocabulary import Pipe
from ...sim.account.critical_walk import CAUSE as PATH_CAUSE
from ...sim.account.critical_walk import FLAG, FROM, TO
from ...sim.account.critical_walk import RECORD as PATH_RECORD
from ...sim.account.records import NONE
from ...sim.decode import Role, flag_text
from .analysis import MOST_SEGMENTS, short_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from ...codegen.isa.vocabulary import ClusterCore
    from ...sim.account.critical import CriticalPath
    from ...sim.account.records import Records

MOST_PAIRS = 3
"""How many pairs of lines a report shows of one flag."""


@dataclass(frozen=True, slots=True)
class FlagWait:
    """What a pipe waited for a flag at one line, in all clusters and tasks together.

    Attributes:
        core: Which core of its cluster.
        pipe: The pipe that waited.
        flag: Who sets it, who waits, and which one: "MTE2->MTE1 0".
        source: The line that waits, or an empty string.
        set_by: The line that set it most often, or an empty string.
        path_cycles: Of the critical path, those in which the flag was on its way. What the path never
            crosses costs the run nothing, however long it is waited for.
        cycles: How long, all times together.
        times: How often.
    """

    core: ClusterCore
    pipe: Pipe
    flag: str
    source: str
    set_by: str
    path_cycles: int
    cycles: int
    times: int

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "core": self.core.name,
            "pipe": self.pipe.name,
            "flag": self.flag,
            "source": self.source,
            "set_by": self.set_by,
            "path_cycles": self.path_cycles,
            "cycles": self.cycles,
            "times": self.times,
        }


@dataclass(frozen=True, slots=True)
class Flag:
    """What a pipe waited for one flag, wherever in the kernel.

    Attributes:
        waits: The same line by line, not empty, what cost most first.
    """

    waits: tuple[FlagWait, ...]

    @property
    def path_cycles(self) -> int:
        """Of the critical path, those in which the flag was on its way."""
        return sum(wait.path_cycles for wait in self.waits)

    @property
    def cycles(self) -> int:
        """How long, all times together."""
        return sum(wait.cycles for wait in self.waits)

    @property
    def times(self) -> int:
        """How often."""
        return sum(wait.times for wait in self.waits)

    def as_json(self) -> dict[str, Any]:
        """Return the sums as plain values."""
        first = self.waits[0]
        return {
            "core": first.core.name,
            "pipe": first.pipe.name,
            "flag": first.flag,
            "path_cycles": self.path_cycles,
            "cycles": self.cycles,
            "times": self.times,
            "pairs_of_lines": len(self.waits),
        }

    def lines(self) -> Iterator[str]:
        """Yield the sum and below it, where there are several, the pairs of lines that cost most."""
        first = self.waits[0]
        name = f"{first.core.name:<5} {first.pipe.name:<5}{first.flag}"
        if len(self.waits) == 1:
            yield _row(name, self, _places(first))
            return
        yield _row(name, self, f"{len(self.waits)} pairs of lines:")
        for wait in self.waits[:MOST_PAIRS]:
            yield _row("", wait, f"  {_places(wait)}")
        rest = self.waits[MOST_PAIRS:]
        if rest:
            yield _row("", Flag(rest), f"  {len(rest)} more")


def flags_of(waits: Iterable[FlagWait]) -> tuple[Flag, ...]:
    """Return the waits flag by flag: those with most of the critical path first, then the longest.

    Args:
        waits: In the order of :func:`flag_waits`.
    """
    found: defaultdict[tuple[object, ...], list[FlagWait]] = defaultdict(list)
    for wait in waits:
        found[wait.core, wait.pipe, wait.flag].append(wait)
    flags = [Flag(tuple(each)) for each in found.values()]
    return tuple(sorted(flags, key=lambda flag: (-flag.path_cycles, -flag.cycles)))


def flag_lines(flags: Sequence[Flag], most: int = MOST_SEGMENTS) -> Iterator[str]:
    """Yield the flags that cost most as a table; nothing if there are none."""
    if not flags:
        return
    yield "waits for flags, all cores   on path    cycles   times  at line, set at line"
    for flag in flags[:most]:
        yield from flag.lines()
    rest = [wait for flag in flags[most:] for wait in flag.waits]
    if rest:
        yield _row(f"{'':<11}{len(flags) - most} more", Flag(tuple(rest)), "")


def _row(name: str, sums: Flag | FlagWait, places: str) -> str:
    numbers = f"{sums.path_cycles:>9,} {sums.cycles:>9,} {sums.times:>7,}"
    return f"{name:<27}{numbers}  {places}".rstrip()


def _places(wait: FlagWait) -> str:
    """Return the line that waits and the one that sets, whose file is told if it is another one."""
    at, set_at = short_source(wait.source), short_source(wait.set_by)
    if set_at.rpartition(":")[0] == at.rpartition(":")[0]:
        set_at = set_at.rpartition(":")[-1]
    return f"{at}, {set_at}"


def flag_waits(records: Records, path: CriticalPath) -> tuple[FlagWait, ...]:
    """Return the waits that took any time: those with most of the critical path first, then the longest.

    Args:
        records: What the pipes did.
        path: The critical path of the same run.
    """
    chosen = np.flatnonzero((records.role == Role.WAIT) & (records.partner != NONE))
    if not len(chosen):
        return ()
    kernels = np.array([id(part.kernel) for part in records.parts], np.int64)
    keys = np.stack([kernels[records.part[chosen]], records.item[chosen]], axis=1)
    _, groups = np.unique(keys, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    length = records.end[chosen] - records.start[chosen]
    on_path = _on_path(path, len(records))[chosen]
    found: dict[tuple[object, ...], FlagWait] = {}
    for group in range(int(groups.max()) + 1):
        own = np.flatnonzero(groups == group)
        if not length[own].any():
            continue
        record = int(chosen[own[0]])
        part = records.parts[int(records.part[record])]
        slot = int(part.core.decoded.flags[int(records.item[record])])
        partners = records.partner[chosen[own]]
        _, first, counts = np.unique(records.item[partners], return_index=True, return_counts=True)
        setter = int(partners[first[int(np.argmax(counts))]])
        wait = FlagWait(
            part.core.core,
            Pipe(int(records.pipe[record])),
            flag_text(slot, part.core.core),
            records.source(record),
            records.source(setter),
            int(on_path[own].sum()),
            int(length[own].sum()),
            len(own),
        )
        # Several instructions may stand for one line: copies of a loop's body, for one.
        key = wait.core, wait.pipe, wait.flag, wait.source, wait.set_by
        same = found.get(key)
        if same is not None:
            wait = replace(
                wait,
                path_cycles=wait.path_cycles + same.path_cycles,
                cycles=wait.cycles + same.cycles,
                times=wait.times + same.times,
            )
        found[key] = wait
    return tuple(sorted(found.values(), key=lambda wait: (-wait.path_cycles, -wait.cycles)))


def _on_path(path: CriticalPath, count: int) -> npt.NDArray[np.int64]:
    """Return the cycles of the path in which the flag of each record is on its way, int64 [count]."""
    crossed = path.table[path.table[:, PATH_CAUSE] == FLAG]
    found = np.zeros(count, np.int64)
    np.add.at(found, crossed[:, PATH_RECORD], crossed[:, TO] - crossed[:, FROM])
    return found
