"""Equality by meaning: what counts, what does not, and how a difference is told."""

import re
from typing import Any

import pytest

from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    ForKind,
    ForStmt,
    Function,
    FunctionType,
    IfStmt,
    InCoreScopeStmt,
    ParamDirection,
    Program,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from scalebox.ir.dtypes import DType, Index, Int64, TaskId
from scalebox.ir.errors import Span
from scalebox.ir.expr import (
    Add,
    Call,
    ConstFloat,
    ConstInt,
    Expr,
    IterArg,
    Lt,
    Op,
    ScalarType,
    Sub,
    Type,
    Var,
    index,
)
from scalebox.ir.structural import (
    assert_structural_equal,
    first_difference,
    structural_equal,
    structural_hash,
)
from scalebox.ir.types import MemorySpace, MemRef, TensorType, TileType

SCALAR = ScalarType(Index)


def program(
    *,
    names: tuple[str, str, str] = ("a", "i", "x"),
    span: Span | None = None,
    kind: ForKind = ForKind.Sequential,
    attrs: dict[str, int] | None = None,
    step: int = 1,
    type_: Type = SCALAR,
    operator: type[Add] | type[Sub] = Add,
    swap: bool = False,
) -> Program:
    """Return f(a): for i in range(0, 8, step): x = a + i; return."""
    where = span or Span.unknown()
    a, i, x = (Var(name, t, where) for name, t in zip(names, (type_, SCALAR, SCALAR), strict=True))
    pair: tuple[Expr, Expr] = (i, a) if swap else (a, i)
    body = AssignStmt(x, operator(*pair, Index, where), where)
    loop = ForStmt(i, index(0), index(8), index(step), (), body, (), where, kind, attrs or {})
    return Program([Function("f", [a], [], SeqStmts((loop, ReturnStmt(()))), where)])


class TestWhatCounts:
    def test_names_and_spans_do_not_count(self) -> None:
        other = program(names=("b", "j", "y"), span=Span("z.py", 9, 9))
        assert structural_equal(program(), other)
        assert structural_hash(program()) == structural_hash(other)

    @pytest.mark.parametrize(
        "changes",
        [
            {"step": 2},
            {"kind": ForKind.Parallel},
            {"attrs": {"pipeline_stages": 2}},
            {"operator": Sub},
            {"swap": True},
            {"type_": ScalarType(DType.Int32)},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_everything_else_counts(self, changes: dict[str, object]) -> None:
        assert not structural_equal(program(), program(**changes))  # pyright: ignore[reportArgumentType]

    def test_the_order_of_attributes_does_not_count(self) -> None:
        one, other = program(attrs={"a": 1, "b": 2}), program(attrs={"b": 2, "a": 1})
        assert structural_equal(one, other)

    def test_function_type_and_directions_count(self) -> None:
        a = Var("a", TensorType([2], DType.Int8))

        def function(kind: FunctionType, direction: ParamDirection) -> Function:
            return Function("f", [(a, direction)], [], SeqStmts(()), type=kind)

        base = function(FunctionType.InCore, ParamDirection.In)
        assert structural_equal(base, function(FunctionType.InCore, ParamDirection.In))
        assert not structural_equal(base, function(FunctionType.AIC, ParamDirection.In))
        assert not structural_equal(base, function(FunctionType.InCore, ParamDirection.Out))

    def test_keywords_of_a_call_count_and_memory_references_do_not(self) -> None:
        x = Var("x", SCALAR)
        tile = TileType([16, 16], DType.Float32, None, None, MemorySpace.Vec)
        placed = TileType([16, 16], DType.Float32, MemRef("m", 64, 1024), None, MemorySpace.Vec)

        def call(type_: Type, **kwargs: object) -> Call:
            return Call(Op("tile.move"), [x], kwargs, type_, Span.unknown())

        base = call(tile, target_memory=MemorySpace.Vec)
        assert structural_equal(base, call(placed, target_memory=MemorySpace.Vec))
        assert not structural_equal(base, call(tile, target_memory=MemorySpace.Mat))
        assert not structural_equal(base, call(tile))

    def test_the_two_words_are_one_in_constants(self) -> None:
        assert structural_equal(ConstInt(7, Index), ConstInt(7, Int64))
        assert not structural_equal(ConstInt(7, Index), ConstInt(7, DType.Int32))
        assert not structural_equal(ConstInt(7, Index), ConstInt(8, Index))

    def test_float_constants_compare_bit_by_bit(self) -> None:
        def const(value: float) -> ConstFloat:
            return ConstFloat(value, DType.Float32)

        assert structural_equal(const(float("nan")), const(float("nan")))
        assert not structural_equal(const(0.0), const(-0.0))
        assert hash(structural_hash(const(1.5))) == hash(structural_hash(const(1.5)))


class TestVariables:
    def test_a_free_variable_must_be_the_same(self) -> None:
        x, y = Var("x", SCALAR), Var("x", SCALAR)
        assert structural_equal(Add(x, x, Index), Add(x, x, Index))
        assert not structural_equal(Add(x, x, Index), Add(y, y, Index))

    def test_auto_mapping_pairs_free_variables_consistently(self) -> None:
        x, y, z = (Var(n, SCALAR) for n in "xyz")
        assert structural_equal(Add(x, x, Index), Add(y, y, Index), enable_auto_mapping=True)
        assert not structural_equal(Add(x, x, Index), Add(y, z, Index), enable_auto_mapping=True)
        assert not structural_equal(Add(y, z, Index), Add(x, x, Index), enable_auto_mapping=True)

    def test_a_defined_variable_is_not_mistaken_for_another(self) -> None:
        def body(first: bool) -> Stmt:
            x, y = Var("x", SCALAR), Var("y", SCALAR)
            assigns = (AssignStmt(x, index(1)), AssignStmt(y, index(1)))
            return SeqStmts((*assigns, EvalStmt(x if first else y)))

        assert structural_equal(body(True), body(True))
        assert not structural_equal(body(True), body(False))

    def test_a_loop_carries_by_position(self) -> None:
        def loop(name: str) -> Stmt:
            arg = IterArg(name, SCALAR, index(0))
            result = Var(f"{name}_r", SCALAR)
            trip = YieldStmt((Add(arg, index(1), Index),))
            condition = Lt(arg, index(9), DType.Bool)
            return SeqStmts((WhileStmt(condition, (arg,), trip, (result,)), EvalStmt(result)))

        assert structural_equal(loop("s"), loop("t"))

    def test_rebinding_one_name_is_not_two_names(self) -> None:
        def body(again: bool) -> Stmt:
            x = Var("x", SCALAR)
            y = x if again else Var("y", SCALAR)
            return SeqStmts((AssignStmt(x, index(1)), AssignStmt(y, index(2))))

        assert structural_equal(body(True), body(True))
        assert not structural_equal(body(True), body(False))


class TestTelling:
    def test_the_path_of_the_first_difference_is_told(self) -> None:
        found = first_difference(program(), program(step=2))
        assert found is not None
        assert found.startswith("Program.f.body.stmts[0].step: ConstInt(value=1")

    def test_a_missing_statement_is_told_by_its_count(self) -> None:
        one, two = EvalStmt(index(1)), EvalStmt(index(1))
        found = first_difference(SeqStmts((one,)), SeqStmts((one, two)))
        assert found == "len(SeqStmts.stmts): 1 is not 2"

    def test_equal_programs_have_no_difference(self) -> None:
        assert first_difference(program(), program()) is None
        assert_structural_equal(program(), program())

    def test_the_assertion_raises_a_value_error_with_the_path(self) -> None:
        expected = re.escape(
            "The two must be structurally equal, but they differ at Program.f.body.stmts[0].kind: "
        )
        with pytest.raises(ValueError, match=f"^{expected}"):
            assert_structural_equal(program(), program(kind=ForKind.Parallel))

    def test_branches_are_compared_arm_by_arm(self) -> None:
        x = Var("x", SCALAR)
        condition = Lt(x, index(1), DType.Bool)
        with_else = IfStmt(condition, EvalStmt(x), EvalStmt(x), ())
        without = IfStmt(condition, EvalStmt(x), None, ())
        found = first_difference(with_else, without)
        assert found is not None
        assert found.startswith("IfStmt.else_body: ")


class TestRegions:
    def region(self, **changes: Any) -> InCoreScopeStmt:
        fields: dict[str, Any] = {
            "body": AssignStmt(Var("a", SCALAR), index(1)),
            "task_id": Var("t", ScalarType(TaskId)),
        }
        return InCoreScopeStmt(**{**fields, **changes})

    def test_regions_are_compared_by_all_but_their_names(self) -> None:
        assert structural_equal(self.region(name_hint="a"), self.region(name_hint="b"))
        assert not structural_equal(self.region(), self.region(task_id=None))
        assert not structural_equal(self.region(), self.region(allow_early_resolve=True))
        assert not structural_equal(self.region(), self.region(deps=(index(1),)))

    def test_grids_are_compared_by_their_blocks(self) -> None:
        two, three = (SpmdScopeStmt(core_num=index(n), body=self.region()) for n in (2, 3))
        assert structural_equal(two, SpmdScopeStmt(core_num=index(2), body=self.region()))
        assert not structural_equal(two, three)
        assert not structural_equal(two, self.region())

    def test_a_task_is_paired_where_it_is_bound(self) -> None:
        def chain(*, own: bool) -> SeqStmts:
            first, second = self.region(), self.region()
            last = (first if own else second).task_id
            assert last is not None
            return SeqStmts((first, second, self.region(deps=(last,))))

        assert structural_equal(chain(own=True), chain(own=True))
        assert not structural_equal(chain(own=True), chain(own=False))
