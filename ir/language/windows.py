"""Square brackets behind a tensor: `x[m : m + 64, :]` is a window, read by a slice, written by an assembly."""

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
from ..expr import Add, Call, ConstInt, Expr, index
from ..mx_uses import SLICE
from ..ops import create_op_call
from ..ops.checks import same_dim, show_dims
from ..structural import structural_equal
from ..types import TensorType, constant_dim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types import Dims
    from .context import Context
    from .expressions import ExpressionParser

_HINT = "a window is written x[0:16, :], or x[m : m + 16, :] where it begins at a variable"


class WindowParser:
    """Reads the windows of one function's tensors."""

    def __init__(self, context: Context, expressions: ExpressionParser) -> None:
        self._context = context
        self._expressions = expressions

    def read(self, tensor: Expr, node: ast.Subscript) -> Call:
        """Return the window that `node` cuts from a tensor."""
        offset, extents = self._window(tensor, node)
        return self._call(SLICE, [tensor, extents, offset], node)

    def write(self, node: ast.Subscript, value: ast.expr) -> Call:
        """Return the call that writes a tensor into the window that `node` says.

        Raises:
            UnsupportedFeatureError: When what is written, or written to, is no tensor.
            ParserTypeError: When the two are of different shapes.
        """
        target = self._expressions.parse(node.value)
        if not isinstance(target.type, TensorType) or not isinstance(node.value, ast.Name):
            message = f"What is written to must be a window of a tensor, not {ast.unparse(node)}"
            raise self._context.error(UnsupportedFeatureError, message, node, hint=_HINT)
        source = self._expressions.parse(value)
        if not isinstance(source.type, TensorType):
            message = f"A tensor must be written to {ast.unparse(node)}, not {ast.unparse(value)}"
            hint = "a tile is stored by out = pl.store(tile, offsets, out)"
            raise self._context.error(UnsupportedFeatureError, message, value, hint=hint)
        offset, extents = self._window(target, node)
        shape = source.type.shape
        if len(shape) != len(extents) or any(
            same_dim(a, b) is False for a, b in zip(shape, extents, strict=True)
        ):
            message = (
                f"A tensor {show_dims(tuple(extents))} must be written to {ast.unparse(node)}, not "
                f"one {show_dims(shape)}"
            )
            raise self._context.error(ParserTypeError, message, value)
        return self._call("tensor.assemble", [target, source, offset], node)

    def _call(self, name: str, args: Sequence[object], node: ast.Subscript) -> Call:
        try:
            return create_op_call(name, args, {}, self._context.span(node))
        except (IRTypeError, IRValueError) as error:
            text = error.message.removeprefix(f"{name}: ")
            message = f"pl operation {name!r}: {text}"
            raise self._context.error(
                InvalidOperationError, message, node, hint=error.hint
            ) from error

    def _window(self, tensor: Expr, node: ast.Subscript) -> tuple[list[Expr], list[Expr]]:
        """Return offset and extent along each axis; axes without a slice are taken whole."""
        assert isinstance(tensor.type, TensorType), tensor.type
        shape: Dims = tensor.type.shape
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(parts) > len(shape):
            message = f"A window of a tensor of rank {len(shape)} must have at most {len(shape)} slices, not {len(parts)}"
            raise self._context.error(ParserTypeError, message, node, hint=_HINT)
        pairs = [self._axis(part, dim) for part, dim in zip(parts, shape, strict=False)]
        pairs += [(index(0), dim) for dim in shape[len(parts) :]]
        return [offset for offset, _ in pairs], [extent for _, extent in pairs]

    def _axis(self, part: ast.expr, dim: Expr) -> tuple[Expr, Expr]:
        if not isinstance(part, ast.Slice) or part.step is not None:
            found = ast.unparse(part)
            message = f"Along each axis a window must be a slice without a step, not {found}"
            raise self._context.error(UnsupportedFeatureError, message, part, hint=_HINT)
        start = index(0) if part.lower is None else self._expressions.scalar(part.lower)
        stop = dim if part.upper is None else self._expressions.scalar(part.upper)
        first, last = constant_dim(start), constant_dim(stop)
        if first == 0:
            return start, stop
        if first is not None and last is not None:
            return start, index(last - first)
        match stop:
            case Add(left, ConstInt() as extent) if structural_equal(left, start):
                return start, extent
            case _:
                message = f"A window must have a constant extent, which {ast.unparse(part)} has not"
                raise self._context.error(ParserTypeError, message, part, hint=_HINT)
