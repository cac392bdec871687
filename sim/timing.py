"""The pipes, cycle by cycle in effect, event by event in fact.

The scalar unit puts instructions into one in-order queue a pipe. A pipe takes the head of its
queue when it is free; a transfer from GM frees its pipe when its bytes have passed the port, but is
done only a latency later, and later transfers overlap that latency. Flags and barriers look at what
is done. The loop in `pipes` always advances whoever can act first, so shared resources are seen in
the order of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .decode import FLAG_SLOTS, PIPES
from .pipes import ACCOUNT_WORDS, Code, Feed, Queues, Setting, Times, simulate_pipes

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..ir.target import Target
    from .decode import Decoded
    from .scalar import Stream

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_NONE = -1


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


def setting_of(target: Target) -> Setting:
    """Return the numbers of `target` that the loop needs."""
    return Setting(
        target.queue_entries,
        target.flag_cycles,
        target.flag_counter_max,
        target.l2_hit_cycles,
        target.l2_miss_cycles,
        target.l2_block_bytes,
        target.l2_bytes // target.l2_block_bytes,
    )


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
        transfers: What each instruction touches of GM (`decode.bind_transfers`).
        setting: The machine.
        l2: The cache, which remembers from run to run.
    """
    count, entries = len(stream), setting.queue_entries
    queues = Queues(
        cursor=np.zeros(2, np.int64),
        items=np.zeros((PIPES, entries), np.int64),
        entered=np.zeros((PIPES, entries), np.int64),
        head=np.zeros(PIPES, np.int64),
        held=np.zeros(PIPES, np.int64),
        first_set=np.full(FLAG_SLOTS, _NONE, np.int64),
        last_set=np.full(FLAG_SLOTS, _NONE, np.int64),
        pending=np.zeros(FLAG_SLOTS, np.int64),
        overrun=np.full(FLAG_SLOTS, _NONE, np.int64),
        next_set=np.full(count, _NONE, np.int64),
        taken=np.full(count, _NONE, np.int64),
    )
    times = Times(*(np.zeros(count, np.int64) for _ in range(3)))
    accounts = np.zeros((PIPES, ACCOUNT_WORDS), np.int64)
    cycles = simulate_pipes(
        Feed(stream.static, stream.gap, stream.registers),
        stream.tail,
        Code(decoded.pipe, decoded.role, decoded.flags, occupancy, transfers),
        setting,
        l2.stamps,
        l2.state,
        queues,
        times,
        accounts,
    )
    return Timing(times, max(cycles, 0), accounts, queues, cycles >= 0)
