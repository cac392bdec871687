"""Shapes and types of MX scale tensors, logical and cut into boxes.

    MX_A_ZZ [M, G]  ->  [1, M/16, G/2, 16, 2]
    MX_B_NN [G, N]  ->  [1, N/16, G/2, 16, 2]

The axis that is cut into boxes of 16 is the *block* axis, the one cut into boxes of 2 the *group* axis.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..errors import IRValueError
from ..expr import ConstInt, Expr, Type, index
from ..ops.rules_memory import is_packed
from ..types import DistributedTensorType, TensorLayout, TensorType, TensorView
from .mx_box_layout import assert_boxes_are_dense

if TYPE_CHECKING:
    from ..errors import Span
    from ..types import Dims

_BLOCK_AXIS = {TensorLayout.MX_A_ZZ: 0, TensorLayout.MX_B_NN: 1}


def layout_of(type_: Type) -> TensorLayout | None:
    """Return the MX layout of a tensor type, or None for any other type."""
    if isinstance(type_, TensorType) and type_.layout.is_mx:
        return type_.layout
    return None


def by_axis(dims: Dims, layout: TensorLayout) -> tuple[Expr, Expr]:
    """Return the block and the group entry of rank-2 dimensions or offsets."""
    first, second = dims
    return (first, second) if _BLOCK_AXIS[layout] == 0 else (second, first)


def check_rank(dims: Dims, layout: TensorLayout, what: str, span: Span) -> None:
    """Check that logical dimensions have rank 2.

    Raises:
        IRValueError: For another rank; `what` says what they are.
    """
    if len(dims) != 2:
        message = (
            f"An {layout.value} tensor must have a rank-2 logical {what}, not rank {len(dims)}"
        )
        raise IRValueError(message, span)


def blocked_shape(shape: Dims, layout: TensorLayout, span: Span) -> tuple[Expr, ...]:
    """Return `[1, block/16, group/2, 16, 2]` for a logical rank-2 shape.

    Raises:
        IRValueError: For another rank, a symbolic extent, or one that does not fill its boxes.
    """
    check_rank(shape, layout, "shape", span)
    block, group = by_axis(shape, layout)
    rows = _static(block, "block", layout, span)
    groups = _static(group, "group", layout, span)
    _check_extent(rows, BOX_ROWS, "block", layout, span)
    _check_extent(groups, BOX_GROUPS, "group", layout, span)
    return _boxes(rows // BOX_ROWS, groups // BOX_GROUPS)


@lru_cache(maxsize=1024)
def _boxes(rows: int, columns: int) -> tuple[Expr, ...]:
    return tuple(map(index, (1, rows, columns, BOX_ROWS, BOX_GROUPS)))


def _check_extent(extent: int, unit: int, axis: str, layout: TensorLayout, span: Span) -> None:
    if extent <= 0 or extent % unit:
        message = (
            f"The {axis} dimension of an {layout.value} tensor must be a positive multiple of {unit}, "
            f"not {extent}"
        )
        whole = max(-(-extent // unit), 1) * unit
        hint = f"declare {whole}, and load less of them by valid_shape"
        raise IRValueError(message, span, hint=hint)


def _static(extent: Expr, axis: str, layout: TensorLayout, span: Span) -> int:
    if isinstance(extent, ConstInt):
        return extent.value
    message = (
        f"An {layout.value} tensor must have a static {axis} dimension, not a symbolic one: dynamic "
        "MX tensors are not supported yet"
    )
    raise IRValueError(message, span)


def blocked_type(type_: Type, span: Span) -> Type:
    """Return an MX tensor type in its blocked form, and any other type as it is.

    A tuple is not looked into.

    Raises:
        IRValueError: For an MX tensor that is distributed, not packed, or valid only in part, and as
            :func:`blocked_shape`.
    """
    match type_:
        case DistributedTensorType() if type_.layout.is_mx:
            message = (
                f"A distributed tensor must have layout ND, not {type_.layout.value}: MX layouts are "
                "not supported on distributed tensors yet"
            )
            raise IRValueError(message, span)
        case TensorType() if type_.layout.is_mx:
            return _blocked_tensor(type_, span)
        case _:
            return type_


def _blocked_tensor(type_: TensorType, span: Span) -> TensorType:
    layout, view = type_.layout, type_.tensor_view
    shape = blocked_shape(type_.shape, layout, span)
    if type_.valid_shape:
        message = (
            f"An {layout.value} tensor must be valid as a whole: a partial tensor valid_shape is not "
            "supported yet; narrow the load's valid_shape instead"
        )
        raise IRValueError(message, span)
    if type_.stride and not is_packed(type_):
        message = (
            f"An {layout.value} tensor must be packed, not have strides of its own: its boxes lie one "
            "behind the other"
        )
        raise IRValueError(message, span)
    assert view is not None, "a layout stands in a view"
    assert_boxes_are_dense(shape, type_.shape, layout)
    return TensorType(shape, type_.dtype, type_.memref, TensorView((), layout, (), view.pad))
