"""Visitors look at every node once; mutators copy only what changes."""

from collections.abc import Callable
from typing import Any

import pytest

from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    Function,
    IfStmt,
    InCoreScopeStmt,
    Program,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from scalebox.ir.dtypes import DType, Index, TaskId
from scalebox.ir.expr import (
    Add,
    Call,
    ConstInt,
    Expr,
    IterArg,
    Lt,
    MakeTuple,
    Mul,
    Neg,
    Op,
    ScalarType,
    Type,
    Var,
    index,
)
from scalebox.ir.node_exprs import type_exprs
from scalebox.ir.types import TensorType, TileType, TileView, TupleType
from scalebox.ir.visitor import (
    IRMutator,
    IRVisitor,
    collect_def_vars,
    rewrite_type,
    set_call_attrs,
    substitute_expr,
    substitute_stmt,
)

SCALAR = ScalarType(Index)


def var(name: str, type_: Type = SCALAR) -> Var:
    return Var(name, type_)


def loop(body: Stmt, *, arg: IterArg, result: Var, i: Var) -> ForStmt:
    return ForStmt(i, index(0), index(4), index(1), (arg,), body, (result,))


@pytest.fixture
def sample() -> tuple[Function, dict[str, Var]]:
    """Return f(a): s = 0; for i, (t,) in …: u = t + i; yield u; return r."""
    names = {name: var(name) for name in ("a", "s", "i", "u", "r")}
    t = IterArg("t", SCALAR, names["s"])
    names["t"] = t
    body = SeqStmts(
        (
            AssignStmt(names["u"], Add(t, names["i"], Index)),
            YieldStmt((names["u"],)),
        )
    )
    whole = SeqStmts(
        (
            AssignStmt(names["s"], Mul(names["a"], index(2), Index)),
            loop(body, arg=t, result=names["r"], i=names["i"]),
            ReturnStmt((names["r"],)),
        )
    )
    return Function("f", [names["a"]], [SCALAR], whole), names


class Names(IRVisitor):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def visit_var_like(self, op: Var) -> None:
        self.seen.append(op.name_hint)


class TestVisitor:
    def test_it_meets_every_variable_in_program_order(
        self, sample: tuple[Function, dict[str, Var]]
    ) -> None:
        visitor = Names()
        visitor.visit_program(Program([sample[0]]))
        assert visitor.seen == ["a", "s", "a", "i", "s", "t", "u", "t", "i", "u", "r", "r"]

    def test_the_hook_of_a_class_goes_on_to_that_of_its_group(self) -> None:
        seen: list[str] = []

        class Looker(IRVisitor):
            def visit_mul(self, op: Mul) -> None:
                seen.append("mul")
                super().visit_mul(op)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

            def visit_binary_expr(self, op: Any) -> None:
                seen.append(type(op).__name__)
                super().visit_binary_expr(op)

            def visit_unary_expr(self, op: Any) -> None:
                seen.append(type(op).__name__)
                super().visit_unary_expr(op)

        inner = Add(index(1), Neg(index(2), Index), Index)
        Looker().visit_expr(Mul(inner, index(3), Index))
        assert seen == ["mul", "Mul", "Add", "Neg"]

    def test_expressions_among_the_attributes_of_a_call_are_met(self) -> None:
        x, y = var("x"), var("y")
        call = Call(Op("tile.load"), [x], {}, {"dump_vars": [y]}, SCALAR)
        visitor = Names()
        visitor.visit_expr(call)
        assert sorted(visitor.seen) == ["x", "y"]

    def test_expressions_in_dictionaries_among_the_attributes_are_met(self) -> None:
        x, y = var("x"), var("y")
        call = Call(Op("tile.load"), [x], {}, {"kept": {"as": [y]}}, SCALAR)
        visitor = Names()
        visitor.visit_expr(call)
        assert sorted(visitor.seen) == ["x", "y"]

    def test_a_missing_else_is_no_node(self) -> None:
        visitor = Names()
        visitor.visit_stmt(IfStmt(Lt(var("x"), index(1), DType.Bool), EvalStmt(var("y")), None, ()))
        assert visitor.seen == ["x", "y"]

    def test_an_unknown_attribute_is_still_an_error(self) -> None:
        with pytest.raises(AttributeError, match="nonsense"):
            _ = IRVisitor().nonsense
        with pytest.raises(AttributeError, match="nonsense"):
            _ = IRMutator().nonsense

    def test_the_expressions_of_a_type_are_known(self) -> None:
        n, m = var("n"), var("m")
        tile = TileType([16, n], DType.E4M3, None, TileView([m, n]))
        assert [e for e in type_exprs(TupleType([tile])) if isinstance(e, Var)] == [n, m, n]


class TestMutator:
    def test_what_does_not_change_comes_back_as_the_same_object(
        self, sample: tuple[Function, dict[str, Var]]
    ) -> None:
        program = Program([sample[0]])
        assert IRMutator().visit_program(program) is program

    def test_a_change_copies_only_the_way_to_it(
        self, sample: tuple[Function, dict[str, Var]]
    ) -> None:
        class Doubled(IRMutator):
            def visit_const_int(self, op: ConstInt) -> Expr:
                return index(4) if op.value == 2 else op

        function, _ = sample
        done = Doubled().visit_function(function)
        assert done is not function
        assert isinstance(done.body, SeqStmts)
        assert isinstance(function.body, SeqStmts)
        assert done.body.stmts[0] is not function.body.stmts[0]
        assert done.body.stmts[1:] == function.body.stmts[1:]
        assert done.params == function.params

    def test_the_group_hook_rewrites_every_operator(self) -> None:
        class Left(IRMutator):
            def visit_binary_expr(self, op: Any) -> Expr:
                return self.visit_expr(op.left)

        assert Left().visit_expr(Add(Mul(index(7), index(2), Index), index(1), Index)) is not None
        done = Left().visit_expr(Add(Mul(index(7), index(2), Index), index(1), Index))
        assert isinstance(done, ConstInt)
        assert done.value == 7

    def test_a_variable_whose_type_changes_is_replaced_once_everywhere(self) -> None:
        class Wider(IRMutator):
            def visit_type(self, type_: Type) -> Type:
                return ScalarType(DType.Int32) if type_ == SCALAR else type_

        a, b = var("a"), var("b")
        body = SeqStmts((AssignStmt(b, a), ReturnStmt((b, a))))
        done = Wider().visit_function(Function("f", [a], [SCALAR], body))
        assert isinstance(done.body, SeqStmts)
        assign, ret = done.body.stmts
        assert isinstance(assign, AssignStmt)
        assert isinstance(ret, ReturnStmt)
        assert done.params[0] is not a
        assert assign.value is done.params[0]
        assert ret.value == (assign.var, done.params[0])
        assert done.return_types == (ScalarType(DType.Int32),)

    def test_an_iteration_argument_follows_its_initial_value(
        self, sample: tuple[Function, dict[str, Var]]
    ) -> None:
        function, names = sample
        other = var("other")
        done = substitute_stmt(function.body, [(names["s"], other)])
        assert isinstance(done, SeqStmts)
        changed = done.stmts[1]
        assert isinstance(changed, ForStmt)
        assert changed.iter_args[0].init_value is other
        used = Names()
        used.visit_stmt(changed.body)
        assert used.seen == ["u", "t", "i", "u"]
        assert isinstance(changed.body, SeqStmts)
        first = changed.body.stmts[0]
        assert isinstance(first, AssignStmt)
        assert isinstance(first.value, Add)
        assert first.value.left is changed.iter_args[0]

    def test_a_while_condition_sees_the_new_iteration_argument(self) -> None:
        start, other = var("start"), var("other")
        arg = IterArg("x", SCALAR, start)
        condition = Lt(arg, index(9), DType.Bool)
        done = substitute_stmt(
            WhileStmt(condition, (arg,), YieldStmt((arg,)), (var("r"),)), [(start, other)]
        )
        assert isinstance(done, WhileStmt)
        assert isinstance(done.condition, Lt)
        assert done.condition.left is done.iter_args[0]

    def test_attributes_of_calls_are_rewritten(self) -> None:
        x, y = var("x"), var("y")
        call = Call(Op("tile.load"), [x], {"k": 1}, {"dump_vars": [x], "n": 3}, SCALAR)
        done = substitute_expr(call, [(x, y)])
        assert isinstance(done, Call)
        assert done.args == (y,)
        assert (done.attrs["dump_vars"], done.attrs["n"]) == ([y], 3)
        assert done.kwargs is call.kwargs

    def test_dictionaries_among_the_attributes_are_rewritten(self) -> None:
        x, y = var("x"), var("y")
        call = Call(Op("tile.load"), [y], {}, {"kept": {"as": x}, "other": {"n": 3}}, SCALAR)
        done = substitute_expr(call, [(x, y)])
        assert isinstance(done, Call)
        assert done.attrs["kept"] == {"as": y}
        assert done.attrs["other"] is call.attrs["other"]

    def test_a_statement_that_becomes_a_sequence_is_opened_in_place(self) -> None:
        class Twice(IRMutator):
            def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
                return SeqStmts((op, op))

        one = EvalStmt(index(1))
        last = ReturnStmt(())
        done = Twice().visit_stmt(SeqStmts((one, last)))
        assert isinstance(done, SeqStmts)
        assert done.stmts == (one, one, last)

    def test_the_types_of_calls_are_rewritten(self) -> None:
        n, m = var("n"), var("m")
        call = Call(Op("x"), [], TensorType([n], DType.Int8))
        done = substitute_expr(call, [(n, m)])
        assert done.type == TensorType([m], DType.Int8)


def tensor_of(n: Var) -> Type:
    return TensorType([n, 2], DType.Int8)


def tile_of(n: Var) -> Type:
    return TileType([16, 2], DType.Int8, None, TileView([n, 2]))


def tuple_of(n: Var) -> Type:
    return TupleType([TensorType([n], DType.Int8)])


class TestHelpers:
    @pytest.mark.parametrize("make", [tensor_of, tile_of, tuple_of])
    def test_rewriting_a_type_reaches_its_expressions(self, make: Callable[[Var], Type]) -> None:
        n, m = var("n"), var("m")
        type_ = make(n)
        assert rewrite_type(type_, lambda e: e) is type_
        assert rewrite_type(type_, lambda e: m if e is n else e) == make(m)

    def test_definitions_are_collected_in_order(
        self, sample: tuple[Function, dict[str, Var]]
    ) -> None:
        function, _ = sample
        assert [v.name_hint for v in collect_def_vars(function.body)] == ["s", "i", "t", "u", "r"]

    def test_a_region_defines_what_it_holds_and_its_task(self) -> None:
        a, task = var("a"), var("t", ScalarType(TaskId))
        region = InCoreScopeStmt(body=AssignStmt(a, index(1)), task_id=task)
        grid = SpmdScopeStmt(core_num=index(4), body=region)
        assert collect_def_vars(grid) == (a, task)

    def test_a_grid_keeps_what_does_not_change(self) -> None:
        x, y, a = var("x"), var("y"), var("a")
        region = InCoreScopeStmt(body=AssignStmt(a, index(1)))
        grid = SpmdScopeStmt(core_num=x, body=region, dumps=(x,))
        assert substitute_stmt(grid, [(y, x)]) is grid
        done = substitute_stmt(grid, [(x, y)])
        assert isinstance(done, SpmdScopeStmt)
        assert (done.core_num, done.dumps) == (y, (y,))
        assert done.body is region

    def test_metadata_of_a_call_can_be_replaced(self) -> None:
        call = Call(Op("x"), [index(1)], {"a": 1}, SCALAR)
        done = set_call_attrs(call, {"mark": True})
        assert (dict(done.attrs), dict(done.kwargs)) == ({"mark": True}, {"a": 1})

    def test_a_substitution_reaches_into_tuples(self) -> None:
        x, y = var("x"), var("y")
        done = substitute_expr(MakeTuple((x, index(1))), [(x, y)])
        assert isinstance(done, MakeTuple)
        assert done.elements[0] is y
