"""What BlockNzTensorViews accepts is whole boxes and never negative: random offsets, enumerated."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hypothesis import event, given
from hypothesis import strategies as st

from scalebox.ir.core import AssignStmt, Program, SeqStmts, Stmt
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
from scalebox.ir.passes import block_nz_tensor_views
from scalebox.ir.verification.walk import all_calls

from .nz_parts import nz, nz_load
from .parts import INDEX, assign, call, function, loop, program, scalar

WORD = range(-(1 << 63), 1 << 63)
KINDS = (Add, Add, Sub, Mul, Mul, FloorDiv, FloorMod, Max, Min)
NUMBERS = st.sampled_from([0, 1, 2, 4, 8, 16, 16, 32, 32, 32, 64, 96, -1, -32, 1 << 40, 1 << 62])
STARTS = st.sampled_from([0, 0, 32, 32, 64, 16, 8, -32])
SHAPE = (1 << 10, 1 << 20, 1 << 20)
UNITS = (1, 16, 32)


class _LeavesTheWord(Exception):  # noqa: N818 - control flow inside this file
    pass


def value(expr: Expr, values: Mapping[Var, int]) -> int:
    """The value of an expression, if none of its parts leaves 64 bits or divides by zero."""
    match expr:
        case ConstInt():
            found = expr.value
        case Var():
            found = values[expr]
        case BinaryExpr():
            left, right = value(expr.left, values), value(expr.right, values)
            if isinstance(expr, FloorDiv | FloorMod) and right == 0:
                raise _LeavesTheWord
            found = int(type(expr).evaluate(left, right))
        case _:
            raise AssertionError(expr)
    if found not in WORD:
        raise _LeavesTheWord
    return found


@dataclass
class Nest:
    """A kernel of loops around scalars and one load; `calls` are what its parameter gets."""

    loops: list[tuple[Var, int, int, int]]
    definitions: list[AssignStmt]
    offsets: tuple[Expr, ...]
    param: Var
    calls: list[int]

    @property
    def program(self) -> Program:
        x, y = nz(SHAPE), nz(SHAPE)
        body: Stmt = assign("t", nz_load(x, self.offsets, (1, 16, 32)))
        if self.definitions:
            body = SeqStmts((*self.definitions, body))
        for var, start, stop, step in reversed(self.loops):
            body = loop(var, start, stop, step, body)
        launches = [assign(f"r{n}", call("k", y, each)) for n, each in enumerate(self.calls)]
        return program(function("k", [x, self.param], body), function("main", [y], *launches))

    def iterations(self) -> Iterator[dict[Var, int]]:
        ranges = [range(start, stop, step) for _, start, stop, step in self.loops]
        for each in self.calls:
            for indices in itertools.product(*ranges):
                values = {self.param: each}
                values.update(zip((var for var, *_ in self.loops), indices, strict=True))
                yield values


def operation(kind: type[BinaryExpr], left: Expr, right: Expr) -> Expr:
    return kind(left, right, INDEX.dtype)


@st.composite
def trees(draw: st.DrawFn, leaves: list[Expr]) -> Expr:
    leaf = st.sampled_from(leaves) | NUMBERS.map(index)

    def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.builds(operation, st.sampled_from(KINDS), inner, inner | NUMBERS.map(index))

    return draw(st.recursive(leaf, grown, max_leaves=5))


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    loops: list[tuple[Var, int, int, int]] = []
    for number in range(draw(st.integers(0, 2))):
        start, step = draw(STARTS), draw(st.sampled_from([32, 32, 64, 16, 1, -32]))
        loops.append((scalar(f"i{number}"), start, start + draw(st.integers(0, 3)) * step, step))
    param = scalar("p")
    leaves: list[Expr] = [param, *(var for var, *_ in loops)]
    definitions: list[AssignStmt] = []
    for number in range(draw(st.integers(0, 2))):
        definitions.append(assign(f"x{number}", draw(trees(leaves))))
        leaves.append(definitions[-1].var)
    offset = draw(trees(leaves))
    place = draw(st.integers(0, 2))
    offsets = tuple(offset if axis == place else index(0) for axis in range(3))
    calls = draw(st.lists(STARTS, min_size=1, max_size=2))
    return Nest(loops, definitions, offsets, param, calls)


def blocked_offsets(made: Program) -> tuple[Expr, ...]:
    kernel = made.get_function("k")
    assert kernel is not None
    (load,) = (each for each in all_calls(kernel) if each.op.name == "tile.load")
    assert isinstance(load, Call)
    offsets = load.args[1]
    assert isinstance(offsets, MakeTuple)
    return offsets.elements


@given(nests())
def test_accepted_offsets_are_whole_boxes_and_non_negative_in_every_iteration(nest: Nest) -> None:
    try:
        made = block_nz_tensor_views()(nest.program)
    except IRValueError as error:
        refusal = error.message
    else:
        refusal = ""
        event("accepted")
        check_every_iteration(nest, made)
    assert not refusal or "The offset of a load from NZ" in refusal or "must lie within" in refusal


def check_every_iteration(nest: Nest, made: Program) -> None:
    batch, across, down, *rest = blocked_offsets(made)
    assert [each.value for each in rest if isinstance(each, ConstInt)] == [0, 0]
    found = (batch, down, across)
    for values in nest.iterations():
        try:
            for definition in nest.definitions:
                values[definition.var] = value(definition.value, values)
            for offset, blocked, unit in zip(nest.offsets, found, UNITS, strict=True):
                logical = value(offset, values)
                assert logical >= 0
                assert logical % unit == 0
                assert value(blocked, values) == logical // unit
        except _LeavesTheWord:
            continue


@given(st.integers(0, 1000), st.integers(0, 1 << 15), st.integers(0, 1 << 14))
def test_whole_boxes_within_the_tensor_are_never_refused(batch: int, row: int, column: int) -> None:
    x = nz(SHAPE)
    made = program(
        function("k", [x], assign("t", nz_load(x, (batch, row * 16, column * 32), (1, 16, 32))))
    )
    found = blocked_offsets(block_nz_tensor_views()(made))
    assert [each.value for each in found if isinstance(each, ConstInt)] == [
        batch,
        column,
        row,
        0,
        0,
    ]


@given(st.integers(0, 1 << 30), st.integers(1, 1 << 30), st.integers(-5, 1 << 40))
def test_a_loop_from_whole_boxes_by_whole_boxes_is_never_refused(
    start: int, step: int, stop: int
) -> None:
    x, i, j = nz(SHAPE), scalar("i"), scalar("j")
    body = loop(j, start * 32, stop, step * 32, assign("t", nz_load(x, [0, i, j], (1, 16, 32))))
    block_nz_tensor_views()(program(function("k", [x], loop(i, start * 16, stop, step * 16, body))))
