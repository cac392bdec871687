"""ConvertToSSA: what it refuses, what it leaves alone, and that it changes no value."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    BreakStmt,
    ForStmt,
    Function,
    IfStmt,
    Program,
    ReturnStmt,
    SeqStmts,
)
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Add, Gt, Var, index
from scalebox.ir.interp import interpret_program
from scalebox.ir.passes import convert_to_ssa
from scalebox.ir.properties import STRUCTURAL, IRProperty
from scalebox.ir.verifier import verify

from .parts import INDEX, at, function, loop, only, program, scalar

N, X = scalar("n"), Var("x", INDEX, at(2))
POSITIVE = Gt(N, index(0), DType.Bool)


def returning(*lines: str) -> Program:
    """A program of one function of a scalar `n`, in the language."""
    body = "\n".join(f"    {line}" for line in lines)
    text = (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:\n{body}\n"
    )
    parsed = pl.parse(text)
    assert isinstance(parsed, Function)
    return Program([parsed], "k")


def value(made: Program, n: int) -> int:
    (found,) = interpret_program(made, {"n": n}).values()
    return int(found)


def converted(made: Program) -> Program:
    new = convert_to_ssa()(made)
    assert not verify(new, STRUCTURAL | {IRProperty.SSAForm})
    return new


def plus_one(var: Var) -> AssignStmt:
    return AssignStmt(var, Add(var, index(1), INDEX.dtype), at(5))


def test_a_program_in_ssa_form_is_returned_as_it_is() -> None:
    made = returning(
        "y = n + 1",
        "for i, (s,) in pl.range(3, init_values=(y,)):",
        "    t = s + i",
        "    z = pl.yield_(t)",
        "return z",
    )
    assert convert_to_ssa()(made) is made


def test_unchanged_statements_keep_their_identity() -> None:
    made = returning("y = n + 1", "x = y * 2", "x = x + y", "return x")
    before, after = only(made).body, only(converted(made)).body
    assert isinstance(before, SeqStmts)
    assert isinstance(after, SeqStmts)
    assert after.stmts[:2] == before.stmts[:2]
    assert all(a is b for a, b in zip(after.stmts[:2], before.stmts[:2], strict=True))


def test_the_first_variable_keeps_itself_and_each_other_is_new() -> None:
    x = scalar("x")
    made = program(function("k", [N], AssignStmt(x, N), plus_one(x), plus_one(x)))
    body = only(converted(made)).body
    assert isinstance(body, SeqStmts)
    names = [stmt.var.name_hint for stmt in body.stmts if isinstance(stmt, AssignStmt)]
    assert names == ["x", "x__ssa_v1", "x__ssa_v2"]
    first = body.stmts[0]
    assert isinstance(first, AssignStmt)
    assert first.var is x


def test_a_parameter_may_be_rebound() -> None:
    made = returning("n = n + 1", "for i in pl.range(3):", "    n = n * 2", "return n")
    assert value(converted(made), 4) == 40


def test_a_loop_variable_of_two_loops_becomes_two() -> None:
    i = scalar("i")
    made = program(
        function("k", [N], *(loop(i, 0, 3, 1, AssignStmt(scalar("y"), i)) for _ in range(2)))
    )
    body = only(converted(made)).body
    assert isinstance(body, SeqStmts)
    one, other = body.stmts
    assert isinstance(one, ForStmt)
    assert isinstance(other, ForStmt)
    assert one.loop_var is i
    assert other.loop_var.name_hint == "i__idx_v1"


def test_what_a_loop_does_not_need_again_is_not_carried() -> None:
    made = returning("x = n", "for i in pl.range(3):", "    x = i", "    y = x", "return n")
    stmt = only(converted(made)).body
    assert isinstance(stmt, SeqStmts)
    assert isinstance(stmt.stmts[1], ForStmt)
    assert stmt.stmts[1].iter_args == ()


def test_what_only_the_next_trip_needs_is_merged_by_a_branch_too() -> None:
    # y is needed by nobody behind the loop, but each trip starts with what the branch left in it.
    made = returning(
        "x = 0",
        "y = n",
        "for i in pl.range(1, 4):",
        "    x = x * 10 + y",
        "    if i > 1:",
        "        y = i",
        "return x",
    )
    assert value(converted(made), 9) == value(made, 9) == 992


def test_what_only_an_outer_trip_needs_is_carried_by_an_inner_loop_too() -> None:
    made = returning(
        "x = 0",
        "y = n",
        "for i in pl.range(1, 4):",
        "    x = x * 10 + y",
        "    for j in pl.range(i):",
        "        y = y + j",
        "return x",
    )
    assert value(converted(made), 1) == value(made, 1) == 112


def test_names_that_leak_from_both_arms_are_merged() -> None:
    made = returning("if n > 2:", "    y = n", "else:", "    y = n * 10", "return y + 1")
    new = converted(made)
    assert [value(new, n) for n in (1, 3)] == [11, 4]


@pytest.mark.parametrize(
    "lines",
    [
        ("if n > 2:", "    y = n", "return y"),
        ("if n > 2:", "    y = n", "else:", "    z = n", "return y"),
        ("if n > 2:", "    y = n", "else:", "    if n > 1:", "        y = n", "return y"),
        ("for i in pl.range(n):", "    if i > 2:", "        y = n", "    z = y", "return n"),
    ],
)
def test_a_name_that_one_arm_makes_must_not_be_used_behind_the_branch(
    lines: tuple[str, ...],
) -> None:
    with pytest.raises(IRValueError) as caught:
        converted(returning(*lines))
    assert caught.value.message == (
        "'y' must have a value on every way to its use, since it is used after the branch and one "
        "way through that gives it none"
    )
    assert caught.value.span is not None


def test_a_name_that_one_arm_makes_for_itself_stays_in_it() -> None:
    made = returning("if n > 2:", "    y = n", "    z = y", "y = n + 1", "return y")
    assert [value(converted(made), n) for n in (1, 3)] == [2, 4]


def test_a_name_that_only_a_loop_makes_must_not_be_used_after_it() -> None:
    made = program(
        function("k", [N], loop(scalar("i"), 0, 3, 1, AssignStmt(X, N, at(4))), ReturnStmt((X,)))
    )
    with pytest.raises(IRValueError) as caught:
        convert_to_ssa()(made)
    assert caught.value.message == (
        "'x' must have a value before the loop, since it is used after it and the loop may run no trip"
    )


def test_a_loop_that_carries_must_not_be_left_early() -> None:
    body = (plus_one(X), IfStmt(POSITIVE, BreakStmt(at(6)), None, ()))
    made = program(
        function("k", [N], AssignStmt(X, N), loop(scalar("i"), 0, 3, 1, *body), ReturnStmt((X,)))
    )
    with pytest.raises(IRValueError) as caught:
        convert_to_ssa()(made)
    assert caught.value.message == (
        "A loop that carries values must not be left by break or continue"
    )
    assert caught.value.span == at(6)


def test_a_loop_that_carries_nothing_may_be_left_early() -> None:
    made = returning(
        "for i in pl.range(3):", "    if i > n:", "        break", "    y = i", "return n"
    )
    assert value(converted(made), 1) == 1


def test_an_arm_that_leaves_hands_nothing_on() -> None:
    made = returning("x = n", "if n > 3:", "    x = x + 1", "    return x", "return x * 10")
    new = converted(made)
    assert [value(new, n) for n in (3, 4)] == [30, 5]


def test_what_the_other_arm_changes_must_not_be_used_behind_the_branch() -> None:
    made = returning(
        "x = n", "if n > 3:", "    return x", "else:", "    x = x + 1", "return x * 10"
    )
    with pytest.raises(IRValueError) as caught:
        convert_to_ssa()(made)
    assert caught.value.message == (
        "'x' must not be assigned in one arm of a branch and used after it when the other arm leaves"
    )


# --------------------------------------------------------------------------- random programs


NAMES = ("x", "y", "z")


@st.composite
def bodies(draw: st.DrawFn, depth: int, loops: tuple[str, ...]) -> list[str]:
    """Statements on three scalars that always have a value, in loops and branches."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["assign", "assign", "assign", "for", "if", "while"]))
        reads = st.sampled_from([*NAMES, *loops, "n"])
        if kind == "assign" or depth == 0:
            sign, factor = draw(st.sampled_from("+-")), draw(st.integers(1, 3))
            lines.append(
                f"{draw(st.sampled_from(NAMES))} = {draw(reads)} * {factor} {sign} {draw(reads)}"
            )
        elif kind == "for":
            inner = f"i{len(loops)}_{draw(st.integers(0, 99))}"
            stop = draw(st.sampled_from(["0", "1", "3", "n"]))
            lines.append(f"for {inner} in pl.range({stop}):")
            lines += _indented(draw(bodies(depth - 1, (*loops, inner))))
        elif kind == "while":
            counter = f"w{len(loops)}_{draw(st.integers(0, 99))}"
            lines += [f"{counter} = 0", f"while {counter} < {draw(st.integers(0, 2))}:"]
            lines += [f"    {counter} = {counter} + 1"]
            lines += _indented(draw(bodies(depth - 1, (*loops, counter))))
        else:
            lines.append(f"if {draw(reads)} > {draw(st.integers(-3, 9))}:")
            lines += _indented(draw(bodies(depth - 1, loops)))
            if draw(st.booleans()):
                lines.append("else:")
                lines += _indented(draw(bodies(depth - 1, loops)))
    return lines


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@given(bodies(3, ()))
def test_a_random_program_computes_the_same_in_ssa_form(lines: list[str]) -> None:
    made = returning("x = n", "y = n + 1", "z = n * 2", *lines, "return x * 10007 + y * 101 + z")
    new = converted(made)
    assert convert_to_ssa()(new) is new
    for n in (0, 1, 3):
        assert value(new, n) == value(made, n)
