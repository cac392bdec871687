"""The walk over the records of a task that gives each its vector clock; jitted.

A lane is a pipe of a core. Its clock says, for every lane, how many of that one's records are surely
done when the next record of the lane begins. A record knows what its lane knew, what the scalar unit
knew when it issued it, and, behind a wait, what the set knew; `shared` tells of counters that several
lanes set or wait for. Two records are in order if the clock of one counts the other; times play no
part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ...ir.jit import compiled, lean
from ..decode import PIPES, Role
from .shared import is_shared, learn_sets, put_set, waits_known

if TYPE_CHECKING:
    import numpy.typing as npt

    from .shared import Shared

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

NONE: Final = -1
LANE, ROLE, SLOT, REACHED, CODE_WORDS = 0, 1, 2, 3, 4
"""Columns of the code, a line an instruction: its lane, its `Role`, its flag counter, and the lane
that waits at that counter, or the scalar unit of a core of which any pipe may wait."""

CURSOR, STOP, CORE_WORDS = 0, 1, 2
"""Columns of a core: the next record that it issues, and the record behind its last one."""

HEAD, LAST, HELD, AWAITED, SEEN, LANE_WORDS = 0, 1, 2, 3, 4, 5
"""Columns of a lane: the first and the last record of its queue and how many it holds, the counter
that the first one waits for, and which state of the scalar unit it has taken in."""

FIRST, NEWEST, PENDING, SETS, WAITS, OVERRUN, WAITER, COUNTER_WORDS = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of a counter: the oldest set that no wait took, the newest of these, how many they are;
how many sets and waits have been; the first set that might exceed the limit; and the lane that waited
last."""

MOST_RACES: Final = 256
_SET, _WAIT, _BARRIER_ALL = int(Role.SET), int(Role.WAIT), int(Role.BARRIER_ALL)


class Feed(NamedTuple):
    """What the cores run, one core behind another; d records, f footprints.

    Args:
        code: int64 [instructions, CODE_WORDS].
        static: The instruction of each record, int64 [d].
        footprint: The footprint of each record, -1 for none, int64 [d].
        others: What each footprint must not run at the same time with; see `Footprints`.
        begin: Where those of each begin, int64 [f + 1].
        lane: The lane of each footprint, int64 [f].
    """

    code: Table
    static: Line
    footprint: Line
    others: Line
    begin: Line
    lane: Line


class Setting(NamedTuple):
    """What of the machine matters.

    Args:
        queue_entries: Entries of a queue.
        flag_limit: Sets of a flag that may be outstanding.
        core_flags: The first counter of a flag between cores.
    """

    queue_entries: int
    flag_limit: int
    core_flags: int


class State(NamedTuple):
    """Where the walk stands.

    Args:
        cores: int64 [cores, CORE_WORDS].
        lanes: int64 [lanes, LANE_WORDS].
        counters: int64 [slots, COUNTER_WORDS].
        clock: What each lane knows, int64 [lanes, lanes].
        behind: For a record in a queue or a set that nobody took, the next one, int64 [d].
        issued: For a record in a queue the state of the scalar unit that it knows, int64 [d].
        told: What each set knew that nobody took, int64 [sets, lanes]; the entry is in `entry`.
        entry: Which entry of `told` a set has, int64 [d].
        free: Entries of `told` that are free, a pile, int64 [sets + 1]; the first one counts them.
        units: What the scalar units knew, a line whenever one learns something, int64 [u, lanes].
        taken: When the last waits of each counter ran, int64 [slots, limit].
        order: The records in the order of the walk, int64 [d + 1]; the first one counts them.
        last: When each footprint ran last, int64 [f].
        record: Which record that was, int64 [f].
        told_race: Whether a pair of `others` was found in no order, uint8.
        races: Pairs of records that are in no order, int64 [MOST_RACES + 1, 2]; the first line
            counts them.
        shared: The counters that several lanes set or wait for.
    """

    cores: Table
    lanes: Table
    counters: Table
    clock: Table
    behind: Line
    issued: Line
    told: Table
    entry: Line
    free: Line
    units: Table
    taken: Table
    order: Line
    last: Line
    record: Line
    told_race: npt.NDArray[np.uint8]
    races: Table
    shared: Shared


@compiled
def walk(feed: Feed, setting: Setting, state: State, awake: Line) -> None:
    """Run all records as far as flags let them; `awake` has a place for each lane and one more."""
    cores, lanes = state.cores, state.lanes
    known = np.zeros(1, np.int64)
    moved = True
    while moved:
        moved = False
        for core in range(len(cores)):
            unit = core * PIPES
            while cores[core, CURSOR] < cores[core, STOP]:
                record = cores[core, CURSOR]
                item = feed.static[record]
                lane, role = int(feed.code[item, LANE]), feed.code[item, ROLE]
                if role == _BARRIER_ALL:
                    if not _join(unit, state):
                        break
                    _run(record, feed, setting, state, known, awake)
                elif lane == unit:
                    if role == _WAIT and not state.counters[feed.code[item, SLOT], PENDING]:
                        break
                    _run(record, feed, setting, state, known, awake)
                else:
                    held = lanes[lane, HELD]
                    if held == setting.queue_entries:
                        break
                    blocked = held > 0
                    if not blocked and role == _WAIT:
                        slot = feed.code[item, SLOT]
                        if not state.counters[slot, PENDING]:
                            blocked = True
                            lanes[lane, AWAITED] = slot
                    if blocked:
                        _queue(record, lane, unit, state)
                    else:
                        _take_in(lane, lanes[unit, SEEN], state)
                        _run(record, feed, setting, state, known, awake)
                cores[core, CURSOR] = record + 1
                moved = True
                while awake[0]:
                    lane = int(awake[awake[0]])
                    awake[0] -= 1
                    _drain(lane, feed, setting, state, known, awake)


@lean
def _queue(record: int, lane: int, unit: int, state: State) -> None:
    """Put a record behind the others of its lane."""
    lanes = state.lanes
    state.behind[record], state.issued[record] = -1, lanes[unit, SEEN]
    if lanes[lane, HELD]:
        state.behind[lanes[lane, LAST]] = record
    else:
        lanes[lane, HEAD] = record
    lanes[lane, LAST] = record
    lanes[lane, HELD] += 1


@lean
def _drain(lane: int, feed: Feed, setting: Setting, state: State, known: Line, awake: Line) -> None:
    """Run the records of a queue up to a wait that must go on waiting."""
    lanes = state.lanes
    lanes[lane, AWAITED] = -1
    while lanes[lane, HELD]:
        record = lanes[lane, HEAD]
        item = feed.static[record]
        if feed.code[item, ROLE] == _WAIT:
            slot = feed.code[item, SLOT]
            if not state.counters[slot, PENDING]:
                lanes[lane, AWAITED] = slot
                return
        lanes[lane, HEAD] = state.behind[record]
        lanes[lane, HELD] -= 1
        _take_in(lane, int(state.issued[record]), state)
        _run(record, feed, setting, state, known, awake)


@lean
def _take_in(lane: int, seen: int, state: State) -> None:
    """Let a lane know what the scalar unit knew in a state."""
    if state.lanes[lane, SEEN] < seen:
        state.lanes[lane, SEEN] = seen
        _learn(state.clock, lane, state.units, seen)


@lean
def _learn(clock: Table, lane: int, told: Table, line: int) -> None:
    """Let a lane know what a line of a table says."""
    for other in range(clock.shape[1]):
        if clock[lane, other] < told[line, other]:
            clock[lane, other] = told[line, other]


@lean
def _tell(clock: Table, lane: int, told: Table, line: int) -> None:
    """Write what a lane knows to a line of a table."""
    for other in range(clock.shape[1]):
        told[line, other] = clock[lane, other]


@lean
def _join(unit: int, state: State) -> bool:
    """Let a scalar unit know all that its pipes did; return whether they are at rest."""
    for lane in range(unit + 1, unit + PIPES):
        if state.lanes[lane, HELD]:
            return False
    for lane in range(unit + 1, unit + PIPES):
        _learn(state.clock, unit, state.clock, lane)
    return True


@lean
def _run(record: int, feed: Feed, setting: Setting, state: State, known: Line, awake: Line) -> None:
    """Run a record; `known` counts the states of all scalar units."""
    item = feed.static[record]
    lane, role = feed.code[item, LANE], feed.code[item, ROLE]
    if role == _WAIT:
        _wait(lane, feed.code[item, SLOT], setting, state)
    state.clock[lane, lane] += 1
    if role == _SET:
        _set(record, item, feed, setting, state, awake)
    if lane % PIPES == 0:
        known[0] += 1
        _tell(state.clock, lane, state.units, known[0])
        state.lanes[lane, SEEN] = known[0]
    footprint = feed.footprint[record]
    if footprint >= 0:
        _touch(record, footprint, lane, feed, state)


@lean
def _touch(record: int, footprint: int, lane: int, feed: Feed, state: State) -> None:
    """Compare a record with the last ones that touched the same bytes."""
    state.order[0] += 1
    state.order[state.order[0]] = record
    for place in range(feed.begin[footprint], feed.begin[footprint + 1]):
        other = feed.others[place]
        ran = state.last[other]
        if ran > state.clock[lane, feed.lane[other]] and not state.told_race[place]:
            state.told_race[place] = 1
            count = state.races[0, 0]
            if count < MOST_RACES:
                state.races[0, 0] = count + 1
                state.races[count + 1, 0] = state.record[other]
                state.races[count + 1, 1] = record
    state.last[footprint], state.record[footprint] = state.clock[lane, lane], record


@lean
def _wait(lane: int, slot: int, setting: Setting, state: State) -> None:
    """Take the oldest set of a counter, and learn what it knew, or what surely is known by then."""
    counters = state.counters
    taken = counters[slot, FIRST]
    entry = int(state.entry[taken])
    counters[slot, FIRST] = state.behind[taken]
    counters[slot, PENDING] -= 1
    if is_shared(slot, state.shared):
        learn_sets(lane, slot, state.clock, state.shared)
    else:
        _learn(state.clock, lane, state.told, entry)
    state.free[0] += 1
    state.free[state.free[0]] = entry
    ran = counters[slot, WAITS]
    state.taken[slot, ran % setting.flag_limit] = state.clock[lane, lane] + 1
    counters[slot, WAITS], counters[slot, WAITER] = ran + 1, lane


@lean
def _set(record: int, item: int, feed: Feed, setting: Setting, state: State, awake: Line) -> None:
    """Add a set to its counter, and wake who waits for it."""
    lane, slot = feed.code[item, LANE], feed.code[item, SLOT]
    reached, counters = feed.code[item, REACHED], state.counters
    entry = int(state.free[state.free[0]])
    state.free[0] -= 1
    state.entry[record], state.behind[record] = entry, -1
    _tell(state.clock, lane, state.told, entry)
    if counters[slot, PENDING]:
        state.behind[counters[slot, NEWEST]] = record
    else:
        counters[slot, FIRST] = record
    counters[slot, NEWEST] = record
    counters[slot, PENDING] += 1
    if _exceeds(lane, slot, setting, state) and counters[slot, OVERRUN] < 0:
        counters[slot, OVERRUN] = record
    counters[slot, SETS] += 1
    if slot < setting.core_flags:
        if state.lanes[reached, AWAITED] == slot:
            _wake(reached, state, awake)
    elif reached >= 0:
        for other in range(reached, reached + PIPES):
            if state.lanes[other, AWAITED] == slot:
                _wake(other, state, awake)


@lean
def _exceeds(lane: int, slot: int, setting: Setting, state: State) -> bool:
    """Return whether a set may be done more than the limit before its wait."""
    limit, shared = setting.flag_limit, state.shared
    if is_shared(slot, shared):
        sets = put_set(lane, slot, state.clock, shared)
        return sets - waits_known(lane, slot, state.clock, shared) > limit
    before = state.counters[slot, SETS] - limit
    if before < 0:
        return False
    if before >= state.counters[slot, WAITS]:
        return True
    known = state.clock[lane, state.counters[slot, WAITER]]
    return bool(state.taken[slot, before % limit] > known)


@lean
def _wake(lane: int, state: State, awake: Line) -> None:
    state.lanes[lane, AWAITED] = -1
    awake[0] += 1
    awake[awake[0]] = lane
