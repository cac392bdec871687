"""The tables in which the state of a run stands, column by column; `pipes` works on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

BUSY, FLAG, BARRIER, QUEUE, IDLE, ACCOUNT_WORDS = 0, 1, 2, 3, 4, 5
"""Columns of an account: cycles at work, waiting for a flag, waiting at a barrier for what is under
way, waiting (the scalar unit only) for room in a full queue, and with nothing to do."""

PIPE, ROLE, SLOT, REACHED, OCCUPANCY, TRANSFER, CODE_WORDS = 0, 1, 2, 3, 4, 5, 6
"""Columns of the code, a line an instruction of a core: its queue, its `Role`, its flag counter, the
agent that a set reaches (for a flag between cores the first agent of the other core; -1 for none),
cycles that it keeps its pipe, and whether it touches GM."""

CURSOR, STOP, CLOCK, TAIL, AT_BARRIER, CORE_WORDS = 0, 1, 2, 3, 4, 5
"""Columns of a core: the next record that it issues, the record behind its last one, the time of its
scalar unit, the scalar cycles after the last record, and whether the unit waits for all pipes."""

FREE, DRAINED, HEAD, HELD, AWAKE, AWAITED, CAME, AGENT_WORDS = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of an agent: when it can take its next instruction, when all that it has begun is done, the
place of the first entry of its queue and how many it holds; whether it is awake, the counter for
which it sleeps (-1 for none), and since when."""

OLDEST, FIRST_SET, LAST_SET, LAST_TAKEN, PENDING, OVERRUN, COUNTER_WORDS = 0, 1, 2, 3, 4, 5, 6
"""Columns of a flag counter: the oldest set of all; of those that no wait has taken the oldest; the
youngest of all; the last that was taken; how many are not; and the first that exceeded the limit
(-1 for none)."""

ENTERED, START, END, DONE, NEXT_SET, PARTNER, RECORD_WORDS = 0, 1, 2, 3, 4, 5, 6
"""Columns of a record: when it entered its queue, came to its front, left it and was done; the set
after it at its counter; and for a set the wait that took it, for a wait the set that it took (-1 for
none)."""


class Setting(NamedTuple):
    """The numbers of the machine that the loop needs, in cycles and bytes.

    `core_flags` is the first counter of a flag between cores; those below lie inside of a core.
    """

    queue_entries: int
    flag_cycles: int
    core_flag_cycles: int
    core_flags: int
    flag_limit: int
    hit_cycles: int
    miss_cycles: int
    block_bytes: int
    l2_blocks: int


class Feed(NamedTuple):
    """What all cores run, one core behind another; n instructions, d records.

    Args:
        code: int64 [n, CODE_WORDS].
        transfers: What each instruction touches of GM (`decode.transfers`), int64
            [n, TRANSFER_WORDS].
        starts: Where it begins (`decode.transfer_starts`), bit address, int64 [n].
        static: The instruction of each record, int64 [d].
        gap: Scalar cycles before it, int64 [d].
        registers: Its register operands, int64 [d, 2].
    """

    code: Table
    transfers: Table
    starts: Line
    static: Line
    gap: Line
    registers: Table


class State(NamedTuple):
    """Where the run stands; after a deadlock, what everybody waits for.

    Args:
        cores: int64 [cores, CORE_WORDS].
        agents: int64 [cores * PIPES, AGENT_WORDS].
        places: Each place of a queue, a ring: the record that waits there, or when the last one left,
            int64 [cores * PIPES, entries].
        counters: int64 [slots, COUNTER_WORDS].
        records: int64 [d, RECORD_WORDS].
        accounts: int64 [cores * PIPES, ACCOUNT_WORDS].
    """

    cores: Table
    agents: Table
    places: Table
    counters: Table
    records: Table
    accounts: Table
