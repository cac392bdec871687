"""A launch on the machine: the tasks of the host program on the clusters of the device."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..ir.numerics.elements import Summation
from . import costs
from .budget import launch_over_budget, over_budget, running_at
from .checks import LaunchCheck, TaskCheck
from .checks.launches import buffers_used
from .cluster import fault_in, prepare
from .core import Core
from .decode import PIPES
from .diagnosis import deadlock, leftover_flags, overruns
from .execution import LARGE, Checks, Work, in_block, threads_of_host
from .matmul import NumericsCube
from .memory import GlobalMemory, images_of
from .pipes.l2 import L2
from .pipes.tables import ACCOUNT_WORDS, CORES
from .pipes.task_order import in_step, task_order
from .pipes.timing import Job, run_all
from .progress import SILENT
from .report import CoreName, CoreRun, SimResult, TaskRun, Traffic
from .scalar import DEFAULT_MAX_INSTRUCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from ..codegen.executable import Executable, HostProgram, TaskGraph
    from ..ir.errors import SimulationFault
    from ..ir.target import Target
    from .cluster import Prepared
    from .matmul import CubeEngine
    from .pipes.timing import DeviceTiming, Program, Timing
    from .progress import Progress
    from .scales.recorder import ScaleRecorder

    Bytes = npt.NDArray[np.uint8]


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
    threads: int | None = None,
    progress: Progress = SILENT,
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
            are faults, warnings or ignored; local memories hold zeros when a task begins. What leaves
            its memory, divides by zero or waits for ever is always a fault.
        warm: Whether inputs lie in the second-level cache before the launch, as far as they fit there;
            otherwise it is empty.
        sum: The order in which products meet the accumulator, for the default cube.
        cube: Who multiplies, instead of the default engine.
        scales: Who keeps the scales that every mad finds, if anyone.
        max_instructions: Instructions that each core may execute in a task, scalar ones included.
        max_cycles: Cycles that the launch may take, if there is a limit; without timing there is none.
        threads: Threads of the host that may compute outputs, 1 or more; by default as many as numba
            may use where that is worth while. Nothing that is found depends on it.
        progress: Who is told how many tasks are checked and executed.

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
    gm = GlobalMemory(
        sizes, images, filled=functional, lent=set(images) - _written(executable, graph)
    )
    cycles = max_cycles if timing else None
    options = _Options(
        functional, timing, Checks.of(checks), max_instructions, cycles, warm, threads
    )
    summation = Summation.of(sum)
    engine = cube if cube is not None else NumericsCube(summation)
    core = partial(Core, target, gm, engine, scales, order=summation)
    launch = _Launch(executable, graph, target, gm, core, options, scales, progress)
    launch.prepare()
    if timing:
        launch.time(host)
        order = launch.began_order()
    if functional:
        launch.execute(order)
    return launch.result(order)


def _written(executable: Executable, graph: TaskGraph) -> set[str]:
    """Return the buffers that some task of a launch writes."""
    return {
        task.buffers[number]
        for task in graph.tasks
        for number, is_written in buffers_used(executable.kernels[task.kernel]).items()
        if is_written
    }


@dataclass(frozen=True, slots=True)
class _Options:
    functional: bool
    timing: bool
    checks: Checks
    max_instructions: int
    max_cycles: int | None
    warm: bool
    threads: int | None


class _Launch:
    """The state of one launch, whose tasks go through `prepare`, `time` and `execute` as a whole."""

    def __init__(
        self,
        executable: Executable,
        graph: TaskGraph,
        target: Target,
        gm: GlobalMemory,
        new_core: Callable[[], Core],
        options: _Options,
        scales: ScaleRecorder | None,
        progress: Progress,
    ) -> None:
        self.executable = executable
        self.graph = graph
        self.target = target
        self.gm = gm
        self.new_core = new_core
        self.core = new_core()
        self.options = options
        self.scales = scales
        self.progress = progress
        self.l2 = L2(gm.size, target.l2_block_bytes, target.l2_bytes, target.l2_line_bytes)
        self.warnings: dict[str, SimulationFault] = {}
        self.macs = self.instructions = 0
        self.moved: dict[str, int] = {}
        off = options.checks is Checks.OFF
        self.between = None if off else LaunchCheck(executable, graph.tasks)
        self.is_disjoint = False
        self.programs: list[list[Program]] = []
        self.timed: DeviceTiming | None = None
        self._prepared = {
            index: prepare(executable.kernels[index], target)
            for index in sorted({task.kernel for task in graph.tasks})
        }

    def prepare(self) -> None:
        """Find out what every task runs, and that it stays inside of its memories."""
        most, limit = self.options.max_instructions, self.options.max_cycles
        launch = costs.launch_cycles(self.target)
        if limit is not None and launch > limit:
            raise launch_over_budget(launch, limit)
        self.progress.phase("checking tasks", len(self.graph.tasks))
        for task in self.graph.tasks:
            prepared = self._prepared[task.kernel]
            addresses = [self.gm.allocations[name].address for name in task.buffers]
            with in_block(task):
                programs = [
                    each.program(task, addresses, max_instructions=most, max_cycles=limit)
                    for each in prepared
                ]
                for number, each in enumerate(programs):
                    problem = self.core.check_bounds(each.decoded, each.stream, each.views)
                    if problem is not None:
                        raise fault_in(programs, number, problem)
                self._check(len(self.programs), programs)
            self.programs.append(programs)
            for each, program in zip(prepared, programs, strict=True):
                self._count(each, program)
            self.progress.advance()
        if self.between is not None:
            self.is_disjoint = True
            for fault in self.between.faults():
                self.is_disjoint = False
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
        self.progress.phase("counting cycles")
        self.timed = run_all(jobs, target=self.target, l2=self.l2)
        for task, programs, timed in zip(tasks, self.programs, self.timed.tasks, strict=True):
            if timed.began < 0:
                continue
            with in_block(task):
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
        index = running_at(timed, limit - launch)
        programs, task = self.programs[index], timed.tasks[index]
        cluster = self._cluster_of(task)
        with in_block(self.graph.tasks[index]):
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
        work = Work(
            self.graph.tasks,
            self.programs,
            None if self.timed is None else self.timed.tasks,
            self.target,
            self.options.checks,
        )
        cycles = 0 if self.timed is None else self.timed.cycles
        self.progress.phase("computing outputs", len(order), cycles=cycles)
        threads = self._threads(work)
        with closing(work.done(order, self.new_core, threads, self.scales)) as found:
            for warnings, fault in found:
                for name, warning in warnings.items():
                    self.warnings.setdefault(name, warning)
                if fault is not None:
                    raise fault
                self.progress.advance()

    def _threads(self, work: Work) -> int:
        """Return how many threads of the host compute outputs."""
        wanted = self.options.threads
        if wanted is None:
            wanted = threads_of_host() if self.macs >= LARGE else 1
        if wanted == 1 or self.scales is not None or not work.is_compiled(self.core):
            return 1
        return wanted if self._are_disjoint() else 1

    def _are_disjoint(self) -> bool:
        """Return whether no block of a grid touches in GM what another one writes."""
        if self.between is not None:
            return self.is_disjoint
        check = LaunchCheck(self.executable, self.graph.tasks)
        for index, programs in enumerate(self.programs):
            check.add(index, programs)
        return next(check.faults(), None) is None

    def result(self, order: Sequence[int]) -> SimResult:
        """Return what the launch found."""
        outputs = (
            {name: self.gm.released(buffer) for name, buffer in self.graph.outputs.items()}
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


def _accounts(cores: Sequence[CoreName], timed: DeviceTiming | None) -> npt.NDArray[np.int64]:
    """Return what the pipes of some cores did."""
    if timed is None:
        return np.zeros((len(cores), PIPES, ACCOUNT_WORDS), np.int64)
    return timed.accounts[[name.cluster * CORES + name.core for name in cores]]
