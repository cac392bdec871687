"""Rows of the steps that a quantisation of a tile is made of; only passes write them."""

from __future__ import annotations

from dataclasses import replace

from ..dtypes import DType
from ..types import TensorLayout
from . import meaning_quant, rules_quant_steps
from .row import Attribute
from .table_vector import tile, tile_row

_RULE = Attribute("rule", str, default="floor")
_DTYPE = Attribute("dtype", DType, default=DType.E4M3)

QUANT_STEP_ROWS = tuple(
    replace(row, public=False)
    for row in (
        tile_row(
            "quant_scales",
            (tile("src"),),
            rules_quant_steps.infer_scales,
            meaning_quant.scales_of,
            "Chooses one scale code for 32 elements of a row; a row of codes fills whole 32 bytes.",
            attributes=(_DTYPE, _RULE),
        ),
        tile_row(
            "quant_elements",
            (tile("src"), tile("scales")),
            rules_quant_steps.infer_elements,
            meaning_quant.elements_of,
            "Divides elements by the scales that were chosen just before, and rounds them.",
            attributes=(_DTYPE, _RULE),
        ),
        tile_row(
            "scale_boxes",
            (tile("scales"),),
            rules_quant_steps.infer_boxes,
            meaning_quant.in_boxes,
            "Lays scale codes out in the boxes of a left or of a right operand.",
            attributes=(Attribute("layout", TensorLayout, required=True),),
        ),
    )
)
"""The rows."""
