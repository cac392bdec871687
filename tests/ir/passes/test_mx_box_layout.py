"""The invariant that the block pass holds every rewritten type to."""

from importlib import import_module

import pytest

from scalebox.ir.core import Program, ReturnStmt
from scalebox.ir.dtypes import Index
from scalebox.ir.expr import Add, Expr, FloorDiv, as_dim, index
from scalebox.ir.numerics.scales import scale_offset_a, scale_offset_b
from scalebox.ir.passes import block_mx_scale_tensor_views
from scalebox.ir.passes.mx_blocked_types import by_axis
from scalebox.ir.passes.mx_box_layout import (
    assert_box_is_addressed,
    assert_boxes_are_dense,
    logical_placement,
)
from scalebox.ir.types import TensorLayout

from .parts import A, B, assign, function, load, loop, program, scalar, scales


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


def box(*elements: Expr | int) -> tuple[Expr, ...]:
    return tuple(map(as_dim, elements))


def by(dividend: Expr, divisor: int) -> Expr:
    return FloorDiv(dividend, index(divisor), Index)


# A tensor of 8 by 6 boxes.
BOXED = box(1, 8, 6, 16, 2)
M, G = scalar("m"), scalar("g")


@pytest.mark.parametrize("layout", [A, B])
def test_blocked_offsets_lead_to_the_byte_of_the_logical_ones(layout: TensorLayout) -> None:
    def check(block: Expr | int, group: Expr | int, *blocked: Expr | int) -> None:
        logical = box(block, group) if layout is A else box(group, block)
        assert_box_is_addressed(box(*blocked), logical, BOXED, layout)

    right = [
        (32, 4, 0, 2, 2, 0, 0),
        (M, G, 0, by(M, 16), by(G, 2), 0, 0),
        (M, 4, 0, by(M, 16), 2, 0, 0),
        (M, M, 0, by(M, 16), by(M, 2), 0, 0),
    ]
    for block, group, *blocked in right:
        check(block, group, *blocked)
    wrong = [
        (32, 8, 0, 4, 2, 0, 0),
        (32, 4, 0, 4, 2, 0, 0),
        (32, 4, 0, 2, 1, 0, 0),
        (32, 4, 2, 2, 0, 0, 0),
        (32, 4, 0, 2, 2, 1, 0),
        (M, G, 0, by(G, 2), by(M, 16), 0, 0),
        (M, G, 0, by(M, 8), by(G, 2), 0, 0),
        (M, G, 0, by(M, 15), by(G, 2), 0, 0),
        (M, G, 0, by(M, 32), by(G, 2), 0, 0),
        (M, G, 0, by(M, 16), by(G, 1), 0, 0),
        (M, G, 0, by(M, 16), by(G, 16), 0, 0),
        (M, 4, 0, M, 2, 0, 0),
        (M, 4, 0, by(Add(M, M, Index), 16), 2, 0, 0),
    ]
    for block, group, *blocked in wrong:
        with pytest.raises(AssertionError):
            check(block, group, *blocked)


def symbolic_load(layout: TensorLayout) -> Program:
    i, j = scalar("i"), scalar("j")
    shape, window = ((64, 64), (16, 2)) if layout is A else ((64, 64), (2, 16))
    s = scales("s", shape, layout)
    body = assign("t", load(s, [i, j], window, layout=layout))
    return program(function("k", [s], loop(i, 0, 64, 16, loop(j, 0, 64, 16, body))))


def test_the_pass_itself_cannot_use_a_wrong_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(rows: int, columns: int) -> tuple[Expr, ...]:
        return box(1, columns, rows, 16, 2)

    monkeypatch.setattr("scalebox.ir.passes.mx_blocked_types._boxes", turned)
    made = program(function("k", [scales("s", (64, 4))], ReturnStmt()))
    with pytest.raises(AssertionError):
        block_mx_scale_tensor_views()(made)


@pytest.mark.parametrize("layout", [A, B])
def test_the_pass_itself_cannot_use_wrong_offsets(
    layout: TensorLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turned(dims: tuple[Expr, ...], layout: TensorLayout) -> tuple[Expr, Expr]:
        return by_axis(dims[::-1], layout)

    block_mx_scale_tensor_views()(symbolic_load(layout))
    # The package's name for the module is that of the pass's factory.
    module = import_module("scalebox.ir.passes.block_mx_scale_tensor_views")
    monkeypatch.setattr(module, "by_axis", turned)
    with pytest.raises(AssertionError):
        block_mx_scale_tensor_views()(symbolic_load(layout))
