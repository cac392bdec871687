"""How long the cube waits for scales in the course of a mad.

Where the scale-decode unit is as it can be built, a closed form gives what stepping it gives. A
machine file may also say what no unit is built for: other beats, other numbers of buffered boxes, a
cube that takes another part of K a step. Then the same bookkeeping of boxes is done with the numbers
at hand: a side reads a box in so many beats, holds so many boxes, and gives a box up when the step
that needs its last scale comes up.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.scale_unit import BEATS_BYTES, SLOTS
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, GROUP
from ...ir.jit import compiled

if TYPE_CHECKING:
    from ...ir.target import Target

_BOX_ELEMENTS = BOX_GROUPS * GROUP


def why_no_unit(target: Target, *, bits: int) -> str | None:
    """Say which field of a machine no scale-decode unit is built for; None if one is.

    Args:
        target: The machine.
        bits: Width of the elements that are multiplied.
    """
    step = target.mad_k_elements(bits)
    if target.scale_beat_bytes not in BEATS_BYTES:
        known = ", ".join(map(str, BEATS_BYTES))
        return f"scale_beat_bytes must be one of {known}, not {target.scale_beat_bytes}"
    if target.scale_buffered_boxes != SLOTS:
        return f"scale_buffered_boxes must be {SLOTS}, not {target.scale_buffered_boxes}"
    if step not in (GROUP, _BOX_ELEMENTS):
        return f"mad_{bits}bit_k_elements must be {GROUP} or {_BOX_ELEMENTS}, not {step}"
    return None


def starved_cycles(target: Target, *, tiles: int, k: int, bits: int) -> int:
    """Return the cycles in which the cube is ready for a step whose scales are not there.

    Args:
        target: The machine.
        tiles: Tiles of 16 x 16 of the result.
        k: Elements of K.
        bits: Width of the elements.
    """
    step, beats = target.mad_k_elements(bits), max(1, BOX_BYTES // target.scale_beat_bytes)
    first, head = target.scale_read_cycles + beats + 2, target.mad_head_cycles
    if target.scale_buffered_boxes == SLOTS and step in (GROUP, _BOX_ELEMENTS):
        return starved_with_two_boxes(
            tiles=tiles,
            groups=-(-k // GROUP),
            paired=step == _BOX_ELEMENTS,
            beats=beats,
            first_record=first,
            head=head,
        )
    return _stepped(tiles, k, step, beats, target.scale_buffered_boxes, first, head)


def starved_with_two_boxes(
    *, tiles: int, groups: int, paired: bool, beats: int, first_record: int, head: int
) -> int:
    """Return the starved cycles of a mad, in closed form, where a side buffers two boxes.

    Three things may be what a mad waits for. The first record may come after the head. A box may
    take more beats than records, so that the last one ends that much later. Or the boxes that were
    read during the head give the cube a start, and what follows them arrives too slowly: then every
    box that can be read only while its predecessors are in use costs the beats that exceed its
    records, those at either end excepted.

    Args:
        tiles: Tiles of 16 x 16 of the result.
        groups: Groups of 32 along K.
        paired: Whether a record carries two groups.
        beats: Beats of a box.
        first_record: The first cycle in which a record is on offer.
        head: The first cycle in which the cube takes one.
    """
    a_tile = -(-groups // BOX_GROUPS)
    boxes = tiles * a_tile
    records = tiles * (a_tile if paired else groups)
    of_first = 1 if paired or groups == 1 else BOX_GROUPS
    of_last = 1 if paired or groups % BOX_GROUPS else BOX_GROUPS
    late = first_record - head
    too_slow = late + beats * (boxes - 1) - (records - of_last)
    # A first box of one record is given up before the head is over, so a third is read in time.
    before, of_these = (2, 2) if of_first == 1 else (1, of_first)
    between = boxes - before - 1
    running_out = beats * between - (records - of_these - of_last) if between > 0 else 0
    return max(0, late, too_slow, running_out)


@lru_cache(maxsize=4096)
def _stepped(
    tiles: int, k: int, step: int, beats: int, boxes: int, first_record: int, head: int
) -> int:
    """Return the starved cycles of a mad, box by box."""
    # A step begins at any multiple of what step and box have in common.
    farthest = _BOX_ELEMENTS - gcd(step, _BOX_ELEMENTS)
    at_once = (farthest + step - 1) // _BOX_ELEMENTS + 1
    return int(stepped_by_boxes(tiles, k, step, beats, boxes, at_once, first_record, head))


@compiled
def stepped_by_boxes(
    tiles: int,
    k: int,
    step: int,
    beats: int,
    boxes: int,
    boxes_of_a_step: int,
    first_record: int,
    head: int,
) -> int:
    """Return the starved cycles of a mad, box by box.

    Args:
        tiles: Tiles of 16 x 16 of the result.
        k: Elements of K.
        step: Elements of K a step.
        beats: Beats of a box.
        boxes: Boxes that a side holds.
        boxes_of_a_step: Boxes that a step may need at once; no fewer are reckoned with.
        first_record: The first cycle in which scales can be on offer.
        head: The first cycle in which the cube takes some.
    """
    boxes = max(boxes, boxes_of_a_step)
    freed = np.zeros(boxes, np.int64)
    arrived, read, freed_boxes = first_record - 2 - beats, 0, 0
    taken, steps = head - 1, 0
    for _ in range(tiles):
        base = read
        for first in range(0, k, step):
            end = min(first + step, k)
            while read < base + (end - 1) // _BOX_ELEMENTS + 1:
                room = freed[read % boxes] if read >= boxes else arrived
                arrived = max(arrived, room) + beats
                read += 1
            loaded = max(arrived + 1, taken) if steps else arrived + 1
            taken = max(loaded, taken) + 1
            steps += 1
            whole = -(-k // _BOX_ELEMENTS) if end == k else end // _BOX_ELEMENTS
            while freed_boxes < base + whole:
                freed[freed_boxes % boxes] = loaded
                freed_boxes += 1
    return taken + 1 - head - steps
