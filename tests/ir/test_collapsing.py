"""Axes folded into one: where windows begin, and that what leaves its axis is seen to leave."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir.collapsing import folded_offset, is_contiguous
from scalebox.ir.core import ForStmt, ReturnStmt, SeqStmts, Stmt
from scalebox.ir.dtypes import Index
from scalebox.ir.expr import BinaryExpr, ConstInt, Expr, ScalarType, Var, index
from scalebox.ir.printer import python_print
from scalebox.ir.ranges import Ranges

NOTHING = Ranges(SeqStmts(()))
B, R = Var("b", ScalarType(Index)), Var("r", ScalarType(Index))


def value(expr: Expr, values: dict[Var, int]) -> int:
    match expr:
        case ConstInt():
            return expr.value
        case Var():
            return values[expr]
        case BinaryExpr():
            return int(type(expr).evaluate(value(expr.left, values), value(expr.right, values)))
        case _:
            raise AssertionError(expr)


def loop(var: Var, start: int, stop: int, step: int) -> Ranges:
    body: Stmt = ReturnStmt()
    return Ranges(ForStmt(var, index(start), index(stop), index(step), (), body, ()))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=3))
def test_a_window_is_contiguous_when_its_places_are_one_run(axes: list[tuple[int, int]]) -> None:
    extents = [size + more for size, more in axes]
    window = [size for size, _ in axes]
    places: list[int] = []
    for coordinate in itertools.product(*map(range, window)):
        place = 0
        for c, extent in zip(coordinate, extents, strict=True):
            place = place * extent + c
        places.append(place)
    one_run = sorted(places) == list(range(min(places), min(places) + len(places)))
    assert is_contiguous(window, extents) == one_run


def test_constants_are_folded_and_neutral_parts_left_out() -> None:
    found = folded_offset([index(2), index(3)], [1, 4], [4, 8], NOTHING)
    assert isinstance(found, ConstInt)
    assert found.value == 19
    assert python_print(folded_offset([B, index(0)], [1, 8], [4, 8], NOTHING)) == "b * 8"
    assert folded_offset([index(0), R], [1, 2], [4, 8], loop(R, 0, 8, 2)) is R
    assert folded_offset([B], [1], [4], NOTHING) is B
    assert isinstance(folded_offset([], [], [], NOTHING), ConstInt)


@pytest.mark.parametrize(("start", "stop", "step", "guarded"), [
    (0, 64, 16, False), (0, 64, 8, True), (0, 49, 8, False), (-16, 32, 16, True), (48, -1, -16, False),
])  # fmt: skip
def test_a_guard_stands_only_where_the_loop_does_not_keep_its_variable_within(
    start: int, stop: int, step: int, guarded: bool
) -> None:
    found = folded_offset([B, R], [1, 16], [4, 64], loop(R, start, stop, step))
    assert ("//" in python_print(found)) == guarded


@given(st.integers(-5, 5), st.integers(-40, 40), st.integers(-70, 140))
def test_a_row_beyond_its_matrix_leaves_all_of_them(batch: int, middle: int, row: int) -> None:
    extents, window = [4, 3, 64], [1, 1, 16]
    m = Var("m", ScalarType(Index))
    found = value(folded_offset([B, m, R], window, extents, NOTHING), {B: batch, m: middle, R: row})
    within = 0 <= middle < 3 and 0 <= row <= 48
    if within:
        assert found == (batch * 3 + middle) * 64 + row
    if not (within and 0 <= batch < 4):
        assert found < 0 or found + 16 > 4 * 3 * 64
