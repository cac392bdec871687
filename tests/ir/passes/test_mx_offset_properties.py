"""What BlockMxScaleTensorViews accepts is aligned and non-negative: random offsets, enumerated."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hypothesis import event, given
from hypothesis import strategies as st

from scalebox.ir.core import AssignStmt, ForStmt, Program, SeqStmts, Stmt
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import (
    Add,
    BinaryExpr,
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    FloorMod,
    MakeTuple,
    Max,
    Min,
    Mul,
    Sub,
    Var,
    index,
)
from scalebox.ir.passes import block_mx_scale_tensor_views
from scalebox.ir.types import TensorLayout

from .parts import INDEX, A, B, assign, call, function, load, loop, program, scalar, scales

WORD = range(-(1 << 63), 1 << 63)
KINDS = (Add, Add, Sub, Mul, Mul, FloorDiv, FloorMod, Max, Min)
#: Small numbers that are aligned, half aligned or not; huge ones leave 64 bits when they meet.
NUMBERS = st.sampled_from(
    [0, 1, 2, 3, 4, 8, 16, 16, 16, 32, 32, 48, 64, -1, -16, 1 << 40, 1 << 62, (1 << 63) - 16]
)


class _LeavesTheWord(Exception):  # noqa: N818 - control flow inside this file
    pass


def value(expr: Expr, values: Mapping[Var, int]) -> int:
    """The value of an expression as unbounded integers have it, if no part of it leaves 64 bits."""
    match expr:
        case ConstInt():
            found = expr.value
        case Var():
            found = values[expr]
        case FloorDiv() | FloorMod():
            divisor = value(expr.right, values)
            if divisor == 0:
                raise _LeavesTheWord
            found = type(expr).evaluate(value(expr.left, values), divisor)
        case BinaryExpr():
            found = type(expr).evaluate(value(expr.left, values), value(expr.right, values))
        case _:
            raise AssertionError(expr)
    if found not in WORD:
        raise _LeavesTheWord
    return found


@dataclass
class Nest:
    """A kernel with loops around scalars and one load; `calls` are what its parameter gets."""

    loops: list[tuple[Var, int, int, int]]
    definitions: list[AssignStmt]
    offsets: tuple[Expr, Expr]
    layout: TensorLayout
    row: Var
    calls: list[int]

    @property
    def program(self) -> Program:
        s = scales("s", (1 << 20, 1 << 20), self.layout)
        window = (16, 2) if self.layout is A else (2, 16)
        body: Stmt = assign("t", load(s, self.offsets, window, layout=self.layout))
        if self.definitions:
            body = SeqStmts((*self.definitions, body))
        for var, start, stop, step in reversed(self.loops):
            body = loop(var, start, stop, step, body)
        kernel = function("k", [s, self.row], body)
        t = scales("t", (1 << 20, 1 << 20), self.layout)
        launches = [assign(f"r{n}", call("k", t, row)) for n, row in enumerate(self.calls)]
        return program(kernel, function("main", [t], *launches))

    def iterations(self) -> Iterator[dict[Var, int]]:
        """Every assignment of loop variables, parameter and scalars that a run meets."""
        ranges = [range(start, stop, step) for _, start, stop, step in self.loops]
        for row in self.calls:
            for indices in itertools.product(*ranges):
                values = {self.row: row}
                values.update(zip((var for var, *_ in self.loops), indices, strict=True))
                yield values


def operation(kind: type[BinaryExpr], left: Expr, right: Expr) -> Expr:
    return kind(left, right, INDEX.dtype)


@st.composite
def trees(draw: st.DrawFn, leaves: list[Expr]) -> Expr:
    leaf = st.sampled_from(leaves) | NUMBERS.map(index)

    def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.builds(operation, st.sampled_from(KINDS), inner, inner | NUMBERS.map(index))

    return draw(st.recursive(leaf, grown, max_leaves=6))


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    starts = st.sampled_from([0, 16, 16, 32, 32, 48, 64, 8, 2, 1, -16])
    steps = st.sampled_from([16, 16, 16, 32, 48, 8, 1, -16])
    loops: list[tuple[Var, int, int, int]] = []
    for number in range(draw(st.integers(0, 3))):
        start, step = draw(starts), draw(steps)
        trips = draw(st.integers(0, 3))
        loops.append((scalar(f"i{number}"), start, start + trips * step, step))
    row = scalar("row")
    leaves: list[Expr] = [row, *(var for var, *_ in loops)]
    definitions: list[AssignStmt] = []
    for number in range(draw(st.integers(0, 3))):
        definitions.append(assign(f"x{number}", draw(trees(leaves))))
        leaves.append(definitions[-1].var)
    offset = draw(trees(leaves))
    offsets = draw(st.sampled_from([(offset, index(0)), (index(16), offset), (offset, offset)]))
    calls = draw(st.lists(starts, min_size=1, max_size=3))
    return Nest(loops, definitions, offsets, draw(st.sampled_from([A, B])), row, calls)


def blocked_offsets(made: Program) -> tuple[Expr, ...]:
    kernel = made.get_function("k")
    assert kernel is not None
    stmt = kernel.body
    while not isinstance(stmt, AssignStmt):
        assert isinstance(stmt, ForStmt | SeqStmts)
        stmt = stmt.body if isinstance(stmt, ForStmt) else stmt.stmts[-1]
    assert isinstance(stmt.value, Call)
    offsets = stmt.value.args[1]
    assert isinstance(offsets, MakeTuple)
    return offsets.elements


@given(nests())
def test_accepted_offsets_are_aligned_and_non_negative_in_every_iteration(nest: Nest) -> None:
    try:
        made = block_mx_scale_tensor_views()(nest.program)
    except IRValueError as error:
        refusal = error.message
    else:
        refusal = ""
        event("accepted")
        check_every_iteration(nest, made)
    assert not refusal or "The MX slice offset" in refusal or "must lie within" in refusal


def check_every_iteration(nest: Nest, made: Program) -> None:
    block, group = nest.offsets if nest.layout is A else nest.offsets[::-1]
    _, found_block, found_group, *_ = blocked_offsets(made)
    for values in nest.iterations():
        try:
            for definition in nest.definitions:
                values[definition.var] = value(definition.value, values)
            for offset, found, unit in ((block, found_block, 16), (group, found_group, 2)):
                logical = value(offset, values)
                assert logical >= 0
                assert logical % unit == 0
                # The row parameter of the blocked kernel is the same variable: it is a scalar.
                assert value(found, values) == logical // unit
        except _LeavesTheWord:
            continue


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.sampled_from([A, B]), st.integers(0, 3))
def test_an_aligned_constant_within_the_tensor_is_never_refused(
    block: int, group: int, layout: TensorLayout, spare: int
) -> None:
    row, column = block * 16, group * 2
    shape = (row + 16 * (1 + spare), column + 2 * (1 + spare))
    offsets, window = (row, column), (16, 2)
    if layout is B:
        shape, offsets, window = shape[::-1], offsets[::-1], window[::-1]
    s = scales("s", shape, layout)
    made = program(function("k", [s], assign("t", load(s, offsets, window, layout=layout))))
    blocked = blocked_offsets(block_mx_scale_tensor_views()(made))
    assert [e.value for e in blocked if isinstance(e, ConstInt)] == [0, block, group, 0, 0]


@given(st.integers(0, 1 << 40), st.integers(1, 1 << 40), st.integers(-5, 1 << 50))
def test_a_loop_from_an_aligned_start_by_an_aligned_step_is_never_refused(
    start: int, step: int, stop: int
) -> None:
    s, i, j = scales(), scalar("i"), scalar("j")
    body = loop(j, start * 2, stop, step * 2, assign("t", load(s, [i, j])))
    made = program(function("k", [s], loop(i, start * 16, stop, step * 16, body)))
    block_mx_scale_tensor_views()(made)
