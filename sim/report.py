"""What a run leaves behind: outputs, cycles and where they went, and the timeline on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.isa.vocabulary import FieldKind, Pipe
from .decode import PIPES, Role, flag_text
from .pipe_tables import ACCOUNT_WORDS, BUSY, PARTNER

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..codegen.isa.program import Instruction
    from ..codegen.isa.vocabulary import ClusterCore
    from ..ir.errors import SimulationFault
    from .decode import Decoded
    from .scalar import Stream
    from .timing import Timing

    Table = npt.NDArray[np.int64]

EVENT_DTYPE = np.dtype(
    [
        ("core", np.int16),
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
    """

    number: int
    core: ClusterCore
    decoded: Decoded
    stream: Stream


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
    """

    index: int
    start: int
    cores: tuple[CoreRun, ...]
    timing: Timing | None
    block: int = 0
    blocks: int = 1

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
        cores: The cores of the cluster that the launch has work for.
        accounts: Per core and pipe, cycles by what the pipe did, int64 [cores, pipes,
            ACCOUNT_WORDS] in the columns of `pipe_tables`; each line sums to `cycles - launch_cycles`.
        macs: Multiplications, valid elements only.
        moved: Path ("L1->L0A") to bytes.
        instructions: Executed instructions, scalar ones included.
        warnings: What is suspicious but was allowed to pass.
        tasks: The tasks in the order in which they ran.
    """

    outputs: Mapping[str, npt.NDArray[np.uint8]]
    cycles: int
    launch_cycles: int
    cores: tuple[ClusterCore, ...]
    accounts: Table
    macs: int
    moved: Mapping[str, int]
    instructions: int
    warnings: tuple[SimulationFault, ...]
    tasks: tuple[TaskRun, ...]

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
    def timeline(self) -> list[TimelineEvent]:
        """The events as objects that name instructions and source lines."""
        runs = {(run.index, part.number): (run, part) for run in self.tasks for part in run.cores}
        return [
            _timeline_event(event, *runs[int(event["task"]), int(event["core"])])
            for event in self.events
        ]


def no_accounts(cores: int) -> Table:
    """Return accounts in which nothing has happened yet."""
    return np.zeros((cores, PIPES, ACCOUNT_WORDS), np.int64)


def _events_of(run: TaskRun) -> npt.NDArray[Any]:
    """Return the events of a task, one core's behind another's, as its timing has its records."""
    assert run.timing is not None, "only a timed task has events"
    events = np.concatenate([_events_on(place, run, run.timing) for place in range(len(run.cores))])
    partner = run.timing.state.records[:, PARTNER]
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
    # A set_flag takes no time of its pipe; it is shown when it takes effect.
    events["start"] = np.where(is_set, times.done, times.start) + run.start
    events["end"] = np.where(is_set, times.done, times.end) + run.start
    events["done"] = times.done + run.start
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
        args |= _operands(instruction, part.stream.registers[int(event["record"])].tolist())
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


def _operands(instruction: Instruction, registers: list[int]) -> dict[str, int | str]:
    """Return field name to number, to a member's name, or to what the register held."""
    values = iter(registers)
    shown: dict[str, int | str] = {}
    for each, value in zip(instruction.row.fields, instruction.values, strict=True):
        if each.kind is FieldKind.REG:
            shown[each.name] = next(values)
        elif each.enum is not None:
            shown[each.name] = each.enum(value).name.lower()
        else:
            shown[each.name] = value
    return shown
