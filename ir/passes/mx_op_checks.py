"""What BlockMxScaleTensorViews asks of the ops that touch an MX tensor, apart from their coordinates."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ..dtypes import DType
from ..errors import IRValueError
from ..ops.rules_memory import is_packed
from ..types import (
    SCALE_ARRANGEMENT,
    MemorySpace,
    TensorLayout,
    TensorType,
    TileType,
    constant_dims,
)

if TYPE_CHECKING:
    from ..errors import Span
    from ..expr import Call, MakeTuple, Type


def told_target(target: object) -> str:
    """Return in words what was given as the memory of a load."""
    match target:
        case None:
            return "no target_memory"
        case MemorySpace() | str():
            return f'"{target.name if isinstance(target, MemorySpace) else target}"'
        case _:
            return f"a {type(target).__name__}"


def check_count(op: Call, most: int, span: Span) -> None:
    """Check that a call has at most `most` arguments.

    Raises:
        IRValueError: For more of them.
    """
    if len(op.args) > most:
        message = (
            f"{op.name} with an MX tensor must have at most {most} arguments, not {len(op.args)}"
        )
        raise IRValueError(message, span)


def check_view(op: Call, span: Span) -> None:
    """Check that a view with an MX side is one between shaped FP8E8M0 tensors in ND and MX.

    Raises:
        IRValueError: For another pair, no shape, another dtype, strides, or another size.
    """
    source, result = op.args[0].type if op.args else None, op.type
    if not isinstance(source, TensorType) or not isinstance(result, TensorType):
        message = f"{op.name} must look at a tensor and give a tensor"
        raise IRValueError(message, span)
    names = f"{source.layout.value} as {result.layout.value}"
    if TensorLayout.ND not in (source.layout, result.layout):
        message = f"An MX layout must be viewed from ND or as ND, not {names}"
        raise IRValueError(message, span)
    if len(op.args) < 2:
        message = f"A tensor.view of {names} must be given its shape"
        raise IRValueError(message, span)
    if source.dtype is not DType.E8M0:
        message = f"A tensor.view of {names} must hold FP8E8M0, not {source.dtype.name}"
        raise IRValueError(message, span)
    if source.stride and not is_packed(source):
        message = f"A tensor.view of {names} must look at a packed tensor, not a strided one"
        raise IRValueError(message, span)
    had, has = constant_dims(source.shape), constant_dims(result.shape)
    if had is not None and has is not None and prod(had) != prod(has):
        message = f"A tensor.view of {names} must have the {prod(had)} bytes of its source, not {prod(has)}"
        raise IRValueError(message, span)


def check_result(op: Call, shape: MakeTuple, type_: Type, span: Span) -> None:
    """Check that the shape operand of a view says what its type says; both are blocked.

    Raises:
        IRValueError: Where they differ.
    """
    assert isinstance(type_, TensorType)
    given, made = constant_dims(shape.elements), constant_dims(type_.shape)
    if given != made:
        message = f"The shape operand of {op.name} must be the shape of its result"
        raise IRValueError(message, span)


def stored_tile(tile: Type, layout: TensorLayout, span: Span) -> TileType:
    """Return the type of a tile that can be stored into an MX tensor.

    Raises:
        IRValueError: For another dtype or arrangement, or a tile that is valid in part only.
    """
    if not isinstance(tile, TileType) or tile.dtype is not DType.E8M0:
        message = f"Only an FP8E8M0 tile can be stored into an {layout.value} tensor"
        raise IRValueError(message, span)
    found, wanted = (tile.get_effective_tile_view().arrangement, SCALE_ARRANGEMENT[layout])
    if found != wanted:
        message = (
            f"A tile stored into an {layout.value} tensor must be arranged "
            f"{wanted[0].value}/{wanted[1].value}/{wanted[2]}, not "
            f"{found[0].value}/{found[1].value}/{found[2]}"
        )
        raise IRValueError(message, span)
    if tile.tile_view is not None and tile.tile_view.valid_shape:
        message = f"A tile stored into an {layout.value} tensor must be valid as a whole"
        raise IRValueError(message, span)
    return tile
