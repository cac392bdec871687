"""Numbers for event flags: each pair of pipes has eight, and no flag is set while it is still up.

Flags that may be up at the same time need different numbers. Where eight do not suffice, in this order:
a flag that is up for long around a loop is taken earlier, or goes up later; neighbouring orders become
one; the setter waits until an older flag was taken; a barrier takes the place of an order.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .hazards import Around, Edge, Gap
from .isa.table import FLAG_IDS
from .walk import is_safe, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .hazards import Hazards
    from .isa.vocabulary import Pipe
    from .tree import Block
    from .walk import Report

#: Rounds after which only barriers are tried, each of which makes an order superfluous for good.
GENTLE_ROUNDS = 40
#: How many of the oldest flags are waited for at once, where the setter must wait for some.
TAKEN_AT_ONCE = 4
#: Steps that may be walked for the sake of dropping orders that merged ones imply.
_TIDY_STEPS = 200_000


@dataclass(frozen=True)
class Plan:
    """The orders of a tree with the number of each one's flag, and the gaps with barriers."""

    edges: dict[Edge, int]
    barriers: frozenset[Gap]


def number(hazards: Hazards, edges: Iterable[Edge]) -> Plan:
    """Return `edges`, changed as little as eight flags a pair of pipes allow, with numbers."""
    return _Numbering(hazards, edges).run()


class _Numbering:
    def __init__(self, hazards: Hazards, edges: Iterable[Edge]) -> None:
        self._hazards = hazards
        self._edges = dict.fromkeys(edges)
        self._barriers: set[Gap] = set()
        self._answers: set[Edge] = set()
        """Edges that keep no order of the program: the setter waits for an older flag's end."""
        self._round = 0
        self._tidied = False

    def run(self) -> Plan:
        """Number and relieve until all is well."""
        while True:
            report = walk(self._hazards, self._edges, self._barriers, flags=True)
            if report.missing:
                self._edges.update(report.missing)
                continue
            numbers = _Round(self, report).numbers()
            if numbers is not None and (self._tidied or not self._tidy()):
                return Plan(numbers, frozenset(self._barriers))
            self._round += 1

    def _tidy(self) -> bool:
        """Drop, once, the orders that merged ones imply; return whether there were any."""
        self._tidied = True
        candidates = [e for e in self._edges if e not in self._answers]
        if not self._round or len(candidates) * len(self._hazards.steps) > _TIDY_STEPS:
            return False
        before = len(self._edges)
        for edge in sorted(candidates, key=lambda e: e.around is not None):
            rest = [e for e in self._edges if e is not edge]
            if is_safe(self._hazards, rest, self._barriers):
                del self._edges[edge]
        return len(self._edges) < before

    # ----------------------------------------------------------------- what a round may do

    @property
    def gentle(self) -> bool:
        """Whether anything but a barrier is still tried."""
        return self._round < GENTLE_ROUNDS

    def reverse_of(self, edge: Edge) -> list[tuple[Edge, Around]]:
        """Return the carried edges from the waiting pipe of `edge` to the setting one."""
        return [
            (each, each.around)
            for each in self._edges
            if each.around is not None and each.pair == edge.pair[::-1]
        ]

    def at(self, outer: Block, block: Block, index: int) -> int | None:
        """Return the item of `outer` that item `index` of `block` lies in, or is."""
        if outer is block:
            return index
        return dict(self._hazards.path_of[block]).get(outer)

    def common(self, a: Block, b: Block) -> Block:
        """Return the innermost block that holds both."""
        mine = [*(block for block, _ in self._hazards.path_of[a]), a]
        theirs = [*(block for block, _ in self._hazards.path_of[b]), b]
        return [one for one, other in zip(mine, theirs, strict=False) if one is other][-1]

    def depth(self, block: Block) -> int:
        """Return how many items lie around a block."""
        return len(self._hazards.path_of[block])

    def exchange(self, old: Iterable[Edge], new: Edge) -> None:
        """Let `new` take the place of `old`."""
        for edge in old:
            del self._edges[edge]
            self._answers.discard(edge)
        self._edges[new] = None

    def answer(self, edge: Edge) -> bool:
        """Add an edge for the sake of a flag; False if it is there already."""
        if edge in self._edges:
            return False
        self._edges[edge] = None
        self._answers.add(edge)
        return True

    def answer_to(self, block: Block, x: int, y: int, pipes: tuple[Pipe, Pipe]) -> Edge | None:
        """Return the order from item `x` to item `y` of a block, of the same run or the next."""
        around = None if x < y else self._hazards.around(block)
        return Edge(*pipes, block, x, y, around) if x < y or around is not None else None

    def block_off(self, edge: Edge) -> None:
        """Let a barrier take the place of `edge`."""
        self._barriers.add((edge.block, edge.y))
        del self._edges[edge]
        self._answers.discard(edge)


class _Round:
    """One attempt to number all edges; where it fails, it changes the edges for the next one."""

    def __init__(self, owner: _Numbering, report: Report) -> None:
        self._owner = owner
        self._order = report.order
        self._up = report.up
        self._clashes: dict[Edge, set[Edge]] = {edge: set() for edge in report.order}
        for one, other in report.up:
            self._clashes[one].add(other)
            self._clashes[other].add(one)
        self._numbers: dict[Edge, int] = {}
        self._changed = False
        self._stale: set[Edge] = set()
        """Edges that this round has changed already."""
        self._answered: dict[tuple[tuple[Pipe, Pipe], Block], tuple[int, int]] = {}

    def numbers(self) -> dict[Edge, int] | None:
        """Return a number for each edge, or None when something was changed instead."""
        for edge in self._order:
            if edge in self._clashes[edge]:
                self._acknowledge(edge)
        if self._changed:
            return None
        for edge in self._order:
            crowd = [
                e for e in self._clashes[edge] if e in self._numbers and not self._eased(e, edge)
            ]
            taken = {self._numbers[e] for e in crowd}
            free = next((n for n in range(FLAG_IDS) if n not in taken), None)
            self._numbers[edge] = self._relieve(edge, crowd) if free is None else free
        return None if self._changed else self._numbers

    def _acknowledge(self, edge: Edge) -> None:
        """Let the setter of a flag wait, each time, until the flag was taken the last time."""
        self._changed = True
        pipes = (edge.dst, edge.src)
        back = (
            self._owner.answer_to(edge.block, edge.y, edge.x, pipes) if edge.x != edge.y else None
        )
        if back is None or not self._owner.gentle or not self._owner.answer(back):
            self._owner.block_off(edge)

    def _relieve(self, edge: Edge, crowd: list[Edge]) -> int:
        """Change edges so that `edge` will find a number; return one to go on with."""
        self._changed = True
        crowd.sort(key=self._order.index)
        fresh = [e for e in crowd if e not in self._stale]
        if self._owner.gentle:
            for way in (self._end_sooner, self._tighten, self._merge, self._answer):
                found = way(edge, fresh)
                if found is not None:
                    return self._numbers.get(found, 0)
        if edge not in self._stale and (len(fresh) == len(crowd) or not self._owner.gentle):
            self._owner.block_off(edge)
            self._stale.add(edge)
        return 0

    # ----------------------------------------------------------------- the ways out

    def _end_sooner(self, edge: Edge, crowd: list[Edge]) -> Edge | None:
        """Let the setter learn that a flag was taken from a carried one of the other direction.

        Such a flag goes up before its loop and is taken behind it; moved closer to the loop, it tells
        that an older flag was taken before the loop, or in it.
        """
        best: tuple[tuple[int, int], Edge, Edge, Edge] | None = None
        for older in crowd:
            if older.around is not None or (older, edge) not in self._up:
                continue
            for teller, around in self._owner.reverse_of(edge):
                taken = self._owner.at(around.block, older.block, older.y)
                going = self._owner.at(around.block, edge.block, edge.x)
                if taken is None or going is None or teller in self._stale:
                    continue
                if around.prime <= taken < around.index == going and teller.block is edge.block:
                    gap, moved = edge.x - teller.y, replace(around, prime=taken + 1)
                elif taken == around.index < going < around.drain and teller.block is older.block:
                    gap, moved = teller.x - older.y, replace(around, drain=going)
                else:
                    continue
                if gap >= 0 and (best is None or (gap, taken) < best[0]):
                    best = ((gap, taken), older, teller, replace(teller, around=moved))
        if best is None:
            return None
        _, older, teller, moved = best
        self._owner.exchange([teller], moved)
        self._stale.update((teller, moved))
        return older

    def _tighten(self, edge: Edge, crowd: list[Edge]) -> Edge | None:
        """Let a flag be up no longer than its loop."""
        for each in (*crowd, edge):
            around = each.around
            if around is None or each in self._stale:
                continue
            tight = replace(around, prime=around.index, drain=around.index + 1)
            if tight != around:
                moved = replace(each, around=tight)
                self._owner.exchange([each], moved)
                self._stale.update((each, moved))
                return each
        return None

    def _merge(self, edge: Edge, crowd: list[Edge]) -> Edge | None:
        """Let two neighbouring orders become the one that implies both, outside of loops first."""
        if edge in self._stale:
            return None
        pairs = [
            (self._owner.depth(a.block), abs(a.x - b.x) + abs(a.y - b.y), place, a, b, merged)
            for place, (a, b) in enumerate(itertools.combinations([*crowd, edge], 2))
            if (merged := merge(a, b)) is not None
        ]
        if not pairs:
            return None
        *_, a, b, merged = min(pairs, key=lambda p: p[:3])
        self._owner.exchange([a, b], merged)
        self._stale.update((a, b, merged))
        return a

    def _answer(self, edge: Edge, crowd: list[Edge]) -> Edge | None:
        """Let the setter wait until some of the flags that are up were taken."""
        same: list[tuple[int, Edge, Edge, Block]] = []
        later: list[tuple[int, Edge, Edge, Block]] = []
        for older in crowd:
            if (older, edge) not in self._up or older.around is not None:
                continue
            block = self._owner.common(older.block, edge.block)
            taken = self._owner.at(block, older.block, older.y)
            going = self._owner.at(block, edge.block, edge.x)
            assert taken is not None
            assert going is not None
            back = self._owner.answer_to(block, taken, going, (edge.dst, edge.src))
            if back is not None and back.x != back.y:
                (same if back.around is None else later).append((taken, older, back, block))
        for found in (same, later):
            found.sort(key=lambda each: each[0])
            if found:
                taken, older, back, block = found[min(TAKEN_AT_ONCE, len(found)) - 1]
                if self._owner.answer(back):
                    if back.around is None:
                        self._answered[edge.pair, block] = (back.x, back.y)
                    return older
        return None

    def _eased(self, older: Edge, edge: Edge) -> bool:
        """Whether this round has just made the setter of `edge` wait for the end of `older`."""
        if older.block is not edge.block:
            return False
        answered = self._answered.get((edge.pair, edge.block))
        return answered is not None and older.y <= answered[0] and answered[1] <= edge.x


def merge(a: Edge, b: Edge) -> Edge | None:
    """Return the one order that implies both, if setting late and waiting early still works."""
    if a.pair != b.pair or a.block is not b.block or (a.around is None) != (b.around is None):
        return None
    x, y = max(a.x, b.x), min(a.y, b.y)
    if a.around is None or b.around is None:
        return Edge(a.src, a.dst, a.block, x, y) if x < y else None
    prime, drain = max(a.around.prime, b.around.prime), min(a.around.drain, b.around.drain)
    return Edge(a.src, a.dst, a.block, x, y, replace(a.around, prime=prime, drain=drain))
