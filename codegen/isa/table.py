"""The instruction table: one row an instruction, and nothing about it anywhere else.

Words are 128 bits, little-endian, the opcode in bits 0 to 7; bits that no field covers are zero.
To add an instruction, add a row here and its meaning in the simulator: encoding, assembler text,
checks and documentation follow. The rows of the scalar unit stand in `scalar`, those of the vector
core in `vector` and `ub`, those that join the cores of a cluster and of the cube without scales in
`cluster`, those of the fixpipe in `fixpipe`, those of operands that do not fill their boxes in `tails`,
those of operands and scales that stand in another way in `forms`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cluster import BIAS_RULE, BOX_ROWS, CORE_FLAGS, MAD, MAD_LIMIT, UB_TO_L1
from .fixpipe import FIX, PARAMETERS, SCALED_FIX
from .forms import SCALE_ROWS, TURNED
from .row import Row, Rule, addr, at_most, enum, imm, reg, view
from .scalar import SCALAR
from .tails import FILL, ROW_MOVES
from .ub import MOVES
from .vector import VECTOR
from .vocabulary import (
    Convert,
    ElementBits,
    ElementType,
    MadInit,
    Pipe,
    Space,
    TimingClass,
)

if TYPE_CHECKING:
    from .row import Values

FLAG_IDS = 8
SCALE_STEPS = 255
"""Scale boxes that one transfer takes along either axis, at most."""

LEGAL_PAIRS = frozenset(
    (a, b)
    for family in (
        (ElementType.E4M3, ElementType.E5M2),
        (ElementType.E2M1, ElementType.E1M2),
    )
    for a in family
    for b in family
)
"""Operand types that `mad_mx` multiplies; 8-bit never meets 4-bit."""


def _legal_pair(values: Values) -> str | None:
    a, b = ElementType(values["a_type"]), ElementType(values["b_type"])
    if (a, b) in LEGAL_PAIRS:
        return None
    return (
        "a_type and b_type must both be one of e4m3 and e5m2 or both one of e2m1 and e1m2, "
        f"not {a.name.lower()} and {b.name.lower()}"
    )


def _endpoints(values: Values) -> str | None:
    src, dst = Pipe(values["src"]), Pipe(values["dst"])
    if Pipe.ALL in (src, dst):
        return "src and dst must each be a single pipe, not all"
    return None if src is not dst else f"src and dst must differ, not both be {src.name.lower()}"


_PAIR = Rule("a_type and b_type have the same width", _legal_pair)
_ENDPOINTS = Rule("src and dst are two different pipes, neither of them all", _endpoints)

_FLAG_FIELDS = (
    enum("src", 8, 4, Pipe, "Pipe that sets the flag."),
    enum("dst", 12, 4, Pipe, "Pipe that waits for it."),
    imm("id", 16, 3, "Which of the eight flags of this pair of pipes.", most=FLAG_IDS - 1),
)

_SYNC = (
    Row(
        "set_flag",
        0x10,
        Pipe.S,
        TimingClass.FLAG,
        "Queued on pipe src. When it is reached there, the counter of (src, dst, id) goes up by 1.",
        _FLAG_FIELDS,
        rules=(_ENDPOINTS,),
        pipe_field="src",
    ),
    Row(
        "wait_flag",
        0x11,
        Pipe.S,
        TimingClass.FLAG,
        "Queued on pipe dst, which stops there until the counter of (src, dst, id) is positive, "
        "then takes 1 from it.",
        _FLAG_FIELDS,
        rules=(_ENDPOINTS,),
        pipe_field="dst",
    ),
    Row(
        "pipe_barrier",
        0x12,
        Pipe.S,
        TimingClass.BARRIER,
        "Queued on the pipe, which stops there until all that it began is done. With all, the "
        "scalar unit issues nothing until every queue is empty and every pipe idle.",
        (enum("pipe", 8, 4, Pipe, "Pipe that is drained, or all."),),
        pipe_field="pipe",
    ),
)

_MTE2 = (
    Row(
        "gm_to_l1_nz",
        0x60,
        Pipe.MTE2,
        TimingClass.GM_LOAD,
        "Copies the window of rows x cols elements at row xr, column xc of a rank-2 view into L1 "
        "boxes of 16 rows x 32 bytes, boxes column by column. With c0 = 256 / element bits, "
        "element (r, c) goes to byte l1 + ((c // c0) * (l1_rows / 16) + r // 16) * 512 "
        "+ (r % 16) * 32 + (c % c0) * bits / 8. Bytes of a 32-byte row segment beyond cols become "
        "zero, other bytes stay. The window must lie inside the view; with 4-bit elements every "
        "row of it must start and end on a byte, or every column where these lie in one piece.",
        (
            view("view", 8, 2, "A rank-2 view."),
            reg("xr", 18, "First row of the window."),
            reg("xc", 23, "First column of the window."),
            addr("l1", 28, Space.L1, "Where element (0, 0) of the window goes."),
            imm("rows", 64, 16, "Rows of the window.", least=1),
            imm("cols", 80, 16, "Columns of the window.", least=1),
            imm("l1_rows", 96, 16, "Rows of the tile in L1.", least=16, multiple=BOX_ROWS),
        ),
        reads=(Space.GM,),
        writes=(Space.L1,),
        rules=(at_most("rows", "l1_rows"),),
    ),
    Row(
        "gm_to_l1_row",
        0x61,
        Pipe.MTE2,
        TimingClass.GM_LOAD,
        "Copies cols elements from row xr, column xc on of a rank-2 view into L1, one after the "
        "other. The window must lie inside the view.",
        (
            view("view", 8, 2, "A rank-2 view."),
            reg("xr", 18, "Row."),
            reg("xc", 23, "First column."),
            addr("l1", 28, Space.L1, "Where the first element goes."),
            imm("cols", 64, 16, "Number of elements.", least=1),
        ),
        reads=(Space.GM,),
        writes=(Space.L1,),
    ),
    Row(
        "gm_to_l1_boxes",
        0x62,
        Pipe.MTE2,
        TimingClass.GM_LOAD,
        "Copies ni x nj boxes of 32 bytes from box (xi, xj) on of a rank-5 view [1, P, Q, 16, 2] "
        "into L1: box (i, j) of the window goes to byte l1 + (i * l1_nj + j) * 32. The window "
        "must lie inside the view.",
        (
            view("view", 8, 5, "A rank-5 view."),
            reg("xi", 18, "First box along the second dimension."),
            reg("xj", 23, "First box along the third dimension."),
            addr("l1", 28, Space.L1, "Where box (0, 0) of the window goes."),
            imm("ni", 64, 16, "Boxes along the second dimension.", least=1),
            imm("nj", 80, 16, "Boxes along the third dimension.", least=1),
            imm("l1_nj", 96, 16, "Boxes of the tile in L1 along the third dimension.", least=1),
        ),
        reads=(Space.GM,),
        writes=(Space.L1,),
        rules=(at_most("nj", "l1_nj"),),
    ),
    Row(
        "gm_to_l1_nz_boxes",
        0x63,
        Pipe.MTE2,
        TimingClass.GM_LOAD,
        "Copies col_boxes x row_boxes boxes of 512 bytes from box (xj, xi) on of a rank-5 view "
        "[1, P, Q, 16, c0] into L1, c0 = 256 / element bits: box (j, i) of the window goes to byte "
        "l1 + (j * dst_pitch + i) * 512. The window must lie inside the view.",
        (
            view("view", 8, 5, "A rank-5 view whose boxes are packed."),
            reg("xj", 18, "First box along the second dimension."),
            reg("xi", 23, "First box along the third dimension."),
            addr("l1", 28, Space.L1, "Where box (0, 0) of the window goes."),
            imm("col_boxes", 64, 16, "Boxes along the second dimension.", least=1),
            imm("row_boxes", 80, 16, "Boxes along the third dimension.", least=1),
            imm("dst_pitch", 96, 16, "Boxes from one column of boxes to the next in L1.", least=1),
        ),
        reads=(Space.GM,),
        writes=(Space.L1,),
        rules=(at_most("row_boxes", "dst_pitch"),),
    ),
)


def _scale_move(mnemonic: str, opcode: int, space: Space) -> Row:
    return Row(
        mnemonic,
        opcode,
        Pipe.MTE1,
        TimingClass.SCALE_LOAD,
        "Copies row_boxes x col_boxes scale boxes of 32 bytes: box (i, j) goes from byte "
        "src + (i * src_pitch + j) * 32 to byte dst + (i * col_boxes + j) * 32.",
        (
            addr("src", 8, Space.L1, "Box (0, 0) in L1."),
            addr("dst", 32, space, "Box (0, 0) in the scale buffer."),
            imm("row_boxes", 64, 16, "Boxes of 16 rows or columns.", least=1, most=SCALE_STEPS),
            imm("col_boxes", 80, 16, "Boxes of two groups.", least=1, most=SCALE_STEPS),
            imm("src_pitch", 96, 16, "Boxes from one row of boxes to the next in L1.", least=1),
        ),
        reads=(Space.L1,),
        writes=(space,),
        rules=(at_most("col_boxes", "src_pitch"),),
    )


_TO_L0 = (
    Row(
        "l1_to_l0a",
        0x70,
        Pipe.MTE1,
        TimingClass.L0A_LOAD,
        "Copies row_boxes x col_boxes boxes of 512 bytes: box (r, c) goes from byte "
        "src + (c * src_pitch + r) * 512 to byte dst + (c * dst_pitch + r) * 512.",
        (
            addr("src", 8, Space.L1, "Box (0, 0) in L1."),
            addr("dst", 32, Space.L0A, "Box (0, 0) in L0A."),
            imm("row_boxes", 64, 16, "Boxes of 16 rows.", least=1),
            imm("col_boxes", 80, 16, "Boxes of 32 bytes along K.", least=1),
            imm("src_pitch", 96, 16, "Boxes from one column of boxes to the next in L1.", least=1),
            imm("dst_pitch", 112, 16, "The same in L0A.", least=1),
        ),
        reads=(Space.L1,),
        writes=(Space.L0A,),
        rules=(at_most("row_boxes", "src_pitch"), at_most("row_boxes", "dst_pitch")),
    ),
    Row(
        "l1_to_l0b",
        0x71,
        Pipe.MTE1,
        TimingClass.L0B_LOAD,
        "Copies and transposes a k x n tile. With c0 = 256 / element bits, element (k, n) goes "
        "from byte src + ((n // c0) * (src_k / 16) + k // 16) * 512 + (k % 16) * 32 "
        "+ (n % c0) * bits / 8 to byte dst + ((k // c0) * ceil(n / 16) + n // 16) * 512 "
        "+ (n % 16) * 32 + (k % c0) * bits / 8, where ceil(n / 16) counts the boxes of the whole "
        "tile. Elements of the destination boxes beyond k and n become zero.",
        (
            addr("src", 8, Space.L1, "Element (0, 0) in L1."),
            addr("dst", 32, Space.L0B, "Element (0, 0) in L0B."),
            enum("bits", 50, 6, ElementBits, "Width of an element."),
            imm("k", 64, 16, "Rows to move, along K.", least=1),
            imm("n", 80, 16, "Columns to move, along N.", least=1),
            imm("src_k", 96, 16, "Rows of the tile in L1.", least=16, multiple=BOX_ROWS),
        ),
        reads=(Space.L1,),
        writes=(Space.L0B,),
        rules=(at_most("k", "src_k"),),
    ),
    _scale_move("l1_to_scale_a", 0x72, Space.SCALE_A),
    _scale_move("l1_to_scale_b", 0x73, Space.SCALE_B),
    Row(
        "l1_to_bias",
        0x74,
        Pipe.MTE1,
        TimingClass.BIAS_LOAD,
        "Copies bytes from L1 into the bias table.",
        (
            addr("src", 8, Space.L1, "First byte in L1."),
            addr("dst", 32, Space.BIAS, "First byte in the bias table."),
            imm("bytes", 64, 16, "Number of bytes.", least=4, multiple=4),
        ),
        reads=(Space.L1,),
        writes=(Space.BIAS,),
    ),
)

AT = "_at"
"""Ends the name of a transfer from L1 that takes its place in the source from a register."""


def _from_register(row: Row) -> Row:
    """Return the same transfer, its source told by an address and a register."""
    return Row(
        row.mnemonic + AT,
        row.opcode + 8,
        row.pipe,
        row.timing,
        f"Does what {row.mnemonic} does, with src + xo * 32 in place of src.",
        (*row.fields, reg("xo", 56, "Distance of the source from src in units of 32 bytes.")),
        reads=row.reads,
        writes=row.writes,
        rules=row.rules,
    )


_FROM_L1 = (*_TO_L0, *ROW_MOVES, *TURNED)
_MTE1 = (*_FROM_L1, *(_from_register(row) for row in _FROM_L1))

_M = (
    Row(
        "mad_mx",
        0x80,
        Pipe.M,
        TimingClass.MAD,
        "Multiplies an m x k tile in L0A by a k x n tile in L0B, both with one E8M0 scale per 32 "
        "elements along k, and adds the products group by group to +0, to the accumulator or to "
        "the bias row. L0A holds boxes of 16 rows x 32 bytes with pitch ceil(m / 16), L0B boxes "
        "of 16 columns x 32 bytes with pitch ceil(n / 16). Scales stand at a >> 4 in SCALE_A and "
        "b >> 4 in SCALE_B: with G = ceil(k / 32), box (i, j) at byte (i * ceil(G / 2) + j) * 32, "
        "in it row * 2 + group. The FP32 result goes to L0C: element (i, j) at byte "
        "c + ((j // 16) * ceil(m / 16) + i // 16) * 1024 + (i % 16) * 64 + (j % 16) * 4. Elements "
        "and scales beyond k are never used.",
        (
            addr("c", 8, Space.L0C, "Element (0, 0) of the accumulator."),
            addr("a", 28, Space.L0A, "Element (0, 0) of the left operand."),
            addr("b", 46, Space.L0B, "Element (0, 0) of the right operand."),
            addr("bias", 64, Space.BIAS, "First of n FP32 numbers; 0 unless init is bias."),
            imm("m", 78, 12, "Rows of the result.", least=1, most=MAD_LIMIT),
            imm("k", 90, 12, "Elements of each sum.", least=1, most=MAD_LIMIT),
            imm("n", 102, 12, "Columns of the result.", least=1, most=MAD_LIMIT),
            enum("a_type", 114, 4, ElementType, "Element type in L0A."),
            enum("b_type", 118, 4, ElementType, "Element type in L0B."),
            enum("init", 122, 2, MadInit, "What the sums start from."),
        ),
        reads=(Space.L0A, Space.L0B, Space.SCALE_A, Space.SCALE_B, Space.BIAS, Space.L0C),
        writes=(Space.L0C,),
        rules=(_PAIR, BIAS_RULE),
    ),
)

_FIX = (
    Row(
        "l0c_to_gm",
        0x90,
        Pipe.FIX,
        TimingClass.DRAIN,
        "Stores rows x cols accumulator elements at row xr, column xc of a rank-2 view, converted "
        "from FP32 to nearest even (overflow gives infinity, a NaN the canonical one). Element "
        "(r, c) comes from byte l0c + ((c // 16) * (src_rows / 16) + r // 16) * 1024 "
        "+ (r % 16) * 64 + (c % 16) * 4. The window must lie inside the view, whose elements must "
        "have the converted type's width.",
        (
            view("view", 8, 2, "A rank-2 view."),
            reg("xr", 18, "First row of the window."),
            reg("xc", 23, "First column of the window."),
            addr("l0c", 28, Space.L0C, "Element (0, 0) of the accumulator."),
            imm("rows", 64, 16, "Rows of the window.", least=1, most=8192),
            imm("cols", 80, 16, "Columns of the window.", least=1, most=MAD_LIMIT),
            imm("src_rows", 96, 16, "Rows of the tile in L0C.", least=16, multiple=BOX_ROWS),
            enum("convert", 112, 4, Convert, "Type that is stored."),
        ),
        reads=(Space.L0C,),
        writes=(Space.GM,),
        rules=(at_most("rows", "src_rows"),),
    ),
)

ROWS: tuple[Row, ...] = (
    *SCALAR,
    *_SYNC,
    *CORE_FLAGS,
    *_MTE2,
    *SCALE_ROWS,
    *FILL,
    *_MTE1,
    *_M,
    *MAD,
    *_FIX,
    *FIX,
    *PARAMETERS,
    *SCALED_FIX,
    *MOVES,
    *UB_TO_L1,
    *VECTOR,
)
"""Every instruction, in the order of the documentation."""

BY_MNEMONIC: dict[str, Row] = {row.mnemonic: row for row in ROWS}
BY_OPCODE: dict[int, Row] = {row.opcode: row for row in ROWS}
MAX_FIELDS = max(len(row.fields) for row in ROWS)
"""Columns that hold the field values of any instruction."""

assert len(BY_MNEMONIC) == len(ROWS), "a mnemonic stands twice in the table"
assert len(BY_OPCODE) == len(ROWS), "an opcode stands twice in the table"
assert 0 not in BY_OPCODE, "an all-zero word must stay illegal"
