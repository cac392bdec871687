"""A launch on the machine: the tasks of the host program, one after another, on one core."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from ..ir.errors import InputError, SimulationFault
from ..ir.numerics.elements import Summation
from . import costs, timing
from .core import Core
from .decode import bind_transfers, bind_views, decode, transfers
from .diagnosis import deadlock, leftover_flags, overruns
from .faultcodes import UNWRITTEN
from .faults import fault_of, padding_warning
from .matmul import NumericsCube
from .memory import GlobalMemory
from .report import SimResult, TaskRun, no_accounts
from .scalar import DEFAULT_MAX_INSTRUCTIONS, ScalarFault, Stream, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..codegen.executable import Executable, HostProgram, Kernel, Task, TaskGraph
    from ..ir.target import Target
    from .core import Problem
    from .decode import Decoded
    from .matmul import CubeEngine
    from .scale_recorder import ScaleRecorder

    Bytes = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]


class Checks(Enum):
    """What becomes of a doubtful access or a flag left over."""

    ERROR = "error"
    WARN = "warn"
    OFF = "off"

    @classmethod
    def of(cls, name: Checks | str) -> Checks:
        """Return the choice called `name`.

        Raises:
            InputError: If there is none.
        """
        for choice in cls:
            if isinstance(name, str | cls) and name in (choice, choice.value):
                return choice
        message = f"checks must be 'error', 'warn' or 'off', not {name!r}."
        raise InputError(message)


def simulate(
    executable: Executable,
    buffers: Mapping[str, Bytes],
    *,
    target: Target,
    scalars: Mapping[str, int] | None = None,
    entry: str | None = None,
    functional: bool = True,
    timing: bool = True,
    checks: Checks | str = Checks.ERROR,
    sum: Summation | str = Summation.GROUP,  # noqa: A002 - the public name of the choice
    cube: CubeEngine | None = None,
    scales: ScaleRecorder | None = None,
    max_instructions: int = DEFAULT_MAX_INSTRUCTIONS,
) -> SimResult:
    """Run one launch of an entry.

    Args:
        executable: What to run.
        buffers: Tensor parameter of the entry to its bytes in GM order, sub-byte elements packed,
            uint8 of any shape. Parameters that are only written may be left out; then they count
            as never written. Not looked at without functional execution.
        target: The machine.
        scalars: Signed 64-bit integers by name.
        entry: Name of the entry; the default one if None.
        functional: Whether to compute outputs.
        timing: Whether to compute cycles. Without it instructions run in program order; with it,
            in the order in which the pipes finish them, so that a missing flag shows.
        checks: Whether reads of never-written bytes and flags left over are faults, warnings or
            ignored. What leaves its memory, divides by zero or waits for ever is always a fault.
        sum: The order in which products meet the accumulator, for the default cube.
        cube: Who multiplies, instead of the default engine.
        scales: Who keeps the scales that every mad finds, if anyone.
        max_instructions: Instructions that each task may execute, scalar ones included.

    Raises:
        InputError: If a buffer or a scalar is missing, unknown or of the wrong size.
        ExecutableError: If an instruction does not suit its view or the machine.
        SimulationFault: If the program does something that the machine cannot do.
    """
    host, graph = executable.entry(entry), executable.expand(entry, scalars)
    images = _images(host, buffers) if functional else {}
    sizes = {buffer.name: buffer.size_bytes for buffer in graph.buffers}
    run = _Launch(
        executable,
        target,
        GlobalMemory(sizes, images, filled=functional),
        cube if cube is not None else NumericsCube(Summation.of(sum)),
        _Options(functional, timing, Checks.of(checks), max_instructions, Summation.of(sum)),
        scales,
    )
    for index, task in enumerate(graph.tasks):
        try:
            run.task(index, task)
        except SimulationFault as fault:
            if task.blocks > 1:
                where = f"it happens in block {task.block} of {task.blocks}"
                fault.note = where if fault.note is None else f"{fault.note}; {where}"
            raise
    return run.result(graph)


@dataclass(frozen=True, slots=True)
class _Options:
    functional: bool
    timing: bool
    checks: Checks
    max_instructions: int
    order: Summation


class _Prepared:
    """What is known of a kernel before it runs, made once a launch."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.decoded = decode(kernel)
        self.occupancy = costs.occupancy(kernel, target)
        self.moved = costs.moved_bytes(kernel).tolist()
        self.paths = [costs.path_of(instruction) for instruction in kernel.program]
        self.macs = costs.macs(kernel)
        self.transfers = transfers(self.decoded)


class _Launch:
    """The state of one launch."""

    def __init__(
        self,
        executable: Executable,
        target: Target,
        gm: GlobalMemory,
        engine: CubeEngine,
        options: _Options,
        scales: ScaleRecorder | None,
    ) -> None:
        self.executable = executable
        self.target = target
        self.gm = gm
        self.options = options
        self.scales = scales
        self.core = Core(target, gm, engine, scales, order=options.order)
        self.l2 = timing.L2(gm.size, target.l2_block_bytes)
        self.now = costs.launch_cycles(target) if options.timing else 0
        self.runs: list[TaskRun] = []
        self.warnings: dict[str, SimulationFault] = {}
        self.macs = self.instructions = 0
        self.moved: dict[str, int] = {}
        self._prepared: dict[int, _Prepared] = {}

    def task(self, index: int, task: Task) -> None:
        """Run one task to its end."""
        kernel = self.executable.kernels[task.kernel]
        if task.kernel not in self._prepared:
            self._prepared[task.kernel] = _Prepared(kernel, self.target)
        prepared = self._prepared[task.kernel]
        decoded = prepared.decoded
        addresses = [self.gm.allocations[name].address for name in task.buffers]
        views = bind_views(kernel, addresses)
        stream = self._resolve(decoded, task)
        problem = self.core.check_bounds(decoded, stream, views)
        if problem is not None:
            raise _fault(decoded, stream, problem)
        timed = self._time(prepared, stream, views) if self.options.timing else None
        if self.scales is not None:
            self.scales.task = index
        if self.options.functional:
            self._execute(decoded, stream, views, timed)
        run = TaskRun(index, 0, self.now, decoded, stream, timed, task.block, task.blocks)
        self.runs.append(run)
        self.now += run.cycles
        self._count(prepared, stream)

    def result(self, graph: TaskGraph) -> SimResult:
        """Return what the launch found, after its last task."""
        accounts = no_accounts(1)
        for run in self.runs:
            if run.timing is not None:
                accounts[run.core] += run.timing.accounts
        outputs = (
            {name: self.gm.view(buffer).copy() for name, buffer in graph.outputs.items()}
            if self.options.functional
            else {}
        )
        return SimResult(
            outputs=outputs,
            cycles=self.now,
            launch_cycles=costs.launch_cycles(self.target) if self.options.timing else 0,
            accounts=accounts,
            macs=self.macs,
            moved=self.moved,
            instructions=self.instructions,
            warnings=tuple(self.warnings.values()),
            tasks=tuple(self.runs),
        )

    def _resolve(self, decoded: Decoded, task: Task) -> Stream:
        try:
            return resolve(
                decoded,
                task.scalars,
                block=task.block,
                blocks=task.blocks,
                scalar_cycles=self.target.scalar_cycles,
                branch_cycles=self.target.branch_taken_cycles,
                max_instructions=self.options.max_instructions,
            )
        except ScalarFault as fault:
            record = fault.record.tolist()
            raise fault_of(decoded.kernel, record[1], record, ()) from None

    def _time(self, prepared: _Prepared, stream: Stream, views: Table) -> timing.Timing:
        decoded = prepared.decoded
        timed = timing.run(
            decoded,
            stream,
            occupancy=prepared.occupancy,
            transfers=bind_transfers(prepared.transfers, decoded, views),
            setting=timing.setting_of(self.target),
            l2=self.l2,
        )
        if not timed.finished:
            raise deadlock(decoded, stream, timed)
        for fault in leftover_flags(decoded, stream, timed):
            self._doubt(fault)
        if self.options.checks is not Checks.OFF:
            limit = self.target.flag_counter_max
            for warning in overruns(decoded, stream, timed, limit=limit):
                self.warnings.setdefault(warning.message, warning)
        return timed

    def _execute(
        self, decoded: Decoded, stream: Stream, views: Table, timed: timing.Timing | None
    ) -> None:
        def on_problem(problem: Problem) -> None:
            if problem.padding:
                index = int(stream.static[problem.record])
                warning = padding_warning(decoded.kernel, index, problem.fault)
                self.warnings.setdefault(f"{decoded.kernel.name} {index} padding", warning)
            elif problem.fault[0] == UNWRITTEN:
                self._doubt(_fault(decoded, stream, problem))
            else:
                raise _fault(decoded, stream, problem)

        self.core.local.forget()
        self.core.execute(
            decoded,
            stream,
            views,
            execution_order(decoded, stream, timed),
            track=self.options.checks is not Checks.OFF,
            on_problem=on_problem,
        )

    def _doubt(self, fault: SimulationFault) -> None:
        """Raise, keep or drop a fault that `checks` decides about."""
        match self.options.checks:
            case Checks.ERROR:
                raise fault
            case Checks.WARN:
                self.warnings.setdefault(fault.message, fault)
            case Checks.OFF:
                pass

    def _count(self, prepared: _Prepared, stream: Stream) -> None:
        times = np.bincount(stream.static, minlength=len(prepared.decoded))
        self.macs += int((times * prepared.macs).sum())
        self.instructions += stream.executed
        for path, size, count in zip(prepared.paths, prepared.moved, times, strict=True):
            if path is not None and count:
                self.moved[path] = self.moved.get(path, 0) + size * int(count)


def execution_order(decoded: Decoded, stream: Stream, timed: timing.Timing | None) -> Line:
    """Return the records that move or multiply data, in the order of their effects.

    An instruction is executed as a whole when its pipe is done with it, ties by pipe, then by
    program order. For a program whose flags are right that is some order that they allow; where
    one is missing, a reader that does not wait finds what was there before. Without times it is
    program order.
    """
    acting = np.flatnonzero(decoded.action[stream.static])
    if timed is None:
        return acting
    pipe = decoded.pipe[stream.static[acting]]
    return acting[np.lexsort((acting, pipe, timed.times.done[acting]))]


def _images(host: HostProgram, buffers: Mapping[str, Bytes]) -> dict[str, Bytes]:
    """Return the caller's buffers, flat and checked."""
    tensors = {param.name: param for param in host.params if param.is_tensor}
    for name in buffers:
        if name not in tensors:
            known = ", ".join(tensors) or "none"
            message = f"A buffer must be for a tensor of {host.name!r} ({known}), not {name!r}."
            raise InputError(message)
    images: dict[str, Bytes] = {}
    for name, param in tensors.items():
        if name not in buffers:
            if param.direction.reads:
                message = f"The buffer {name!r} of {host.name!r} must be given, since it is read."
                raise InputError(message)
            continue
        image = buffers[name]
        if image.dtype != np.uint8 or image.size != param.size_bytes:
            message = (
                f"The buffer {name!r} of {host.name!r} must be {param.size_bytes} bytes of uint8, "
                f"not {image.size} of {image.dtype}."
            )
            raise InputError(message)
        images[name] = image.reshape(-1)
    return images


def _fault(decoded: Decoded, stream: Stream, problem: Problem) -> SimulationFault:
    index = int(stream.static[problem.record])
    registers = stream.registers[problem.record].tolist()
    return fault_of(decoded.kernel, index, problem.fault, registers)
