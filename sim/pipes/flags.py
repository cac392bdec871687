"""Flag counters of a run: who waits for which set, and who is woken by one; jitted, for `pipes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...ir.jit import lean
from ..decode import PIPES
from .agenda import NEVER, set_due
from .tables import (
    AWAITED,
    AWAKE,
    CAME,
    DONE,
    END,
    FIRST_SET,
    LAST_SET,
    LAST_TAKEN,
    NEXT_SET,
    OLDEST,
    PARTNER,
    PENDING,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .tables import Setting

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

NONE: Final = -1
"""No record, no agent and no counter."""


@lean
def wake(agent: int, agents: Table, awake: Line) -> None:
    """Put an agent on the pile of those that are awake, whose first entry counts them."""
    if not agents[agent, AWAKE]:
        agents[agent, AWAKE] = 1
        awake[0] += 1
        awake[awake[0]] = agent


@lean
def _after_set(when: int, slot: int, under_way: int, counters: Table, records: Table) -> int:
    """Return when a wait that could begin at `when` ends, or NEVER while nothing is set.

    A set takes `under_way` cycles to its wait.
    """
    fired = counters[slot, FIRST_SET]
    if fired == NONE:
        return NEVER
    return max(when, int(records[fired, DONE]) + under_way)


@lean
def await_set(
    agent: int,
    when: int,
    slot: int,
    is_between: int,
    in_time: bool,
    setting: Setting,
    agents: Table,
    counters: Table,
    records: Table,
    due: Line,
) -> int:
    """Return when a wait that could begin at `when` ends, or NEVER if its agent is to sleep.

    That is so until something is set, and for a flag between cores until its turn comes: which of
    several waits takes a set is decided in the order of time, `in_time`.
    """
    under_way = setting.core_flag_cycles if is_between else setting.flag_cycles
    ends = _after_set(when, slot, under_way, counters, records)
    if is_between and not in_time:
        agents[agent, CAME] = when
        set_due(agent, ends, due)
        ends = NEVER
    if ends == NEVER:
        agents[agent, AWAITED] = slot
    return ends


@lean
def put_set(
    reached: int,
    record: int,
    slot: int,
    is_between: int,
    setting: Setting,
    agents: Table,
    counters: Table,
    records: Table,
    due: Line,
    awake: Line,
) -> None:
    """Add a set to its counter, in the order in which sets are done, and tell who waits for it.

    Those of one pipe are done in their order; a counter between cores may be set by several.
    """
    before, behind, last = NONE, NONE, counters[slot, LAST_SET]
    if counters[slot, FIRST_SET] == NONE or records[last, DONE] <= records[record, DONE]:
        before = last
    else:
        before, behind = counters[slot, LAST_TAKEN], counters[slot, FIRST_SET]
        while records[behind, DONE] <= records[record, DONE]:
            before, behind = behind, records[behind, NEXT_SET]
    records[record, NEXT_SET] = behind
    if before == NONE:
        counters[slot, OLDEST] = record
    else:
        records[before, NEXT_SET] = record
    if before == counters[slot, LAST_TAKEN]:
        counters[slot, FIRST_SET] = record
    if behind == NONE:
        counters[slot, LAST_SET] = record
    counters[slot, PENDING] += 1
    if is_between:
        _tell_core(reached, slot, setting, agents, counters, records, due)
    elif agents[reached, AWAITED] == slot:
        wake(reached, agents, awake)


@lean
def take_set(
    agent: int,
    record: int,
    slot: int,
    is_between: int,
    setting: Setting,
    agents: Table,
    counters: Table,
    records: Table,
    due: Line,
) -> None:
    """Let a wait take the oldest set, and tell who else waits for one."""
    taken = counters[slot, FIRST_SET]
    records[record, PARTNER], records[taken, PARTNER] = taken, record
    counters[slot, FIRST_SET], counters[slot, LAST_TAKEN] = records[taken, NEXT_SET], taken
    counters[slot, PENDING] -= 1
    if is_between:
        core = agent // PIPES
        _tell_core(core * PIPES, slot, setting, agents, counters, records, due)


@lean
def _tell_core(
    first: int,
    slot: int,
    setting: Setting,
    agents: Table,
    counters: Table,
    records: Table,
    due: Line,
) -> None:
    """Find out anew when those of a core that wait for a flag between cores are due."""
    for agent in range(first, first + PIPES):
        if agents[agent, AWAITED] == slot:
            came, under_way = agents[agent, CAME], setting.core_flag_cycles
            set_due(agent, _after_set(came, slot, under_way, counters, records), due)


@lean
def overrun(oldest: int, limit: int, records: Table) -> int:
    """Return the first set of a counter for which `limit` earlier ones had not been taken."""
    record, earlier, ahead = oldest, oldest, 0
    while record != NONE:
        if ahead < limit:
            ahead += 1
        else:
            wait = records[earlier, PARTNER]
            if wait == NONE or records[wait, END] > records[record, END]:
                return record
            earlier = records[earlier, NEXT_SET]
        record = records[record, NEXT_SET]
    return NONE
