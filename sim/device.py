"""A launch on the machine: the tasks of the host program, one after another, on one cluster."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..codegen.isa.vocabulary import ClusterCore
from ..ir.errors import InputError, SimulationFault
from ..ir.numerics.elements import Summation
from . import costs, timing
from .cluster import effects, fault_in, prepare
from .core import Core
from .diagnosis import deadlock, leftover_flags, overruns
from .faultcodes import UNWRITTEN
from .faults import padding_warning
from .l2 import L2
from .matmul import NumericsCube
from .memory import GlobalMemory
from .pipe_tables import IDLE
from .report import CoreRun, SimResult, TaskRun, no_accounts
from .scalar import DEFAULT_MAX_INSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ..codegen.executable import Executable, HostProgram, Task, TaskGraph
    from ..ir.target import Target
    from .cluster import Prepared
    from .core import Problem
    from .matmul import CubeEngine
    from .scale_recorder import ScaleRecorder
    from .timing import Program

    Bytes = npt.NDArray[np.uint8]


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
        timing: Whether to compute cycles. Without it instructions run in program order, cores taking
            turns where they wait for each other; with it, in the order in which the pipes finish
            them, so that a missing flag shows.
        checks: Whether reads of never-written bytes and flags left over are faults, warnings or
            ignored. What leaves its memory, divides by zero or waits for ever is always a fault.
        sum: The order in which products meet the accumulator, for the default cube.
        cube: Who multiplies, instead of the default engine.
        scales: Who keeps the scales that every mad finds, if anyone.
        max_instructions: Instructions that each core may execute in a task, scalar ones included.

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
        graph,
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
    return run.result()


@dataclass(frozen=True, slots=True)
class _Options:
    functional: bool
    timing: bool
    checks: Checks
    max_instructions: int
    order: Summation


class _Launch:
    """The state of one launch."""

    def __init__(
        self,
        executable: Executable,
        graph: TaskGraph,
        target: Target,
        gm: GlobalMemory,
        engine: CubeEngine,
        options: _Options,
        scales: ScaleRecorder | None,
    ) -> None:
        self.executable = executable
        self.graph = graph
        self.target = target
        self.gm = gm
        self.options = options
        self.scales = scales
        self.cluster = Core(target, gm, engine, scales, order=options.order)
        self.l2 = L2(gm.size, target.l2_block_bytes)
        self.now = costs.launch_cycles(target) if options.timing else 0
        self.runs: list[TaskRun] = []
        self.warnings: dict[str, SimulationFault] = {}
        self.macs = self.instructions = 0
        self.moved: dict[str, int] = {}
        self._prepared = {
            index: prepare(executable.kernels[index], target)
            for index in sorted({task.kernel for task in graph.tasks})
        }
        used = {each.core for programs in self._prepared.values() for each in programs}
        self.cores = tuple(sorted(used)) or (ClusterCore.AIC,)

    def task(self, index: int, task: Task) -> None:
        """Run one task to its end."""
        prepared = self._prepared[task.kernel]
        addresses = [self.gm.allocations[name].address for name in task.buffers]
        limit = self.options.max_instructions
        programs = [each.program(task, addresses, max_instructions=limit) for each in prepared]
        for number, each in enumerate(programs):
            problem = self.cluster.check_bounds(each.decoded, each.stream, each.views)
            if problem is not None:
                raise fault_in(programs, number, problem)
        timed = self._time(programs) if self.options.timing else None
        if self.scales is not None:
            self.scales.task = index
        if self.options.functional:
            self._execute(programs, timed)
        cores = tuple(
            CoreRun(self.cores.index(each.core), each.core, each.decoded, each.stream)
            for each in programs
        )
        run = TaskRun(index, self.now, cores, timed, task.block, task.blocks)
        self.runs.append(run)
        self.now += run.cycles
        for each, program in zip(prepared, programs, strict=True):
            self._count(each, program)

    def result(self) -> SimResult:
        """Return what the launch found, after its last task."""
        outputs = (
            {name: self.gm.view(buffer).copy() for name, buffer in self.graph.outputs.items()}
            if self.options.functional
            else {}
        )
        return SimResult(
            outputs=outputs,
            cycles=self.now,
            launch_cycles=costs.launch_cycles(self.target) if self.options.timing else 0,
            cores=self.cores,
            accounts=self._accounts(),
            macs=self.macs,
            moved=self.moved,
            instructions=self.instructions,
            warnings=tuple(self.warnings.values()),
            tasks=tuple(self.runs),
        )

    def _accounts(self) -> npt.NDArray[np.int64]:
        """Add up what the pipes did; a core without a program in a task has nothing to do then."""
        accounts = no_accounts(len(self.cores))
        for run in self.runs:
            if run.timing is not None:
                accounts[:, :, IDLE] += run.cycles
                for core, account in zip(run.cores, run.timing.accounts, strict=True):
                    accounts[core.number] += account
                    accounts[core.number, :, IDLE] -= run.cycles
        return accounts

    def _time(self, programs: Sequence[Program]) -> timing.Timing:
        timed = timing.run(programs, target=self.target, l2=self.l2)
        if not timed.finished:
            raise deadlock(programs, timed)
        for fault in leftover_flags(programs, timed):
            self._doubt(fault)
        if self.options.checks is not Checks.OFF:
            limit = self.target.flag_counter_max
            for warning in overruns(programs, timed, limit=limit):
                self.warnings.setdefault(warning.message, warning)
        return timed

    def _execute(self, programs: Sequence[Program], timed: timing.Timing | None) -> None:
        def on_problem(number: int, problem: Problem) -> None:
            if problem.padding:
                kernel = programs[number].decoded.kernel
                index = int(programs[number].stream.static[problem.record])
                warning = padding_warning(kernel, index, problem.fault)
                self.warnings.setdefault(f"{kernel.name} {index} padding", warning)
            elif problem.fault[0] == UNWRITTEN:
                self._doubt(fault_in(programs, number, problem))
            else:
                raise fault_in(programs, number, problem)

        self.cluster.local.forget()
        for number, records in effects(programs, timed, self.target):
            self.cluster.execute(
                programs[number].decoded,
                programs[number].stream,
                programs[number].views,
                records,
                track=self.options.checks is not Checks.OFF,
                on_problem=partial(on_problem, number),
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

    def _count(self, prepared: Prepared, program: Program) -> None:
        times = np.bincount(program.stream.static, minlength=len(program.decoded))
        self.macs += int((times * prepared.macs).sum())
        self.instructions += program.stream.executed
        for path, moved in prepared.moved.items():
            if size := int((times * moved).sum()):
                self.moved[path] = self.moved.get(path, 0) + size


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
