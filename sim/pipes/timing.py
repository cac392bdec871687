"""The pipes, cycle by cycle in effect, event by event in fact.

The scalar unit of a core puts instructions into one in-order queue a pipe. A pipe takes the head of
its queue when it is free; a transfer from GM frees its pipe when its bytes have passed, but is done only
a latency later, and later transfers overlap that latency. Flags and barriers look at what is done. The
cores of a cluster have all of this for themselves; flags between cores count what one has done for
another. All clusters share the L2 and what lies behind it (`flows`, `l2`), and take the tasks of a
launch as they become ready (`dispatch`). The `loop` always advances whoever of all can act
first, so shared resources are seen in the order of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..decode import PIPES
from . import tables
from .flags import NONE
from .layout import laid_out
from .loop import simulate_pipes
from .tables import Setting, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ...codegen.isa.vocabulary import ClusterCore
    from ...ir.target import Target
    from ..decode import Decoded
    from ..scalar import Stream
    from .l2 import L2
    from .tables import Plan

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A kernel as one core runs it.

    Attributes:
        core: Which core of its cluster.
        decoded: The kernel.
        stream: Its resolved instructions.
        views: Its bound views (`decode.bind_views`).
        code: What the loop reads of it (`layout.code_of`).
        transfers: What each instruction touches of GM (`decode.transfers`).
        starts: Where it begins (`decode.transfer_starts`).
    """

    core: ClusterCore
    decoded: Decoded
    stream: Stream
    views: Table
    code: Table
    transfers: Table
    starts: Line


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A task as the device sees it.

    Attributes:
        programs: What the cores of a cluster run, one program a core at most.
        depends: Numbers of the tasks that must have ended before.
        in_step: How many blocks, from this one on, must begin together; 1 for one of its own.
    """

    programs: Sequence[Program]
    depends: tuple[int, ...] = ()
    in_step: int = 1


class Times(NamedTuple):
    """When each record came to the front of its pipe, left it and was done, int64 [d] each."""

    start: Line
    end: Line
    done: Line


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """How a task went; times count from the first cycle after the launch.

    The cores of the task are numbered as its programs are. Its records are numbered through all tasks,
    one core's behind another's.

    Attributes:
        state: Where all tasks stood in the end.
        cluster: Which cluster ran it, or -1 if none did.
        began: First cycle; -1 if it never began.
        ended: The cycle after everything on every core was done; -1 after a deadlock.
        cores: The numbers of its cores on the device.
        first: The first record of each core, then the one behind the last.
        counters: Its flag counters, int64 [slots, COUNTER_WORDS].
    """

    state: State
    cluster: int
    began: int
    ended: int
    cores: tuple[int, ...]
    first: tuple[int, ...]
    counters: Table

    @property
    def finished(self) -> bool:
        """False after a deadlock."""
        return self.ended >= 0

    @property
    def cycles(self) -> int:
        """How long it took; 0 if it did not come to its end."""
        return self.ended - self.began if self.finished else 0

    @property
    def accounts(self) -> Table:
        """What the pipes of its cores did in all tasks, int64 [cores, PIPES, ACCOUNT_WORDS]."""
        return self.state.accounts.reshape(-1, PIPES, tables.ACCOUNT_WORDS)[list(self.cores)]

    @property
    def partners(self) -> Line:
        """For a set the wait that took it and the other way round, among its records; -1 for none."""
        partners = self.state.records[self.first[0] : self.first[-1], tables.PARTNER]
        return np.where(partners == NONE, NONE, partners - self.first[0])

    def times(self, core: int) -> Times:
        """Return the times of the records of one core."""
        records = self.records(core)
        return Times(records[:, tables.START], records[:, tables.END], records[:, tables.DONE])

    def records(self, core: int) -> Table:
        """Return the lines of one core's records, int64 [d, tables.RECORD_WORDS]."""
        return self.state.records[self.first[core] : self.first[core + 1]]

    def place(self, record: int) -> tuple[int, int]:
        """Return the core of a record and its number in the stream of that core."""
        core = next(core for core, end in enumerate(self.first[1:]) if record < end)
        return core, record - self.first[core]

    def issued(self, core: int) -> int:
        """Return how many records of its stream a core has issued, of a task that did not end."""
        if self.finished:
            return self.first[core + 1] - self.first[core]
        return int(self.state.cores[self.cores[core], tables.CURSOR]) - self.first[core]

    def held(self, core: int, pipe: int) -> int:
        """Return how many instructions stand in a queue."""
        return int(self.state.agents[self.cores[core] * PIPES + pipe, tables.HELD])

    def queue(self, core: int, pipe: int) -> list[int]:
        """Return the records in a queue, oldest first, by their numbers in the core's stream."""
        line, places = (
            table[self.cores[core] * PIPES + pipe]
            for table in (self.state.agents, self.state.places)
        )
        first, held = int(line[tables.HEAD]), int(line[tables.HELD])
        records = [int(places[place % len(places)]) for place in range(first, first + held)]
        return [record - self.first[core] for record in records]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTiming:
    """The outcome of a launch.

    Attributes:
        cycles: From its first cycle until the last task has ended; 0 after a deadlock.
        finished: False after a deadlock.
        state: Where it stood in the end.
        tasks: How each task went.
    """

    cycles: int
    finished: bool
    state: State
    tasks: tuple[Timing, ...]

    @property
    def accounts(self) -> Table:
        """What the pipes did, int64 [cores, PIPES, ACCOUNT_WORDS]; lines sum to `cycles`.

        Cores are numbered as in `tables`: cluster by cluster.
        """
        return self.state.accounts.reshape(-1, PIPES, tables.ACCOUNT_WORDS)


def run(programs: Sequence[Program], *, target: Target, l2: L2) -> Timing:
    """Time one task on a device that has nothing else to do.

    Args:
        programs: What the cores of a cluster run, one program a core at most.
        target: The machine.
        l2: The cache, which remembers from run to run.
    """
    return run_all([Job(programs)], target=target, l2=l2).tasks[0]


def run_all(jobs: Sequence[Job], *, target: Target, l2: L2) -> DeviceTiming:
    """Time the tasks of a launch.

    Args:
        jobs: The tasks, at least one; those that begin in step stand in a row.
        target: The machine.
        l2: The cache, which remembers from run to run.
    """
    feed, plan, slots = laid_out(jobs)
    clusters = min(target.cores, len(jobs))
    cores = clusters * tables.CORES
    agents = np.zeros((cores * PIPES, tables.AGENT_WORDS), np.int64)
    agents[:, [tables.AWAITED, tables.FLOWING]] = NONE
    state = State(
        cores=np.zeros((cores, tables.CORE_WORDS), np.int64),
        agents=agents,
        places=np.zeros((cores * PIPES, target.queue_entries), np.int64),
        counters=np.full((slots, tables.COUNTER_WORDS), NONE, np.int64),
        records=np.zeros((len(feed.static), tables.RECORD_WORDS), np.int64),
        accounts=np.zeros((cores * PIPES, tables.ACCOUNT_WORDS), np.int64),
        clusters=np.full((clusters, tables.CLUSTER_WORDS), NONE, np.int64),
    )
    state.counters[:, tables.PENDING] = 0
    cycles = simulate_pipes(feed, plan, _setting_of(target, l2), l2.cache, state)
    return DeviceTiming(max(cycles, 0), cycles >= 0, state, _tasks(plan, state))


def _tasks(plan: Plan, state: State) -> tuple[Timing, ...]:
    found: list[Timing] = []
    all_parts, tasks = plan.parts.tolist(), plan.tasks.tolist()
    counters = [all_parts[task[tables.FIRST_PART]][tables.PART_COUNTERS] for task in tasks]
    for task, (own, beyond) in zip(tasks, pairwise([*counters, len(state.counters)]), strict=True):
        parts = all_parts[task[tables.FIRST_PART] : task[tables.LAST_PART]]
        cluster = task[tables.CLUSTER]
        found.append(
            Timing(
                state,
                cluster,
                task[tables.BEGUN],
                task[tables.ENDED],
                tuple(cluster * tables.CORES + part[tables.PART_CORE] for part in parts),
                (*(part[tables.PART_FIRST] for part in parts), parts[-1][tables.PART_STOP]),
                state.counters[own:beyond],
            )
        )
    return tuple(found)


def _setting_of(target: Target, l2: L2) -> Setting:
    return Setting(
        queue_entries=target.queue_entries,
        flag_cycles=target.flag_cycles,
        core_flag_cycles=target.core_flag_cycles,
        flag_limit=target.flag_counter_max,
        hit_cycles=target.l2_hit_cycles,
        miss_cycles=target.l2_miss_cycles,
        block_bytes=l2.block_bytes,
        line_bytes=l2.line_bytes,
        l2_blocks=l2.blocks,
        port_rate=float(target.gm_port_bytes_per_cycle),
        l2_rate=float(target.l2_bytes_per_cycle),
        hbm_rate=float(target.hbm_bytes_per_cycle),
    )
