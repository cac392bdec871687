"""The wires of the scale-decode unit, told once.

The unit stands between the scale buffers and the cube. The machine model steps it, the hardware
builds it, and a co-simulation compares the two cycle by cycle, so all three take their words from
the tables here. A word is a row of fields, the first in the lowest bits; exponents are signed.

A mad is one **start** word. The unit answers it with **requests** for boxes, in the order of
:func:`request_order`, takes the boxes as beats of `scale_beat_bytes` bytes, ascending, and offers
**records**: the decoded scales of one group of K for 16 rows of the left operand and 16 columns of
the right one, or of two groups where the cube takes 64 elements of K a step. A count of a start word that no mad has counts modulo the most:
0 stands for the most itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS, GROUP
from .table import MAD_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BEATS_BYTES",
    "EXPONENT_BITS",
    "HALF",
    "RECORD",
    "REQUEST",
    "SLOTS",
    "START",
    "Field",
    "request_order",
]

BEATS_BYTES: Final = (8, 16, 32)
"""Widths of a beat that the unit can be built with."""

SLOTS: Final = 2
"""Boxes that a side buffers."""

EXPONENT_BITS: Final = 9
"""Bits of the signed difference of an E8M0 code and the bias, the NaN code included."""

_TILES: Final = -(-MAD_LIMIT // BOX_ROWS)
_GROUPS: Final = -(-MAD_LIMIT // GROUP)
_BLOCKS: Final = -(-_GROUPS // BOX_GROUPS)


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a word.

    Attributes:
        name: Its name in layouts, arrays and waves.
        bits: Width of one entry.
        count: Entries; 1 for a plain number.
        signed: Whether an entry is in two's complement.
        doc: What it says.
    """

    name: str
    bits: int
    doc: str
    count: int = 1
    signed: bool = False


START: Final = (
    Field("row_tiles", _TILES.bit_length(), "Tiles of 16 rows of the left operand, at least 1."),
    Field("column_tiles", _TILES.bit_length(), "Tiles of 16 columns of the right one, at least 1."),
    Field("groups", _GROUPS.bit_length(), "Groups of 32 along the valid K, at least 1."),
    Field("paired", 1, "Whether a record carries two groups."),
)
"""What starts a mad."""

REQUEST: Final = (
    Field("tile", (_TILES - 1).bit_length(), "Tile of 16 rows, or of 16 columns, from 0."),
    Field("block", (_BLOCKS - 1).bit_length(), "Pair of groups along K, from 0."),
)
"""What names a box."""

HALF: Final = (
    Field("a_exponent", EXPONENT_BITS, "Exponents of 16 rows.", BOX_ROWS, signed=True),
    Field("b_exponent", EXPONENT_BITS, "Exponents of 16 columns.", BOX_ROWS, signed=True),
    Field("a_nan", 1, "Whether a row's scale is NaN; its exponent then means nothing.", BOX_ROWS),
    Field("b_nan", 1, "The same of a column's scale.", BOX_ROWS),
)
"""The scales of one group."""

RECORD: Final = (
    Field("group", (_GROUPS - 1).bit_length(), "Index of its first group along K."),
    Field("second", 1, "Whether its second half holds the next group; else that half is zero."),
    Field("last", 1, "Whether it is the last along K of its 16 x 16 tile of the result."),
    Field("end", 1, "Whether it is the last of its mad."),
)
"""What precedes the halves of a record; two words of :data:`HALF` follow it."""


def request_order(row_tiles: int, column_tiles: int, groups: int) -> Iterator[tuple[int, int, int]]:
    """Return (row tile, column tile, block) of every pair of boxes that a mad asks for, in order.

    Args:
        row_tiles: Tiles of 16 rows.
        column_tiles: Tiles of 16 columns.
        groups: Groups of 32 along K; a box holds two, the last one perhaps only one that counts.
    """
    blocks = -(-groups // BOX_GROUPS)
    return (
        (row, column, block)
        for row in range(row_tiles)
        for column in range(column_tiles)
        for block in range(blocks)
    )
