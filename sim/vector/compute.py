"""What the vector core computes with tiles in UB, jitted; one entry for floats, one for integers.

Every entry has the form `entry(memory, line, number, mode) -> bool`: `line` is that of `plan`,
`number` the register of an operand, `mode` is as for `kernels`. It returns whether the instruction was
done; not where something that is read was never written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...ir.jit import compiled, inner
from .places import mark, part, place, ready, row_at
from .plan import COLS, FLAG, MEANING, OP, PITCH, ROWS, TYPE, Meaning
from .reductions import float_of_row, fold_floats, fold_integers, integer_of_row
from .rows import (
    compare_floats,
    compare_integers,
    float_of_one,
    float_of_two,
    integer_of_one,
    integer_of_two,
    load_floats,
    load_integers,
    store_floats,
    store_integers,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..datapaths.kernels import Memory

    Bytes = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]
    Row = npt.NDArray[np.uint32] | npt.NDArray[np.int64]

_COMPARE, _COMPARE_NUMBER, _BINARY, _NUMBER, _EXPAND = (
    int(meaning)
    for meaning in (
        Meaning.COMPARE,
        Meaning.COMPARE_NUMBER,
        Meaning.BINARY,
        Meaning.NUMBER,
        Meaning.EXPAND,
    )
)


@inner
def _code(number: int) -> Bytes:
    """Return the bytes of a register."""
    code = np.empty(8, np.uint8)
    for byte in range(8):
        code[byte] = (number >> (8 * byte)) & 0xFF
    return code


@inner
def _spread(one: Row, out: Row) -> None:
    """Fill a row with one element."""
    for i in range(out.size):
        out[i] = one[0]


@compiled
def float_unary(memory: Memory, line: Line, number: int, mode: int) -> bool:
    """Put a function of each float of a tile into another one."""
    if not ready(memory, line, 1, mode):
        return False
    kind, cols = line[TYPE], part(line, 0, COLS)
    bits = np.empty(cols, np.uint32)
    for row in range(part(line, 0, ROWS)):
        load_floats(memory.local, row_at(memory, line, 1, row), kind, bits)
        float_of_one(line[OP], kind, bits, bits)
        store_floats(memory.local, row_at(memory, line, 0, row), kind, bits)
    mark(memory, line, 0, mode)
    return True


@compiled
def integer_unary(memory: Memory, line: Line, number: int, mode: int) -> bool:
    """Put a function of each integer of a tile into another one."""
    if not ready(memory, line, 1, mode):
        return False
    kind, cols = line[TYPE], part(line, 0, COLS)
    values = np.empty(cols, np.int64)
    for row in range(part(line, 0, ROWS)):
        load_integers(memory.local, row_at(memory, line, 1, row), kind, values)
        integer_of_one(line[OP], values, values)
        store_integers(memory.local, row_at(memory, line, 0, row), kind, values)
    mark(memory, line, 0, mode)
    return True


@compiled
def float_pairs(memory: Memory, line: Line, number: int, mode: int) -> bool:
    """Put a function or a comparison of pairs of floats into a tile.

    The second of a pair is an element of another tile, of a column or a row, or `number`.
    """
    if not ready(memory, line, 1, mode):
        return False
    meaning, kind, op, cols = line[MEANING], line[TYPE], line[OP], part(line, 0, COLS)
    expands, swaps = meaning == _EXPAND, meaning == _NUMBER and line[FLAG] != 0
    left, right = (2, 1) if expands else (1, 2)
    a, b, one = np.empty(cols, np.uint32), np.empty(cols, np.uint32), np.empty(1, np.uint32)
    if meaning in (_NUMBER, _COMPARE_NUMBER):
        load_floats(_code(number), 0, kind, one)
        _spread(one, b)
    elif expands and line[FLAG] != 0:
        load_floats(memory.local, place(memory, line, right), kind, b)
    for row in range(part(line, 0, ROWS)):
        there = row_at(memory, line, 0, row)
        load_floats(memory.local, row_at(memory, line, left, row), kind, a)
        second = row_at(memory, line, right, row)
        if expands and line[FLAG] == 0:
            load_floats(memory.local, second, kind, one)
            _spread(one, b)
        elif meaning in (_BINARY, _COMPARE):
            load_floats(memory.local, second, kind, b)
        if meaning in (_COMPARE, _COMPARE_NUMBER):
            compare_floats(op, a, b, memory.local[there : there + cols])
            continue
        if swaps:
            float_of_two(op, kind, b, a, a)
        else:
            float_of_two(op, kind, a, b, a)
        store_floats(memory.local, there, kind, a)
    mark(memory, line, 0, mode)
    return True


@compiled
def integer_pairs(memory: Memory, line: Line, number: int, mode: int) -> bool:
    """Put a function or a comparison of pairs of integers into a tile, as `float_pairs`."""
    if not ready(memory, line, 1, mode):
        return False
    meaning, kind, op, cols = line[MEANING], line[TYPE], line[OP], part(line, 0, COLS)
    expands, swaps = meaning == _EXPAND, meaning == _NUMBER and line[FLAG] != 0
    left, right = (2, 1) if expands else (1, 2)
    a, b, one = np.empty(cols, np.int64), np.empty(cols, np.int64), np.empty(1, np.int64)
    if meaning in (_NUMBER, _COMPARE_NUMBER):
        load_integers(_code(number), 0, kind, one)
        _spread(one, b)
    elif expands and line[FLAG] != 0:
        load_integers(memory.local, place(memory, line, right), kind, b)
    for row in range(part(line, 0, ROWS)):
        there = row_at(memory, line, 0, row)
        load_integers(memory.local, row_at(memory, line, left, row), kind, a)
        second = row_at(memory, line, right, row)
        if expands and line[FLAG] == 0:
            load_integers(memory.local, second, kind, one)
            _spread(one, b)
        elif meaning in (_BINARY, _COMPARE):
            load_integers(memory.local, second, kind, b)
        if meaning in (_COMPARE, _COMPARE_NUMBER):
            compare_integers(op, a, b, memory.local[there : there + cols])
            continue
        if swaps:
            integer_of_two(op, b, a, a)
        else:
            integer_of_two(op, a, b, a)
        store_integers(memory.local, there, kind, a)
    mark(memory, line, 0, mode)
    return True


@compiled
def float_reduce(memory: Memory, line: Line, number: int, mode: int) -> bool:
    """Make one float of each row or each column of a tile."""
    if not ready(memory, line, 1, mode):
        return False
    kind, op, at, by_columns = line[TYPE], line[OP], place(memory, line, 1), line[FLAG] != 0
    rows, cols, pitch = part(line, 1, ROWS), part(line, 1, COLS), part(line, 1, PITCH)
    bits, made = np.empty(cols, np.uint32), np.empty(cols if by_columns else rows, np.uint32)
    for row in range(rows):
        load_floats(memory.local, at + row * pitch, kind, bits)
        if not by_columns:
            float_of_row(op, bits, row, made)
        elif row == 0:
            for column in range(cols):
                made[column] = bits[column]
        else:
            fold_floats(op, bits, made)
    store_floats(memory.local, place(memory, line, 0), kind, made)
    mark(memory, line, 0, mode)
    return True


@compiled
def integer_reduce(memory: Memory, line: Line, number: int, mode: int) -> bool:
    """Make one integer of each row or each column of a tile."""
    if not ready(memory, line, 1, mode):
        return False
    kind, op, at, by_columns = line[TYPE], line[OP], place(memory, line, 1), line[FLAG] != 0
    rows, cols, pitch = part(line, 1, ROWS), part(line, 1, COLS), part(line, 1, PITCH)
    values, made = np.empty(cols, np.int64), np.empty(cols if by_columns else rows, np.int64)
    for row in range(rows):
        load_integers(memory.local, at + row * pitch, kind, values)
        if not by_columns:
            made[row] = integer_of_row(op, values)
        elif row == 0:
            for column in range(cols):
                made[column] = values[column]
        else:
            fold_integers(op, values, made)
    store_integers(memory.local, place(memory, line, 0), kind, made)
    mark(memory, line, 0, mode)
    return True


@compiled
def cast(memory: Memory, line: Line, number: int, mode: int) -> bool:
    """Make floats of 16 bits of float32, or the other way round."""
    if not ready(memory, line, 1, mode):
        return False
    kind, to, cols = line[TYPE], line[FLAG], part(line, 0, COLS)
    bits = np.empty(cols, np.uint32)
    for row in range(part(line, 0, ROWS)):
        load_floats(memory.local, row_at(memory, line, 1, row), kind, bits)
        store_floats(memory.local, row_at(memory, line, 0, row), to, bits)
    mark(memory, line, 0, mode)
    return True
