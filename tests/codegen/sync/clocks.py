"""Vector clocks of the programs that the cores of a cluster run at the same time.

Written from the manual alone: a pipe of a core, a lane, works in order; flags, core flags and barriers
are the only order between lanes, and a scalar unit that waits issues nothing.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.isa.vocabulary import Pipe

from ..emit.scalar_machine import Issued

PIPES = tuple(pipe for pipe in Pipe if pipe is not Pipe.ALL)
LANES = 3 * len(Pipe)

Flag = tuple[int, ...]
"""(src, dst, id) of a flag within core 0, (core, src, dst, id) within another, (from, to, id, -1) of a
core flag."""


@dataclass(eq=False)
class Event:
    """An instruction that a scalar unit hands on."""

    core: int
    index: int
    """Its place among all programs' instructions."""
    issued: Issued

    @property
    def instruction(self) -> Instruction:
        return self.issued.instruction

    @cached_property
    def lane(self) -> int:
        return self.core * len(Pipe) + self.instruction.pipe

    @property
    def mnemonic(self) -> str:
        return self.instruction.mnemonic

    @property
    def stops_core(self) -> bool:
        return self.mnemonic == "pipe_barrier" and self.instruction["pipe"] == Pipe.ALL

    @cached_property
    def flag(self) -> Flag | None:
        each = self.instruction
        match each.mnemonic:
            case "set_flag" | "wait_flag":
                inside = each["src"], each["dst"], each["id"]
                return (self.core, *inside) if self.core else inside
            case "set_core_flag":
                return self.core, each["to"], each["id"], -1
            case "wait_core_flag":
                return each["of"], self.core, each["id"], -1
            case _:
                return None

    @property
    def sets(self) -> bool:
        return self.mnemonic.startswith("set_")


class Clock(NamedTuple):
    """When an instruction runs: its number on its lane, and what is done before it, a lane each."""

    number: int
    done: tuple[int, ...]


class Clocks:
    """A run of some cores as far as their flags allow; a wait takes the oldest set that nobody took.

    Attributes:
        of: The clock of each event that ran.
        pairs: Each set and the wait that took it.
        left: The events that never run, those at the head of a queue.
        up: The flags that stay up.
    """

    def __init__(self, streams: Sequence[Sequence[Event]]) -> None:
        self._streams = [deque(stream) for stream in streams]
        self._queues: dict[int, deque[tuple[Event, list[int]]]] = defaultdict(deque)
        self._known: dict[int, list[int]] = defaultdict(lambda: [0] * LANES)
        self._sets: dict[Flag, deque[Event]] = defaultdict(deque)
        self.of: dict[Event, Clock] = {}
        self.pairs: list[tuple[Event, Event]] = []
        moved = True
        while moved:
            steps = [self._advance(stream) for stream in self._streams]
            moved = any(steps)
        heads = [queue[0][0] for queue in self._queues.values() if queue]
        heads += [stream[0] for stream in self._streams if stream and not stream[0].stops_core]
        self.left = heads
        self.up = [flag for flag, waiting in self._sets.items() if waiting]

    def before(self, first: Event, then: Event) -> bool:
        """Whether one is surely done when the other begins."""
        return self.of[then].done[first.lane] >= self.of[first].number

    def _advance(self, stream: deque[Event]) -> bool:
        moved = self._drain()
        while stream:
            event = stream[0]
            unit = event.core * len(Pipe)
            if event.stops_core:
                if any(self._queues[unit + pipe] for pipe in PIPES):
                    break
                self._join(unit)
            elif event.lane == unit:
                if not self._run(event, self._known[unit]):
                    break
            else:
                self._queues[event.lane].append((event, list(self._known[unit])))
            stream.popleft()
            moved = self._drain() or True
        return moved

    def _drain(self) -> bool:
        moved = again = False
        while True:
            for queue in list(self._queues.values()):
                while queue and self._run(*queue[0]):
                    queue.popleft()
                    again = moved = True
            if not again:
                return moved
            again = False

    def _join(self, unit: int) -> None:
        lanes = [unit + pipe for pipe in PIPES]
        everything = [max(column) for column in zip(*(self._known[n] for n in lanes), strict=True)]
        for lane in lanes:
            self._known[lane] = list(everything)

    def _run(self, event: Event, issued_after: Sequence[int]) -> bool:
        flag, lane = event.flag, event.lane
        known = [max(pair) for pair in zip(self._known[lane], issued_after, strict=True)]
        if flag is not None and not event.sets:
            if not self._sets[flag]:
                return False
            taken = self._sets[flag].popleft()
            self.pairs.append((taken, event))
            known = [max(pair) for pair in zip(known, self.of[taken].done, strict=True)]
        known[lane] += 1
        self._known[lane] = known
        self.of[event] = Clock(known[lane], tuple(known))
        if flag is not None and event.sets:
            self._sets[flag].append(event)
        return True

    # ----------------------------------------------------------------- use of flags

    def misused(self, events: Sequence[Event]) -> Iterator[Event]:
        """Yield sets that may find their flag up, and waits that may take a flag from another one.

        A flag between the same two lanes throughout may count further: its sets and its waits have one
        order each. A flag within a core may not.
        """
        sets: dict[Flag, list[Event]] = defaultdict(list)
        waits: dict[Flag, list[Event]] = defaultdict(list)
        for event in events:
            if event.flag is not None:
                (sets if event.sets else waits)[event.flag].append(event)
        for flag, setters in sets.items():
            ends = [*setters, *waits[flag]]
            if flag[-1] == -1 and len({event.lane for event in ends}) == 2:
                continue
            for number, event in enumerate(setters[1:]):
                if number >= len(waits[flag]) or not self.before(waits[flag][number], event):
                    yield event
            for number, event in enumerate(waits[flag][1:]):
                if event.lane != waits[flag][number].lane and not self.before(
                    waits[flag][number], event
                ):
                    yield event


def gets_through(streams: Sequence[Sequence[Event]], depth: int) -> bool:
    """Whether scalar units with queues of `depth` entries, a waiting head included, get through."""
    waiting = [deque(stream) for stream in streams]
    queues: dict[int, deque[Event]] = defaultdict(deque)
    up: dict[Flag, int] = defaultdict(int)

    def passes(event: Event) -> bool:
        if event.flag is not None:
            if not event.sets and not up[event.flag]:
                return False
            up[event.flag] += 1 if event.sets else -1
        return True

    def issue(stream: deque[Event]) -> bool:
        event, unit = stream[0], stream[0].core * len(Pipe)
        if event.stops_core:
            return not any(queues[unit + pipe] for pipe in PIPES)
        if event.lane == unit:
            return passes(event)
        if len(queues[event.lane]) >= depth:
            return False
        queues[event.lane].append(event)
        return True

    moved = True
    while moved:
        moved = False
        for queue in list(queues.values()):
            while queue and passes(queue[0]):
                queue.popleft()
                moved = True
        for stream in waiting:
            if stream and issue(stream):
                stream.popleft()
                moved = True
    return not any(queues.values()) and not any(waiting)
