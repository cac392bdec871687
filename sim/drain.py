"""The datapath out of the accumulator: FP32 in L0C to FP32, BF16 or FP16 in global memory.

Conversions work on bit patterns: round to nearest even, overflow to infinity, every NaN the
canonical positive quiet one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .faultcodes import UNWRITTEN
from .jit import inner
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
def l0c_to_gm(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Store a tile of the accumulator to a window of a rank-2 view; see `kernels` for the form.

    In mode `REPORT` a never-written accumulator element is a fault.
    """
    view, address, rows, cols, tile_rows, convert = views[op[0]], op[1], op[2], op[3], op[4], op[5]
    if not (window_ok(view, 0, r0, rows, fault) and window_ok(view, 1, r1, cols, fault)):
        return False
    last_box = (cols - 1) // 16 * (tile_rows // 16) + (rows - 1) // 16
    size = last_box * 1024 + (rows - 1) % 16 * 64 + 64
    if not local_ok(memory, SPACE.l0c, address, size, fault):
        return False
    if mode == CHECK:
        return True
    local, gm, base = memory.local, memory.gm, memory.bases[SPACE.l0c] + address
    width = view[BITS] // 8
    origin = view[BASE] + (view[OFFSET] + r0 * view[STRIDES] + r1 * view[STRIDES + 1]) * width
    for row in range(rows):
        for column in range(cols):
            box = column // 16 * (tile_rows // 16) + row // 16
            place = base + box * 1024 + row % 16 * 64 + column % 16 * 4
            if mode >= REPORT and memory.written[place] != 0xFF:
                fault[0], fault[1], fault[2] = UNWRITTEN, SPACE.l0c, place - memory.bases[SPACE.l0c]
                fault[3], fault[4] = row, column
                return False
            bits = np.int64(local[place + 3])
            for i in range(2, -1, -1):
                bits = bits << 8 | local[place + i]
            value = _converted(int(bits), convert)
            target = origin + (row * view[STRIDES] + column * view[STRIDES + 1]) * width
            for i in range(width):
                gm[target + i] = value >> 8 * i & 0xFF
            if mode >= TRACK and target >= memory.gm_written_base:
                for i in range(width):
                    memory.gm_written[target - memory.gm_written_base + i] = 0xFF
    return True
