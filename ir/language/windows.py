"""Square brackets behind a tensor or a tile.

`x[m : m + 64, :]` is a window, read by a slice, written by an assembly; `x[i, j]` is one element, and
`x[m : m + 64, j]` a window without the axis of which it takes one element.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..errors import (
    InvalidOperationError,
    IRTypeError,
    IRValueError,
    ParserTypeError,
    UnsupportedFeatureError,
)
from ..expr import Call, Expr, ScalarType, index
from ..ops import create_op_call
from ..ops.checks import same_dim, show_dims
from ..types import TensorType, TileType, constant_dim
from .distance import constant_distance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..types import Dims
    from .context import Context
    from .expressions import ExpressionParser

_HINT = "a window is written x[0:16, :], or x[m : m + 16, :] where it begins at a variable"


class WindowParser:
    """Reads the windows and the single elements of one function's tensors and tiles."""

    def __init__(self, context: Context, expressions: ExpressionParser) -> None:
        self._context = context
        self._expressions = expressions

    def read(self, array: Expr, node: ast.Subscript) -> Call:
        """Return the window, or the element, that `node` takes from a tensor or a tile."""
        at = self._element(array, node)
        if at is not None:
            return self._call(f"{_kind(array)}.read", [array, at], node)
        offset, extents, dropped = self._window(array, node)
        kwargs = {"drop_dims": dropped}
        return self._call(f"{_kind(array)}.slice", [array, extents, offset], node, kwargs)

    def write(self, node: ast.Subscript, value: ast.expr) -> Call:
        """Return the call that writes a tensor or a tile into the window, or a scalar to the element.

        Raises:
            UnsupportedFeatureError: When what is written to is neither tensor nor tile, or what is
                written is something else.
            ParserTypeError: When the two are of different shapes.
        """
        target = self._expressions.parse(node.value)
        if not isinstance(target.type, TensorType | TileType) or not isinstance(
            node.value, ast.Name
        ):
            message = f"What is written to must be a window of a tensor, not {ast.unparse(node)}"
            raise self._context.error(UnsupportedFeatureError, message, node, hint=_HINT)
        source = self._expressions.parse(value)
        kind, at = _kind(target), self._element(target, node)
        if at is not None and isinstance(source.type, ScalarType):
            return self._call(f"{kind}.write", [target, at, source], node)
        if not isinstance(source.type, type(target.type)):
            message = f"A {kind} must be written to {ast.unparse(node)}, not {ast.unparse(value)}"
            hint = (
                "a tile is stored by out = pl.store(tile, offsets, out)"
                if isinstance(source.type, TileType)
                else "a scalar is written to one element, as in x[0, 0] = 1.0"
            )
            raise self._context.error(UnsupportedFeatureError, message, value, hint=hint)
        assert isinstance(source.type, TensorType | TileType)
        offset, extents, dropped = self._window(target, node)
        shape = source.type.shape
        if dropped and len(shape) == len(extents) - len(dropped):
            kept = [dim for axis, dim in enumerate(extents) if axis not in dropped]
            if all(same_dim(a, b) is not False for a, b in zip(shape, kept, strict=True)):
                source = self._call(f"{kind}.reshape", [source, extents], node)
                shape = tuple(extents)
        if len(shape) != len(extents) or any(
            same_dim(a, b) is False for a, b in zip(shape, extents, strict=True)
        ):
            message = (
                f"A {kind} {show_dims(tuple(extents))} must be written to {ast.unparse(node)}, not "
                f"one {show_dims(shape)}"
            )
            raise self._context.error(ParserTypeError, message, value)
        return self._call(f"{kind}.assemble", [target, source, offset], node)

    def _element(self, array: Expr, node: ast.Subscript) -> list[Expr] | None:
        """Return the index of a single element, or None where `node` takes a window."""
        assert isinstance(array.type, TensorType | TileType), array.type
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) != len(array.type.shape) or any(isinstance(p, ast.Slice) for p in parts):
            return None
        return [self._expressions.scalar(part) for part in parts]

    def _call(
        self,
        name: str,
        args: Sequence[object],
        node: ast.Subscript,
        kwargs: Mapping[str, object] | None = None,
    ) -> Call:
        try:
            return create_op_call(name, args, kwargs or {}, self._context.span(node))
        except (IRTypeError, IRValueError) as error:
            text = error.message.removeprefix(f"{name}: ")
            message = f"pl operation {name!r}: {text}"
            raise self._context.error(
                InvalidOperationError, message, node, hint=error.hint
            ) from error

    def _window(
        self, array: Expr, node: ast.Subscript
    ) -> tuple[list[Expr], list[Expr], tuple[int, ...]]:
        """Return offset and extent along each axis, and the axes of which one element is taken.

        Axes of which nothing is said are taken whole.
        """
        assert isinstance(array.type, TensorType | TileType), array.type
        shape: Dims = array.type.shape
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) > len(shape):
            message = (
                f"A window of a {_kind(array)} of rank {len(shape)} must have at most {len(shape)} "
                f"slices, not {len(parts)}"
            )
            raise self._context.error(ParserTypeError, message, node, hint=_HINT)
        pairs = [self._axis(part, dim) for part, dim in zip(parts, shape, strict=False)]
        pairs += [(index(0), dim) for dim in shape[len(parts) :]]
        dropped = tuple(axis for axis, part in enumerate(parts) if not isinstance(part, ast.Slice))
        return [offset for offset, _ in pairs], [extent for _, extent in pairs], dropped

    def _axis(self, part: ast.expr, dim: Expr) -> tuple[Expr, Expr]:
        if not isinstance(part, ast.Slice):
            return self._expressions.scalar(part), index(1)
        if part.step is not None:
            found = ast.unparse(part)
            message = f"Along each axis a window must be a slice without a step, not {found}"
            raise self._context.error(UnsupportedFeatureError, message, part, hint=_HINT)
        start = index(0) if part.lower is None else self._expressions.scalar(part.lower)
        stop = dim if part.upper is None else self._expressions.scalar(part.upper)
        if constant_dim(start) == 0:
            return start, stop
        extent = constant_distance(stop, start)
        if extent is None:
            message = f"A window must have a constant extent, which {ast.unparse(part)} has not"
            raise self._context.error(ParserTypeError, message, part, hint=_HINT)
        return start, index(extent)


def _kind(array: Expr) -> str:
    """Return what `array` is, which is also how the names of its ops begin."""
    return "tensor" if isinstance(array.type, TensorType) else "tile"
