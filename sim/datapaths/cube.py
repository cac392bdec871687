"""The cube with scales: a mad on what lies in the L0 buffers, in compiled code.

Operands are packed straight from their boxes into the panels of `ir.numerics`, and the sums are added
up where they stand: columns of boxes in L0C are what that product adds to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...codegen.isa.vocabulary import ElementType
from ...ir.dtypes import E1M2, DType
from ...ir.dtypes.boxes import GROUP
from ...ir.jit import inner
from ...ir.numerics.elements import Summation
from ...ir.numerics.panel_product import EDGE_WORDS, multiply_in_order, multiply_panels
from ...ir.numerics.panels import (
    GROUP_LINES,
    LEFT_LANES,
    RIGHT_LANES,
    SCRATCH_BYTES,
    ElementForm,
    Places,
    element_form,
    is_single,
    is_wide,
    pack_panels,
    scale_factors,
)
from .kernels import REPORT, SPACE, TRACK, Memory
from .l0 import (
    ACC_INIT,
    BIAS_INIT,
    CLEAN,
    FAILED,
    NARROW,
    operands_written,
)
from .moves import fill_bytes

if TYPE_CHECKING:
    from typing import Final

    import numpy.typing as npt

    from ...ir.target import Target

    Bytes = npt.NDArray[np.uint8]
    Doubles = npt.NDArray[np.float64]
    Singles = npt.NDArray[np.float32]
    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

DTYPES: Final = {
    ElementType.E4M3: DType.E4M3,
    ElementType.E5M2: DType.E5M2,
    ElementType.E2M1: DType.E2M1,
    ElementType.E1M2: E1M2,
}
"""What each element type of the instruction set is."""

_PLAIN, _WIDE, _SINGLE = 0, 1, 2
_LINE: Final = 32
_BOX_ROWS: Final = 16
_PER_LINE: Final = 2
"""Groups in a line of 32 bytes of 4-bit elements; of others there is one."""


class Cube(NamedTuple):
    """What a mad needs beside the memories.

    Attributes:
        ready: Whether mads are executed here at all, rather than by another engine.
        sequential: Whether products are added up one by one.
        forms: The form of each element type.
        ways: How each pair of types is multiplied, int64 [types, types].
        factors: What each scale is worth, float64 [256].
        single_factors: The same as float32.
        left: Room for the panels of A, float64.
        right: That of B.
        left_singles: The same room as float32.
        right_singles: That of B.
        scales: Room for scales in the order of panels.
        bytes: Room that packing needs.
        edges: Room that multiplying needs.
    """

    ready: bool
    sequential: bool
    forms: tuple[ElementForm, ElementForm, ElementForm, ElementForm]
    ways: Table
    factors: Doubles
    single_factors: Singles
    left: Doubles
    right: Doubles
    left_singles: Singles
    right_singles: Singles
    scales: Bytes
    bytes: Bytes
    edges: npt.NDArray[np.uint32]


def new_cube(target: Target, order: Summation, *, ready: bool) -> Cube:
    """Return the tables of a cube, and room for the largest operands that the machine holds.

    Args:
        target: The machine.
        order: The order in which products meet the accumulator.
        ready: Whether it is to be used.
    """
    kinds = [DTYPES[ElementType(number)] for number in range(len(DTYPES))]
    e4m3, e5m2, e2m1, e1m2 = (element_form(kind) for kind in kinds)
    ways = np.array([[_way(a, b) for b in kinds] for a in kinds], np.int64)
    lines = [size // _LINE * _PER_LINE for size in (target.l0a_bytes, target.l0b_bytes)]
    left, right = (np.empty(count * GROUP_LINES if ready else 0) for count in lines)
    return Cube(
        ready,
        order is Summation.SEQUENTIAL,
        (e4m3, e5m2, e2m1, e1m2),
        ways,
        scale_factors(np.float64),
        scale_factors(np.float32),
        left,
        right,
        left.view(np.float32),
        right.view(np.float32),
        np.empty(max(lines), np.uint8),
        np.empty(SCRATCH_BYTES, np.uint8),
        np.empty(EDGE_WORDS, np.uint32),
    )


def _way(a: DType, b: DType) -> int:
    if is_wide(a, b):
        return _WIDE
    return _SINGLE if is_single(a, b) else _PLAIN


@inner
def mad_boxes(memory: Memory, cube: Cube, op: Line, fault: Line, mode: int) -> int:
    """Execute one mad whose bounds have been checked; return an outcome of `l0`.

    Args:
        memory: The memories.
        cube: Tables and room.
        op: Operands in the order of `actions.ACTIONS`.
        fault: Says where a never-written element or non-zero padding stands.
        mode: As for a kernel.
    """
    c, a_at, b_at, bias = op[0], op[1], op[2], op[3]
    m, k, n, a_type, b_type, init = op[4], op[5], op[6], op[7], op[8], op[9]
    outcome = CLEAN
    if mode >= REPORT:
        outcome = operands_written(memory, op, fault)
        if outcome == FAILED:
            return FAILED
    words = (memory.bases[SPACE.l0c] + c) // 4
    tall = -(-m // _BOX_ROWS) * _BOX_ROWS
    _begin(memory, words, tall, m, n, init, memory.bases[SPACE.bias] + bias)
    if mode >= TRACK and (mode < REPORT or init != ACC_INIT):
        _mark(memory.written, words * 4, tall, m, n)
    narrow = a_type >= NARROW
    groups = -(-k // GROUP)
    a_form, b_form = cube.forms[int(a_type)], cube.forms[int(b_type)]
    a_places = _places(memory.bases[SPACE.l0a] + a_at, LEFT_LANES, m, narrow)
    b_places = _places(memory.bases[SPACE.l0b] + b_at, RIGHT_LANES, n, narrow)
    a_scales = memory.bases[SPACE.scale_a] + (a_at >> 4)
    b_scales = memory.bases[SPACE.scale_b] + (b_at >> 4)
    way = cube.ways[a_type, b_type]
    local, scales, room = memory.local, cube.scales, cube.bytes
    if way == _SINGLE and not cube.sequential:
        factors = cube.single_factors
        _order_scales(local, a_scales, m, groups, LEFT_LANES, scales)
        exact = pack_panels(
            local, a_places, m, k, LEFT_LANES, a_form, scales, factors, cube.left_singles, room
        )
        if exact:
            _order_scales(local, b_scales, n, groups, RIGHT_LANES, scales)
            exact = pack_panels(
                local, b_places, n, k, RIGHT_LANES, b_form, scales, factors,
                cube.right_singles, room,
            )  # fmt: skip
        if exact:
            multiply_panels(
                cube.left_singles, cube.right_singles, memory.words, words,
                _BOX_ROWS, tall * _BOX_ROWS, m, n, groups, False, cube.edges,
            )  # fmt: skip
            return outcome
    _order_scales(local, a_scales, m, groups, LEFT_LANES, scales)
    pack_panels(local, a_places, m, k, LEFT_LANES, a_form, scales, cube.factors, cube.left, room)
    _order_scales(local, b_scales, n, groups, RIGHT_LANES, scales)
    pack_panels(local, b_places, n, k, RIGHT_LANES, b_form, scales, cube.factors, cube.right, room)
    if cube.sequential:
        multiply_in_order(
            cube.left, cube.right, memory.words, words, _BOX_ROWS, tall * _BOX_ROWS, m, n, k
        )
    else:
        multiply_panels(
            cube.left, cube.right, memory.words, words,
            _BOX_ROWS, tall * _BOX_ROWS, m, n, groups, way == _WIDE, cube.edges,
        )  # fmt: skip
    return outcome


@inner
def _places(start: int, lanes: int, rows: int, narrow: bool) -> Places:
    """Return where the codes of an operand lie in its boxes."""
    line = -(-rows // _BOX_ROWS) * _BOX_ROWS * _LINE
    if narrow:
        return Places(start, lanes * _LINE, _LINE, 0, _PER_LINE, line, _LINE // _PER_LINE)
    return Places(start, lanes * _LINE, _LINE, 1, 1, line, 0)


@inner
def _order_scales(local: Bytes, start: int, rows: int, groups: int, lanes: int, out: Bytes) -> None:
    """Put the scales of an operand into the order of its panels.

    Their boxes have 16 rows by 2 groups, and those of 16 rows follow one another.
    """
    pitch = -(-groups // 2) * _LINE
    for row in range(rows):
        here = np.uintp(start + row // _BOX_ROWS * pitch + row % _BOX_ROWS * 2)
        there = np.uintp(row // lanes * groups * lanes + row % lanes)
        for group in range(np.uintp(groups)):
            pair, half = group >> np.uintp(1), group & np.uintp(1)
            out[there + group * np.uintp(lanes)] = local[here + pair * np.uintp(_LINE) + half]


@inner
def _begin(memory: Memory, words: int, tall: int, m: int, n: int, init: int, bias: int) -> None:
    """Put into the accumulator what it begins from, if that is not what stands there."""
    if init == ACC_INIT:
        return
    for first in range(0, n, _BOX_ROWS):
        column = words + first * tall
        count = min(_BOX_ROWS, n - first)
        if init != BIAS_INIT and count == _BOX_ROWS:
            fill_bytes(memory.local, column * 4, m * _BOX_ROWS * 4, 0)
            continue
        for row in range(m):
            for i in range(count):
                start = memory.words[bias // 4 + first + i] if init == BIAS_INIT else np.uint32(0)
                memory.words[column + row * _BOX_ROWS + i] = start


@inner
def _mark(written: Bytes, at: int, tall: int, m: int, n: int) -> None:
    """Note that m x n sums of the accumulator were written."""
    for first in range(0, n, _BOX_ROWS):
        column = at + first * tall * 4
        count = min(_BOX_ROWS, n - first)
        if count == _BOX_ROWS:
            fill_bytes(written, column, m * _BOX_ROWS * 4, 0xFF)
            continue
        for row in range(m):
            fill_bytes(written, column + row * _BOX_ROWS * 4, count * 4, 0xFF)
