"""Which datapath each instruction uses, and the fields that it wants.

A mnemonic has one line of `ACTIONS`; what moves or computes no data has none.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ...codegen.isa.table import AT, ROWS
from ...codegen.isa.vocabulary import FieldKind, FixScale, MadInit, Pipe, Sums


class Action(IntEnum):
    """Which datapath an instruction uses; `NONE` for what moves no data."""

    NONE = 0
    GM_TO_L1_NZ = 1
    GM_TO_L1_ROW = 2
    GM_TO_L1_BOXES = 3
    L1_TO_L0_BOXES = 4
    L1_TO_L0_TURNED = 5
    L1_TO_SCALE = 6
    L1_TO_TABLE = 7
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
    GM_TO_L1_SCALES = 19
    MAD = 20
    """From here on what Python executes; the jitted loop checks its bounds only."""
    MAD_IF = 21
    FIX_TO_GM = 22
    FIX_TO_NZ = 23
    FIX_TO_UB = 24
    FIX_TO_L1 = 25
    VECTOR = 26
    VECTOR_AT = 27


WRITES: Final = "writes"
"""Stands among an action's fields for the memory that the row of the table says is written."""

_UB_FIELDS: Final = ("view", "ub", "rows", "cols", "pitch")
_MAD_FIELDS: Final = ("c", "a", "b", "bias", "m", "k", "n", "a_type", "b_type", "init")
_FIX_FIELDS: Final = (
    *("l0c", "rows", "cols", "src_boxes", "convert", "relu"),
    *("quant", "scales", "sums", "scale"),
)
_BOX_FIELDS: Final = ("src", "dst", "row_boxes", "col_boxes", "src_pitch", "dst_pitch", WRITES)
_SCALE_FIELDS: Final = ("src", "dst", "row_boxes", "col_boxes", "src_pitch", WRITES)

ACTIONS: Final[dict[str, tuple[Action, tuple[str, ...]]]] = {
    "gm_to_l1_nz": (Action.GM_TO_L1_NZ, ("view", "l1", "rows", "cols", "l1_rows")),
    "gm_to_l1_row": (Action.GM_TO_L1_ROW, ("view", "l1", "cols")),
    "gm_to_l1_boxes": (Action.GM_TO_L1_BOXES, ("view", "l1", "ni", "nj", "l1_nj")),
    "gm_to_l1_nz_boxes": (
        Action.GM_TO_L1_NZ_BOXES,
        ("view", "l1", "col_boxes", "row_boxes", "dst_pitch"),
    ),
    "gm_to_l1_scales": (
        Action.GM_TO_L1_SCALES,
        ("view", "l1", "ni", "nj", "l1_nj", "layout"),
    ),
    "l1_fill": (Action.L1_FILL, ("l1", "lines", "units", "pitch")),
    "l1_to_l0a_row": (Action.L1_TO_L0A_ROW, ("src", "dst", "units")),
    "l1_to_scale_a_row": (Action.L1_TO_SCALE_ROW, ("src", "dst", "groups")),
    "l1_to_l0a": (Action.L1_TO_L0_BOXES, _BOX_FIELDS),
    "l1_to_l0b_boxes": (Action.L1_TO_L0_BOXES, _BOX_FIELDS),
    "l1_to_l0b": (Action.L1_TO_L0_TURNED, ("src", "dst", "bits", "k", "n", "src_k", WRITES)),
    "l1_to_l0a_turned": (Action.L1_TO_L0_TURNED, ("src", "dst", "bits", "k", "m", "src_k", WRITES)),
    "l1_to_scale_a": (Action.L1_TO_SCALE, _SCALE_FIELDS),
    "l1_to_scale_b": (Action.L1_TO_SCALE, _SCALE_FIELDS),
    "l1_to_bias": (Action.L1_TO_TABLE, ("src", "dst", "bytes", WRITES)),
    "l1_to_fixp": (Action.L1_TO_TABLE, ("src", "dst", "bytes", WRITES)),
    "l0c_to_gm": (Action.L0C_TO_GM, ("view", "l0c", "rows", "cols", "src_rows", "convert")),
    "mad_mx": (Action.MAD_MX, _MAD_FIELDS),
    "mad": (Action.MAD, _MAD_FIELDS),
    "mad_if": (Action.MAD_IF, _MAD_FIELDS),
    "l0c_to_gm_fix": (Action.FIX_TO_GM, ("view", *_FIX_FIELDS)),
    "l0c_to_gm_quant": (Action.FIX_TO_GM, ("view", *_FIX_FIELDS)),
    "l0c_to_gm_columns": (Action.FIX_TO_GM, ("view", *_FIX_FIELDS)),
    "l0c_to_gm_nz": (Action.FIX_TO_NZ, ("view", *_FIX_FIELDS)),
    "l0c_to_ub": (Action.FIX_TO_UB, ("ub", *_FIX_FIELDS, "core", "pitch")),
    "l0c_to_ub_quant": (Action.FIX_TO_UB, ("ub", *_FIX_FIELDS, "core", "pitch")),
    "l0c_to_l1": (Action.FIX_TO_L1, ("l1", *_FIX_FIELDS, "l1_boxes")),
    "l0c_to_l1_quant": (Action.FIX_TO_L1, ("l1", *_FIX_FIELDS, "l1_boxes")),
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
"""The FP32 code of 1."""

_AS_IT_IS: Final = {
    "quant": int(FixScale.NONE),
    "scales": 0,
    "sums": int(Sums.FP32),
    "scale": UNSCALED,
}
IMPLIED: Final[dict[str, dict[str, int]]] = {
    "mad_if": {"bias": 0, "init": int(MadInit.ACC)},
    "l0c_to_gm_fix": _AS_IT_IS,
    "l0c_to_gm_quant": {**_AS_IT_IS, "quant": int(FixScale.NUMBER)},
    "l0c_to_gm_columns": {**_AS_IT_IS, "quant": int(FixScale.COLUMNS)},
    "l0c_to_gm_nz": _AS_IT_IS,
    "l0c_to_ub": _AS_IT_IS,
    "l0c_to_ub_quant": _AS_IT_IS,
    "l0c_to_l1": _AS_IT_IS,
    "l0c_to_l1_quant": _AS_IT_IS,
}
"""What a datapath takes for the fields that an instruction does not name."""
