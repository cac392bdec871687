"""The invariant of BlockMxScaleTensorViews, checked on every type that it rewrites.

Blocking changes only where scales lie. Through the layout algebra: the row-major strides of the
blocked shape, read in logical coordinates, address each scale exactly once, densely, at the byte that
the MX box order says.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ..dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..expr import ConstInt, FloorDiv
from ..layout import Layout, Shape, Stride
from ..numerics.scales import scale_offset_a, scale_offset_b
from ..placement import packed_stride
from ..types import TensorLayout, static_dims

if TYPE_CHECKING:
    from ..expr import Expr
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
    assert blocked[0] == 1, "the leading extent only makes up the rank"
    assert blocked[3:] == (BOX_ROWS, BOX_GROUPS), "the trailing box is 16 rows by 2 groups"
    assert placement.size == rows * groups, "each logical scale has one place"
    assert placement.cosize == placement.size, "the boxes are dense"
    assert placement.is_injective, "no two scales share a byte"
    # Both sides are linear in the four digits of a coordinate: one step of each digit decides.
    steps = ((1, 0), (BOX_ROWS, 0), (0, 1), (0, BOX_GROUPS))
    for row, group in (*steps, (rows - 1, groups - 1)):
        if row < rows and group < groups:
            found = placement.index(_digits(row, group, layout))
            assert found == _byte(row, group, logical, layout), "boxes are in order"


def assert_box_is_addressed(box: Dims, offsets: Dims, blocked: Dims, layout: TensorLayout) -> None:
    """Assert that blocked offsets lead to the byte that the box order has for the logical ones.

    A symbolic offset stands for one box further along the blocks, or two along the groups; what
    divides it must divide it without a rest.

    Args:
        box: The five blocked offsets, quotients of the very expressions in `offsets`.
        offsets: The two logical offsets.
        blocked: The blocked shape of the tensor.
        layout: Its MX layout.
    """
    units = (BOX_ROWS, 2 * BOX_GROUPS)
    units = units if layout is TensorLayout.MX_A_ZZ else units[::-1]
    stand_in: dict[Expr, int] = {}
    for offset, unit in zip(offsets, units, strict=True):
        value = offset.value if isinstance(offset, ConstInt) else unit
        stand_in[offset] = max(value, stand_in.get(offset, 0))
    found: list[int] = []
    for each in box:
        match each:
            case FloorDiv(dividend, ConstInt(divisor)):
                assert dividend in stand_in, "an offset is divided as a whole"
                assert stand_in[dividend] % divisor == 0, "only whole boxes are skipped"
                found.append(stand_in[dividend] // divisor)
            case ConstInt(value):
                found.append(value)
            case _:
                raise AssertionError(each)
    shape = static_dims(blocked, "A blocked MX tensor")
    byte = sum(n * step for n, step in zip(found, _strides(shape), strict=True))
    first, second = (stand_in[offset] for offset in offsets)
    block, group = (first, second) if layout is TensorLayout.MX_A_ZZ else (second, first)
    _, boxes, columns, _, _ = shape
    rows, groups = boxes * BOX_ROWS, columns * BOX_GROUPS
    logical = (rows, groups) if layout is TensorLayout.MX_A_ZZ else (groups, rows)
    assert byte == _byte(block, group, logical, layout), "the offset is that of the box"


@lru_cache(maxsize=1024)
def _strides(blocked: tuple[int, ...]) -> tuple[int, ...]:
    return packed_stride(TensorLayout.ND, blocked)


def _byte(row: int, group: int, logical: tuple[int, ...], layout: TensorLayout) -> int:
    first, second = logical
    if layout is TensorLayout.MX_A_ZZ:
        return scale_offset_a(row, group, rows=first, groups=second)
    return scale_offset_b(group, row, groups=first, columns=second)


def _digits(row: int, group: int, layout: TensorLayout) -> list[list[int]]:
    coordinate = [[row % BOX_ROWS, row // BOX_ROWS], [group % BOX_GROUPS, group // BOX_GROUPS]]
    return coordinate if layout is TensorLayout.MX_A_ZZ else coordinate[::-1]
