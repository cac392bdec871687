"""NormalizeStmtStructure and FlattenCallExpr on raw IR: what the parser never makes."""

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
from scalebox.ir.expr import Add, Call, Gt, IterArg, MakeTuple, Op, Submit, Var, index
from scalebox.ir.passes import flatten_call_expr, normalize_stmt_structure
from scalebox.ir.properties import IRProperty
from scalebox.ir.verifier import verify

from .parts import INDEX, assign, call, function, loop, only, program, scalar, stmts

N = scalar("n")
POSITIVE = Gt(N, index(0), DType.Bool)
ONE, TWO, THREE = (assign(name, index(0)) for name in "abc")


def body_of(*stmts_: Stmt) -> Stmt:
    made = normalize_stmt_structure()(program(function("k", [N], *stmts_)))
    assert not verify(made, [IRProperty.NormalizedStmtStructure, IRProperty.NoRedundantBlocks])
    assert normalize_stmt_structure()(made) is made
    return only(made).body


def test_nested_sequences_are_opened() -> None:
    nested = SeqStmts((ONE, SeqStmts((TWO, SeqStmts((THREE,))))))
    body = body_of(nested)
    assert isinstance(body, SeqStmts)
    assert body.stmts == (ONE, TWO, THREE)


def test_a_sequence_of_one_statement_is_that_statement() -> None:
    assert body_of(SeqStmts((SeqStmts((ONE,)),))) is ONE


def test_the_bodies_of_loops_and_branches_are_normalised() -> None:
    single = SeqStmts((ONE,))
    double = SeqStmts((SeqStmts((ONE, TWO)),))
    branch = body_of(IfStmt(POSITIVE, single, double, ()))
    assert isinstance(branch, IfStmt)
    assert branch.then_body is ONE
    assert isinstance(branch.else_body, SeqStmts)
    assert branch.else_body.stmts == (ONE, TWO)
    for stmt in (loop(scalar("i"), 0, 3, 1, single), WhileStmt(POSITIVE, (), single, ())):
        found = body_of(stmt)
        assert isinstance(found, ForStmt | WhileStmt)
        assert found.body is ONE


def test_what_is_normal_stays_the_same_object() -> None:
    made = program(function("k", [N], loop(scalar("i"), 0, 3, 1, ONE, TWO), THREE))
    assert normalize_stmt_structure()(made) is made


# --------------------------------------------------------------------------- nested calls


def f(*args: Var | Call | int) -> Call:
    return Call(Op("f"), [index(a) if isinstance(a, int) else a for a in args], INDEX)


def flat(*stmts_: Stmt) -> tuple[Stmt, ...]:
    made = flatten_call_expr()(program(function("k", [N], *stmts_)))
    assert flatten_call_expr()(made) is made
    return stmts(only(made))


def shown(made: tuple[Stmt, ...]) -> list[str]:
    """Assignments as `name = op(arguments)`."""

    def text(expr: object) -> str:
        match expr:
            case Call():
                return f"{expr.name}({', '.join(map(text, expr.args))})"
            case Var():
                return expr.name_hint
            case Add():
                return f"{text(expr.left)} + {text(expr.right)}"
            case MakeTuple():
                return f"[{', '.join(map(text, expr.elements))}]"
            case _:
                return str(getattr(expr, "value", type(expr).__name__))

    return [
        f"{s.var.name_hint} = {text(s.value)}" if isinstance(s, AssignStmt) else type(s).__name__
        for s in made
    ]


def test_inner_calls_move_out_in_the_order_of_evaluation() -> None:
    made = flat(assign("x", f(f(f(1), f(2)), N)))
    assert shown(made) == ["_t1 = f(1)", "_t2 = f(2)", "_t3 = f(_t1, _t2)", "x = f(_t3, n)"]


def test_calls_in_arithmetic_tuples_and_statements_move_out() -> None:
    sum_ = Add(f(1), N, INDEX.dtype)
    tuple_call = Call(Op("g"), [MakeTuple((f(2), N))], INDEX)
    made = flat(assign("x", sum_), EvalStmt(tuple_call), ReturnStmt((f(3),)))
    assert shown(made) == [
        "_t1 = f(1)",
        "x = _t1 + n",
        "_t2 = f(2)",
        "EvalStmt",
        "_t3 = f(3)",
        "ReturnStmt",
    ]


def test_a_nested_submit_moves_out() -> None:
    inner = Submit(call("k").op, [], [], INDEX)  # type: ignore[arg-type]
    made = flat(assign("x", Call(Op("f"), [inner], INDEX)))
    assert shown(made) == ["_t1 = Submit", "x = f(_t1)"]


def test_calls_in_attributes_move_out() -> None:
    made = flat(assign("x", Call(Op("f"), [], {"key": f(1)}, {"dump": [f(2)]}, INDEX)))
    assert shown(made)[-1] == "x = f()"
    assert len(made) == 3


def test_the_bounds_and_initial_values_of_a_loop_move_before_it() -> None:
    arg = IterArg("x", INDEX, f(1))
    body = YieldStmt((f(2),))
    stmt = ForStmt(scalar("i"), index(0), f(3), index(1), (arg,), body, (scalar("y"),))
    made = flat(stmt)
    assert [type(s).__name__ for s in made] == ["AssignStmt", "AssignStmt", "ForStmt"]
    found = made[-1]
    assert isinstance(found, ForStmt)
    assert shown((*made[:2],)) == ["_t1 = f(3)", "_t2 = f(1)"]
    assert isinstance(found.body, SeqStmts)
    assert shown(found.body.stmts) == ["_t3 = f(2)", "YieldStmt"]


def test_a_call_in_the_condition_of_a_while_loop_is_left_for_the_verifier() -> None:
    condition = Gt(f(1), index(0), DType.Bool)
    stmt = WhileStmt(condition, (), assign("x", f(f(2))), ())
    made = flatten_call_expr()(program(function("k", [N], stmt)))
    found = only(made).body
    assert isinstance(found, WhileStmt)
    assert found.condition is condition
    assert isinstance(found.body, SeqStmts)
    assert shown(found.body.stmts) == ["_t1 = f(2)", "x = f(_t1)"]
    (wrong,) = verify(made, [IRProperty.NoNestedCalls])
    assert wrong.message == "The call of f must have a variable of its own"


def test_the_condition_of_a_branch_moves_before_it_and_that_of_an_elif_into_the_else() -> None:
    inner = IfStmt(Gt(f(2), index(0), DType.Bool), ONE, None, ())
    outer = IfStmt(Gt(f(1), index(0), DType.Bool), TWO, inner, ())
    made = flat(outer)
    assert shown(made) == ["_t1 = f(1)", "IfStmt"]
    branch = made[1]
    assert isinstance(branch, IfStmt)
    assert isinstance(branch.else_body, SeqStmts)
    assert shown(branch.else_body.stmts) == ["_t2 = f(2)", "IfStmt"]
