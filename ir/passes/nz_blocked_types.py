"""Shapes and types of tensors in NZ, logical and cut into boxes.

    [..., R, C]  ->  [B, C/c0, R/16, 16, c0],  c0 = 32 bytes / bytes of an element

Leading axes are folded into B. A box is 16 rows by 32 bytes; boxes follow one another down a column.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ..errors import IRValueError
from ..expr import Type, index
from ..numerics.nz import NZ_ROWS, nz_columns
from ..ops.checks import show_dims
from ..ops.rules_memory import NZ_RANKS
from ..types import (
    DistributedTensorType,
    TensorLayout,
    TensorType,
    TensorView,
    TupleType,
    constant_dim,
    constant_dims,
)

if TYPE_CHECKING:
    from ..errors import Span
    from ..types import Dims

_BYTE = 8


def is_nz(type_: Type) -> bool:
    """Return whether a type is a tensor in NZ."""
    return isinstance(type_, TensorType) and type_.layout is TensorLayout.NZ


def blocked_type(type_: Type, span: Span) -> Type:
    """Return `type_` with every NZ tensor in it blocked; the same object when there is none.

    Raises:
        IRValueError: For an NZ tensor that is distributed, has strides, is valid only in part, has
            elements narrower than a byte, or a shape that is not made of boxes.
    """
    match type_:
        case TupleType():
            types = tuple(blocked_type(t, span) for t in type_.types)
            same = all(a is b for a, b in zip(types, type_.types, strict=True))
            return type_ if same else TupleType(types)
        case TensorType() if type_.layout is TensorLayout.NZ:
            return _blocked_tensor(type_, span)
        case _:
            return type_


def _blocked_tensor(type_: TensorType, span: Span) -> TensorType:
    if isinstance(type_, DistributedTensorType):
        message = (
            "A distributed tensor must have layout ND, not NZ: NZ is not supported on distributed "
            "tensors yet"
        )
        raise IRValueError(message, span)
    if type_.dtype.bits < _BYTE:
        message = (
            "A tensor in NZ must have elements of whole bytes, not of the "
            f"{type_.dtype.bits} bits of {type_.dtype.name}"
        )
        raise IRValueError(message, span)
    shape = blocked_extents(type_.shape, type_.dtype.bits, span, what="A tensor in NZ")
    if type_.valid_shape:
        message = (
            "A tensor in NZ must be valid as a whole: a partial tensor valid_shape is not supported "
            "yet"
        )
        raise IRValueError(message, span)
    if type_.stride:
        message = "A tensor in NZ must be packed, not have strides of its own"
        raise IRValueError(message, span)
    pad = type_.tensor_view.pad if type_.tensor_view else None
    assert pad is not None, "a layout stands in a view"
    return TensorType(shape, type_.dtype, type_.memref, TensorView((), TensorLayout.NZ, (), pad))


def blocked_extents(dims: Dims, bits: int, span: Span, *, what: str) -> Dims:
    """Return the blocked form of a shape or of a window; `what` begins the error's sentence.

    Raises:
        IRValueError: For another rank than 2 to 4, symbolic extents, or extents that are no multiples
            of a box.
    """
    if len(dims) not in NZ_RANKS:
        message = f"{what} must have rank 2 to {NZ_RANKS[-1]}, not {len(dims)}"
        raise IRValueError(message, span)
    units = {-2: ("rows", NZ_ROWS), -1: ("columns", nz_columns(bits))}
    for axis, (name, unit) in units.items():
        extent = constant_dim(dims[axis])
        if extent is None:
            message = (
                f"{what} must have static {name}, not symbolic ones: dynamic NZ tensors are not "
                "supported yet"
            )
            raise IRValueError(message, span)
        if extent <= 0 or extent % unit:
            message = f"{what} must have a positive multiple of {unit} {name}, not {extent}"
            raise IRValueError(message, span)
    known = constant_dims(dims)
    if known is None or min(known) <= 0:
        message = f"{what} must have constant, positive leading extents, not {show_dims(dims)}"
        raise IRValueError(message, span)
    *leading, rows, columns = known
    wide = nz_columns(bits)
    shape = (prod(leading), columns // wide, rows // NZ_ROWS, NZ_ROWS, wide)
    return tuple(index(extent) for extent in shape)
