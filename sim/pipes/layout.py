"""What the loop reads of the tasks of a launch: their instructions and records, and what waits for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.cluster import CORE_FLAG_IDS
from ...codegen.isa.vocabulary import ClusterCore
from .. import costs
from ..decode import FLAGS_OF_CORE, PIPE_FLAG_SLOTS, PIPES, Role, flag_of
from . import tables
from .flags import NONE
from .tables import Feed, Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ...ir.target import Target
    from ..decode import Decoded
    from ..scalar import Stream
    from .timing import Job

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]


def code_of(decoded: Decoded, core: ClusterCore, target: Target, transfers: Table) -> Table:
    """Return what the loop reads of a kernel, int64 [n, tables.CODE_WORDS].

    Counters are numbered anew, those of the program from 0 on, as far as there are any; those between
    the cores by who sets, who waits, and id.

    Args:
        decoded: The kernel.
        core: Where it runs.
        target: The machine.
        transfers: What each instruction touches of GM (`decode.transfers`).

    Raises:
        ExecutableError: If an instruction does not suit the machine.
    """
    kernel, flags = decoded.kernel, decoded.flags
    code = np.zeros((len(decoded), tables.CODE_WORDS), np.int64)
    code[:, tables.PIPE], code[:, tables.ROLE] = decoded.pipe, decoded.role
    code[:, tables.OCCUPANCY] = costs.occupancy(kernel, target)
    code[:, tables.STARVED] = costs.starved(kernel, target)
    code[:, tables.BYTES] = np.where(transfers[:, 0], costs.moved_bytes(kernel), 0)
    is_flag = (decoded.role == Role.SET) | (decoded.role == Role.WAIT)
    is_between = is_flag & (flags >= PIPE_FLAG_SLOTS)
    own = is_flag & ~is_between
    code[is_between, tables.IS_BETWEEN] = 1
    code[own, tables.SLOT] = np.unique(flags[own], return_inverse=True)[1]
    for index in np.flatnonzero(own & (decoded.role == Role.SET)).tolist():
        code[index, tables.REACHED] = flag_of(int(flags[index]))[1]
    to_other, place = np.divmod(flags[is_between] - PIPE_FLAG_SLOTS, FLAGS_OF_CORE)
    other, name = np.divmod(place, CORE_FLAG_IDS)
    setter = np.where(to_other == 0, int(core), other)
    waiter = np.where(to_other == 0, other, int(core))
    code[is_between, tables.SLOT] = (setter * len(ClusterCore) + waiter) * CORE_FLAG_IDS + name
    code[is_between, tables.REACHED] = (waiter - int(core)) * PIPES
    return code


class _Shared:
    """Arrays that stand in the feed once, however many parts use them."""

    def __init__(self) -> None:
        self.parts: list[Table] = []
        self.length = 0
        self._begins: dict[int, int] = {}

    def place(self, array: Table) -> int:
        """Return where an array begins."""
        begin = self._begins.get(id(array))
        if begin is None:
            begin = self._begins[id(array)] = self.length
            self.parts.append(array)
            self.length += len(array)
        return begin


def laid_out(jobs: Sequence[Job]) -> tuple[Feed, Plan, int]:
    """Return all that the tasks run, what they wait for, and how many flag counters they have."""
    codes, transfers, starts = _Shared(), _Shared(), _Shared()
    parts: list[tuple[int, ...]] = []
    tasks: list[tuple[int, ...]] = []
    streams: list[Stream] = []
    record, slots = 0, 0
    slots_of: dict[int, tuple[int, bool]] = {}
    for job in jobs:
        first, own = len(parts), slots
        counts: list[int] = []
        is_between = False
        for program in job.programs:
            key = id(program.code)
            if key not in slots_of:
                slots_of[key] = _slots_of(program.code)
            count, has_between = slots_of[key]
            counts.append(count)
            is_between |= has_between
        between = own + sum(counts)
        for program, count in zip(job.programs, counts, strict=True):
            code = codes.place(program.code)
            place = transfers.place(program.transfers)
            assert place == code, "a line of each an instruction"
            stop = record + len(program.stream)
            begin = starts.place(program.starts)
            parts.append(
                (int(program.core), record, stop, program.stream.tail, code, begin, own, between)
            )
            streams.append(program.stream)
            record, own = stop, own + count
        slots = between + (tables.CORES * FLAGS_OF_CORE if is_between else 0)
        tasks.append((first, len(parts), job.in_step, NONE, NONE, NONE))
    feed = Feed(
        code=_one(codes.parts),
        transfers=_one(transfers.parts),
        starts=_one(starts.parts),
        static=_one([stream.static for stream in streams]),
        gap=_one([stream.gap for stream in streams]),
        registers=_one([stream.registers for stream in streams]),
    )
    groups, edges_of, edges = _dependences(jobs)
    plan = Plan(np.array(parts, np.int64), np.array(tasks, np.int64), groups, edges_of, edges)
    return feed, plan, slots


def _dependences(jobs: Sequence[Job]) -> tuple[Table, Line, Line]:
    """Return the groups, and by task the groups that wait for it."""
    groups: list[tuple[int, int, int]] = []
    waited: list[Line] = []
    for number, job in enumerate(jobs):
        if number and job.depends == jobs[number - 1].depends:
            groups[-1] = (groups[-1][0], number + 1, groups[-1][2])
        else:
            groups.append((number, number + 1, len(job.depends)))
            waited.append(np.array(job.depends, np.int64))
    tasks = np.concatenate(waited)
    waiting = np.repeat(np.arange(len(groups)), [len(each) for each in waited])
    order = np.argsort(tasks, kind="stable")
    edges_of = np.searchsorted(tasks[order], np.arange(len(jobs) + 1))
    return np.array(groups, np.int64), edges_of.astype(np.int64), waiting[order].astype(np.int64)


def _one(parts: Sequence[Table]) -> Table:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _slots_of(code: Table) -> tuple[int, bool]:
    """Return how many flag counters of its own a program has, and whether it has any between cores."""
    is_flag = (code[:, tables.ROLE] == Role.SET) | (code[:, tables.ROLE] == Role.WAIT)
    own = code[is_flag & (code[:, tables.IS_BETWEEN] == 0), tables.SLOT]
    return int(own.max(initial=NONE)) + 1, bool(code[is_flag, tables.IS_BETWEEN].any())
