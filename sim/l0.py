"""Between the boxes of the L0 buffers and the dense tiles that a cube engine multiplies.

The functions come in the form that each needs; bounds are checked once per mad by `mad_ok`, in the
form of `kernels`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .faultcodes import UNWRITTEN
from .jit import compiled, inner
from .kernels import SPACE, Memory, local_ok

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint8]
    Words = npt.NDArray[np.uint32]
    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

FAILED, CLEAN, DIRTY = 0, 1, 2
"""Outcomes of `gather_codes`: a fault, all well, and well but with non-zero padding beyond K."""

PADDED_K: Final = 64
"""The device multiplies whole steps of 64 along K."""

BIAS_INIT: Final = 2
NARROW: Final = 2
"""Element types from here on have 4 bits (`ElementType`)."""


@inner
def mad_ok(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Return whether all that a mad touches lies inside its memories; see `kernels`."""
    c, a, b, bias, m, k, n, a_type, init = (
        op[0],
        op[1],
        op[2],
        op[3],
        op[4],
        op[5],
        op[6],
        op[7],
        op[9],
    )
    bits = 4 if a_type >= NARROW else 8
    boxes_m, boxes_n, boxes_k = -(-m // 16), -(-n // 16), -(-k * bits // 256)
    pairs = -(-k // 64)
    if init == BIAS_INIT and not local_ok(memory, SPACE.bias, bias, n * 4, fault):
        return False
    return (
        local_ok(memory, SPACE.l0a, a, boxes_m * boxes_k * 512, fault)
        and local_ok(memory, SPACE.l0b, b, boxes_n * boxes_k * 512, fault)
        and local_ok(memory, SPACE.scale_a, a >> 4, boxes_m * pairs * 32, fault)
        and local_ok(memory, SPACE.scale_b, b >> 4, boxes_n * pairs * 32, fault)
        and local_ok(memory, SPACE.l0c, c, boxes_m * boxes_n * 1024, fault)
    )


@compiled
def gather_codes(
    memory: Memory, space: int, address: int, bits: int, out: Codes, fault: Line, report: bool
) -> int:
    """Read an operand from boxes of 16 rows by 32 bytes.

    Args:
        memory: The memories.
        space: L0A, whose rows run along M, or L0B, whose rows run along N.
        address: First byte.
        bits: Width of an element, 8 or 4.
        out: Receives codes, one a byte, uint8 [M, K] or [K, N].
        fault: Says where a never-written element or non-zero padding stands.
        report: Whether to look for either.
    """
    sideways = space == SPACE.l0b
    rows, depth = out.shape
    if sideways:
        depth, rows = rows, depth
    per_segment = 256 // bits
    boxes = -(-rows // 16)
    base = memory.bases[space] + address
    for segment in range(-(-depth // per_segment)):
        first = segment * per_segment
        count = min(per_segment, depth - first)
        for row in range(rows):
            place = base + (segment * boxes + row // 16) * 512 + row % 16 * 32
            for i in range(count):
                code = memory.local[place + i * bits // 8]
                if bits == 4:
                    code = code >> i % 2 * 4 & 0xF
                if sideways:
                    out[first + i, row] = code
                else:
                    out[row, first + i] = code
            if report:
                complete = 0xFF
                for i in range(count * bits // 8):
                    complete &= memory.written[place + i]
                if count * bits % 8:
                    complete &= memory.written[place + count // 2] | 0xF0
                if complete != 0xFF:
                    _locate(memory, space, place, bits, count, row, first, fault)
                    return FAILED
    if report and depth % PADDED_K:
        return _padding(memory, space, base, bits, rows, depth, fault)
    return CLEAN


@inner
def _locate(
    memory: Memory, space: int, place: int, bits: int, count: int, row: int, first: int, fault: Line
) -> None:
    """Tell the first element of a segment that was never written."""
    for i in range(count):
        mask = memory.written[place + i * bits // 8]
        if bits == 4:
            mask |= 0xF0 >> i % 2 * 4
        if mask != 0xFF:
            fault[0], fault[1], fault[2] = UNWRITTEN, space, place + i * bits // 8
            fault[2] -= memory.bases[space]
            fault[3], fault[4] = row, first + i
            return


@inner
def _padding(
    memory: Memory, space: int, base: int, bits: int, rows: int, depth: int, fault: Line
) -> int:
    """Look for a number other than zero between K and the next multiple of 64."""
    per_segment = 256 // bits
    boxes = -(-rows // 16)
    end = memory.bases[space] + memory.sizes[space]
    for k in range(depth, -(-depth // PADDED_K) * PADDED_K):
        for row in range(rows):
            place = base + (k // per_segment * boxes + row // 16) * 512 + row % 16 * 32
            place += k % per_segment * bits // 8
            if place >= end:
                return CLEAN
            code = memory.local[place]
            if bits == 4:
                code = code >> k % 2 * 4 & 0xF
            if code & ((1 << bits - 1) - 1):
                fault[1], fault[2] = space, place - memory.bases[space]
                fault[3], fault[4] = row, k
                return DIRTY
    return CLEAN


@compiled
def gather_scales(
    memory: Memory, space: int, address: int, out: Codes, fault: Line, report: bool
) -> bool:
    """Read E8M0 codes, uint8 [M, G] or [G, N], from boxes of 16 rows by 2 groups."""
    sideways = space == SPACE.scale_b
    rows, groups = out.shape
    if sideways:
        groups, rows = rows, groups
    pairs = -(-groups // 2)
    base = memory.bases[space] + address
    for row in range(rows):
        for group in range(groups):
            place = base + (row // 16 * pairs + group // 2) * 32 + row % 16 * 2 + group % 2
            if sideways:
                out[group, row] = memory.local[place]
            else:
                out[row, group] = memory.local[place]
            if report and memory.written[place] != 0xFF:
                fault[0], fault[1], fault[2] = UNWRITTEN, space, place - memory.bases[space]
                fault[3], fault[4] = row, group
                return False
    return True


@compiled
def gather_accumulator(memory: Memory, address: int, out: Words, fault: Line, report: bool) -> bool:
    """Read FP32 patterns, uint32 [m, n], from the accumulator's boxes of 16 by 16."""
    m, n = out.shape
    base = memory.bases[SPACE.l0c] + address
    for row in range(m):
        for column in range(n):
            place = base + (column // 16 * -(-m // 16) + row // 16) * 1024
            place += row % 16 * 64 + column % 16 * 4
            out[row, column] = memory.words[place // 4]
            if report and memory.written[place] != 0xFF:
                fault[0], fault[1], fault[2] = UNWRITTEN, SPACE.l0c, place - memory.bases[SPACE.l0c]
                fault[3], fault[4] = row, column
                return False
    return True


@compiled
def gather_bias(memory: Memory, address: int, out: Words, fault: Line, report: bool) -> bool:
    """Read one row of FP32 patterns from the bias table into every row of uint32 [m, n]."""
    m, n = out.shape
    base = memory.bases[SPACE.bias] + address
    for column in range(n):
        place = base + column * 4
        if report and memory.written[place] != 0xFF:
            fault[0], fault[1], fault[2] = UNWRITTEN, SPACE.bias, place - memory.bases[SPACE.bias]
            fault[3], fault[4] = 0, column
            return False
        for row in range(m):
            out[row, column] = memory.words[place // 4]
    return True


@compiled
def scatter_accumulator(memory: Memory, address: int, values: Words) -> None:
    """Write FP32 patterns, uint32 [m, n], to the accumulator's boxes of 16 by 16."""
    m, n = values.shape
    base = memory.bases[SPACE.l0c] + address
    for row in range(m):
        for column in range(n):
            place = base + (column // 16 * -(-m // 16) + row // 16) * 1024
            place += row % 16 * 64 + column % 16 * 4
            memory.words[place // 4] = values[row, column]
            for i in range(4):
                memory.written[place + i] = 0xFF
