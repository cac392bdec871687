"""Between the boxes of the L0 buffers and the dense tiles that a cube engine multiplies.

Bounds are checked once per mad by `mad_ok`, in the form of `kernels`. Boxes of 16 rows follow one
another along the rows, so they make runs of lines: 32 bytes a row in L0A and L0B, 64 bytes in L0C,
2 scales in a scale box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...ir.dtypes.boxes import GROUP
from ...ir.jit import compiled, inner
from .kernels import SPACE, Memory, all_written, local_ok, unwritten

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.uint8]
    Words = npt.NDArray[np.uint32]
    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

FAILED, CLEAN, DIRTY = 0, 1, 2
"""Outcomes of `load_tile`: a fault, all well, and well but with non-zero padding beyond K."""

PADDED_K: Final = 64
"""The device multiplies whole steps of 64 along K."""

ACC_INIT, BIAS_INIT = 1, 2
NARROW: Final = 2
"""Element types from here on have 4 bits (`ElementType`)."""


@inner
def mad_ok(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Return whether all that a mad touches lies inside its memories; see `kernels`."""
    c, a, b, bias = op[0], op[1], op[2], op[3]
    m, k, n, a_type, init = op[4], op[5], op[6], op[7], op[9]
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
def load_tile(
    memory: Memory,
    op: Line,
    a: Codes,
    b: Codes,
    a_scales: Codes,
    b_scales: Codes,
    start: Words,
    fault: Line,
    report: bool,
) -> int:
    """Cut the operands of a mad out of the L0 buffers.

    Args:
        memory: The memories.
        op: Operands in the order of `actions.ACTIONS`.
        a: Receives codes, one a byte, uint8 [m, k].
        b: uint8 [k, n].
        a_scales: Receives E8M0 codes, uint8 [m, G].
        b_scales: uint8 [G, n].
        start: Receives what the accumulator begins from, FP32 patterns, uint32 [m, n].
        fault: Says where a never-written element or non-zero padding stands.
        report: Whether to look for either.
    """
    c, a_at, b_at, bias, init = op[0], op[1], op[2], op[3], op[9]
    bits = 4 if op[7] >= NARROW else 8
    outcome = operands_written(memory, op, fault) if report else CLEAN
    if outcome == FAILED:
        return FAILED
    _codes(memory, SPACE.l0a, a_at, bits, a)
    _codes(memory, SPACE.l0b, b_at, bits, b)
    _scales(memory, SPACE.scale_a, a_at >> 4, a_scales)
    _scales(memory, SPACE.scale_b, b_at >> 4, b_scales)
    if init == ACC_INIT:
        load_accumulator(memory, c, -(-len(start) // 16) * 16, start, fault, False)
    elif init == BIAS_INIT:
        load_bias(memory, bias, start, fault, False)
    else:
        start[:] = 0
    return outcome


@inner
def operands_written(memory: Memory, op: Line, fault: Line) -> int:
    """Return whether all that a mad reads was written, and K's padding holds zeros."""
    c, a_at, b_at, bias = op[0], op[1], op[2], op[3]
    m, k, n, init = op[4], op[5], op[6], op[9]
    bits = 4 if op[7] >= NARROW else 8
    groups = -(-k // GROUP)
    outcome = _codes_written(memory, SPACE.l0a, a_at, bits, m, k, fault)
    if outcome == FAILED:
        return FAILED
    other = _codes_written(memory, SPACE.l0b, b_at, bits, n, k, fault)
    if other == FAILED:
        return FAILED
    if not (
        _scales_written(memory, SPACE.scale_a, a_at >> 4, m, groups, fault)
        and _scales_written(memory, SPACE.scale_b, b_at >> 4, n, groups, fault)
    ):
        return FAILED
    good = True
    if init == ACC_INIT:
        good = accumulator_written(memory, c, -(-m // 16) * 16, m, n, fault)
    elif init == BIAS_INIT:
        good = _bias_written(memory, bias, n, fault)
    return max(outcome, other) if good else FAILED


@inner
def _codes_written(
    memory: Memory, space: int, address: int, bits: int, rows: int, depth: int, fault: Line
) -> int:
    """Look at the elements of an operand in L0A or L0B, and at the padding beyond its K."""
    per_line, tall = 256 // bits, -(-rows // 16) * 16
    base = memory.bases[space] + address
    for first in range(0, depth, per_line):
        count = min(per_line, depth - first)
        box = base + first // per_line * tall * 32
        if count == per_line and all_written(memory.written, box, rows * 32):
            continue
        for row in range(rows):
            if not _line_written(memory.written, box + row * 32, count * bits):
                _locate(memory, space, box + row * 32, bits, count, row, first, fault)
                return FAILED
    if depth % PADDED_K:
        return _padding(memory, space, base, bits, rows, depth, fault)
    return CLEAN


@inner
def _scales_written(
    memory: Memory, space: int, address: int, rows: int, groups: int, fault: Line
) -> bool:
    """Look at the scales of an operand, in boxes of 16 rows by 2 groups."""
    pairs, base = -(-groups // 2), memory.bases[space] + address
    if all_written(memory.written, base, -(-rows // 16) * pairs * 32):
        return True
    for row in range(rows):
        for group in range(groups):
            place = base + (row // 16 * pairs + group // 2) * 32 + row % 16 * 2 + group % 2
            if memory.written[place] != 0xFF:
                unwritten(memory, space, place, row, group, fault)
                return False
    return True


@inner
def accumulator_written(
    memory: Memory, address: int, tall: int, rows: int, cols: int, fault: Line
) -> bool:
    """Look at a tile of the accumulator, whose boxes have columns of `tall` rows."""
    base = memory.bases[SPACE.l0c] + address
    for first in range(0, cols, 16):
        count, box = min(16, cols - first), base + first // 16 * tall * 64
        if count == 16 and all_written(memory.written, box, rows * 64):
            continue
        for row in range(rows):
            for i in range(count):
                place = box + row * 64 + i * 4
                if memory.written[place] != 0xFF:
                    unwritten(memory, SPACE.l0c, place, row, first + i, fault)
                    return False
    return True


@inner
def _bias_written(memory: Memory, address: int, cols: int, fault: Line) -> bool:
    base = memory.bases[SPACE.bias] + address
    for column in range(cols):
        if memory.written[base + column * 4] != 0xFF:
            unwritten(memory, SPACE.bias, base + column * 4, 0, column, fault)
            return False
    return True


@inner
def _codes(memory: Memory, space: int, address: int, bits: int, out: Codes) -> None:
    """Read an operand, uint8 [M, K] from L0A or [K, N] from L0B."""
    rows, depth = out.shape
    along_row, along_k = depth, 1
    if space == SPACE.l0b:
        depth, rows = rows, depth
        along_row, along_k = 1, rows
    flat = out.reshape(-1)
    per_line, tall = 256 // bits, -(-rows // 16) * 16
    base = memory.bases[space] + address
    for first in range(0, depth, per_line):
        count = min(per_line, depth - first)
        for row in range(rows):
            place = base + (first // per_line * tall + row) * 32
            _line(
                memory.local, place, bits, count, flat, row * along_row + first * along_k, along_k
            )


@inner
def _line(
    local: Codes, place: int, bits: int, count: int, out: Codes, target: int, step: int
) -> None:
    """Unpack the elements of one line; unsigned places as in `kernels`."""
    here, there, apart = np.uintp(place), np.uintp(target), np.uintp(step)
    if bits == 8:
        for i in range(np.uintp(count)):
            out[there + i * apart] = local[here + i]
    else:
        for i in range(np.uintp(count)):
            code = local[here + i // np.uintp(2)]
            out[there + i * apart] = code >> 4 if i % np.uintp(2) else code & 0xF


@inner
def _line_written(written: Codes, place: int, bits: int) -> bool:
    """Return whether the first `bits` bits from `place` on were all written."""
    here, mask = np.uintp(place), np.uint8(0xFF)
    for i in range(np.uintp(bits // 8)):
        mask &= written[here + i]
    if bits % 8:
        mask &= written[here + np.uintp(bits // 8)] | np.uint8(0xF0)
    return mask == 0xFF


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
            unwritten(memory, space, place + i * bits // 8, row, first + i, fault)
            return


@inner
def _padding(
    memory: Memory, space: int, base: int, bits: int, rows: int, depth: int, fault: Line
) -> int:
    """Look for a number other than zero between K and the next multiple of 64."""
    per_segment = 256 // bits
    tall = -(-rows // 16) * 16
    end = memory.bases[space] + memory.sizes[space]
    for k in range(depth, -(-depth // PADDED_K) * PADDED_K):
        for row in range(rows):
            place = base + (k // per_segment * tall + row) * 32 + k % per_segment * bits // 8
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


@inner
def _scales(memory: Memory, space: int, address: int, out: Codes) -> None:
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


@compiled
def load_accumulator(
    memory: Memory, address: int, tall: int, out: Words, fault: Line, report: bool
) -> bool:
    """Read words, uint32 [m, n], from the accumulator's boxes of 16 by 16, `tall` rows a column."""
    m, n = out.shape
    if report and not accumulator_written(memory, address, tall, m, n, fault):
        return False
    base = memory.bases[SPACE.l0c] + address
    for first in range(0, n, 16):
        for row in range(m):
            line = base + (first // 16 * tall + row) * 64
            for i in range(min(16, n - first)):
                out[row, first + i] = memory.words[line // 4 + i]
    return True


@compiled
def load_bias(memory: Memory, address: int, out: Words, fault: Line, report: bool) -> bool:
    """Read one row of words from the bias table into every row of uint32 [m, n]."""
    m, n = out.shape
    if report and not _bias_written(memory, address, n, fault):
        return False
    first = (memory.bases[SPACE.bias] + address) // 4
    for row in range(m):
        for column in range(n):
            out[row, column] = memory.words[first + column]
    return True


@compiled
def store_tile(memory: Memory, address: int, values: Words) -> None:
    """Write FP32 patterns, uint32 [m, n], to the accumulator's boxes of 16 by 16."""
    m, n = values.shape
    tall = -(-m // 16) * 16
    base = memory.bases[SPACE.l0c] + address
    flat = values.reshape(-1)
    for first in range(0, n, 16):
        count = np.uintp(min(16, n - first))
        for row in range(m):
            line = base + (first // 16 * tall + row) * 64
            here, there = np.uintp(row * n + first), np.uintp(line // 4)
            for i in range(count):
                memory.words[there + i] = flat[here + i]
            masks = np.uintp(line)
            for i in range(count * np.uintp(4)):
                memory.written[masks + i] = 0xFF
