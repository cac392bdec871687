"""Loops over `pl.unroll` become their trips: names, numbers that become constant, and refusals."""

import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    BreakStmt,
    ForKind,
    ForStmt,
    Function,
    FunctionType,
    IfStmt,
    Program,
    SeqStmts,
    flatten_to_stmts,
)
from scalebox.ir.dtypes import Index
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Add, ConstBool, ConstInt, Expr, Var, index, replace
from scalebox.ir.passes import convert_to_ssa, unroll_loops
from scalebox.ir.passes.unroll_loops import MAX_STATEMENTS
from scalebox.ir.verification.walk import statements


def parsed(*lines: str) -> Program:
    body = "".join(f"    {line}\n" for line in lines)
    made = pl.parse(
        "from scalebox.ir import language as pl\n"
        "@pl.function(type=pl.FunctionType.InCore)\n"
        "def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:\n" + body
    )
    assert isinstance(made, Function)
    return Program([made], "k")


def unrolled(*lines: str) -> Function:
    (made,) = unroll_loops()(parsed(*lines)).functions.values()
    assert not [
        s for s in statements(made.body) if isinstance(s, ForStmt) and s.kind is ForKind.Unroll
    ]
    return made


def result(program: Program, n: int) -> int:
    return int(scalebox.interpret(program, {"n": n})["out"])


PROGRAMS = {
    "rebinding": ["x = n", "for i in pl.unroll(4):", "    x = x * 3 + i", "return x + 0"],
    "backwards": ["x = n", "for i in pl.unroll(7, -1, -3):", "    x = x * 3 + i", "return x + 0"],
    "no trip": ["x = n", "for i in pl.unroll(3, 3):", "    x = x * 3 + i", "return x + 0"],
    "nested": [
        "x = n",
        "for i in pl.unroll(3):",
        "    for j in pl.unroll(i, 4) if False else pl.unroll(1, 4):",
        "        x = x * 2 + i * j",
        "return x + 0",
    ],
    "a loop inside": [
        "x = n",
        "for i in pl.unroll(3):",
        "    for j in pl.range(n):",
        "        x = x * 2 + i * j",
        "return x + 0",
    ],
    "a named result of each trip": [
        "x = n",
        "for i in pl.unroll(3):",
        "    for j, (s,) in pl.range(n, init_values=(x,)):",
        "        y = pl.yield_(s * 2 + i)",
        "    x = y + 1",
        "return y + x",
    ],
    "a named result of the trip before": [
        "y = n",
        "for i in pl.unroll(3):",
        "    z = y",
        "    if n > i:",
        "        y = pl.yield_(z + i)",
        "    else:",
        "        y = pl.yield_(z * 2)",
        "return y + 0",
    ],
    "a while loop inside": [
        "x = n",
        "for i in pl.unroll(3):",
        "    t = i",
        "    while t < n:",
        "        x = x + t",
        "        t = t + 2",
        "return x + 0",
    ],
    "a division by zero that nobody reaches": [
        "x = n",
        "for i in pl.unroll(3):",
        "    if n > 100:",
        "        x = x + 7 // i + 7 % i",
        "return x + 0",
    ],
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_a_loop_written_out_computes_the_same(case: str) -> None:
    lines = [line.replace("pl.unroll(i, 4) if False else ", "") for line in PROGRAMS[case]]
    before = parsed(*lines)
    after = unroll_loops()(before)
    for each in (after, convert_to_ssa()(after)):
        again = pl.parse(scalebox.ir.python_print(each))
        assert isinstance(again, Program)
        scalebox.ir.assert_structural_equal(again, each)
        for n in (0, 1, 4):
            assert result(each, n) == result(before, n)


def test_a_program_without_such_loops_comes_back_as_the_same_object() -> None:
    before = parsed("x = n", "for i in pl.range(4):", "    x = x + i", "return x + 0")
    assert unroll_loops()(before) is before


def test_what_the_number_makes_constant_is_computed() -> None:
    made = unrolled(
        "x = n",
        "for i in pl.unroll(3):",
        "    x = x + (64 - i * 16) // 3",
        "    if i % 2 == 1:",
        "        x = x * 2",
        "return x + 0",
    )
    stmts = flatten_to_stmts(made.body)
    added = [s.value.right for s in stmts if isinstance(s, AssignStmt) and isinstance(s.value, Add)]
    assert [c.value for c in added if isinstance(c, ConstInt)] == [21, 16, 10]
    tests = [s.condition for s in stmts if isinstance(s, IfStmt)]
    assert [c.value for c in tests if isinstance(c, ConstBool)] == [False, True, False]


def test_a_valid_shape_becomes_constant() -> None:
    made = pl.parse("""
from scalebox.ir import language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[40, 64], pl.FP8E4M3FN]):
    for i in pl.unroll(0, 40, 16):
        t = pl.load(a, [i, 0], [16, 64], [pl.min(16, 40 - i), 64], target_memory=pl.Mem.Mat)
""")
    assert isinstance(made, Function)
    (after,) = unroll_loops()(Program([made], "k")).functions.values()
    tiles = [s.var.type for s in flatten_to_stmts(after.body) if isinstance(s, AssignStmt)]
    shown = [[getattr(d, "value", None) for d in t.valid_shape] for t in tiles]  # pyright: ignore
    assert shown == [[16, 64], [16, 64], [8, 64]]


# --------------------------------------------------------------------------- refusals


def refused(program: Program) -> str:
    with pytest.raises(IRValueError) as caught:
        unroll_loops()(program)
    return caught.value.message


def changed(**parts: object) -> Program:
    """Return a program whose only loop has some parts replaced."""
    (made,) = parsed(
        "x = n", "for i in pl.unroll(3):", "    x = x + i", "return x + 0"
    ).functions.values()
    first, loop, last = flatten_to_stmts(made.body)
    body = SeqStmts((first, replace(loop, **parts), last))
    return Program([replace(made, body=body)], "k")


@pytest.mark.parametrize(
    ("parts", "found"),
    [({"stop": Var("m", scalebox.ir.ScalarType(Index))}, "variables"), ({"step": index(0)}, "a step of 0")],
)  # fmt: skip
def test_bounds_must_be_numbers(parts: dict[str, Expr], found: str) -> None:
    assert refused(changed(**parts)) == (
        f"The bounds of pl.unroll must be numbers, its step not 0, but it has {found}"
    )


def test_an_unrolled_loop_must_not_be_left_early() -> None:
    assert refused(changed(body=BreakStmt())) == (
        "A loop over pl.unroll must not be left by break or continue"
    )


def test_a_jump_out_of_a_loop_inside_is_that_loops_own() -> None:
    made = unrolled(
        "x = n",
        "for i in pl.unroll(2):",
        "    for j in pl.range(n):",
        "        if j == 2:",
        "            break",
        "return x + 0",
    )
    assert sum(isinstance(s, BreakStmt) for s in statements(made.body)) == 2


def test_a_loop_of_too_many_statements_is_refused() -> None:
    assert refused(changed(stop=index(MAX_STATEMENTS + 1))) == (
        f"A loop over pl.unroll must become at most {MAX_STATEMENTS} statements, not "
        f"{MAX_STATEMENTS + 1} times 1"
    )
    assert refused(changed(stop=index(1 << 62))).endswith(f"{1 << 62} times 1")


def test_a_tile_of_another_extent_in_each_trip_must_not_leave_the_loop() -> None:
    made = pl.parse("""
from scalebox.ir import language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(a: pl.Tensor[[40, 64], pl.FP8E4M3FN]):
    for i in pl.unroll(1, 3):
        t = pl.load(a, [0, 0], [16, 64], [i, 64], target_memory=pl.Mem.Mat)
    u = pl.move(t, target_memory=pl.Mem.Left)
""")
    assert isinstance(made, Function)
    assert made.func_type is FunctionType.InCore
    assert refused(Program([made], "k")) == (
        "'t' must be used inside of the loop over pl.unroll only, since its extents depend on 'i'"
    )
