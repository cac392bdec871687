"""What a run leaves behind: outputs, cycles and where they went, and the timeline on demand."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.isa.vocabulary import FieldKind, Pipe
from .decode import PIPES, Role, flag_text
from .pipes import ACCOUNT_WORDS, BUSY

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..codegen.isa.program import Instruction
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
instruction of the task's kernel, which record of the task, and the number that a set_flag and the
wait_flag that took it share (-1 for all else)."""


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """What a pipe of a core did from one cycle to another.

    Attributes:
        core: Number of the core.
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
class TaskRun:
    """One task, as it went.

    Attributes:
        index: Number of the task.
        core: Where it ran.
        start: First cycle, counted from the launch.
        decoded: Its kernel.
        stream: Its resolved instructions.
        timing: Their times, or None if the run was not timed.
        block: Number of the block of its grid.
        blocks: Blocks of the grid.
    """

    index: int
    core: int
    start: int
    decoded: Decoded
    stream: Stream
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
        accounts: Per core and pipe, cycles by what the pipe did, int64 [cores, pipes,
            ACCOUNT_WORDS] in the columns of `pipes`; each line sums to `cycles - launch_cycles`.
        macs: Multiplications, valid elements only.
        moved: Path ("L1->L0A") to bytes.
        instructions: Executed instructions, scalar ones included.
        warnings: What is suspicious but was allowed to pass.
        tasks: The tasks in the order in which they ran.
    """

    outputs: Mapping[str, npt.NDArray[np.uint8]]
    cycles: int
    launch_cycles: int
    accounts: Table
    macs: int
    moved: Mapping[str, int]
    instructions: int
    warnings: tuple[SimulationFault, ...]
    tasks: tuple[TaskRun, ...]

    @property
    def pipes(self) -> tuple[dict[str, int], ...]:
        """Busy cycles by pipe name, one dictionary a core."""
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
        runs = {run.index: run for run in self.tasks}
        return [_timeline_event(event, runs[int(event["task"])]) for event in self.events]


def no_accounts(cores: int) -> Table:
    """Return accounts in which nothing has happened yet."""
    return np.zeros((cores, PIPES, ACCOUNT_WORDS), np.int64)


def _events_of(run: TaskRun) -> npt.NDArray[Any]:
    assert run.timing is not None, "only a timed task has events"
    times, static = run.timing.times, run.stream.static
    events = np.zeros(len(static), EVENT_DTYPE)
    events["core"], events["task"] = run.core, run.index
    events["pipe"], events["role"] = run.decoded.pipe[static], run.decoded.role[static]
    events["instruction"], events["record"] = static, np.arange(len(static))
    is_set = events["role"] == Role.SET
    # A set_flag takes no time of its pipe; it is shown when it takes effect.
    events["start"] = np.where(is_set, times.done, times.start) + run.start
    events["end"] = np.where(is_set, times.done, times.end) + run.start
    events["done"] = times.done + run.start
    taken = run.timing.queues.taken
    waits = np.flatnonzero(taken >= 0)
    events["flow"] = -1
    events["flow"][waits] = taken[waits]
    events["flow"][taken[waits]] = taken[waits]
    return events


def _timeline_event(event: Any, run: TaskRun) -> TimelineEvent:
    index = int(event["instruction"])
    kernel = run.decoded.kernel
    instruction, span = kernel.program[index], kernel.span(index)
    args: dict[str, Any] = {"kernel": kernel.name, "instruction": index}
    if run.blocks > 1:
        args["block"] = f"{run.block} of {run.blocks}"
    if run.decoded.role[index] in (Role.SET, Role.WAIT):
        args |= {"flag": flag_text(int(run.decoded.flags[index]))}
    else:
        args |= _operands(instruction, run.stream.registers[int(event["record"])].tolist())
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
