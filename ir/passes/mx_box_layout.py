"""The invariant of BlockMxScaleTensorViews, checked on every type that it rewrites.

Blocking changes only where scales lie. Through the layout algebra: the row-major strides of the
blocked shape, read in logical coordinates, address each scale exactly once, densely, at the byte that
the MX box order says.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..layout import Layout, Shape, Stride
from ..placement import packed_stride
from ..types import TensorLayout, static_dims

if TYPE_CHECKING:
    from ..types import Dims


def logical_placement(blocked: tuple[int, ...], layout: TensorLayout) -> Layout:
    """Return where the scale of logical coordinates lies, in the strides of the blocked shape.

    The coordinates are ((row in box, box row), (group in box, box column)) of an A tensor and
    ((group in box, box column), (column in box, box row)) of a B tensor.
    """
    _, boxes, columns, rows, groups = blocked
    _, box_stride, column_stride, row_stride, group_stride = packed_stride(TensorLayout.ND, blocked)
    block = ([rows, boxes], [row_stride, box_stride])
    group = ([groups, columns], [group_stride, column_stride])
    first, second = (block, group) if layout is TensorLayout.MX_A_ZZ else (group, block)
    return Layout(Shape(first[0], second[0]), Stride(first[1], second[1]))


def assert_boxes_are_dense(blocked: Dims, logical: Dims, layout: TensorLayout) -> None:
    """Assert the invariant for one rewritten type; a failure is a bug of the pass."""
    shape = static_dims(blocked, "A blocked MX tensor")
    _check(shape, static_dims(logical, "An MX tensor"), layout)


@lru_cache(maxsize=1024)
def _check(blocked: tuple[int, ...], logical: tuple[int, ...], layout: TensorLayout) -> None:
    rows, groups = logical if layout is TensorLayout.MX_A_ZZ else logical[::-1]
    placement = logical_placement(blocked, layout)
    assert blocked[3:] == (BOX_ROWS, BOX_GROUPS), "the trailing box is 16 rows by 2 groups"
    assert placement.size == rows * groups, "each logical scale has one place"
    assert placement.cosize == placement.size, "the boxes are dense"
    assert placement.is_injective, "no two scales share a byte"
    box = BOX_ROWS * BOX_GROUPS
    last = (rows - 1, groups - 1)
    for row, group in {(0, 0), (0, 1), (1, 0), (15, 1), (rows // 2, groups // 2), last}:
        byte = (row // 16) * (groups // 2) * box + (group // 2) * box + (row % 16) * 2 + group % 2
        coordinates = ([row % 16, row // 16], [group % 2, group // 2])
        if layout is TensorLayout.MX_B_NN:
            coordinates = coordinates[::-1]
        assert placement.index(list(coordinates)) == byte, "a scale lies where the box order says"
