"""The scale-decode unit, register for register, stepped cycle by cycle.

The words that pass its wires are those of `codegen.isa.scale_unit`. A step of a cycle has two halves:
:func:`answers` tells the handshake wires that the unit drives, which are a function of its registers
alone, and :func:`edge` what the clock edge at the end of the cycle makes of the registers. Whoever
drives the other ends, recorded wires (:func:`step`) or a memory and a cube (`feed`), calls
these two.

The registers hold no scales. Boxes leave a side in the order in which they came, so a side knows with
which of its beats the oldest box begins, and a record which beats it is made of. That is all that
timing needs, and the bytes stay where they are; `wires` decodes them.
"""

# Compiled code has numpy's integers where this says int.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ...codegen.isa.scale_unit import BEATS_BYTES, RECORD, REQUEST, SLOTS
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS
from ...ir.jit import compiled, inner

if TYPE_CHECKING:
    import numpy.typing as npt

    Bits = npt.NDArray[np.uint8]
    Words = npt.NDArray[np.uint16]
    Line = npt.NDArray[np.int32]
    Table = npt.NDArray[np.int32]

STREAMS: Final = ("start", "a_request", "b_request", "a", "b", "o")
"""The streams of the unit. A handshake word has a bit for each, in this order from bit 0 on: in what
is `given` to the unit, valid of what flows in and ready of what flows out; in its `answers` the other
wire of each."""

START, A_REQUEST, B_REQUEST, A, B, O = (1 << place for place in range(len(STREAMS)))  # noqa: E741 - the wires' names
RESET: Final = 1 << len(STREAMS)
"""In what is given: the clock edge at the end of this cycle resets the unit."""

TILE_SHIFT: Final = REQUEST[1].bits
"""A request as one number: tile, shifted by this, and block."""

_TILES: Final = 1 << REQUEST[0].bits
_GROUPS: Final = 1 << RECORD[0].bits

SECOND, LAST, END = 1, 2, 4
"""Flags of a record."""

FLAG_BITS: Final = 3
"""A record's name as one number: its group, shifted by this, and its flags."""

RECORD_WORDS: Final = 3
"""Columns of a record: its name; the first beat of its left box and that of its right one, counted
among all beats of that side."""


class Side(NamedTuple):
    """The registers of one side."""

    asking: int
    """Whether a request is on offer: the box of these three."""
    row: int
    column: int
    block: int
    beats: int
    """Beats in the slot that is being filled."""
    full: int
    """Slots that are full; boxes leave the ring in the order in which they came."""
    oldest: int
    """The beats that passed before those of the oldest box, since the very beginning."""


class Registers(NamedTuple):
    """The registers of the unit."""

    busy: int
    row_tiles: int
    column_tiles: int
    groups: int
    paired: int
    a: Side
    b: Side
    loading: int
    """Whether records of this mad are still to be loaded; the next is that of these three."""
    row: int
    column: int
    group: int
    offering: int
    """Whether a record is on offer."""
    at_end: int
    """Whether that is the last of its mad."""


_SIDE: Final = Side(0, 0, 0, 0, 0, 0, 0)
IDLE: Final = Registers(0, 0, 0, 0, 0, _SIDE, _SIDE, 0, 0, 0, 0, 0, 0)
"""A unit that nothing has reached."""


@inner
def emptied(r: Registers, beats: int) -> Registers:
    """Return what a reset leaves: nothing, but that the beats that passed have passed."""
    a = Side(0, 0, 0, 0, 0, 0, r.a.oldest + r.a.full * beats + r.a.beats)
    b = Side(0, 0, 0, 0, 0, 0, r.b.oldest + r.b.full * beats + r.b.beats)
    return Registers(0, 0, 0, 0, 0, a, b, 0, 0, 0, 0, 0, 0)


@inner
def answers(r: Registers) -> int:
    """Return the handshake wires that the unit drives in this cycle."""
    word = O * r.offering + START * (1 - (r.busy | r.a.asking | r.b.asking))
    word += A_REQUEST * r.a.asking + B_REQUEST * r.b.asking
    return word + A * (r.a.full < SLOTS) + B * (r.b.full < SLOTS)


@inner
def loads(r: Registers, given: int) -> int:
    """Return whether this cycle's edge loads the next record into the output register."""
    both = (r.a.full > 0) & (r.b.full > 0)
    return r.loading & both & (1 - r.offering | (given & O != 0))


@inner
def record_flags(r: Registers) -> int:
    """Return the flags of the record that is loaded next."""
    width = 1 + r.paired
    last = r.group + width >= r.groups
    end = last and r.column + 1 == r.column_tiles and r.row + 1 == r.row_tiles
    second = r.paired != 0 and r.group + 1 < r.groups
    return SECOND * second + LAST * last + END * end


@inner
def asked(side: Side, tile: int) -> int:
    """Return the request that a side offers, as one number."""
    return tile << TILE_SHIFT | side.block


@inner
def counted(count: int, most: int) -> int:
    """Return what the unit makes of a count in a start word; `most` is a power of two."""
    return ((count - 1) & (most - 1)) + 1


@inner
def _side_edge(r: Registers, side: Side, ask: bool, beat: bool, frees: int, beats: int) -> Side:
    """Return what an edge makes of a side.

    Args:
        r: All registers.
        side: Those of the side.
        ask: Whether its request was taken.
        beat: Whether a beat came.
        frees: Whether its oldest slot is given up.
        beats: Beats of a box.
    """
    asking, row, column, block = side.asking, side.row, side.column, side.block
    if ask:
        block += 1
        if block * BOX_GROUPS >= r.groups:
            block = 0
            column += 1
            if column == r.column_tiles:
                column = 0
                row += 1
                asking = asking if row < r.row_tiles else 0
    come = side.beats + beat
    filled = come == beats
    return Side(
        asking,
        row,
        column,
        block,
        0 if filled else come,
        side.full + filled - frees,
        side.oldest + beats * frees,
    )


@inner
def _asking(side: Side, beat: bool, beats: int) -> Side:
    """Return a side that begins to ask, and to which a beat may come in the same cycle."""
    come = side.beats + beat
    filled = come == beats
    return Side(1, 0, 0, 0, 0 if filled else come, side.full + filled, side.oldest)


@inner
def edge(
    r: Registers,
    passed: int,
    load: int,
    row_tiles: int,
    column_tiles: int,
    groups: int,
    paired: int,
    beats: int,
) -> Registers:
    """Return what the edge at the end of a cycle without reset makes of the registers.

    Args:
        r: The registers.
        passed: Bit by stream, whether a word passed in this cycle.
        load: What :func:`loads` says.
        row_tiles: Of the start word on the wires (:func:`counted`), as are the next three.
        column_tiles: Tiles of 16 columns.
        groups: Groups along K.
        paired: Whether a record carries two.
        beats: Beats of a box.
    """
    if passed & START:
        a = _asking(r.a, passed & A != 0, beats)
        b = _asking(r.b, passed & B != 0, beats)
        return Registers(1, row_tiles, column_tiles, groups, paired, a, b, 1, 0, 0, 0, 0, 0)
    loading, row, column, group = r.loading, r.row, r.column, r.group
    offering, at_end, frees = r.offering, r.at_end, 0
    busy = r.busy
    if passed & O:
        offering = 0
        busy &= 1 - at_end
    if load:
        frees = r.paired | (group & 1)
        offering, at_end = 1, 0
        group += 1 + r.paired
        if group >= r.groups:
            frees, group = 1, 0
            column += 1
            if column == r.column_tiles:
                column = 0
                row += 1
                if row == r.row_tiles:
                    loading, at_end = 0, 1
    a = _side_edge(r, r.a, passed & A_REQUEST != 0, passed & A != 0, frees, beats)
    b = _side_edge(r, r.b, passed & B_REQUEST != 0, passed & B != 0, frees, beats)
    return Registers(
        busy,
        r.row_tiles,
        r.column_tiles,
        r.groups,
        r.paired,
        a,
        b,
        loading,
        row,
        column,
        group,
        offering,
        at_end,
    )


class Answer(NamedTuple):
    """What the unit drove onto its wires; arrays are indexed by cycle.

    Attributes:
        answered: Handshake words, uint8.
        a_request: The request of the left side as one number (:func:`asked`), uint16; it means
            something where its valid is set, as does all that follows.
        b_request: The same of the right side, uint16.
        record: Line in `records` of the record on offer, int32.
        records: int32 [records, RECORD_WORDS].
    """

    answered: Bits
    a_request: Words
    b_request: Words
    record: Line
    records: Table

    @classmethod
    def room(cls, cycles: int) -> Answer:
        """Return arrays for so many cycles."""
        return cls(
            np.empty(cycles, np.uint8),
            np.empty(cycles, np.uint16),
            np.empty(cycles, np.uint16),
            np.empty(cycles, np.int32),
            np.empty((cycles, RECORD_WORDS), np.int32),
        )


def beats_of(beat_bytes: int) -> int:
    """Return the beats of a box."""
    assert beat_bytes in BEATS_BYTES, f"no unit has beats of {beat_bytes} bytes"
    return BOX_BYTES // beat_bytes


def step(given: Bits, start: Words, *, beat_bytes: int, room: Answer | None = None) -> Answer:
    """Step a unit that comes out of reset through recorded wires.

    Args:
        given: Handshake words and :data:`RESET`, uint8 [cycles], fewer than 2^31.
        start: The wires of the start word, uint16 [cycles, fields] in the order of `START` in
            `codegen.isa.scale_unit`; looked at where its valid is set.
        beat_bytes: Width of a beat, one of `BEATS_BYTES`.
        room: Where the answer goes, for at least as many cycles; new arrays by default.
    """
    cycles = len(given)
    room = Answer.room(cycles) if room is None else room
    count = _step(given, start, beats_of(beat_bytes), *room)
    a_request, b_request = room.a_request[:cycles], room.b_request[:cycles]
    answered, record = room.answered[:cycles], room.record[:cycles]
    return Answer(answered, a_request, b_request, record, room.records[:count])


@compiled
def _step(
    given: Bits,
    start: Words,
    beats: int,
    answered: Bits,
    a_request: Words,
    b_request: Words,
    record: Line,
    records: Table,
) -> int:
    """Fill the arrays of an :class:`Answer`; return the number of records."""
    r, count, shown = IDLE, np.uintp(0), -1
    row_tiles = column_tiles = groups = paired = 0
    name, a_first, b_first = np.uintp(0), np.uintp(1), np.uintp(2)
    for cycle in range(np.uintp(len(given))):
        word = np.int64(given[cycle])
        drives = answers(r)
        passed = word & drives
        answered[cycle] = drives
        a_request[cycle] = asked(r.a, r.a.row)
        b_request[cycle] = asked(r.b, r.b.column)
        record[cycle] = shown
        if word & RESET:
            r = emptied(r, beats)
            continue
        if passed & START:
            row_tiles = counted(np.int64(start[cycle, 0]), _TILES)
            column_tiles = counted(np.int64(start[cycle, 1]), _TILES)
            groups, paired = counted(np.int64(start[cycle, 2]), _GROUPS), np.int64(start[cycle, 3])
        load = loads(r, word)
        if load:
            records[count, name] = r.group << FLAG_BITS | record_flags(r)
            records[count, a_first] = r.a.oldest
            records[count, b_first] = r.b.oldest
            shown = np.int64(count)
            count += np.uintp(1)
        r = edge(r, passed, load, row_tiles, column_tiles, groups, paired, beats)
    return count
