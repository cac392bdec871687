"""Instruction selection for the cube core: loads into L1, products, and stores of accumulators."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, cast

from ...ir.dtypes import BFloat16, DType, Float16, UInt8
from ...ir.errors import IRTypeError, IRValueError
from ...ir.expr import Call, ConstBool, Expr, Var, index
from ...ir.numerics.functions import scalar_code
from ...ir.ops.rules_memory import stored_dtypes
from ...ir.tile_bytes import FRACTAL_BYTES, FRACTAL_ROWS, round_up
from ...ir.types import TensorLayout, TensorType, TileLayout, TileType
from ..isa.vocabulary import (
    Convert,
    ElementType,
    FixConvert,
    FixScale,
    MadInit,
    PlainType,
    Space,
    Sums,
)
from .folded import select_nz_load, select_rows
from .operands import coordinates
from .padding import beyond, fills
from .places import constant, place_of, space_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...ir.dtypes import SimpleDType
    from ..tree import Fields, Step
    from .operands import Operands, Rule
    from .places import Place

FIX_CONVERT = {
    DType.Float32: FixConvert.FP32,
    BFloat16: FixConvert.BF16,
    Float16: FixConvert.FP16,
    DType.Int32: FixConvert.INT32,
    DType.E4M3: FixConvert.E4M3,
    DType.E5M2: FixConvert.E5M2,
    DType.Int8: FixConvert.INT8,
    UInt8: FixConvert.UINT8,
}
"""What the fixpipe calls each dtype that it writes."""

LINE_BITS = FRACTAL_BYTES * 8
_BRINGS_TO_L1 = ("tile.load", "tile.move")
_PLAIN = {
    Float16: PlainType.FP16,
    BFloat16: PlainType.BF16,
    DType.Float32: PlainType.FP32,
    DType.E4M3: PlainType.E4M3,
    DType.E5M2: PlainType.E5M2,
    DType.Int8: PlainType.INT8,
}


# --------------------------------------------------------------------------- loads


def select_l1_load(operands: Operands, var: Var, place: Place, call: Call) -> tuple[Step, ...]:
    """Return the load of a tile into L1, and what fills it up along K.

    Raises:
        IRTypeError: For a tensor that no load takes.
        IRValueError: For a window of several matrices of a tensor in NZ.
    """
    layout = cast("TensorType", call.args[0].type).layout
    if layout.is_mx:
        return (_load_boxes(operands, place, call),)
    if layout is TensorLayout.NZ:
        return (select_nz_load(operands, place, call),)
    row, col = coordinates(call, 1)
    fields: Fields = {
        "view": operands.matrix(call, 0),
        "xr": row,
        "xc": col,
        "l1": place.address,
        "cols": place.valid_cols,
    }
    if cast("TileType", var.type).get_effective_tile_view().slayout is TileLayout.none_box:
        load = operands.step("gm_to_l1_row", fields, call)
    else:
        fields |= {"rows": place.valid_rows, "l1_rows": round_up(place.rows, FRACTAL_ROWS)}
        load = operands.step("gm_to_l1_nz", fields, call)
    return (load, *fill_up(operands, var, place, call))


def fill_up(operands: Operands, var: Var, place: Place, call: Call) -> tuple[Step, ...]:
    """Return what sets a tile in L1 to zero from its valid K on, as far as the cube multiplies it."""
    found = fills(operands.scaled, var, place)
    return tuple(operands.step("l1_fill", fields, call) for fields in found)


def _filled(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return what sets all of a tile in L1 to zero beyond what was brought there."""
    if var is None:
        return ()
    source, place = call.args[0], place_of(call.args[0], call.span)
    tile = cast("TileType", source.type)
    made = operands.made_by.get(cast("Var", source))
    name = made.op.name if made is not None else ""
    if name not in _BRINGS_TO_L1:
        narrowed = name == "tile.set_validshape"
        found = "pl.set_validshape made it" if narrowed else "a loop or a branch hands it on"
        message = (
            "A tile that pl.fillpad fills up in Mat must be as it was loaded or moved there, not as "
            f"{found}"
        )
        hint = "say what is valid by valid_shape= of the load, and fill up just behind it"
        raise IRValueError(message, call.span, hint=hint)
    one_row = tile.get_effective_tile_view().slayout is TileLayout.none_box
    if name == "tile.move" and one_row and place.valid_cols * place.dtype.bits % LINE_BITS:
        message = (
            "A row that pl.fillpad fills up in Mat must come from a tensor, or end with 32 bytes, not be "
            f"{place.valid_cols} elements of {place.dtype.name} from Vec"
        )
        raise IRValueError(message, call.span, hint="pl.fillpad it in Vec, then pl.move it")
    fields = beyond(tile, place)
    return tuple(operands.step("l1_fill", each, call) for each in fields)


def _load_boxes(operands: Operands, place: Place, call: Call) -> Step:
    _, row, col, *_ = coordinates(call, 1)
    window = constant(coordinates(call, 2), "The window of a load", call.span)
    fields: Fields = {
        "view": operands.view(call.args[0], call),
        "xi": row,
        "xj": col,
        "l1": place.address,
        "ni": window[1],
        "nj": window[2],
        "l1_nj": window[2],
    }
    return operands.step("gm_to_l1_boxes", fields, call)


# --------------------------------------------------------------------------- products


def _scaled(init: MadInit) -> Rule:
    """Return the rule of a block-scaled product."""

    def rule(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
        if var is None:
            return ()
        lhs, _, rhs, _, *bias = call.args[1:] if init is MadInit.ACC else call.args
        a, b, extents = _factors(lhs, rhs, call)
        _check_acc(call.args[0], a, init, call)
        fields: Fields = {
            "c": place_of(var, call.span).address,
            **extents,
            "bias": _bias_address(bias, call),
            "a_type": ElementType[a.dtype.name],
            "b_type": ElementType[b.dtype.name],
            "init": init,
        }
        return (operands.step("mad_mx", fields, call),)

    return rule


def _plain(init: MadInit) -> Rule:
    """Return the rule of a product without scales."""

    def rule(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
        if var is None:
            return ()
        lhs, rhs, *more = call.args[1:] if init is MadInit.ACC else call.args
        a, b, extents = _factors(lhs, rhs, call)
        _check_acc(call.args[0], a, init, call)
        fields: Fields = {
            "c": place_of(var, call.span).address,
            **extents,
            "a_type": _PLAIN[a.dtype],
            "b_type": _PLAIN[b.dtype],
        }
        start: MadInit | Expr = init
        if init is MadInit.ACC and more:
            start = _start(more[0])
        if isinstance(start, Expr):
            return (operands.step("mad_if", {**fields, "xz": start}, call),)
        bias = _bias_address(more, call) if start is MadInit.BIAS else 0
        return (operands.step("mad", {**fields, "bias": bias, "init": start}, call),)

    return rule


def _start(anew: Expr) -> MadInit | Expr:
    """Return what a sum starts from where a condition says whether it begins anew."""
    if isinstance(anew, ConstBool):
        return MadInit.ZERO if anew.value else MadInit.ACC
    return anew


def _factors(lhs: Expr, rhs: Expr, call: Call) -> tuple[Place, Place, Fields]:
    """Return where the factors lie, and the fields that follow from it."""
    a, b = place_of(lhs, call.span), place_of(rhs, call.span)
    fields: Fields = {
        "a": a.address,
        "b": b.address,
        "m": a.valid_rows,
        "k": a.valid_cols,
        "n": b.valid_cols,
    }
    return a, b, fields


def _check_acc(acc: Expr, a: Place, init: MadInit, call: Call) -> None:
    """Refuse a sum whose boxes stand further apart than those that a product adds to it."""
    if init is not MadInit.ACC:
        return
    found, wanted = place_of(acc, call.span).box_rows, round_up(a.valid_rows, FRACTAL_ROWS)
    if found != wanted:
        message = (
            f"An accumulator that a product of {a.valid_rows} valid rows is added to must have its "
            f"boxes {wanted} rows apart, not {found}"
        )
        hint = (
            f"begin the sum with as many valid rows, or use tiles of {wanted} rows; "
            "pl.set_validshape leaves the boxes where they are"
        )
        raise IRValueError(message, call.span, hint=hint)


def _narrowed(operands: Operands, var: Var | None, call: Call) -> tuple[Step, ...]:
    """Return no instruction: the result is the operand, of which less is valid."""
    del operands
    if var is not None:
        source, target = place_of(call.args[0], call.span), place_of(var, call.span)
        if source.space is Space.L0C and source.box_rows != target.box_rows:
            message = (
                f"The valid rows of an accumulator must fill as many boxes of {FRACTAL_ROWS} rows "
                f"as before, {source.box_rows // FRACTAL_ROWS}, since they stand that close, not "
                f"{target.box_rows // FRACTAL_ROWS}"
            )
            hint = "narrow the rows of the left operand of the product"
            raise IRValueError(message, call.span, hint=hint)
    return ()


def _bias_address(bias: Sequence[Expr], call: Call) -> int:
    return place_of(bias[0], call.span).address if bias else 0


# --------------------------------------------------------------------------- stores


def select_acc_store(operands: Operands, source: Place, call: Call) -> tuple[Step, ...]:
    """Return the store of an accumulator's valid part.

    A mad writes rows of boxes as far as its own rows go, so that is how they are read, whatever the
    physical rows of the tile are.

    Raises:
        IRTypeError: For a tensor of another dtype than the fixpipe writes.
        IRValueError: For a tile that does not lie in Acc, or shapes that are not its rows.
    """
    if source.space is not Space.L0C:
        message = f"A store must come from Acc or Vec, not from {space_name(call.args[0])}"
        hint = "load it with target_memory=pl.Mem.Vec" if source.space is Space.L1 else None
        raise IRValueError(message, call.span, hint=hint)
    window = (source.valid_rows, source.valid_cols)
    for shapes in range(3, len(call.args)):
        window = constant(coordinates(call, shapes), "The shapes of a store", call.span)
        if (prod(window[:-1]), window[-1]) != (source.valid_rows, source.valid_cols):
            message = (
                "A store of the cube core must keep the tile's shape, not write it by other shapes"
            )
            raise IRValueError(message, call.span)
    dtype = cast("SimpleDType", cast("TensorType", call.args[2].type).dtype)
    allowed = stored_dtypes(cast("TileType", call.args[0].type), call.kwargs)
    if dtype not in allowed:
        names = ", ".join(each.name for each in allowed)
        message = f"A store of the cube core must write {names} of {source.dtype.name} here, not {dtype.name}"
        raise IRTypeError(message, call.span)
    view, row, col = select_rows(operands, call, 2, window)
    fields: Fields = {
        "view": view,
        "xr": row,
        "xc": col,
        "l0c": source.address,
        "rows": source.valid_rows,
        "cols": source.valid_cols,
    }
    relu, scale = call.kwargs.get("pre_relu", False), call.kwargs.get("pre_quant")
    if dtype is DType.Int32 or relu or scale is not None:
        fields |= {
            "src_boxes": source.box_rows // FRACTAL_ROWS,
            "convert": FIX_CONVERT[dtype],
            "relu": int(relu),
        }
        if scale is None:
            return (operands.step("l0c_to_gm_fix", fields, call),)
        fields["scale"] = int(scalar_code(scale, DType.Float32))
        return (operands.step("l0c_to_gm_quant", fields, call),)
    fields |= {"src_rows": source.box_rows, "convert": Convert[FIX_CONVERT[dtype].name]}
    return (operands.step("l0c_to_gm", fields, call),)


def select_acc_move(operands: Operands, var: Var, call: Call) -> tuple[Step, ...]:
    """Return the move of an accumulator's valid part into the boxes of an operand in L1."""
    source, place = place_of(call.args[0], call.span), place_of(var, call.span)
    fields: Fields = {
        "l0c": source.address,
        "l1": place.address,
        "rows": place.valid_rows,
        "cols": place.valid_cols,
        "l1_boxes": -(-place.rows // FRACTAL_ROWS),
        **drained(source, place, call),
    }
    mnemonic = "l0c_to_l1_quant" if "xs" in fields else "l0c_to_l1"
    return (operands.step(mnemonic, fields, call), *fill_up(operands, var, place, call))


def drained(source: Place, place: Place, call: Call) -> Fields:
    """Return how sums are converted on their way to a memory of the chip, as fields of the fixpipe."""
    scale = call.kwargs.get("pre_quant")
    fields: Fields = {
        "src_boxes": source.box_rows // FRACTAL_ROWS,
        "convert": FIX_CONVERT[place.dtype],
        "relu": int(call.kwargs.get("pre_relu", False)),
    }
    if scale is None:
        return fields
    number = index(int(scalar_code(scale, DType.Float32)))
    return {**fields, "quant": FixScale.NUMBER, "xs": number, "sums": Sums.FP32, "scales": 0}


_STARTS = {"": MadInit.ZERO, "_acc": MadInit.ACC, "_bias": MadInit.BIAS}

RULES: dict[str, Rule] = {
    f"tile.{name}{suffix}": rule(init)
    for name, rule in (
        ("matmul_mx", _scaled),
        ("gemv_mx", _scaled),
        ("matmul", _plain),
        ("gemv", _plain),
    )
    for suffix, init in _STARTS.items()
} | {"tile.set_validshape": _narrowed, "tile.fillpad_mat": _filled}
"""The rules of the products, and of what less or more is valid of than before."""
