"""Casts of tiles in UB of any kind, jitted around those of `ir.numerics`, one element at a time."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.vocabulary import VectorType
from ...ir.jit import compiled, inner
from ...ir.numerics.fast_cast import cast_row, float32_to_integers, form_of, goes_by_float64
from .places import mark, part, ready, row_at
from .plan import COLS, DTYPES, FLAG, OP, ROWS, TYPE, WIDTH
from .rows import BF16, FP16, FP32, load_floats, store_integers

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..datapaths.kernels import Memory

    Bytes = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]
    Words = npt.NDArray[np.uint64]


@cache
def forms() -> Table:
    """Return what compiled casts read of every element type, int64 [types, n]."""
    return np.stack([form_of(DTYPES[kind]) for kind in VectorType])


@compiled
def recast(memory: Memory, line: Line, table: Table, mode: int) -> bool:
    """Make each element of a tile one of another type.

    Args:
        memory: The memories.
        line: The instruction, as `plan` has it.
        table: What `forms` returns.
        mode: How much is done, as for `kernels`.

    Returns:
        Whether it was done; not where something that is read was never written, or where a NaN has
        no code.
    """
    if not ready(memory, line, 1, mode):
        return False
    rows, cols, wide = part(line, 0, ROWS), part(line, 0, COLS), part(line, 1, WIDTH)
    form, goal = table[line[TYPE]], table[line[FLAG]]
    if line[TYPE] in (FP32, FP16, BF16) and goes_by_float64(goal, line[OP]):
        _to_integers(memory, line, goal)
        mark(memory, line, 0, mode)
        return True
    words, codes = np.empty(cols, np.uint64), np.empty((rows, cols), np.uint64)
    for row in range(rows):
        _load(memory.local, row_at(memory, line, 1, row), wide, words)
        if not cast_row(words, form, goal, line[OP], codes[row]):
            return False
    for row in range(rows):
        _store(memory.local, row_at(memory, line, 0, row), part(line, 0, WIDTH), codes[row])
    mark(memory, line, 0, mode)
    return True


@inner
def _to_integers(memory: Memory, line: Line, goal: Line) -> None:
    """Make integers of floats that a float32 holds."""
    cols = part(line, 0, COLS)
    bits, made = np.empty(cols, np.uint32), np.empty(cols, np.int64)
    for row in range(part(line, 0, ROWS)):
        load_floats(memory.local, row_at(memory, line, 1, row), line[TYPE], bits)
        float32_to_integers(bits.view(np.float32), goal, line[OP], made)
        store_integers(memory.local, row_at(memory, line, 0, row), line[FLAG], made)


@inner
def _load(data: Bytes, at: int, bits: int, out: Words) -> None:
    """Put the codes of a row into `out`, the first of a byte's two in its low bits."""
    for i in range(out.size):
        if bits == 4:
            out[i] = (data[at + i // 2] >> np.uint8(i % 2 * 4)) & 0xF
            continue
        word, width = np.uint64(0), bits // 8
        for byte in range(width):
            word |= np.uint64(data[at + i * width + byte]) << np.uint64(8 * byte)
        out[i] = word


@inner
def _store(data: Bytes, at: int, bits: int, codes: Words) -> None:
    """Write codes as a row; the inverse of `_load`."""
    for i in range(codes.size):
        if bits == 4:
            low = np.uint8(0) if i % 2 == 0 else np.uint8(data[at + i // 2] & 0xF)
            data[at + i // 2] = low | np.uint8(codes[i] << np.uint64(i % 2 * 4))
            continue
        for byte in range(bits // 8):
            data[at + i * (bits // 8) + byte] = (codes[i] >> np.uint64(8 * byte)) & np.uint64(0xFF)
