"""Instruction selection for quantising to MX, and for what leaves UB as boxes of scales.

The passes have made three ops of a quantisation. The scales and the elements come out of one
instruction, which is that of the elements; its scales are the codes of one row after another. A third
op lays them out in boxes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ....ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from ....ir.errors import IRTypeError, IRValueError
from ....ir.ops import ROWS
from ....ir.ops.checks import is_mx_blocked
from ....ir.types import SCALE_ARRANGEMENT, TensorLayout, TileType
from ...isa.vocabulary import ElementType, FloatType, QuantRule
from ..folded import select_rows
from ..operands import coordinates
from ..places import constant, place_of
from .tiles import tile_at

if TYPE_CHECKING:
    from ....ir.expr import Call, Expr, Var
    from ....ir.types import TensorType
    from ...tree import Fields, Step
    from ..operands import Operands, Rule
    from ..places import Place


def _scales(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return no instruction: that of the elements, which follows, makes the scales as well."""
    del operands, var, call
    return ()


def _elements(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the quantisation of a tile."""
    if var is None:
        return ()
    dst, src, scales = (tile_at(each, call.span) for each in (var, *call.args))
    rule: str = ROWS[call.op.name].attribute(call.kwargs, "rule")
    fields: Fields = {
        "type": FloatType[src.type.name],
        "element": ElementType[dst.type.name],
        "rule": QuantRule[rule.upper()],
        "scales": scales.address,
        "scale_pitch": scales.pitch,
    }
    fields |= src.shape | dst.operand("dst") | src.operand("src")
    return (operands.step("v_quant_mx", fields, call),)


def _boxes(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return the move of scales into the boxes of their side."""
    if var is None:
        return ()
    dst, src = place_of(var, call.span), tile_at(call.args[0], call.span)
    fields = {"dst": dst.address, **src.shape, **src.operand("src")}
    return (operands.step("v_scale_boxes", fields, call),)


def scale_side(value: Expr) -> TensorLayout | None:
    """Return of which side's boxes a tile is, None for one whose elements lie in rows."""
    arrangement = cast("TileType", value.type).get_effective_tile_view().arrangement
    sides = (layout for layout, boxes in SCALE_ARRANGEMENT.items() if boxes == arrangement)
    return next(sides, None)


def select_scale_store(
    operands: Operands, place: Place, side: TensorLayout, call: Call
) -> tuple[Step, ...]:
    """Return the store of a tile of scale boxes: to boxes of an MX tensor, or as a row of bytes.

    Args:
        operands: The kernel's tensors and views.
        place: Where the tile lies.
        side: Whose boxes it has.
        call: The store.

    Raises:
        IRTypeError: For a tensor of another dtype.
        IRValueError: For a tile that is valid in part, or shapes of more than one row.
    """
    if (place.valid_rows, place.valid_cols) != (place.rows, place.cols):
        message = (
            f"A tile of scales must be stored as a whole, not {[place.valid_rows, place.valid_cols]} "
            f"of {[place.rows, place.cols]}"
        )
        raise IRValueError(message, call.span)
    tensor = cast("TensorType", call.args[2].type)
    if tensor.dtype.bits != place.dtype.bits:
        message = (
            f"A tile of scales must be stored into a tensor of bytes, not of {tensor.dtype.name}"
        )
        raise IRTypeError(message, call.span)
    lines, groups = (
        (place.rows, place.cols) if side is TensorLayout.MX_A_ZZ else (place.cols, place.rows)
    )
    boxes = (lines // BOX_ROWS, groups // BOX_GROUPS)
    if is_mx_blocked(tensor):
        _, xi, xj, *_ = coordinates(call, 1)
        fields: Fields = {
            "view": operands.view(call.args[2], call),
            "xi": xi,
            "xj": xj,
            "ub": place.address,
            "ni": boxes[0],
            "nj": boxes[1],
            "ub_nj": boxes[1],
        }
        return (operands.step("ub_to_gm_boxes", fields, call),)
    return _store_bytes(operands, place, lines * groups, call)


def _store_bytes(operands: Operands, place: Place, size: int, call: Call) -> tuple[Step, ...]:
    """Return the store of all boxes, one behind the other, as rows of bytes."""
    if len(call.args) <= 3:
        message = (
            "A tile of scales must be told the shapes in which its bytes, box after box, are stored "
            "into a tensor in ND"
        )
        raise IRValueError(message, call.span, hint=f"pl.store(scales, [0, 0], out, [1, {size}])")
    window = constant(coordinates(call, 3), "The shapes of a store", call.span)
    cols = window[-1]
    count = size // cols
    if cols % BOX_BYTES and count > 1:
        message = f"Rows of the bytes of scale boxes must be multiples of {BOX_BYTES} bytes each, not {cols}"
        raise IRValueError(message, call.span, hint=f"the shapes [1, {size}] are one row")
    view, row, col = select_rows(operands, call, 2, window)
    fields: Fields = {"view": view, "xr": row, "xc": col, "ub": place.address}
    fields |= {"rows": count, "cols": cols, "pitch": -(-cols // BOX_BYTES)}
    return (operands.step("ub_to_gm", fields, call),)


RULES: dict[str, Rule] = {
    "tile.quant_scales": _scales,
    "tile.quant_elements": _elements,
    "tile.scale_boxes": _boxes,
}
"""The rules of the steps of a quantisation."""
