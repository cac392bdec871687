"""The ranges of scalars, against every value that they take."""

import itertools
from collections.abc import Iterator, Sequence

from hypothesis import assume, given
from hypothesis import strategies as st

from scalebox.ir.core import AssignStmt, ForStmt, SeqStmts, Stmt
from scalebox.ir.dtypes import Index
from scalebox.ir.expr import (
    Add,
    BinaryExpr,
    ConstInt,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    ScalarType,
    Sub,
    Var,
    index,
)
from scalebox.ir.ranges import Range, Ranges

INDEX = ScalarType(Index)
OPERATORS = (Add, Sub, Mul, FloorDiv, FloorMod, Min, Max)
SMALL = st.integers(-40, 40)


def loop(var: Var, start: Expr, stop: Expr, step: int, body: Stmt) -> ForStmt:
    return ForStmt(var, start, stop, index(step), (), body, ())


@st.composite
def trees(draw: st.DrawFn, leaves: Sequence[Var], depth: int = 3) -> Expr:
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from([*leaves, index(draw(SMALL))]))
    operator = draw(st.sampled_from(OPERATORS))
    left, right = draw(trees(leaves, depth - 1)), draw(trees(leaves, depth - 1))
    return operator(left, right, Index)


def value(expr: Expr, known: dict[Var, int]) -> int:
    match expr:
        case ConstInt():
            return expr.value
        case Var():
            return known[expr]
        case BinaryExpr():
            return int(type(expr).evaluate(value(expr.left, known), value(expr.right, known)))
        case _:
            raise AssertionError(expr)


def runs(outer: range, inner: range) -> Iterator[tuple[int, int]]:
    return itertools.product(outer, inner)


@given(st.data(), SMALL, SMALL, st.sampled_from((-9, -2, 1, 3, 16)), SMALL, SMALL,
       st.sampled_from((-5, 1, 4, 32)))  # fmt: skip
def test_every_value_lies_in_the_range(
    data: st.DataObject, a: int, b: int, by: int, c: int, d: int, step: int
) -> None:
    i, j, named = Var("i", INDEX), Var("j", INDEX), Var("x", INDEX)
    definition = data.draw(trees([i, j]))
    tree = data.draw(trees([i, j, named]))
    body = SeqStmts((AssignStmt(named, definition),))
    nest = loop(i, index(a), index(b), by, loop(j, index(c), index(d), step, body))
    found = Ranges(SeqStmts((nest,))).of(tree)
    assume(found is not None)
    assert found is not None
    for first, second in runs(range(a, b, by), range(c, d, step)):
        known = {i: first, j: second}
        try:
            known[named] = value(definition, known)
            got = value(tree, known)
        except ZeroDivisionError:
            continue
        assert found.low <= got <= found.high
        assert (got - found.low) % (found.step or 1) == 0
        assert found.step or got == found.low


def test_what_windows_are_made_of_has_tight_ranges() -> None:
    m, k, next_k = Var("m", INDEX), Var("k", INDEX), Var("k_1", INDEX)
    body = SeqStmts((AssignStmt(next_k, Add(k, index(64), Index)),))
    inner = loop(k, index(64), index(512), 128, body)
    ranges = Ranges(SeqStmts((loop(m, index(0), index(96), 32, inner),)))
    assert ranges.of(m) == Range(0, 64, 32)
    assert ranges.of(k) == Range(64, 448, 128)
    assert ranges.of(next_k) == Range(128, 512, 128)
    assert ranges.of(FloorDiv(next_k, index(32), Index)) == Range(4, 16, 4)
    assert ranges.of(Mul(m, index(3), Index)) == Range(0, 192, 96)
    assert ranges.of(FloorMod(k, index(64), Index)) == Range(0, 0, 0)


def test_loops_in_each_others_bounds_and_backwards() -> None:
    i, j, back = Var("i", INDEX), Var("j", INDEX), Var("b", INDEX)
    nothing = SeqStmts(())
    nest = loop(i, index(0), index(64), 16, loop(j, i, Add(i, index(16), Index), 4, nothing))
    ranges = Ranges(SeqStmts((nest, loop(back, index(192), index(-64), -64, nothing))))
    assert ranges.of(j) == Range(0, 60, 4)
    assert ranges.of(back) == Range(0, 192, 64)


def test_what_nothing_bounds_has_no_range() -> None:
    param, i = Var("n", INDEX), Var("i", INDEX)
    ranges = Ranges(SeqStmts((loop(i, index(0), param, 16, SeqStmts(())),)))
    assert ranges.of(param) is None
    assert ranges.of(i) is None
    assert ranges.of(Add(i, index(1), Index)) is None
    assert ranges.of(FloorDiv(index(8), index(0), Index)) is None


def test_a_number_beyond_the_machine_s_words_has_no_range() -> None:
    large = index(1 << 61)
    assert Ranges(SeqStmts(())).of(Mul(large, index(4), Index)) is None
