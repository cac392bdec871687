"""The pipes, cycle by cycle in effect, event by event in fact.

The scalar unit puts instructions into one in-order queue a pipe. A pipe takes the head of its
queue when it is free; a transfer from GM frees its pipe when its bytes have passed the port, but is
done only a latency later, and later transfers overlap that latency. Flags and barriers look at what
is done. The loop always advances whoever can act first, so shared resources are seen in the order
of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ..codegen.isa.vocabulary import Pipe
from .decode import FLAG_SLOTS, PIPES, Role
from .jit import compiled, inner

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..ir.target import Target
    from .decode import Decoded
    from .scalar import Stream

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

BUSY, FLAG, BARRIER, QUEUE, IDLE, ACCOUNT_WORDS = 0, 1, 2, 3, 4, 5
"""Columns of an account: cycles at work, waiting for a flag, waiting at a barrier for what is under
way, waiting (the scalar unit only) for room in a full queue, and with nothing to do."""

_EXECUTE, _SET, _WAIT, _BARRIER, _BARRIER_ALL = (int(role) for role in Role)
_S, _FIX = int(Pipe.S), int(Pipe.FIX)
_NEVER: Final = 1 << 62
_NONE: Final = -1


class Setting(NamedTuple):
    """The numbers of the machine that the loop needs, in cycles and bytes."""

    queue_entries: int
    flag_cycles: int
    flag_limit: int
    hit_cycles: int
    miss_cycles: int
    block_bytes: int
    l2_blocks: int

    @classmethod
    def of(cls, target: Target) -> Setting:
        """Return the numbers of `target`."""
        return cls(
            target.queue_entries,
            target.flag_cycles,
            target.flag_counter_max,
            target.l2_hit_cycles,
            target.l2_miss_cycles,
            target.l2_block_bytes,
            target.l2_bytes // target.l2_block_bytes,
        )


class Queues(NamedTuple):
    """Where the run stands; after a deadlock, what everybody waits for.

    Args:
        cursor: Next record of the stream, and the scalar unit's time, int64 [2].
        items: Records in each queue, a ring, int64 [PIPES, entries].
        entered: When each entered, int64 [PIPES, entries].
        head: First place of each ring, int64 [PIPES].
        held: Entries in each ring, int64 [PIPES].
        first_set: Oldest set that no wait has taken, per flag slot, int64 [FLAG_SLOTS].
        last_set: The youngest, int64 [FLAG_SLOTS].
        pending: How many there are, int64 [FLAG_SLOTS].
        overrun: The record whose set first exceeded the counter, per slot, int64 [FLAG_SLOTS].
        next_set: The set after each set, int64 [d].
        taken: The set that each wait took, int64 [d]; -1 for all else.
    """

    cursor: Line
    items: Table
    entered: Table
    head: Line
    held: Line
    first_set: Line
    last_set: Line
    pending: Line
    overrun: Line
    next_set: Line
    taken: Line


class Times(NamedTuple):
    """When each record came to the front of its pipe, left it and was done, int64 [d] each."""

    start: Line
    end: Line
    done: Line


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """The outcome of one run.

    Attributes:
        times: Per record of the stream.
        cycles: From the first scalar cycle until everything is done.
        accounts: int64 [PIPES, ACCOUNT_WORDS]; every line sums to `cycles`.
        queues: Where the run stood in the end.
        finished: False after a deadlock.
    """

    times: Times
    cycles: int
    accounts: Table
    queues: Queues
    finished: bool


class L2:
    """Which blocks of GM the second-level cache holds; least recently used go first."""

    def __init__(self, gm_bytes: int, block_bytes: int) -> None:
        self.stamps: Line = np.zeros(gm_bytes // block_bytes + 1, np.int64)
        self.state: Line = np.zeros(2, np.int64)
        """A clock and the number of resident blocks."""


def run(
    decoded: Decoded,
    stream: Stream,
    *,
    occupancy: Line,
    transfers: Table,
    setting: Setting,
    l2: L2,
) -> Timing:
    """Time one run of a kernel on one core.

    Args:
        decoded: The kernel.
        stream: Its resolved instructions.
        occupancy: Cycles that each instruction keeps its pipe, int64 [n].
        transfers: What each instruction touches of GM (`decode.transfers`).
        setting: The machine.
        l2: The cache, which remembers from run to run.
    """
    count = len(stream)
    queues = Queues(
        np.zeros(2, np.int64),
        np.zeros((PIPES, setting.queue_entries), np.int64),
        np.zeros((PIPES, setting.queue_entries), np.int64),
        np.zeros(PIPES, np.int64),
        np.zeros(PIPES, np.int64),
        np.full(FLAG_SLOTS, _NONE, np.int64),
        np.full(FLAG_SLOTS, _NONE, np.int64),
        np.zeros(FLAG_SLOTS, np.int64),
        np.full(FLAG_SLOTS, _NONE, np.int64),
        np.full(count, _NONE, np.int64),
        np.full(count, _NONE, np.int64),
    )
    times = Times(*(np.zeros(count, np.int64) for _ in range(3)))
    accounts = np.zeros((PIPES, ACCOUNT_WORDS), np.int64)
    cycles = simulate_pipes(
        stream.static,
        stream.gap,
        stream.registers,
        stream.tail,
        decoded.pipe,
        decoded.role,
        decoded.flags,
        occupancy,
        transfers,
        setting,
        l2.stamps,
        l2.state,
        queues,
        times,
        accounts,
    )
    return Timing(times, max(cycles, 0), accounts, queues, cycles >= 0)


@compiled
def simulate_pipes(
    static: Line,
    gap: Line,
    registers: Table,
    tail: int,
    pipe_of: Line,
    role_of: Line,
    flag_of: Line,
    occupancy: Line,
    transfers: Table,
    setting: Setting,
    stamps: Line,
    cache: Line,
    queues: Queues,
    times: Times,
    accounts: Table,
) -> int:
    """Run the stream to its end; return its cycles, or -1 if everybody waits."""
    free = np.zeros(PIPES, np.int64)
    drained = np.zeros(PIPES, np.int64)
    opened = np.zeros(PIPES, np.int64)
    total, now = static.shape[0], int(queues.cursor[1])
    while True:
        actor, first = _NONE, _NEVER
        record = queues.cursor[0]
        if record < total:
            first = _scalar_ready(record, now, static, gap, pipe_of, role_of, flag_of, setting,
                                  queues, times, opened, drained)  # fmt: skip
            actor = _S if first < _NEVER else _NONE
        for pipe in range(1, PIPES):
            if queues.held[pipe]:
                ready = _pipe_ready(pipe, static, role_of, flag_of, setting, queues, times, free)
                if ready < first:
                    actor, first = pipe, ready
        if actor == _NONE:
            break
        if actor == _S:
            _scalar_step(record, now, first, static, gap, pipe_of, role_of, flag_of, setting,
                         queues, times, accounts)  # fmt: skip
            now = queues.cursor[1] = first
            continue
        if queues.held[actor] == setting.queue_entries:
            opened[actor] = first
        place = queues.head[actor]
        began = max(queues.entered[actor, place], free[actor])
        accounts[actor, FLAG] += first - began
        record = _pop(actor, queues)
        item = static[record]
        role = role_of[item]
        times.start[record] = began
        if role == _EXECUTE:
            latency = 0
            if transfers[item, 0]:
                latency = _latency(
                    transfers[item], registers[record], actor, setting, stamps, cache
                )
            free[actor] = first + occupancy[item]
            drained[actor] = max(first + latency, drained[actor]) + occupancy[item]
            accounts[actor, BUSY] += occupancy[item]
        elif role == _BARRIER:
            free[actor] = max(first, drained[actor])
            accounts[actor, BARRIER] += free[actor] - first
        else:
            free[actor] = first
        times.end[record] = free[actor]
        if role == _WAIT:
            times.done[record] = first
            _take_set(int(flag_of[item]), record, queues)
        else:
            times.done[record] = max(free[actor], drained[actor])
            if role == _SET:
                _put_set(int(flag_of[item]), record, setting.flag_limit, queues)
    if queues.cursor[0] < total or queues.held.sum():
        return -1
    cycles = int(max(now + tail, drained.max(), free.max()))
    _close_accounts(cycles, tail, accounts)
    return cycles


@inner
def _scalar_ready(
    record: int,
    now: int,
    static: Line,
    gap: Line,
    pipe_of: Line,
    role_of: Line,
    flag_of: Line,
    setting: Setting,
    queues: Queues,
    times: Times,
    opened: Line,
    drained: Line,
) -> int:
    """Return when the scalar unit can have issued `record`, or _NEVER while it must wait."""
    item = static[record]
    pipe, ready = pipe_of[item], now + gap[record]
    if pipe != _S:
        if queues.held[pipe] == setting.queue_entries:
            return _NEVER
        return max(ready, opened[pipe])
    role = role_of[item]
    if role == _WAIT:
        fired = queues.first_set[flag_of[item]]
        if fired == _NONE:
            return _NEVER
        return max(ready, times.done[fired] + setting.flag_cycles)
    if role == _BARRIER_ALL:
        for other in range(1, PIPES):
            if queues.held[other]:
                return _NEVER
            ready = max(ready, drained[other])
    return ready


@inner
def _pipe_ready(
    pipe: int,
    static: Line,
    role_of: Line,
    flag_of: Line,
    setting: Setting,
    queues: Queues,
    times: Times,
    free: Line,
) -> int:
    """Return when the head of a queue can start, or _NEVER while it must wait."""
    place = queues.head[pipe]
    item = static[queues.items[pipe, place]]
    ready = max(queues.entered[pipe, place], free[pipe])
    if role_of[item] != _WAIT:
        return ready
    fired = queues.first_set[flag_of[item]]
    if fired == _NONE:
        return _NEVER
    return max(ready, times.done[fired] + setting.flag_cycles)


@inner
def _scalar_step(
    record: int,
    now: int,
    issued: int,
    static: Line,
    gap: Line,
    pipe_of: Line,
    role_of: Line,
    flag_of: Line,
    setting: Setting,
    queues: Queues,
    times: Times,
    accounts: Table,
) -> None:
    """Issue `record` at cycle `issued`."""
    item = static[record]
    pipe, role = pipe_of[item], role_of[item]
    stalled = issued - now - gap[record]
    accounts[_S, BUSY] += gap[record]
    queues.cursor[0] = record + 1
    if pipe != _S:
        accounts[_S, QUEUE] += stalled
        entries = queues.items.shape[1]
        place = (queues.head[pipe] + queues.held[pipe]) % entries
        queues.items[pipe, place] = record
        queues.entered[pipe, place] = issued
        queues.held[pipe] += 1
        return
    times.start[record] = now + gap[record]
    times.end[record] = issued
    times.done[record] = issued
    if role == _WAIT:
        accounts[_S, FLAG] += stalled
        _take_set(int(flag_of[item]), record, queues)
    elif role == _BARRIER_ALL:
        accounts[_S, BARRIER] += stalled
    elif role == _SET:
        _put_set(int(flag_of[item]), record, setting.flag_limit, queues)


@inner
def _pop(pipe: int, queues: Queues) -> int:
    """Take the head of a queue."""
    place = queues.head[pipe]
    queues.head[pipe] = (place + 1) % queues.items.shape[1]
    queues.held[pipe] -= 1
    return queues.items[pipe, place]


@inner
def _put_set(slot: int, record: int, limit: int, queues: Queues) -> None:
    if queues.first_set[slot] == _NONE:
        queues.first_set[slot] = record
    else:
        queues.next_set[queues.last_set[slot]] = record
    queues.last_set[slot] = record
    queues.pending[slot] += 1
    if queues.pending[slot] > limit and queues.overrun[slot] == _NONE:
        queues.overrun[slot] = record


@inner
def _take_set(slot: int, record: int, queues: Queues) -> None:
    queues.taken[record] = queues.first_set[slot]
    queues.first_set[slot] = queues.next_set[queues.first_set[slot]]
    queues.pending[slot] -= 1


@inner
def _latency(
    transfer: Line, registers: Line, pipe: int, setting: Setting, stamps: Line, cache: Line
) -> int:
    """Touch the blocks of a window; return the latency of a read, 0 for a posted write."""
    start = transfer[1] + registers[0] * transfer[2] + registers[1] * transfer[3]
    start //= 8
    missed, previous = False, _NONE
    for row in range(transfer[4]):
        address = start + row * transfer[5]
        for block in range(
            address // setting.block_bytes,
            (address + transfer[6] - 1) // setting.block_bytes + 1,
        ):
            if block != previous and 0 <= block < stamps.shape[0]:
                missed |= _touch(block, setting.l2_blocks, stamps, cache)
            previous = block
    if pipe == _FIX:
        return 0
    return setting.hit_cycles + (setting.miss_cycles if missed else 0)


@inner
def _touch(block: int, capacity: int, stamps: Line, cache: Line) -> bool:
    """Make `block` the youngest of the cache; return whether it was not there."""
    cache[0] += 1
    missed = stamps[block] == 0
    if missed and capacity == 0:
        return True
    if missed:
        if cache[1] == capacity:
            oldest = _NONE
            for other in range(stamps.shape[0]):
                if stamps[other] and (oldest == _NONE or stamps[other] < stamps[oldest]):
                    oldest = other
            stamps[oldest] = 0
        else:
            cache[1] += 1
    stamps[block] = cache[0]
    return missed


@inner
def _close_accounts(cycles: int, tail: int, accounts: Table) -> None:
    """Put what is left of the run under `IDLE`, so that every line sums to `cycles`."""
    accounts[_S, BUSY] += tail
    for pipe in range(PIPES):
        accounts[pipe, IDLE] = cycles - accounts[pipe].sum()
