"""Which stretches of memory share bytes of which one is written; jitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...ir.jit import compiled

if TYPE_CHECKING:
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

MEMORY, WRITES, START, COUNT, PITCH, SIZE, OWNER, LANE, STRETCH_WORDS = range(9)
"""Columns of a stretch, a rectangle at its place: memory, whether it is written, first byte, runs,
bytes from run to run, bytes of a run, and the footprint and the lane that it belongs to."""


def conflicts(places: Table) -> Table:
    """Return the pairs of owners of different lanes that share a byte which one of them writes.

    Args:
        places: Stretches, int64 [r, STRETCH_WORDS].

    Returns:
        int64 [p, 2]; a pair may come several times.
    """
    order = np.lexsort((places[:, START], places[:, MEMORY]))
    return find_conflicts(places[order], len(places) ** 2)


@compiled
def find_conflicts(places: Table, most: int) -> Table:
    """Do what `conflicts` says for stretches sorted by memory and first byte, for `most` pairs."""
    pairs = np.empty((64, 2), np.int64)
    used = 0
    active = np.empty(len(places), np.int64)
    held, memory = 0, np.int64(-1)
    for place in range(len(places)):
        this = places[place]
        if this[MEMORY] != memory:
            memory, held = this[MEMORY], 0
        kept = 0
        for number in range(held):
            other = places[active[number]]
            end = other[START] + (other[COUNT] - 1) * other[PITCH] + other[SIZE]
            if end <= this[START]:
                continue
            active[kept] = active[number]
            kept += 1
            if other[LANE] == this[LANE] or not (other[WRITES] or this[WRITES]):
                continue
            if first_common(this, other) < 0:
                continue
            if used == len(pairs):
                grown = np.empty((used * 2, 2), np.int64)
                for pair in range(used):
                    grown[pair, 0], grown[pair, 1] = pairs[pair, 0], pairs[pair, 1]
                pairs = grown
            pairs[used, 0], pairs[used, 1] = other[OWNER], this[OWNER]
            used += 1
            if used == most:
                return pairs[:used].copy()
        active[kept] = place
        held = kept + 1
    return pairs[:used].copy()


@compiled
def first_common(one: Line, other: Line) -> int:
    """Return a byte that two stretches of a memory share, the first of one's runs, or -1."""
    few, many = one, other
    if few[COUNT] > many[COUNT]:
        few, many = many, few
    pitch, size, start = many[PITCH], many[SIZE], many[START]
    for run in range(few[COUNT]):
        begin = few[START] + run * few[PITCH]
        end = begin + few[SIZE]
        number = np.int64(0)
        if pitch > 0:
            number = max(number, -((-(begin - size + 1 - start)) // pitch))
        first = start + number * pitch
        if number < many[COUNT] and first < end and first + size > begin:
            return max(begin, first)
    return -1
