"""Processes that share work: what they give back, and that none is left over."""

import multiprocessing
import os
import signal
from collections.abc import Callable

import pytest

from scalebox.app.worker_pool import Died, WorkerPool, can_fork

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
