"""Nodes, functions and programs: identity, immutability, and what constructors accept."""

import dataclasses

import pytest

from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    Function,
    FunctionType,
    Level,
    ParamDirection,
    Program,
    ReturnStmt,
    Role,
    SeqStmts,
    Stmt,
    flatten_to_stmts,
    seq,
)
from scalebox.ir.dtypes import DType, Index, TaskId
from scalebox.ir.errors import IRTypeError, IRValueError, Span
from scalebox.ir.expr import (
    BINARY_OPS,
    UNARY_OPS,
    Add,
    Call,
    ConstBool,
    ConstInt,
    FloorDiv,
    GlobalVar,
    IterArg,
    MakeTuple,
    Op,
    ScalarType,
    Submit,
    TupleGetItemExpr,
    Type,
    UnknownType,
    Var,
    as_dim,
    index,
    replace,
    wrap_int64,
)
from scalebox.ir.types import TensorType, TupleType

SPAN = Span("k.py", 3, 5)
SCALAR = ScalarType(Index)


def stmt() -> EvalStmt:
    return EvalStmt(index(1))


def function(name: str, **changes: object) -> Function:
    return Function(name, [], [], SeqStmts(()), **changes)  # pyright: ignore[reportArgumentType]


class TestExpressions:
    def test_two_variables_of_one_name_are_two(self) -> None:
        first, second = Var("x", SCALAR), Var("x", SCALAR)
        assert first is not second
        assert first.unique_id != second.unique_id
        assert len({first, second}) == 2

    def test_a_node_cannot_be_changed(self) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            Var("x", SCALAR).name_hint = "y"  # pyright: ignore[reportAttributeAccessIssue]

    def test_replace_copies_and_gives_a_variable_a_new_identity(self) -> None:
        old = Var("x", SCALAR, SPAN)
        new = replace(old, type=ScalarType(DType.Int32))
        assert (new.name_hint, new.span) == ("x", SPAN)
        assert new.type == ScalarType(DType.Int32)
        assert new.unique_id != old.unique_id

    def test_replace_keeps_the_class_of_an_iteration_argument(self) -> None:
        arg = IterArg("s", SCALAR, index(0))
        assert isinstance(replace(arg, name_hint="t"), IterArg)
        assert arg.initValue is arg.init_value

    def test_an_operator_has_the_type_of_its_dtype(self) -> None:
        assert Add(index(1), index(2), Index).type == SCALAR
        assert Add(index(1), index(2), Index).span == Span.unknown()

    @pytest.mark.parametrize(
        ("symbol", "expected"),
        [
            ("+", 4), ("-", -10), ("*", -21), ("//", -1), ("%", 4), ("/", -3 / 7), ("<<", -384),
            (">>", -1), ("min", -3), ("max", 7), ("==", False), ("!=", True), ("<", True),
            ("<=", True), (">", False), (">=", False), ("and", True), ("or", True),
        ],
    )  # fmt: skip
    def test_every_binary_operator_says_its_value(self, symbol: str, expected: float) -> None:
        (kind,) = [op for op in BINARY_OPS if op.symbol == symbol]
        assert kind.evaluate(-3, 7) == expected
        assert kind.is_comparison == (symbol in ("==", "!=", "<", "<=", ">", ">="))

    def test_every_unary_operator_says_its_value(self) -> None:
        assert {op.symbol: op.evaluate(6) for op in UNARY_OPS} == {"-": -6, "not": False, "~": -7}

    def test_floor_division_rounds_down(self) -> None:
        assert FloorDiv.evaluate(-3, 16) == -1

    @pytest.mark.parametrize(
        ("value", "kept"),
        [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (-(2**63) - 1, 2**63 - 1), (2**64, 0)],
    )
    def test_a_word_wraps_at_64_bits(self, value: int, kept: int) -> None:
        assert wrap_int64(value) == kept

    def test_dimensions_are_integers_or_expressions(self) -> None:
        var = Var("n", SCALAR)
        assert as_dim(var) is var
        dim = as_dim(7)
        assert isinstance(dim, ConstInt)
        assert (dim.value, dim.dtype) == (7, Index)

    @pytest.mark.parametrize("value", [True, 1.5, "7", None])
    def test_anything_else_is_no_dimension(self, value: object) -> None:
        expected = f"^A dimension must be an integer or an expression, not {value!r}$"
        with pytest.raises(IRTypeError, match=expected):
            as_dim(value)

    def test_the_type_of_a_tuple_that_shares_its_parts_takes_no_time(self) -> None:
        shared = MakeTuple((index(1), index(2)))
        for _ in range(60):  # as a tree, 2 ** 61 elements
            shared = MakeTuple((shared, shared))
        whole = shared.type
        assert isinstance(whole, TupleType)
        assert whole.types[0] is whole.types[1]
        assert replace(shared, elements=(index(1),)).type == TupleType((SCALAR,))

    def test_a_tuple_has_the_types_of_its_elements(self) -> None:
        both = MakeTuple((index(1), ConstBool(True)))
        assert both.type == TupleType([SCALAR, ScalarType(DType.Bool)])
        assert TupleGetItemExpr(both, 1).type == ScalarType(DType.Bool)

    def test_an_element_beyond_the_tuple_is_refused(self) -> None:
        element = TupleGetItemExpr(MakeTuple((index(1), index(2))), 2)
        with pytest.raises(IRValueError, match=r"^The tuple index must be in 0\.\.1, not 2$"):
            _ = element.type

    def test_only_a_tuple_has_elements(self) -> None:
        element = TupleGetItemExpr(index(1), 0)
        with pytest.raises(IRTypeError, match=r"^An element can be taken only from a tuple, not"):
            _ = element.type


class TestCalls:
    @pytest.mark.parametrize(
        ("rest", "kwargs", "attrs", "type_", "span"),
        [
            ((), {}, {}, UnknownType(), Span.unknown()),
            ((SPAN,), {}, {}, UnknownType(), SPAN),
            ((SCALAR, SPAN), {}, {}, SCALAR, SPAN),
            (({"a": 1}, SCALAR, SPAN), {"a": 1}, {}, SCALAR, SPAN),
            (({"a": 1}, {"b": 2}, SCALAR, SPAN), {"a": 1}, {"b": 2}, SCALAR, SPAN),
        ],
    )
    def test_every_form_of_the_constructor(
        self,
        rest: tuple[object, ...],
        kwargs: dict[str, int],
        attrs: dict[str, int],
        type_: Type,
        span: Span,
    ) -> None:
        call = Call(Op("tile.load"), [index(1)], *rest)
        assert (dict(call.kwargs), dict(call.attrs)) == (kwargs, attrs)
        assert (call.type, call.span, call.name) == (type_, span, "tile.load")

    def test_kwargs_cannot_be_changed(self) -> None:
        given = {"a": 1}
        call = Call(Op("x"), [], given, SCALAR, SPAN)
        given["a"] = 2
        assert call.kwargs["a"] == 1
        with pytest.raises(TypeError):
            call.kwargs["a"] = 2  # pyright: ignore[reportIndexIssue]

    def test_an_argument_that_is_none_of_these_is_refused(self) -> None:
        expected = (
            r"^Call\(op, args\) must be followed by \[kwargs, \[attrs,\]\] \[type,\] \[span\], "
            r"not \('int',\)$"
        )
        with pytest.raises(IRTypeError, match=expected):
            Call(Op("x"), [], 3)

    def test_a_submit_keeps_its_fields(self) -> None:
        type_ = TupleType([ScalarType(TaskId)])
        submit = Submit(
            GlobalVar("f"), [index(1)], [], {}, {"k": 1}, type_, SPAN, core_num=8, sync_start=True
        )
        assert isinstance(submit.core_num, ConstInt)
        assert submit.core_num.value == 8
        assert submit.sync_start
        assert (submit.allow_early_resolve, submit.predicate) == (False, None)
        assert (submit.type, dict(submit.attrs)) == (type_, {"k": 1})

    def test_a_synchronous_start_needs_a_core_count(self) -> None:
        with pytest.raises(
            IRValueError, match=r"^A submit with sync_start must name its core_num$"
        ):
            Submit(GlobalVar("f"), [], [], SCALAR, SPAN, sync_start=True)


class TestStatements:
    def test_loop_bounds_may_be_integers(self) -> None:
        loop = ForStmt(Var("i", SCALAR), 0, 4, 1, (), stmt(), ())  # pyright: ignore[reportArgumentType]
        assert isinstance(loop.stop, ConstInt)
        assert loop.stop.value == 4

    def test_attributes_of_a_loop_cannot_be_changed(self) -> None:
        loop = ForStmt(Var("i", SCALAR), index(0), index(4), index(1), (), stmt(), ())
        with pytest.raises(TypeError):
            loop.attrs["pipeline_stages"] = 2  # pyright: ignore[reportIndexIssue]

    def test_flattening_opens_nested_sequences(self) -> None:
        a, b, c = stmt(), stmt(), stmt()
        nested = SeqStmts((a, SeqStmts((b, SeqStmts(())))))
        assert flatten_to_stmts(nested) == (a, b)
        assert flatten_to_stmts(c) == (c,)
        assert flatten_to_stmts(None) == ()

    def test_seq_of_one_statement_is_that_statement(self) -> None:
        a, b = stmt(), stmt()
        assert seq([SeqStmts((a,))]) is a
        both: Stmt = seq([a, SeqStmts((b,))], SPAN)
        assert isinstance(both, SeqStmts)
        assert (both.stmts, both.span) == ((a, b), SPAN)

    def test_sequences_of_a_statement_become_tuples(self) -> None:
        assert ReturnStmt([index(1)]).value.__class__ is tuple  # pyright: ignore[reportArgumentType]
        assert AssignStmt(Var("x", SCALAR), index(1)).span == Span.unknown()


class TestFunctionsAndPrograms:
    def test_a_parameter_may_have_a_direction(self) -> None:
        a, b = Var("a", SCALAR), Var("b", TensorType([2], DType.Float32))
        made = Function("f", [a, (b, ParamDirection.Out)], [], SeqStmts(()))
        assert made.params == (a, b)
        assert made.param_directions == (ParamDirection.In, ParamDirection.Out)

    @pytest.mark.parametrize(
        ("kind", "level", "role"),
        [
            (FunctionType.InCore, Level.CHIP_DIE, Role.SubWorker),
            (FunctionType.Orchestration, Level.CHIP, Role.Orchestrator),
            (FunctionType.AIC, Level.AIC, Role.SubWorker),
            (FunctionType.Opaque, None, None),
        ],
    )
    def test_the_type_of_a_function_implies_its_place(
        self, kind: FunctionType, level: Level | None, role: Role | None
    ) -> None:
        made = function("f", type=kind)
        assert (made.level, made.role) == (level, role)

    def test_functions_stand_in_the_order_of_their_names(self) -> None:
        program = Program([function("b"), function("a")], "P")
        assert [g.name for g in program.functions] == ["a", "b"]
        again = Program(program.functions, "P")
        assert list(again.functions) == list(program.functions)

    def test_functions_are_found_by_name(self) -> None:
        made = function("f")
        program = Program([made])
        assert program.get_function("f") is made
        assert program.get_function("g") is None
        assert program.get_global_var("f") == GlobalVar("f")
        assert program.get_global_var("g") is None

    def test_two_functions_of_one_name_are_refused(self) -> None:
        expected = r"^The functions of a program must have different names, not \['f', 'f'\]$"
        with pytest.raises(IRTypeError, match=expected):
            Program([function("f"), function("f")])
