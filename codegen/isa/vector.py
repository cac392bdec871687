"""The part of the instruction table that works on tiles in UB.

A tile of rows x cols elements stands row by row: row r begins at its address + r * pitch * 32
bytes, elements follow one another. Pitch 0 is a packed column: one element a row, the rows one
element apart. Instructions touch the rows x cols elements that they name and nothing beside them.
An instruction works in steps of a register; a row says what a step loads, computes and stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.dtypes.boxes import GROUP
from .row import Row, Rule, addr, enum, imm, reg
from .vector_rules import (
    FILL_STEP,
    IN_PLACE,
    IS_NUMBER,
    MOVE_STEP,
    ONE_TILE_STEP,
    QUANT_STEP,
    RESULT_TILE,
    THREE_TILES,
    TWO_TILE_STEP,
    TWO_TILES,
    UB_UNIT,
    has_type,
    packed,
    pitch_field,
    quantised,
    result_field,
    shape_fields,
    type_field,
    types_differ,
    vector_row,
    whole_bytes,
    wide_enough,
)
from .vocabulary import (
    Axis,
    ElementType,
    FloatType,
    Pipe,
    QuantRule,
    Rounding,
    Space,
    TimingClass,
    VectorBinary,
    VectorComparison,
    VectorReduction,
    VectorType,
    VectorUnary,
)

if TYPE_CHECKING:
    from .row import Values

_MOVE = (
    result_field(),
    addr("src", 23, Space.UB, "The 32 bytes in which element (0, 0) of the source stands."),
    type_field(38),
    imm("dst_skip", 42, 6, "Elements of these 32 bytes before element (0, 0) of the result."),
    imm("src_skip", 48, 6, "The same of the source."),
    *shape_fields(),
    pitch_field("dst_pitch", 95, "the result"),
    pitch_field("src_pitch", 106, "the source"),
)
_MOVE_DOC = (
    "Copies rows x cols elements from one tile to another, byte for byte, as if all were read "
    "before any is written. With 4-bit elements both skips and cols must be even."
)


def _even_skips(values: Values) -> str | None:
    if VectorType(values["type"]).bits >= 8:
        return None
    for name in ("dst_skip", "src_skip", "cols"):
        if values.get(name, 0) % 2:
            return f"{name} must be even for 4-bit elements, not {values[name]}"
    return None


def _skips_inside(values: Values) -> str | None:
    most = UB_UNIT * 8 // VectorType(values["type"]).bits - 1
    for name in ("dst_skip", "src_skip"):
        if values.get(name, 0) > most:
            return f"{name} must be at most {most} for this type, not {values[name]}"
    return None


_MOVE_RULES = (
    packed("dst_pitch"),
    packed("src_pitch"),
    Rule("4-bit elements move in pairs", _even_skips),
    Rule("a skip stays inside of 32 bytes", _skips_inside),
)

VECTOR: tuple[Row, ...] = (
    vector_row(
        "v_unary",
        0xB0,
        f"Element (r, c) of the result is op of element (r, c) of the source. {IN_PLACE}",
        (
            result_field(),
            addr("src", 23, Space.UB, "Element (0, 0) of the source."),
            enum("op", 38, 4, VectorUnary, "The function."),
            type_field(42),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the result"),
            pitch_field("src_pitch", 106, "the source"),
        ),
        *TWO_TILES,
        has_type(VectorUnary),
        step=ONE_TILE_STEP,
    ),
    vector_row(
        "v_binary",
        0xB1,
        f"Element (r, c) of the result is op of elements (r, c) of a and b. {IN_PLACE}",
        (
            result_field(),
            addr("a", 23, Space.UB, "Element (0, 0) of the left operand."),
            addr("b", 38, Space.UB, "Element (0, 0) of the right operand."),
            enum("op", 53, 4, VectorBinary, "The function."),
            type_field(57),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the result"),
            pitch_field("a_pitch", 106, "a"),
            pitch_field("b_pitch", 117, "b"),
        ),
        *THREE_TILES,
        has_type(VectorBinary),
        step=TWO_TILE_STEP,
    ),
    vector_row(
        "v_scalar",
        0xB2,
        f"Element (r, c) of the result is op of element (r, c) of a and of the number whose code "
        f"the low bits of xs hold; with swap, op of that number and of the element. {IN_PLACE}",
        (
            result_field(),
            addr("a", 23, Space.UB, "Element (0, 0) of the tile."),
            reg("xs", 38, "Holds the code of the number, of the elements' type."),
            enum("op", 43, 4, VectorBinary, "The function."),
            type_field(47),
            imm("swap", 51, 1, "1 if the number is the left operand."),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the result"),
            pitch_field("a_pitch", 106, "a"),
        ),
        *RESULT_TILE,
        packed("a_pitch"),
        wide_enough("a_pitch", "type"),
        has_type(VectorBinary),
        step=ONE_TILE_STEP,
    ),
    vector_row(
        "v_compare",
        0xB3,
        "Element (r, c) of the result, a mask of one byte an element, is 1 if elements (r, c) of a "
        "and b compare so, else 0.",
        (
            result_field(),
            addr("a", 23, Space.UB, "Element (0, 0) of the left operand."),
            addr("b", 38, Space.UB, "Element (0, 0) of the right operand."),
            enum("op", 53, 3, VectorComparison, "The comparison."),
            type_field(57),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the mask"),
            pitch_field("a_pitch", 106, "a"),
            pitch_field("b_pitch", 117, "b"),
        ),
        IS_NUMBER,
        packed("dst_pitch"),
        *THREE_TILES[2:],
        step=TWO_TILE_STEP,
    ),
    vector_row(
        "v_compare_scalar",
        0xB4,
        "Element (r, c) of the result, a mask of one byte an element, is 1 if element (r, c) of a "
        "compares so with the number whose code the low bits of xs hold, else 0.",
        (
            result_field(),
            addr("a", 23, Space.UB, "Element (0, 0) of the tile."),
            reg("xs", 38, "Holds the code of the number, of the elements' type."),
            enum("op", 43, 3, VectorComparison, "The comparison."),
            type_field(47),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the mask"),
            pitch_field("a_pitch", 106, "a"),
        ),
        IS_NUMBER,
        packed("dst_pitch"),
        packed("a_pitch"),
        wide_enough("a_pitch", "type"),
        step=ONE_TILE_STEP,
    ),
    vector_row(
        "v_select",
        0xB5,
        "Where element (r, c) of a mask of one byte an element is not 0, or with invert where it "
        "is 0, element (r, c) of dst becomes that of src; the others stay.",
        (
            addr("dst", 8, Space.UB, "Element (0, 0) of the tile that changes in part."),
            addr("src", 23, Space.UB, "Element (0, 0) of what it takes."),
            addr("mask", 38, Space.UB, "Element (0, 0) of the mask."),
            imm("invert", 53, 1, "1 if a 0 of the mask selects."),
            type_field(57),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "dst"),
            pitch_field("src_pitch", 106, "src"),
            pitch_field("mask_pitch", 117, "the mask"),
        ),
        *TWO_TILES,
        packed("mask_pitch"),
        IS_NUMBER,
        step=TWO_TILE_STEP,
    ),
    vector_row(
        "v_reduce",
        0xB6,
        "Reduces each row to one element of a packed column of rows elements, or each column to "
        "one element of a row of cols elements. Elements are taken in ascending order; sums and "
        "products of floats are rounded to FP32 at each step and to the type at the end, those of "
        "integers wrap.",
        (
            addr("dst", 8, Space.UB, "First element of the result."),
            addr("src", 23, Space.UB, "Element (0, 0) of the tile."),
            enum("op", 38, 3, VectorReduction, "What is made."),
            enum("axis", 41, 1, Axis, "Whether rows or columns are reduced."),
            type_field(42),
            *shape_fields(),
            pitch_field("src_pitch", 106, "the tile"),
        ),
        IS_NUMBER,
        packed("src_pitch"),
        wide_enough("src_pitch", "type"),
        step=ONE_TILE_STEP,
    ),
    vector_row(
        "v_expand",
        0xB7,
        "Element (r, c) of the result is op of element (r, c) of a and of element r of a packed "
        "column (axis row) or element c of a row (axis col); with second, a is not read. "
        f"{IN_PLACE}",
        (
            result_field(),
            addr("a", 23, Space.UB, "Element (0, 0) of the left operand."),
            addr("b", 38, Space.UB, "First element of the column or row."),
            enum("op", 53, 4, VectorBinary, "The function."),
            type_field(57),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the result"),
            pitch_field("a_pitch", 106, "a"),
            enum("axis", 117, 1, Axis, "What b has one element for: a row, or a column."),
        ),
        *THREE_TILES[:4],
        has_type(VectorBinary),
        step=TWO_TILE_STEP,
    ),
    vector_row(
        "v_cast",
        0xB8,
        "Element (r, c) of the result is element (r, c) of the source as another type, rounded as "
        "mode says. Integers and floats of at most 8 bits saturate.",
        (
            result_field(),
            addr("src", 23, Space.UB, "Element (0, 0) of the source."),
            type_field(38, "Type of the source."),
            type_field(42, "Type of the result.", "to"),
            enum("mode", 46, 3, Rounding, "How what does not fit is rounded."),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the result"),
            pitch_field("src_pitch", 106, "the source"),
        ),
        Rule("type and to differ", types_differ),
        packed("dst_pitch"),
        wide_enough("dst_pitch", "to"),
        packed("src_pitch"),
        wide_enough("src_pitch", "type"),
        whole_bytes("type"),
        whole_bytes("to"),
        step=ONE_TILE_STEP,
    ),
    Row(
        "v_fill",
        0xB9,
        Pipe.V,
        TimingClass.VECTOR,
        "Every element of the result becomes the number whose code the low bits of xs hold. With "
        "4-bit elements skip and cols must be even.",
        (
            addr("dst", 8, Space.UB, "The 32 bytes in which element (0, 0) stands."),
            reg("xs", 23, "Holds the code of the number."),
            type_field(28),
            imm("dst_skip", 32, 6, "Elements of these 32 bytes before element (0, 0)."),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the result"),
        ),
        writes=(Space.UB,),
        rules=(
            packed("dst_pitch"),
            Rule("4-bit elements are filled in pairs", _even_skips),
            Rule("the skip stays inside of 32 bytes", _skips_inside),
        ),
        step=FILL_STEP,
    ),
    vector_row(
        "v_transpose",
        0xBA,
        "Element (c, r) of the result is element (r, c) of the source, which has rows x cols "
        "elements. With 4-bit elements rows and cols must be even. Source and result are apart.",
        (
            result_field(),
            addr("src", 23, Space.UB, "Element (0, 0) of the source."),
            type_field(38),
            *shape_fields(),
            pitch_field("dst_pitch", 95, "the result"),
            pitch_field("src_pitch", 106, "the source"),
        ),
        packed("dst_pitch", "rows"),
        wide_enough("dst_pitch", "type", "rows", "cols"),
        packed("src_pitch"),
        wide_enough("src_pitch", "type"),
        whole_bytes("type"),
        whole_bytes("type", "rows", "a row of the result"),
        step=ONE_TILE_STEP,
    ),
    vector_row("v_move", 0xBB, _MOVE_DOC, _MOVE, *_MOVE_RULES, step=MOVE_STEP),
    vector_row(
        "v_move_at",
        0xBC,
        "Does what v_move does, with dst + xt in place of dst and src + xo in place of src.",
        (
            *_MOVE,
            reg("xo", 54, "Distance of the source from src in bytes."),
            reg("xt", 59, "Distance of the result from dst in bytes."),
        ),
        *_MOVE_RULES,
        step=MOVE_STEP,
    ),
    vector_row(
        "v_quant_mx",
        0xBD,
        "Quantises groups of 32 elements along the rows of the source: one E8M0 code a group by "
        "the rule, one byte a group, and one code an element, rounded once. 4-bit codes are "
        "packed, the first in the low bits. A group of zeros has code 0, one with a NaN code 255.",
        (
            addr("dst", 8, Space.UB, "Element (0, 0) of the codes."),
            addr("src", 23, Space.UB, "Element (0, 0) of the source."),
            addr("scales", 38, Space.UB, "Scale (0, 0)."),
            enum("type", 53, 4, FloatType, "Type of the source."),
            enum("element", 57, 2, ElementType, "Type of the codes."),
            enum("rule", 59, 1, QuantRule, "How a scale is chosen."),
            imm("rows", 64, 16, "Rows.", least=1),
            imm("cols", 80, 15, "Columns.", least=GROUP, multiple=GROUP),
            pitch_field("dst_pitch", 95, "the codes"),
            pitch_field("src_pitch", 106, "the source"),
            pitch_field("scale_pitch", 117, "the scales"),
        ),
        Rule("the source can be quantised to the elements", quantised),
        wide_enough("src_pitch", "type"),
        Rule(
            "src_pitch and dst_pitch are at least 1",
            lambda values: (
                None
                if values["src_pitch"] and values["dst_pitch"]
                else "src_pitch and dst_pitch must be at least 1, not 0"
            ),
        ),
        Rule(
            "cols is 32 where scale_pitch is 0",
            lambda values: (
                None
                if values["scale_pitch"] or values["cols"] == GROUP
                else f"cols must be {GROUP} where scale_pitch is 0, not {values['cols']}"
            ),
        ),
        step=QUANT_STEP,
    ),
    vector_row(
        "v_scale_boxes",
        0xBE,
        "Lays rows x cols bytes, the scales of rows x cols groups, out as boxes of 32 bytes: byte "
        "(r, g) goes to byte dst + ((r // 16) * ceil(cols / 2) + g // 2) * 32 + (r % 16) * 2 + "
        "g % 2. Bytes of the boxes beyond rows and cols become zero. These are the boxes of a left "
        "operand by its rows, and of a right operand by its columns.",
        (
            addr("dst", 8, Space.UB, "Box (0, 0)."),
            addr("src", 23, Space.UB, "Byte (0, 0)."),
            *shape_fields(),
            pitch_field("src_pitch", 106, "the source"),
        ),
        packed("src_pitch"),
        step=ONE_TILE_STEP,
    ),
)
"""What runs on pipe V."""
