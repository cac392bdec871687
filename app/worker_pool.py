"""Processes that work through tasks, and see all that their parent had in memory when they began."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import sys
from dataclasses import dataclass
from multiprocessing import connection as connections
from typing import TYPE_CHECKING, Generic, TypeVar
from warnings import catch_warnings, simplefilter

from ..ir.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess
    from types import TracebackType

T = TypeVar("T")
A = TypeVar("A")

_SET_DEATH_SIGNAL = 1
"""`PR_SET_PDEATHSIG` of Linux's `prctl`."""


def can_fork() -> bool:
    """Return whether processes here can begin as copies of their parent, without risk to its libraries."""
    return sys.platform == "linux"


def free_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True)
class Died:
    """What comes instead of an answer if something ended the process.

    Attributes:
        signal: The number of the signal that did.
    """

    signal: int


@dataclass
class _Worker(Generic[T]):
    process: ForkProcess
    connection: Connection
    task: T | None = None


class WorkerPool(Generic[T, A]):
    """Some processes, each of which does one task at a time.

    Within a `with`, at the end of which they are gone, whatever they are doing. Ctrl-C reaches the parent
    only; a parent that is killed takes them along at once.

    Args:
        jobs: How many processes.
        work: What each does with a task. A failure of it is our own bug; its traceback goes to stderr.
        begin: What each does before its first task.

    Raises:
        InputError: From entering, giving and asking, where the computer lets no more processes begin.
    """

    def __init__(
        self, jobs: int, work: Callable[[T], A], begin: Callable[[], None] = lambda: None
    ) -> None:
        assert can_fork(), sys.platform
        self._work = work
        self._prepare = begin
        self._workers: list[_Worker[T]] = []
        self._jobs = jobs

    def __enter__(self) -> WorkerPool[T, A]:
        try:
            for _ in range(self._jobs):
                self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def idle(self) -> int:
        """How many processes have nothing to do."""
        return sum(worker.task is None for worker in self._workers)

    def give(self, task: T) -> None:
        """Let an idle process do a task."""
        while True:
            worker = next(worker for worker in self._workers if worker.task is None)
            try:
                worker.connection.send(task)
            except OSError:  # something ended it while it had nothing to do
                self._bury(worker)
                self._begin()
            else:
                worker.task = task
                return

    def answers(self, timeout: float) -> list[tuple[T, A | Died]]:
        """Return the tasks that are done, after waiting for one; none when time runs out first.

        Args:
            timeout: Seconds.
        """
        found: list[tuple[T, A | Died]] = []
        busy = {worker.connection: worker for worker in self._workers if worker.task is not None}
        for ready in connections.wait(list(busy), timeout):
            worker = busy[ready]  # pyright: ignore[reportArgumentType] - it is one of ours
            task = worker.task
            assert task is not None
            try:
                answer: A | Died = worker.connection.recv()
            except (EOFError, OSError):  # it was ended before it answered, or amid that
                answer = self._bury(worker)
                self._begin()
            worker.task = None
            found.append((task, answer))
        return found

    def _begin(self) -> None:
        try:
            self._fork()
        except OSError as error:
            message = (
                f"There must be room for the {self._jobs} processes that share the work: "
                f"{error.strerror}; fewer jobs need less"
            )
            raise InputError(message) from error

    def _fork(self) -> None:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        others = [*(worker.connection for worker in self._workers), ours]
        process = context.Process(
            target=_serve,
            args=(os.getpid(), theirs, others, self._work, self._prepare),
            daemon=True,
        )
        # A child begins with what is blocked here, and never lets it through.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with catch_warnings():
                simplefilter("ignore", DeprecationWarning)  # threads of BLAS: a child uses none
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        theirs.close()
        self._workers.append(_Worker(process, ours))

    def _bury(self, worker: _Worker[T]) -> Died:
        worker.process.join()
        code = worker.process.exitcode
        worker.connection.close()
        self._workers.remove(worker)
        assert code is not None
        assert code < 0, f"a process failed with {code}, as it told on stderr"
        return Died(-code)

    def _end(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers.clear()


def _die_with(parent: int) -> None:
    """Let the kernel end this process together with its parent, however that one ends."""
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


def _serve(
    parent: int,
    connection: Connection,
    others: Sequence[Connection],
    work: Callable[[T], A],
    begin: Callable[[], None],
) -> None:
    """Do tasks until the parent has none any more, or is gone."""
    _die_with(parent)
    for other in others:  # else they would stay open, and nobody would see the parent go
        other.close()
    gc.freeze()  # else collecting would touch, and so copy, all memory of the parent
    begin()
    while True:
        try:
            task: T = connection.recv()
        except (EOFError, ConnectionResetError):
            return
        try:
            connection.send(work(task))
        except BrokenPipeError:
            return
