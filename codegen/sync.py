"""Event flags: every order that a tree of machine code needs, with few flags.

Each missing order becomes a pair of `set_flag` and `wait_flag`; then pairs that others imply are
dropped, and each gets one of the eight numbers of its pair of pipes such that no flag is ever set
while it is still up. Where eight do not suffice, neighbouring orders are merged into one stronger
order; as a last resort a barrier takes the place of an order.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from ..ir.errors import Span
from .hazards import Edge, Gaps, conflicts, walk
from .isa.table import FLAG_IDS
from .isa.vocabulary import Pipe
from .tree import Block, Branch, Loop, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

Barriers = set[tuple[Block, int]]


def synchronise(root: Block) -> Block:
    """Return `root` with flags and barriers for every cross-pipe hazard; `root` is not changed."""
    conflicts_of = conflicts(root)
    barriers: Barriers = set()
    edges = _needed(root, conflicts_of, set(), barriers)
    while True:
        edges = _needed(root, conflicts_of, edges, barriers)
        edges = _without_implied(root, conflicts_of, edges, barriers)
        together = walk(root, conflicts_of, edges, barriers).together
        numbers, short = _number(edges, together)
        if short is None:
            return _placed(root, Gaps.of(edges, barriers), numbers)
        edges = _relieve(edges, together, short, barriers)


def _needed(
    root: Block, conflicts_of: dict[Step, list[Step]], edges: set[Edge], barriers: Barriers
) -> set[Edge]:
    """Return `edges` and what it takes to leave no order missing."""
    done = set(edges)
    while True:
        missing = walk(root, conflicts_of, done, barriers).missing
        if not missing:
            return done
        assert not done.issuperset(missing), "an order that is kept must not be missing"
        done.update(missing)


def _without_implied(
    root: Block, conflicts_of: dict[Step, list[Step]], edges: set[Edge], barriers: Barriers
) -> set[Edge]:
    """Return `edges` less those that the others imply; same-trip orders are tried first."""
    position = {block: number for number, block in enumerate(_blocks(root))}
    order = sorted(
        edges, key=lambda e: (e.loop is not None, position[e.block], e.y, e.x, e.src, e.dst)
    )
    kept = set(edges)
    for edge in order:
        kept.discard(edge)
        if walk(root, conflicts_of, kept, barriers).missing:
            kept.add(edge)
    return kept


def _blocks(block: Block) -> Iterable[Block]:
    yield block
    for item in block.items:
        match item:
            case Loop():
                yield from _blocks(item.body)
            case Branch():
                yield from _blocks(item.then_body)
                yield from _blocks(item.else_body)
            case _:
                continue


def _number(
    edges: set[Edge], together: set[frozenset[Edge]]
) -> tuple[dict[Edge, int], tuple[Pipe, Pipe] | None]:
    """Give each edge a flag number; the second result names a pair of pipes that ran short."""
    clashes: dict[Edge, set[Edge]] = {edge: set() for edge in edges}
    for pair in together:
        if len(pair) == 1:
            edge = next(iter(pair))
            return {}, (edge.src, edge.dst)
        one, other = pair
        clashes[one].add(other)
        clashes[other].add(one)
    numbers: dict[Edge, int] = {}
    for edge in sorted(edges, key=_text_order):
        taken = {numbers[other] for other in clashes[edge] if other in numbers}
        free = next((n for n in range(FLAG_IDS) if n not in taken), None)
        if free is None:
            return {}, (edge.src, edge.dst)
        numbers[edge] = free
    return numbers, None


def _text_order(edge: Edge) -> tuple[int, int, int, int]:
    return edge.src, edge.dst, edge.y, edge.x


def _relieve(
    edges: set[Edge],
    together: set[frozenset[Edge]],
    short: tuple[Pipe, Pipe],
    barriers: Barriers,
) -> set[Edge]:
    """Return fewer edges between the pair of pipes `short`, by a merge or else a barrier."""
    crowd = sorted((e for e in edges if (e.src, e.dst) == short), key=_text_order)
    merges = [
        (abs(a.x - b.x) + abs(a.y - b.y), number, (a, b), merged)
        for number, (a, b) in enumerate(itertools.combinations(crowd, 2))
        if (merged := _merged(a, b)) is not None
    ]
    if merges:
        _, _, pair, merged = min(merges, key=lambda m: m[:2])
        return (edges - set(pair)) | {merged}
    alone = [e for e in crowd if frozenset((e,)) in together]
    worst = alone[0] if alone else crowd[-1]
    barriers.add((worst.block, worst.y))
    return edges - {worst}


def _merged(a: Edge, b: Edge) -> Edge | None:
    """Return the one order that implies both, if setting late and waiting early still works."""
    if a.block is not b.block or a.loop != b.loop:
        return None
    x, y = max(a.x, b.x), min(a.y, b.y)
    if a.loop is None and x >= y:
        return None
    return Edge(a.src, a.dst, a.block, x, y, a.loop)


def _placed(block: Block, gaps: Gaps, numbers: dict[Edge, int]) -> Block:
    out = Block()
    for index in range(len(block.items) + 1):
        item = block.items[index] if index < len(block.items) else None
        span = item.span if item is not None else Span.unknown()
        gap = (block, index)
        for edge in sorted(gaps.sets.get(gap, ()), key=_text_order):
            out.items.append(_flag("set_flag", edge, numbers[edge], span))
        if gap in gaps.barriers:
            out.items.append(Step("pipe_barrier", {"pipe": Pipe.ALL}, span))
        for edge in sorted(gaps.waits.get(gap, ()), key=_text_order):
            out.items.append(_flag("wait_flag", edge, numbers[edge], span))
        match item:
            case None:
                pass
            case Loop():
                inner = _placed(item.body, gaps, numbers)
                out.items.append(
                    Loop(item.var, item.start, item.stop, item.step, inner, span, item.carried)
                )
            case Branch():
                then_body = _placed(item.then_body, gaps, numbers)
                else_body = _placed(item.else_body, gaps, numbers)
                out.items.append(Branch(item.condition, then_body, else_body, span, item.results))
            case _:
                out.items.append(item)
    return out


def _flag(mnemonic: str, edge: Edge, number: int, span: Span) -> Step:
    return Step(mnemonic, {"src": edge.src, "dst": edge.dst, "id": number}, span)
