"""What the compiled loop of the vector core reads of a kernel: one line of numbers an instruction.

A line tells what is done (`Meaning`), to which types, and where each tile stands, the first result
first, in the order of `tiles.tiles_of`. What the loop does not know, or where a result overlaps what
is read in any way but lying on it exactly, is left to Python (`Meaning.PYTHON`), which reads
everything before it writes.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from ...codegen.isa.vocabulary import (
    Axis,
    ElementType,
    Pipe,
    QuantRule,
    Rounding,
    VectorBinary,
    VectorType,
    VectorUnary,
)
from ...ir.dtypes import BFloat16, DType, Float16, Int16, Int64, SimpleDType, UInt8, UInt16, UInt32
from ...ir.numerics.block_format import InfinityPolicy, ScaleRule, block_format_of
from ...ir.numerics.fast_quantize import Recipe, recipe_of
from .tiles import MAX_TILES, tiles_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ...codegen.isa.program import Instruction
    from .tiles import Tile

    Table = npt.NDArray[np.int64]


class Meaning(IntEnum):
    """What an instruction does, as the compiled loop tells them apart."""

    PYTHON = 0
    QUANTISE = 1
    BOXES = 2
    MOVE = 3
    FILL = 4
    TRANSPOSE = 5
    SELECT = 6
    COMPARE = 7
    COMPARE_NUMBER = 8
    UNARY = 9
    BINARY = 10
    NUMBER = 11
    EXPAND = 12
    SPREAD = 13
    """An expansion whose result is its column or row."""
    REDUCE = 14
    CAST = 15
    """A cast from 16-bit floats to float32, or back to nearest even."""
    RECAST = 16
    """Any other cast."""


MEANING, OP, TYPE, FLAG, TILES = range(5)
"""Columns of a line: what is done, its operation, type, one more choice, and the first tile."""

START, ROWS, COLS, PITCH, WIDTH, SIZE, TILE_WORDS = range(7)
"""Columns of a tile: first byte, rows, columns, bytes from row to row, bits of an element, bytes of
a row."""

LINE_WORDS: Final = TILES + MAX_TILES * TILE_WORDS

DTYPES: Final[dict[VectorType, SimpleDType]] = {
    VectorType.FP32: DType.Float32,
    VectorType.FP16: Float16,
    VectorType.BF16: BFloat16,
    VectorType.INT8: DType.Int8,
    VectorType.UINT8: UInt8,
    VectorType.INT16: Int16,
    VectorType.UINT16: UInt16,
    VectorType.INT32: DType.Int32,
    VectorType.UINT32: UInt32,
    VectorType.INT64: Int64,
    VectorType.E4M3: DType.E4M3,
    VectorType.E5M2: DType.E5M2,
    VectorType.E2M1: DType.E2M1,
}
"""What each element type of a tile is."""

MX: Final = {
    ElementType.E4M3: DType.MXFP8_E4M3,
    ElementType.E5M2: DType.MXFP8_E5M2,
    ElementType.E2M1: DType.MXFP4,
}
"""The format that a quantiser's elements are of."""

RULES: Final = {QuantRule.FLOOR: ScaleRule.FLOOR, QuantRule.NV: ScaleRule.NV}
"""The scale's rule that each rule of the instruction is."""

_NAMES: Final = {
    "v_quant_mx": Meaning.QUANTISE,
    "v_scale_boxes": Meaning.BOXES,
    "v_move": Meaning.MOVE,
    "v_move_at": Meaning.MOVE,
    "v_fill": Meaning.FILL,
    "v_transpose": Meaning.TRANSPOSE,
    "v_select": Meaning.SELECT,
    "v_compare": Meaning.COMPARE,
    "v_compare_scalar": Meaning.COMPARE_NUMBER,
    "v_unary": Meaning.UNARY,
    "v_binary": Meaning.BINARY,
    "v_scalar": Meaning.NUMBER,
    "v_expand": Meaning.EXPAND,
    "v_reduce": Meaning.REDUCE,
    "v_cast": Meaning.CAST,
}
_BY_ELEMENT: Final = frozenset(
    {
        Meaning.SELECT,
        Meaning.COMPARE,
        Meaning.COMPARE_NUMBER,
        Meaning.UNARY,
        Meaning.BINARY,
        Meaning.NUMBER,
        Meaning.CAST,
        Meaning.RECAST,
    }
)
"""What goes element by element, so that a result may lie exactly on an operand."""

_IN_PYTHON: Final = frozenset({VectorUnary.EXP, VectorUnary.LOG, VectorUnary.SIN, VectorUnary.COS})
_OF_TWO_IN_PYTHON: Final = frozenset({VectorBinary.REM, VectorBinary.EXPDIF, VectorBinary.SECOND})
_NEAREST: Final = frozenset({Rounding.NONE, Rounding.RINT})
_WIDENED: Final = frozenset({VectorType.FP16, VectorType.BF16})
_FOLDED: Final = 4096
"""Most elements of rows that follow one another without a gap that are taken for one row."""


def plan(program: Sequence[Instruction]) -> Table:
    """Return a kernel's lines, int64 [n, LINE_WORDS]; zeros for what is not on pipe V."""
    lines = np.zeros((len(program), LINE_WORDS), np.int64)
    for line, each in zip(lines, program, strict=True):
        if each.row.pipe is Pipe.V and each.mnemonic in _NAMES:
            words = _line(each)
            line[: len(words)] = words
    return lines


@cache
def recipes() -> npt.NDArray[np.float64]:
    """Return the recipe of each element type and rule as numbers, float64 [types, rules, n]."""
    shape = len(ElementType), len(QuantRule), len(Recipe._fields)
    table = np.zeros(shape, np.float64)
    for element, dtype in MX.items():
        for rule, scale_rule in RULES.items():
            form = block_format_of(dtype)
            table[element, rule] = recipe_of(form, scale_rule, InfinityPolicy.NAN)
    return table


def _line(each: Instruction) -> list[int]:
    fields, tiles = each.fields, tiles_of(each.mnemonic, each.fields)
    meaning = _meaning(each)
    if meaning is Meaning.SPREAD:
        tiles = tiles[:2]
    if meaning is not Meaning.MOVE and _is_entangled(meaning, tiles):
        meaning = Meaning.PYTHON
    flag = next(
        (fields[name] for name in ("swap", "invert", "axis", "rule", "to") if name in fields), 0
    )
    op = next((fields[name] for name in ("op", "element", "mode") if name in fields), 0)
    words = [meaning, op, fields.get("type", VectorType.UINT8), flag]
    fold = _fold(meaning, tiles)
    for tile in tiles:
        rows, cols = (1, tile.rows * tile.cols) if fold else (tile.rows, tile.cols)
        size = tile.row_bytes * (tile.rows if fold else 1)
        words += [tile.start, rows, cols, tile.pitch_bytes, tile.bits, size]
    return words


def _meaning(each: Instruction) -> Meaning:
    meaning = _NAMES[each.mnemonic]
    match meaning:
        case Meaning.UNARY:
            known = each["op"] not in _IN_PYTHON
        case Meaning.EXPAND if each["op"] == VectorBinary.SECOND:
            return Meaning.SPREAD
        case Meaning.BINARY | Meaning.NUMBER | Meaning.EXPAND:
            known = each["op"] not in _OF_TWO_IN_PYTHON
        case Meaning.CAST:
            return meaning if _is_plain_cast(each) else Meaning.RECAST
        case Meaning.TRANSPOSE:
            known = VectorType(each["type"]).bits >= 8
        case _:
            known = True
    return meaning if known else Meaning.PYTHON


def _is_plain_cast(each: Instruction) -> bool:
    """Return whether a cast goes from 16 bits to float32, or back to nearest even."""
    source, to = VectorType(each["type"]), VectorType(each["to"])
    if to is VectorType.FP32:
        return source in _WIDENED
    return source is VectorType.FP32 and to in _WIDENED and each["mode"] in _NEAREST


def _is_entangled(meaning: Meaning, tiles: Sequence[Tile]) -> bool:
    """Return whether a tile that is written shares bytes with another one, but lies not on it."""
    outputs = 2 if meaning is Meaning.QUANTISE else 1
    for index, result in enumerate(tiles[:outputs]):
        for other in tiles[index + 1 :]:
            is_same = other == result and meaning in (*_BY_ELEMENT, Meaning.EXPAND)
            if not is_same and _overlap(result.extent, other.extent):
                return True
    return False


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[0] + other[1] and other[0] < one[0] + one[1]


def _fold(meaning: Meaning, tiles: Sequence[Tile]) -> bool:
    """Return whether rows follow one another in every tile, and are short enough for one row."""
    if meaning is not Meaning.QUANTISE and meaning not in _BY_ELEMENT:
        return False
    count = tiles[0].rows * tiles[0].cols
    is_short = count <= _FOLDED or tiles[0].cols == 1
    return is_short and all(tile.pitch_bytes == tile.row_bytes for tile in tiles)


assert Axis.ROW == 0, "the loop takes the axis for a truth"
