"""A symbolic run of a tree: what each pipe knows to be finished, and what it should know.

The walk goes through the tree in program order and keeps for every pipe of every core, a lane, the set
of steps of which all runs so far are finished before the lane's next one begins: its own, since a pipe
works in order, and those that a flag or a barrier told it of. Loops are walked until nothing changes,
both arms of a branch are walked, and afterwards only what every way through agrees on is known. Sets are
integers, a bit a step; each edge has a bit too, which is known to who knows that its flag was taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ..tree import AnyLoop, Branch
from .hazards import Gaps, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..tree import Block
    from .hazards import Barrier, Edge, Gap, Hazards

STEADY_TRIPS = 8
"""Trips after which a walk stops hoping that a loop's trips become alike, and takes what all share."""
_CHUNK = 64


@dataclass
class Report:
    """What a walk found.

    Attributes:
        missing: Orders that nothing keeps, each with the place where it is made.
        up: Pairs of edges of one pool of numbers, the second set while the flag of the first may
            still be up; an edge may be paired with itself.
        crossed: Pairs of edges between two cores, of which a wait of the second might take the flag
            of the first: its lane does not know that the first one's lane has taken it.
        order: The edges as they are first set.
    """

    missing: dict[Edge, None] = field(default_factory=dict["Edge", None])
    up: set[tuple[Edge, Edge]] = field(default_factory=set[tuple["Edge", "Edge"]])
    crossed: set[tuple[Edge, Edge]] = field(default_factory=set[tuple["Edge", "Edge"]])
    order: list[Edge] = field(default_factory=list["Edge"])

    @property
    def apart(self) -> set[tuple[Edge, Edge]]:
        """All pairs that must not have the same number."""
        return self.up | self.crossed


class _Enough(Exception):  # noqa: N818 - control flow, caught where it is raised from
    """One missing order is all that the caller wants to know."""


def walk(
    hazards: Hazards,
    edges: Iterable[Edge],
    barriers: Iterable[Barrier] = (),
    *,
    flags: bool = False,
) -> Report:
    """Return what the tree lacks under `edges` and `barriers`.

    Args:
        hazards: The tree and its conflicts.
        edges: The orders that are kept by flags.
        barriers: Where all pipes of a core are waited for, or all of both cores.
        flags: Whether to find which flags may be up at the same time.
    """
    run = _Walk(hazards, edges, barriers, flags=flags, one=False)
    run.block(hazards.root)
    return run.report


def is_safe(hazards: Hazards, edges: Iterable[Edge], barriers: Iterable[Barrier] = ()) -> bool:
    """Return whether `edges` and `barriers` keep every order that the tree needs."""
    run = _Walk(hazards, edges, barriers, flags=False, one=True)
    try:
        run.block(hazards.root)
    except _Enough:
        return False
    return True


@dataclass
class _State:
    """What is known on one way through the tree.

    Attributes:
        known: For each lane, what it knows to be finished; a part of `run`.
        run: What has run at all.
        told: For each flag that is up, by its edge's place, what its setter knew, and the length of the
            log then.
    """

    known: dict[int, int]
    run: int
    told: dict[int, tuple[int, int]]

    def copy(self) -> _State:
        return _State(dict(self.known), self.run, dict(self.told))

    def same(self, other: _State) -> bool:
        """Return whether both know the same; both must be settled."""
        return (
            self.run == other.run
            and self.known == other.known
            and all(bits == other.told[edge][0] for edge, (bits, _) in self.told.items())
        )

    def meet(self, other: _State, now: int) -> None:
        """Keep what both know; what did not run on one way is as good as known there.

        Both must be settled; `now` is the log's length.
        """
        mine, theirs = ~self.run, ~other.run
        self.run |= other.run
        for lane, bits in self.known.items():
            self.known[lane] = (bits | mine) & (other.known[lane] | theirs) & self.run
        assert self.told.keys() == other.told.keys(), "flags are balanced on every way"
        for edge, (bits, _) in self.told.items():
            told = (bits | mine) & (other.told[edge][0] | theirs) & self.run
            self.told[edge] = (told, now)


class _Walk:
    def __init__(
        self,
        hazards: Hazards,
        edges: Iterable[Edge],
        barriers: Iterable[Barrier],
        *,
        flags: bool,
        one: bool,
    ) -> None:
        edges = list(edges)
        self._hazards = hazards
        self._gaps = gaps = Gaps.of(edges, barriers)
        self._busy: dict[Block, set[int]] = {}
        for block, index in (*gaps.sets, *gaps.barriers, *gaps.waits):
            self._busy.setdefault(block, set()).add(index)
        self._flags = flags
        self._one = one
        first = len(hazards.steps)
        self._place_of = {edge: first + number for number, edge in enumerate(edges)}
        self._edge_of = {place: edge for edge, place in self._place_of.items()}
        self._of_pool: dict[tuple[int, ...], int] = {}
        for edge, place in self._place_of.items() if flags else ():
            self._of_pool[edge.pool] = self._of_pool.get(edge.pool, 0) | 1 << place
        self._state = _State(dict.fromkeys(hazards.lanes_of[None], 0), 0, {})
        self._acts: dict[Block, list[Callable[[], None]]] = {}
        self._log: list[int] = []
        self._chunks: list[int] = []
        self._after: dict[int, tuple[int, int]] = {}
        self._seen: set[Edge] = set()
        self.report = Report()

    # ----------------------------------------------------------------- the tree

    def block(self, block: Block) -> None:
        """Walk one run of a block."""
        acts = self._acts.get(block)
        if acts is None:
            acts = self._acts[block] = list(self._acts_of(block))
        for act in acts:
            act()

    def _acts_of(self, block: Block) -> Iterator[Callable[[], None]]:
        """Yield what a run of a block does."""
        for part in self._hazards.parts(block, tuple(sorted(self._busy.get(block, ())))):
            match part:
                case int():
                    yield from self._gap((block, part))
                case Run() if self._one:  # one fault is enough, so a lane's steps are one
                    for lump in part.lumps:
                        yield partial(self._check, lump.lane, lump.steps, lump.clashes)
                case Run():
                    yield from (partial(self._step, number) for number in part.numbers)
                case AnyLoop():
                    yield partial(self._loop, part)
                case Branch():
                    yield partial(self._branch, part)

    def _loop(self, loop: AnyLoop) -> None:
        """Walk trips until one more changes nothing; what follows may come after any number."""
        trips = loop.trips
        if trips == 0:
            return
        self._settle()
        before = self._state.copy()
        ways = [before] if trips is None else []
        trip = 0
        while True:
            self.block(loop.body)
            self._settle()
            trip += 1
            if trip == trips or self._state.same(before):
                break
            if trip > STEADY_TRIPS:
                self._state.meet(before, len(self._log))
                if self._state.same(before):
                    break
            before = self._state.copy()
            if trips is None:
                ways.append(before)
        for way in ways:
            self._state.meet(way, len(self._log))

    def _branch(self, branch: Branch) -> None:
        self._settle()
        start, before = len(self._log), self._state.copy()
        self.block(branch.then_body)
        self._settle()
        then_log = self._cut_log(start)
        after_then, self._state = self._state, before
        self.block(branch.else_body)
        self._settle()
        else_log = self._cut_log(start)
        for bit in (*then_log, *else_log):
            self._write(bit)
        self._state.meet(after_then, len(self._log))

    # ----------------------------------------------------------------- events

    def _record(self, bit: int) -> None:
        """Something new runs: nobody knows it to be finished any more."""
        state = self._state
        if state.run & bit:
            known, others = state.known, ~bit
            for lane in known:
                known[lane] &= others
        state.run |= bit
        self._write(bit)

    def _write(self, bit: int) -> None:
        self._log.append(bit)
        if len(self._log) % _CHUNK == 0:
            self._chunks.append(_together(self._log[-_CHUNK:]))

    def _cut_log(self, start: int) -> list[int]:
        """Take the log's part from `start` on away, as if it had not happened, and return it."""
        part = self._log[start:]
        del self._log[start:]
        del self._chunks[start // _CHUNK :]
        return part

    def _since(self, when: int) -> int:
        """Return what ran since the log had length `when`."""
        if len(self._log) - when <= _CHUNK:
            return _together(self._log[when:])
        chunk, whole = -(-when // _CHUNK), len(self._chunks) * _CHUNK
        found = _together(self._log[when : chunk * _CHUNK]) | _together(self._chunks[chunk:])
        return found | _together(self._log[max(when, whole) :])

    def _settle(self) -> None:
        """Bring what setters told up to now, so that states can be compared.

        What the log held before is then of use only to orders that are missing, so it begins anew
        where the first of these ends the walk.
        """
        now = 0 if self._one else len(self._log)
        told = self._state.told
        ran: dict[int, int] = {}
        for edge, (bits, when) in told.items():
            if when not in ran:
                ran[when] = self._since(when)
            told[edge] = (bits & ~ran[when], now)
        if self._one:
            self._log.clear()
            self._chunks.clear()

    def _step(self, number: int) -> None:
        state, lane = self._state, self._hazards.lanes[number]
        missing = self._hazards.clashes[number] & state.run & ~state.known[lane]
        while missing:
            latest = max(_bits(missing), key=lambda other: self._after[other][1])
            self.report.missing.setdefault(self._hazards.edge(latest, number))
            bits, when = self._after[latest]
            state.known[lane] |= bits & ~self._since(when) | 1 << latest
            missing &= ~state.known[lane]
        bit = 1 << number
        self._record(bit)
        state.known[lane] |= bit
        self._after[number] = (state.known[lane], len(self._log))

    def _check(self, lane: int, own: int, clashes: int) -> None:
        """Run steps of a lane, given as bits, that lack no order; `clashes` are those of any."""
        state = self._state
        if clashes & state.run & ~state.known[lane]:
            raise _Enough
        self._record(own)
        state.known[lane] |= own

    def _gap(self, gap: Gap) -> Iterator[Callable[[], None]]:
        for edge in self._gaps.sets.get(gap, ()):
            if self._flags:
                yield partial(self._see_set, edge)
            yield partial(self._set, self._place_of[edge], edge.src.number)
        for core in self._gaps.barriers.get(gap, ()):
            yield partial(self._join, self._hazards.lanes_of.get(core, ()))
        for edge in self._gaps.waits.get(gap, ()):
            if self._flags and edge.crosses:
                yield partial(self._see_wait, edge)
            yield partial(self._wait, self._place_of[edge], edge.dst.number)

    def _join(self, lanes: Iterable[int]) -> None:
        known = self._state.known
        finished = 0
        for lane in lanes:
            finished |= known[lane]
        for lane in lanes:
            known[lane] = finished

    def _wait(self, place: int, dst: int) -> None:
        state = self._state
        bits, when = state.told.pop(place)
        state.known[dst] |= bits & ~self._since(when) | 1 << place

    def _set(self, place: int, src: int) -> None:
        state = self._state
        self._record(1 << place)
        state.told[place] = (state.known[src], len(self._log))

    def _see_wait(self, edge: Edge) -> None:
        """Report whose flags a wait might take instead of its own."""
        state, bit = self._state, 1 << self._place_of[edge]
        unknown = self._of_pool[edge.pool] & state.run & ~state.known[edge.dst.number] & ~bit
        self.report.crossed.update((self._edge_of[n], edge) for n in _bits(unknown))

    def _see_set(self, edge: Edge) -> None:
        """Report whose flags may still be up where one is set."""
        state = self._state
        unknown = self._of_pool[edge.pool] & state.run & ~state.known[edge.src.number]
        self.report.up.update((self._edge_of[n], edge) for n in _bits(unknown))
        if edge not in self._seen:
            self._seen.add(edge)
            self.report.order.append(edge)


def _together(parts: list[int]) -> int:
    """Return the union of sets."""
    found = 0
    for each in parts:
        found |= each
    return found


def _bits(number: int) -> Iterator[int]:
    """Yield the places of the ones of `number`."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low
