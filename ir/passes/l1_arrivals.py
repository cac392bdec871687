"""What the loads of a product take of the port to global memory, whole and in parts.

A load takes its bytes and its runs: stretches of bytes that follow one another. Whole rows of a matrix are
one run together, parts of rows are one each. So a matrix that lies row by row is loaded in parts along
its rows for nothing, and along its columns at the price of a run for each row of each part.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, cast

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..expr import Call
from ..ops.checks import is_mx_blocked
from ..placement import packed_stride
from ..types import TensorLayout, TensorType, constant_dims

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..expr import Expr, MakeTuple
    from ..target import Target


#: Which arguments of a load are its window, and what of that is valid.
_WINDOW, _VALID = 2, 3
#: The axes of a blocked scale tensor that count boxes of 16 rows, and pairs of groups.
_BLOCKED_ROWS, _BLOCKED_GROUPS = 1, 2


def load_cycles(load: Expr, target: Target, valid: Mapping[int, int]) -> Fraction:
    """Return the cycles that a part of a plain load keeps the port.

    Args:
        load: The load of a matrix, or of boxes of scales.
        target: The machine.
        valid: Valid indices of the part along the axes of the tile along which it is one.
    """
    assert isinstance(load, Call), load
    source = cast("TensorType", load.args[0].type)
    elements = (cast("MakeTuple", load.args[at]).elements for at in (_VALID, _WINDOW))
    window = list(next(filter(None, map(constant_dims, elements)), ()))
    assert window, "a load has constant extents"
    for axis, size in valid.items():
        at, unit = blocked_axis(source, axis)
        window[at] = -(-size // unit)
    size_bytes = Fraction(prod(window) * source.dtype.bits, 8)
    rate = Fraction(repr(target.gm_port_bytes_per_cycle))
    return size_bytes / rate + _runs(source, window) * Fraction(repr(target.gm_row_cycles))


def blocked_axis(source: TensorType, axis: int) -> tuple[int, int]:
    """Return the axis of a window that an axis of the tile is, and how many indices one of it counts."""
    if not is_mx_blocked(source):
        return axis, 1
    of_groups = axis == (1 if source.layout is TensorLayout.MX_A_ZZ else 0)
    return (_BLOCKED_GROUPS, BOX_GROUPS) if of_groups else (_BLOCKED_ROWS, BOX_ROWS)


def _runs(source: TensorType, window: list[int]) -> int:
    """Return how many stretches of elements that follow one another a window of a tensor is."""
    shape = constant_dims(source.shape)
    strides = constant_dims(source.stride) or (shape and packed_stride(source.layout, shape))
    if strides is None:
        return prod(window[:-1])
    length, runs = 1, 1
    for stride, size in sorted(zip(strides, window, strict=True)):
        if size > 1 and runs == 1 and stride == length:
            length *= size
        else:
            runs *= size
    return runs
