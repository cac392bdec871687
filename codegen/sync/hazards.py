"""Which instructions of a tree must not overlap, and the orders that keep them apart.

Pipes run at once and only flags and barriers order them, those of one core as those of different ones.
Two instructions of different pipes or cores conflict when one writes bytes that the other reads or
writes; whichever the program has first must be done before the other begins. Such an :class:`Edge`
becomes a pair of `set_flag` and `wait_flag`, or of `set_core_flag` and `wait_core_flag`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..isa.cluster import CORE_FLAG_IDS
from ..isa.table import FLAG_IDS
from ..tree import AnyLoop, Block, Branch, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..isa.vocabulary import ClusterCore
    from ..tree import Item, Lane, Region

Gap: TypeAlias = tuple[Block, int]
"""`(block, index)`: what stands before item `index` of a block."""

Path: TypeAlias = tuple[tuple[Block, int], ...]
"""The way from the root to an item: blocks, and the index in each."""

JOIN_ID = CORE_FLAG_IDS - 1
"""The core flag of each direction by which two cores join; all others are for orders."""


@dataclass(frozen=True)
class Barrier:
    """Where the scalar unit waits until every pipe is idle.

    Attributes:
        block: The block.
        index: The gap before this item of it.
        core: The core that waits for its own pipes; None where both cores wait for all of both.
    """

    block: Block
    index: int
    core: ClusterCore | None


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


class Turn(NamedTuple):
    """A stretch of a block: what takes a flag begins with item `y`, what sets it ends with item `x`."""

    block: Block
    x: int
    y: int


@dataclass(frozen=True)
class Edge:
    """An order: what `src` did up to item `x` of `block` before what `dst` does from item `y` on.

    Without `around`, x < y and both are of one run of the block. With it, y <= x and the order reaches
    from each run of the block to the next; the flag stays up in between, so one more set stands before
    the outermost loop and one more wait behind it. With `also`, it reaches from each run of any of the
    turns to the next run of any of them.
    """

    src: Lane
    dst: Lane
    block: Block
    x: int
    y: int
    around: Around | None = None
    also: tuple[Turn, ...] = ()
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Edges are keys everywhere, and their hash goes deep.
        own = (self.src, self.dst, self.block, self.x, self.y, self.around, self.also)
        object.__setattr__(self, "_hash", hash(own))

    def __hash__(self) -> int:
        return self._hash

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Where its flag is taken and set, but for the first set and the last wait around a loop."""
        return (Turn(self.block, self.x, self.y), *self.also)

    @property
    def pair(self) -> tuple[Lane, Lane]:
        """The two that it orders."""
        return self.src, self.dst

    @property
    def crosses(self) -> bool:
        """Whether it is between two cores, so that a core flag keeps it."""
        return self.src.core is not self.dst.core

    @property
    def pool(self) -> tuple[int, ...]:
        """What it shares its numbers with: all orders of its pipes, or all of its two cores."""
        if self.crosses:
            return self.src.core, self.dst.core
        return self.src.core, self.src.pipe, self.dst.pipe

    @property
    def ids(self) -> int:
        """How many numbers there are."""
        return JOIN_ID if self.crosses else FLAG_IDS


@dataclass
class Gaps:
    """What stands between items."""

    sets: dict[Gap, list[Edge]] = field(default_factory=dict["Gap", list[Edge]])
    waits: dict[Gap, list[Edge]] = field(default_factory=dict["Gap", list[Edge]])
    barriers: dict[Gap, list[ClusterCore | None]] = field(
        default_factory=dict["Gap", list["ClusterCore | None"]]
    )

    @classmethod
    def of(cls, edges: Iterable[Edge], barriers: Iterable[Barrier]) -> Gaps:
        """Place the flags of `edges`; in a gap sets come first, then barriers, then waits."""
        gaps = cls()
        for barrier in sorted(barriers, key=lambda b: -1 if b.core is None else b.core):
            cores = gaps.barriers.setdefault((barrier.block, barrier.index), [])
            if None not in cores:
                cores.append(barrier.core)
        for edge in sorted(edges, key=lambda e: (e.src, e.dst, e.y, e.x)):
            for turn in edge.turns:
                gaps.sets.setdefault((turn.block, turn.x + 1), []).append(edge)
                gaps.waits.setdefault((turn.block, turn.y), []).append(edge)
            if edge.around is not None:
                around = edge.around
                gaps.sets.setdefault((around.block, around.prime), []).append(edge)
                gaps.waits.setdefault((around.block, around.drain), []).append(edge)
        return gaps


@dataclass(frozen=True, slots=True)
class Lump:
    """Steps of one lane with nothing in between: they and what they conflict with, as bits."""

    lane: int
    steps: int
    clashes: int


@dataclass(frozen=True, slots=True)
class Run:
    """Steps with nothing in between, by number, and the same as one lump for each stretch of a lane."""

    numbers: tuple[int, ...]
    lumps: tuple[Lump, ...]


Part = int | Run | AnyLoop | Branch
"""A part of a block: a gap in which something stands, steps, or an item that holds blocks."""


class Hazards:
    """The steps of a tree by number, in program order, and what each conflicts with.

    Attributes:
        steps: The steps; a step's number is its place here.
        number: The number of each step.
        lanes: The number of the lane of each step.
        lanes_of: The numbers of the lanes of each core that has steps, and of all cores together.
        clashes: For each step, as bits, the steps of other lanes that must not overlap it.
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
        self.lanes = [step.lane.number for step in self.steps]
        self.lanes_of: dict[ClusterCore | None, list[int]] = {None: []}
        for lane in dict.fromkeys(step.lane for step in self.steps):
            self.lanes_of[None].append(lane.number)
            self.lanes_of.setdefault(lane.core, []).append(lane.number)
        self.clashes = _clashes(self.steps, self.lanes)
        self._of_one_lane: dict[Branch, tuple[int, ...]] = {}
        self._parts: dict[tuple[Block, tuple[int, ...]], list[Part]] = {}

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
        src, dst = self.steps[first].lane, self.steps[then].lane
        around = None if x < y else self.around(block)
        assert x < y or around is not None, "what runs later comes later, or again"
        return Edge(src, dst, block, x, y, around)

    def parts(self, block: Block, gaps: tuple[int, ...]) -> list[Part]:
        """Return what a block is made of, where flags or barriers stand in some of its gaps.

        Args:
            block: A block of the tree.
            gaps: The numbers of these gaps, in order.
        """
        known = self._parts.get((block, gaps))
        if known is None:
            known = self._parts[block, gaps] = list(self._parts_of(block, set(gaps)))
        return known

    def _parts_of(self, block: Block, gaps: set[int]) -> Iterator[Part]:
        steps: list[int] = []  # with nothing in between
        for index, item in enumerate(block.items):
            alone = self.of_one_lane(item) if isinstance(item, Branch) else ()
            ends = isinstance(item, AnyLoop | Branch) and not alone
            if steps and (ends or index in gaps):
                yield self._run(steps)
                steps = []
            if index in gaps:
                yield index
            match item:
                case Step():
                    steps.append(self.number[item])
                case Branch() if alone:
                    steps += alone  # nobody else is told of anything in it, whichever arm runs
                case AnyLoop() | Branch():
                    yield item
                case _:
                    pass
        if steps:
            yield self._run(steps)
        if len(block.items) in gaps:
            yield len(block.items)

    def _run(self, steps: Sequence[int]) -> Run:
        lumps: list[Lump] = []
        for lane, numbers in groupby(steps, self.lanes.__getitem__):
            own = clashes = 0
            for number in numbers:
                own |= 1 << number
                clashes |= self.clashes[number]
            lumps.append(Lump(lane, own, clashes))
        return Run(tuple(steps), tuple(lumps))

    def path(self, number: int) -> Path:
        """Return the way from the root to step number `number`."""
        return self._paths[number]

    def of_one_lane(self, branch: Branch) -> tuple[int, ...]:
        """Return the numbers of a branch's steps where all are of one lane and in no loop, else none."""
        if branch not in self._of_one_lane:
            steps = [*branch.then_body.steps(), *branch.else_body.steps()]
            alone = not holds_loop(branch) and len({step.lane for step in steps}) == 1
            found = tuple(self.number[step] for step in steps) if alone else ()
            self._of_one_lane[branch] = found
        return self._of_one_lane[branch]

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


def holds_loop(item: Item) -> bool:
    """Whether an item is a loop, or a branch with one in it."""
    return isinstance(item, AnyLoop) or any(
        holds_loop(inner) for block in bodies(item) for inner in block.items
    )


@dataclass(slots=True)
class _Users:
    """The steps that touch one stretch of a memory, as bits."""

    readers: int = 0
    writers: int = 0


def _clashes(steps: Sequence[Step], lanes: Sequence[int]) -> list[int]:
    """Cut every memory at all region borders and compare the users of each stretch."""
    of_lane: dict[int, int] = {}
    for number, lane in enumerate(lanes):
        of_lane[lane] = of_lane.get(lane, 0) | 1 << number
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
    for step, lane in zip(steps, lanes, strict=True):
        clash = 0
        for region in step.reads:
            for stretch in stretches(region):
                clash |= stretch.writers
        for region in step.writes:
            for stretch in stretches(region):
                clash |= stretch.readers | stretch.writers
        found.append(clash & ~of_lane[lane])
    return found
