"""Checks that several type rules share: dimensions, windows, and names for error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ..dtypes import CompoundDType
from ..expr import Expr, MakeTuple, Max, Min, Sub, index
from ..placement import NZ_BLOCKED_RANK
from ..structural import structural_equal
from ..types import (
    SCALE_ARRANGEMENT,
    TensorLayout,
    TensorType,
    TileType,
    TileView,
    constant_dim,
    constant_dims,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..dtypes import DType
    from ..types import Dims
    from .row import CallSite

_NIBBLE = 4
MX_BLOCKED_RANK = 5
"""Rank of an MX scale tensor once it is cut into boxes."""

LOADED_LESS = (
    "narrow valid_shape to what the tensor has, as in pl.load(x, [32, 0], [32, 64], [16, 64]), or let "
    "clamp=True do so; in a loop, give the last, shorter window a branch of its own, with constants"
)
"""What to do about a load that leaves its tensor."""
STORED_LESS = (
    "a store writes what is valid of its tile: load the tile with a narrower valid_shape, or narrow "
    "it by pl.set_validshape(tile, rows, cols) first"
)
"""What to do about a store that leaves its tensor."""

T = TypeVar("T", TensorType, TileType)


def operand_type(site: CallSite, position: int, kind: type[T]) -> T:
    """Return the type of an operand whose kind the row has checked."""
    found = site.args[position].type
    assert isinstance(found, kind), f"{site.row.name}: operand {position} is {found!r}"
    return found


def operand_dims(site: CallSite, position: int) -> Dims:
    """Return the elements of a tuple operand whose kind the row has checked."""
    found = site.args[position]
    assert isinstance(found, MakeTuple), f"{site.row.name}: operand {position} is {found!r}"
    return found.elements


def show_dims(dims: Dims) -> str:
    """Return dimensions for an error message; a symbolic one shows as `?` or its name."""
    return f"[{', '.join(_show_dim(d) for d in dims)}]"


def _show_dim(dim: Expr) -> str:
    value = constant_dim(dim)
    return str(value) if value is not None else getattr(dim, "name_hint", "?")


def same_dim(left: Expr, right: Expr) -> bool | None:
    """Return whether two dimensions are equal; None when only the run can tell."""
    a, b = constant_dim(left), constant_dim(right)
    if a is not None and b is not None:
        return a == b
    return True if left is right or structural_equal(left, right) else None


def same_dims(left: Dims, right: Dims) -> bool:
    """Return whether no dimension is provably different."""
    return len(left) == len(right) and all(
        same_dim(a, b) is not False for a, b in zip(left, right, strict=True)
    )


def shape_fault(shape: Dims, dtype: DType) -> str | None:
    """Return what is wrong with a shape of `dtype` as a sentence, or None.

    Constant dimensions must be positive. Elements of 4 bits lie two in a byte, so their last
    dimension must be even.
    """
    for dim in shape:
        value = constant_dim(dim)
        if value is not None and value <= 0:
            return f"every dimension must be positive, not {value} in {show_dims(shape)}"
    last = constant_dim(shape[-1]) if shape else None
    if is_nibble(dtype) and last is not None and last % 2:
        return (
            f"the last dimension of {dtype.name}, which lies two in a byte, must be even, "
            f"not {last} in {show_dims(shape)}"
        )
    return None


def is_nibble(dtype: DType) -> bool:
    """Return whether two elements of `dtype` share a byte; those of a compound are its plane 0."""
    element = dtype.simple_types[0] if isinstance(dtype, CompoundDType) else dtype
    return getattr(element, "bits", 0) == _NIBBLE


def check_shape(site: CallSite, shape: Dims, dtype: DType) -> None:
    """Refuse a shape that is empty in some dimension, or odd where elements share a byte."""
    fault = shape_fault(shape, dtype)
    if fault is not None:
        raise site.value_error(fault)


def check_rank(site: CallSite, dims: Dims, rank: int, what: str, owner: str) -> None:
    """Refuse `dims` unless there is one for every dimension of `owner`."""
    if len(dims) != rank:
        message = f"{what} must have {rank} elements, one a dimension of {owner}, not {len(dims)}"
        raise site.value_error(message)


def check_offsets(site: CallSite, offsets: Dims, dtype: DType) -> None:
    """Refuse a constant offset that is negative, or odd where elements share a byte."""
    for axis, offset in enumerate(offsets):
        value = constant_dim(offset)
        if value is not None and value < 0:
            message = f"the offset on axis {axis} must not be negative, but is {value}"
            raise site.value_error(message)
    last = constant_dim(offsets[-1]) if offsets else None
    if is_nibble(dtype) and last is not None and last % 2:
        message = (
            f"the last offset into {dtype.name}, which lies two in a byte, must be even, not {last}"
        )
        raise site.value_error(message)


def check_window(
    site: CallSite,
    offsets: Dims,
    extents: Dims,
    shape: Dims,
    *,
    what: str,
    owner: str = "the tensor",
    hint: str | None = None,
) -> None:
    """Refuse a window that provably reaches beyond its owner, which has the given shape."""
    for axis, (offset, extent, dim) in enumerate(zip(offsets, extents, shape, strict=True)):
        size, limit = constant_dim(extent), constant_dim(dim)
        start = constant_dim(offset)
        if size is None or limit is None:
            continue
        first = start if start is not None else 0
        if first + size > limit:
            where = f" from offset {first}" if start is not None else ""
            message = (
                f"{what} must end within {owner}, but takes {size} elements{where} on axis "
                f"{axis}, which has {limit}"
            )
            raise site.value_error(message, hint)


def check_valid_shape(site: CallSite, valid: Dims, window: Dims) -> None:
    """Refuse a valid shape that is provably empty, or larger than the window that it is part of."""
    for axis, (part, whole) in enumerate(zip(valid, window, strict=True)):
        size, limit = constant_dim(part), constant_dim(whole)
        if size is not None and limit is not None and not 0 < size <= limit:
            message = f"valid_shape must be in 1..{limit} on axis {axis}, not {size}"
            raise site.value_error(message)


def clamped_extents(offsets: Dims, extents: Dims, shape: Dims) -> Dims:
    """Return what of a window lies within a tensor of `shape`, axis by axis."""
    result: list[Expr] = []
    for offset, extent, dim in zip(offsets, extents, shape, strict=True):
        known = constant_dims((offset, extent, dim))
        if known is not None:
            start, size, limit = known
            result.append(index(max(0, min(size, limit - start)), extent.span))
        else:
            left = Max(index(0), Sub(dim, offset, index(0).dtype), index(0).dtype)
            result.append(Min(extent, left, index(0).dtype, extent.span))
    return tuple(result)


def arrangement_name(view: TileView) -> str:
    """Return the layout that a tile's boxes follow, as a kernel writes it."""
    for layout, arrangement in SCALE_ARRANGEMENT.items():
        if view.arrangement == arrangement:
            return layout.name
    return "ND"


def is_blocked(type_: object) -> bool:
    """Return whether a type is a tensor, of MX scales or in NZ, that has been cut into boxes."""
    return is_mx_blocked(type_) or is_nz_blocked(type_)


def has_pass_form(result: object, operands: Sequence[Expr]) -> bool:
    """Return whether a call has a form that only passes write.

    Args:
        result: The type that it has or is annotated with, or None.
        operands: Its operands.
    """
    types = [operand.type for operand in operands]
    if is_blocked(result) or any(is_blocked(type_) for type_ in types):
        return True
    source = types[0] if types else None
    flattened = isinstance(result, TileType) and len(result.shape) == 2
    return flattened and isinstance(source, TensorType) and len(source.shape) > 2


def is_mx_blocked(type_: object) -> bool:
    """Return whether a type is an MX scale tensor that has been cut into boxes."""
    return (
        isinstance(type_, TensorType) and type_.layout.is_mx and len(type_.shape) == MX_BLOCKED_RANK
    )


def is_nz_blocked(type_: object) -> bool:
    """Return whether a type is a tensor in NZ that has been cut into boxes."""
    return (
        isinstance(type_, TensorType)
        and type_.layout is TensorLayout.NZ
        and len(type_.shape) == NZ_BLOCKED_RANK
    )
