"""The functional side of a launch: tasks are executed, on several threads of the host where that is sound.

Blocks of a grid are in no order. Where none touches in GM what another one writes, it is all one in which
order they are executed, or whether at once; what they find is taken in the order of a single thread.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import groupby
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from numba.core import config as numba_config

from ..codegen.isa.vocabulary import CoreKind
from ..ir.errors import InputError, SimulationFault
from .checks.launches import launches_of
from .cluster import effects, fault_in
from .faultcodes import UNWRITTEN
from .faults import padding_warning

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from ..codegen.executable import Task
    from ..ir.target import Target
    from .core import Core, Problem
    from .pipes.timing import Program, Timing
    from .scales.recorder import ScaleRecorder

_config: Any = numba_config

Found: TypeAlias = "tuple[dict[str, SimulationFault], SimulationFault | None]"
"""What is suspicious about a task, by name, and the fault that ended it."""

LARGE: Final = 1 << 26
"""Multiplications of a launch from which on threads of the host are worth while."""


def threads_of_host() -> int:
    """Return how many threads compiled code may use, which `NUMBA_NUM_THREADS` limits."""
    return max(1, int(_config.NUMBA_NUM_THREADS))


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


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The tasks of a launch, ready to be executed.

    Attributes:
        tasks: The tasks.
        programs: What the cores of a cluster run of each.
        timed: Their times, if they are known.
        target: The machine.
        checks: What becomes of reads of what was never written.
    """

    tasks: Sequence[Task]
    programs: Sequence[Sequence[Program]]
    timed: Sequence[Timing] | None
    target: Target
    checks: Checks

    def is_compiled(self, core: Core) -> bool:
        """Return whether compiled code does all of the work, so that threads are of any use."""
        kernels = {id(each.decoded): each.decoded for task in self.programs for each in task}
        return all(core.is_compiled(each) for each in kernels.values())

    def done(
        self,
        order: Sequence[int],
        new_core: Callable[[], Core],
        threads: int,
        scales: ScaleRecorder | None,
    ) -> Generator[Found]:
        """Execute the tasks in some order and yield what each finds, in that order.

        Args:
            order: The tasks.
            new_core: Makes the memories of a cluster.
            threads: How many may work at once, on blocks of one grid that follow one another. More than
                one where none of them touches in GM what another one writes.
            scales: Who keeps the scales of every mad, if anyone; for a single thread.
        """
        threads = min(threads, len(order))
        if threads <= 1:
            core = new_core()
            for index in order:
                if scales is not None:
                    scales.task = index
                yield self._found(index, core)
            return
        launch = launches_of(self.tasks)
        cores: SimpleQueue[Core] = SimpleQueue()
        for _ in range(threads):
            cores.put(new_core())

        def found(index: int) -> Found:
            core = cores.get()
            try:
                return self._found(index, core)
            finally:
                cores.put(core)

        pool = ThreadPoolExecutor(threads, thread_name_prefix="scalebox")
        try:
            for _, grid in groupby(order, key=launch.__getitem__):
                for each in [pool.submit(found, index) for index in grid]:
                    yield each.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _found(self, index: int, core: Core) -> Found:
        """Execute a task; return what is suspicious about it, and the fault that ended it."""
        timed = None if self.timed is None else self.timed[index]
        warnings: dict[str, SimulationFault] = {}
        try:
            with in_block(self.tasks[index]):
                self._execute(self.programs[index], timed, core, warnings)
        except SimulationFault as fault:
            return warnings, fault
        return warnings, None

    def _execute(
        self,
        programs: Sequence[Program],
        timed: Timing | None,
        core: Core,
        warnings: dict[str, SimulationFault],
    ) -> None:
        def on_problem(number: int, problem: Problem) -> None:
            if problem.padding:
                kernel = programs[number].decoded.kernel
                index = int(programs[number].stream.static[problem.record])
                warning = padding_warning(kernel, index, problem.fault)
                warnings.setdefault(f"{kernel.name} {index} padding", warning)
                return
            fault = fault_in(programs, number, problem)
            if problem.fault[0] != UNWRITTEN or self.checks is Checks.ERROR:
                raise fault
            if self.checks is Checks.WARN:
                warnings.setdefault(fault.message, fault)

        kinds = {each.decoded.kernel.core for each in programs}
        core.local.forget(cube=CoreKind.AIC in kinds, vector=CoreKind.AIV in kinds)
        for number, records in effects(programs, timed, self.target):
            core.execute(
                programs[number].decoded,
                programs[number].stream,
                programs[number].views,
                records,
                track=self.checks is not Checks.OFF,
                on_problem=partial(on_problem, number),
            )


@contextmanager
def in_block(task: Task) -> Generator[None]:
    """Tell with a fault in which block of a grid it happens."""
    try:
        yield
    except SimulationFault as fault:
        if task.blocks > 1:
            where = f"it happens in block {task.block} of {task.blocks}"
            fault.note = where if fault.note is None else f"{fault.note}; {where}"
        raise
