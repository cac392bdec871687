"""Which task runs where and when; jitted, for `pipes`.

A cluster runs one task at a time. A task is ready when all that it waits for have ended. Ready tasks begin
in the order of their numbers, each on the lowest idle cluster. Blocks that must begin together do so
when as many clusters are idle; until then nothing behind them begins, so that they cannot be passed
over for ever. Whatever else happens in a cycle comes before the tasks that begin in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...ir.jit import lean
from ..decode import PIPES
from .agenda import FIRST, NEVER, first_due, set_due
from .flags import NONE, wake
from .tables import (
    BEGUN,
    BETWEEN,
    BUSY,
    CLOCK,
    CLUSTER,
    CODE,
    CORES,
    COUNTERS,
    CURSOR,
    DRAINED,
    ENDED,
    FIRST_PART,
    FIRST_TASK,
    FREE,
    IN_STEP,
    LAST_PART,
    LAST_TASK,
    LEFT,
    PART_BETWEEN,
    PART_CODE,
    PART_CORE,
    PART_COUNTERS,
    PART_FIRST,
    PART_STARTS,
    PART_STOP,
    PART_TAIL,
    PARTS_LEFT,
    RUNNING,
    STARTS,
    STOP,
    TAIL,
    WAITS,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_AT_ONCE: Final = 0
"""What an agenda that only says who is there has as the time of those that are."""


@lean
def make_ready(group: int, groups: Table, ready: Line) -> None:
    """Let the tasks of a group wait only for clusters."""
    for task in range(groups[group, FIRST_TASK], groups[group, LAST_TASK]):
        set_due(task, _AT_ONCE, ready)


@lean
def make_idle(cluster: int, idle: Line) -> None:
    """Let a cluster be there for a task."""
    set_due(cluster, _AT_ONCE, idle)


@lean
def dispatch(
    now: int,
    idle_count: int,
    parts: Table,
    tasks: Table,
    cores: Table,
    agents: Table,
    accounts: Table,
    clusters: Table,
    due: Line,
    awake: Line,
    ready: Line,
    idle: Line,
) -> int:
    """Begin all tasks that can; return how many clusters stay idle of `idle_count`."""
    while idle_count and ready[FIRST] != NEVER:
        first = first_due(ready)
        count = tasks[first, IN_STEP]
        if count > idle_count:
            break
        for task in range(first, first + count):
            cluster = first_due(idle)
            set_due(task, NEVER, ready)
            set_due(cluster, NEVER, idle)
            _begin(task, cluster, now, parts, tasks, cores, agents, accounts, clusters, due, awake)
        idle_count -= count
    return idle_count


@lean
def _begin(
    task: int,
    cluster: int,
    now: int,
    parts: Table,
    tasks: Table,
    cores: Table,
    agents: Table,
    accounts: Table,
    clusters: Table,
    due: Line,
    awake: Line,
) -> None:
    tasks[task, BEGUN], tasks[task, CLUSTER] = now, cluster
    first, last = tasks[task, FIRST_PART], tasks[task, LAST_PART]
    clusters[cluster, RUNNING], clusters[cluster, PARTS_LEFT] = task, last - first
    for part in range(first, last):
        core = cluster * CORES + parts[part, PART_CORE]
        cores[core, CURSOR], cores[core, STOP] = parts[part, PART_FIRST], parts[part, PART_STOP]
        cores[core, CLOCK], cores[core, TAIL] = now, parts[part, PART_TAIL]
        cores[core, CODE], cores[core, STARTS] = parts[part, PART_CODE], parts[part, PART_STARTS]
        cores[core, COUNTERS] = parts[part, PART_COUNTERS]
        cores[core, BETWEEN] = parts[part, PART_BETWEEN]
        cores[core, LEFT] = cores[core, STOP] - cores[core, CURSOR]
        accounts[core * PIPES, BUSY] += cores[core, TAIL]
        if cores[core, LEFT]:
            wake(core * PIPES, agents, awake)
        else:
            leave(core, 0, cores, agents, clusters, due)


@lean
def leave(core: int, count: int, cores: Table, agents: Table, clusters: Table, due: Line) -> None:
    """Count records of a core as done; after the last one of its cluster, say when the task ends."""
    cores[core, LEFT] -= count
    if cores[core, LEFT]:
        return
    cluster = core // CORES
    clusters[cluster, PARTS_LEFT] -= 1
    if clusters[cluster, PARTS_LEFT]:
        return
    end = 0
    for each in range(cluster * CORES, (cluster + 1) * CORES):
        end = max(end, cores[each, CLOCK] + cores[each, TAIL])
        for agent in range(each * PIPES, (each + 1) * PIPES):
            end = max(end, agents[agent, DRAINED], agents[agent, FREE])
    set_due(len(agents) + cluster, end, due)


@lean
def finish(
    cluster: int,
    now: int,
    tasks: Table,
    groups: Table,
    edges_of: Line,
    edges: Line,
    clusters: Table,
    ready: Line,
    idle: Line,
) -> None:
    """End the task of a cluster, and make ready what waited only for that."""
    task = clusters[cluster, RUNNING]
    tasks[task, ENDED] = now
    clusters[cluster, RUNNING] = NONE
    make_idle(cluster, idle)
    for edge in range(edges_of[task], edges_of[task + 1]):
        group = edges[edge]
        groups[group, WAITS] -= 1
        if groups[group, WAITS] == 0:
            make_ready(group, groups, ready)
