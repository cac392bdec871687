"""What the pipes of a run did, from one cycle to another, as rows of one table."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.vocabulary import Pipe
from ..decode import Role
from .records import NONE, Cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from .records import Records

    Line = npt.NDArray[np.int64]

CAUSES: Final = (
    Cause.BUSY,
    Cause.FLAG,
    Cause.BARRIER,
    Cause.QUEUE,
    Cause.MEMORY,
    Cause.SCALES,
)
"""What a slice can be: work, or what is waited for."""


class Kind(IntEnum):
    """What a slice shows."""

    WORK = 0
    """What an instruction does."""
    STALL = 1
    """What an instruction waits for: memory or scales while it works, a flag before it is taken."""
    SYNC = 2
    """A barrier, or the moment in which a flag is set or taken."""
    FULL = 3
    """The scalar unit before a full queue."""
    ISSUE = 4
    """The scalar unit's own work."""


_SLICE = np.dtype(
    [
        ("core", np.int32),
        ("part", np.int32),
        ("pipe", np.int8),
        ("cause", np.int8),
        ("kind", np.int8),
        ("start", np.int64),
        ("end", np.int64),
        ("record", np.int64),
        ("count", np.int64),
    ]
)


def slice_table(records: Records) -> npt.NDArray[Any]:
    """Return the slices by their starts, a record array.

    Those of no length come first, those of one pipe in the order of the program, and a set before the
    wait that takes it, even in the same cycle. `cause` is an index into `CAUSES`, `kind` a `Kind`,
    `record` the number of the record, `count` how many instructions the scalar unit issued.
    """
    pieces = [*_of_pipes(records), *_of_scalar_units(records)]
    table = np.concatenate(pieces) if pieces else np.zeros(0, _SLICE)
    length = table["end"] - table["start"]
    keys = table["record"], _ranks(table, records), -length, length > 0, table["start"]
    return table[np.lexsort(keys)]


def _rows(
    records: Records,
    chosen: Line,
    *,
    pipe: Line | Pipe,
    cause: Cause,
    kind: Kind,
    start: Line,
    end: Line,
) -> npt.NDArray[Any]:
    """Return a slice for each of some records."""
    rows = np.zeros(len(chosen), _SLICE)
    rows["core"], rows["part"], rows["pipe"] = records.core[chosen], records.part[chosen], pipe
    rows["cause"], rows["kind"] = CAUSES.index(cause), kind
    rows["start"], rows["end"], rows["record"] = start, end, chosen
    return rows


def _of_pipes(records: Records) -> Iterator[npt.NDArray[Any]]:
    """Yield the slices of the pipes that have a queue, and what the scalar unit waits for."""

    def some(chosen: Line, cause: Cause, kind: Kind, start: Line, end: Line) -> npt.NDArray[Any]:
        pipe = records.pipe[chosen]
        return _rows(records, chosen, pipe=pipe, cause=cause, kind=kind, start=start, end=end)

    role, start, end = records.role, records.start, records.end
    fed = end - records.shared
    busy = fed - records.starved
    work = np.flatnonzero(role == Role.EXECUTE)
    yield some(work, Cause.BUSY, Kind.WORK, start[work], busy[work])
    starved = work[records.starved[work] > 0]
    yield some(starved, Cause.SCALES, Kind.STALL, busy[starved], fed[starved])
    shared = work[records.shared[work] > 0]
    yield some(shared, Cause.MEMORY, Kind.STALL, fed[shared], end[shared])
    flags = np.flatnonzero((role == Role.SET) | (role == Role.WAIT))
    stalled = flags[end[flags] > start[flags]]
    yield some(stalled, Cause.FLAG, Kind.STALL, start[stalled], end[stalled])
    yield some(flags, Cause.FLAG, Kind.SYNC, end[flags], end[flags])
    barriers = np.flatnonzero((role == Role.BARRIER) | (role == Role.BARRIER_ALL))
    yield some(barriers, Cause.BARRIER, Kind.SYNC, start[barriers], end[barriers])


def _of_scalar_units(records: Records) -> Iterator[npt.NDArray[Any]]:
    """Yield the slices of scalar units at work, and before full queues."""
    for number, part in enumerate(records.parts):
        chosen = np.arange(part.first, part.last)
        issued = records.entered[chosen]
        before = np.concatenate([[part.run.start], issued])
        began = before + np.append(records.gap[chosen], part.core.stream.tail)
        is_own = records.pipe[chosen] == Pipe.S
        waits = issued > began[:-1]
        stands = np.flatnonzero(waits & ~is_own)
        yield _rows(
            records,
            chosen[stands],
            pipe=Pipe.S,
            cause=Cause.QUEUE,
            kind=Kind.FULL,
            start=began[stands],
            end=issued[stands],
        )
        # Its work is one slice from one thing that is shown, or that takes time, to the next.
        breaks = np.flatnonzero(is_own | waits)
        firsts, lasts = np.append(0, breaks + 1), np.append(breaks, len(chosen))
        rows = np.zeros(len(firsts), _SLICE)
        rows["core"], rows["part"], rows["pipe"] = part.core.number, number, Pipe.S
        rows["cause"], rows["kind"] = CAUSES.index(Cause.BUSY), Kind.ISSUE
        rows["start"], rows["end"] = before[firsts], began[lasts]
        rows["record"] = NONE
        rows["count"] = np.minimum(lasts + 1, len(chosen)) - firsts
        yield rows[rows["end"] > rows["start"]]


def _ranks(table: npt.NDArray[Any], records: Records) -> Line:
    """Return numbers by which what takes no time is sorted where it happens in one cycle.

    They are all 0 unless flags take no time on the machine: then a wait can take a set in the cycle in
    which it is put, and comes after it, as does what follows the wait on its pipe.
    """
    ranks = np.zeros(len(table), np.int64)
    moments = np.flatnonzero(table["end"] == table["start"])
    columns = [table[name][moments] for name in ("record", "start", "pipe", "core")]
    moments = moments[np.lexsort(columns)]
    rows = table[moments]
    place = np.full(len(records), NONE, np.int64)
    place[rows["record"]] = np.arange(len(rows))
    waits = np.flatnonzero(records.role[rows["record"]] == Role.WAIT)
    sets = records.partner[rows["record"][waits]]
    waits, sets = waits[sets != NONE], place[sets[sets != NONE]]
    at_once = rows["start"][sets] == rows["start"][waits]
    waits, sets = waits[at_once], sets[at_once]
    if not len(waits):
        return ranks
    same = [np.diff(rows[name], prepend=NONE) == 0 for name in ("start", "pipe", "core")]
    # What shares pipe and cycle is a group; far apart, no group reaches into the next.
    groups = np.cumsum(~np.logical_and.reduce(same)) * (len(rows) + 1)
    found, before = np.zeros(len(rows), np.int64), None
    while before is None or (found != before).any():
        before = found.copy()
        found[waits] = np.maximum(found[waits], before[sets] + 1)
        found = np.maximum.accumulate(found + groups) - groups
    ranks[moments] = found
    return ranks
