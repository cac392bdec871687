"""One flag for a buffer that several loops fill and empty in turn.

Where a loop fills a buffer and another one after it fills the same, an order between the two loops would
let the second wait for all that the first one does. What is needed is less: a buffer must have been
emptied before it is filled again, wherever that was. So the flag that says "empty" is taken where filling
begins and goes up where emptying ends, in every stretch of code that does both, and whichever stretch runs
next takes it. That is how kernels are synchronised by hand.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from ..tree import AnyLoop, Block
from .hazards import Edge, Turn, bodies, holds_loop

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..tree import Item, Lane, Step
    from .hazards import Hazards, Path


def turns_of(hazards: Hazards, edges: Iterable[Edge]) -> list[Edge]:
    """Return flags that pass from stretch to stretch, for the lanes of which `edges` make loops wait.

    Args:
        hazards: The tree.
        edges: Orders that together leave none missing.
    """
    pairs = dict.fromkeys(edge.pair for edge in edges if _is_coarse(edge))
    found: dict[Edge, None] = {}
    for src, dst in pairs:
        for group in _buffers(hazards, src, dst):
            edge = _edge(hazards, src, dst, group)
            if edge is not None and edge.also:
                found[edge] = None
    return _joined(found)


def _is_coarse(edge: Edge) -> bool:
    """Whether an order makes all of a loop wait, or waits for all of one."""
    items = edge.block.items
    return not edge.crosses and any(holds_loop(items[at]) for at in (edge.x, edge.y))


def _buffers(hazards: Hazards, src: Lane, dst: Lane) -> Iterator[list[int]]:
    """Yield the steps of two lanes that touch the same bytes, loop by outermost loop."""
    mine = {number for number, step in enumerate(hazards.steps) if step.lane in (src, dst)}
    left = {n for n in mine if hazards.around(hazards.path(n)[-1][0]) is not None}
    while left:
        group, fresh = set[int](), [min(left)]
        outer = _outermost(hazards.path(fresh[0]))
        while fresh:
            number = fresh.pop()
            if number in group:
                continue
            group.add(number)
            clashes = hazards.clashes[number]
            fresh += [
                n for n in left - group if clashes >> n & 1 and _outermost(hazards.path(n)) is outer
            ]
        left -= group
        yield sorted(group)


def _outermost(path: Path) -> AnyLoop:
    """Return the outermost loop that a step lies in."""
    items = (block.items[index] for block, index in path)
    return next(item for item in items if isinstance(item, AnyLoop))


def _edge(hazards: Hazards, src: Lane, dst: Lane, group: list[int]) -> Edge | None:
    """Return the flag of one buffer, or None where not every stretch both fills and empties it."""
    steps = {hazards.steps[number] for number in group}
    outermost = _outermost(hazards.path(group[0]))
    scan = _Scan(steps, src, dst)
    scan.block(outermost.body)
    if scan.failed or not scan.turns:
        return None
    first, *others = scan.turns
    return Edge(src, dst, *first, hazards.around(first.block), tuple(others))


class _Scan:
    """Looks for the stretches that fill a buffer and empty it, in the order of the program.

    A stretch begins with what fills the buffer, or part of it, and ends with the last item that empties
    it before an item that fills it by itself.

    Args:
        steps: What fills and what empties the buffer.
        src: The lane that empties it.
        dst: The lane that fills it.
    """

    def __init__(self, steps: set[Step], src: Lane, dst: Lane) -> None:
        self._steps, self._src, self._dst = steps, src, dst
        self.turns: list[Turn] = []
        self.failed = False

    def block(self, block: Block) -> None:
        """Look through a block, and those inside that fill the buffer themselves."""
        begin = end = None
        for index, item in enumerate(block.items):
            inner = bodies(item)
            fills, empties = self._users(item)
            if inner and fills:
                self._turn(block, begin, end)
                begin = end = None
                for each in inner:
                    self.block(each)
                continue
            if fills and begin is None:
                begin = index
            if empties:
                self.failed |= begin is None
                end = index
        self._turn(block, begin, end)

    def _turn(self, block: Block, begin: int | None, end: int | None) -> None:
        if begin is not None and end is not None:
            self.turns.append(Turn(block, end, begin))
        self.failed |= (begin is None) is not (end is None)

    def _users(self, item: Item) -> tuple[bool, bool]:
        """Return whether an item fills the buffer, and whether it empties it."""
        steps = Block([item]).steps()
        lanes = {step.lane for step in steps if step in self._steps}
        return self._dst in lanes, self._src in lanes


def _joined(edges: Iterable[Edge]) -> list[Edge]:
    """Let buffers that are emptied by the same items, such as two operands, share a flag."""
    alike: dict[tuple[object, ...], list[Edge]] = defaultdict(list)
    for edge in edges:
        ends = tuple((turn.block, turn.x) for turn in edge.turns)
        alike[*edge.pair, ends].append(edge)
    joined: list[Edge] = []
    for same in alike.values():
        turns = [
            min(turns, key=lambda turn: turn.y)
            for turns in zip(*(e.turns for e in same), strict=True)
        ]
        first, *others = turns
        joined.append(replace(same[0], y=first.y, also=tuple(others)))
    return joined
