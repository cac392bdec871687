"""Footprints: the distinct places that the instructions of a task touch, and which of them overlap.

An instruction with the same register values touches the same bytes again, and so do many others of
its pipe; all of these are one footprint. What overlaps is found once for the footprints, not for each
of the records, and kept with the kernel as long as the same footprints come again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from ...codegen.isa.vocabulary import Space
from ...ir.jit import compiled, inner
from ..datapaths.kernels import BASE
from ..decode import PIPES
from .cells import Cells, cells_of
from .overlaps import COUNT, MEMORY, PITCH, SIZE, START, STRETCH_WORDS, conflicts
from .rectangles import BYTE, Rectangle, rectangles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ..pipes.timing import Program

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

Parts: TypeAlias = "tuple[tuple[Rectangle, ...], ...]"
"""The rectangles of each instruction of a program."""

NONE: Final = -1
_STATIC, _R0, _R1 = range(3)


class Shapes:
    """The rectangles of every instruction of a program, worked out once.

    Args:
        program: The program.

    Attributes:
        of: The rectangles of each instruction.
        touched: What pipes touch of GM: the number of a view, the pipe, and whether it writes.
        read: What instructions read of GM, int64 [n, 5]: the instruction, its view, the bit where it
            begins in the buffer, and the steps of its registers.
    """

    def __init__(self, program: Program) -> None:
        kernel = program.decoded.kernel
        each = (rectangles(kernel, index, program.core) for index in range(len(kernel.program)))
        self.of: tuple[tuple[Rectangle, ...], ...] = tuple(each)
        pipe: list[int] = program.decoded.pipe.tolist()
        far = [(n, part) for n, parts in enumerate(self.of) for part in parts if part.view >= 0]
        self.touched = frozenset((part.view, pipe[n], part.writes) for n, part in far)
        reads = [(n, part.view, part.start, *part.steps) for n, part in far if not part.writes]
        self.read = np.array(reads, np.int64).reshape(-1, 5)
        self._last: tuple[frozenset[int], Parts, Line] | None = None

    def relevant(self, views: frozenset[int]) -> tuple[Parts, Line]:
        """Return the rectangles of each instruction beside the cores and in some views of GM.

        The last ones are kept. With them goes which registers tell where they are; see `number_places`.
        """
        if self._last is None or self._last[0] != views:
            parts = tuple(
                tuple(part for part in each if part.memory != Space.GM or part.view in views)
                for each in self.of
            )
            self._last = views, parts, matters_of(parts)
        return self._last[1:]

    @classmethod
    def kept(cls, program: Program) -> Shapes:
        """Return the shapes of a program, which stay with its kernel."""
        kept = program.decoded.kernel.kept
        found = kept.get((cls, program.core))
        if not isinstance(found, Shapes):
            found = kept[cls, program.core] = cls(program)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Footprints:
    """The footprints of a task; f of them, d records of all its programs.

    Attributes:
        of: The footprint of each record, one program's behind another's, int64 [d]; -1 for none.
        places: Rectangles at their places, in the columns above, int64 [r, STRETCH_WORDS], by
            footprint.
        first: Where the rectangles of each footprint begin, int64 [f + 1].
        others: The footprints of other lanes that each must not run at the same time with, one
            footprint's behind another's.
        begin: Where those of each begin in `others`, int64 [f + 1].
        lane: The lane of each, core * PIPES + pipe, int64 [f].
        cells: The cells of the rectangles.
        parts: The rectangles of each instruction of each program, in the order in which `places` has
            them.
    """

    of: Line
    places: Table
    first: Line
    others: Line
    begin: Line
    lane: Line
    cells: Cells
    parts: tuple[Parts, ...]


def footprints_of(programs: Sequence[Program]) -> Footprints:
    """Return the footprints of the programs of a task.

    GM is looked at where some of its bytes might be written by one lane and touched by another.
    """
    shapes = [Shapes.kept(program) for program in programs]
    shared = shared_buffers(programs, shapes)
    relevant = [
        each.relevant(_views_of(program, shared))
        for program, each in zip(programs, shapes, strict=True)
    ]
    used = tuple(parts for parts, _ in relevant)
    keys = [
        number_places(program.stream.static, program.stream.registers, matters)
        for program, (_, matters) in zip(programs, relevant, strict=True)
    ]
    distinct = np.concatenate([found for _, found in keys])
    counts = [len(found) for _, found in keys]
    named = _kept(programs, distinct, counts, shared, used)
    begins = accumulate(counts, initial=0)
    of = [_renamed(own, named.group, begin) for (own, _), begin in zip(keys, begins, strict=False)]
    return Footprints(
        of[0] if len(of) == 1 else np.concatenate(of),
        named.places,
        named.first,
        named.others,
        named.begin,
        named.lane,
        named.cells,
        used,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Named:
    """What follows from the distinct instructions and registers alone; see `Footprints`."""

    group: Line
    places: Table
    first: Line
    others: Line
    begin: Line
    lane: Line
    cells: Cells


def shared_buffers(programs: Sequence[Program], shapes: Sequence[Shapes]) -> frozenset[int]:
    """Return the GM addresses of buffers that one lane writes and another one touches."""
    lanes: dict[int, set[int]] = {}
    written: set[int] = set()
    for number, (program, each) in enumerate(zip(programs, shapes, strict=True)):
        for view, pipe, writes in each.touched:
            base = int(program.views[view, BASE])
            lanes.setdefault(base, set()).add(number * PIPES + pipe)
            written |= {base} if writes else set()
    return frozenset(base for base in written if len(lanes[base]) > 1)


def _views_of(program: Program, shared: frozenset[int]) -> frozenset[int]:
    """Return the views of a program that lie in some buffers."""
    bases: list[int] = program.views[:, BASE].tolist() if shared else []
    return frozenset(view for view, base in enumerate(bases) if base in shared)


def matters_of(parts: Parts) -> Line:
    """Return for each instruction which registers tell where its rectangles are, int64 [n].

    They are told as bits; -1 stands for an instruction without rectangles.
    """
    return np.array([_matters(each) for each in parts], np.int64)


def _matters(parts: Iterable[Rectangle]) -> int:
    """Return -1 for an instruction that touches nothing, else as bits which registers matter."""
    found, some = 0, False
    for part in parts:
        some = True
        found |= (part.steps[0] != 0) | (part.steps[1] != 0) << 1
    return found if some else NONE


@compiled
def number_places(static: Line, registers: Table, matters: Line) -> tuple[Line, Table]:
    """Number the distinct places of the records.

    Args:
        static: The instruction of each record, int64 [d].
        registers: Its registers, int64 [d, 2].
        matters: For each instruction which of them matter, as bits; -1 if it touches nothing.

    Returns:
        The number of each record's place, -1 for none, int64 [d], and the distinct places, int64
        [places, 3]: the instruction and the registers that matter.
    """
    count = len(static)
    of = np.full(count, -1, np.int64)
    fixed = np.full(len(matters), -1, np.int64)
    size = 1024
    table = np.full(size, -1, np.int64)
    found = np.empty((256, 3), np.int64)
    used = 0
    for record in range(count):
        item = static[record]
        matter = matters[item]
        if matter < 0:
            continue
        if matter == 0 and fixed[item] >= 0:
            of[record] = fixed[item]
            continue
        r0 = int(registers[record, 0]) if matter & 1 else 0
        r1 = int(registers[record, 1]) if matter & 2 else 0
        slot = _hash(item, r0, r1) & (size - 1)
        while table[slot] >= 0:
            other = table[slot]
            if found[other, 0] == item and found[other, 1] == r0 and found[other, 2] == r1:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            if used == len(found):
                grown = np.empty((used * 2, 3), np.int64)
                for row in range(used):
                    for column in range(3):
                        grown[row, column] = found[row, column]
                found = grown
            found[used, 0], found[used, 1], found[used, 2] = item, r0, r1
            table[slot] = used
            used += 1
            if used * 2 > size:
                size *= 4
                table = np.full(size, -1, np.int64)
                for number in range(used):
                    at = _hash(found[number, 0], found[number, 1], found[number, 2]) & (size - 1)
                    while table[at] >= 0:
                        at = (at + 1) & (size - 1)
                    table[at] = number
            number = used - 1
        else:
            number = table[slot]
        of[record] = number
        if matter == 0:
            fixed[item] = number
    return of, found[:used].copy()


@inner
def _hash(item: int, r0: int, r1: int) -> int:
    mixed = item * 1000003 + r0 * 8191 + r1 * 131071
    return mixed ^ (mixed >> 15)


@compiled
def _renamed(own: Line, group: Line, begin: int) -> Line:
    """Return `group[begin + number]` for every number, -1 staying what it is."""
    named = np.empty(len(own), np.int64)
    for record in range(len(own)):
        named[record] = group[begin + own[record]] if own[record] >= 0 else -1
    return named


def _kept(
    programs: Sequence[Program],
    distinct: Table,
    counts: Sequence[int],
    shared: frozenset[int],
    used: Sequence[Parts],
) -> _Named:
    """Return what follows from the distinct places; the last ones stay with the kernel."""
    bases = b"".join(program.views[:, BASE].tobytes() for program in programs) if shared else b""
    cores = tuple(program.core for program in programs)
    key = (cores, tuple(counts), sorted(shared), bases)
    kept = programs[0].decoded.kernel.kept
    last = kept.get(_Named)
    if isinstance(last, _Kept) and last.key == key and np.array_equal(last.distinct, distinct):
        return last.named
    named = _name(programs, distinct, counts, used)
    kept[_Named] = _Kept(key, distinct, named)
    return named


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """What was named last, and all that it followed from."""

    key: tuple[object, ...]
    distinct: Table
    named: _Named


def _name(
    programs: Sequence[Program],
    distinct: Table,
    counts: Sequence[int],
    used: Sequence[Parts],
) -> _Named:
    group = np.empty(len(distinct), np.int64)
    known: dict[tuple[int, tuple[tuple[int, ...], ...]], int] = {}
    places: list[tuple[int, ...]] = []
    first = [0]
    lanes: list[int] = []
    places_of: list[list[int]] = distinct.tolist()
    rows = iter(places_of)
    at = 0
    for number, (program, count) in enumerate(zip(programs, counts, strict=True)):
        bases: list[int] = program.views[:, BASE].tolist()
        for _ in range(count):
            item, r0, r1 = next(rows)
            lane = number * PIPES + int(program.decoded.pipe[item])
            stretches = tuple(
                stretch(part, r0, r1, bases[part.view] if part.view >= 0 else 0)
                for part in used[number][item]
            )
            name = known.setdefault((lane, stretches), len(lanes))
            if name == len(lanes):
                lanes.append(lane)
                places += ((*each, name, lane) for each in stretches)
                first.append(len(places))
            group[at] = name
            at += 1
    table = np.array(places, np.int64).reshape(-1, STRETCH_WORDS)
    pairs = conflicts(table)
    begin, others = _neighbours(pairs, len(lanes))
    rectangle = (table[:, column] for column in (MEMORY, START, COUNT, PITCH, SIZE))
    return _Named(
        group,
        table,
        np.array(first, np.int64),
        others,
        begin,
        np.array(lanes, np.int64),
        cells_of(*rectangle),
    )


def stretch(part: Rectangle, r0: int, r1: int, base: int) -> tuple[int, ...]:
    """Return a rectangle at its place: the first columns of a stretch.

    Args:
        part: The rectangle.
        r0: The first register of the instruction.
        r1: The second one.
        base: GM address of its buffer; 0 elsewhere.
    """
    bits = part.start + r0 * part.steps[0] + r1 * part.steps[1]
    start = base + bits // BYTE
    return part.memory, int(part.writes), start, part.runs, part.pitch, part.size


def _neighbours(pairs: Table, count: int) -> tuple[Line, Line]:
    """Return where the partners of each footprint begin, and the partners, each but once."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    codes = np.unique(both[:, 0] * count + both[:, 1]) if len(both) else np.zeros(0, np.int64)
    owners, others = np.divmod(codes, max(count, 1))
    begin = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=begin[1:])
    return begin, others
