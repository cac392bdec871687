"""The critical path of a run: from the last thing done back to the launch, always to what came last.

A record starts when it has entered its queue and the record before it has left the pipe; it enters
when the scalar unit has issued it and its queue has room; a wait ends a while after its set. Of such
conditions the one that was fulfilled last made the time, and the path goes on there. So the segments
of the path follow each other without a gap, from the host's call to the end of the run: a cycle less
in one of them, with all else as it is, is a cycle less of the run, until another path is longer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from ...codegen.isa.vocabulary import Pipe
from .critical_walk import (
    AHEAD,
    BARRIER,
    BEFORE,
    BEGIN,
    BUSY,
    CAUSE,
    COMES_AFTER,
    DONE,
    END,
    ENTERED,
    FINISH,
    FLAG,
    FROM,
    GAP,
    ISSUE,
    LAST_DONE,
    LAST_ISSUED,
    LATENCY,
    LAUNCH,
    LINE_WORDS,
    MEMORY,
    NO_RECORD,
    OF_TASK,
    PARTNER,
    PIPE,
    PREVIOUS,
    RECORD,
    ROLE,
    SCALES,
    SEGMENT_WORDS,
    SHARED,
    START,
    STARVED,
    TASK,
    TASK_WORDS,
    TO,
    WORK_BEFORE,
    walk,
)
from .records import Cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ..report import TaskRun
    from .records import Records

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_CAUSES: Final = {
    BUSY: Cause.BUSY,
    FLAG: Cause.FLAG,
    BARRIER: Cause.BARRIER,
    MEMORY: Cause.MEMORY,
    SCALES: Cause.SCALES,
    LATENCY: Cause.LATENCY,
    ISSUE: Cause.ISSUE,
    TASK: Cause.TASK,
    LAUNCH: Cause.LAUNCH,
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of the critical path.

    Attributes:
        start: First cycle, counted from the host's call.
        end: The cycle after the last one.
        cause: What it went to.
        core: Number of the core; -1 where none is concerned.
        pipe: The pipe; `Pipe.S` for what the scalar unit does; None where none is concerned.
        mnemonic: The instruction, or an empty string.
        source: Its line of source, or an empty string.
    """

    start: int
    end: int
    cause: Cause
    core: int
    pipe: Pipe | None
    mnemonic: str
    source: str

    @property
    def cycles(self) -> int:
        """How long it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class PathShare:
    """What one line of source has of the critical path, on one pipe for one cause.

    Attributes:
        cause: What it went to.
        pipe: The pipe, or None where none is concerned.
        mnemonic: The instruction, or an empty string.
        source: Its line of source, or an empty string.
        cycles: How many cycles of the path.
        times: In how many segments.
    """

    cause: Cause
    pipe: Pipe | None
    mnemonic: str
    source: str
    cycles: int
    times: int


@dataclass(frozen=True, slots=True, eq=False)
class CriticalPath:
    """The critical path of a run.

    Attributes:
        records: The records of the run.
        table: Its segments from the first to the last, int64 [n, SEGMENT_WORDS]: from, to, cause as
            `critical_walk` numbers them, record or -1. Segments of no length are left out.
    """

    records: Records
    table: Table

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, from the launch to the end."""
        return tuple(self._segment(*line) for line in self.table.tolist())

    @property
    def stretches(self) -> tuple[Segment, ...]:
        """The segments, neighbours of the same cause, pipe and line of source put together."""
        found: list[Segment] = []
        for each in self.segments:
            last = found[-1] if found else None
            if last is not None and _are_alike(last, each):
                mnemonic = last.mnemonic if last.mnemonic == each.mnemonic else ""
                found[-1] = replace(last, end=each.end, mnemonic=mnemonic)
            else:
                found.append(each)
        return tuple(found)

    @property
    def shares(self) -> tuple[PathShare, ...]:
        """The segments put together by cause, pipe, instruction and line, the longest first."""
        table, records = self.table, self.records
        is_known = table[:, RECORD] != NO_RECORD
        record = np.where(is_known, table[:, RECORD], 0)
        kernels = np.array([id(part.kernel) for part in records.parts], np.int64)
        keys = np.zeros((len(table), 3), np.int64)
        keys[:, 0] = table[:, CAUSE]
        if len(records):
            keys[:, 1] = np.where(is_known, kernels[records.part[record]], 0)
            keys[:, 2] = np.where(is_known, records.item[record], NO_RECORD)
        _, firsts, groups = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        cycles = np.bincount(groups.reshape(-1), (table[:, TO] - table[:, FROM]).astype(np.float64))
        times = np.bincount(groups.reshape(-1))
        found: dict[tuple[Cause, Pipe | None, str, str], tuple[int, int]] = {}
        for first, length, count in zip(firsts.tolist(), cycles, times.tolist(), strict=True):
            each = self._segment(*table[first].tolist())
            key = each.cause, each.pipe, each.mnemonic, each.source
            before = found.get(key, (0, 0))
            found[key] = before[0] + int(length), before[1] + count
        shares = [PathShare(*key, *sums) for key, sums in found.items()]
        return tuple(sorted(shares, key=lambda share: -share.cycles))

    def _segment(self, start: int, end: int, cause: int, record: int) -> Segment:
        if record == NO_RECORD:
            return Segment(start, end, _CAUSES[cause], -1, None, "", "")
        records = self.records
        pipe = Pipe.S if cause == ISSUE else Pipe(int(records.pipe[record]))
        return Segment(
            start,
            end,
            _CAUSES[cause],
            int(records.core[record]),
            pipe,
            records.instruction(record).mnemonic,
            records.source(record),
        )


def _are_alike(one: Segment, other: Segment) -> bool:
    return (one.cause, one.core, one.pipe, one.source) == (
        other.cause,
        other.core,
        other.pipe,
        other.source,
    )


def critical_path(records: Records) -> CriticalPath:
    """Return the critical path of a run; it is empty for a run that was not timed.

    Args:
        records: What its pipes did (`records.records_of`).
    """
    runs = list({id(part.run): part.run for part in records.parts}.values())
    if not runs:
        return CriticalPath(records, np.zeros((0, SEGMENT_WORDS), np.int64))
    lines, tasks = _lines(records, runs), _tasks(records, runs)
    last = int(np.argmax(tasks[:, FINISH]))
    count = walk(lines, tasks, last, np.zeros((0, SEGMENT_WORDS), np.int64))
    table = np.zeros((count, SEGMENT_WORDS), np.int64)
    walk(lines, tasks, last, table)
    return CriticalPath(records, table[::-1])


def _lines(records: Records, runs: Sequence[TaskRun]) -> Table:
    """Return the records as the walk reads them."""
    lines = np.zeros((len(records), LINE_WORDS), np.int64)
    for column, values in (
        (PIPE, records.pipe),
        (ROLE, records.role),
        (GAP, records.gap),
        (ENTERED, records.entered),
        (START, records.start),
        (END, records.end),
        (DONE, records.done),
        (STARVED, records.starved),
        (SHARED, records.shared),
        (PARTNER, records.partner),
        (BEFORE, records.before),
        (WORK_BEFORE, records.work_before),
        (AHEAD, records.ahead),
    ):
        lines[:, column] = values
    lines[:, PREVIOUS] = np.arange(len(records)) - 1
    numbers = {id(run): number for number, run in enumerate(runs)}
    for part in records.parts:
        lines[part.first : part.last, OF_TASK] = numbers[id(part.run)]
        if part.last > part.first:
            lines[part.first, PREVIOUS] = NO_RECORD
    return lines


def _tasks(records: Records, runs: Sequence[TaskRun]) -> Table:
    """Return the tasks as the walk reads them."""
    tasks = np.full((len(runs), TASK_WORDS), NO_RECORD, np.int64)
    tasks[:, BEGIN] = [run.start for run in runs]
    tasks[:, FINISH] = [run.start + run.cycles for run in runs]
    numbers = {id(run): number for number, run in enumerate(runs)}
    latest = np.maximum(records.done, records.end)
    for part in records.parts:
        if part.last == part.first:
            continue
        line = tasks[numbers[id(part.run)]]
        done = part.first + int(np.argmax(latest[part.first : part.last]))
        if line[LAST_DONE] == NO_RECORD or latest[done] > latest[line[LAST_DONE]]:
            line[LAST_DONE] = done
        issued = part.last - 1
        finish = records.entered[issued] + part.core.stream.tail
        if finish == line[FINISH]:
            line[LAST_ISSUED] = issued
    ends = np.argsort(tasks[:, FINISH], kind="stable")
    sorted_ends = tasks[ends, FINISH]
    for number in range(len(tasks)):
        line = tasks[number]
        begin = int(line[BEGIN])
        count = int(np.searchsorted(sorted_ends, begin, side="right"))
        line[COMES_AFTER] = _before(runs, ends[:count], number, tasks)
    return tasks


def _before(runs: Sequence[TaskRun], ended: Line, number: int, tasks: Table) -> int:
    """Return the task at whose end a task began: the last one to end, of several that on its cluster.

    Args:
        runs: The tasks.
        ended: Those that had ended when the task began, by their ends.
        number: The task.
        tasks: What is known of them.
    """
    others = ended[ended != number]
    if not len(others):
        return NO_RECORD
    last: list[int] = others[tasks[others, FINISH] == tasks[others[-1], FINISH]].tolist()
    own = [each for each in last if runs[each].cluster == runs[number].cluster]
    return int((own or last)[-1])
