"""One attempt to number flags, and what is changed where the numbers do not suffice.

In this order: a flag that is up for long around a loop is taken earlier, or goes up later; neighbouring
orders become one; a setter waits until an older flag was taken; a barrier takes the place of an order.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from .orders import merge

if TYPE_CHECKING:
    from ..tree import Block, Lane
    from .hazards import Edge
    from .orders import Orders
    from .walk import Report

TAKEN_AT_ONCE = 4
"""How many of the oldest flags are waited for at once, where a setter must wait for some."""
_REMEMBERED = 4
"""How many answers a round looks back at; older ones are about flags that are long down."""


class Round:
    """One attempt to number all edges; where it fails, it changes the edges for the next one.

    Args:
        orders: What is numbered, and changed.
        report: What a walk found out about their flags.
        gentle: Whether anything but a barrier is tried.
    """

    def __init__(self, orders: Orders, report: Report, *, gentle: bool) -> None:
        self._orders = orders
        self._gentle = gentle
        self._order = report.order
        self._rank = {edge: place for place, edge in enumerate(report.order)}
        self._up = set(report.up)
        self._clashes: dict[Edge, set[Edge]] = {edge: set() for edge in report.order}
        for one, other in report.apart:
            self._clashes[one].add(other)
            self._clashes[other].add(one)
        self._numbers: dict[Edge, int] = {}
        self._changed = False
        self._stale: set[Edge] = set()
        """Edges that this round has changed already, in ways that only a new walk can judge."""
        self._answers: list[Edge] = []

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
            free = next((n for n in range(edge.ids) if n not in taken), None)
            self._numbers[edge] = self._relieve(edge, crowd) if free is None else free
        return None if self._changed else self._numbers

    def _acknowledge(self, edge: Edge) -> None:
        """Let the setter of a flag wait, each time, until the flag was taken the last time."""
        self._changed = True
        back = self._orders.reply_to(edge)
        if back is None or not self._gentle or not self._orders.answer(back):
            self._orders.block_off(edge)

    def _relieve(self, edge: Edge, crowd: list[Edge]) -> int:
        """Change edges so that `edge` will find a number; return one to go on with."""
        self._changed = True
        crowd.sort(key=self._rank.__getitem__)
        fresh = [e for e in crowd if e not in self._stale]
        settled = len(fresh) == len(crowd)
        if self._gentle:
            ways = [self._end_sooner, self._tighten, self._merge]
            for way in (*ways, self._answer) if settled else ways:
                found = way(edge, fresh)
                if found is not None:
                    return found
        if edge not in self._stale and (settled or not self._gentle):
            self._orders.block_off(edge)
            self._stale.add(edge)
        return 0

    # ----------------------------------------------------------------- the ways out

    def _end_sooner(self, edge: Edge, crowd: list[Edge]) -> int | None:
        """Let the setter learn that a flag was taken from a carried one of the other direction.

        Such a flag goes up before its loop and is taken behind it; moved closer to the loop, it tells
        that an older flag was taken before the loop, or in it.
        """
        best: tuple[tuple[int, int], Edge, Edge, Edge] | None = None
        for older in crowd:
            if older.around is not None or (older, edge) not in self._up:
                continue
            for teller, around in self._orders.tellers(older, edge):
                taken = self._orders.at(around.block, older.block, older.y)
                going = self._orders.at(around.block, edge.block, edge.x)
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
        self._orders.exchange([teller], moved)
        self._stale.update((teller, moved))
        return self._numbers[older]

    def _tighten(self, edge: Edge, crowd: list[Edge]) -> int | None:
        """Let a flag be up no longer than its loop."""
        for each in (*crowd, edge):
            around = each.around
            if around is None or each in self._stale:
                continue
            tight = replace(around, prime=around.index, drain=around.index + 1)
            if tight != around:
                moved = replace(each, around=tight)
                self._orders.exchange([each], moved)
                self._stale.update((each, moved))
                return self._numbers.get(each, 0)
        return None

    def _merge(self, edge: Edge, crowd: list[Edge]) -> int | None:
        """Let two neighbouring orders become the one that implies both.

        Next to each other are best those with no instruction of a third pipe in between, such as all
        the loads of one product.
        """
        beside: dict[tuple[Block, bool, tuple[Lane, Lane]], list[Edge]] = {}
        for each in (*crowd, edge):
            if each not in self._stale:
                key = each.block, each.around is None, each.pair
                beside.setdefault(key, []).append(each)
        best: tuple[tuple[int, int, int], Edge, Edge, Edge] | None = None
        for edges in beside.values():
            edges.sort(key=lambda e: (e.x, e.y))
            for a, b in itertools.pairwise(edges):
                merged = merge(a, b)
                if merged is None:
                    continue
                thirds = self._orders.thirds(a, a.x, b.x) + self._orders.thirds(a, a.y, b.y)
                distance = abs(a.x - b.x) + abs(a.y - b.y)
                cost = (thirds, distance, self._rank[a])
                if best is None or cost < best[0]:
                    best = (cost, a, b, merged)
        if best is None:
            return None
        _, a, b, merged = best
        self._orders.exchange([a, b], merged)
        return self._substitute(edge, a, b, merged)

    def _substitute(self, edge: Edge, a: Edge, b: Edge, merged: Edge) -> int:
        """Put `merged` in the place of two edges; return the number that became free for `edge`."""
        numbers = [self._numbers.pop(each) for each in (a, b) if each in self._numbers]
        around = (self._clashes.pop(a) | self._clashes.pop(b)) - {a, b}
        for other in around:
            self._clashes[other] -= {a, b}
            self._clashes[other].add(merged)
            if not self._up.isdisjoint({(a, other), (b, other)}):
                self._up.add((merged, other))
            if not self._up.isdisjoint({(other, a), (other, b)}):
                self._up.add((other, merged))
        self._clashes[merged] = around
        self._rank[merged] = max(self._rank[a], self._rank[b])
        self._numbers[merged] = numbers[0]
        return numbers[0] if edge in (a, b) else numbers[1]

    def _answer(self, edge: Edge, crowd: list[Edge]) -> int | None:
        """Let a setter wait until some of the flags that are up were taken."""
        same: list[tuple[Edge, Edge]] = []
        later: list[tuple[Edge, Edge]] = []
        for older in crowd:
            for up, going in ((older, edge), (edge, older)):
                back = self._orders.answer_to(up, going) if (up, going) in self._up else None
                if back is not None:
                    (same if back.around is None else later).append((older, back))
        for found in (same, later):
            first = min(TAKEN_AT_ONCE, len(found)) - 1
            for older, back in (*found[first:], *found[:first]):
                if self._orders.answer(back):
                    self._answers.append(back)
                    return self._numbers[older]
        return None

    def _eased(self, older: Edge, edge: Edge) -> bool:
        """Whether this round has just made the setter of `edge` wait for the end of `older`."""
        for back in self._answers[-_REMEMBERED:]:
            if back.pair != (older.dst, edge.src) or back.around is not None:
                continue
            taken = self._orders.at(back.block, older.block, older.y)
            going = self._orders.at(back.block, edge.block, edge.x)
            if taken is not None and going is not None and taken <= back.x and back.y <= going:
                return True
        return False
