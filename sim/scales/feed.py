"""What stands around the scale-decode unit: the memory of its boxes, and the cube.

A side's memory takes a request and brings the first beat of its box so many cycles later, then a beat
a cycle; boxes come in the order of the requests, and a beat stays until it is taken. A mad starts in
the first cycle in which the unit can take it, which is the mad's cycle 0. The cube takes a record a
cycle from the cycle on in which its head is over. So it is on the machine; for tests, any of these
can be held back in any cycle.
"""

# Compiled code has numpy's integers where this says int.
# pyright: reportArgumentType=false, reportReturnType=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...codegen.isa.scale_unit import START as START_WORD
from ...ir.jit import compiled, inner
from .unit import (
    A_REQUEST,
    B_REQUEST,
    IDLE,
    START,
    A,
    B,
    O,
    answers,
    beats_of,
    edge,
    loads,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...ir.target import Target

    Bits = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]
    Mads = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The numbers of what stands around the unit.

    Attributes:
        beat_bytes: Width of a beat.
        read_cycles: From the cycle that takes a request to that of its first beat, at least 1.
        head_cycles: From the start of a mad to the first record that the cube takes.
    """

    beat_bytes: int
    read_cycles: int
    head_cycles: int

    @classmethod
    def of(cls, target: Target) -> Surroundings:
        """Return those of a machine."""
        return cls(target.scale_beat_bytes, target.scale_read_cycles, target.mad_head_cycles)


@dataclass(frozen=True, slots=True, eq=False)
class Handshakes:
    """The handshake wires of some mads, one after another, cut to the cycles of the mads.

    Attributes:
        given: What the unit was given, words as in `unit`, uint8 [cycles].
        answered: What it answered, uint8 [cycles].
        mads: Mads, from the first on, that came to their end.
    """

    given: Bits
    answered: Bits
    mads: int


def feed(
    mads: Mads, around: Surroundings, *, limit: int | None = None, held: Bits | None = None
) -> Handshakes:
    """Let the unit work through mads.

    Args:
        mads: Start words, uint16 [mads, fields] in the order of `START` in
            `codegen.isa.scale_unit`.
        around: What the unit stands among.
        limit: Cycles after which to stop in any case; as many as it takes by default.
        held: Words of streams (`unit.STREAMS`) to hold back: entry c mod n in cycle c,
            uint8 [n]. A word that is on offer stays. Nothing is held back by default.
    """
    assert mads.shape[1:] == (len(START_WORD),), "a start word a line"
    beats, pattern = beats_of(around.beat_bytes), np.zeros(1, np.uint8) if held is None else held
    boxes = int(boxes_of(mads).max(initial=0))
    room = _expected_cycles(mads, around, beats) if limit is None else limit
    while True:
        given, answered = np.empty(room, np.uint8), np.empty(room, np.uint8)
        cycles, done = _feed(
            mads,
            beats,
            around.read_cycles,
            around.head_cycles,
            pattern,
            np.empty((2, boxes), np.int64),
            given,
            answered,
        )
        if done == len(mads) or room == limit:
            return Handshakes(given[:cycles], answered[:cycles], done)
        room *= 2


def boxes_of(mads: Mads) -> Line:
    """Return the boxes that a side asks for in each mad, int64 [mads]."""
    wide = mads.astype(np.int64)
    return wide[:, 0] * wide[:, 1] * -(-wide[:, 2] // 2)


def records_of(mads: Mads) -> Line:
    """Return the records of each mad, int64 [mads]."""
    wide = mads.astype(np.int64)
    return wide[:, 0] * wide[:, 1] * -(-wide[:, 2] // (1 + wide[:, 3]))


def _expected_cycles(mads: Mads, around: Surroundings, beats: int) -> int:
    """Return no less than what the mads take if nothing is held back."""
    pairs = boxes_of(mads) * beats + records_of(mads)
    return int((pairs + around.head_cycles + around.read_cycles + 8).sum())


class _Reader(NamedTuple):
    """The memory of a side."""

    taken: int
    """Requests of this mad that were taken."""
    brought: int
    """Boxes of this mad that were brought."""
    beat: int
    """Beats of the next box that were brought."""
    waits: int
    """Whether a beat is on offer that was not taken."""


_RESTING = _Reader(0, 0, 0, 0)


@inner
def _offers(reader: _Reader, due: Line, cycle: int, hold: bool) -> bool:
    ready = reader.brought < reader.taken and due[reader.brought] <= cycle
    return reader.waits != 0 or (ready and not hold)


@inner
def _read(
    reader: _Reader, due: Line, when: int, asked: bool, offered: bool, taken: bool, beats: int
) -> _Reader:
    """Return a side's memory after a cycle, in which it heard a request or brought a beat."""
    if asked:
        due[reader.taken] = when
    beat = reader.beat + taken
    whole = beat == beats
    waits = 1 if offered and not taken else 0
    return _Reader(reader.taken + asked, reader.brought + whole, 0 if whole else beat, waits)


@compiled
def _feed(
    mads: Mads,
    beats: int,
    read_cycles: int,
    head_cycles: int,
    held: Bits,
    due: Line,
    given: Bits,
    answered: Bits,
) -> tuple[int, int]:
    """Fill two arrays of handshake words; return the cycles and the mads that were done.

    Args:
        mads: Start words.
        beats: Beats of a box.
        read_cycles: From a request to its first beat.
        head_cycles: From a start to the first record that is taken.
        held: What is held back.
        due: Room for a number a box of the largest mad, int64 [2, boxes].
        given: Receives what the unit is given.
        answered: Receives what it answers.
    """
    a_due, b_due = due[0], due[1]
    r, a, b = IDLE, _RESTING, _RESTING
    started, done, cycle, phase, began = 0, 0, 0, 0, 0
    starting = False
    while cycle < len(given) and done < len(mads):
        drives = answers(r)
        hold = np.int64(held[phase])
        phase = phase + 1 if phase + 1 < len(held) else 0
        starting = starting or (drives & START != 0 and hold & START == 0)
        a_offers = _offers(a, a_due, cycle, hold & A != 0)
        b_offers = _offers(b, b_due, cycle, hold & B != 0)
        word = (~hold) & (A_REQUEST | B_REQUEST)
        word |= START * starting | A * a_offers | B * b_offers
        head_is_over = r.busy != 0 and cycle - began >= head_cycles
        word |= O * (head_is_over and hold & O == 0)
        given[cycle], answered[cycle] = word, drives
        passed = word & drives
        load = loads(r, word)
        row_tiles = column_tiles = groups = paired = 0
        if passed & START:
            row_tiles, column_tiles = np.int64(mads[started, 0]), np.int64(mads[started, 1])
            groups, paired = np.int64(mads[started, 2]), np.int64(mads[started, 3])
            a, b = _RESTING, _RESTING
            began, starting = cycle, False
            started += 1
        ended = passed & O != 0 and r.at_end != 0
        r = edge(r, passed, load, row_tiles, column_tiles, groups, paired, beats)
        when = cycle + read_cycles
        a = _read(a, a_due, when, passed & A_REQUEST != 0, a_offers, passed & A != 0, beats)
        b = _read(b, b_due, when, passed & B_REQUEST != 0, b_offers, passed & B != 0, beats)
        done += ended
        cycle += 1
    return cycle, done
