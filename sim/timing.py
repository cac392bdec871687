"""The pipes, cycle by cycle in effect, event by event in fact.

The scalar unit of a core puts instructions into one in-order queue a pipe. A pipe takes the head of
its queue when it is free; a transfer from GM frees its pipe when its bytes have passed the port, but
is done only a latency later, and later transfers overlap that latency. Flags and barriers look at
what is done. The cores of a cluster have all of this for themselves; flags between cores count what
one has done for another. The loop in `pipes` always advances whoever of all cores can act first, so
shared resources are seen in the order of time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..codegen.isa.cluster import CORE_FLAG_IDS
from ..codegen.isa.table import FLAG_IDS
from ..codegen.isa.vocabulary import ClusterCore
from . import pipe_tables as tables
from .decode import FLAG_PIPES, FLAGS_OF_CORE, PIPE_FLAG_SLOTS, PIPES, Role
from .pipe_tables import Feed, Setting, State
from .pipes import simulate_pipes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ..ir.target import Target
    from .decode import Decoded
    from .l2 import L2
    from .scalar import Stream

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_NONE = -1
_CORES = len(ClusterCore)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A kernel as one core runs it.

    Attributes:
        core: Which core of its cluster.
        decoded: The kernel.
        stream: Its resolved instructions.
        views: Its bound views (`decode.bind_views`).
        code: What the loop reads of it (`code_of`).
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


class Times(NamedTuple):
    """When each record came to the front of its pipe, left it and was done, int64 [d] each."""

    start: Line
    end: Line
    done: Line


@dataclass(frozen=True, slots=True, eq=False)
class Timing:
    """The outcome of one run. Its records are numbered through, one core's behind another's.

    Attributes:
        cycles: From the first scalar cycle until everything on every core is done.
        finished: False after a deadlock.
        state: Where the run stood in the end.
        first: The first record of each core, then the number of all records.
    """

    cycles: int
    finished: bool
    state: State
    first: tuple[int, ...]

    @property
    def accounts(self) -> Table:
        """What the pipes did, int64 [cores, PIPES, ACCOUNT_WORDS]; lines sum to `cycles`."""
        return self.state.accounts.reshape(-1, PIPES, tables.ACCOUNT_WORDS)

    def times(self, core: int) -> Times:
        """Return the times of the records of one core, counted among the cores that ran."""
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
        """Return how many records of its stream a core has issued."""
        return int(self.state.cores[core, tables.CURSOR]) - self.first[core]

    def held(self, core: int, pipe: int) -> int:
        """Return how many instructions stand in a queue."""
        return int(self.state.agents[core * PIPES + pipe, tables.HELD])

    def queue(self, core: int, pipe: int) -> list[int]:
        """Return the records in a queue, oldest first, by their numbers in the core's stream."""
        line, places = (
            table[core * PIPES + pipe] for table in (self.state.agents, self.state.places)
        )
        first, held = int(line[tables.HEAD]), int(line[tables.HELD])
        records = [int(places[place % len(places)]) for place in range(first, first + held)]
        return [record - self.first[core] for record in records]


def run(programs: Sequence[Program], *, target: Target, l2: L2) -> Timing:
    """Time one run of a cluster.

    Args:
        programs: What its cores run, one program a core at most.
        target: The machine.
        l2: The cache, which remembers from run to run.
    """
    feed, first = _joined(programs)
    cores = np.zeros((len(programs), tables.CORE_WORDS), np.int64)
    cores[:, tables.CURSOR], cores[:, tables.STOP] = first[:-1], first[1:]
    cores[:, tables.TAIL] = [program.stream.tail for program in programs]
    slots = len(programs) * PIPE_FLAG_SLOTS + _CORES * FLAGS_OF_CORE
    state = State(
        cores=cores,
        agents=np.zeros((len(programs) * PIPES, tables.AGENT_WORDS), np.int64),
        places=np.zeros((len(programs) * PIPES, target.queue_entries), np.int64),
        counters=np.full((slots, tables.COUNTER_WORDS), _NONE, np.int64),
        records=np.zeros((first[-1], tables.RECORD_WORDS), np.int64),
        accounts=np.zeros((len(programs) * PIPES, tables.ACCOUNT_WORDS), np.int64),
    )
    state.counters[:, tables.PENDING] = 0
    setting = _setting_of(target, core_flags=len(programs) * PIPE_FLAG_SLOTS)
    cycles = simulate_pipes(feed, setting, l2.stamps, l2.state, state)
    return Timing(max(cycles, 0), cycles >= 0, state, first)


def _setting_of(target: Target, *, core_flags: int) -> Setting:
    return Setting(
        queue_entries=target.queue_entries,
        flag_cycles=target.flag_cycles,
        core_flag_cycles=target.core_flag_cycles,
        core_flags=core_flags,
        flag_limit=target.flag_counter_max,
        hit_cycles=target.l2_hit_cycles,
        miss_cycles=target.l2_miss_cycles,
        block_bytes=target.l2_block_bytes,
        l2_blocks=target.l2_bytes // target.l2_block_bytes,
    )


def _joined(programs: Sequence[Program]) -> tuple[Feed, tuple[int, ...]]:
    """Return all that the cores run, and the first record of each, then the number of all."""
    first, begin = [0], 0
    static: list[Line] = []
    for program in programs:
        first.append(first[-1] + len(program.stream))
        static.append(program.stream.static + begin if begin else program.stream.static)
        begin += len(program.decoded)
    feed = Feed(
        code=_one([_code_among(programs, number) for number in range(len(programs))]),
        transfers=_one([program.transfers for program in programs]),
        starts=_one([program.starts for program in programs]),
        static=_one(static),
        gap=_one([program.stream.gap for program in programs]),
        registers=_one([program.stream.registers for program in programs]),
    )
    return feed, tuple(first)


def _one(parts: Sequence[Table]) -> Table:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def code_of(decoded: Decoded, occupancy: Line, transfers: Table) -> Table:
    """Return what the loop reads of a kernel that runs alone, int64 [n, tables.CODE_WORDS].

    Args:
        decoded: The kernel.
        occupancy: Cycles that each instruction keeps its pipe, int64 [n].
        transfers: What each instruction touches of GM (`decode.transfers`).
    """
    code = np.zeros((len(decoded), tables.CODE_WORDS), np.int64)
    code[:, tables.PIPE], code[:, tables.ROLE] = decoded.pipe, decoded.role
    code[:, tables.OCCUPANCY], code[:, tables.TRANSFER] = occupancy, transfers[:, 0]
    code[:, tables.SLOT] = decoded.flags
    waiting_pipe = decoded.flags // FLAG_IDS % FLAG_PIPES
    code[:, tables.REACHED] = np.where(decoded.role == Role.SET, waiting_pipe, _NONE)
    return code


def _code_among(programs: Sequence[Program], number: int) -> Table:
    """Return the code of a program among those that run at the same time.

    Counters are numbered by core, then by slot; behind them stand those between the cores, by who
    sets, who waits, and id.
    """
    program, flags = programs[number], programs[number].decoded.flags
    between = np.flatnonzero(flags >= PIPE_FLAG_SLOTS)
    if number == 0 and not len(between):
        return program.code
    code = program.code.copy()
    is_set = code[:, tables.ROLE] == Role.SET
    code[:, tables.SLOT] += number * PIPE_FLAG_SLOTS
    code[is_set, tables.REACHED] += number * PIPES
    to_other, place = np.divmod(flags[between] - PIPE_FLAG_SLOTS, FLAGS_OF_CORE)
    other, name = np.divmod(place, CORE_FLAG_IDS)
    setter = np.where(to_other == 0, int(program.core), other)
    waiter = np.where(to_other == 0, other, int(program.core))
    pair = setter * _CORES + waiter
    code[between, tables.SLOT] = len(programs) * PIPE_FLAG_SLOTS + pair * CORE_FLAG_IDS + name
    first_agent = np.full(_CORES, _NONE, np.int64)
    for place_of, each in enumerate(programs):
        first_agent[each.core] = place_of * PIPES
    code[between, tables.REACHED] = np.where(is_set[between], first_agent[waiter], _NONE)
    return code
