"""The walk back through a run, from each thing to the last one that it had to wait for; jitted.

The walk goes over moments: when a record was done, left its pipe, came to the front of it, entered
its queue, or had been issued; when a task began or ended. `critical` says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...codegen.isa.vocabulary import Pipe
from ...ir.jit import compiled, inner
from ..decode import Role

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Table = npt.NDArray[np.int64]

BUSY, FLAG, BARRIER, MEMORY, SCALES, LATENCY, ISSUE, TASK, LAUNCH = 0, 1, 2, 3, 4, 5, 6, 7, 8
"""Causes of a segment."""

FROM, TO, CAUSE, RECORD, SEGMENT_WORDS = 0, 1, 2, 3, 4
"""Columns of a segment: from which cycle to which, why, and the record that it is about."""

(
    PIPE, ROLE, GAP, ENTERED, START, END, DONE, STARVED, SHARED, PARTNER, BEFORE, WORK_BEFORE, AHEAD,
    PREVIOUS, OF_TASK, LINE_WORDS,
) = range(16)  # fmt: skip
"""Columns of a record: as `records.Records` has them; the record before it on its core (-1 for none)
and the number of its task."""

BEGIN, FINISH, COMES_AFTER, LAST_DONE, LAST_ISSUED, TASK_WORDS = 0, 1, 2, 3, 4, 5
"""Columns of a task: its first cycle and the one after its last; the task that had to end before it,
its record that was done last, and the last record of the core whose scalar unit went on longest (-1
for none each)."""

NO_RECORD: Final = -1
_NONE: Final = -1
_IS_DONE, _LEAVES, _STARTS, _ENTERS, _IS_ISSUED, _BEGINS, _FINISHES = 0, 1, 2, 3, 4, 5, 6
_S: Final = int(Pipe.S)
_EXECUTE, _WAIT, _BARRIER_ALL = int(Role.EXECUTE), int(Role.WAIT), int(Role.BARRIER_ALL)


@compiled
def walk(lines: Table, tasks: Table, last: int, out: Table) -> int:
    """Write the segments of the path, the last one first, and return how many there are.

    Args:
        lines: What is known of each record, int64 [n, LINE_WORDS].
        tasks: What is known of each task, int64 [tasks, TASK_WORDS].
        last: The task that ended last.
        out: Where they go, int64 [any, SEGMENT_WORDS]; what does not fit is counted only.
    """
    used, moment, at = 0, _FINISHES, last
    while at != _NONE:
        if moment == _IS_DONE:
            used, moment, at = _be_done(lines, at, used, out)
        elif moment == _LEAVES:
            used, moment, at = _leave(lines, at, used, out)
        elif moment == _STARTS:
            before, start = int(lines[at, BEFORE]), int(lines[at, START])
            if lines[at, PIPE] == _S:
                used, moment, at = _issue(lines, tasks, at, start, used, out)
            elif before != _NONE and lines[before, END] >= lines[at, ENTERED]:
                used = _segment(int(lines[before, END]), start, MEMORY, at, used, out)
                moment, at = _LEAVES, before
            else:
                used = _segment(int(lines[at, ENTERED]), start, MEMORY, at, used, out)
                moment = _ENTERS
        elif moment == _ENTERS:
            entered, ahead = int(lines[at, ENTERED]), int(lines[at, AHEAD])
            if ahead != _NONE and entered > _issued_before(lines, tasks, at) + lines[at, GAP]:
                moment, at = (_LEAVES if lines[ahead, ROLE] == _WAIT else _STARTS), ahead
            else:
                used, moment, at = _issue(lines, tasks, at, entered, used, out)
        elif moment == _IS_ISSUED:
            moment = _LEAVES if lines[at, PIPE] == _S else _ENTERS
        elif moment == _FINISHES:
            finish = int(tasks[at, FINISH])
            done, issued = int(tasks[at, LAST_DONE]), int(tasks[at, LAST_ISSUED])
            if done != _NONE and max(lines[done, DONE], lines[done, END]) == finish:
                moment, at = (_IS_DONE if lines[done, DONE] == finish else _LEAVES), done
            elif issued != _NONE:
                begun = int(lines[issued, END if lines[issued, PIPE] == _S else ENTERED])
                used = _segment(begun, finish, ISSUE, issued, used, out)
                moment, at = _IS_ISSUED, issued
            else:
                used = _segment(int(tasks[at, BEGIN]), finish, ISSUE, NO_RECORD, used, out)
                moment = _BEGINS
        else:
            begin, earlier = int(tasks[at, BEGIN]), int(tasks[at, COMES_AFTER])
            if earlier == _NONE:
                used = _segment(0, begin, LAUNCH, NO_RECORD, used, out)
            else:
                used = _segment(int(tasks[earlier, FINISH]), begin, TASK, NO_RECORD, used, out)
            moment, at = _FINISHES, earlier
    return used


@inner
def _be_done(lines: Table, at: int, used: int, out: Table) -> tuple[int, int, int]:
    """Go back from where a record was done, maybe a while after it left its pipe."""
    end, done, earlier = int(lines[at, END]), int(lines[at, DONE]), int(lines[at, WORK_BEFORE])
    if done > end and earlier != _NONE:
        before = int(lines[earlier, DONE])
        if lines[at, ROLE] != _EXECUTE:  # a set is done with all that its pipe began before it
            return _segment(before, done, LATENCY, at, used, out), _IS_DONE, earlier
        if before + lines[at, END] - lines[at, START] == done:  # its bytes come behind theirs
            return _work(lines, at, before, done, used, out), _IS_DONE, earlier
    return _segment(end, done, LATENCY, at, used, out), _LEAVES, at


@inner
def _leave(lines: Table, at: int, used: int, out: Table) -> tuple[int, int, int]:
    """Go back from where a record left its pipe."""
    start, end, role = int(lines[at, START]), int(lines[at, END]), lines[at, ROLE]
    if end == start:
        return used, _STARTS, at
    if role == _EXECUTE:
        return _work(lines, at, start, end, used, out), _STARTS, at
    if role == _WAIT:
        partner = int(lines[at, PARTNER])
        return _segment(int(lines[partner, DONE]), end, FLAG, at, used, out), _IS_DONE, partner
    earlier = int(lines[at, WORK_BEFORE])
    if role == _BARRIER_ALL:
        earlier = int(lines[at, PREVIOUS])
        while earlier != _NONE and max(lines[earlier, DONE], lines[earlier, END]) != end:
            earlier = int(lines[earlier, PREVIOUS])
    if earlier == _NONE:
        return _segment(start, end, BARRIER, at, used, out), _STARTS, at
    latest = max(int(lines[earlier, DONE]), int(lines[earlier, END]))
    moment = _IS_DONE if lines[earlier, DONE] == latest else _LEAVES
    return _segment(latest, end, BARRIER, at, used, out), moment, earlier


@inner
def _issue(
    lines: Table, tasks: Table, at: int, issued: int, used: int, out: Table
) -> tuple[int, int, int]:
    """Go back from where the scalar unit issued a record, over the cycles that this took it."""
    used = _segment(_issued_before(lines, tasks, at), issued, ISSUE, at, used, out)
    previous = int(lines[at, PREVIOUS])
    if previous == _NONE:
        return used, _BEGINS, int(lines[at, OF_TASK])
    return used, _IS_ISSUED, previous


@inner
def _issued_before(lines: Table, tasks: Table, at: int) -> int:
    """Return when the scalar unit had issued what comes before a record."""
    previous = int(lines[at, PREVIOUS])
    if previous == _NONE:
        return int(tasks[lines[at, OF_TASK], BEGIN])
    return int(lines[previous, END if lines[previous, PIPE] == _S else ENTERED])


@inner
def _work(lines: Table, at: int, start: int, end: int, used: int, out: Table) -> int:
    """Write what a record did from `start` to `end`: its work, then what it had to wait for."""
    fed = end - int(lines[at, SHARED])
    busy = fed - int(lines[at, STARVED])
    used = _segment(fed, end, MEMORY, at, used, out)
    used = _segment(busy, fed, SCALES, at, used, out)
    return _segment(start, busy, BUSY, at, used, out)


@inner
def _segment(start: int, end: int, cause: int, record: int, used: int, out: Table) -> int:
    """Write a segment, unless it has no length; return how many there are."""
    if end == start:
        return used
    if used < out.shape[0]:
        out[used, FROM], out[used, TO] = start, end
        out[used, CAUSE], out[used, RECORD] = cause, record
    return used + 1
