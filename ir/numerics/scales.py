"""Where each scale of a matrix stands in memory: the orders that the machine reads.

A scale matrix is `[M, G]` beside a left operand and `[G, N]` beside a right one, G groups along K.
In every order two groups of one row (of one column, on the right) are neighbours in memory, hence
G is even. The boxed orders ZZ and NN put 16 rows by 2 groups into one box of 32 bytes.

| order | left `[M, G]` | right `[G, N]` |
|---|---|---|
| boxed: ZZ, NN | `[M/16][G/2][16][2]` | `[N/16][G/2][16][2]` |
| ND | `[M][G]` | `[G/2][N][2]` |
| DN | `[G/2][M][2]` | `[N][G]` |
"""

from __future__ import annotations

import math
from enum import Enum
from operator import index
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS
from ..errors import IRTypeError, IRValueError
from .arguments import as_scale_codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_Number = TypeVar("_Number", int, "npt.NDArray[np.int64]")


class ScaleOrder(Enum):
    """Order of scale bytes in memory."""

    BOXED = "boxed"
    ND = "ND"
    DN = "DN"


def scale_offset_a(m: _Number, g: _Number, *, rows: int, groups: int, order: str = "ZZ") -> _Number:
    """Return the byte at which the scale of row `m`, group `g` stands.

    Args:
        m: Row or rows, 0..rows-1.
        g: Group or groups, 0..groups-1.
        rows: M of the whole matrix; a multiple of 16 for ZZ.
        groups: G of the whole matrix, even.
        order: `"ZZ"`, `"ND"` or `"DN"`.

    Raises:
        IRValueError: An unknown order, or a matrix that the order cannot hold.
    """
    which = _order(order, "ZZ")
    _check_extents(rows, groups, which, order, "M")
    match which:
        case ScaleOrder.BOXED:
            return _boxed(m, g, groups)
        case ScaleOrder.ND:
            return m * groups + g
        case ScaleOrder.DN:
            return _paired(m, g, rows)


def scale_offset_b(
    g: _Number, n: _Number, *, groups: int, columns: int, order: str = "NN"
) -> _Number:
    """Return the byte at which the scale of group `g`, column `n` stands.

    Args:
        g: Group or groups, 0..groups-1.
        n: Column or columns, 0..columns-1.
        groups: G of the whole matrix, even.
        columns: N of the whole matrix; a multiple of 16 for NN.
        order: `"NN"`, `"ND"` or `"DN"`.

    Raises:
        IRValueError: An unknown order, or a matrix that the order cannot hold.
    """
    which = _order(order, "NN")
    _check_extents(columns, groups, which, order, "N")
    match which:
        case ScaleOrder.BOXED:
            return _boxed(n, g, groups)
        case ScaleOrder.ND:
            return _paired(n, g, columns)
        case ScaleOrder.DN:
            return n * groups + g


def pack_scales_a(scales: npt.ArrayLike, *, order: str = "ZZ") -> npt.NDArray[np.uint8]:
    """Put the scales of a left operand into memory order.

    Args:
        scales: uint8 codes `[M, G]`; G even, M a multiple of 16 for ZZ.
        order: `"ZZ"`, `"ND"` or `"DN"`.

    Returns:
        uint8 `[M * G]`, a fresh array of bytes in memory order.

    Raises:
        IRTypeError: `scales` are not one-byte codes.
        IRValueError: An unknown order, or a shape that the order cannot hold.
    """
    logical = _scale_matrix(scales, "A scales", "[M, G]")
    rows, groups = logical.shape
    which = _order(order, "ZZ")
    _check_extents(rows, groups, which, order, "M")
    return _flatten(logical, which, contiguous=ScaleOrder.ND)


def pack_scales_b(scales: npt.ArrayLike, *, order: str = "NN") -> npt.NDArray[np.uint8]:
    """Put the scales of a right operand into memory order.

    Args:
        scales: uint8 codes `[G, N]`; G even, N a multiple of 16 for NN.
        order: `"NN"`, `"ND"` or `"DN"`.

    Returns:
        uint8 `[G * N]`, a fresh array of bytes in memory order.

    Raises:
        IRTypeError: `scales` are not one-byte codes.
        IRValueError: An unknown order, or a shape that the order cannot hold.
    """
    logical = _scale_matrix(scales, "B scales", "[G, N]")
    groups, columns = logical.shape
    which = _order(order, "NN")
    _check_extents(columns, groups, which, order, "N")
    return _flatten(logical.T, which, contiguous=ScaleOrder.DN)


def unpack_scales_a(
    packed: npt.ArrayLike, shape: Sequence[int], *, order: str = "ZZ"
) -> npt.NDArray[np.uint8]:
    """Read the scales of a left operand back from memory order.

    Args:
        packed: uint8 codes in memory order, of any shape with `M * G` items.
        shape: `(M, G)`.
        order: `"ZZ"`, `"ND"` or `"DN"`.

    Returns:
        uint8 `[M, G]`, a fresh array.

    Raises:
        IRTypeError: `packed` are not one-byte codes, or `shape` are no integers.
        IRValueError: An unknown order, a shape that the order cannot hold, or another number of
            bytes than the shape has.
    """
    rows, groups = _pair(shape, "(M, G)")
    which = _order(order, "ZZ")
    _check_extents(rows, groups, which, order, "M")
    flat = _scale_bytes(packed, (rows, groups))
    return _unflatten(flat, rows, groups, which, contiguous=ScaleOrder.ND)


def unpack_scales_b(
    packed: npt.ArrayLike, shape: Sequence[int], *, order: str = "NN"
) -> npt.NDArray[np.uint8]:
    """Read the scales of a right operand back from memory order.

    Args:
        packed: uint8 codes in memory order, of any shape with `G * N` items.
        shape: `(G, N)`.
        order: `"NN"`, `"ND"` or `"DN"`.

    Returns:
        uint8 `[G, N]`, a fresh array.

    Raises:
        IRTypeError: `packed` are not one-byte codes, or `shape` are no integers.
        IRValueError: An unknown order, a shape that the order cannot hold, or another number of
            bytes than the shape has.
    """
    groups, columns = _pair(shape, "(G, N)")
    which = _order(order, "NN")
    _check_extents(columns, groups, which, order, "N")
    flat = _scale_bytes(packed, (groups, columns))
    rows_first = _unflatten(flat, columns, groups, which, contiguous=ScaleOrder.DN)
    return np.ascontiguousarray(rows_first.T)


def _boxed(row: _Number, group: _Number, groups: int) -> _Number:
    box = row // BOX_ROWS * (groups // BOX_GROUPS) + group // BOX_GROUPS
    return box * BOX_BYTES + row % BOX_ROWS * BOX_GROUPS + group % BOX_GROUPS


def _paired(row: _Number, group: _Number, rows: int) -> _Number:
    return (group // BOX_GROUPS * rows + row) * BOX_GROUPS + group % BOX_GROUPS


def _flatten(
    rows_first: npt.NDArray[np.uint8], order: ScaleOrder, *, contiguous: ScaleOrder
) -> npt.NDArray[np.uint8]:
    rows, groups = rows_first.shape
    if order is contiguous:
        return rows_first.flatten()
    pairs = rows_first.reshape(rows, groups // BOX_GROUPS, BOX_GROUPS)
    if order is ScaleOrder.BOXED:
        boxes = pairs.reshape(rows // BOX_ROWS, BOX_ROWS, groups // BOX_GROUPS, BOX_GROUPS)
        return boxes.transpose(0, 2, 1, 3).flatten()
    return pairs.transpose(1, 0, 2).flatten()


def _unflatten(
    flat: npt.NDArray[np.uint8],
    rows: int,
    groups: int,
    order: ScaleOrder,
    *,
    contiguous: ScaleOrder,
) -> npt.NDArray[np.uint8]:
    if order is contiguous:
        return flat.reshape(rows, groups).copy()
    if order is ScaleOrder.BOXED:
        boxes = flat.reshape(rows // BOX_ROWS, groups // BOX_GROUPS, BOX_ROWS, BOX_GROUPS)
        return boxes.transpose(0, 2, 1, 3).reshape(rows, groups).copy()
    pairs = flat.reshape(groups // BOX_GROUPS, rows, BOX_GROUPS)
    return pairs.transpose(1, 0, 2).reshape(rows, groups).copy()


def _order(name: str, boxed: str) -> ScaleOrder:
    if isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        if name == boxed:
            return ScaleOrder.BOXED
        if name in ("ND", "DN"):
            return ScaleOrder(name)
    side = "A" if boxed == "ZZ" else "B"
    message = f"The order of {side} scales must be '{boxed}', 'ND' or 'DN', not {name!r}"
    raise IRValueError(message)


def _check_extents(rows: int, groups: int, order: ScaleOrder, name: str, axis: str) -> None:
    if groups < BOX_GROUPS or groups % BOX_GROUPS:
        message = (
            f"The group extent of scales must be a positive multiple of {BOX_GROUPS}, not {groups}"
        )
        raise IRValueError(message)
    step = BOX_ROWS if order is ScaleOrder.BOXED else 1
    if rows < step or rows % step:
        message = (
            f"The {axis} extent of scales in {name} order must be a positive multiple of {step}, "
            f"not {rows}"
        )
        raise IRValueError(message)


def _pair(shape: Sequence[int], form: str) -> tuple[int, int]:
    try:
        extents = [index(extent) for extent in shape]
    except TypeError as error:
        message = f"The shape of scales must be {form}, not {shape!r}"
        raise IRTypeError(message) from error
    if len(extents) != 2:
        message = f"The shape of scales must be {form}, not {tuple(extents)}"
        raise IRValueError(message)
    return extents[0], extents[1]


def _scale_matrix(scales: npt.ArrayLike, what: str, form: str) -> npt.NDArray[np.uint8]:
    array = as_scale_codes(scales, what)
    if array.ndim != 2:
        message = f"{what} must be a matrix {form}, not of shape {list(array.shape)}"
        raise IRValueError(message)
    return array


def _scale_bytes(packed: npt.ArrayLike, shape: tuple[int, int]) -> npt.NDArray[np.uint8]:
    array = as_scale_codes(packed, "Packed scales")
    if array.size != math.prod(shape):
        message = (
            f"Packed scales of shape {list(shape)} must be {math.prod(shape)} bytes, "
            f"not {array.size}"
        )
        raise IRValueError(message)
    return array.reshape(-1)
