"""Flags: every order that a tree of machine code needs, within a core and between two, with few flags.

Each order that the program needs and nothing keeps becomes a pair of `set_flag` and `wait_flag`, or of
`set_core_flag` and `wait_core_flag`; then pairs that others imply are dropped. The flag of an order from
trip to trip goes up early and is taken late outside its loop, so that the first trip need not wait for
what came before nor the rest for the last one. Numbers are given in :mod:`.flags`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...ir.errors import Span
from ..isa.vocabulary import ClusterCore, Pipe
from ..tree import AnyLoop, Block, Branch, Loop, Step, While
from .flags import number
from .hazards import JOIN_ID, Gaps, Hazards
from .turns import turns_of
from .walk import is_safe, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..tree import Fields, Item
    from .hazards import Around, Edge, Turn


def synchronise(root: Block) -> Block:
    """Return `root` with flags and barriers for every hazard of two lanes; `root` is not changed."""
    hazards = Hazards(root)
    edges = needed(hazards)
    turns = turns_of(hazards, edges)
    if turns:
        edges = needed(hazards, turns)
        edges = without_implied(hazards, edges, turns)
    edges = without_implied(hazards, edges, [e for e in edges if _may_be_implied(e)])
    edges = _stretched(hazards, edges)
    plan = number(hazards, edges)
    return _Placement(plan.numbers, Gaps.of(plan.numbers, plan.barriers)).block(root)


def needed(hazards: Hazards, given: Iterable[Edge] = ()) -> list[Edge]:
    """Return orders that together leave none missing, `given` ones among them."""
    edges = dict.fromkeys(given)
    while True:
        missing = walk(hazards, edges).missing
        if not missing:
            return list(edges)
        assert not edges.keys() >= missing.keys(), "an order that is kept is not missing"
        edges.update(missing)


def without_implied(
    hazards: Hazards, edges: Iterable[Edge], candidates: Iterable[Edge]
) -> list[Edge]:
    """Return `edges` less those of `candidates` that the others imply.

    Orders within a trip are tried first: those across trips bring an order into the loop and one out
    of it along.
    """
    kept = dict.fromkeys(edges)
    for edge in sorted(candidates, key=lambda e: e.around is not None):
        rest = [e for e in kept if e is not edge]
        if is_safe(hazards, rest):
            del kept[edge]
    return list(kept)


def _may_be_implied(edge: Edge) -> bool:
    """Whether orders found later can imply this one.

    An order found later ends later. Of two steps with nothing but steps between them, none of the
    orders that lie between can have been found after the one between the two; a loop in between can
    bring one, by a flag that goes up before it or is taken behind it.
    """
    items = edge.block.items
    if edge.around is None:
        between = items[edge.x : edge.y + 1]
    else:
        loop = edge.around.block.items[edge.around.index]
        if not isinstance(loop, AnyLoop) or loop.body is not edge.block:
            return True
        between = [*items[edge.x :], *items[: edge.y + 1]]
    return any(map(_may_hold_orders, between))


def _may_hold_orders(item: Item) -> bool:
    """Whether there can be orders inside of an item; in a branch of one lane there are none."""
    match item:
        case AnyLoop():
            return True
        case Branch():
            return len({step.lane for step in Block([item]).steps()}) > 1
        case _:
            return False


def _stretched(hazards: Hazards, edges: list[Edge]) -> list[Edge]:
    """Return `edges` with flags that go up as early and are taken as late as the orders allow."""
    wide = [_wide(edge) for edge in edges]
    if is_safe(hazards, wide):
        return wide
    done = dict.fromkeys(edges)
    _stretch_all(hazards, done, [edge for edge in edges if edge.around is not None])
    return list(done)


def _stretch_all(hazards: Hazards, edges: dict[Edge, None], some: Sequence[Edge]) -> None:
    """Replace some of `edges`, one after another, by ones whose flags are up for as long as can be.

    What is safe together is so one by one: a flag that is up for longer tells nobody more.
    """
    for part in filter(None, (some[: len(some) // 2], some[len(some) // 2 :])):
        if len(part) == 1 and part[0].around is not None:
            _stretch(hazards, edges, part[0], part[0].around)
            continue
        others = [edge for edge in edges if edge not in part]
        if is_safe(hazards, [*others, *map(_wide, part)]):
            for edge in part:
                del edges[edge]
                edges[_wide(edge)] = None
        else:
            _stretch_all(hazards, edges, part)


def _stretch(hazards: Hazards, edges: dict[Edge, None], edge: Edge, around: Around) -> None:
    """Replace `edge` of `edges` by one whose flag is up for as long as the orders allow."""
    del edges[edge]

    def works(changed: Around) -> bool:
        return is_safe(hazards, [*edges, replace(edge, around=changed)])

    end = len(around.block.items)
    prime = _nearest(0, around.index, lambda gap: works(replace(around, prime=gap)))
    early = replace(around, prime=prime)
    drain = _nearest(end, around.index + 1, lambda gap: works(replace(early, drain=gap)))
    edges[replace(edge, around=replace(early, drain=drain))] = None


def _wide(edge: Edge) -> Edge:
    if edge.around is None:
        return edge
    end = len(edge.around.block.items)
    return replace(edge, around=replace(edge.around, prime=0, drain=end))


def _nearest(wished: int, safe: int, works: Callable[[int], bool]) -> int:
    """Return the place from `wished` to `safe` nearest to `wished` that works.

    `safe` works, and so do the places between one that works and `safe`.
    """
    if works(wished):
        return wished
    step = 1 if wished < safe else -1
    low, high = 1, abs(safe - wished)
    while low < high:
        middle = (low + high) // 2
        if works(wished + step * middle):
            high = middle
        else:
            low = middle + 1
    return wished + step * high


class _Placement:
    """Writes a tree again with its flags."""

    def __init__(self, numbers: dict[Edge, int], gaps: Gaps) -> None:
        self._numbers = numbers
        self._gaps = gaps

    def block(self, block: Block) -> Block:
        """Return `block` with what stands in its gaps."""
        out = Block()
        for index, item in enumerate(block.items):
            self._gap(block, index, out)
            out.items.append(self._item(item))
        self._gap(block, len(block.items), out)
        return out

    def _item(self, item: Item) -> Item:
        match item:
            case Loop() | While():
                return replace(item, body=self.block(item.body))
            case Branch():
                return replace(
                    item,
                    then_body=self.block(item.then_body),
                    else_body=self.block(item.else_body),
                )
            case _:
                return item

    def _gap(self, block: Block, index: int, out: Block) -> None:
        gap = (block, index)
        for edge in self._gaps.sets.get(gap, ()):
            turn = next((t for t in edge.turns if (t.block, t.x + 1) == gap), None)
            out.items.append(self._set(edge, turn))
        for core in self._gaps.barriers.get(gap, ()):
            span = block.items[min(index, len(block.items) - 1)].span
            out.items += _join(span) if core is None else (_barrier(core, span),)
        for edge in self._gaps.waits.get(gap, ()):
            turn = next((t for t in edge.turns if (t.block, t.y) == gap), None)
            out.items.append(self._wait(edge, turn))

    def _set(self, edge: Edge, turn: Turn | None) -> Step:
        ends: Fields = {"pipe": edge.src.pipe, "to": edge.dst.core}
        span = _span(edge, turn, None if turn is None else turn.x)
        return self._flag("set", edge, span, edge.src.core, ends)

    def _wait(self, edge: Edge, turn: Turn | None) -> Step:
        ends: Fields = {"pipe": edge.dst.pipe, "of": edge.src.core}
        span = _span(edge, turn, None if turn is None else turn.y)
        return self._flag("wait", edge, span, edge.dst.core, ends)

    def _flag(self, verb: str, edge: Edge, span: Span, on: ClusterCore, ends: Fields) -> Step:
        """Return a flag instruction on a core; `ends` are what it says of an order between two."""
        fields: Fields = {"id": self._numbers[edge]}
        if edge.crosses:
            return Step(f"{verb}_core_flag", ends | fields, span, on=on)
        fields |= {"src": edge.src.pipe, "dst": edge.dst.pipe}
        return Step(f"{verb}_flag", fields, span, on=on)


def _span(edge: Edge, turn: Turn | None, item: int | None) -> Span:
    """Return the span of a flag instruction: that of what it follows or precedes."""
    if turn is not None and item is not None:
        return turn.block.items[item].span
    if edge.around is not None:
        return edge.around.block.items[edge.around.index].span
    return Span.unknown()


def _barrier(core: ClusterCore, span: Span) -> Step:
    return Step("pipe_barrier", {"pipe": Pipe.ALL}, span, on=core)


def _join(span: Span) -> list[Step]:
    """Return what lets two cores wait until both have done all that came before.

    A scalar unit may set the flag again before the other one took it: these flags count, and after a
    wait the next set comes only behind the other core's, so at most two are up.
    """
    cores = ClusterCore.AIC, ClusterCore.AIV0
    ways = cores, cores[::-1]
    sets = [
        Step("set_core_flag", {"pipe": Pipe.S, "to": other, "id": JOIN_ID}, span, on=core)
        for core, other in ways
    ]
    waits = [
        Step("wait_core_flag", {"pipe": Pipe.S, "of": other, "id": JOIN_ID}, span, on=core)
        for core, other in ways
    ]
    return [*(_barrier(core, span) for core in cores), *sets, *waits]
