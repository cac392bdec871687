"""Which instructions of a tree must not overlap, and the orders that keep them apart.

Pipes run at once and only flags and barriers order them. Two instructions of different pipes conflict
when one writes bytes that the other reads or writes; whichever the program has first must be done
before the other begins. Such an :class:`Edge` becomes a pair of `set_flag` and `wait_flag`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .tree import AnyLoop, Block, Branch, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .isa.vocabulary import Pipe
    from .tree import Item, Region

Gap: TypeAlias = tuple[Block, int]
"""`(block, index)`: what stands before item `index` of a block."""

Path: TypeAlias = tuple[tuple[Block, int], ...]
"""The way from the root to an item: blocks, and the index in each."""


@dataclass(frozen=True)
class Around:
    """Where the flag of a carried edge goes up for the first time and is taken for the last time.

    Attributes:
        block: The block that holds the outermost loop around the edge.
        index: The loop's place in it.
        prime: The gap of `block`, at most `index`, with the first set.
        drain: The gap of `block`, beyond `index`, with the last wait.
    """

    block: Block
    index: int
    prime: int
    drain: int


@dataclass(frozen=True)
class Edge:
    """An order: what `src` did up to item `x` of `block` before what `dst` does from item `y` on.

    Without `around`, x < y and both are of one run of the block. With it, y <= x and the order reaches
    from each run of the block to the next; the flag stays up in between, so one more set stands before
    the outermost loop and one more wait behind it.
    """

    src: Pipe
    dst: Pipe
    block: Block
    x: int
    y: int
    around: Around | None = None
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Edges are keys everywhere, and their hash goes deep.
        own = (self.src, self.dst, self.block, self.x, self.y, self.around)
        object.__setattr__(self, "_hash", hash(own))

    def __hash__(self) -> int:
        return self._hash

    @property
    def pair(self) -> tuple[Pipe, Pipe]:
        """The pipes whose eight flags it draws on."""
        return self.src, self.dst


@dataclass
class Gaps:
    """What stands between items."""

    sets: dict[Gap, list[Edge]] = field(default_factory=dict["Gap", list[Edge]])
    waits: dict[Gap, list[Edge]] = field(default_factory=dict["Gap", list[Edge]])
    barriers: frozenset[Gap] = frozenset()

    @classmethod
    def of(cls, edges: Iterable[Edge], barriers: Iterable[Gap]) -> Gaps:
        """Place the flags of `edges`; in a gap sets come first, then a barrier, then waits."""
        gaps = cls(barriers=frozenset(barriers))
        for edge in sorted(edges, key=lambda e: (e.src, e.dst, e.y, e.x)):
            gaps.sets.setdefault((edge.block, edge.x + 1), []).append(edge)
            gaps.waits.setdefault((edge.block, edge.y), []).append(edge)
            if edge.around is not None:
                around = edge.around
                gaps.sets.setdefault((around.block, around.prime), []).append(edge)
                gaps.waits.setdefault((around.block, around.drain), []).append(edge)
        return gaps


class Hazards:
    """The steps of a tree by number, in program order, and what each conflicts with.

    Attributes:
        steps: The steps; a step's number is its place here.
        number: The number of each step.
        clashes: For each step, as bits, the steps of other pipes that must not overlap it.
        of_pipe: For each pipe, as bits, its steps.
    """

    def __init__(self, root: Block) -> None:
        self.root = root
        self.steps: list[Step] = []
        self.number: dict[Step, int] = {}
        self._paths: list[Path] = []
        self.path_of: dict[Block, Path] = {root: ()}
        for step, path in _steps_of(root, (), self.path_of):
            self.number[step] = len(self.steps)
            self.steps.append(step)
            self._paths.append(path)
        self.of_pipe: dict[Pipe, int] = {}
        for number, step in enumerate(self.steps):
            self.of_pipe[step.pipe] = self.of_pipe.get(step.pipe, 0) | 1 << number
        self.clashes = _clashes(self.steps, self.of_pipe)

    def edge(self, first: int, then: int) -> Edge:
        """Return the order of step number `first` before step number `then`, which runs later.

        It is made where the two ways from the root part, which is as deep as both surely meet.
        """
        before, after = self._paths[first], self._paths[then]
        depth = next(
            depth
            for depth in range(min(len(before), len(after)) - 1, -1, -1)
            if before[depth][0] is after[depth][0]
        )
        block, x = before[depth]
        y = after[depth][1]
        src, dst = self.steps[first].pipe, self.steps[then].pipe
        around = None if x < y else self.around(block)
        assert x < y or around is not None, "what runs later comes later, or again"
        return Edge(src, dst, block, x, y, around)

    def around(self, block: Block) -> Around | None:
        """Return the place of the outermost loop around `block`, flags close to it, if there is one."""
        for outer, index in self.path_of[block]:
            if isinstance(outer.items[index], AnyLoop):
                return Around(outer, index, index, index + 1)
        return None


def _steps_of(block: Block, path: Path, path_of: dict[Block, Path]) -> Iterator[tuple[Step, Path]]:
    for index, item in enumerate(block.items):
        here = (*path, (block, index))
        if isinstance(item, Step):
            yield item, here
        for inner in bodies(item):
            path_of[inner] = here
            yield from _steps_of(inner, here, path_of)


def bodies(item: Item) -> tuple[Block, ...]:
    """Return the blocks inside an item."""
    match item:
        case AnyLoop():
            return (item.body,)
        case Branch():
            return (item.then_body, item.else_body)
        case _:
            return ()


@dataclass(slots=True)
class _Users:
    """The steps that touch one stretch of a memory, as bits."""

    readers: int = 0
    writers: int = 0


def _clashes(steps: Sequence[Step], of_pipe: dict[Pipe, int]) -> list[int]:
    """Cut every memory at all region borders and compare the users of each stretch."""
    borders: dict[tuple[int, int], set[int]] = {}
    for step in steps:
        for region in (*step.reads, *step.writes):
            borders.setdefault((region.space, region.owner), set()).update(
                (region.begin, region.end)
            )
    cuts = {memory: sorted(points) for memory, points in borders.items()}
    users = {memory: [_Users() for _ in points] for memory, points in cuts.items()}

    def stretches(region: Region) -> list[_Users]:
        memory = (region.space, region.owner)
        points = cuts[memory]
        return users[memory][bisect_left(points, region.begin) : bisect_left(points, region.end)]

    for number, step in enumerate(steps):
        for region in step.reads:
            for stretch in stretches(region):
                stretch.readers |= 1 << number
        for region in step.writes:
            for stretch in stretches(region):
                stretch.writers |= 1 << number
    found: list[int] = []
    for step in steps:
        clash = 0
        for region in step.reads:
            for stretch in stretches(region):
                clash |= stretch.writers
        for region in step.writes:
            for stretch in stretches(region):
                clash |= stretch.readers | stretch.writers
        found.append(clash & ~of_pipe[step.pipe])
    return found
