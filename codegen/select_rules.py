"""Instruction selection, op by op: a rule for each op that a kernel of the cube core may use."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, TypeAlias, cast

from ..ir.core import SeqStmts
from ..ir.dtypes import BFloat16, DType, Float16
from ..ir.errors import IRTypeError, IRValueError
from ..ir.expr import MakeTuple, Op
from ..ir.ranges import Ranges
from ..ir.tile_bytes import FRACTAL_ROWS, round_up
from ..ir.types import TensorLayout, TensorType, TileLayout, TileType
from .access import accesses
from .isa.vocabulary import Convert, ElementType, MadInit, Space
from .kernel import Layout, View
from .places import Place, constant, place_of, space_name
from .select_folded import select_nz_load, select_rows
from .select_moves import select_extract, select_move
from .tree import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..ir.dtypes import SimpleDType
    from ..ir.expr import Call, Expr, Var
    from .tree import Region

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
        ranges: What values scalars can take.
    """

    tensors: dict[Var, int] = field(default_factory=dict["Var", int])
    data_of: dict[Var, Var] = field(default_factory=dict["Var", "Var"])
    views: list[View] = field(default_factory=list[View])
    ranges: Ranges = field(default_factory=lambda: Ranges(SeqStmts(())))
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
        return self.number(view)

    def number(self, view: View) -> int:
        """Return the number of a view; equal ones have one."""
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

    def step(
        self, mnemonic: str, fields: Fields, call: Call, *, within: Region | None = None
    ) -> Step:
        """Return an instruction with the bytes that it touches.

        `within` is all that it can read, where a register says what of it.
        """
        reads, writes = accesses(mnemonic, fields, self.views)
        return Step(mnemonic, fields, call.span, reads if within is None else (within,), writes)


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
    layout = cast("TensorType", call.args[0].type).layout
    if layout.is_mx:
        return _load_boxes(operands, place, call)
    if layout is TensorLayout.NZ:
        return select_nz_load(operands, place, call)
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
    window = (source.valid_rows, source.valid_cols)
    for shapes in call.args[3:]:
        window = constant(cast("MakeTuple", shapes).elements, "The shapes of a store", call.span)
        if (prod(window[:-1]), window[-1]) != (source.valid_rows, source.valid_cols):
            message = (
                "A store of the cube core must keep the tile's shape, not write it by other shapes"
            )
            raise IRValueError(message, call.span)
    view, row, col = select_rows(operands, call, 2, window)
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
    "tile.move": select_move,
    "tile.extract": select_extract,
    "tile.store": _store,
    "tile.tget_scale_addr": _nothing,
    "tile.matmul_mx": _matmul_mx,
    "tile.matmul_mx_acc": _matmul_mx_acc,
    "tile.matmul_mx_bias": _matmul_mx_bias,
    "tensor.view": _view,
}
