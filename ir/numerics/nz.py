"""Matrices in NZ order: columns of boxes of 16 rows by 32 bytes, as the cube's operands lie in L1.

    logical [..., R, C]  ->  [B, C/c0, R/16, 16, c0],  c0 = 32 bytes / bytes of an element

Leading axes are folded into B. Elements narrower than a byte have no such order.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import IRValueError
from ..given import show_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

NZ_ROWS = 16
"""Rows of a box."""
NZ_ROW_BYTES = 32
"""Bytes of a row of a box."""


def nz_columns(bits: int) -> int:
    """Return the columns of a box of elements of `bits` bits."""
    return NZ_ROW_BYTES * 8 // bits


def nz_fault(shape: Sequence[int], bits: int) -> str | None:
    """Return why a shape has no NZ order, as what must be and what is, or None if it has one."""
    if bits < 8 or bits % 8:
        return f"elements of whole bytes, not of {bits} bits"
    if len(shape) < 2:
        return f"rank 2 or more, not {len(shape)}"
    rows, columns = shape[-2:]
    for what, extent, unit in (("rows", rows, NZ_ROWS), ("columns", columns, nz_columns(bits))):
        if extent <= 0 or extent % unit:
            return f"a positive multiple of {unit} {what}, not {extent}"
    return None


def nz_shape(shape: Sequence[int], bits: int) -> tuple[int, int, int, int, int]:
    """Return the blocked shape of a logical one.

    Raises:
        IRValueError: For a shape that has no NZ order.
    """
    fault = nz_fault(shape, bits)
    if fault is not None:
        message = f"An array in NZ order must have {fault}"
        raise IRValueError(message)
    *leading, rows, columns = shape
    wide = nz_columns(bits)
    return prod(leading), columns // wide, rows // NZ_ROWS, NZ_ROWS, wide


def nz_logical_shape(blocked: Sequence[int]) -> tuple[int, ...]:
    """Return the logical shape of a blocked one: leading axes are one by now, none if that is 1."""
    batches, across, down, rows, wide = blocked
    matrix = (down * rows, across * wide)
    return matrix if batches == 1 else (batches, *matrix)


def nz_given_shapes(shape: Sequence[int], bits: int) -> list[tuple[int, ...]]:
    """Return the shapes under which elements in NZ order can be handed over: the logical one first.

    Raises:
        IRValueError: For a shape that has no NZ order.
    """
    blocked = nz_shape(shape, bits)
    known = [tuple(shape), nz_logical_shape(blocked), blocked]
    if blocked[0] == 1:
        known += [blocked[1:], (1, *shape[-2:])]
    return [*dict.fromkeys(known), (prod(blocked),)]


def nz_folds(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Return whether two logical shapes are one once their leading axes are folded."""
    return tuple(shape[-2:]) == tuple(other[-2:]) and prod(shape[:-2]) == prod(other[:-2])


def pack_nz(array: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an array in NZ order.

    Args:
        array: [..., R, C] of elements of 1, 2, 4 or 8 bytes; R a multiple of 16, C of 32 bytes.

    Returns:
        The same elements, [B, C/c0, R/16, 16, c0], contiguous.

    Raises:
        IRValueError: For a shape that has no NZ order.
    """
    logical = np.asarray(array)
    batches, across, down, rows, wide = nz_shape(logical.shape, logical.dtype.itemsize * 8)
    cut = logical.reshape(batches, down, rows, across, wide)
    return np.ascontiguousarray(cut.transpose(0, 3, 1, 2, 4))


def unpack_nz(packed: npt.ArrayLike, shape: Sequence[int]) -> npt.NDArray[Any]:
    """Return an array of logical `shape` from its elements in NZ order, given in any shape.

    Raises:
        IRValueError: For a shape that has no NZ order, or another number of elements.
    """
    boxes = np.asarray(packed)
    blocked = nz_shape(shape, boxes.dtype.itemsize * 8)
    if boxes.size != prod(blocked):
        message = (
            f"An array of shape {show_shape(tuple(shape))} must come from {prod(blocked)} elements, "
            f"not from {boxes.size}"
        )
        raise IRValueError(message)
    return boxes.reshape(blocked).transpose(0, 2, 3, 1, 4).reshape(tuple(shape))
