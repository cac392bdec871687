"""Control flow: loops, branches, rebinding and explicit carries."""

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
import pytest

from scalebox.ir.core import (
    AssignStmt,
    ForStmt,
    Function,
    IfStmt,
    Program,
    ReturnStmt,
    SeqStmts,
    WhileStmt,
    YieldStmt,
)
from scalebox.ir.dtypes import DType, Index
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Add, Gt, IterArg, ScalarType, Sub, Var, index
from scalebox.ir.interp import interpret_program

Run = Callable[..., dict[str, npt.NDArray[Any]]]
INDEX = ScalarType(Index)


def only(outputs: dict[str, npt.NDArray[Any]]) -> Any:
    (value,) = outputs.values()
    return value.item()


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("n", [0, 1, 2, 3, 4]),
        ("2, n", [2, 3, 4]),
        ("0, n, 2", [0, 2, 4]),
        ("n, 0, -2", [5, 3, 1]),
        ("3, 3", []),
        ("5, 2", []),
    ],
)
def test_a_loop_runs_over_its_bounds(run: Run, bounds: str, expected: list[int]) -> None:
    body = f"s = n * 0\nfor i in pl.range({bounds}):\n    s = s * 10 + i + 1\nreturn s"
    assert only(run(body, n=5)) == int("".join(str(i + 1) for i in expected) or "0")


def test_break_and_continue(run: Run) -> None:
    body = """
s = n * 0
for i in pl.range(10):
    if i == 2:
        continue
    if i > n:
        break
    s = s + i
return s
"""
    assert only(run(body, n=4)) == 0 + 1 + 3 + 4


def test_a_jump_leaves_the_inner_loop_only(run: Run) -> None:
    body = """
s = n * 0
for i in pl.range(3):
    for j in pl.range(10):
        if j == n:
            break
        s = s + 1
return s
"""
    assert only(run(body, n=4)) == 12


def test_while_runs_as_long_as_its_condition_holds(run: Run) -> None:
    body = "s = n * 0\nwhile n > 1:\n    n = n // 2\n    s = s + 1\nreturn s"
    assert only(run(body, n=1000)) == 9
    assert only(run(body, n=0)) == 0


@pytest.mark.parametrize(("n", "expected"), [(-5, -1), (0, 0), (5, 1)])
def test_branches(run: Run, n: int, expected: int) -> None:
    body = """
s = n * 0
if n < 0:
    s = s - 1
elif n > 0:
    s = s + 1
else:
    s = s + 0
return s
"""
    assert only(run(body, n=n)) == expected


def test_a_return_inside_a_loop_ends_the_function(run: Run) -> None:
    body = "for i in pl.range(10):\n    if i * i > n:\n        return i\nreturn n"
    assert run(body, n=20)["i"].item() == 5


def test_a_step_of_zero_is_told_with_its_place(run: Run) -> None:
    body = "s = n * 0\nfor i in pl.range(0, 4, n):\n    s = s + i\nreturn s"
    with pytest.raises(IRValueError, match=r"^The step of a loop must not be zero") as caught:
        run(body, n=0)
    assert caught.value.span is not None


def test_several_results_and_a_tuple(run: Run) -> None:
    outputs = run("a = n + 1\nb = n + 2\nreturn a, b", n=5)
    assert {name: value.item() for name, value in outputs.items()} == {"a": 6, "b": 7}


def test_a_result_without_a_name_is_called_out(run: Run) -> None:
    assert run("return n + 1", n=5)["out"].item() == 6
    assert list(run("return n + 1, n + 2", n=5)) == ["out", "out_1"]


class TestExplicitCarries:
    """The form after SSA conversion: iteration arguments, yields and return variables."""

    @staticmethod
    def result(*stmts: Any, value: Var, n: int) -> int:
        parameter = stmts[0]
        body = SeqStmts((*stmts[1:], ReturnStmt((value,))))
        function = Function("f", [parameter], [INDEX], body)
        return only(interpret_program(Program([function]), {"n": n}))

    def test_a_for_loop_swaps_two_values_at_once(self) -> None:
        n, i = Var("n", INDEX), Var("i", INDEX)
        a, b = IterArg("a", INDEX, index(0)), IterArg("b", INDEX, index(1))
        results = (Var("ra", INDEX), Var("rb", INDEX))
        body = YieldStmt((b, Add(a, b, Index)))
        loop = ForStmt(i, index(0), n, index(1), (a, b), body, results)
        fibonacci = [self.result(n, loop, value=results[0], n=k) for k in range(8)]
        assert fibonacci == [0, 1, 1, 2, 3, 5, 8, 13]

    def test_a_while_loop_sees_the_yielded_value(self) -> None:
        n, r = Var("n", INDEX), Var("r", INDEX)
        x = IterArg("x", INDEX, n)
        loop = WhileStmt(
            Gt(x, index(10), DType.Bool), (x,), YieldStmt((Sub(x, index(4), Index),)), (r,)
        )
        assert self.result(n, loop, value=r, n=21) == 9
        assert self.result(n, loop, value=r, n=3) == 3

    def test_a_branch_yields_into_its_return_variable(self) -> None:
        n, r = Var("n", INDEX), Var("r", INDEX)
        t = Var("t", INDEX)
        then = SeqStmts((AssignStmt(t, Add(n, n, Index)), YieldStmt((t,))))
        branch = IfStmt(Gt(n, index(10), DType.Bool), then, YieldStmt((n,)), (r,))
        assert self.result(n, branch, value=r, n=11) == 22
        assert self.result(n, branch, value=r, n=10) == 10

    def test_a_branch_inside_a_loop_does_not_end_the_trip(self) -> None:
        n, i, r, p = (Var(name, INDEX) for name in ("n", "i", "r", "p"))
        s = IterArg("s", INDEX, index(0))
        branch = IfStmt(
            Gt(i, index(1), DType.Bool), YieldStmt((index(10),)), YieldStmt((index(1),)), (p,)
        )
        trip = SeqStmts((branch, YieldStmt((Add(s, p, Index),))))
        loop = ForStmt(i, index(0), n, index(1), (s,), trip, (r,))
        assert self.result(n, loop, value=r, n=4) == 22

    def test_a_variable_without_a_value_is_told(self) -> None:
        n, ghost = Var("n", INDEX), Var("ghost", INDEX)
        with pytest.raises(IRValueError, match=r"^'ghost' must have a value before it is used"):
            self.result(n, value=ghost, n=1)
