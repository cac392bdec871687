"""In which order the runs of a sweep are made, by one process or by several."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from numba.core import config as numba_config

from .sweep_rows import RowStatus, SweepRow, unfinished
from .worker_pool import Died, WorkerPool, free_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from .sweep_grid import Grid, Point
    from .sweep_run import Workshop

_TICK_SECONDS = 0.2


@dataclass(frozen=True)
class Group:
    """Runs of the same sizes, which have inputs and golden in common.

    Attributes:
        number: Its number.
        points: Its runs.
        place: The file of what they have in common; None where each process makes it itself.
    """

    number: int
    points: tuple[Point, ...]
    place: Path | None = None


@dataclass(frozen=True)
class Task:
    """Make a run of a group, or without one what its runs have in common."""

    group: Group
    point: Point | None = None


def groups_of(grid: Grid) -> list[Group]:
    """Return the runs of a grid in groups, in the order of the grid."""
    runs = groupby(grid.points(), key=lambda point: point.params)
    return [Group(number, tuple(points)) for number, (_, points) in enumerate(runs)]


def one_by_one(workshop: Workshop, groups: Sequence[Group]) -> Generator[SweepRow]:
    """Yield the rows of runs that this process makes, in order."""
    for group in groups:
        for point in group.points:
            yield workshop.row(group.number, point)


def side_by_side(
    workshop: Workshop, groups: Sequence[Group], jobs: int, tick: Callable[[], None]
) -> Generator[SweepRow]:
    """Yield the rows of runs that several processes make, in the order in which they end.

    The first run is made before there are others: they begin as copies of this process, and so find
    everything loaded and compiled that a run needs. What later groups have in common goes from the
    process that makes it to the others by files, which they map.

    Args:
        workshop: That of this process.
        groups: All runs.
        jobs: How many processes.
        tick: What is called a few times a second.
    """
    first = groups[0]
    yield workshop.row(first.number, first.points[0])
    rest = [replace(first, points=first.points[1:]), *groups[1:]]
    shares = workshop.settings.functional
    with TemporaryDirectory(prefix="scalebox-sweep-") as folder:
        queue = _Queue(rest, Path(folder) if shares else None)
        jobs = min(jobs, queue.runs)
        pool = WorkerPool[Task, SweepRow | None](
            jobs, lambda task: _do(workshop, task), lambda: _share_cores(jobs)
        )
        with pool:
            while queue.is_open:
                while pool.idle and (task := queue.take()) is not None:
                    pool.give(task)
                for task, answer in pool.answers(_TICK_SECONDS):
                    if isinstance(answer, Died):
                        yield from queue.lose(task, answer)
                        continue
                    queue.finish(task)
                    if answer is not None:
                        yield answer
                tick()


def _share_cores(jobs: int) -> None:
    """Let compiled code of this process use as many threads as it has cores for itself."""
    untyped: Any = numba_config
    untyped.NUMBA_NUM_THREADS = max(1, free_cores() // jobs)


def _do(workshop: Workshop, task: Task) -> SweepRow | None:
    """Do a task in the process that it was given to."""
    group = task.group
    if task.point is not None:
        return workshop.row(group.number, task.point, group.place)
    assert group.place is not None, "only what goes to a file is a task of its own"
    workshop.prepare(group.number, group.points[0].params, group.place)
    return None


class _Queue:
    """What is to be done: tasks that can begin, and those that wait for the file of their group.

    Args:
        groups: All groups, the first of which needs no file.
        folder: Where files go; None if none is needed.
    """

    def __init__(self, groups: Sequence[Group], folder: Path | None) -> None:
        self._waiting: deque[Task] = deque()
        self._left: dict[int, set[int]] = {}
        self._ready: set[int] = set()
        for group in groups:
            if folder is not None and group is not groups[0] and len(group.points) > 1:
                placed = replace(group, place=folder / f"{group.number}.bin")
                self._waiting.append(Task(placed))
            else:
                placed = group
                self._ready.add(group.number)
            self._waiting += [Task(placed, point) for point in group.points]
            self._left[group.number] = {point.index for point in group.points}

    @property
    def runs(self) -> int:
        """How many runs are left."""
        return sum(map(len, self._left.values()))

    @property
    def is_open(self) -> bool:
        """Whether runs are left."""
        return self.runs > 0

    def take(self) -> Task | None:
        """Return the next task that can begin; None where all wait for one that is under way."""
        for task in self._waiting:
            if task.point is None or task.group.number in self._ready:
                self._waiting.remove(task)
                return task
        return None

    def finish(self, task: Task) -> None:
        """Take note of a task that is done."""
        number, place = task.group.number, task.group.place
        if task.point is None:
            self._ready.add(number)
            return
        self._left[number].remove(task.point.index)
        if place is not None and not self._left[number]:
            place.unlink()

    def lose(self, task: Task, died: Died) -> Iterator[SweepRow]:
        """Yield the rows of runs that cannot be made, as the process of a task was ended."""
        problem = (
            f"The process of this run was ended by signal {died.signal}, as happens where memory runs "
            "out; fewer jobs at a time need less"
        )
        lost = task.group.points if task.point is None else (task.point,)
        self._waiting = deque(t for t in self._waiting if t.point not in lost)
        self._left[task.group.number] -= {point.index for point in lost}
        for point in lost:
            yield unfinished(point, RowStatus.REFUSED, problem)
