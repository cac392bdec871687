"""What is needed at a place, walking backwards."""

import pytest

from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from scalebox.ir.dtypes import DType
from scalebox.ir.expr import Add, Call, Gt, IterArg, Op, Var, index
from scalebox.ir.passes.liveness import Live, assigned_vars, live_after_each, used_vars
from scalebox.ir.types import MemorySpace, MemRef, TileType

from .parts import INDEX, loop, scalar

X, Y, Z, N, INNER = (scalar(name) for name in "xyzni")


def sets(var: Var, *reads: Var) -> AssignStmt:
    value = index(0)
    for read in reads:
        value = Add(value, read, INDEX.dtype)
    return AssignStmt(var, value)


def before(stmt: Stmt, *after: Var) -> set[str]:
    live = Live(after)
    live.pass_by(stmt)
    return {var.name_hint for var in live}


def branch(then: Stmt, other: Stmt | None = None, *results: Var) -> IfStmt:
    return IfStmt(Gt(N, index(0), DType.Bool), then, other, results)


def carrying(arg: IterArg, result: Var, *body: Stmt) -> ForStmt:
    return ForStmt(INNER, index(0), N, index(1), (arg,), SeqStmts(body), (result,))


ARG = IterArg("arg", INDEX, X)
CASES = [
    (sets(X, Y), (X, Z), "yz"),
    (sets(X, X), (X,), "x"),
    (SeqStmts((sets(X, Y), sets(Y, X))), (Y,), "y"),
    (SeqStmts((sets(X, N), sets(Y, X))), (Y,), "n"),
    (EvalStmt(Call(Op("f"), [X])), (Y,), "xy"),
    (ReturnStmt((X,)), (Y, Z), "x"),
    (YieldStmt((X, Y)), (Z,), "xyz"),
    # A branch: what either arm needs, and what is needed behind it.
    (branch(sets(X, Y)), (X,), "xyn"),
    (branch(sets(X, Y), sets(X, Z)), (X,), "yzn"),
    (branch(YieldStmt((Y,)), YieldStmt((X,)), Z), (Z,), "xyn"),
    (branch(ReturnStmt((Y,)), sets(X, N)), (X, Z), "yzn"),
    # A loop: the bounds, what a trip needs first, and what is needed behind it in case of no trip.
    (loop(INNER, 0, 4, 1, sets(X, INNER)), (X,), "x"),
    (loop(INNER, 0, 4, 1, sets(X, Y)), (Z,), "yz"),
    (loop(INNER, 0, 4, 1, sets(X, Y), sets(Y, Z)), (), "yz"),
    (loop(INNER, 0, 4, 1, sets(Y, Z), sets(X, Y)), (), "z"),
    (ForStmt(INNER, X, Y, Z, (), sets(N, INNER), ()), (), "xyz"),
    # Carried values: the first one is needed, the argument and the result are the loop's own.
    (carrying(ARG, Z, sets(Y, ARG), YieldStmt((Y,))), (Z,), "xn"),
    (WhileStmt(Gt(ARG, N, DType.Bool), (ARG,), YieldStmt((ARG,)), (Z,)), (Z, Y), "xny"),
    (WhileStmt(Gt(N, index(0), DType.Bool), (), sets(N, N), ()), (), "n"),
]


@pytest.mark.parametrize(("stmt", "after", "needed"), CASES)
def test_what_is_needed_before_a_statement(stmt: Stmt, after: tuple[Var, ...], needed: str) -> None:
    assert before(stmt, *after) == set(needed)


def test_a_value_that_the_next_trip_uses_first_is_needed_at_the_top() -> None:
    # y is read before it is set again: the last trip's y is needed, through any depth of loops.
    inner: Stmt = SeqStmts((sets(X, Y), sets(Y, Z)))
    for _ in range(30):
        inner = loop(scalar("j"), 0, 2, 1, inner)
    assert before(inner) == {"y", "z"}


def test_at_the_top_of_a_trip_the_own_variables_are_left_out() -> None:
    stmt = carrying(ARG, Z, sets(Y, ARG, INNER, N), YieldStmt((Y,)))
    assert {v.name_hint for v in Live((Z,)).at_top_of(stmt)} == {"n"}


def test_copies_are_changed_on_their_own() -> None:
    live = Live((X,))
    other = live.copy()
    other.add((Y,))
    other.remove((X,))
    assert X in live
    assert Y not in live


def test_tiles_are_found_by_their_buffer() -> None:
    def tile(name: str, buffer: str) -> Var:
        ref = MemRef(buffer, -1, 2048)
        return Var(name, TileType([16, 32], DType.Float32, ref, None, MemorySpace.Acc))

    one, two, other = tile("one", "acc_0"), tile("two", "acc_0"), tile("other", "acc_1")
    live = Live((one, two, other, X))
    assert live.in_buffer("acc_0") == {one, two}
    live.remove((one,))
    assert live.in_buffer("acc_0") == {two}
    assert live.copy().in_buffer("acc_1") == {other}
    assert live.in_buffer("acc_2") == set()


def test_live_after_each_names_loops_and_branches_only() -> None:
    stmts = [sets(X, N), loop(INNER, 0, 4, 1, sets(Y, X)), sets(Z, Y), branch(sets(Z, Z))]
    found = live_after_each(stmts, (Z,))
    assert {i: {v.name_hint for v in live} for i, live in found.items()} == {1: set("yn"), 3: {"z"}}


def test_assigned_and_used_variables() -> None:
    body = SeqStmts((sets(X, Y), carrying(ARG, Z, sets(Y, N), YieldStmt((Y,)))))
    assert [v.name_hint for v in assigned_vars((body, branch(sets(N, N), sets(INNER, N))))] == [
        "x", "y", "z", "n", "i",
    ]  # fmt: skip
    assert used_vars(Add(X, Y, INDEX.dtype), None, N) == {X, Y, N}
