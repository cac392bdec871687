"""The part of the instruction table for operands and scales that do not stand as they mostly do.

Scales may stand in global memory row by row, and operands may be given with the axes changed over: a
left one with K along its rows, a right one with K along its columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cluster import BOX_ROWS
from .row import Row, Rule, addr, at_most, enum, imm, reg, view
from .vocabulary import ElementBits, Pipe, ScaleRows, Space, TimingClass

if TYPE_CHECKING:
    from .row import Values

SCALE_TILE_LIMIT = 512 * 1024
"""Scales that a tile in L1 may have."""
_PAIR = 2


def _pairs_fit(values: Values) -> str | None:
    name = "nj" if ScaleRows(values["layout"]).by_rows else "ni"
    if values[name] <= values["l1_nj"]:
        return None
    return f"{name}, the pairs, must be at most l1_nj ({values['l1_nj']}), not {values[name]}"


def _tile_fits(values: Values) -> str | None:
    rows = values["ni" if ScaleRows(values["layout"]).by_rows else "nj"]
    scales = -(-rows // BOX_ROWS) * BOX_ROWS * values["l1_nj"] * _PAIR
    if scales <= SCALE_TILE_LIMIT:
        return None
    return f"a tile of scales must have at most {SCALE_TILE_LIMIT} of them, not {scales}"


SCALE_ROWS: tuple[Row, ...] = (
    Row(
        "gm_to_l1_scales",
        0x65,
        Pipe.MTE2,
        TimingClass.GM_LOAD,
        "Copies scales that stand row by row into boxes of 32 bytes in L1. The view is "
        "[1, 1, rows, pairs, 2] with layout a_nd and b_dn, [1, 1, pairs, rows, 2] with a_dn and b_nd, "
        "where rows are those of a left operand or the columns of a right one, and a pair is two "
        "groups of one of them: pair p of row r of the window goes to byte "
        "l1 + ((r // 16) * l1_nj + p) * 32 + (r % 16) * 2. Other bytes of the boxes stay. The window "
        "must lie inside the view.",
        (
            view("view", 8, 5, "A rank-5 view of pairs."),
            reg("xi", 18, "First index along the third dimension."),
            reg("xj", 23, "First index along the fourth dimension."),
            addr("l1", 28, Space.L1, "Box (0, 0) of the window."),
            enum("layout", 52, 2, ScaleRows, "How the scales stand in global memory."),
            imm("ni", 64, 16, "Extent of the window along the third dimension.", least=1),
            imm("nj", 80, 16, "Extent of the window along the fourth dimension.", least=1),
            imm("l1_nj", 96, 16, "Boxes of a row of boxes of the tile in L1.", least=1),
        ),
        reads=(Space.GM,),
        writes=(Space.L1,),
        rules=(
            Rule("the pairs are at most l1_nj", _pairs_fit),
            Rule(f"the tile has at most {SCALE_TILE_LIMIT} scales", _tile_fits),
        ),
    ),
)
"""Scales that are in no boxes yet."""

TURNED: tuple[Row, ...] = (
    Row(
        "l1_to_l0a_turned",
        0x77,
        Pipe.MTE1,
        TimingClass.L0A_LOAD,
        "Copies and transposes a k x m tile, whose rows lie along K, into a left operand: does what "
        "l1_to_l0b does, with m for n, into L0A.",
        (
            addr("src", 8, Space.L1, "Element (0, 0) in L1."),
            addr("dst", 32, Space.L0A, "Element (0, 0) in L0A."),
            enum("bits", 50, 6, ElementBits, "Width of an element."),
            imm("k", 64, 16, "Rows to move, along K.", least=1),
            imm("m", 80, 16, "Columns to move, along M.", least=1),
            imm("src_k", 96, 16, "Rows of the tile in L1.", least=16, multiple=BOX_ROWS),
        ),
        reads=(Space.L1,),
        writes=(Space.L0A,),
        rules=(at_most("k", "src_k"),),
    ),
    Row(
        "l1_to_l0b_boxes",
        0x66,
        Pipe.MTE1,
        TimingClass.L0B_LOAD,
        "Copies an n x k tile, whose rows lie along N, into a right operand as it stands, box by box: "
        "box (r, c) goes from byte src + (c * src_pitch + r) * 512 to byte "
        "dst + (c * dst_pitch + r) * 512.",
        (
            addr("src", 8, Space.L1, "Box (0, 0) in L1."),
            addr("dst", 32, Space.L0B, "Box (0, 0) in L0B."),
            imm("row_boxes", 64, 16, "Boxes of 16 rows, along N.", least=1),
            imm("col_boxes", 80, 16, "Boxes of 32 bytes along K.", least=1),
            imm("src_pitch", 96, 16, "Boxes from one column of boxes to the next in L1.", least=1),
            imm("dst_pitch", 112, 16, "The same in L0B.", least=1),
        ),
        reads=(Space.L1,),
        writes=(Space.L0B,),
        rules=(at_most("row_boxes", "src_pitch"), at_most("row_boxes", "dst_pitch")),
    ),
)
"""Operands with their axes changed over."""
