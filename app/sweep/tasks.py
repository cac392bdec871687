"""In which order the runs of a sweep are made, by one process or by several."""

from __future__ import annotations

from collections import deque
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from ...ir.checked_numba import numba
from ..worker_pool import Died, WorkerPool, free_cores
from .rows import RowStatus, SweepRow, unfinished
from .shared_arrays import NamelessFile
from .verdicts import Early, Golden

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from .grid import Grid, Point
    from .workshop import Workshop

_TICK_SECONDS = 0.2


@dataclass(frozen=True)
class Group:
    """Runs of the same sizes, which have inputs and golden in common.

    Attributes:
        number: Its number.
        points: Its runs.
    """

    number: int
    points: tuple[Point, ...]


class Work(Enum):
    """What a task is about."""

    SHARED = "make what the runs of a group have in common, for a file"
    GOLDEN = "make golden of a group whose runs do not wait for it"
    EARLY = "make a run without golden"
    RUN = "make a run"


@dataclass(frozen=True)
class Task:
    """Something that one process does.

    Attributes:
        work: What.
        group: For which group.
        point: For which run of it, if it is a run.
        place: The file of what the group has in common; None where each process makes it itself.
        problem: Why its group has no data or no golden, if that is known.
    """

    work: Work
    group: Group
    point: Point | None = None
    place: Path | None = None
    problem: str | None = None


Answer: TypeAlias = "SweepRow | Early | Golden | str | None"
"""A row, or what comes before one; of what runs have in common, why they cannot have it."""


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
    """Yield the rows of runs that several processes make, in the order in which they are known.

    The first run is made before there are others: they begin as copies of this process, and so find
    everything loaded and compiled that a run needs, and the inputs of the first group. Golden of these is
    made by one of them, beside the runs. What later groups have in common goes from the process that makes
    it to the others by files, which they map. These have no names, so that nothing is left over of a sweep
    that is killed.

    Args:
        workshop: That of this process.
        groups: All runs.
        jobs: How many processes.
        tick: What is called a few times a second.
    """
    first = workshop.early(0, groups[0].points[0])
    queue = _Queue(groups, first, shares=workshop.settings.functional)
    yield from queue.known()
    jobs = max(1, min(jobs, queue.runs))
    pool = WorkerPool[Task, Answer](
        jobs, lambda task: _do(workshop, task), lambda: _share_cores(jobs)
    )
    with closing(queue), pool:
        while queue.is_open:
            while pool.idle and (task := queue.take()) is not None:
                pool.give(task)
            for task, answer in pool.answers(_TICK_SECONDS):
                if isinstance(answer, Died):
                    queue.lose(task, answer)
                else:
                    queue.finish(task, answer)
            yield from queue.known()
            tick()


def _share_cores(jobs: int) -> None:
    """Let compiled code of this process use as many threads as it has cores for itself."""
    numba.config.NUMBA_NUM_THREADS = max(1, free_cores() // jobs)


def _do(workshop: Workshop, task: Task) -> Answer:
    """Do a task in the process that it was given to."""
    group, point = task.group, task.point
    if point is None:
        params = group.points[0].params
        if task.work is Work.GOLDEN:
            return workshop.golden(group.number, params)
        assert task.place is not None, "only what goes to a file is a task of its own"
        return workshop.prepare(group.number, params, task.place)
    if task.work is Work.EARLY:
        return workshop.early(group.number, point, task.problem)
    return workshop.row(group.number, point, task.place, task.problem)


class _Queue:
    """What is to be done: tasks that can begin, and those that wait for the file of their group.

    Args:
        groups: All groups, the first of which needs no file.
        first: The first run of all, which has been made.
        shares: Whether the runs of a group have inputs and golden in common.
    """

    def __init__(self, groups: Sequence[Group], first: Early, *, shares: bool) -> None:
        self._waiting: deque[Task] = deque()
        self._ready = {groups[0].number}
        self._files: dict[int, NamelessFile] = {}
        self._problems: dict[int, str] = {}
        self._known: list[SweepRow] = []
        self._early = [first]
        self._golden = None if shares else Golden()
        self._group = groups[0]
        if shares:
            self._waiting.append(Task(Work.GOLDEN, self._group))
        early = Work.EARLY if shares else Work.RUN
        self._waiting += [Task(early, self._group, point) for point in self._group.points[1:]]
        for group in groups[1:]:
            if shares and len(group.points) > 1:
                self._waiting.append(Task(Work.SHARED, group))
            else:
                self._ready.add(group.number)
            self._waiting += [Task(Work.RUN, group, point) for point in group.points]
        self._left = {group.number: {point.index for point in group.points} for group in groups}
        self._judge()

    @property
    def runs(self) -> int:
        """How many runs are left."""
        return sum(map(len, self._left.values()))

    @property
    def is_open(self) -> bool:
        """Whether runs are left."""
        return self.runs > 0

    def close(self) -> None:
        """Let go of the files."""
        for file in self._files.values():
            file.close()

    def known(self) -> list[SweepRow]:
        """Return the rows that were not known before."""
        known, self._known = self._known, []
        return known

    def take(self) -> Task | None:
        """Return the next task that can begin; None where all wait for one that is under way."""
        for task in list(self._waiting):
            number = task.group.number
            if task.work is Work.RUN and number not in self._ready:
                continue
            self._waiting.remove(task)
            if task.work is Work.SHARED and not self._has_file(number):
                self._ready.add(number)
                continue
            place = self._files[number].path if number in self._files else None
            problem = self._problems.get(number)
            if task.work is Work.EARLY and self._golden is not None:
                problem = self._golden.problem
            return replace(task, place=place, problem=problem)
        return None

    def _has_file(self, number: int) -> bool:
        """Open a file for a group; return whether there is one, without which each process does all."""
        with suppress(OSError):
            self._files[number] = NamelessFile()
        return number in self._files

    def finish(self, task: Task, answer: Answer) -> None:
        """Take note of what became of a task."""
        match answer:
            case None:
                self._ready.add(task.group.number)
            case str():
                self._problems[task.group.number] = answer
                self._ready.add(task.group.number)
            case SweepRow():
                self._tell(task.group, answer)
            case Early():
                self._early.append(answer)
                self._judge()
            case Golden():
                self._golden = answer
                self._judge()

    def lose(self, task: Task, died: Died) -> None:
        """Take note of a task whose process was ended."""
        problem = (
            f"The process of this run was ended by signal {died.signal}, as happens where memory runs "
            "out; fewer jobs at a time need less"
        )
        if task.work is Work.GOLDEN:
            self._golden = Golden(problem=problem)
            self._judge()
            return
        lost = task.group.points if task.point is None else (task.point,)
        self._waiting = deque(t for t in self._waiting if t.point not in lost)
        for point in lost:
            self._tell(task.group, unfinished(point, RowStatus.REFUSED, problem))

    def _judge(self) -> None:
        """Tell the rows of runs that were made early, once golden is known; some are made once more."""
        if self._golden is None:
            return
        early, self._early = self._early, []
        for each in early:
            row = self._golden.judged(each)
            if row is None:
                self._waiting.appendleft(Task(Work.RUN, self._group, each.point))
            else:
                self._tell(self._group, row)

    def _tell(self, group: Group, row: SweepRow) -> None:
        self._known.append(row)
        left = self._left[group.number]
        left.remove(row.index)
        if not left and group.number in self._files:
            self._files.pop(group.number).close()
