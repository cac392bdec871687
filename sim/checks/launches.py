"""Global memory between the tasks of a launch: what nothing orders must not touch what another writes.

Blocks of one grid are in no order, and tasks of different launches only where one depends on the other,
perhaps by way of others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from ...codegen.isa.vocabulary import Space
from ...ir.errors import SimulationFault
from ..datapaths.kernels import BASE
from ..faults import describe
from .footprints import Shapes, matters_of, number_places, stretch
from .overlaps import OWNER, START, STRETCH_WORDS, find_conflicts, first_common

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ...codegen.executable import Executable, Kernel, Task
    from ..pipes.timing import Program
    from .footprints import Parts

MOST: Final = 256
"""Pairs of accesses that are looked for in a launch; one is enough to know."""


@dataclass(frozen=True, slots=True)
class _Touch:
    """An access of a buffer in GM: who, where in the source, and the address where it begins."""

    task: int
    kernel: Kernel
    item: int
    buffer: str
    base: int


class LaunchCheck:
    """Looks for accesses of different tasks of a launch that are in no order.

    Args:
        executable: What is run.
        tasks: The tasks of the launch.
    """

    def __init__(self, executable: Executable, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._launches = launches_of(tasks)
        access = {
            n: buffers_used(executable.kernels[n]) for n in sorted({each.kernel for each in tasks})
        }
        self._groups = _unordered(tasks, self._launches, access)
        self._contested: dict[int, set[str]] = {}
        for launches, buffers in self._groups.items():
            for launch in launches:
                self._contested.setdefault(launch, set()).update(buffers)
        self._stretches: dict[int, list[tuple[int, ...]]] = {}
        self._touches: list[_Touch] = []

    def add(self, index: int, programs: Sequence[Program]) -> None:
        """Note what a task touches of the buffers that tasks contend for.

        Args:
            index: The task.
            programs: What the cores of its cluster run.
        """
        contested = self._contested.get(self._launches[index])
        if not contested:
            return
        task, found = self._tasks[index], self._stretches.setdefault(index, [])
        for program in programs:
            shapes = Shapes.kept(program)
            parts = _of_buffers(program, shapes.of, task, contested)
            matters = matters_of(parts)
            stream = program.stream
            _, distinct = number_places(stream.static, stream.registers, matters)
            bases: list[int] = program.views[:, BASE].tolist()
            places: list[list[int]] = distinct.tolist()
            for item, r0, r1 in places:
                for part in parts[item]:
                    base = bases[part.view]
                    name = _buffer_of(program.decoded.kernel, part.view, task)
                    touch = _Touch(index, program.decoded.kernel, item, name, base)
                    place = stretch(part, r0, r1, base)
                    found.append((*place, len(self._touches), index))
                    self._touches.append(touch)

    def faults(self) -> Iterator[SimulationFault]:
        """Yield a fault for the first pair of accesses of each two launches, once all tasks are added."""
        for launches in self._groups:
            rows = [
                row
                for index, each in self._stretches.items()
                if self._launches[index] in launches
                for row in each
            ]
            if rows:
                yield from self._clashes(np.array(rows, np.int64).reshape(-1, STRETCH_WORDS))

    def _clashes(
        self, places: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    ) -> Iterator[SimulationFault]:
        places = places[np.argsort(places[:, START], kind="stable")]
        row = {int(owner): number for number, owner in enumerate(places[:, OWNER])}
        told: set[tuple[int, int]] = set()
        pairs: list[list[int]] = find_conflicts(places, MOST).tolist()
        for one, other in pairs:
            first, then = sorted((self._touches[one], self._touches[other]), key=lambda t: t.task)
            if (first.item, then.item) not in told:
                told.add((first.item, then.item))
                byte = int(first_common(places[row[one]], places[row[other]]))
                yield self._fault(first, then, byte - first.base)

    def _fault(self, first: _Touch, then: _Touch, byte: int) -> SimulationFault:
        one, other = (describe(each.kernel, each.item) for each in (first, then))
        whose = [self._who(each.task) for each in (first, then)]
        message = (
            f"Tasks that are in no order must not touch bytes that one of them writes, but {whose[0]} "
            f"touches byte {byte} of {first.buffer!r} by {one}, and {whose[1]} by {other}."
        )
        return SimulationFault(
            message, then.kernel.span(then.item), hint=_hint(self._same(first, then))
        )

    def _same(self, first: _Touch, then: _Touch) -> bool:
        return self._launches[first.task] == self._launches[then.task]

    def _who(self, index: int) -> str:
        task = self._tasks[index]
        block = f"block {task.block} of " if task.blocks > 1 else ""
        return f"{block}task {index - task.block}"


def _hint(is_same_grid: bool) -> str:
    if is_same_grid:
        return "give each block a part of the tensor of its own, by its block index"
    return "let the later launch depend on the earlier one"


def launches_of(tasks: Sequence[Task]) -> list[int]:
    """Return the launch of each task; one begins with each first block."""
    found: list[int] = []
    for task in tasks:
        begins = task.block == 0 or not found
        found.append((found[-1] + 1 if found else 0) if begins else found[-1])
    return found


def buffers_used(kernel: Kernel) -> dict[int, bool]:
    """Return the numbers of the tensors that the instructions of a kernel touch, and if they write.

    It stays with the kernel.
    """
    kept = kernel.kept.get(buffers_used)
    if kept is not None:
        return cast("dict[int, bool]", kept)
    order = {id(param): number for number, param in enumerate(kernel.tensors)}
    found: dict[int, bool] = {}
    for program in kernel.programs:
        for each in program.program:
            if each.row.has("view"):
                number = order[id(kernel.params[kernel.views[each["view"]].param])]
                found[number] = found.get(number, False) or Space.GM in each.row.writes
    kernel.kept[buffers_used] = found
    return found


def _unordered(
    tasks: Sequence[Task], launches: Sequence[int], access: dict[int, dict[int, bool]]
) -> dict[tuple[int, ...], set[str]]:
    """Return the launches that contend for buffers, alone with themselves or two, and which."""
    found: dict[tuple[int, ...], set[str]] = {}
    firsts = [index for index, task in enumerate(tasks) if index == 0 or task.block == 0]
    before: list[set[int]] = []
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for launch, index in enumerate(firsts):
        task = tasks[index]
        before.append({launches[each] for each in task.depends})
        writes: dict[str, bool] = {}
        for number, is_written in access[task.kernel].items():
            name = task.buffers[number]
            writes[name] = writes.get(name, False) or is_written
        for name, is_written in writes.items():
            if is_written and task.blocks > 1:
                found.setdefault((launch,), set()).add(name)
            earlier = [writer[name]] if name in writer else []
            earlier += readers.get(name, []) if is_written else []
            for other in earlier:
                if not _is_behind(before, launch, other):
                    found.setdefault((other, launch), set()).add(name)
            if is_written:
                writer[name], readers[name] = launch, []
            else:
                readers.setdefault(name, []).append(launch)
    return found


def _is_behind(before: Sequence[set[int]], launch: int, other: int) -> bool:
    """Return whether a launch depends on another one, perhaps by way of others."""
    pile, seen = [launch], {launch}
    while pile:
        each = pile.pop()
        if other in before[each]:
            return True
        more = {early for early in before[each] if early > other} - seen
        seen |= more
        pile += more
    return False


def _of_buffers(program: Program, parts: Parts, task: Task, names: Iterable[str]) -> Parts:
    kernel, wanted = program.decoded.kernel, set(names)
    return tuple(
        tuple(
            part
            for part in each
            if part.memory == Space.GM and _buffer_of(kernel, part.view, task) in wanted
        )
        for each in parts
    )


def _buffer_of(kernel: Kernel, view: int, task: Task) -> str:
    param = kernel.params[kernel.views[view].param]
    return task.buffers[next(n for n, each in enumerate(kernel.tensors) if each is param)]
