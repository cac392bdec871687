"""The part of the instruction table that takes sums out of the accumulator, converted.

The fixpipe multiplies sums by a number or by one a column, passes them through the ReLU, rounds them
to the type that is stored, and lays them out row by row or in boxes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cluster import BOX_ROWS, MAD_LIMIT
from .row import Field, Row, Rule, addr, enum, imm, reg, view
from .vocabulary import FixConvert, FixScale, Pipe, Space, Sums, TimingClass

if TYPE_CHECKING:
    from .row import Values

_FIX_FIELDS = (
    imm("rows", 64, 16, "Rows of the window.", least=1, most=8192),
    imm("cols", 80, 12, "Columns of the window.", least=1, most=MAD_LIMIT),
    imm("src_boxes", 92, 12, "Boxes of 16 rows of the tile in L0C.", least=1),
    enum("convert", 104, 4, FixConvert, "Type that is stored."),
    imm("relu", 108, 1, "1 if negative numbers become +0; a NaN stays, -0 becomes +0."),
)
_FIX_DOC = (
    "Each FP32 number of the accumulator passes the ReLU if relu is 1 and is then rounded to "
    "nearest even: overflow gives infinity in 16 and 32 bits and saturates in 8, a NaN gives the "
    "canonical one, or 0 as an integer. With int32 the accumulator is one of integers and stands as "
    "it is."
)


def _integers_stay(values: Values) -> str | None:
    if values["convert"] == FixConvert.INT32 and values["relu"]:
        return f"relu must be 0 with int32, not {values['relu']}"
    return None


def _finite(values: Values) -> str | None:
    exponent = values["scale"] >> 23 & 0xFF
    return None if exponent < 0xFF else f"scale must be finite, not {values['scale']:#010x}"


def _rows_in(boxes: str) -> Rule:
    """Return the rule that a window has no more rows than a tile of so many boxes."""

    def complaint(values: Values) -> str | None:
        most = values[boxes] * BOX_ROWS
        return (
            None if values["rows"] <= most else f"rows must be at most {most}, not {values['rows']}"
        )

    return Rule(f"rows is at most 16 * {boxes}", complaint)


_STAY = Rule("relu is 0 with int32", _integers_stay)
_FLOATS = Rule(
    "convert is not int32",
    lambda values: (
        "convert must be of FP32 sums, not int32" if values["convert"] == FixConvert.INT32 else None
    ),
)
_FINITE = Rule("scale is finite", _finite)
_SOURCE_ROWS = _rows_in("src_boxes")
_TARGET_ROWS = _rows_in("l1_boxes")


def _scaled_sums(values: Values) -> str | None:
    """Return why a conversion does not fit what the sums are and whether they are multiplied."""
    quant = values.get("quant", FixScale.COLUMNS)
    wanted = values["sums"] == Sums.INT32 and quant == FixScale.NONE
    if (values["convert"] == FixConvert.INT32) == wanted:
        return None
    if wanted:
        convert = FixConvert(values["convert"]).name.lower()
        return f"convert must be int32 of int32 sums that nothing multiplies, not {convert}"
    return "convert must be of numbers, not int32, unless sums is int32 and quant none"


def _unused_scale(name: str, used: FixScale) -> Rule:
    """Return the rule that what says a multiplier is 0 where it says none."""
    quant = used.name.lower()

    def complaint(values: Values) -> str | None:
        if values[name] == 0 or values["quant"] == used:
            return None
        return f"{name} must be 0 where quant is not {quant}, not {values[name]}"

    return Rule(f"{name} is 0 unless quant is {quant}", complaint)


_SUMS = Rule("convert is int32 just where sums is int32 and nothing multiplies them", _scaled_sums)
_NO_NUMBER = Rule(
    "quant is not number",
    lambda values: (
        "quant must be none or columns, not number" if values["quant"] == FixScale.NUMBER else None
    ),
)
_SCALES = _unused_scale("scales", FixScale.COLUMNS)
_NUMBER = _unused_scale("xs", FixScale.NUMBER)
_SCALED_DOC = (
    "Before that, each sum is multiplied by a number, rounded to nearest even: with quant=number by "
    "the FP32 code in the low bits of xs, with quant=columns by the number of its column in FIXP. Sums "
    "that are integers are rounded to FP32 first."
)


def _scales_field(low: int) -> Field:
    return addr("scales", low, Space.FIXP, "First of cols numbers; 0 unless quant is columns.")


def _sums_field(low: int) -> Field:
    return enum("sums", low, 1, Sums, "What the accumulator holds.")


def _quant_fields(low: int) -> tuple[Field, ...]:
    return (
        enum("quant", low, 2, FixScale, "What sums are multiplied by."),
        reg("xs", low + 2, "Holds the code of the number; x0 unless quant is number."),
        _sums_field(low + 7),
    )


_WINDOW_FIELDS = (
    view("view", 8, 2, "A rank-2 view."),
    reg("xr", 18, "First row of the window."),
    reg("xc", 23, "First column of the window."),
    addr("l0c", 28, Space.L0C, "Element (0, 0) of the accumulator."),
)
_L1_FIELDS = (
    addr("l0c", 8, Space.L0C, "Element (0, 0) of the accumulator."),
    addr("l1", 28, Space.L1, "Element (0, 0) of the tile."),
)
_L1_BOXES = imm("l1_boxes", 118, 10, "Boxes of 16 rows of the tile in L1.", least=1)

PARAMETERS: tuple[Row, ...] = (
    Row(
        "l1_to_fixp",
        0x94,
        Pipe.FIX,
        TimingClass.BIAS_LOAD,
        "Copies bytes from L1 into the parameter buffer of the fixpipe.",
        (
            addr("src", 8, Space.L1, "First byte in L1."),
            addr("dst", 32, Space.FIXP, "First byte in the parameter buffer."),
            imm("bytes", 64, 16, "Number of bytes.", least=4, multiple=4),
        ),
        reads=(Space.L1,),
        writes=(Space.FIXP,),
    ),
)
"""What the fixpipe multiplies columns by."""

FIX: tuple[Row, ...] = (
    Row(
        "l0c_to_gm_fix",
        0x91,
        Pipe.FIX,
        TimingClass.DRAIN,
        "Stores rows x cols accumulator elements at row xr, column xc of a rank-2 view; they stand "
        f"as l0c_to_gm has them, with src_rows = 16 * src_boxes. {_FIX_DOC} The window must lie "
        "inside the view, whose elements must have the converted type's width.",
        (
            *_WINDOW_FIELDS,
            *_FIX_FIELDS,
        ),
        reads=(Space.L0C,),
        writes=(Space.GM,),
        rules=(_SOURCE_ROWS, _STAY),
    ),
    Row(
        "l0c_to_gm_quant",
        0x93,
        Pipe.FIX,
        TimingClass.DRAIN,
        "Does what l0c_to_gm_fix does with each FP32 number multiplied by scale before, rounded to "
        "nearest even.",
        (
            *_WINDOW_FIELDS,
            imm("rows", 48, 16, "Rows of the window.", least=1, most=8192),
            imm("cols", 64, 12, "Columns of the window.", least=1, most=MAD_LIMIT),
            imm("src_boxes", 76, 12, "Boxes of 16 rows of the tile in L0C.", least=1),
            enum("convert", 88, 4, FixConvert, "Type that is stored."),
            imm("relu", 92, 1, "1 if negative products become +0; a NaN stays, -0 becomes +0."),
            imm("scale", 96, 32, "The code of the number, of FP32."),
        ),
        reads=(Space.L0C,),
        writes=(Space.GM,),
        rules=(_SOURCE_ROWS, _FLOATS, _FINITE),
    ),
    Row(
        "l0c_to_ub",
        0x92,
        Pipe.FIX,
        TimingClass.DRAIN,
        "Stores rows x cols accumulator elements to the UB of a vector core of the cluster: "
        "element (r, c) goes to byte ub + r * pitch * 32 + c * bits / 8. They stand as l0c_to_gm "
        f"has them, with src_rows = 16 * src_boxes. {_FIX_DOC}",
        (
            addr("l0c", 8, Space.L0C, "Element (0, 0) of the accumulator."),
            addr("ub", 28, Space.UB, "Element (0, 0) of the tile."),
            imm("core", 48, 1, "Which of the two vector cores."),
            *_FIX_FIELDS,
            imm("pitch", 110, 11, "Units of 32 bytes from row to row of the tile.", least=1),
        ),
        reads=(Space.L0C,),
        writes=(Space.UB,),
        rules=(_SOURCE_ROWS, _STAY),
    ),
)
"""The fixpipe with its whole datapath."""

SCALED_FIX: tuple[Row, ...] = (
    Row(
        "l0c_to_gm_columns",
        0x97,
        Pipe.FIX,
        TimingClass.DRAIN,
        "Does what l0c_to_gm_fix does with each sum multiplied before by the FP32 number of its column "
        "in FIXP, rounded to nearest even; sums that are integers are rounded to FP32 first.",
        (
            *_WINDOW_FIELDS,
            addr("scales", 48, Space.FIXP, "First of cols numbers."),
            *_FIX_FIELDS,
            _sums_field(109),
        ),
        reads=(Space.L0C, Space.FIXP),
        writes=(Space.GM,),
        rules=(_SOURCE_ROWS, _SUMS),
    ),
    Row(
        "l0c_to_gm_nz",
        0x98,
        Pipe.FIX,
        TimingClass.DRAIN,
        "Stores rows x cols accumulator elements into the boxes of a rank-5 view [1, P, Q, 16, c0], "
        "c0 = 256 / bits of the converted type: element (r, c) goes to row r % 16, column c % c0 of box "
        "(xj + c // c0, xi + r // 16). Sums stand, and are converted, as l0c_to_gm_fix has it; with "
        "quant=columns each is multiplied before by the FP32 number of its column in FIXP. The window "
        "must lie inside the view.",
        (
            view("view", 8, 5, "A rank-5 view whose boxes are packed."),
            reg("xj", 18, "First box along the second dimension."),
            reg("xi", 23, "First box along the third dimension."),
            addr("l0c", 28, Space.L0C, "Element (0, 0) of the accumulator."),
            _scales_field(48),
            enum("quant", 57, 2, FixScale, "What sums are multiplied by: none or columns."),
            imm("rows", 64, 16, "Rows of the window.", least=1),
            imm("cols", 80, 12, "Columns of the window.", least=16, most=MAD_LIMIT, multiple=16),
            *_FIX_FIELDS[2:],
            _sums_field(109),
        ),
        reads=(Space.L0C, Space.FIXP),
        writes=(Space.GM,),
        rules=(_SOURCE_ROWS, _STAY, _NO_NUMBER, _SCALES, _SUMS),
    ),
    Row(
        "l0c_to_ub_quant",
        0x96,
        Pipe.FIX,
        TimingClass.DRAIN,
        f"Does what l0c_to_ub does with sums that may be multiplied. {_SCALED_DOC}",
        (
            addr("l0c", 8, Space.L0C, "Element (0, 0) of the accumulator."),
            addr("ub", 28, Space.UB, "Element (0, 0) of the tile."),
            imm("core", 43, 1, "Which of the two vector cores."),
            *_quant_fields(44),
            _scales_field(52),
            *_FIX_FIELDS,
            imm("pitch", 110, 11, "Units of 32 bytes from row to row of the tile.", least=1),
        ),
        reads=(Space.L0C, Space.FIXP),
        writes=(Space.UB,),
        rules=(_SOURCE_ROWS, _STAY, _NUMBER, _SCALES, _SUMS),
    ),
    Row(
        "l0c_to_l1",
        0x95,
        Pipe.FIX,
        TimingClass.DRAIN,
        "Stores rows x cols accumulator elements into boxes of 16 rows x 32 bytes in L1, as gm_to_l1_nz "
        "lays them out: with c0 = 256 / bits of the converted type, element (r, c) goes to byte "
        "l1 + ((c // c0) * l1_boxes + r // 16) * 512 + (r % 16) * 32 + (c % c0) * bits / 8. Bytes of a "
        "32-byte row segment beyond cols become zero, other bytes stay. Sums stand as l0c_to_gm has "
        f"them, with src_rows = 16 * src_boxes. {_FIX_DOC}",
        (*_L1_FIELDS, *_FIX_FIELDS, _L1_BOXES),
        reads=(Space.L0C,),
        writes=(Space.L1,),
        rules=(_SOURCE_ROWS, _TARGET_ROWS, _STAY),
    ),
    Row(
        "l0c_to_l1_quant",
        0x99,
        Pipe.FIX,
        TimingClass.DRAIN,
        f"Does what l0c_to_l1 does with sums that may be multiplied. {_SCALED_DOC}",
        (*_L1_FIELDS, *_quant_fields(52), *_FIX_FIELDS, _scales_field(109), _L1_BOXES),
        reads=(Space.L0C, Space.FIXP),
        writes=(Space.L1,),
        rules=(_SOURCE_ROWS, _TARGET_ROWS, _STAY, _NUMBER, _SCALES, _SUMS),
    ),
)
"""The fixpipe where columns have multipliers of their own, or what it makes stays on the chip."""
