"""Where each element of a tensor stands in global memory.

Every layout adds up its position from the axes one by one, so a tensor's placement is one table of
positions per axis. Positions count elements, not bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .dtypes import SimpleDType
from .errors import IRValueError
from .given import show_shape
from .injectivity import is_injective
from .numerics.nz import nz_columns, nz_fault
from .numerics.scales import scale_offset_a, scale_offset_b
from .types import TensorLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .dtypes import DType

Positions = tuple["npt.NDArray[np.int64]", ...]
_LOGICAL_RANK = 2
NZ_BLOCKED_RANK = 5
"""Rank of a tensor in NZ once it is cut into boxes; before that it has less."""


def code_type(dtype: DType) -> np.dtype[Any]:
    """Return the smallest unsigned numpy type that holds a code of a simple dtype."""
    assert isinstance(dtype, SimpleDType), dtype
    for kind in (np.uint8, np.uint16, np.uint32):
        if dtype.bits <= 8 * np.dtype(kind).itemsize:
            return np.dtype(kind)
    return np.dtype(np.uint64)


def axis_positions(
    layout: TensorLayout, shape: Sequence[int], stride: Sequence[int] = (), *, bits: int = 8
) -> Positions:
    """Return, for each axis, what each coordinate adds to an element's position.

    Args:
        layout: The tensor's layout; an MX layout of another rank than 2, and NZ of rank 5, has been
            cut into boxes.
        shape: Extents, in elements.
        stride: Strides in elements where they are known; packed otherwise.
        bits: Width of an element; only the boxes of NZ depend on it.

    Returns:
        One int64 array of length `shape[axis]` an axis.

    Raises:
        IRValueError: For a layout that has no placement here, or a shape that does not fit it.
    """
    if layout is TensorLayout.NZ and len(shape) != NZ_BLOCKED_RANK:
        return _nz_positions(shape, bits)
    if layout.is_mx and len(shape) == _LOGICAL_RANK:
        return _box_positions(layout, shape)
    if stride and not (min(stride) >= 0 and is_injective(zip(shape, stride, strict=True))):
        message = (
            f"A tensor that is run must have strides that give each of its {show_shape(shape)} "
            f"elements a place of its own, not {show_shape(stride)}"
        )
        raise IRValueError(message)
    steps = tuple(stride) or packed_stride(layout, shape)
    return tuple(
        np.arange(dim, dtype=np.int64) * step for dim, step in zip(shape, steps, strict=True)
    )


def packed_stride(layout: TensorLayout, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a packed tensor: row-major, or for DN with the last two axes swapped."""
    order = list(range(len(shape)))
    if layout is TensorLayout.DN and len(shape) >= _LOGICAL_RANK:
        order[-2:] = order[-1], order[-2]
    steps = [0] * len(shape)
    step = 1
    for axis in reversed(order):
        steps[axis] = step
        step *= shape[axis]
    return tuple(steps)


def _box_positions(layout: TensorLayout, shape: Sequence[int]) -> Positions:
    zero = np.zeros(1, dtype=np.int64)
    first, second = (np.arange(dim, dtype=np.int64) for dim in shape)
    if layout is TensorLayout.MX_A_ZZ:
        rows, groups = shape
        return (
            scale_offset_a(first, zero, rows=rows, groups=groups),
            scale_offset_a(zero, second, rows=rows, groups=groups),
        )
    groups, columns = shape
    return (
        scale_offset_b(first, zero, groups=groups, columns=columns),
        scale_offset_b(zero, second, groups=groups, columns=columns),
    )


def _nz_positions(shape: Sequence[int], bits: int) -> Positions:
    fault = nz_fault(shape, bits)
    if fault is not None:
        message = f"A tensor in NZ that is run must have {fault}"
        raise IRValueError(message)
    rows, columns = shape[-2:]
    wide = nz_columns(bits)
    column = np.arange(columns, dtype=np.int64)
    matrix = (
        np.arange(rows, dtype=np.int64) * wide,
        column // wide * (rows * wide) + column % wide,
    )
    leading = packed_stride(TensorLayout.ND, (*shape[:-2], rows * columns))
    return (
        *(
            np.arange(dim, dtype=np.int64) * step
            for dim, step in zip(shape[:-2], leading, strict=False)
        ),
        *matrix,
    )


def window_positions(positions: Positions, window: Sequence[slice]) -> npt.NDArray[np.int64]:
    """Return the positions of a window of a tensor, in the window's shape."""
    result = np.zeros((), dtype=np.int64)
    for axis, (table, cut) in enumerate(zip(positions, window, strict=True)):
        tail = len(positions) - axis - 1
        result = result + table[cut].reshape((-1,) + (1,) * tail)
    return result
