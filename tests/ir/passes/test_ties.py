"""Which values are one value over time."""

from scalebox.ir.core import ForStmt, IfStmt, SeqStmts, WhileStmt, YieldStmt
from scalebox.ir.dtypes import DType
from scalebox.ir.expr import Gt, IterArg, index
from scalebox.ir.passes.ties import Ties, ties_of, yielded

from .parts import INDEX, assign, loop, scalar

X, Y, Z, R = (scalar(name) for name in "xyzr")
POSITIVE = Gt(X, index(0), DType.Bool)


def pairs(*stmts: object) -> list[tuple[str, str]]:
    found = ties_of(SeqStmts(stmts))  # type: ignore[arg-type]
    return [(getattr(a, "name_hint", "?"), getattr(b, "name_hint", "?")) for a, b in found]


def test_loops_tie_first_value_argument_yield_and_result() -> None:
    arg = IterArg("a", INDEX, X)
    wanted = [("x", "a"), ("a", "y"), ("a", "r")]
    body = SeqStmts((assign("t", index(1)), YieldStmt((Y,))))
    assert pairs(ForStmt(Z, index(0), index(4), index(1), (arg,), body, (R,))) == wanted
    assert pairs(WhileStmt(POSITIVE, (arg,), body, (R,))) == wanted


def test_branches_tie_what_the_arms_yield() -> None:
    assert pairs(IfStmt(POSITIVE, YieldStmt((X,)), YieldStmt((Y,)), (R,))) == [
        ("x", "r"),
        ("r", "y"),
    ]
    assert pairs(IfStmt(POSITIVE, assign("t", index(1)), None, ())) == []


def test_another_name_is_tied_and_another_value_is_not() -> None:
    assert pairs(assign("t", X), assign("u", index(1))) == [("x", "t")]


def test_inner_bodies_follow() -> None:
    inner = loop(scalar("i"), 0, 4, 1, assign("t", X))
    assert pairs(loop(scalar("j"), 0, 4, 1, inner), assign("u", Y)) == [("x", "t"), ("y", "u")]


def test_what_a_body_yields() -> None:
    assert yielded(None) == ()
    assert yielded(assign("t", X)) == ()
    assert yielded(SeqStmts((assign("t", X), YieldStmt((X, Y))))) == (X, Y)


def test_a_part_is_known_by_its_first_member() -> None:
    ties: Ties[str] = Ties()
    ties.tie("a", "b")
    ties.tie("c", "d")
    ties.tie("b", "c")
    assert {ties.first(member) for member in "abcd"} == {"a"}
    assert ties.first("e") == "e"
    ties.tie("d", "a")
    assert ties.first("b") == "a"


def test_long_chains_are_short_after_one_look() -> None:
    ties: Ties[int] = Ties()
    for number in range(5000, 0, -1):
        ties.tie(number - 1, number)
    assert ties.first(5000) == 0
