"""Processes that share work: what they give back, and that none is left over."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Timer

import pytest

from scalebox.app.worker_pool import Died, WorkerPool, can_fork
from scalebox.ir.errors import InputError

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes are copied on Linux only")


def drain(pool: WorkerPool[int, int], tasks: list[int]) -> dict[int, int | Died]:
    waiting, found = list(tasks), dict[int, int | Died]()
    while len(found) < len(tasks):
        while pool.idle and waiting:
            pool.give(waiting.pop(0))
        found.update(pool.answers(10))
    return found


def test_every_task_has_its_answer_and_sees_what_the_parent_had() -> None:
    table = list(range(100, 120))
    with WorkerPool[int, int](2, table.__getitem__) as pool:
        assert drain(pool, list(range(20))) == dict(enumerate(table))


def test_work_is_shared_by_as_many_processes_as_are_asked_for() -> None:
    with WorkerPool[int, int](3, lambda _: os.getpid()) as pool:
        for task in range(3):
            pool.give(task)
        assert pool.idle == 0
        pids: set[int | Died] = set()
        while len(pids) < 3:
            pids |= {answer for _, answer in pool.answers(10)}
    assert os.getpid() not in pids


def dies_of(number: int) -> Callable[[int], int]:
    def work(task: int) -> int:
        if task == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return task

    return work


def test_a_process_that_is_killed_loses_its_own_task_only() -> None:
    with WorkerPool[int, int](2, dies_of(3)) as pool:
        found = drain(pool, list(range(8)))
    assert found == {**{n: n for n in range(8)}, 3: Died(signal.SIGKILL)}


def test_none_is_left_over_where_the_parent_gives_up() -> None:
    def work(_: int) -> int:
        signal.pause()
        return 0

    def give_up() -> None:
        with WorkerPool[int, int](2, work) as pool:
            pool.give(0)
            assert len(multiprocessing.active_children()) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    assert multiprocessing.active_children() == []


def test_more_processes_than_there_is_room_for_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fork, most = os.fork, iter(range(2))

    def limited() -> int:
        if next(most, None) is None:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", limited)
    sentence = "room for the 5 processes that share the work: Resource temporarily unavailable"
    with pytest.raises(InputError, match=sentence), WorkerPool[int, int](5, lambda task: task):
        pass
    assert multiprocessing.active_children() == []


def test_a_process_that_is_killed_while_it_has_nothing_to_do_is_replaced() -> None:
    with WorkerPool[int, int](2, lambda task: task) as pool:
        for child in multiprocessing.active_children():
            assert child.pid is not None
            os.kill(child.pid, signal.SIGKILL)
            child.join()
        assert drain(pool, [1, 2, 3]) == {1: 1, 2: 2, 3: 3}


def test_a_process_that_is_killed_amid_its_answer_loses_its_own_task_only() -> None:
    def work(task: int) -> int | bytes:
        if task == 1:
            Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
            return bytes(1 << 24)  # more than a pipe holds, so that it waits for its reader
        return task

    with WorkerPool[int, int | bytes](1, work) as pool:
        pool.give(1)
        time.sleep(1)
        assert pool.answers(10) == [(1, Died(signal.SIGKILL))]
        pool.give(2)
        assert pool.answers(10) == [(2, 2)]


PARENT = """
import os, signal
from scalebox.app.worker_pool import WorkerPool
def work(task):
    os.write(1, f"{os.getpid()}\\n".encode())  # whole, whoever else writes
    signal.pause()
with WorkerPool(2, work) as pool:
    pool.give(1), pool.give(2)
    pool.answers(60)
"""


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_all_end_with_their_parent_whatever_they_are_doing(end: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout is not None
        children = [Path("/proc", p.stdout.readline().strip()) for _ in range(2)]
        assert all(child.is_dir() for child in children)
        p.send_signal(end)
        assert p.stdout.read() == ""  # they have it open, too
        assert p.wait() == -end
