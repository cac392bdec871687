"""Core flags that several pipes set, or that several wait for; jitted.

Nothing says which set of such a counter a wait takes. What is sure: when a wait is done, at least as
many sets are done as waits of the counter surely are, itself included. So a set surely is done if
fewer sets than that may be done without it, which are those that come neither after it nor after the
wait. What comes after a set is known only when all was walked, so tasks with such counters are
walked again and again: first as if all sets came after one another, then with what the walk before
found, until nothing changes. An order that rests on itself is right: the first wait in a run that
would break it has all that it rests on before itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ...ir.jit import lean
from ..decode import Role

if TYPE_CHECKING:
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

EVER: Final = 1 << 62
"""A clock that counts whatever there is."""


class Shared(NamedTuple):
    """The sets and waits of such counters by groups, a group those of one counter on one lane.

    Args:
        sets: Where the groups of sets of each counter begin, int64 [slots + 1].
        set_lane: The lane of each group of sets, int64 [groups].
        set_begin: Where the sets of each begin, int64 [groups + 1].
        set_done: How many of them were walked, int64 [groups].
        waits: Where the groups of waits of each counter begin, int64 [slots + 1].
        wait_lane: Their lanes.
        wait_begin: Where their waits begin.
        wait_done: How many of them were walked.
        told: What each set knew in this walk, int64 [sets, lanes].
        before: What each set knew in the walk before this one, int64 [sets, lanes].
        place: Which record of its lane each wait is, counted from 1, int64 [waits].
    """

    sets: Line
    set_lane: Line
    set_begin: Line
    set_done: Line
    waits: Line
    wait_lane: Line
    wait_begin: Line
    wait_done: Line
    told: Table
    before: Table
    place: Line


def shared_of(
    static: Line, lane: Line, role: Line, slot: Line, *, slots: int, lanes: int
) -> Shared:
    """Find the counters that several lanes set or wait for.

    Args:
        static: The instruction of each record, int64 [d].
        lane: The lane of each instruction, int64 [i].
        role: The role of each, int64 [i].
        slot: The counter of each, int64 [i].
        slots: How many counters there are.
        lanes: How many lanes.
    """
    used = np.zeros(len(role), np.bool_)
    used[static] = True
    kinds = [np.flatnonzero((role == each) & used) for each in (Role.SET, Role.WAIT)]
    pairs = [np.unique(slot[kind] * lanes + lane[kind]) for kind in kinds]
    several = [np.bincount(pair // lanes, minlength=slots) > 1 for pair in pairs]
    found = np.flatnonzero(several[0] | several[1])
    of_sets, of_waits = (
        _groups(static, kind, pair[np.isin(pair // lanes, found)], slot, lane, slots, lanes)
        for kind, pair in zip(kinds, pairs, strict=True)
    )
    told = np.zeros((int(of_sets[2][-1]), lanes), np.int64)
    place = np.zeros(int(of_waits[2][-1]), np.int64)
    return Shared(*of_sets, *of_waits, told, np.full_like(told, EVER), place)


def _groups(
    static: Line, kind: Line, pairs: Line, slot: Line, lane: Line, slots: int, lanes: int
) -> tuple[Line, Line, Line, Line]:
    """Return where the groups of each counter begin, their lanes, and where their records begin."""
    begin = np.searchsorted(pairs // lanes, np.arange(slots + 1))
    counts = np.zeros(len(pairs), np.int64)
    if len(pairs):
        times = np.bincount(static, minlength=len(slot))[kind]
        code = slot[kind] * lanes + lane[kind]
        known = np.isin(code, pairs)
        np.add.at(counts, np.searchsorted(pairs, code[known]), times[known])
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return begin.astype(np.int64), pairs % lanes, first, np.zeros(len(pairs), np.int64)


def again(shared: Shared) -> Shared:
    """Return where to begin the next walk, with what the last one found."""
    return shared._replace(
        set_done=np.zeros_like(shared.set_done),
        wait_done=np.zeros_like(shared.wait_done),
        told=np.zeros_like(shared.told),
        before=shared.told,
    )


@lean
def is_shared(slot: int, shared: Shared) -> bool:
    """Return whether a counter is one of several lanes."""
    return shared.sets[slot] < shared.sets[slot + 1]


@lean
def learn_sets(lane: int, slot: int, clock: Table, shared: Shared) -> None:
    """Let a lane that is about to wait for a counter know what the sets knew that surely are done."""
    own = clock[lane, lane] + 1
    learns = True
    while learns:
        learns = False
        sure = waits_known(lane, slot, clock, shared) + 1
        for group in range(shared.sets[slot], shared.sets[slot + 1]):
            low = shared.set_begin[group]
            high = low + shared.set_done[group]
            while low < high:
                middle = (low + high) // 2
                if _without(middle, shared.set_lane[group], lane, own, slot, shared) < sure:
                    low = middle + 1
                else:
                    high = middle
            if low > shared.set_begin[group]:
                for other in range(clock.shape[1]):
                    if clock[lane, other] < shared.told[low - 1, other]:
                        clock[lane, other] = shared.told[low - 1, other]
                        learns = True
    _put_wait(lane, slot, own, shared)


@lean
def _without(number: int, set_lane: int, lane: int, own: int, slot: int, shared: Shared) -> int:
    """Return how many sets may be done without a set before the record `own` of a lane is."""
    count = 0
    before = shared.before
    for group in range(shared.sets[slot], shared.sets[slot + 1]):
        first = low = shared.set_begin[group]
        high = shared.set_begin[group + 1]
        while low < high:
            middle = (low + high) // 2
            after = before[middle, set_lane] >= before[number, set_lane]
            if after or before[middle, lane] >= own:
                high = middle
            else:
                low = middle + 1
        count += low - first
    return count


@lean
def waits_known(lane: int, slot: int, clock: Table, shared: Shared) -> int:
    """Return how many waits of a counter a lane knows to be done."""
    count = 0
    for group in range(shared.waits[slot], shared.waits[slot + 1]):
        first = low = shared.wait_begin[group]
        high = low + shared.wait_done[group]
        while low < high:
            middle = (low + high) // 2
            if shared.place[middle] <= clock[lane, shared.wait_lane[group]]:
                low = middle + 1
            else:
                high = middle
        count += low - first
    return count


@lean
def _put_wait(lane: int, slot: int, own: int, shared: Shared) -> None:
    for group in range(shared.waits[slot], shared.waits[slot + 1]):
        if shared.wait_lane[group] == lane:
            shared.place[shared.wait_begin[group] + shared.wait_done[group]] = own
            shared.wait_done[group] += 1


@lean
def put_set(lane: int, slot: int, clock: Table, shared: Shared) -> int:
    """Note what a set knows; return how many sets may be done when it is, itself included."""
    count = 1
    for group in range(shared.sets[slot], shared.sets[slot + 1]):
        done = shared.set_done[group]
        if shared.set_lane[group] == lane:
            row = shared.set_begin[group] + done
            for other in range(clock.shape[1]):
                shared.told[row, other] = clock[lane, other]
            shared.set_done[group] = done + 1
            count += _without(row, lane, lane, EVER, slot, shared)
    return count
