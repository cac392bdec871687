"""Which orders a tree of machine code needs, and which it already has.

Pipes run at once and only flags and barriers order them. :func:`walk` runs the tree symbolically
(each loop three trips, both arms of a branch), keeps for every pipe what it knows to be finished on
every other pipe (a vector clock), and reports each access that conflicts with an earlier one not
known to be finished. Knowledge gained in a branch, or in a loop that may not run, counts afterwards
only as far as every way through agrees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .isa.vocabulary import Pipe
from .tree import Block, Branch, Loop, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .tree import Region

TRIPS = 3
_PIPES = len(Pipe) - 1


@dataclass(frozen=True)
class Level:
    """One level of a place in the tree: the block, the item in it, the block's trip."""

    block: Block
    index: int
    trip: int


Place: TypeAlias = tuple[Level, ...]
Gap: TypeAlias = tuple[Block, int]


@dataclass(frozen=True)
class Edge:
    """An order: what `src` did up to item `x` of `block` before what `dst` does from item `y` on.

    Without `loop` both are of the same trip and x < y. With `loop` (the block that holds the loop,
    and its index) the order reaches from each trip to the next, y <= x, and the flag is set once
    before the loop and taken once after it.
    """

    src: Pipe
    dst: Pipe
    block: Block
    x: int
    y: int
    loop: tuple[Block, int] | None = None


@dataclass
class Gaps:
    """What stands between items: `(block, index)` is the gap before that item."""

    sets: dict[Gap, list[Edge]] = field(default_factory=dict["Gap", list[Edge]])
    waits: dict[Gap, list[Edge]] = field(default_factory=dict["Gap", list[Edge]])
    barriers: set[Gap] = field(default_factory=set["Gap"])

    @classmethod
    def of(cls, edges: Iterable[Edge], barriers: Iterable[Gap]) -> Gaps:
        """Place the flags of `edges`; in a gap sets come first, then a barrier, then waits."""
        gaps = cls(barriers=set(barriers))
        for edge in edges:
            gaps.sets.setdefault((edge.block, edge.x + 1), []).append(edge)
            gaps.waits.setdefault((edge.block, edge.y), []).append(edge)
            if edge.loop is not None:
                block, index = edge.loop
                gaps.sets.setdefault((block, index), []).append(edge)
                gaps.waits.setdefault((block, index + 1), []).append(edge)
        return gaps


def conflicts(root: Block) -> dict[Step, list[Step]]:
    """Return for each step the steps of other pipes that must not overlap it."""
    steps = [step for step in root.steps() if step.reads or step.writes]
    by_step: dict[Step, list[Step]] = {step: [] for step in root.steps()}
    for i, one in enumerate(steps):
        for other in steps[i:]:
            if one.pipe is not other.pipe and (
                _overlap(one.writes, other.writes)
                or _overlap(one.writes, other.reads)
                or _overlap(one.reads, other.writes)
            ):
                by_step[one].append(other)
                by_step[other].append(one)
    return by_step


def _overlap(mine: Sequence[Region], theirs: Sequence[Region]) -> bool:
    return any(a.overlaps(b) for a in mine for b in theirs)


@dataclass
class _State:
    """`known[q][p]`: the number of the last event of pipe p that q knows to be finished."""

    known: list[list[int]]
    pending: dict[Edge, list[int]]

    def copy(self) -> _State:
        return _State([row[:] for row in self.known], dict(self.pending))


@dataclass
class Report:
    """What a walk found: orders that are missing, and edges whose flags may be up together."""

    missing: list[Edge] = field(default_factory=list[Edge])
    together: set[frozenset[Edge]] = field(default_factory=set[frozenset[Edge]])


class _Walk:
    def __init__(self, conflicts_of: dict[Step, list[Step]], gaps: Gaps) -> None:
        self._conflicts = conflicts_of
        self._gaps = gaps
        self._count = 0
        self._state = _State([[0] * _PIPES for _ in range(_PIPES)], {})
        self._latest: dict[Step, tuple[int, Place, list[int]]] = {}
        self._up: set[Edge] = set()
        self._last_wait: dict[Edge, int] = {}
        self._flags: dict[tuple[Pipe, Pipe], list[Edge]] = {}
        self.report = Report()
        self._found: set[Edge] = set()

    def block(self, block: Block, outer: Place, trip: int) -> None:
        for index, item in enumerate(block.items):
            self._gap(block, index)
            place = (*outer, Level(block, index, trip))
            match item:
                case Step():
                    self._step(item, place)
                case Loop():
                    self._loop(item, place)
                case Branch():
                    self._branch(item, place)
                case _:
                    continue
        self._gap(block, len(block.items))

    def _event(self, pipe: Pipe) -> int:
        self._count += 1
        self._state.known[pipe][pipe] = self._count
        return self._count

    def _join(self, pipe: Pipe, row: list[int]) -> None:
        mine = self._state.known[pipe]
        for p, number in enumerate(row):
            if p != pipe and number > mine[p]:
                mine[p] = number

    def _step(self, step: Step, place: Place) -> None:
        pipe, row = step.pipe, self._state.known[step.pipe]
        earlier = [
            (self._latest[other], other) for other in self._conflicts[step] if other in self._latest
        ]
        for (number, where, snapshot), other in sorted(earlier, key=lambda e: -e[0][0]):
            if row[other.pipe] < number:
                edge = _edge(other.pipe, where, pipe, place)
                if edge not in self._found:
                    self._found.add(edge)
                    self.report.missing.append(edge)
                self._join(pipe, snapshot)
        number = self._event(pipe)
        self._latest[step] = (number, place, row[:])

    def _gap(self, block: Block, index: int) -> None:
        gap = (block, index)
        for edge in self._gaps.sets.get(gap, ()):
            self._set(edge)
        if gap in self._gaps.barriers:
            finished = [self._state.known[p][p] for p in range(_PIPES)]
            for pipe in range(_PIPES):
                self._join(Pipe(pipe), finished)
        for edge in self._gaps.waits.get(gap, ()):
            self._join(edge.dst, self._state.pending[edge])
            self._last_wait[edge] = self._event(edge.dst)
            self._up.discard(edge)

    def _set(self, edge: Edge) -> None:
        known = self._state.known[edge.src][edge.dst]
        others = self._flags.setdefault((edge.src, edge.dst), [])
        for other in others:
            if other in self._up or known < self._last_wait[other]:
                self.report.together.add(frozenset((edge, other)))
        if edge not in others:
            others.append(edge)
        self._event(edge.src)
        self._state.pending[edge] = self._state.known[edge.src][:]
        self._up.add(edge)

    def _loop(self, loop: Loop, place: Place) -> None:
        before = self._state.copy()
        for trip in range(TRIPS):
            self.block(loop.body, place, trip)
        if not loop.surely_runs:
            self._meet(before)

    def _branch(self, branch: Branch, place: Place) -> None:
        before, latest = self._state.copy(), dict(self._latest)
        self.block(branch.then_body, place, 0)
        after_then, latest_then = self._state, self._latest
        self._state, self._latest = before, latest
        for pipe in range(_PIPES):
            self._state.known[pipe][pipe] = after_then.known[pipe][pipe]
        self.block(branch.else_body, place, 0)
        self._meet(after_then)
        for step, entry in latest_then.items():
            if step not in self._latest or self._latest[step][0] < entry[0]:
                self._latest[step] = entry

    def _meet(self, other: _State) -> None:
        for pipe in range(_PIPES):
            _weaken(self._state.known[pipe], other.known[pipe], pipe)
        for edge, row in other.pending.items():
            if edge in self._state.pending:
                mine = self._state.pending[edge][:]
                _weaken(mine, row, edge.src)
                self._state.pending[edge] = mine


def _weaken(row: list[int], other: list[int], own: int) -> None:
    for pipe, number in enumerate(other):
        if pipe != own and number < row[pipe]:
            row[pipe] = number


def _edge(src: Pipe, before: Place, dst: Pipe, after: Place) -> Edge:
    """Return the order from one place to another at the innermost level that they share."""
    for depth, (mine, theirs) in enumerate(zip(before, after, strict=False)):
        assert mine.block is theirs.block, "two places in arms that exclude each other"
        if mine.trip != theirs.trip:
            assert theirs.index <= mine.index, "an order within a trip must come first"
            outer = before[depth - 1]
            return Edge(src, dst, mine.block, mine.index, theirs.index, (outer.block, outer.index))
        if mine.index != theirs.index:
            return Edge(src, dst, mine.block, mine.index, theirs.index)
    message = "a step does not conflict with itself"
    raise AssertionError(message)


def walk(
    root: Block,
    conflicts_of: dict[Step, list[Step]],
    edges: Iterable[Edge],
    barriers: Iterable[Gap] = (),
) -> Report:
    """Run `root` symbolically under `edges` and `barriers`.

    Returns:
        The orders that are still missing (empty when the tree is safe), and the pairs of edges
        whose flags may be up at the same time, so that they need different numbers.
    """
    run = _Walk(conflicts_of, Gaps.of(edges, barriers))
    run.block(root, (), 0)
    return run.report
