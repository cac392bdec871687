"""The expressions that stand in a node beside its children: in types, and in attributes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from .node import Expr, Type
from .types import TensorType, TileType, TupleType

if TYPE_CHECKING:
    from collections.abc import Sequence


def type_exprs(type_: Type) -> tuple[Expr, ...]:
    """Return the expressions that stand in a type: dimensions, strides, valid extents."""
    match type_:
        case TensorType():
            view = type_.tensor_view
            return type_.shape + (view.stride + view.valid_shape if view else ())
        case TileType():
            tile_view = type_.tile_view
            if tile_view is None:
                return type_.shape
            start = () if tile_view.start_offset is None else (tile_view.start_offset,)
            return type_.shape + tile_view.valid_shape + tile_view.stride + start
        case TupleType():
            return tuple(e for inner in type_.types for e in type_exprs(inner))
        case _:
            return ()


def attribute_exprs(values: Iterable[object]) -> Iterable[Expr]:
    """Return the expressions among attributes' values, those in lists and dictionaries included."""
    for value in values:
        if isinstance(value, Expr):
            yield value
        elif isinstance(value, list | tuple):
            yield from attribute_exprs(cast("Sequence[object]", value))
        elif isinstance(value, Mapping):
            yield from attribute_exprs(cast("Mapping[str, object]", value).values())
