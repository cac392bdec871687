"""All that the pipes of a run did, in one flat table; the timeline and the critical path read it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.vocabulary import Pipe
from ..decode import PIPES, Role
from ..pipes import tables

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...codegen.executable import Kernel
    from ...codegen.isa.program import Instruction
    from ...ir.target import Target
    from ..report import CoreRun, SimResult, TaskRun

    Line = npt.NDArray[np.int64]

NONE = -1


class Cause(Enum):
    """What a cycle of a pipe, or of the critical path, went to."""

    BUSY = "busy"
    FLAG = "flag"
    BARRIER = "barrier"
    QUEUE = "queue"
    MEMORY = "memory"
    SCALES = "scales"
    LATENCY = "latency"
    ISSUE = "issue"
    TASK = "task"
    LAUNCH = "launch"


COLUMNS = {
    Cause.BUSY: tables.BUSY,
    Cause.FLAG: tables.FLAG,
    Cause.BARRIER: tables.BARRIER,
    Cause.QUEUE: tables.QUEUE,
    Cause.MEMORY: tables.MEMORY,
    Cause.SCALES: tables.SCALES,
}
"""Where an account counts what a pipe does, but for what it is idle."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What one core had of a task, and where its records stand: from `first` to before `last`."""

    run: TaskRun
    core: CoreRun
    first: int
    last: int

    @property
    def kernel(self) -> Kernel:
        """The program that the core ran."""
        return self.core.decoded.kernel


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The records of a timed run, n of them, task by task, core by core, in program order.

    Times are cycles since the host's call. Every array is int64 [n].

    Attributes:
        parts: Which core of which task they belong to.
        part: Number of the part.
        core: Number of the core, an index into the `cores` of the result.
        pipe: The pipe, `Pipe.S` for what the scalar unit does itself.
        role: As `Role`.
        item: Index of the instruction in its kernel.
        gap: Scalar cycles before it, its own issue included.
        entered: When it entered its queue; when it was issued, without one.
        start: When it came to the front.
        end: When it left its pipe.
        done: When its effects were there.
        starved: Of the cycles from start to end, those without scales for the cube.
        shared: Of these, those that memory took longer than the closed form says.
        partner: Of a wait the set that it took, of a set the wait that took it; -1 for none.
        before: The record before it on its pipe, -1 for none.
        work_before: The last one before it on its pipe that moves or computes, -1 for none.
        ahead: The record that had to leave the queue for it to enter, -1 for none.
    """

    parts: tuple[Part, ...]
    part: Line
    core: Line
    pipe: Line
    role: Line
    item: Line
    gap: Line
    entered: Line
    start: Line
    end: Line
    done: Line
    starved: Line
    shared: Line
    partner: Line
    before: Line
    work_before: Line
    ahead: Line

    def __len__(self) -> int:
        return len(self.item)

    def instruction(self, record: int) -> Instruction:
        """Return the instruction of a record."""
        return self.parts[int(self.part[record])].kernel.program[int(self.item[record])]

    def source(self, record: int) -> str:
        """Return the line of source of a record, or an empty string."""
        span = self.parts[int(self.part[record])].kernel.span(int(self.item[record]))
        return str(span) if span.is_known else ""


def records_of(result: SimResult, target: Target) -> Records:
    """Return the records of a run; none of what was not timed.

    Args:
        result: The run.
        target: The machine on which it ran.
    """
    cores = [
        (run, place)
        for run in result.tasks
        if run.timing is not None
        for place in range(len(run.cores))
    ]
    counts = [len(run.cores[place].stream) for run, place in cores]
    firsts = [0, *accumulate(counts)]
    parts = tuple(
        Part(run, run.cores[place], firsts[n], firsts[n + 1])
        for n, (run, place) in enumerate(cores)
    )
    part = np.repeat(np.arange(len(parts)), counts)
    times = [_times(run, place) for run, place in cores]
    columns = np.concatenate(times) if times else np.zeros((0, tables.RECORD_WORDS), np.int64)
    pipe, role = (
        _gathered([getattr(p.core.decoded, name)[p.core.stream.static] for p in parts])
        for name in ("pipe", "role")
    )
    work, starved = (
        _gathered([p.core.code[p.core.stream.static, column] for p in parts])
        for column in (tables.OCCUPANCY, tables.STARVED)
    )
    start, end = columns[:, tables.START], columns[:, tables.END]
    executes = role == Role.EXECUTE
    agent = part * PIPES + pipe
    return Records(
        parts,
        part,
        _gathered([np.full(p.last - p.first, p.core.number) for p in parts]),
        pipe,
        role,
        _gathered([p.core.stream.static for p in parts]),
        _gathered([p.core.stream.gap for p in parts]),
        np.where(pipe == Pipe.S, end, columns[:, tables.ENTERED]),
        start,
        end,
        columns[:, tables.DONE],
        np.where(executes, starved, 0),
        np.where(executes, np.maximum(end - start - work, 0), 0),
        _partners(cores, firsts),
        _back(agent, 1),
        _latest(agent, executes),
        np.where(pipe == Pipe.S, NONE, _back(agent, target.queue_entries)),
    )


def _gathered(pieces: list[Line]) -> Line:
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)


def _times(run: TaskRun, place: int) -> npt.NDArray[np.int64]:
    assert run.timing is not None, "only what was timed has records"
    first, last = run.timing.first[place : place + 2]
    lines = run.timing.state.records[first:last].copy()
    moments = [tables.ENTERED, tables.START, tables.END, tables.DONE]
    lines[:, moments] += run.start - run.timing.began
    return lines


def _partners(cores: list[tuple[TaskRun, int]], firsts: list[int]) -> Line:
    """Return the partners by their numbers in the table; a timing counts from its first core on."""
    found: list[Line] = []
    for number, (run, place) in enumerate(cores):
        assert run.timing is not None, "only what was timed has records"
        if place == 0:
            partners = run.timing.partners
            role = np.concatenate([part.decoded.role[part.stream.static] for part in run.cores])
            has_one = ((role == Role.SET) | (role == Role.WAIT)) & (partners >= 0)
            found.append(np.where(has_one, partners + firsts[number], NONE))
    return _gathered(found)


def _back(agent: Line, places: int) -> Line:
    """Return for each record the one that is `places` before it with the same agent, or -1."""
    order = np.argsort(agent, kind="stable")
    found = np.full(len(agent), NONE, np.int64)
    later, earlier = order[places:], order[: max(0, len(order) - places)]
    same = agent[later] == agent[earlier]
    found[later[same]] = earlier[same]
    return found


def _latest(agent: Line, marked: npt.NDArray[np.bool_]) -> Line:
    """Return for each record the last marked one before it with the same agent, or -1."""
    order = np.argsort(agent, kind="stable")
    places = np.arange(len(order))
    seen = np.maximum.accumulate(np.where(marked[order], places, NONE)) if len(order) else places
    seen = np.concatenate([[NONE], seen[:-1]]) if len(order) else seen
    found = np.full(len(agent), NONE, np.int64)
    known = seen >= 0
    same = np.zeros(len(order), np.bool_)
    same[known] = agent[order[seen[known]]] == agent[order[known]]
    found[order[same]] = order[seen[same]]
    return found
