"""The tables in which the state of a run stands, column by column; `pipes` works on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ...codegen.isa.vocabulary import ClusterCore

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Bits = npt.NDArray[np.uint8]

CORES: Final = len(ClusterCore)
"""Cores of a cluster. A core's number on the device is cluster * CORES + its `ClusterCore`, an agent's
is core * PIPES + its pipe, the scalar unit being the pipe `S`."""

BUSY, FLAG, BARRIER, QUEUE, MEMORY, SCALES, IDLE, ACCOUNT_WORDS = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of an account: cycles at work, waiting for a flag, waiting at a barrier for what is under
way, waiting (the scalar unit only) for room in a full queue, at a transfer that takes longer than on
its own because others share its way, at a mad whose scales come too slowly, and with nothing to do."""

PIPE, ROLE, SLOT, IS_BETWEEN, REACHED, OCCUPANCY, STARVED, BYTES, CODE_WORDS = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
)
"""Columns of the code, a line an instruction of a core: its queue, its `Role`, its flag counter, counted
among those of the program or, for a flag between cores, among those of the cluster; whether it is
one; how far behind the core's first agent the one stands that a set reaches (for a flag between cores
the first agent of the other core); cycles that it keeps its pipe when nothing stands in its way, and
how many of them a mad waits for scales; and the bytes that a transfer moves from or to GM, or 0."""

(
    CURSOR,
    STOP,
    CLOCK,
    TAIL,
    AT_BARRIER,
    LEFT,
    CODE,
    STARTS,
    COUNTERS,
    BETWEEN,
    CORE_WORDS,
) = range(11)
"""Columns of a core: the next record that it issues, the record behind its last one, the time of its
scalar unit, the scalar cycles after the last record, whether the unit waits for all pipes, how many
records are not done, where the code of its program begins and where its transfers do in GM, and the
first flag counter of the program and of its cluster."""

(
    FREE,
    DRAINED,
    HEAD,
    HELD,
    AWAKE,
    AWAITED,
    CAME,
    FLOWING,
    LATENCY,
    AGENT_WORDS,
) = range(10)
"""Columns of an agent: when it can take its next instruction, when all that it has begun is done, the
place of the first entry of its queue and how many it holds; whether it is awake, the counter for
which it sleeps (-1 for none), and since when; the transfer that it is at (-1 for none), and how long
after its bytes that is done."""

OLDEST, FIRST_SET, LAST_SET, LAST_TAKEN, PENDING, OVERRUN, COUNTER_WORDS = 0, 1, 2, 3, 4, 5, 6
"""Columns of a flag counter: the oldest set of all; of those that no wait has taken the oldest; the
youngest of all; the last that was taken; how many are not; and the first that exceeded the limit
(-1 for none)."""

ENTERED, START, END, DONE, NEXT_SET, PARTNER, RECORD_WORDS = 0, 1, 2, 3, 4, 5, 6
"""Columns of a record: when it entered its queue, came to its front, left it and was done; the set
after it at its counter; and for a set the wait that took it, for a wait the set that it took (-1 for
none)."""

(
    PART_CORE,
    PART_FIRST,
    PART_STOP,
    PART_TAIL,
    PART_CODE,
    PART_STARTS,
    PART_COUNTERS,
    PART_BETWEEN,
    PART_WORDS,
) = range(9)
"""Columns of a part, what one core does of a task: which core of its cluster, and what the core's
columns of these names are when it begins."""

FIRST_PART, LAST_PART, IN_STEP, BEGUN, ENDED, CLUSTER, TASK_WORDS = 0, 1, 2, 3, 4, 5, 6
"""Columns of a task: its first part and the one behind its last; how many blocks, from this
one on, must begin together; when it began and ended (-1 for not yet), and on which cluster."""

FIRST_TASK, LAST_TASK, WAITS, GROUP_WORDS = 0, 1, 2, 3
"""Columns of a group, tasks in a row that wait for the same ones: the first and the one behind the
last, and how many tasks they still wait for."""

RUNNING, PARTS_LEFT, CLUSTER_WORDS = 0, 1, 2
"""Columns of a cluster: the task that it runs (-1 for none), and how many of its parts are not done."""


class Setting(NamedTuple):
    """The numbers of the machine that the loop needs, in cycles and bytes."""

    queue_entries: int
    flag_cycles: int
    core_flag_cycles: int
    flag_limit: int
    hit_cycles: int
    miss_cycles: int
    block_bytes: int
    line_bytes: int
    l2_blocks: int
    port_rate: float
    l2_rate: float
    hbm_rate: float


class Feed(NamedTuple):
    """What all tasks run: n instructions of all programs, d records of all parts.

    Args:
        code: int64 [n, CODE_WORDS].
        transfers: What each instruction touches of GM (`decode.transfers`), int64
            [n, TRANSFER_WORDS].
        starts: Where it begins (`decode.transfer_starts`), bit address; a line of them for every
            program and the buffers that it is launched with, int64.
        static: The instruction of each record in its program, int64 [d].
        gap: Scalar cycles before it, int64 [d].
        registers: Its register operands, int64 [d, 2].
    """

    code: Table
    transfers: Table
    starts: Line
    static: Line
    gap: Line
    registers: Table


class Plan(NamedTuple):
    """Which tasks there are and what they wait for.

    Args:
        parts: int64 [parts, PART_WORDS].
        tasks: int64 [tasks, TASK_WORDS].
        groups: int64 [groups, GROUP_WORDS].
        edges_of: The first edge of each task, then the number of all, int64 [tasks + 1].
        edges: The groups that wait for a task, int64 [edges].
    """

    parts: Table
    tasks: Table
    groups: Table
    edges_of: Line
    edges: Line


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
        clusters: int64 [clusters, CLUSTER_WORDS].
    """

    cores: Table
    agents: Table
    places: Table
    counters: Table
    records: Table
    accounts: Table
    clusters: Table
