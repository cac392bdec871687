"""The loop that advances the pipes; `timing` says what it is about.

Who can act next, and when, is kept per agent (the scalar unit is agent 0, as pipe `S`) and looked
at again only where something changed: the one that acted, a queue that has got its first entry, a
pipe that a flag has reached, and a scalar unit that must wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ..codegen.isa.vocabulary import Pipe
from .decode import FLAG_IDS, FLAG_PIPES, PIPE_FLAG_SLOTS, PIPES, Role
from .jit import compiled, inner

if TYPE_CHECKING:
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

BUSY, FLAG, BARRIER, QUEUE, IDLE, ACCOUNT_WORDS = 0, 1, 2, 3, 4, 5
"""Columns of an account: cycles at work, waiting for a flag, waiting at a barrier for what is under
way, waiting (the scalar unit only) for room in a full queue, and with nothing to do."""

_EXECUTE, _SET, _WAIT, _BARRIER, _BARRIER_ALL = (int(role) for role in Role)
_S, _FIX, _MTE3 = int(Pipe.S), int(Pipe.FIX), int(Pipe.MTE3)
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


class Code(NamedTuple):
    """The tables of a kernel that the loop reads, one line an instruction.

    Args:
        pipe: Its queue, int64 [n].
        role: int64 [n], as `Role`.
        flags: Its flag slot, int64 [n].
        occupancy: Cycles that it keeps its pipe, int64 [n].
        transfers: What it touches of GM (`decode.bind_transfers`), int64 [n, TRANSFER_WORDS].
    """

    pipe: Line
    role: Line
    flags: Line
    occupancy: Line
    transfers: Table


class Feed(NamedTuple):
    """The stream of `scalar.Stream`: instruction, scalar cycles before it, registers."""

    static: Line
    gap: Line
    registers: Table


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


class Pipes(NamedTuple):
    """The state of the pipes, int64 [PIPES] each.

    Args:
        free: When a pipe can take its next instruction.
        drained: When all that it has begun is done.
        opened: When a full queue last had room again.
        ready: When the agent can act next, or _NEVER.
    """

    free: Line
    drained: Line
    opened: Line
    ready: Line


@compiled
def simulate_pipes(
    feed: Feed,
    tail: int,
    code: Code,
    setting: Setting,
    stamps: Line,
    cache: Line,
    queues: Queues,
    times: Times,
    accounts: Table,
) -> int:
    """Run the stream to its end; return its cycles, or -1 if everybody waits."""
    pipes = Pipes(
        np.zeros(PIPES, np.int64),
        np.zeros(PIPES, np.int64),
        np.zeros(PIPES, np.int64),
        np.full(PIPES, _NEVER, np.int64),
    )
    _look_at_scalar(feed, code, setting, queues, times, pipes)
    while True:
        actor = 0
        for agent in range(1, PIPES):
            if pipes.ready[agent] < pipes.ready[actor]:
                actor = agent
        if pipes.ready[actor] == _NEVER:
            break
        if actor == _S:
            slot = _issue(feed, code, setting, queues, times, pipes, accounts)
        else:
            slot = _advance(
                actor, feed, code, setting, stamps, cache, queues, times, pipes, accounts
            )
            _look_at_pipe(actor, feed, code, setting, queues, times, pipes)
        if slot != _NONE and slot < PIPE_FLAG_SLOTS:
            reached = slot // FLAG_IDS % FLAG_PIPES
            if reached != _S:
                _look_at_pipe(reached, feed, code, setting, queues, times, pipes)
        if actor == _S or pipes.ready[_S] == _NEVER:
            _look_at_scalar(feed, code, setting, queues, times, pipes)
    if queues.cursor[0] < feed.static.shape[0]:
        return -1
    cycles = int(queues.cursor[1]) + tail
    for pipe in range(1, PIPES):
        if queues.held[pipe]:
            return -1
        cycles = max(cycles, pipes.drained[pipe], pipes.free[pipe])
    accounts[_S, BUSY] += tail
    for pipe in range(PIPES):
        accounts[pipe, IDLE] = cycles
        for cause in range(IDLE):
            accounts[pipe, IDLE] -= accounts[pipe, cause]
    return int(cycles)


@inner
def _look_at_scalar(
    feed: Feed, code: Code, setting: Setting, queues: Queues, times: Times, pipes: Pipes
) -> None:
    """Find out when the scalar unit can have issued its next record."""
    record = queues.cursor[0]
    if record == feed.static.shape[0]:
        pipes.ready[_S] = _NEVER
        return
    item = feed.static[record]
    pipe, role, ready = int(code.pipe[item]), code.role[item], queues.cursor[1] + feed.gap[record]
    if pipe != _S:
        if queues.held[pipe] == setting.queue_entries:
            ready = _NEVER
        else:
            ready = max(ready, pipes.opened[pipe])
    elif role == _WAIT:
        ready = _after_flag(ready, int(code.flags[item]), setting, queues, times)
    elif role == _BARRIER_ALL:
        for other in range(1, PIPES):
            ready = max(ready, pipes.drained[other], pipes.free[other])
            if queues.held[other]:
                ready = _NEVER
    pipes.ready[_S] = ready


@inner
def _look_at_pipe(
    pipe: int,
    feed: Feed,
    code: Code,
    setting: Setting,
    queues: Queues,
    times: Times,
    pipes: Pipes,
) -> None:
    """Find out when the head of a queue can start."""
    if queues.held[pipe] == 0:
        pipes.ready[pipe] = _NEVER
        return
    place = queues.head[pipe]
    item = feed.static[queues.items[pipe, place]]
    ready = max(queues.entered[pipe, place], pipes.free[pipe])
    if code.role[item] == _WAIT:
        ready = _after_flag(ready, int(code.flags[item]), setting, queues, times)
    pipes.ready[pipe] = ready


@inner
def _after_flag(ready: int, slot: int, setting: Setting, queues: Queues, times: Times) -> int:
    """Return when a wait that could begin at `ready` ends, or _NEVER while nothing is set."""
    fired = queues.first_set[slot]
    if fired == _NONE:
        return _NEVER
    return int(max(ready, times.done[fired] + setting.flag_cycles))


@inner
def _issue(
    feed: Feed,
    code: Code,
    setting: Setting,
    queues: Queues,
    times: Times,
    pipes: Pipes,
    accounts: Table,
) -> int:
    """Let the scalar unit issue its next record; return the slot of a flag that it set."""
    record, issued = queues.cursor[0], pipes.ready[_S]
    item = feed.static[record]
    pipe, role = int(code.pipe[item]), code.role[item]
    began = queues.cursor[1] + feed.gap[record]
    accounts[_S, BUSY] += feed.gap[record]
    queues.cursor[0], queues.cursor[1] = record + 1, issued
    if pipe != _S:
        accounts[_S, QUEUE] += issued - began
        place = (queues.head[pipe] + queues.held[pipe]) % queues.items.shape[1]
        queues.items[pipe, place] = record
        queues.entered[pipe, place] = issued
        queues.held[pipe] += 1
        if queues.held[pipe] == 1:
            _look_at_pipe(pipe, feed, code, setting, queues, times, pipes)
        return _NONE
    times.start[record], times.end[record], times.done[record] = began, issued, issued
    slot = int(code.flags[item])
    if role == _WAIT:
        accounts[_S, FLAG] += issued - began
        _take_set(slot, record, queues)
    elif role == _BARRIER_ALL:
        accounts[_S, BARRIER] += issued - began
    elif role == _SET:
        _put_set(slot, record, setting, queues)
        return slot
    return _NONE


@inner
def _advance(
    pipe: int,
    feed: Feed,
    code: Code,
    setting: Setting,
    stamps: Line,
    cache: Line,
    queues: Queues,
    times: Times,
    pipes: Pipes,
    accounts: Table,
) -> int:
    """Let a pipe take the head of its queue; return the slot of a flag that it set."""
    first, place = pipes.ready[pipe], queues.head[pipe]
    record, began = queues.items[pipe, place], max(queues.entered[pipe, place], pipes.free[pipe])
    if queues.held[pipe] == setting.queue_entries:
        pipes.opened[pipe] = first
    queues.head[pipe] = (place + 1) % queues.items.shape[1]
    queues.held[pipe] -= 1
    item = feed.static[record]
    role, slot = code.role[item], int(code.flags[item])
    end = first
    if role == _EXECUTE:
        latency = 0
        if code.transfers[item, 0]:
            latency = _latency(
                code.transfers[item], feed.registers[record], pipe, setting, stamps, cache
            )
        end = first + code.occupancy[item]
        pipes.drained[pipe] = max(first + latency, pipes.drained[pipe]) + code.occupancy[item]
        accounts[pipe, BUSY] += code.occupancy[item]
    elif role == _BARRIER:
        end = max(first, pipes.drained[pipe])
        accounts[pipe, BARRIER] += end - first
    elif role == _WAIT:
        accounts[pipe, FLAG] += first - began
        _take_set(slot, record, queues)
    pipes.free[pipe] = end
    times.start[record], times.end[record] = began, end
    times.done[record] = first if role == _WAIT else max(end, pipes.drained[pipe])
    if role != _SET:
        return _NONE
    _put_set(slot, record, setting, queues)
    return slot


@inner
def _put_set(slot: int, record: int, setting: Setting, queues: Queues) -> None:
    if queues.first_set[slot] == _NONE:
        queues.first_set[slot] = record
    else:
        queues.next_set[queues.last_set[slot]] = record
    queues.last_set[slot] = record
    queues.pending[slot] += 1
    if queues.pending[slot] > setting.flag_limit and queues.overrun[slot] == _NONE:
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
    if pipe in (_FIX, _MTE3):
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
