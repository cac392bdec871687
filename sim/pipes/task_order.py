"""What the tasks of a launch wait for, checked before any of them runs."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from ...ir.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...codegen.executable import Task
    from ...ir.target import Target


def task_order(tasks: Sequence[Task]) -> list[int]:
    """Return the tasks in an order in which each comes after those that it waits for.

    Of those that could come next, the one of the lowest number does.

    Raises:
        InputError: If a task waits for one that there is not, or if tasks wait in a circle.
    """
    count = len(tasks)
    for number, task in enumerate(tasks):
        for other in (task.depends[:1], task.depends[-1:]):
            if other and not 0 <= other[0] < count:
                message = f"Task {number} must wait for tasks 0 to {count - 1}, not for {other[0]}."
                raise InputError(message)
    if all(not task.depends or task.depends[-1] < number for number, task in enumerate(tasks)):
        return list(range(count))
    waits = [len(task.depends) for task in tasks]
    waiting: list[list[int]] = [[] for _ in tasks]
    for number, task in enumerate(tasks):
        for other in task.depends:
            waiting[other].append(number)
    ready = [number for number in range(count) if not waits[number]]
    heapify(ready)
    order: list[int] = []
    while ready:
        number = heappop(ready)
        order.append(number)
        for other in waiting[number]:
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, other)
    if len(order) < count:
        circle = " -> ".join(str(number) for number in _circle(tasks, waits))
        message = f"The tasks of a launch must not wait for each other in a circle, as {circle} do."
        raise InputError(message, hint="each arrow points to a task that must end before")
    return order


def _circle(tasks: Sequence[Task], waits: Sequence[int]) -> list[int]:
    """Return tasks of which each waits for the next, the last being the first."""
    number = next(number for number, count in enumerate(waits) if count)
    path: list[int] = []
    while number not in path:
        path.append(number)
        number = next(other for other in tasks[number].depends if waits[other])
    return [*path[path.index(number) :], number]


def in_step(task: Task, target: Target) -> int:
    """Return how many blocks, from that of `task` on, must begin together; 1 if only its own.

    Raises:
        InputError: If they are more than the machine has clusters.
    """
    if not task.sync_start:
        return 1
    if task.blocks > target.cores:
        message = (
            "A launch with sync_start must have at most as many blocks as machine "
            f"{target.name!r} has clusters, {target.cores}, not {task.blocks}."
        )
        raise InputError(message, hint="without sync_start, blocks are queued")
    return task.blocks - task.block
