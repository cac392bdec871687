"""What tile stands for a whole tensor: its physical extents, of which those of the tensor are valid.

Rows of a tile of the vector core begin at multiples of 32 bytes, whatever the dtype that they are cast to;
the cube takes boxes. Extents that are no such multiples are rounded up, and only the tensor's are valid.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ..errors import IRTypeError
from ..expr import index
from ..ops.checks import is_nibble
from ..ops.rules_memory import view_with_valid
from ..tile_bytes import FRACTAL_ROWS, round_up
from ..types import (
    MemorySpace,
    TensorType,
    TileType,
    constant_dim,
    constant_dims,
    implicit_tile_view,
    static_dims,
)

if TYPE_CHECKING:
    from ..dtypes import DType
    from ..errors import Span
    from ..types import Dims

_COLUMNS = 32
"""Elements that a row is rounded up to: a multiple of 32 bytes in every dtype of a byte or more."""


class CubeForm(IntEnum):
    """What a matrix is to the cube, by the multiple that its rows are rounded up to."""

    BIAS = 1
    LHS = FRACTAL_ROWS
    RHS = _COLUMNS


def vector_tile(type_: TensorType) -> TileType:
    """Return the tile in Vec that stands for a tensor.

    A column `[M, 1]` lies packed; a tensor of one axis is a row `[1, N]`.
    """
    *rows, last = extents(type_)
    valid = type_.valid_shape or type_.shape
    if not rows:
        rows, valid = [1], (index(1), *valid)
        columns = round_up(last, _columns(type_.dtype))
    else:
        columns = last if last == 1 else round_up(last, _columns(type_.dtype))
    return _tile((*rows, columns), valid, type_.dtype, MemorySpace.Vec)


def cube_tile(
    dims: Dims, dtype: DType, form: CubeForm, space: MemorySpace = MemorySpace.Mat
) -> TileType:
    """Return the tile that stands for a matrix of the cube; an accumulator has the form of lhs.

    Args:
        dims: Rows and columns, of numbers.
        dtype: Its dtype.
        form: What it is.
        space: Where it lies.
    """
    rows, columns = static_dims(dims, "A matrix")
    shape = (round_up(rows, form), round_up(columns, _columns(dtype)))
    return _tile(shape, dims, dtype, space)


def extents(type_: TensorType, what: str = "A tensor", span: Span | None = None) -> tuple[int, ...]:
    """Return a tensor's extents as numbers.

    Raises:
        IRTypeError: When one is symbolic.
    """
    shape = constant_dims(type_.shape)
    if shape is None:
        message = f"{what} must have constant dimensions to be compiled, not symbolic ones"
        raise IRTypeError(message, span)
    return shape


def _columns(dtype: DType) -> int:
    return 2 * _COLUMNS if is_nibble(dtype) else _COLUMNS


def _tile(shape: tuple[int, ...], valid: Dims, dtype: DType, space: MemorySpace) -> TileType:
    dims = tuple(index(size) for size in shape)
    view = view_with_valid(implicit_tile_view(dims, space), valid)
    return TileType(dims, dtype, None, view, space)


def is_whole(tile: TileType) -> bool:
    """Return whether all that a tile has room for is valid."""
    pairs = zip(tile.shape, tile.valid_shape, strict=True)
    return all(constant_dim(size) == constant_dim(valid) for size, valid in pairs)
