"""Instruction selection, op by op: a rule for each op that a kernel of the cube core may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from ..ir.dtypes import BFloat16, DType, Float16
from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS, GROUP
from ..ir.errors import IRTypeError, IRValueError
from ..ir.expr import MakeTuple, Op
from ..ir.structural import structural_equal
from ..ir.tile_bytes import FRACTAL_ROWS, c0_elements, round_up
from ..ir.types import TensorLayout, TensorType, TileLayout, TileType
from .access import accesses
from .isa.vocabulary import Convert, ElementBits, ElementType, MadInit, Space
from .kernel import Layout, View
from .places import Place, constant, place_of, space_name
from .tree import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..ir.dtypes import SimpleDType
    from ..ir.expr import Call, Expr, Var

    Fields: TypeAlias = dict[str, int | Expr]

_CONVERT = {DType.Float32: Convert.FP32, BFloat16: Convert.BF16, Float16: Convert.FP16}
_MATRIX_RANK = 2


@dataclass
class Operands:
    """What the rules know of a kernel beyond the call in hand.

    Attributes:
        tensors: The number of the parameter whose tensor each variable stands for.
        data_of: The data tile that each scale tile is bound to.
        views: What the instructions' view fields index, so far.
    """

    tensors: dict[Var, int] = field(default_factory=dict["Var", int])
    data_of: dict[Var, Var] = field(default_factory=dict["Var", "Var"])
    views: list[View] = field(default_factory=list[View])
    _index_of: dict[View, int] = field(default_factory=dict[View, int])

    def view(self, tensor: Expr, call: Call) -> int:
        """Return the number of the view of a whole tensor."""
        type_ = cast("TensorType", tensor.type)
        view = View(
            self.tensors[cast("Var", tensor)],
            Layout(type_.layout.value.lower()),
            cast("SimpleDType", type_.dtype).bits,
            constant(type_.shape, "The shape of a tensor that is compiled", call.span),
            constant(type_.stride, "The strides of a tensor that is compiled", call.span),
        )
        if view not in self._index_of:
            self._index_of[view] = len(self.views)
            self.views.append(view)
        return self._index_of[view]

    def matrix(self, call: Call, position: int) -> int:
        """Return the view of a rank-2 row-major tensor operand."""
        tensor = call.args[position]
        type_ = cast("TensorType", tensor.type)
        if type_.layout is not TensorLayout.ND or len(type_.shape) != _MATRIX_RANK:
            message = (
                f"{call.op.name} of the cube core must take a rank-2 tensor in ND, not one of rank "
                f"{len(type_.shape)} in {type_.layout.name}"
            )
            raise IRTypeError(message, call.span)
        return self.view(tensor, call)

    def step(self, mnemonic: str, fields: Fields, call: Call) -> Step:
        """Return an instruction with the bytes that it touches."""
        reads, writes = accesses(mnemonic, fields, self.views)
        return Step(mnemonic, fields, call.span, reads, writes)


def select_call(operands: Operands, var: Var | None, call: Call) -> Step | None:
    """Return the instruction of a call, None for one that needs none.

    Args:
        operands: The kernel's tensors, scales and views; views are added.
        var: What the result is assigned to.
        call: The call.

    Raises:
        IRValueError: For an op that the cube core has no instruction for.
        IRTypeError: For a tile or tensor that no instruction takes.
    """
    rule = _RULES.get(call.op.name) if isinstance(call.op, Op) else None
    if rule is None:
        kind = "use" if isinstance(call.op, Op) else "call"
        message = f"A kernel of the cube core must not {kind} {call.op.name}"
        raise IRValueError(message, call.span, hint=f"it can use {', '.join(sorted(_RULES))}")
    return rule(operands, var, call)


def _load(operands: Operands, var: Var | None, call: Call) -> Step | None:
    if var is None:
        return None
    place = place_of(var, call.span)
    if place.space is not Space.L1:
        message = (
            f"A load of the cube core must go to Mat, not to {space_name(var)}: "
            "the vector core is not part of this machine yet"
        )
        raise IRValueError(message, call.span, hint="target_memory=pl.Mem.Mat")
    if cast("TensorType", call.args[0].type).layout.is_mx:
        return _load_boxes(operands, place, call)
    row, col = _coordinates(call, 1)
    fields: Fields = {
        "view": operands.matrix(call, 0),
        "xr": row,
        "xc": col,
        "l1": place.address,
        "cols": place.valid_cols,
    }
    if cast("TileType", var.type).get_effective_tile_view().slayout is TileLayout.none_box:
        return operands.step("gm_to_l1_row", fields, call)
    fields |= {"rows": place.valid_rows, "l1_rows": round_up(place.rows, FRACTAL_ROWS)}
    return operands.step("gm_to_l1_nz", fields, call)


def _load_boxes(operands: Operands, place: Place, call: Call) -> Step:
    _, row, col, *_ = _coordinates(call, 1)
    window = constant(_coordinates(call, 2), "The window of a load", call.span)
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


def _move(operands: Operands, var: Var | None, call: Call) -> Step | None:
    if var is None:
        return None
    source, place = place_of(call.args[0], call.span), place_of(var, call.span)
    fields: Fields = {"src": source.address, "dst": place.address}
    match source.space, place.space:
        case Space.L1, Space.L0A:
            row_boxes = -(-source.valid_rows // FRACTAL_ROWS)
            fields |= {
                "row_boxes": row_boxes,
                "col_boxes": -(-source.valid_cols // c0_elements(source.dtype.bits)),
                "src_pitch": -(-source.rows // FRACTAL_ROWS),
                "dst_pitch": row_boxes,
            }
            return operands.step("l1_to_l0a", fields, call)
        case Space.L1, Space.L0B:
            fields |= {
                "bits": ElementBits(source.dtype.bits),
                "k": source.valid_rows,
                "n": source.valid_cols,
                "src_k": round_up(source.rows, FRACTAL_ROWS),
            }
            return operands.step("l1_to_l0b", fields, call)
        case Space.L1, Space.SCALE_A | Space.SCALE_B:
            return _fill_scale(operands, var, source, place, call)
        case Space.L1, Space.BIAS:
            fields |= {"bytes": source.valid_cols * source.dtype.bits // 8}
            return operands.step("l1_to_bias", fields, call)
        case _:
            message = (
                "The cube core must move tiles from Mat to Left, Right, LeftScale, RightScale or "
                f"Bias, not from {space_name(call.args[0])} to {space_name(var)}"
            )
            raise IRValueError(message, call.span)


def _fill_scale(operands: Operands, var: Var, source: Place, place: Place, call: Call) -> Step:
    """Fill a scale buffer as far as the data tile's valid region needs it."""
    assert var in operands.data_of, "a scale tile has a place only through its data tile"
    data = place_of(operands.data_of[var], call.span)
    left = place.space is Space.SCALE_A
    rows, k = (data.valid_rows, data.valid_cols) if left else (data.valid_cols, data.valid_rows)
    source_groups = source.cols if left else source.rows
    fields: Fields = {
        "src": source.address,
        "dst": place.address,
        "row_boxes": -(-rows // BOX_ROWS),
        "col_boxes": -(-k // (GROUP * BOX_GROUPS)),
        "src_pitch": -(-source_groups // BOX_GROUPS),
    }
    return operands.step("l1_to_scale_a" if left else "l1_to_scale_b", fields, call)


def _nothing(_operands: Operands, _var: Var | None, _call: Call) -> None:
    """No instruction: where a scale tile lies follows from its data tile."""
    return


def _matmul_mx(operands: Operands, var: Var | None, call: Call) -> Step | None:
    return _mad(operands, var, call, call.args, MadInit.ZERO)


def _matmul_mx_acc(operands: Operands, var: Var | None, call: Call) -> Step | None:
    return _mad(operands, var, call, call.args[1:], MadInit.ACC)


def _matmul_mx_bias(operands: Operands, var: Var | None, call: Call) -> Step | None:
    return _mad(operands, var, call, call.args[:4], MadInit.BIAS)


def _mad(
    operands: Operands, var: Var | None, call: Call, tiles: Sequence[Expr], init: MadInit
) -> Step | None:
    if var is None:
        return None
    a, _, b, _ = (place_of(each, call.span) for each in tiles)
    bias = place_of(call.args[4], call.span) if init is MadInit.BIAS else None
    fields: Fields = {
        "c": place_of(var, call.span).address,
        "a": a.address,
        "b": b.address,
        "bias": bias.address if bias is not None else 0,
        "m": a.valid_rows,
        "k": a.valid_cols,
        "n": b.valid_cols,
        "a_type": ElementType[a.dtype.name],
        "b_type": ElementType[b.dtype.name],
        "init": init,
    }
    return operands.step("mad_mx", fields, call)


def _store(operands: Operands, var: Var | None, call: Call) -> Step:
    source = place_of(call.args[0], call.span)
    if source.space is not Space.L0C:
        message = (
            f"A store of the cube core must come from Acc, not from {space_name(call.args[0])}"
        )
        raise IRValueError(message, call.span)
    tensor = cast("TensorType", call.args[2].type)
    if tensor.dtype not in _CONVERT:
        names = ", ".join(dtype.name for dtype in _CONVERT)
        message = f"A store of the cube core must write {names}, not {tensor.dtype.name}"
        raise IRTypeError(message, call.span)
    view = operands.matrix(call, 2)
    tile = cast("TileType", call.args[0].type)
    shapes = call.args[3:]
    if shapes and not structural_equal(shapes[0], MakeTuple(tile.shape)):
        message = (
            "A store of the cube core must keep the tile's shape, not write it by other shapes"
        )
        raise IRValueError(message, call.span)
    row, col = _coordinates(call, 1)
    fields: Fields = {
        "view": view,
        "xr": row,
        "xc": col,
        "l0c": source.address,
        "rows": source.valid_rows,
        "cols": source.valid_cols,
        "src_rows": round_up(source.valid_rows, FRACTAL_ROWS),
        "convert": _CONVERT[cast("SimpleDType", tensor.dtype)],
    }
    if var is not None:
        operands.tensors[var] = operands.tensors[cast("Var", call.args[2])]
    return operands.step("l0c_to_gm", fields, call)


def _view(operands: Operands, var: Var | None, call: Call) -> None:
    if var is not None:
        operands.tensors[var] = operands.tensors[cast("Var", call.args[0])]


def _coordinates(call: Call, position: int) -> tuple[Expr, ...]:
    return cast("MakeTuple", call.args[position]).elements


_RULES: dict[str, Callable[[Operands, Var | None, Call], Step | None]] = {
    "tile.load": _load,
    "tile.move": _move,
    "tile.store": _store,
    "tile.tget_scale_addr": _nothing,
    "tile.matmul_mx": _matmul_mx,
    "tile.matmul_mx_acc": _matmul_mx_acc,
    "tile.matmul_mx_bias": _matmul_mx_bias,
    "tensor.view": _view,
}
