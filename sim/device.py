"""A launch on the machine: the tasks of the host program on the clusters of the device."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..ir.errors import InputError, SimulationFault
from ..ir.numerics.elements import Summation
from . import costs
from .budget import launch_over_budget, over_budget, running_at
from .checks import LaunchCheck, TaskCheck
from .cluster import effects, fault_in, prepare
from .core import Core
from .decode import PIPES
from .diagnosis import deadlock, leftover_flags, overruns
from .faultcodes import UNWRITTEN
from .faults import padding_warning
from .matmul import NumericsCube
from .memory import GlobalMemory, images_of
from .pipes.l2 import L2
from .pipes.tables import ACCOUNT_WORDS, CORES
from .pipes.task_order import in_step, task_order
from .pipes.timing import Job, run_all
from .report import CoreName, CoreRun, SimResult, TaskRun, Traffic
from .scalar import DEFAULT_MAX_INSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    import numpy.typing as npt

    from ..codegen.executable import Executable, HostProgram, Task, TaskGraph
    from ..ir.target import Target
    from .cluster import Prepared
    from .core import Problem
    from .matmul import CubeEngine
    from .pipes.timing import DeviceTiming, Program, Timing
    from .scales.recorder import ScaleRecorder

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
    warm: bool = False,
    sum: Summation | str = Summation.GROUP,  # noqa: A002 - the public name of the choice
    cube: CubeEngine | None = None,
    scales: ScaleRecorder | None = None,
    max_instructions: int = DEFAULT_MAX_INSTRUCTIONS,
    max_cycles: int | None = None,
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
        checks: Whether reads of never-written bytes, flags left over and what :mod:`.checks` finds
            are faults, warnings or ignored. What leaves its memory, divides by zero or waits for ever
            is always a fault.
        warm: Whether inputs lie in the second-level cache before the launch, as far as they fit there;
            otherwise it is empty.
        sum: The order in which products meet the accumulator, for the default cube.
        cube: Who multiplies, instead of the default engine.
        scales: Who keeps the scales that every mad finds, if anyone.
        max_instructions: Instructions that each core may execute in a task, scalar ones included.
        max_cycles: Cycles that the launch may take, if there is a limit; without timing there is none.

    Raises:
        InputError: If a buffer or a scalar is missing, unknown or of the wrong size, if tasks wait for
            each other in a circle, or if more blocks must begin together than there are clusters.
        ExecutableError: If an instruction does not suit its view or the machine.
        SimulationFault: If the program does something that the machine cannot do.
    """
    host, graph = executable.entry(entry), executable.expand(entry, scalars)
    order = task_order(graph.tasks)
    images = images_of(host, buffers) if functional else {}
    sizes = {buffer.name: buffer.size_bytes for buffer in graph.buffers}
    gm = GlobalMemory(sizes, images, filled=functional)
    options = _Options(functional, timing, Checks.of(checks), max_instructions, max_cycles, warm)
    summation = Summation.of(sum)
    cluster = Core(
        target, gm, cube if cube is not None else NumericsCube(summation), scales, order=summation
    )
    launch = _Launch(executable, graph, target, gm, cluster, options, scales)
    launch.prepare()
    if timing:
        launch.time(host)
        order = launch.began_order()
    if functional:
        launch.execute(order)
    return launch.result(order)


@dataclass(frozen=True, slots=True)
class _Options:
    functional: bool
    timing: bool
    checks: Checks
    max_instructions: int
    max_cycles: int | None
    warm: bool


class _Launch:
    """The state of one launch, whose tasks go through `prepare`, `time` and `execute` as a whole."""

    def __init__(
        self,
        executable: Executable,
        graph: TaskGraph,
        target: Target,
        gm: GlobalMemory,
        cluster: Core,
        options: _Options,
        scales: ScaleRecorder | None,
    ) -> None:
        self.executable = executable
        self.graph = graph
        self.target = target
        self.gm = gm
        self.cluster = cluster
        self.options = options
        self.scales = scales
        self.l2 = L2(gm.size, target.l2_block_bytes, target.l2_bytes, target.l2_line_bytes)
        self.warnings: dict[str, SimulationFault] = {}
        self.macs = self.instructions = 0
        self.moved: dict[str, int] = {}
        off = options.checks is Checks.OFF
        self.between = None if off else LaunchCheck(executable, graph.tasks)
        self.programs: list[list[Program]] = []
        self.timed: DeviceTiming | None = None
        self._prepared = {
            index: prepare(executable.kernels[index], target)
            for index in sorted({task.kernel for task in graph.tasks})
        }

    def prepare(self) -> None:
        """Find out what every task runs, and that it stays inside of its memories."""
        limit = self.options.max_instructions
        for task in self.graph.tasks:
            prepared = self._prepared[task.kernel]
            addresses = [self.gm.allocations[name].address for name in task.buffers]
            with _in_block(task):
                programs = [e.program(task, addresses, max_instructions=limit) for e in prepared]
                for number, each in enumerate(programs):
                    problem = self.cluster.check_bounds(each.decoded, each.stream, each.views)
                    if problem is not None:
                        raise fault_in(programs, number, problem)
                self._check(len(self.programs), programs)
            self.programs.append(programs)
            for each, program in zip(prepared, programs, strict=True):
                self._count(each, program)
        if self.between is not None:
            for fault in self.between.faults():
                self._doubt(fault)

    def time(self, host: HostProgram) -> None:
        """Find out when everything happens."""
        tasks = self.graph.tasks
        if not tasks:
            return
        if self.options.warm:
            for param in host.params:
                if param.is_tensor and param.direction.reads:
                    allocation = self.gm.allocations[param.name]
                    self.l2.warm(allocation.address, allocation.size)
        jobs = [
            Job(programs, task.depends, in_step(task, self.target))
            for task, programs in zip(tasks, self.programs, strict=True)
        ]
        self.timed = run_all(jobs, target=self.target, l2=self.l2)
        for task, programs, timed in zip(tasks, self.programs, self.timed.tasks, strict=True):
            if timed.began < 0:
                continue
            with _in_block(task):
                if not timed.finished:
                    raise deadlock(programs, timed, cluster=self._cluster_of(timed))
                for fault in leftover_flags(programs, timed):
                    self._doubt(fault)
                if self.options.checks is not Checks.OFF:
                    limit = self.target.flag_counter_max
                    for warning in overruns(programs, timed, limit=limit):
                        self.warnings.setdefault(warning.message, warning)
        self._keep_to_budget(self.timed)

    def _keep_to_budget(self, timed: DeviceTiming) -> None:
        """Refuse a launch that takes more cycles than it may."""
        launch, limit = costs.launch_cycles(self.target), self.options.max_cycles
        if limit is None or launch + timed.cycles <= limit:
            return
        if launch > limit:
            raise launch_over_budget(launch, limit)
        index = running_at(timed, limit - launch)
        programs, task = self.programs[index], timed.tasks[index]
        cluster = self._cluster_of(task)
        with _in_block(self.graph.tasks[index]):
            raise over_budget(programs, task, launch_cycles=launch, limit=limit, cluster=cluster)

    def _cluster_of(self, task: Timing) -> int | None:
        """Return where a task ran, if that needs to be said."""
        return task.cluster if len(task.state.clusters) > 1 else None

    def began_order(self) -> list[int]:
        """Return the tasks in the order in which they began, by number among equals."""
        if self.timed is None:
            return []
        began = [task.began for task in self.timed.tasks]
        return sorted(range(len(began)), key=began.__getitem__)

    def execute(self, order: Sequence[int]) -> None:
        """Let the instructions of all tasks have their effects."""
        for index in order:
            if self.scales is not None:
                self.scales.task = index
            timed = None if self.timed is None else self.timed.tasks[index]
            with _in_block(self.graph.tasks[index]):
                self._execute(self.programs[index], timed)

    def result(self, order: Sequence[int]) -> SimResult:
        """Return what the launch found."""
        outputs = (
            {name: self.gm.view(buffer).copy() for name, buffer in self.graph.outputs.items()}
            if self.options.functional
            else {}
        )
        launch = costs.launch_cycles(self.target) if self.options.timing else 0
        timings = self._timings()
        clusters = [0 if timed is None else timed.cluster for timed in timings]
        cores = sorted(
            {
                CoreName(cluster, program.core)
                for cluster, programs in zip(clusters, self.programs, strict=True)
                for program in programs
            }
        )
        number_of = {core: number for number, core in enumerate(cores)}
        runs: list[TaskRun] = []
        for index in order:
            task, timed, cluster = self.graph.tasks[index], timings[index], clusters[index]
            parts = tuple(
                CoreRun(
                    number_of[CoreName(cluster, each.core)], each.core, each.decoded, each.stream,
                    each.code,
                )
                for each in self.programs[index]
            )  # fmt: skip
            start = launch + (timed.began if timed is not None else 0)
            runs.append(TaskRun(index, start, parts, timed, task.block, task.blocks, cluster))
        timing = self.timed
        return SimResult(
            outputs=outputs,
            cycles=launch + (timing.cycles if timing is not None else 0),
            launch_cycles=launch,
            cores=tuple(cores),
            accounts=_accounts(cores, timing),
            macs=self.macs,
            moved=self.moved,
            instructions=self.instructions,
            warnings=tuple(self.warnings.values()),
            tasks=tuple(runs),
            traffic=None
            if timing is None
            else Traffic(self.l2.moved_bytes, self.l2.fetched_bytes, self.l2.written_bytes),
            warm=self.options.warm,
        )

    def _check(self, index: int, programs: Sequence[Program]) -> None:
        """Look for what is wrong with a task whatever its times and its data are."""
        if self.between is None:
            if not self.options.timing:  # else `time` finds out who waits for ever
                TaskCheck(programs, self.target)
            return
        self.between.add(index, programs)
        check = TaskCheck(programs, self.target)
        for fault in check.faults():
            self._doubt(fault)
        if not self.options.timing:
            for warning in check.overruns():
                self.warnings.setdefault(warning.message, warning)

    def _execute(self, programs: Sequence[Program], timed: Timing | None) -> None:
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

    def _timings(self) -> Sequence[Timing | None]:
        return [None] * len(self.programs) if self.timed is None else self.timed.tasks


@contextmanager
def _in_block(task: Task) -> Generator[None]:
    """Tell with a fault in which block of a grid it happens."""
    try:
        yield
    except SimulationFault as fault:
        if task.blocks > 1:
            where = f"it happens in block {task.block} of {task.blocks}"
            fault.note = where if fault.note is None else f"{fault.note}; {where}"
        raise


def _accounts(cores: Sequence[CoreName], timed: DeviceTiming | None) -> npt.NDArray[np.int64]:
    """Return what the pipes of some cores did."""
    if timed is None:
        return np.zeros((len(cores), PIPES, ACCOUNT_WORDS), np.int64)
    return timed.accounts[[name.cluster * CORES + name.core for name in cores]]
