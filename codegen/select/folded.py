"""Windows of tensors of more than two axes, for instructions whose views have two.

The axes before a matrix are folded into its rows, or its columns of boxes; one window is one piece of
the folded axis, so that one instruction takes it.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, cast

from ...ir.collapsing import folded_offset, is_contiguous, plus
from ...ir.errors import IRTypeError, IRValueError
from ...ir.expr import index
from ...ir.types import TensorLayout, TensorType
from ..tensors import Layout, View
from .operands import coordinates
from .places import constant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...ir.dtypes import SimpleDType
    from ...ir.expr import Call, Expr, Var
    from ..tree import Fields, Step
    from .operands import Operands
    from .places import Place

    Window = tuple[int, ...]

_MATRIX_RANK = 2


def select_nz_load(operands: Operands, place: Place, call: Call) -> Step:
    """Return the load of boxes of one matrix of a tensor in NZ.

    Raises:
        IRTypeError: For a tensor that has not been cut into boxes, or elements without a datapath.
        IRValueError: For a window of several matrices.
    """
    batches, across, down, *box = _extents(call, 0)
    bits = cast("SimpleDType", cast("TensorType", call.args[0].type).dtype).bits
    if bits > 32:
        message = (
            f"A load of the cube core from NZ must be of at most 32 bits an element, not {bits}"
        )
        raise IRTypeError(message, call.span)
    window = constant(coordinates(call, 2), "The window of a load", call.span)
    if window[0] != 1:
        message = (
            "A load of the cube core must take one matrix of a tensor in NZ at a time, not "
            f"{window[0]}"
        )
        raise IRValueError(message, call.span)
    batch, column, row, *_ = coordinates(call, 1)
    column_of_all = folded_offset((batch, column), window[:2], (batches, across), operands.ranges)
    stride = (batches * across * down * prod(box), down * prod(box), prod(box), box[1], 1)
    view = View(
        operands.tensors[cast("Var", call.args[0])],
        Layout.NZ,
        bits,
        (1, batches * across, down, *box),
        stride,
    )
    fields: Fields = {
        "view": operands.number(view),
        "xj": column_of_all,
        "xi": row,
        "l1": place.address,
        "col_boxes": window[1],
        "row_boxes": window[2],
        "dst_pitch": window[2],
    }
    return operands.step("gm_to_l1_nz_boxes", fields, call)


def pieces(window: Sequence[int], extents: Sequence[int]) -> list[tuple[Window, Window]]:
    """Return the parts of a window whose rows follow one another in the tensor, in order.

    Args:
        window: Extents of the window in the tensor's axes.
        extents: Extents of the tensor.

    Returns:
        Where each part begins in the window, and its extents; all parts have the same.
    """
    apart = next(
        n for n in range(len(window)) if is_contiguous((1,) * n + (*window[n:-1],), extents[:-1])
    )
    part = (1,) * apart + tuple(window[apart:])
    rest = (0,) * (len(window) - apart)
    return [((*first, *rest), part) for first in product(*map(range, window[:apart]))]


def select_rows(
    operands: Operands,
    call: Call,
    position: int,
    window: Sequence[int],
    first: Sequence[int] = (),
) -> tuple[int, Expr, Expr]:
    """Return the view of a packed ND tensor in two dimensions, and row and column of a window.

    Args:
        operands: The kernel's tensors and views.
        call: A load or a store, its offsets at argument 1.
        position: Which argument the tensor is; one of a single axis is a row.
        window: Extents of the window in the tensor's axes.
        first: How far behind the call's offsets it begins along each axis, if it does.

    Raises:
        IRTypeError: For a tensor in another layout.
        IRValueError: For a window whose rows do not follow one another.
    """
    type_ = cast("TensorType", call.args[position].type)
    offsets = coordinates(call, 1)
    if first:
        offsets = tuple(plus(at, index(more)) for at, more in zip(offsets, first, strict=True))
    if len(type_.shape) == _MATRIX_RANK or type_.layout is not TensorLayout.ND:
        matrix = operands.matrix(call, position)
        row, column = offsets
        return matrix, row, column
    *leading, columns = _extents(call, position)
    before = window[: len(leading)]
    if not is_contiguous(before, leading):
        message = (
            f"{call.op.name} of the cube core must take rows that follow one another, which those of "
            f"{list(window)} of {[*leading, columns]} do not"
        )
        raise IRValueError(message, call.span, hint="one matrix at a time")
    bits = cast("SimpleDType", type_.dtype).bits
    number = operands.tensors[cast("Var", call.args[position])]
    view = View(number, Layout.ND, bits, (prod(leading), columns), (columns, 1))
    row = folded_offset(offsets[:-1], before, leading, operands.ranges)
    return operands.number(view), row, offsets[-1]


def _extents(call: Call, position: int) -> tuple[int, ...]:
    type_ = cast("TensorType", call.args[position].type)
    return constant(type_.shape, "The shape of a tensor that is compiled", call.span)
