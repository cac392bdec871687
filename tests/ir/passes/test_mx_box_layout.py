"""The invariant that the block pass holds every rewritten type to."""

import pytest

from scalebox.ir.numerics.scales import scale_offset_a, scale_offset_b
from scalebox.ir.passes.mx_box_layout import assert_boxes_are_dense, logical_placement
from scalebox.ir.types import TensorLayout, as_dim

from .parts import A, B


@pytest.mark.parametrize(("rows", "groups"), [(16, 2), (16, 8), (48, 2), (32, 6)])
@pytest.mark.parametrize("layout", [A, B])
def test_each_scale_lies_where_the_box_order_has_it(
    layout: TensorLayout, rows: int, groups: int
) -> None:
    placement = logical_placement((1, rows // 16, groups // 2, 16, 2), layout)
    found: set[int] = set()
    for row in range(rows):
        for group in range(groups):
            digits = [[row % 16, row // 16], [group % 2, group // 2]]
            if layout is A:
                wanted = scale_offset_a(row, group, rows=rows, groups=groups)
            else:
                digits.reverse()
                wanted = scale_offset_b(group, row, groups=groups, columns=rows)
            assert placement.index(digits) == wanted
            found.add(wanted)
    assert found == set(range(rows * groups))


WRONG = [
    # Boxes counted along the wrong axis, boxes turned over, one too few, another box size.
    (A, (32, 4), (1, 2, 2, 2, 16)),
    (A, (32, 4), (1, 1, 2, 16, 2)),
    (A, (64, 4), (1, 2, 4, 16, 2)),
    (B, (4, 32), (1, 2, 2, 32, 1)),
    (A, (32, 4), (2, 2, 2, 16, 2)),
]


@pytest.mark.parametrize(("layout", "logical", "blocked"), WRONG)
def test_a_wrong_formula_cannot_pass(
    layout: TensorLayout, logical: tuple[int, ...], blocked: tuple[int, ...]
) -> None:
    with pytest.raises(AssertionError):
        assert_boxes_are_dense(tuple(map(as_dim, blocked)), tuple(map(as_dim, logical)), layout)
