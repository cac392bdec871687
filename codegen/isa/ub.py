"""The part of the instruction table that moves between global memory and UB."""

from __future__ import annotations

from .row import Row, addr, at_most, imm, reg, view
from .vector_rules import packed, pitch_field, shape_fields
from .vocabulary import Pipe, Space, TimingClass

_GM_FIELDS = (
    view("view", 8, 2, "A rank-2 view."),
    reg("xr", 18, "First row of the window."),
    reg("xc", 23, "First column of the window."),
    addr("ub", 28, Space.UB, "Element (0, 0) of the tile."),
    *shape_fields(),
    pitch_field("pitch", 95, "the tile"),
)

MOVES: tuple[Row, ...] = (
    Row(
        "gm_to_ub",
        0x68,
        Pipe.MTE2,
        TimingClass.GM_LOAD,
        "Copies the window of rows x cols elements at row xr, column xc of a rank-2 view into a "
        "tile in UB: element (r, c) goes to byte ub + r * pitch * 32 + c * bits / 8, or, where "
        "pitch is 0, to byte ub + r * bits / 8. Bytes beside the elements stay. The window must "
        "lie inside the view; with 4-bit elements every row of it must start and end on a byte.",
        _GM_FIELDS,
        reads=(Space.GM,),
        writes=(Space.UB,),
        rules=(packed("pitch"),),
    ),
    Row(
        "ub_to_gm",
        0xA0,
        Pipe.MTE3,
        TimingClass.UB_STORE,
        "Stores a tile in UB to the window of rows x cols elements at row xr, column xc of a "
        "rank-2 view; bytes stand as gm_to_ub has them. The window must lie inside the view; with "
        "4-bit elements every row of it must start and end on a byte.",
        _GM_FIELDS,
        reads=(Space.UB,),
        writes=(Space.GM,),
        rules=(packed("pitch"),),
    ),
    Row(
        "ub_to_gm_boxes",
        0xA1,
        Pipe.MTE3,
        TimingClass.UB_STORE,
        "Stores ni x nj boxes of 32 bytes to box (xi, xj) and on of a rank-5 view [1, P, Q, 16, "
        "2]: box (i, j) of the window comes from byte ub + (i * ub_nj + j) * 32. The window must "
        "lie inside the view.",
        (
            view("view", 8, 5, "A rank-5 view."),
            reg("xi", 18, "First box along the second dimension."),
            reg("xj", 23, "First box along the third dimension."),
            addr("ub", 28, Space.UB, "Box (0, 0) of the window."),
            imm("ni", 64, 16, "Boxes along the second dimension.", least=1),
            imm("nj", 80, 16, "Boxes along the third dimension.", least=1),
            imm("ub_nj", 96, 16, "Boxes of the tile in UB along the third dimension.", least=1),
        ),
        reads=(Space.UB,),
        writes=(Space.GM,),
        rules=(at_most("nj", "ub_nj"),),
    ),
)
"""Between global memory and UB."""
