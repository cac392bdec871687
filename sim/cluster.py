"""A kernel on the cores of a cluster: what each of them runs, and in which order its effects come.

A kernel of one kind runs on the first core of that kind; one with a mate runs on the cube core while
its mate runs on the first vector core. Both see the memories of the cluster.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from . import costs
from .budget import instructions_within, stream_over_budget
from .decode import (
    PIPE_FLAG_SLOTS,
    Role,
    bind_views,
    core_flag_of,
    decode,
    transfer_starts,
    transfers,
)
from .diagnosis import deadlock
from .faultcodes import BUDGET
from .faults import fault_of
from .pipes import timing
from .pipes.l2 import L2
from .pipes.layout import code_of
from .pipes.timing import Program
from .scalar import ScalarFault, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from ..codegen.executable import Kernel, Task
    from ..codegen.isa.vocabulary import ClusterCore
    from ..ir.errors import SimulationFault
    from ..ir.target import Target
    from .core import Problem

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]


def cores_of(kernel: Kernel) -> tuple[ClusterCore, ...]:
    """Return the cores that run a kernel, in the order of `kernel.programs`."""
    return tuple(program.core.first for program in kernel.programs)


class Prepared:
    """What is known of one program of a kernel before it runs; see `prepare`.

    Args:
        kernel: The kernel, or its mate.
        core: Where it runs.
        target: The machine.
        is_alone: Whether nothing else runs on the cluster at the same time.

    Raises:
        ExecutableError: If an instruction does not suit its view or the machine.
    """

    def __init__(
        self, kernel: Kernel, core: ClusterCore, target: Target, *, is_alone: bool
    ) -> None:
        self.core = core
        self.is_alone = is_alone
        self.target = target
        self.decoded = decode(kernel)
        self.moved = _moved(kernel)
        """Path ("L1->L0A") to the bytes that each instruction moves that way, int64 [n]."""
        self.macs = costs.macs(kernel)
        self.transfers = transfers(self.decoded)
        self.code = code_of(self.decoded, core, target, self.transfers)
        self._bound: tuple[tuple[int, ...], Table, Line] | None = None

    def program(
        self,
        task: Task,
        addresses: Sequence[int],
        *,
        max_instructions: int,
        max_cycles: int | None = None,
    ) -> Program:
        """Return what the core runs of a task.

        Args:
            task: The task.
            addresses: GM byte address per tensor parameter, in order.
            max_instructions: Instructions that it may execute, scalar ones included.
            max_cycles: Cycles that the launch may take, if there is a limit.

        Raises:
            SimulationFault: For a division by zero, or for more instructions than it may execute or
                than can be executed in so many cycles.
        """
        allowed = max_instructions
        if max_cycles is not None:
            allowed = min(allowed, instructions_within(max_cycles, self.target))
        try:
            stream = resolve(
                self.decoded,
                task.scalars,
                block=task.block,
                blocks=task.blocks,
                scalar_cycles=self.target.scalar_cycles,
                branch_cycles=self.target.branch_taken_cycles,
                max_instructions=allowed,
            )
        except ScalarFault as fault:
            raise self._fault(fault.record.tolist(), max_instructions, max_cycles) from None
        views, starts = self._bind(tuple(addresses))
        return Program(self.core, self.decoded, stream, views, self.code, self.transfers, starts)

    def _fault(
        self, record: Sequence[int], max_instructions: int, max_cycles: int | None
    ) -> SimulationFault:
        """Return what to say of a fault record of the scalar unit."""
        kernel = self.decoded.kernel
        code, index, executed = record[:3]
        if max_cycles is not None and code == BUDGET and executed < max_instructions:
            return stream_over_budget(kernel, index, executed, limit=max_cycles, core=self.core)
        core = None if self.is_alone else self.core
        return fault_of(kernel, index, record, (), core=core)

    def _bind(self, addresses: tuple[int, ...]) -> tuple[Table, Line]:
        """Return the views and where transfers begin; for the blocks of a grid, the same ones."""
        if self._bound is None or self._bound[0] != addresses:
            views = bind_views(self.decoded.kernel, addresses)
            starts = transfer_starts(self.transfers, self.decoded, views)
            self._bound = addresses, views, starts
        return self._bound[1:]


def _moved(kernel: Kernel) -> dict[str, Line]:
    paths = [costs.path_of(instruction) for instruction in kernel.program]
    moved = costs.moved_bytes(kernel)
    return {
        path: np.where([each == path for each in paths], moved, 0)
        for path in dict.fromkeys(paths)
        if path is not None
    }


def prepare(kernel: Kernel, target: Target) -> tuple[Prepared, ...]:
    """Return what is known of the programs of a kernel before they run.

    It stays with the kernel, so that the next launch on such a machine finds it made.

    Raises:
        ExecutableError: If an instruction does not suit its view or the machine.
    """
    is_alone = kernel.mate is None
    found: list[Prepared] = []
    for program, core in zip(kernel.programs, cores_of(kernel), strict=True):
        kept = program.kept.get(Prepared)
        if not (isinstance(kept, Prepared) and kept.is_alone == is_alone and kept.target == target):
            kept = Prepared(program, core, target, is_alone=is_alone)
            program.kept[Prepared] = kept
        found.append(kept)
    return tuple(found)


def fault_in(programs: Sequence[Program], number: int, problem: Problem) -> SimulationFault:
    """Return the fault for a problem that the program `number` of a task has."""
    program = programs[number]
    return fault_of(
        program.decoded.kernel,
        int(program.stream.static[problem.record]),
        problem.fault,
        program.stream.registers[problem.record].tolist(),
        core=None if len(programs) == 1 else program.core,
    )


def effects(
    programs: Sequence[Program], timed: timing.Timing | None, target: Target
) -> Iterator[tuple[int, Line]]:
    """Yield the records that move or multiply data, in the order of their effects.

    An instruction is executed as a whole when its pipe is done with it, ties by core, then by pipe,
    then by program order. For a program whose flags are right that is some order that they allow;
    where one is missing, a reader that does not wait finds what was there before. Without times it
    is program order, in which a core goes on until it waits for a flag of another one. Where such
    flags rely on pipes that overtake each other, there is no such order, and times are looked at.

    Args:
        programs: What runs.
        timed: Its times, if they are known.
        target: The machine.

    Yields:
        Number of the program, and records of its stream, int64.

    Raises:
        SimulationFault: If everybody waits for ever.
    """
    if timed is None:
        turns = _turns(programs)
        if turns is not None:
            for number, begin, end in turns:
                static = programs[number].stream.static[begin:end]
                yield number, begin + np.flatnonzero(programs[number].decoded.action[static])
            return
        none = L2(0, target.l2_block_bytes, 0, target.l2_line_bytes)
        timed = timing.run(programs, target=target, l2=none)
        if not timed.finished:
            raise deadlock(programs, timed)
    acting = [np.flatnonzero(p.decoded.action[p.stream.static]) for p in programs]
    number = np.repeat(np.arange(len(programs)), [len(records) for records in acting])
    pipe = np.concatenate(
        [p.decoded.pipe[p.stream.static[a]] for p, a in zip(programs, acting, strict=True)]
    )
    done = np.concatenate([timed.times(core).done[records] for core, records in enumerate(acting)])
    records = np.concatenate(acting)
    order = np.lexsort((records, pipe, number, done))
    records, number = records[order], number[order]
    turns = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
    for begin, end in pairwise(turns):
        if begin < end:
            yield int(number[begin]), records[begin:end]


def _turns(programs: Sequence[Program]) -> list[tuple[int, int, int]] | None:
    """Return who runs which records (program, first, behind the last), each in program order.

    A program goes on until it waits for a core flag that is not set; then it is another one's turn.
    None if they wait for each other before both have ended.
    """
    if len(programs) == 1:
        return [(0, 0, len(programs[0].stream))]
    marks = [_core_flags(program) for program in programs]
    begins, places = [0] * len(programs), [0] * len(programs)
    counters: dict[tuple[ClusterCore, ClusterCore, int], int] = {}
    turns: list[tuple[int, int, int]] = []
    number, idle = 0, 0
    while idle < len(programs):
        end = len(programs[number].stream)
        while places[number] < len(marks[number]):
            record, flag, step = marks[number][places[number]]
            if counters.get(flag, 0) + step < 0:
                end = record
                break
            counters[flag] = counters.get(flag, 0) + step
            places[number] += 1
        has_moved = end > begins[number]
        if has_moved:
            turns.append((number, begins[number], end))
            begins[number] = end
        idle = 0 if has_moved else idle + 1
        number = (number + 1) % len(programs)
    has_ended = all(b == len(p.stream) for b, p in zip(begins, programs, strict=True))
    return turns if has_ended else None


def _core_flags(
    program: Program,
) -> list[tuple[int, tuple[ClusterCore, ClusterCore, int], int]]:
    """Return record, flag and +1 for a set or -1 for a wait, for every core flag of a stream."""
    flags = program.decoded.flags[program.stream.static]
    found: list[tuple[int, tuple[ClusterCore, ClusterCore, int], int]] = []
    for record in np.flatnonzero(flags >= PIPE_FLAG_SLOTS).tolist():
        role = program.decoded.role[program.stream.static[record]]
        flag = core_flag_of(int(flags[record]), program.core)
        found.append((record, flag, 1 if role == Role.SET else -1))
    return found
