"""The orders of a tree while they are being numbered, and the changes that may be made to them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..tree import Step
from .hazards import Barrier, Edge, Turn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..tree import Block
    from .hazards import Around, Hazards


@dataclass
class Orders:
    """What keeps a tree safe.

    Attributes:
        hazards: The tree.
        edges: The orders that flags keep.
        answers: Those of them that keep no order of the program: a setter waits until an older flag
            was taken, so that it may set its own.
        barriers: Where pipes or cores wait for all others.
    """

    hazards: Hazards
    edges: dict[Edge, None]
    answers: set[Edge] = field(default_factory=set[Edge])
    barriers: set[Barrier] = field(default_factory=set[Barrier])
    _thirds: dict[tuple[Block, int, int], list[int]] = field(
        default_factory=dict[tuple["Block", int, int], list[int]]
    )

    # ----------------------------------------------------------------- changes

    def exchange(self, old: Iterable[Edge], new: Edge) -> None:
        """Let `new` take the place of `old`."""
        gone = set(old)
        if gone <= self.answers:
            self.answers.add(new)
        self.answers -= gone
        for edge in gone:
            del self.edges[edge]
        self.edges[new] = None

    def answer(self, edge: Edge) -> bool:
        """Add an edge for the sake of a flag; False if it is there already."""
        if edge in self.edges:
            return False
        self.edges[edge] = None
        self.answers.add(edge)
        return True

    def block_off(self, edge: Edge) -> None:
        """Let a barrier take the place of `edge`, for one core or for both."""
        core = None if edge.crosses else edge.src.core
        self.barriers.add(Barrier(edge.block, edge.y, core))
        del self.edges[edge]
        self.answers.discard(edge)

    # ----------------------------------------------------------------- places

    def at(self, outer: Block, block: Block, index: int) -> int | None:
        """Return the item of `outer` that item `index` of `block` lies in, or is."""
        if outer is block:
            return index
        return dict(self.hazards.path_of[block]).get(outer)

    def thirds(self, edge: Edge, first: int, last: int) -> int:
        """Return how many items between two of the edge's block belong to neither of its lanes."""
        key = (edge.block, edge.src.number, edge.dst.number)
        if key not in self._thirds:
            counts = [0]
            for item in edge.block.items:
                third = isinstance(item, Step) and item.lane not in edge.pair
                counts.append(counts[-1] + third)
            self._thirds[key] = counts
        counts = self._thirds[key]
        return abs(counts[last] - counts[first])

    # ----------------------------------------------------------------- edges that could be added

    def tellers(self, up: Edge, going: Edge) -> list[tuple[Edge, Around]]:
        """Return the carried edges from who waits for the flag of `up` to who sets that of `going`."""
        return [
            (each, each.around)
            for each in self.edges
            if each.around is not None and each.pair == (up.dst, going.src)
        ]

    def reply_to(self, edge: Edge) -> Edge | None:
        """Return the order by which the setter of `edge` learns, each time, that it was taken.

        None where one item holds both ends.
        """
        if edge.x == edge.y:
            return None
        around = self.hazards.around(edge.block) if edge.around is None else None
        return Edge(edge.dst, edge.src, edge.block, edge.y, edge.x, around)

    def answer_to(self, up: Edge, going: Edge) -> Edge | None:
        """Return the order that lets `going` be set only when the flag of `up` was taken.

        None where a flag around a loop would have to wait, or one item holds both ends.
        """
        if up.around is not None or going.around is not None:
            return None
        block = self._common(up.block, going.block)
        x, y = self.at(block, up.block, up.y), self.at(block, going.block, going.x)
        assert x is not None
        assert y is not None
        around = None if x < y else self.hazards.around(block)
        if x == y or (x > y and around is None):
            return None
        return Edge(up.dst, going.src, block, x, y, around)

    def _common(self, a: Block, b: Block) -> Block:
        """Return the innermost block that holds both."""
        mine = [*(block for block, _ in self.hazards.path_of[a]), a]
        theirs = [*(block for block, _ in self.hazards.path_of[b]), b]
        return [one for one, other in zip(mine, theirs, strict=False) if one is other][-1]


def merge(a: Edge, b: Edge) -> Edge | None:
    """Return the one order that implies both, if setting late and waiting early still works."""
    if a.pair != b.pair or a.block is not b.block or (a.around is None) != (b.around is None):
        return None
    if [turn.block for turn in a.also] != [turn.block for turn in b.also]:
        return None
    x, y = max(a.x, b.x), min(a.y, b.y)
    if a.around is None or b.around is None:
        return Edge(a.src, a.dst, a.block, x, y) if x < y else None
    also = tuple(
        Turn(one.block, max(one.x, other.x), min(one.y, other.y))
        for one, other in zip(a.also, b.also, strict=True)
    )
    prime, drain = max(a.around.prime, b.around.prime), min(a.around.drain, b.around.drain)
    around = replace(a.around, prime=prime, drain=drain)
    return Edge(a.src, a.dst, a.block, x, y, around, also)
