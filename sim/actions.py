"""Which datapath each instruction uses, and the fields that it wants.

A mnemonic has one line of `ACTIONS`; what moves or computes no data has none.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ..codegen.isa.table import AT, ROWS
from ..codegen.isa.vocabulary import FieldKind, MadInit, Pipe


class Action(IntEnum):
    """Which datapath an instruction uses; `NONE` for what moves no data."""

    NONE = 0
    GM_TO_L1_NZ = 1
    GM_TO_L1_ROW = 2
    GM_TO_L1_BOXES = 3
    L1_TO_L0A = 4
    L1_TO_L0B = 5
    L1_TO_SCALE = 6
    L1_TO_BIAS = 7
    L0C_TO_GM = 8
    MAD_MX = 9
    GM_TO_L1_NZ_BOXES = 10
    GM_TO_UB = 11
    UB_TO_GM = 12
    UB_TO_GM_BOXES = 13
    UB_TO_L1 = 14
    UB_TO_L1_NZ = 15
    L1_FILL = 16
    L1_TO_L0A_ROW = 17
    L1_TO_SCALE_ROW = 18
    MAD = 19
    """From here on what Python executes; the jitted loop checks its bounds only."""
    MAD_IF = 20
    FIX_TO_GM = 21
    FIX_TO_UB = 22
    VECTOR = 23
    VECTOR_AT = 24


WRITES: Final = "writes"
"""Stands among an action's fields for the memory that the row of the table says is written."""

_UB_FIELDS: Final = ("view", "ub", "rows", "cols", "pitch")
_MAD_FIELDS: Final = ("c", "a", "b", "bias", "m", "k", "n", "a_type", "b_type", "init")
_FIX_FIELDS: Final = ("rows", "cols", "src_boxes", "convert", "relu")
_SCALE_FIELDS: Final = ("src", "dst", "row_boxes", "col_boxes", "src_pitch", WRITES)

ACTIONS: Final[dict[str, tuple[Action, tuple[str, ...]]]] = {
    "gm_to_l1_nz": (Action.GM_TO_L1_NZ, ("view", "l1", "rows", "cols", "l1_rows")),
    "gm_to_l1_row": (Action.GM_TO_L1_ROW, ("view", "l1", "cols")),
    "gm_to_l1_boxes": (Action.GM_TO_L1_BOXES, ("view", "l1", "ni", "nj", "l1_nj")),
    "gm_to_l1_nz_boxes": (
        Action.GM_TO_L1_NZ_BOXES,
        ("view", "l1", "col_boxes", "row_boxes", "dst_pitch"),
    ),
    "l1_fill": (Action.L1_FILL, ("l1", "lines", "units", "pitch")),
    "l1_to_l0a_row": (Action.L1_TO_L0A_ROW, ("src", "dst", "units")),
    "l1_to_scale_a_row": (Action.L1_TO_SCALE_ROW, ("src", "dst", "groups")),
    "l1_to_l0a": (
        Action.L1_TO_L0A,
        ("src", "dst", "row_boxes", "col_boxes", "src_pitch", "dst_pitch"),
    ),
    "l1_to_l0b": (Action.L1_TO_L0B, ("src", "dst", "bits", "k", "n", "src_k")),
    "l1_to_scale_a": (Action.L1_TO_SCALE, _SCALE_FIELDS),
    "l1_to_scale_b": (Action.L1_TO_SCALE, _SCALE_FIELDS),
    "l1_to_bias": (Action.L1_TO_BIAS, ("src", "dst", "bytes")),
    "l0c_to_gm": (Action.L0C_TO_GM, ("view", "l0c", "rows", "cols", "src_rows", "convert")),
    "mad_mx": (Action.MAD_MX, _MAD_FIELDS),
    "mad": (Action.MAD, _MAD_FIELDS),
    "mad_if": (Action.MAD_IF, _MAD_FIELDS),
    "l0c_to_gm_fix": (Action.FIX_TO_GM, ("view", "l0c", *_FIX_FIELDS, "scale")),
    "l0c_to_gm_quant": (Action.FIX_TO_GM, ("view", "l0c", *_FIX_FIELDS, "scale")),
    "l0c_to_ub": (Action.FIX_TO_UB, ("ub", "l0c", *_FIX_FIELDS, "core", "pitch")),
    "gm_to_ub": (Action.GM_TO_UB, _UB_FIELDS),
    "ub_to_gm": (Action.UB_TO_GM, _UB_FIELDS),
    "ub_to_gm_boxes": (Action.UB_TO_GM_BOXES, ("view", "ub", "ni", "nj", "ub_nj")),
    "ub_to_l1": (Action.UB_TO_L1, ("ub", "l1", "lines", "units", "ub_pitch", "l1_pitch")),
    "ub_to_l1_nz": (
        Action.UB_TO_L1_NZ,
        ("ub", "l1", "bits", "rows", "cols", "l1_rows", "pitch"),
    ),
}
"""Mnemonic to datapath and the fields that it wants, in the datapath's own order."""
ACTIONS.update(
    (row.mnemonic, ACTIONS[row.mnemonic.removesuffix(AT)])
    for row in ROWS
    if row.has("xo") and row.pipe is Pipe.MTE1
)
ACTIONS.update(
    (
        row.mnemonic,
        (
            Action.VECTOR_AT if row.has("xo") else Action.VECTOR,
            tuple(each.name for each in row.fields if each.kind is not FieldKind.REG),
        ),
    )
    for row in ROWS
    if row.pipe is Pipe.V
)

UNSCALED: Final = 0x3F800000
"""The FP32 code of 1, by which an accumulator is multiplied where nothing is said."""

IMPLIED: Final = {
    Action.MAD_IF: {"bias": 0, "init": int(MadInit.ACC)},
    Action.FIX_TO_GM: {"scale": UNSCALED},
}
"""What a datapath takes for the fields that an instruction of it does not name."""
