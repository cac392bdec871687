"""What a run leaves behind: outputs, cycles and where they went, and the timeline on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..codegen.isa.vocabulary import ClusterCore, FieldKind, Pipe
from .decode import PIPES, Role, flag_text
from .pipes.tables import BUSY, BYTES, OCCUPANCY, STARVED

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..codegen.executable import Kernel
    from ..ir.errors import SimulationFault
    from .decode import Decoded
    from .pipes.timing import Timing
    from .scalar import Stream

    Table = npt.NDArray[np.int64]

EVENT_DTYPE = np.dtype(
    [
        ("core", np.int32),
        ("pipe", np.int8),
        ("role", np.int8),
        ("start", np.int64),
        ("end", np.int64),
        ("done", np.int64),
        ("instruction", np.int32),
        ("task", np.int32),
        ("record", np.int64),
        ("flow", np.int64),
    ]
)
"""One event: where, from when to when (cycles since the launch), when its effects were there, which
instruction of the core's program, which record of its stream, and the number that a set_flag and the
wait_flag that took it share (-1 for all else)."""


class CoreName(NamedTuple):
    """A core of the device, "0.AIC" as text.

    Attributes:
        cluster: Number of its cluster.
        core: Which core of the cluster.
    """

    cluster: int
    core: ClusterCore

    def __str__(self) -> str:
        return f"{self.cluster}.{self.core.name}"


class FlagTotal(NamedTuple):
    """How long a pipe waited for a flag in the whole launch.

    Attributes:
        core: Number of the core that waited, an index into the `cores` of the result.
        pipe: The pipe that waited.
        flag: Who sets, who waits, and the id, "MTE2->MTE1 0" or "AIC->AIV0 3".
        cycles: How long.
    """

    core: int
    pipe: Pipe
    flag: str
    cycles: int


class Traffic(NamedTuple):
    """Bytes that moved in a launch.

    Attributes:
        l2_bytes: Between the second-level cache and the cores.
        fetched_bytes: From memory into the cache, in whole lines.
        written_bytes: From the cache to memory, in whole lines; without what it still holds.
    """

    l2_bytes: int
    fetched_bytes: int
    written_bytes: int


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """What a pipe of a core did from one cycle to another.

    Attributes:
        core: Number of the core, an index into the `cores` of the result.
        pipe: Name of the pipe.
        name: The mnemonic.
        start: First cycle.
        end: The cycle after the last one; `start` for what takes no time.
        source: Line of the kernel that caused it, or an empty string.
        task: Number of the task.
        args: Operands and further facts; `flow` joins a set_flag to its wait_flag.
    """

    core: int
    pipe: str
    name: str
    start: int
    end: int
    source: str
    task: int
    args: dict[str, Any] = field(compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class CoreRun:
    """What one core had of a task.

    Attributes:
        number: Number of the core, an index into the `cores` of the result.
        core: Which core of its cluster.
        decoded: The program that it ran.
        stream: Its resolved instructions.
        code: What the timing model knows of the program, int64 [n, pipes.tables.CODE_WORDS].
    """

    number: int
    core: ClusterCore
    decoded: Decoded
    stream: Stream
    code: Table


@dataclass(frozen=True, slots=True, eq=False)
class TaskRun:
    """One task, as it went.

    Attributes:
        index: Number of the task.
        start: First cycle, counted from the launch.
        cores: The cores that ran it, at the same time; two for a kernel with a mate.
        timing: The times of these cores, in their order, or None if the run was not timed.
        block: Number of the block of its grid.
        blocks: Blocks of the grid.
        cluster: Number of the cluster that ran it.
    """

    index: int
    start: int
    cores: tuple[CoreRun, ...]
    timing: Timing | None
    block: int = 0
    blocks: int = 1
    cluster: int = 0

    @property
    def cycles(self) -> int:
        """How long it took."""
        return self.timing.cycles if self.timing is not None else 0


@dataclass(frozen=True, eq=False)
class SimResult:
    """What a simulation found.

    Attributes:
        outputs: Output name of the entry to bytes in GM order, uint8 [bytes]; empty without
            functional execution.
        cycles: All cycles, the launch included; 0 without timing.
        launch_cycles: Those before the first instruction.
        cores: The cores that the launch had work for, cluster by cluster.
        accounts: Per core and pipe, cycles by what the pipe did, int64 [cores, pipes,
            ACCOUNT_WORDS] in the columns of `pipes.tables`; each line sums to `cycles - launch_cycles`.
        macs: Multiplications, valid elements only.
        moved: Path ("L1->L0A") to bytes.
        instructions: Executed instructions, scalar ones included.
        warnings: What is suspicious but was allowed to pass.
        tasks: The tasks in the order in which they began, by number among those that did together.
        traffic: Bytes that moved beyond the cores; None without timing.
        warm: Whether inputs lay in the second-level cache before the launch.
    """

    outputs: Mapping[str, npt.NDArray[np.uint8]]
    cycles: int
    launch_cycles: int
    cores: tuple[CoreName, ...]
    accounts: Table
    macs: int
    moved: Mapping[str, int]
    instructions: int
    warnings: tuple[SimulationFault, ...]
    tasks: tuple[TaskRun, ...]
    traffic: Traffic | None = None
    warm: bool = False

    @property
    def pipes(self) -> tuple[dict[str, int], ...]:
        """Busy cycles by pipe name, one dictionary for each of `cores`."""
        return tuple(
            {Pipe(pipe).name: int(core[pipe, BUSY]) for pipe in range(PIPES)}
            for core in self.accounts
        )

    @cached_property
    def events(self) -> npt.NDArray[Any]:
        """All that the pipes did, a record array of `EVENT_DTYPE`, task by task."""
        parts = [_events_of(run) for run in self.tasks if run.timing is not None]
        offset = 0
        for part in parts:
            part["flow"][part["flow"] >= 0] += offset
            offset += len(part)
        return np.concatenate(parts) if parts else np.zeros(0, EVENT_DTYPE)

    @cached_property
    def flag_totals(self) -> tuple[FlagTotal, ...]:
        """What pipes waited for flags, longest first; it adds up to the column FLAG of the accounts."""
        waited: dict[tuple[int, Pipe, str], int] = {}
        for run in self.tasks:
            if run.timing is None:
                continue
            for place, part in enumerate(run.cores):
                times, static = run.timing.times(place), part.stream.static
                cycles = np.bincount(static, times.end - times.start, minlength=len(part.decoded))
                for index in np.flatnonzero(part.decoded.role == Role.WAIT).tolist():
                    pipe = Pipe(int(part.decoded.pipe[index]))
                    flag = flag_text(int(part.decoded.flags[index]), part.core)
                    key = part.number, pipe, flag
                    waited[key] = waited.get(key, 0) + int(cycles[index])
        found = [FlagTotal(*key, cycles) for key, cycles in waited.items() if cycles]
        return tuple(sorted(found, key=lambda each: (-each.cycles, each[:3])))

    @cached_property
    def timeline(self) -> list[TimelineEvent]:
        """The events as objects that name instructions and source lines."""
        runs = {(run.index, part.number): (run, part) for run in self.tasks for part in run.cores}
        return [
            _timeline_event(event, *runs[int(event["task"]), int(event["core"])])
            for event in self.events
        ]


def _events_of(run: TaskRun) -> npt.NDArray[Any]:
    """Return the events of a task, one core's behind another's, as its timing has its records."""
    assert run.timing is not None, "only a timed task has events"
    events = np.concatenate([_events_on(place, run, run.timing) for place in range(len(run.cores))])
    partner = run.timing.partners
    own = np.arange(len(events))
    events["flow"] = np.where(events["role"] == Role.WAIT, partner, np.where(partner >= 0, own, -1))
    return events


def _events_on(place: int, run: TaskRun, timing: Timing) -> npt.NDArray[Any]:
    part, times = run.cores[place], timing.times(place)
    static = part.stream.static
    events = np.zeros(len(static), EVENT_DTYPE)
    events["core"], events["task"] = part.number, run.index
    events["pipe"], events["role"] = part.decoded.pipe[static], part.decoded.role[static]
    events["instruction"], events["record"] = static, np.arange(len(static))
    is_set = events["role"] == Role.SET
    launch = run.start - timing.began
    # A set_flag takes no time of its pipe; it is shown when it takes effect.
    events["start"] = np.where(is_set, times.done, times.start) + launch
    events["end"] = np.where(is_set, times.done, times.end) + launch
    events["done"] = times.done + launch
    return events


def _timeline_event(event: Any, run: TaskRun, part: CoreRun) -> TimelineEvent:
    index = int(event["instruction"])
    kernel = part.decoded.kernel
    instruction, span = kernel.program[index], kernel.span(index)
    args: dict[str, Any] = {"kernel": kernel.name, "instruction": index}
    if run.blocks > 1:
        args["block"] = f"{run.block} of {run.blocks}"
    if part.decoded.role[index] in (Role.SET, Role.WAIT):
        args |= {"flag": flag_text(int(part.decoded.flags[index]), part.core)}
    else:
        args |= _operands(kernel, index, part.stream.registers[int(event["record"])].tolist())
    code = part.code[index]
    if code[BYTES] and (beside := int(event["end"] - event["start"] - code[OCCUPANCY])):
        args["memory_cycles"] = beside
    if code[STARVED]:
        args["scales_cycles"] = int(code[STARVED])
    if event["done"] != event["end"]:
        args["done_cycle"] = int(event["done"])
    if event["flow"] >= 0:
        args["flow"] = int(event["flow"])
    note = kernel.note(index)
    if note is not None:
        args["note"] = note
    return TimelineEvent(
        int(event["core"]),
        Pipe(int(event["pipe"])).name,
        instruction.mnemonic,
        int(event["start"]),
        int(event["end"]),
        str(span) if span.is_known else "",
        int(event["task"]),
        args,
    )


def _operands(kernel: Kernel, index: int, registers: list[int]) -> dict[str, int | str]:
    """Return field name to number, to a member's name, or to what the register held.

    In place of a view stands the tensor that it is of, by its parameter's name.
    """
    instruction, values = kernel.program[index], iter(registers)
    shown: dict[str, int | str] = {}
    for each, value in zip(instruction.row.fields, instruction.values, strict=True):
        if each.kind is FieldKind.REG:
            shown[each.name] = next(values)
        elif each.kind is FieldKind.VIEW:
            shown["tensor"] = kernel.params[kernel.views[value].param].name
        elif each.enum is not None:
            shown[each.name] = each.enum(value).name.lower()
        else:
            shown[each.name] = value
    return shown
