"""The datapath out of the accumulator: FP32 in L0C to FP32, BF16 or FP16 in global memory.

Conversions work on bit patterns: round to nearest even, overflow to infinity, every NaN the
canonical positive quiet one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...ir.jit import inner
from .kernels import (
    BASE,
    BITS,
    CHECK,
    OFFSET,
    REPORT,
    SPACE,
    STRIDES,
    TRACK,
    Memory,
    local_ok,
    masks_at,
    unwritten,
    window_ok,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Table = npt.NDArray[np.int64]
    Line = npt.NDArray[np.int64]

FP32, BF16, FP16 = 0, 1, 2
"""The codes of `Convert`."""

_SIGN, _INFINITY, _NAN = 0x80000000, 0x7F800000, 0x7FC00000
_HALF_INFINITY, _HALF_NAN = 0x7C00, 0x7E00
_HALF_OVERFLOW = 0x477FF000
"""Bits of 65520: from here on FP16 rounds to infinity."""
_HALF_NORMAL = 0x38800000
"""Bits of 2^-14, the smallest normal FP16."""
_HALF_NOTHING = 0x33000000
"""Bits of 2^-25: up to here a magnitude rounds to zero (the tie goes to even)."""


@inner
def to_bf16(bits: int) -> int:
    """Return the BF16 pattern of an FP32 pattern."""
    if bits & ~_SIGN > _INFINITY:
        return _NAN >> 16
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


@inner
def to_fp16(bits: int) -> int:
    """Return the FP16 pattern of an FP32 pattern."""
    magnitude, sign = bits & ~_SIGN, (bits & _SIGN) >> 16
    if magnitude > _INFINITY:
        return _HALF_NAN
    if magnitude >= _HALF_OVERFLOW:
        return sign | _HALF_INFINITY
    if magnitude <= _HALF_NOTHING:
        return sign
    if magnitude >= _HALF_NORMAL:
        rebiased = magnitude - (127 - 15 << 23)
        return sign | (rebiased + 0xFFF + (rebiased >> 13 & 1)) >> 13
    significand = magnitude & 0x7FFFFF | 0x800000
    shift = 126 - (magnitude >> 23)
    kept, lost, half = significand >> shift, significand & (1 << shift) - 1, 1 << shift - 1
    return sign | kept + (1 if lost > half or (lost == half and kept & 1) else 0)


@inner
def _converted(bits: int, convert: int) -> int:
    if convert == BF16:
        return to_bf16(bits)
    if convert == FP16:
        return to_fp16(bits)
    return _NAN if bits & ~_SIGN > _INFINITY else bits


@inner
def accumulator_ok(
    memory: Memory, address: int, rows: int, cols: int, boxes: int, fault: Line
) -> bool:
    """Return whether rows x cols elements lie inside L0C; `boxes` counts those of a column."""
    last_box = (cols - 1) // 16 * boxes + (rows - 1) // 16
    size = last_box * 1024 + (rows - 1) % 16 * 64 + 64
    return local_ok(memory, SPACE.l0c, address, size, fault)


@inner
def l0c_to_gm(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Store a tile of the accumulator to a window of a rank-2 view; see `kernels` for the form.

    In mode `REPORT` a never-written accumulator element is a fault.
    """
    view, address, rows, cols, tile_rows, convert = views[op[0]], op[1], op[2], op[3], op[4], op[5]
    if not (window_ok(view, 0, r0, rows, fault) and window_ok(view, 1, r1, cols, fault)):
        return False
    if not accumulator_ok(memory, address, rows, cols, tile_rows // 16, fault):
        return False
    if mode == CHECK:
        return True
    base = memory.bases[SPACE.l0c] + address
    width, step = view[BITS] // 8, view[STRIDES + 1]
    origin = view[BASE] + (view[OFFSET] + r0 * view[STRIDES] + r1 * step) * width
    for row in range(rows):
        for first in range(0, cols, 16):
            place = base + first // 16 * tile_rows * 64 + row * 64
            target = origin + (row * view[STRIDES] + first * step) * width
            count = min(16, cols - first)
            if mode >= REPORT:
                for i in range(count):
                    if memory.written[place + i * 4] != 0xFF:
                        unwritten(memory, SPACE.l0c, place + i * 4, row, first + i, fault)
                        return False
            _store_line(memory, place, target, count, step * width, width, convert)
            hidden = masks_at(memory, target)
            if mode >= TRACK and hidden >= 0:
                _mark_line(memory, hidden, count, step * width, width)
    return True


@inner
def _store_line(
    memory: Memory, place: int, target: int, count: int, step: int, width: int, convert: int
) -> None:
    """Store numbers of one row of a box, `step` bytes apart; unsigned places as in `kernels`."""
    gm, words, first, there = memory.gm, memory.words, np.uintp(place // 4), np.uintp(target)
    for i in range(np.uintp(count)):
        value = _converted(int(np.int64(words[first + i])), convert)
        at = there + i * np.uintp(step)
        gm[at] = value & 0xFF
        gm[at + np.uintp(1)] = value >> 8 & 0xFF
        if width == 4:
            gm[at + np.uintp(2)] = value >> 16 & 0xFF
            gm[at + np.uintp(3)] = value >> 24 & 0xFF


@inner
def _mark_line(memory: Memory, target: int, count: int, step: int, width: int) -> None:
    for i in range(count):
        for byte in range(width):
            memory.gm_written[target + i * step + byte] = 0xFF
