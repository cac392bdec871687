"""The walk that knows who wrote each byte last, and as which tile; jitted.

It goes over the records in an order that their flags allow. What it finds are lines in the columns of
a finding; `bytes` makes sentences of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ...ir.jit import compiled, lean

if TYPE_CHECKING:
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

NONE: Final = -1
WRITES, TILE, SIDE, SCALE_OF, PART_WORDS = 0, 1, 2, 3, 4
"""Columns of a part, a rectangle of an instruction: whether it is written; the buffer of its tile, -1
if that is not known; for the scales of a product 1 or 2 for its left or right operand, for what moves
scales the same, negative; and for the scales of a product which part is the data that they are of."""

WHO, TOLD, VERSION, BEGAN, USED_BY, USED_WITH, CELL_WORDS = 0, 1, 2, 3, 4, 5, 6
"""Columns of a cell: the place in the order of the record that wrote it last, the buffer that it wrote
it as, what it stands for, where the rectangle began that it wrote, and for scales the product that used
them first and with which data."""

CLOBBERED, MISSING, FOREIGN, STALE = 0, 1, 2, 3
"""Kinds of findings: a tile that another one was written over; scales where nothing was put; scales
of another tile; scales that belong to data that stood there before."""

KIND, RECORD, PART, OTHER, THIRD, FINDING_WORDS = 0, 1, 2, 3, 4, 5
"""Columns of a finding: its kind, the record that reads, its part, the record that wrote last or moved
scales last (-1 for none), and for stale scales the product that used them before."""

MOST: Final = 64
_MIXER: Final = 0x5851F42D4C957F2D


class Program(NamedTuple):
    """What is walked over; d records, i instructions, f footprints, r rectangles.

    Args:
        order: Records, int64.
        static: The instruction of each record, int64 [d].
        registers: Their two registers, int64 [d, 2].
        footprint: The footprint of each record, int64 [d].
        first: Where the rectangles of each footprint begin, int64 [f + 1].
        begin: Where the cells of each rectangle begin, int64 [r + 1].
        cells: The cells.
        head: The cell of each rectangle's first byte, int64 [r].
        size: The bytes of each cell, int64 [c].
        start: The first byte of each rectangle, int64 [r].
        part: Where the parts of each instruction begin, int64 [i + 1]; they are its rectangles.
        parts: int64 [parts, PART_WORDS].
        kind: A number that instructions of the same kind and shape share, int64 [i].
        source: What an instruction reads of GM with registers at zero, and how far a step of either
            goes; zeros for what reads nothing of it, int64 [i, 3].
    """

    order: Line
    static: Line
    registers: Table
    footprint: Line
    first: Line
    begin: Line
    cells: Line
    head: Line
    size: Line
    start: Line
    part: Line
    parts: Table
    kind: Line
    source: Table


@compiled
def walk_bytes(program: Program, count: int, buffers: int) -> Table:
    """Walk over the records; return what was found, int64 [n, FINDING_WORDS].

    What bytes stand for follows from where they came from in GM and how they were moved, not from where
    in the local memories they are: what is read counts by its place in what was written there.

    Args:
        program: The records and what they touch.
        count: How many cells there are.
        buffers: How many buffers tiles have.
    """
    order, static, registers, footprint, first = program[:5]
    begin, cells, head, size, start, part, parts, kind, source = program[5:]
    held = np.zeros((count, CELL_WORDS), np.int64)
    held[:, WHO] = -1
    held[:, TOLD] = -1
    held[:, USED_BY] = -1
    renewed = np.full(max(buffers, 1), -1, np.int64)
    moved = np.full(3, -1, np.int64)
    found = np.empty((MOST, FINDING_WORDS), np.int64)
    seen = np.zeros(len(parts), np.uint8)
    used = 0
    for place in range(len(order)):
        record = order[place]
        item = static[record]
        own, shape = part[item], first[footprint[record]]
        version = int(kind[item])
        if source[item, 0] != 0:
            r0, r1 = registers[record, 0], registers[record, 1]
            where = source[item, 0] + r0 * source[item, 1] + r1 * source[item, 2]
            version = _mixed(version, int(where))
        for number in range(part[item + 1] - own):
            line, at = parts[own + number], shape + number
            if line[WRITES]:
                continue
            what, wrong, content = -1, -1, 0
            for index in range(begin[at], begin[at + 1]):
                cell = cells[index]
                moved_by = start[at] - held[cell, BEGAN]
                content += size[cell] * _mixed(int(held[cell, VERSION]), int(moved_by))
                if line[SIDE] > 0:
                    data = int(held[head[shape + line[SCALE_OF]], VERSION])
                    worst = _scales(held, cell, line[TILE], data, place, int(moved[line[SIDE]]))
                else:
                    worst = _clobbered(held, cell, line[TILE], renewed)
                if worst >= 0 and what < 0:
                    what, wrong = worst, cell
            if what >= 0 and not seen[own + number] and used < MOST:
                seen[own + number] = 1
                found[used, KIND], found[used, RECORD], found[used, PART] = what, record, number
                who = moved[line[SIDE]] if what == MISSING else held[wrong, WHO]
                found[used, OTHER] = order[who] if who >= 0 else -1
                before = held[wrong, USED_BY]
                found[used, THIRD] = order[before] if before >= 0 else -1
                used += 1
            version = _mixed(version, int(content))
        for number in range(part[item + 1] - own):
            line, at = parts[own + number], shape + number
            if not line[WRITES]:
                continue
            tile, content = line[TILE], _mixed(version, number)
            for index in range(begin[at], begin[at + 1]):
                cell = cells[index]
                held[cell, WHO], held[cell, TOLD] = place, tile
                held[cell, VERSION], held[cell, BEGAN] = content, start[at]
                held[cell, USED_BY] = -1
            if tile >= 0:
                renewed[tile] = place
            if line[SIDE] < 0:
                moved[-line[SIDE]] = place
    return found[:used].copy()


@lean
def _mixed(version: int, more: int) -> int:
    """Return a number for two numbers in this order."""
    mixed = (version ^ more) * _MIXER + (more >> 7) + 1
    return mixed ^ (mixed >> 29)


@lean
def _clobbered(held: Table, cell: int, tile: int, renewed: Line) -> int:
    """Return CLOBBERED if another tile was written here since `tile` was written anywhere, or -1."""
    other = held[cell, TOLD]
    if tile < 0 or other < 0 or other == tile or renewed[tile] < 0:
        return -1
    return CLOBBERED if held[cell, WHO] > renewed[tile] else -1


@lean
def _scales(held: Table, cell: int, tile: int, data: int, place: int, moved: int) -> int:
    """Return what is wrong with scales that a product at a place finds, or -1; note its use."""
    if held[cell, WHO] < 0:
        return MISSING if moved >= 0 or tile >= 0 else -1
    if tile >= 0 and held[cell, TOLD] >= 0:
        return FOREIGN if held[cell, TOLD] != tile else -1
    if held[cell, USED_BY] < 0:
        held[cell, USED_BY], held[cell, USED_WITH] = place, data
        return -1
    return STALE if held[cell, USED_WITH] != data else -1
