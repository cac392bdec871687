"""Whether a value fits what is written about it, and what follows from both together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..dtypes import Index, Int64
from ..expr import ScalarType, UnknownType
from ..printer_text import type_text
from ..types import (
    MemorySpace,
    TensorType,
    TileType,
    TileView,
    TupleType,
    constant_dim,
    implicit_tile_view,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..expr import Type
    from ..slots import Slot
    from ..types import Dims

_WORDS = (Index, Int64)


@dataclass(frozen=True)
class Written:
    """A type as written: what it says, and which of its parts it leaves to inference.

    Attributes:
        type: The type by itself.
        has_view: Whether a tensor view or layout was written.
        tile_view: The fields of the tile view that was written, or None.
        parts: The elements of a tuple.
        slot: The slot of a buffer in which a tile is to lie.
    """

    type: Type
    has_view: bool = False
    tile_view: Mapping[str, Any] | TileView | None = None
    parts: tuple[Written, ...] = ()
    slot: Slot | None = None


def filled_view(
    shape: Dims, space: MemorySpace | None, written: Mapping[str, Any] | TileView | None
) -> TileView | None:
    """Return a tile view whose unwritten fields are those of the memory space."""
    if written is None or isinstance(written, TileView):
        return written
    implicit = implicit_tile_view(shape, space)
    blayout, slayout, fractal = implicit.arrangement
    fields: dict[str, Any] = {"blayout": blayout, "slayout": slayout, "fractal": fractal}
    return TileView(**{**fields, **written})


def mismatch(wanted: Type, given: Type, *, check_layout: bool = True) -> str | None:
    """Return the end of a sentence about why `given` is not `wanted`, or None if it fits.

    Compared are kind, dtype, rank, constant dimensions, and the layout of a tensor; strides and a
    memory space count only where both have them.
    """
    match wanted, given:
        case ScalarType(a), ScalarType(b):
            fits = a is b or (a in _WORDS and b in _WORDS)
        case TensorType(), TensorType():
            fits = _same_array(wanted, given) and (not check_layout or _same_order(wanted, given))
        case TileType(), TileType():
            spaces = {wanted.memory_space, given.memory_space} - {None}
            fits = _same_array(wanted, given) and (len(spaces) < 2 or not check_layout)
        case TupleType(), TupleType():
            pairs = list(zip(wanted.types, given.types, strict=False))
            fits = len(wanted.types) == len(given.types) and all(
                mismatch(a, b, check_layout=check_layout) is None for a, b in pairs
            )
        case _:
            fits = False
    if fits:
        return None
    found = "nothing" if isinstance(given, UnknownType) else type_text(given)
    return f"must be {type_text(wanted)}, not {found}"


def _same_order(wanted: TensorType, given: TensorType) -> bool:
    strides_differ = wanted.stride and given.stride and wanted.tensor_view != given.tensor_view
    return wanted.layout is given.layout and not strides_differ


def _same_array(wanted: TensorType | TileType, given: TensorType | TileType) -> bool:
    if wanted.dtype is not given.dtype or len(wanted.shape) != len(given.shape):
        return False
    for a, b in zip(wanted.shape, given.shape, strict=True):
        left, right = constant_dim(a), constant_dim(b)
        if left is not None and right is not None and left != right:
            return False
    return True


def merge(written: Written, inferred: Type) -> Type:
    """Return the type of a value from what is written about it and what its op infers.

    A memory space, view or memory reference that is written wins; one that is not comes from
    inference. The two must fit, as :func:`mismatch` says with `check_layout` off.
    """
    said = written.type
    match said, inferred:
        case TensorType(), TensorType():
            view = said.tensor_view if written.has_view else inferred.tensor_view
            return type(said)(said.shape, said.dtype, said.memref or inferred.memref, view)
        case TileType(), TileType():
            space = said.memory_space if said.memory_space is not None else inferred.memory_space
            view = filled_view(said.shape, space, written.tile_view)
            if view is None and space is inferred.memory_space:
                view = inferred.tile_view
            return TileType(said.shape, said.dtype, said.memref or inferred.memref, view, space)
        case TupleType(), TupleType():
            pairs = zip(written.parts, inferred.types, strict=True)
            return TupleType(merge(part, type_) for part, type_ in pairs)
        case _:
            return said
