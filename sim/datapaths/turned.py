"""The datapaths that turn tiles on their way: into L1 from rows that lie across, and on to the L0 buffers.

What fills whole squares is turned by `turning`; the rest is copied element by element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...ir.jit import inner
from .kernels import (
    BASE,
    BITS,
    CHECK,
    ROOM,
    SPACE,
    STRIDES,
    TRACK,
    UNIT,
    Memory,
    all_written,
    local_ok,
    masks_at,
)
from .moves import copy_bytes, fill_bytes
from .turning import SIDE, turn_bytes, turn_nibbles

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Table = npt.NDArray[np.int64]
    Line = npt.NDArray[np.int64]

_RUN: Final = 512
"""Bytes of a row that are taken together to where its neighbours are near."""
_APART: Final = _RUN + 64
"""Where the next row begins, which is not the same place of the cache."""

assert _APART * SIDE * 2 <= ROOM


@inner
def put_nibble(into: Bytes, there: int, number: int, nibble: int, beside: int) -> None:
    """Put an element into its half of a byte; an even one puts `beside` into the other half."""
    if number % 2:
        into[there] = (into[there] & 15) | nibble << 4
    else:
        into[there] = nibble | beside


@inner
def is_turned(memory: Memory, view: Line, element: int, mode: int) -> bool:
    """Return whether elements follow one another along the lines, and all of them count as written."""
    if view[STRIDES] != 1 or (view[BITS] < 8 and (element % 2 or view[STRIDES + 1] % 2)):
        return False
    return mode < TRACK or masks_at(memory, view[BASE] + element * view[BITS] // 8) < 0


@inner
def fetch_turned(
    memory: Memory, view: Line, element: int, lines: int, count: int, target: int, mode: int
) -> None:
    """Fetch lines whose elements lie apart, and one after the other from line to line."""
    bits, pitch = view[BITS], view[STRIDES + 1] * view[BITS] // 8
    begin, gm, local = view[BASE] + element * bits // 8, memory.gm, memory.local
    side = SIDE * 8 // bits
    whole_lines, whole = lines - lines % side, count - count % side
    room, run = len(local) - ROOM, _RUN * 8 // bits
    for i in range(0, whole, side):
        for begun in range(0, whole_lines, run):
            size = min(run, whole_lines - begun) * bits // 8
            for lane in range(side):
                here = begin + (i + lane) * pitch + begun * bits // 8
                copy_bytes(local, room + lane * _APART, gm, here, size)
            there = target + begun * 32 + i * bits // 8
            for first in range(0, size, SIDE):
                if bits == 8:
                    turn_bytes(local, room + first, _APART, local, there + first * 32)
                else:
                    turn_nibbles(local, room + first, _APART, local, there + first * 64)
    for line in range(lines):
        for i in range(whole if line < whole_lines else 0, count):
            here, there = begin + i * pitch + line * bits // 8, target + line * 32 + i * bits // 8
            if bits == 8:
                local[there] = gm[here]
            else:
                put_nibble(local, there, i, int(gm[here]) >> line % 2 * 4 & 15, 0)
    if mode >= TRACK:
        size = (count * bits + 7) // 8
        for line in range(lines):
            fill_bytes(memory.written, target + line * 32, size, 0xFF)


@inner
def l1_to_l0_turned(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Transpose a k x n tile from L1 boxes (rows along K) to boxes of either operand (rows along N)."""
    source, target, bits, k, n, tile_k = op[0] + r0 * UNIT, op[1], op[2], op[3], op[4], op[5]
    space = op[6]
    per_segment = 256 // bits
    boxes_k, boxes_n = -(-k // per_segment), -(-n // 16)
    lines = (-(-n // per_segment) - 1) * tile_k + k
    if not local_ok(memory, SPACE.l1, source, lines * 32, fault):
        return False
    if not local_ok(memory, space, target, boxes_k * boxes_n * 512, fault):
        return False
    if mode == CHECK:
        return True
    source += memory.bases[SPACE.l1]
    target += memory.bases[space]
    _transpose(memory.local, source, target, bits, k, n, tile_k, 0)
    if mode < TRACK:
        return True
    for first in range(0, n, per_segment):
        if not all_written(memory.written, source + first // per_segment * tile_k * 32, k * 32):
            _transpose(memory.written, source, target, bits, k, n, tile_k, 0xFF)
            return True
    fill_bytes(memory.written, target, boxes_k * boxes_n * 512, 0xFF)
    return True


@inner
def _transpose(
    data: Bytes, source: int, target: int, bits: int, k: int, n: int, tile_k: int, fill: int
) -> None:
    """Move elements of `bits` from boxes of K rows to boxes of N rows; `fill` what lies beyond.

    A source box gives half a line (8 bits), a quarter of one (4 bits), a line (16 bits) or two lines
    (32 bits, of which a box has 8 columns) to each of its columns.
    """
    per_segment = 256 // bits
    boxes_n = -(-n // 16)
    side = SIDE * 8 // bits
    if bits <= 8 and k % per_segment == 0 and n % side == 0:
        _turn_squares(data, source, target, bits, k, n, tile_k)
        return
    fill_bytes(data, target, -(-k // per_segment) * boxes_n * 512, fill)
    for first in range(0, k, 16):
        rows = np.uintp(min(16, k - first))
        line = target + first // per_segment * boxes_n * 512 + first % per_segment * bits // 8
        for column in range(n):
            line_k = column // per_segment * tile_k + first
            here = np.uintp(source + line_k * 32 + column % per_segment * bits // 8)
            there = np.uintp(line + column * 32)
            if bits == 8:
                for row in range(rows):
                    data[there + row] = data[here + row * np.uintp(32)]
            elif bits > 8:
                width = bits // 8
                for row in range(min(16, k - first)):
                    box, inside = (first + row) // per_segment, (first + row) % per_segment
                    place = target + (box * boxes_n * 16 + column) * 32 + inside * width
                    copy_bytes(
                        data,
                        place,
                        data,
                        source + (line_k + row) * 32 + column % per_segment * width,
                        width,
                    )
            else:
                shift = np.uint8(column % 2 * 4)
                for pair in range((rows + np.uintp(1)) // np.uintp(2)):
                    place = here + pair * np.uintp(64)
                    low, high = data[place] >> shift, np.uint8(fill)
                    if pair * np.uintp(2) + np.uintp(1) < rows:
                        high = data[place + np.uintp(32)] >> shift
                    data[there + pair] = low & 0xF | (high & 0xF) << 4


@inner
def _turn_squares(
    data: Bytes, source: int, target: int, bits: int, k: int, n: int, tile_k: int
) -> None:
    """Move elements of 8 or 4 bits from boxes to boxes that are full, as `_transpose` says."""
    per_segment, side, boxes_n = 256 // bits, SIDE * 8 // bits, -(-n // 16)
    for first in range(0, k, side):
        line = target + first // per_segment * boxes_n * 512 + first % per_segment * bits // 8
        for column in range(0, n, side):
            here = source + (column // per_segment * tile_k + first) * 32
            here += column % per_segment * bits // 8
            if bits == 8:
                turn_bytes(data, here, 32, data, line + column * 32)
            else:
                turn_nibbles(data, here, 32, data, line + column * 32)
