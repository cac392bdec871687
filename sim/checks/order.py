"""The order that flags, barriers and queues give the records of a task, found by `walk`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, cast

import numpy as np

from ...codegen.isa.cluster import CORE_FLAG_IDS
from ...codegen.isa.table import FLAG_IDS
from ...codegen.isa.vocabulary import ClusterCore, Pipe
from ..decode import FLAG_PIPES, FLAGS_OF_CORE, PIPE_FLAG_SLOTS, PIPES, Role
from . import walk as tables
from .shared import Shared, again, shared_of
from .walk import Feed, Setting, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ...ir.target import Target
    from ..pipes.timing import Program
    from .footprints import Footprints

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_CORES = len(ClusterCore)


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """What the walk found. Records are numbered through, one core's behind another's.

    Attributes:
        first: The first record of each core, then the number of all records.
        static: The instruction of each record, counted through as well, int64 [d].
        state: Where the walk stood in the end.
        behind_of: The first instruction of each core, then the number of all.
    """

    first: tuple[int, ...]
    static: Line
    state: State
    behind_of: tuple[int, ...]

    @property
    def finished(self) -> bool:
        """Whether all records ran."""
        cores, lanes = self.state.cores, self.state.lanes
        issued = bool((cores[:, tables.CURSOR] == cores[:, tables.STOP]).all())
        return issued and not lanes[:, tables.HELD].any()

    @property
    def races(self) -> list[tuple[int, int]]:
        """Pairs of records on common bytes that are in no order, as the walk met them."""
        count = int(self.state.races[0, 0])
        return [(int(one), int(other)) for one, other in self.state.races[1 : count + 1]]

    @property
    def ran(self) -> Line:
        """The records that touch memory in an order that the flags allow, int64."""
        return self.state.order[1 : int(self.state.order[0]) + 1]

    @property
    def left_up(self) -> list[tuple[int, int]]:
        """For each counter that is up in the end the last set of it, and how often it is."""
        counters = self.state.counters
        up = np.flatnonzero(counters[:, tables.PENDING])
        return [(int(counters[n, tables.NEWEST]), int(counters[n, tables.PENDING])) for n in up]

    @property
    def overruns(self) -> list[int]:
        """For each counter the first set that might exceed the limit, if there is one."""
        found = self.state.counters[:, tables.OVERRUN]
        return [int(record) for record in found[found >= 0]]

    def place(self, record: int) -> tuple[int, int]:
        """Return the core of a record and its number in the stream of that core."""
        core = next(core for core, end in enumerate(self.first[1:]) if record < end)
        return core, record - self.first[core]

    def issued(self, core: int) -> int:
        """Return how many records of its stream a core has issued."""
        return int(self.state.cores[core, tables.CURSOR]) - self.first[core]

    def held(self, core: int, pipe: int) -> int:
        """Return how many instructions stand in a queue."""
        return int(self.state.lanes[core * PIPES + pipe, tables.HELD])

    def queue(self, core: int, pipe: int) -> list[int]:
        """Return the records in a queue, oldest first, by their numbers in the core's stream."""
        found: list[int] = []
        record = int(self.state.lanes[core * PIPES + pipe, tables.HEAD])
        for _ in range(self.held(core, pipe)):
            found.append(record - self.first[core])
            record = int(self.state.behind[record])
        return found


def order_of(programs: Sequence[Program], prints: Footprints, target: Target) -> Order:
    """Walk the records of a task as far as its flags let them.

    The last order stays with the kernel: for another block of a grid it often is the same.

    Args:
        programs: What its cores run.
        prints: What they touch.
        target: The machine, for the depth of its queues and the limit of its counters.
    """
    first = tuple(accumulate((len(program.stream) for program in programs), initial=0))
    behind = tuple(accumulate((len(program.decoded) for program in programs), initial=0))
    kept = programs[0].decoded.kernel.kept
    code = _code(programs)
    static = (
        programs[0].stream.static
        if len(programs) == 1
        else np.concatenate([p.stream.static + b for p, b in zip(programs, behind, strict=False)])
    )
    feed = Feed(code, static, prints.of, prints.others, prints.begin, prints.lane)
    core_flags = len(programs) * PIPE_FLAG_SLOTS
    setting = Setting(target.queue_entries, target.flag_counter_max, core_flags)
    last = kept.get(_Walked)
    if isinstance(last, _Walked) and last.is_of(feed, setting, first, behind):
        return last.order
    order = Order(first, static, _ended(_walked(feed, setting, first)), behind)
    kept[_Walked] = _Walked(feed, setting, order)
    return order


@dataclass(frozen=True, slots=True, eq=False)
class _Walked:
    """An order, and all that it followed from."""

    feed: Feed
    setting: Setting
    order: Order

    def is_of(
        self, feed: Feed, setting: Setting, first: tuple[int, ...], behind: tuple[int, ...]
    ) -> bool:
        """Return whether the same would follow from these."""
        return (setting, first, behind) == (
            self.setting,
            self.order.first,
            self.order.behind_of,
        ) and all(
            mine is other or np.array_equal(mine, other)
            for mine, other in zip(self.feed, feed, strict=True)
        )


def _walked(feed: Feed, setting: Setting, first: Sequence[int]) -> State:
    """Walk until the sets of shared counters know no less than in the walk before."""
    slots = setting.core_flags + _CORES * _CORES * CORE_FLAG_IDS
    lane, role, slot = (feed.code[:, n] for n in (tables.LANE, tables.ROLE, tables.SLOT))
    lanes = (len(first) - 1) * PIPES
    shared = shared_of(feed.static, lane, role, slot, slots=slots, lanes=lanes)
    while True:
        state = _begun(feed, setting, first, shared)
        tables.walk(feed, setting, state, np.zeros(len(state.lanes) + 1, np.int64))
        stuck = int(shared.set_done.sum()) < len(shared.told)
        if stuck or np.array_equal(shared.told, shared.before):
            return state
        shared = again(shared)


def _ended(state: State) -> State:
    """Return the state without the tables that only the walk looks at."""
    none, no_table = np.empty(0, np.int64), np.empty((0, 0), np.int64)
    return state._replace(
        clock=no_table,
        issued=none,
        told=no_table,
        entry=none,
        free=none,
        units=no_table,
        taken=no_table,
        last=none,
        record=none,
        shared=state.shared._replace(told=no_table, before=no_table),
    )


def _begun(feed: Feed, setting: Setting, first: Sequence[int], shared: Shared) -> State:
    records, count = first[-1], len(first) - 1
    lanes, prints = count * PIPES, len(feed.lane)
    times = np.bincount(feed.static, minlength=len(feed.code))
    sets = int(times[feed.code[:, tables.ROLE] == Role.SET].sum())
    units = int(times[feed.code[:, tables.LANE] % PIPES == int(Pipe.S)].sum())
    slots = len(shared.sets) - 1
    state = State(
        cores=np.array(list(pairwise(first)), np.int64),
        lanes=np.zeros((lanes, tables.LANE_WORDS), np.int64),
        counters=np.zeros((slots, tables.COUNTER_WORDS), np.int64),
        clock=np.zeros((lanes, lanes), np.int64),
        behind=np.empty(records, np.int64),
        issued=np.empty(records, np.int64),
        told=np.empty((sets, lanes), np.int64),
        entry=np.empty(records, np.int64),
        free=np.arange(-1, sets, dtype=np.int64),
        units=np.zeros((units + 1, lanes), np.int64),
        taken=np.zeros((slots, setting.flag_limit), np.int64),
        order=np.empty(records + 1, np.int64),
        last=np.zeros(prints, np.int64),
        record=np.zeros(prints, np.int64),
        told_race=np.zeros(len(feed.others), np.uint8),
        races=np.empty((tables.MOST_RACES + 1, 2), np.int64),
        shared=shared,
    )
    state.free[0], state.order[0], state.races[0] = sets, 0, 0
    state.lanes[:, tables.AWAITED] = tables.NONE
    state.counters[:, tables.OVERRUN] = tables.NONE
    return state


def _code(programs: Sequence[Program]) -> Table:
    """Return what the walk reads of the programs, which stays with their kernel."""
    kept = programs[0].decoded.kernel.kept
    key = _code, tuple(program.core for program in programs)
    found = kept.get(key)
    if found is None:
        found = kept[key] = np.concatenate([_code_of(programs, n) for n in range(len(programs))])
    return cast("Table", found)


def _code_of(programs: Sequence[Program], number: int) -> Table:
    """Return what the walk reads of a program, int64 [n, tables.CODE_WORDS].

    Counters are numbered by core, then by slot; behind them stand those between the cores, by who
    sets, who waits, and id.
    """
    program = programs[number]
    decoded, flags = program.decoded, program.decoded.flags
    code = np.empty((len(decoded), tables.CODE_WORDS), np.int64)
    code[:, tables.LANE] = number * PIPES + decoded.pipe
    code[:, tables.ROLE] = decoded.role
    code[:, tables.SLOT] = number * PIPE_FLAG_SLOTS + flags
    code[:, tables.REACHED] = number * PIPES + flags // FLAG_IDS % FLAG_PIPES
    between = np.flatnonzero(flags >= PIPE_FLAG_SLOTS)
    if len(between):
        waits, place = np.divmod(flags[between] - PIPE_FLAG_SLOTS, FLAGS_OF_CORE)
        other, name = np.divmod(place, CORE_FLAG_IDS)
        setter = np.where(waits == 0, int(program.core), other)
        waiter = np.where(waits == 0, other, int(program.core))
        pair = setter * _CORES + waiter
        first = len(programs) * PIPE_FLAG_SLOTS
        code[between, tables.SLOT] = first + pair * CORE_FLAG_IDS + name
        unit = np.full(_CORES, tables.NONE, np.int64)
        for place_of, each in enumerate(programs):
            unit[each.core] = place_of * PIPES
        code[between, tables.REACHED] = unit[waiter]
    return code
