"""The part of the instruction table for operands that do not fill their boxes.

A left operand of one row stands in L1 without boxes; what lies in L1 beyond the valid part of a tile is
filled with zeros where the cube would multiply it.
"""

from __future__ import annotations

from .row import Row, addr, at_most, imm
from .vocabulary import Pipe, Space, TimingClass

FILL: tuple[Row, ...] = (
    Row(
        "l1_fill",
        0x64,
        Pipe.MTE2,
        TimingClass.L1_FILL,
        "Sets lines of units * 32 bytes in L1 to zero: line i from byte l1 + i * pitch * 32 on.",
        (
            addr("l1", 28, Space.L1, "First byte of the first line."),
            imm("lines", 64, 16, "Number of lines.", least=1),
            imm("units", 80, 16, "Units of 32 bytes of a line.", least=1),
            imm("pitch", 96, 16, "Units of 32 bytes from line to line.", least=1),
        ),
        writes=(Space.L1,),
        rules=(at_most("units", "pitch"),),
    ),
)
"""Zeros beyond what was loaded."""

ROW_MOVES: tuple[Row, ...] = (
    Row(
        "l1_to_l0a_row",
        0x75,
        Pipe.MTE1,
        TimingClass.L0A_LOAD,
        "Copies one row of units * 32 bytes into the first lines of boxes of 512 bytes: unit i goes "
        "from byte src + i * 32 to byte dst + i * 512. Other bytes of the boxes stay.",
        (
            addr("src", 8, Space.L1, "First byte of the row in L1."),
            addr("dst", 32, Space.L0A, "Box 0 in L0A."),
            imm("units", 64, 16, "Units of 32 bytes along K.", least=1),
        ),
        reads=(Space.L1,),
        writes=(Space.L0A,),
    ),
    Row(
        "l1_to_scale_a_row",
        0x76,
        Pipe.MTE1,
        TimingClass.SCALE_LOAD,
        "Copies the scales of one row, one after the other in L1, into the first rows of scale boxes "
        "of 32 bytes: scale g goes from byte src + g to byte dst + (g // 2) * 32 + g % 2. Other "
        "bytes of the boxes stay.",
        (
            addr("src", 8, Space.L1, "First scale in L1."),
            addr("dst", 32, Space.SCALE_A, "Box 0 in the scale buffer."),
            imm("groups", 64, 16, "Number of scales.", least=1),
        ),
        reads=(Space.L1,),
        writes=(Space.SCALE_A,),
    ),
)
"""The left operand of a product of one row with a matrix."""
