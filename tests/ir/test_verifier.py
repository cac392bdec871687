"""The verifier: each rule finds its mistake and nothing else, and the report says so."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
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
from scalebox.ir.errors import Span, VerificationError
from scalebox.ir.expr import (
    Add,
    Call,
    ConstFloat,
    Expr,
    GlobalVar,
    IterArg,
    Lt,
    Op,
    ScalarType,
    Submit,
    Type,
    UnknownType,
    Var,
    index,
    replace,
)
from scalebox.ir.ops import create_op_call
from scalebox.ir.passes import default_pipeline, run_verifier
from scalebox.ir.properties import IRProperty
from scalebox.ir.types import (
    MemorySpace,
    MemRef,
    TensorLayout,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
)
from scalebox.ir.verifier import (
    RULES,
    STRUCTURAL,
    Diagnostic,
    Severity,
    generate_report,
    verify,
    verify_or_throw,
)

P = IRProperty
Mem = MemorySpace
INDEX, BOOL, F32 = ScalarType(Index), ScalarType(DType.Bool), DType.Float32
SPAN = Span("k.py", 12, 5)
Params = Sequence[Var | tuple[Var, ParamDirection]]


def var(name: str, type_: Type = INDEX) -> Var:
    return Var(name, type_, SPAN)


def let(name: str | Var, value: Expr) -> AssignStmt:
    return AssignStmt(var(name, value.type) if isinstance(name, str) else name, value, SPAN)


def loop(
    body: Stmt,
    *,
    i: Var | None = None,
    args: Sequence[IterArg] = (),
    results: Sequence[Var] = (),
    kind: ForKind = ForKind.Sequential,
    attrs: dict[str, Any] | None = None,
    step: Expr | None = None,
) -> ForStmt:
    return ForStmt(
        i or var("i"), index(0), index(4), step or index(1), tuple(args), body, tuple(results),
        SPAN, kind, attrs or {},
    )  # fmt: skip


def program(
    *stmts: Stmt,
    params: Params = (),
    returns: Sequence[Type] = (),
    kind: FunctionType = FunctionType.InCore,
    others: Sequence[Function] = (),
) -> Program:
    body = stmts[0] if len(stmts) == 1 else SeqStmts(stmts, SPAN)
    return Program([Function("f", params, returns, body, SPAN, kind), *others])


def found(made: Program, member: IRProperty, **options: Any) -> list[tuple[int, str]]:
    """Return code and message of what the rule of `member` finds; all of it errors, placed."""
    diagnostics = verify(made, [member], **options)
    assert all(d.severity is Severity.ERROR for d in diagnostics)
    assert all(d.rule_name == RULES[member].name for d in diagnostics)
    return [(d.error_code, d.message) for d in diagnostics]


def plus_one(value: Expr) -> Expr:
    return Add(value, index(1), Index, SPAN)


def less(left: Expr) -> Expr:
    return Lt(left, index(3), DType.Bool, SPAN)


class TestSSAForm:
    def check(self, *stmts: Stmt, params: Params = ()) -> list[tuple[int, str]]:
        return found(program(*stmts, params=params), P.SSAForm)

    def test_a_program_in_ssa_form_passes(self) -> None:
        n, r = var("n"), var("r")
        arg = IterArg("s", INDEX, n)
        u = var("u")
        body = SeqStmts((let(u, plus_one(arg)), YieldStmt((u,))))
        assert self.check(loop(body, args=[arg], results=[r]), ReturnStmt((r,)), params=[n]) == []

    def test_a_second_assignment(self) -> None:
        x = var("x")
        assert self.check(let(x, index(1)), let(x, index(2))) == [
            (1, "'x' must not be assigned a second time")
        ]

    def test_an_assignment_to_a_parameter(self) -> None:
        n = var("n")
        assert self.check(let(n, index(1)), params=[n]) == [
            (1, "'n' must not be assigned a second time")
        ]

    def test_a_loop_variable_that_hides_another(self) -> None:
        i = var("i")
        assert self.check(let(i, index(1)), loop(EvalStmt(i), i=i)) == [
            (2, "'i' must not hide a variable")
        ]

    def test_a_missing_yield(self) -> None:
        arg = IterArg("s", INDEX, index(0))
        body = let("u", plus_one(arg))
        assert self.check(loop(body, args=[arg], results=[var("r")])) == [
            (3, "A body must end in a yield of 1 value(s), but has none")
        ]

    def test_a_branch_that_hands_on_values_has_two_arms(self) -> None:
        n = var("n")
        branch = IfStmt(less(n), YieldStmt((n,)), None, (var("r"),), SPAN)
        assert self.check(branch, params=[n]) == [
            (3, "A branch that hands on values must have an else")
        ]

    def test_as_many_results_as_arguments(self) -> None:
        arg = IterArg("s", INDEX, index(0))
        assert self.check(loop(YieldStmt((arg,)), args=[arg])) == [
            (
                4,
                "A loop must have as many return variables as iteration arguments, not 0 for 1",
            )
        ]

    def test_as_many_yielded_values(self) -> None:
        arg = IterArg("s", INDEX, index(0))
        assert self.check(loop(YieldStmt((arg, arg)), args=[arg], results=[var("r")])) == [
            (5, "A yield must hand on 1 value(s), not 2")
        ]

    def test_a_use_outside_the_scope(self) -> None:
        x = var("x")
        assert self.check(loop(let(x, index(1))), EvalStmt(x, SPAN)) == [
            (6, "'x' must be used inside the loop or branch that defines it")
        ]

    def test_a_misplaced_yield(self) -> None:
        text = "A yield must be the last statement of a loop or branch that hands on values"
        assert self.check(YieldStmt((index(1),)), ReturnStmt(())) == [(7, text)]
        arg = IterArg("s", INDEX, index(0))
        body = SeqStmts((YieldStmt((arg,)), YieldStmt((arg,))))
        assert self.check(loop(body, args=[arg], results=[var("r")])) == [(7, text)]

    def test_a_while_condition_sees_the_iteration_arguments(self) -> None:
        arg = IterArg("s", INDEX, index(0))
        body = YieldStmt((plus_one(arg),))
        assert self.check(WhileStmt(less(arg), (arg,), body, (var("r"),))) == []


class TestUseAfterDefinition:
    def check(self, *stmts: Stmt, params: Params = ()) -> list[tuple[int, str]]:
        return found(program(*stmts, params=params), P.UseAfterDef)

    def undefined(self, name: str) -> list[tuple[int, str]]:
        return [(401, f"'{name}' must be defined before it is used")]

    def test_a_use_before_its_definition(self) -> None:
        x = var("x")
        assert self.check(let("y", plus_one(x)), let(x, index(1))) == self.undefined("x")
        assert self.check(let(x, index(1)), let("y", plus_one(x))) == []

    def test_what_a_loop_defines_lives_on_as_before_ssa(self) -> None:
        x = var("x")
        assert self.check(loop(let(x, index(1))), EvalStmt(x)) == []

    def test_a_loop_uses_nothing_of_its_own_next_trip(self) -> None:
        x = var("x")
        body = SeqStmts((let("y", plus_one(x)), let(x, index(1))))
        assert self.check(loop(body)) == self.undefined("x")

    def test_one_arm_alone_defines_nothing(self) -> None:
        n, x = var("n"), var("x")
        one = IfStmt(less(n), let(x, index(1)), None, ())
        both = IfStmt(less(n), let(x, index(1)), let(x, index(2)), ())
        leaving = IfStmt(less(n), let(x, index(1)), ReturnStmt(()), ())
        assert self.check(one, EvalStmt(x), params=[n]) == self.undefined("x")
        assert self.check(both, EvalStmt(x), params=[n]) == []
        assert self.check(leaving, EvalStmt(x), params=[n]) == []

    def test_the_dimensions_of_a_type_are_uses(self) -> None:
        m = var("m")
        made = Call(Op("tensor.create"), [], TensorType([m, 4], F32), SPAN)
        assert self.check(let("t", made))[0] == self.undefined("m")[0]
        assert self.check(let(m, index(4)), let("t", made)) == []

    def test_symbols_of_a_dynamic_parameter_are_known(self) -> None:
        m = var("m")
        x = var("x", TensorType([m, 4], F32))
        assert self.check(let("n", plus_one(m)), params=[x]) == []

    def test_attributes_of_a_call_are_uses(self) -> None:
        x, y = var("x"), var("y")
        call = Call(GlobalVar("g"), [x], {}, {"dump_vars": [y]}, UnknownType(), SPAN)
        assert self.check(EvalStmt(call), params=[x]) == self.undefined("y")

    def test_the_rule_tells_the_place(self) -> None:
        (diagnostic,) = verify(program(EvalStmt(var("x"), SPAN)), [P.UseAfterDef])
        assert diagnostic.span == SPAN


TENSOR = TensorType([16, 16], F32)


class TestTypes:
    def check(self, *stmts: Stmt, **more: Any) -> list[tuple[int, str]]:
        return found(program(*stmts, **more), P.TypeChecked)

    def test_an_op_is_judged_again(self) -> None:
        x = var("x", TENSOR)
        call = create_op_call("tile.load", [x, [0, 0], [16, 16]], {}, SPAN)
        assert self.check(let("t", call), params=[x]) == []
        beyond = replace(call, args=(x, call.args[1], *(create_op_call(
            "tile.load", [var("z", TensorType([32, 32], F32)), [0, 0], [32, 32]]).args[2:])))  # fmt: skip
        (error,) = self.check(let("t", beyond), params=[x])
        assert error == (
            110,
            "tile.load: what is loaded must end within the tensor, but takes 32 elements from "
            "offset 0 on axis 0, which has 16",
        )

    @pytest.mark.parametrize(
        ("claimed", "code", "message"),
        [
            (TENSOR, 101, "a tile, not a tensor"),
            (TileType([16, 16], DType.Int32), 102, "a tile of Float32, not of Int32"),
            (TileType([16], F32), 103, "a tile of rank 2, not 1"),
            (TileType([16, 8], F32), 104, "a tile [16, 16], not [16, 8]"),
            (
                TileType([16, 16], F32, None, TileView([16, 8])),
                109,
                "a tile valid in [16, 16], not in [16, 8]",
            ),
        ],
    )
    def test_a_call_that_claims_another_type(self, claimed: Type, code: int, message: str) -> None:
        x = var("x", TENSOR)
        call = replace(create_op_call("tile.load", [x, [0, 0], [16, 16]], {}, SPAN), type=claimed)
        (error,) = self.check(EvalStmt(call), params=[x])
        assert error == (code, f"tile.load must give {message}")

    def test_a_place_that_the_rule_leaves_open_may_be_filled_in(self) -> None:
        x = var("x", TENSOR)
        call = create_op_call("tile.load", [x, [0, 0], [16, 16]], {}, SPAN)
        placed = replace(call, type=TileType([16, 16], F32, MemRef("m", 0, 1024), None, Mem.Vec))
        assert self.check(let("t", placed), params=[x]) == []

    def test_a_place_that_the_rule_says_is_held(self) -> None:
        x = var("x", TENSOR)
        call = create_op_call("tile.load", [x, [0, 0], [16, 16]], {"target_memory": Mem.Mat})
        moved = replace(call, type=TileType([16, 16], F32, memory_space=Mem.Vec))
        assert self.check(EvalStmt(moved), params=[x]) == [
            (111, "tile.load must give a tile in Mat, not in Vec")
        ]
        turned = TileType([16, 16], F32, None, TileView(), Mem.Mat)
        assert self.check(EvalStmt(replace(call, type=turned)), params=[x]) == [
            (
                109,
                "tile.load must give a tile in boxes col_major/row_major/512, "
                "not row_major/none_box/512",
            )
        ]

    def test_an_unknown_op_is_told(self) -> None:
        ((code, message),) = self.check(EvalStmt(Call(Op("tile.lod"), [], SPAN)))
        assert code == 110
        assert message == "'tile.lod' must name an operation, but there is none of that name"

    def test_a_variable_has_the_type_of_its_value(self) -> None:
        x = var("x", TENSOR)
        assert self.check(let(var("y", TensorType([16, 8], F32)), x), params=[x]) == [
            (104, "'y' must be a tensor [16, 8], not [16, 16]")
        ]
        boxed = TensorType([16, 16], F32, None, TensorLayout.DN)
        assert self.check(let(var("y", boxed), x), params=[x]) == [
            (108, "'y' must be a tensor in DN, not in ND")
        ]
        assert self.check(let(var("y", ScalarType(F32)), index(1))) == [
            (102, "'y' must be a scalar of Float32, not of Index")
        ]
        assert self.check(let(var("y", ScalarType(Int64)), index(1))) == []

    def test_conditions_are_truth_values(self) -> None:
        n = var("n")
        message = "The condition of 'if' must be a scalar of Bool, such as a comparison"
        branch = IfStmt(n, EvalStmt(n), None, (), SPAN)
        assert self.check(branch, params=[n]) == [(107, message)]
        repeat = WhileStmt(n, (), EvalStmt(n), (), SPAN)
        assert self.check(repeat, params=[n]) == [(107, message.replace("if", "while"))]

    def test_loop_bounds_are_integers(self) -> None:
        x = var("x", ScalarType(F32))
        assert self.check(loop(EvalStmt(x), step=x), params=[x]) == [
            (106, "The step of a loop must be an integer scalar")
        ]

    def test_carried_values_keep_their_type(self) -> None:
        x, n = var("x", TENSOR), var("n")
        arg = IterArg("s", TENSOR, n)
        result = var("r", INDEX)
        errors = self.check(loop(YieldStmt((n,)), args=[arg], results=[result]), params=[x, n])
        assert errors == [
            (101, "The initial value of 's' must be a tensor, not a scalar"),
            (101, "'r' must be a tensor, not a scalar"),
            (101, "Value 0 of the yield must be a tensor, not a scalar"),
        ]

    def test_both_arms_yield_the_type_of_the_result(self) -> None:
        n, x = var("n"), var("x", ScalarType(F32))
        branch = IfStmt(less(n), YieldStmt((n,)), YieldStmt((x,)), (var("r"),), SPAN)
        assert self.check(branch, params=[n, x]) == [
            (102, "Value 0 of the yield must be a scalar of Index, not of Float32")
        ]

    def test_what_is_returned_is_what_was_promised(self) -> None:
        n = var("n")
        assert self.check(ReturnStmt((n,)), params=[n], returns=[INDEX]) == []
        assert self.check(ReturnStmt(()), returns=[INDEX]) == [
            (105, "f must return 1 value(s), not 0")
        ]
        assert self.check(ReturnStmt((n,)), params=[n], returns=[TENSOR]) == [
            (101, "What f returns must be a tensor, not a scalar")
        ]


class TestCallsOfFunctions:
    callee = Function(
        "g", [Var("x", TENSOR), (Var("y", TENSOR), ParamDirection.Out)], [TENSOR], SeqStmts(())
    )

    def check(
        self, args: Sequence[Expr], type_: Type = TENSOR, name: str = "g"
    ) -> list[tuple[int, str]]:
        call = Call(GlobalVar(name), args, type_, SPAN)
        params = [arg for arg in args if isinstance(arg, Var)]
        made = program(
            EvalStmt(call), params=params, others=[self.callee], kind=FunctionType.Orchestration
        )
        return found(made, P.TypeChecked)

    def test_arguments_fit_the_parameters(self) -> None:
        x = var("a", TENSOR)
        assert self.check([x, x]) == []
        assert self.check([x, x], UnknownType()) == []
        assert self.check([x]) == [(105, "g takes 2 arguments, not 1")]
        assert self.check([x, index(1)]) == [(101, "'y' of g must be a tensor, not a scalar")]
        other = var("b", TensorType([16, 16], F32, None, TensorLayout.DN))
        assert self.check([other, x]) == [(108, "'x' of g must be a tensor in ND, not in DN")]

    def test_the_result_is_the_callees(self) -> None:
        x = var("a", TENSOR)
        assert self.check([x, x], INDEX) == [
            (101, "The result of g must be a tensor, not a scalar")
        ]

    def test_the_callee_exists(self) -> None:
        assert self.check([], name="h") == [(101, "'h' must name a function of the program")]


class TestRegions:
    def check(self, *stmts: Stmt, kind: FunctionType = FunctionType.Orchestration) -> list[int]:
        return [code for code, _ in found(program(*stmts, kind=kind), P.NoNestedInCore)]

    def test_a_grid_holds_one_call_or_one_region(self) -> None:
        call = EvalStmt(Call(GlobalVar("g"), []))
        core = InCoreScopeStmt(body=SeqStmts((let("a", index(1)), let("b", index(2)))))
        for body in (call, core, SeqStmts((call,))):
            assert self.check(SpmdScopeStmt(core_num=index(4), body=body)) == []
        for body in (let("a", index(1)), SeqStmts((call, call)), SeqStmts(())):
            assert self.check(SpmdScopeStmt(core_num=index(4), body=body)) == [209]

    def test_regions_stand_side_by_side_in_control_functions(self) -> None:
        core = InCoreScopeStmt(body=let("a", index(1)))
        assert self.check(core, InCoreScopeStmt(body=let("b", index(1)))) == []
        assert self.check(loop(core)) == []
        assert self.check(InCoreScopeStmt(body=core)) == [208]
        assert self.check(InCoreScopeStmt(body=loop(core))) == [208]
        assert self.check(core, kind=FunctionType.InCore) == [208]

    def test_regions_are_left_at_their_end(self) -> None:
        assert self.check(InCoreScopeStmt(body=ReturnStmt(()))) == [210]
        jump = IfStmt(less(index(1)), BreakStmt(), None, ())
        made = program(loop(InCoreScopeStmt(body=jump)), kind=FunctionType.Orchestration)
        assert found(made, P.BreakContinueValid) == [(204, "break must stand inside a loop")]

    def test_what_a_region_defines_is_defined_behind_it(self) -> None:
        a, tid = var("a"), var("tid", ScalarType(TaskId))
        region = InCoreScopeStmt(body=let(a, index(1)), task_id=tid)
        after = InCoreScopeStmt(body=let("b", plus_one(a)), deps=(tid,))
        for rule in (P.SSAForm, P.UseAfterDef, P.TypeChecked):
            assert found(program(region, after), rule) == []
        assert [c for c, _ in found(program(after, region), P.UseAfterDef)] == [401, 401]
        assert [c for c, _ in found(program(region, region), P.SSAForm)] == [1, 1]

    def test_a_launch_depends_on_tasks_and_has_an_integer_of_blocks(self) -> None:
        half = ConstFloat(0.5, F32)
        core = InCoreScopeStmt(body=let("a", index(1)), deps=(index(1),))
        grid = SpmdScopeStmt(core_num=half, body=InCoreScopeStmt(body=let("a", index(1))))
        assert [c for c, _ in found(program(core), P.TypeChecked)] == [106]
        assert [c for c, _ in found(program(grid), P.TypeChecked)] == [106]

    def test_a_submit_fits_its_function_and_gives_its_task_too(self) -> None:
        x, callee = var("x"), Function("g", [var("p")], [INDEX], ReturnStmt((index(1),)))
        task = ScalarType(TaskId)

        def check(args: Sequence[Expr], type_: Type, **launch: Any) -> list[tuple[int, str]]:
            made = EvalStmt(Submit(GlobalVar("g"), args, (), type_, SPAN, **launch))
            kind = FunctionType.Orchestration
            return found(program(made, params=[x], others=[callee], kind=kind), P.TypeChecked)

        assert check([x], TupleType((INDEX, task))) == []
        assert check([], TupleType((INDEX, task))) == [(105, "g takes 1 arguments, not 0")]
        assert check([x], TupleType((task,))) == [
            (105, "The result of a submit of g must be 2 values, not 1")
        ]
        assert check([x], TupleType((INDEX, task)), predicate=x) == [
            (107, "The condition of 'predicate' must be a scalar of Bool, such as a comparison")
        ]


class TestStructure:
    def test_sequences_are_flat(self) -> None:
        inner = SeqStmts((EvalStmt(index(1)), EvalStmt(index(2))), SPAN)
        nested = program(inner, EvalStmt(index(3)))
        assert found(nested, P.NormalizedStmtStructure) == [
            (201, "A sequence of statements must be flat, not hold another sequence")
        ]
        assert found(program(*inner.stmts), P.NormalizedStmtStructure) == []

    def test_a_sequence_holds_several_statements(self) -> None:
        alone = program(loop(SeqStmts((EvalStmt(index(1)),), SPAN)))
        assert found(alone, P.NoRedundantBlocks) == [
            (202, "A sequence must hold several statements, not one, which can stand alone")
        ]
        assert found(program(SeqStmts(())), P.NoRedundantBlocks) == []

    def test_calls_are_not_nested(self) -> None:
        x = var("x", TENSOR)
        load = create_op_call("tile.load", [x, [0, 0], [16, 16]], {"target_memory": Mem.Mat}, SPAN)
        move = create_op_call("tile.move", [load], {"target_memory": Mem.Left}, SPAN)
        message = "The call of tile.load must have a variable of its own"
        assert found(program(let("t", move), params=[x]), P.NoNestedCalls) == [(203, message)]
        assert found(program(ReturnStmt((load,)), params=[x]), P.NoNestedCalls) == [(203, message)]
        assert found(program(let("t", load), params=[x]), P.NoNestedCalls) == []

    @pytest.mark.parametrize(("stmt", "word"), [(BreakStmt, "break"), (ContinueStmt, "continue")])
    def test_jumps_stand_in_loops_that_run_in_order(self, stmt: type[Stmt], word: str) -> None:
        jump = IfStmt(less(index(1)), stmt(), None, (), SPAN)
        assert found(program(loop(jump)), P.BreakContinueValid) == []
        assert found(program(WhileStmt(less(index(1)), (), jump, ())), P.BreakContinueValid) == []
        assert found(program(jump), P.BreakContinueValid) == [
            (204, f"{word} must stand inside a loop")
        ]
        for kind in (ForKind.Parallel, ForKind.Pipeline, ForKind.Unroll):
            assert found(program(loop(jump, kind=kind)), P.BreakContinueValid) == [
                (204, f"{word} must not stand inside a loop of kind {kind.name}")
            ]

    @pytest.mark.parametrize(
        ("kind", "attrs", "step", "errors"),
        [
            (ForKind.Pipeline, {"pipeline_stages": 2}, index(1), []),
            (
                ForKind.Pipeline,
                {},
                index(1),
                [(205, "The stages of a Pipeline loop must be a positive integer, not None")],
            ),
            (
                ForKind.Pipeline,
                {"pipeline_stages": 0},
                index(1),
                [(205, "The stages of a Pipeline loop must be a positive integer, not 0")],
            ),
            (
                ForKind.Sequential,
                {"pipeline_stages": 2},
                index(1),
                [(205, "Only a Pipeline loop may have stages, not one of kind Sequential")],
            ),
            (
                ForKind.Pipeline,
                {"pipeline_stages": 2},
                index(0),
                [(206, "The step of a Pipeline loop must be a constant other than zero")],
            ),
        ],
    )
    def test_pipeline_loops(
        self, kind: ForKind, attrs: dict[str, int], step: Expr, errors: list[tuple[int, str]]
    ) -> None:
        made = program(loop(EvalStmt(index(1)), kind=kind, attrs=attrs, step=step))
        assert found(made, P.PipelineLoopValid) == errors

    def test_ops_stand_on_their_plane(self) -> None:
        x = var("x", TENSOR)
        load = EvalStmt(create_op_call("tile.load", [x, [0, 0], [16, 16]], {}, SPAN))
        create = EvalStmt(create_op_call("tensor.create", [[4]], {"dtype": F32}, SPAN))
        call = EvalStmt(Call(GlobalVar("g"), [], UnknownType(), SPAN))
        control = FunctionType.Orchestration
        assert found(program(load, params=[x]), P.SplitIncoreOrch) == []
        assert found(program(load, params=[x], kind=control), P.SplitIncoreOrch) == [
            (207, "tile.load must stand in an InCore function, but f is of type Orchestration")
        ]
        assert found(program(call, kind=control), P.SplitIncoreOrch) == []
        assert found(program(call), P.SplitIncoreOrch) == [
            (207, "f runs on a core and must not call g")
        ]
        assert found(program(create, kind=control), P.IncoreTileOps) == []
        assert found(program(create), P.IncoreTileOps) == [
            (207, "tensor.create must stand in an Orchestration function, but f is of type InCore")
        ]


class TestUseAfterOut:
    TEXT = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        y = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INDEX],
             y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
{body}
"""

    def check(self, *lines: str) -> list[tuple[int, str]]:
        body = "\n".join(f"        {line}" for line in lines)
        made = pl.parse(self.TEXT.format(body=body))
        assert isinstance(made, Program)
        return found(made, P.InOutUseValid)

    def test_the_result_replaces_the_argument(self) -> None:
        assert self.check("y = self.k(x, y)", "return y") == []
        assert self.check("z = self.k(x, y)", "return z") == []

    def test_the_argument_must_not_be_read_again(self) -> None:
        error = (
            501,
            "'y' must not be read after it was passed as output to k: use the result of that call",
        )
        assert self.check("z = self.k(x, y)", "return y") == [error]
        assert self.check("z = self.k(x, y)", "w = self.k(y, z)", "return w") == [error]
        assert self.check("if n > 3:", "    z = self.k(x, y)", "return y") == [error]
        assert self.check("for i in pl.range(n):", "    z = self.k(x, y)", "return y") == [error]

    def test_an_argument_that_no_result_replaces_keeps_its_name(self) -> None:
        text = self.TEXT.replace("        return y\n", "        return 3\n")
        made = pl.parse(text.format(body="        n = self.k(x, y)\n        return y"))
        assert isinstance(made, Program)
        assert found(made, P.InOutUseValid) == []

    def test_a_loop_may_hand_the_output_on(self) -> None:
        assert self.check("for i in pl.range(n):", "    y = self.k(x, y)", "return y") == []


class TestPlacedPrograms:
    """Rules on what the passes produce."""

    def tile_program(self, type_: TileType, kind: FunctionType = FunctionType.InCore) -> Program:
        return program(EvalStmt(index(1)), params=[var("t", type_)], kind=kind)

    def test_tiles_have_two_dimensions(self) -> None:
        cube = TileType([2, 16, 16], F32)
        assert found(self.tile_program(cube), P.TileOps2D) == [
            (301, "'t' must have rank 2, not the shape [2, 16, 16]")
        ]
        assert found(self.tile_program(TileType([16, 16], F32)), P.TileOps2D) == []

    def test_every_tile_has_a_place(self) -> None:
        assert found(self.tile_program(TileType([16, 16], F32)), P.TileMemoryInferred) == [
            (302, "'t' must have a memory space")
        ]

    def test_operands_are_where_their_op_wants_them(self) -> None:
        tiles = [
            var(name, TileType(shape, dtype, memory_space=space))
            for name, shape, dtype, space in (
                ("a", [16, 64], DType.E4M3, Mem.Left),
                ("sa", [16, 2], DType.E8M0, Mem.LeftScale),
                ("b", [64, 32], DType.E4M3, Mem.Mat),
                ("sb", [2, 32], DType.E8M0, Mem.RightScale),
            )
        ]
        call = create_op_call("tile.matmul_mx", tiles, {}, SPAN)
        assert found(program(let("c", call), params=tiles), P.TileMemoryInferred) == [
            (303, "rhs of tile.matmul_mx must lie in Right, not in Mat")
        ]

    def test_stores_come_from_acc_or_vec(self) -> None:
        y = var("y", TENSOR)

        def store(space: Mem | None) -> list[tuple[int, str]]:
            t = var("t", TileType([16, 16], F32, memory_space=space))
            call = create_op_call("tile.store", [t, [0, 0], y], {}, SPAN)
            return found(program(EvalStmt(call), params=[t, y]), P.AccToGmStoreValid)

        assert store(Mem.Acc) == store(Mem.Vec) == []
        assert store(Mem.Mat) == [(304, "A tile must be stored from Acc or Vec, not from Mat")]
        assert store(None) == [
            (
                304,
                "A tile must be stored from Acc or Vec, not from a memory that is not known yet",
            )
        ]

    @pytest.mark.parametrize(
        ("type_", "message"),
        [
            (TensorType([4, 2], F32, None, TensorView([2, 1], TensorLayout.ND)), None),
            (
                TensorType([4, 2], F32),
                "'x' must have a stride for each of its 2 dimensions, not 0",
            ),
            (
                TensorType(
                    [1, 4, 2, 16, 2],
                    DType.E8M0,
                    None,
                    TensorView([256, 64, 32, 2, 1], TensorLayout.MX_A_ZZ),
                ),
                None,
            ),
            (
                TensorType([64, 4], DType.E8M0, None, TensorView([4, 1], TensorLayout.MX_A_ZZ)),
                "'x' must be packed scale boxes of rank 5, not [64, 4] of stride [4, 1]",
            ),
        ],
    )
    def test_tensors_say_their_strides(self, type_: TensorType, message: str | None) -> None:
        made = program(EvalStmt(index(1)), params=[var("x", type_)])
        expected = [] if message is None else [(305, message)]
        assert found(made, P.TensorViewCanonical) == expected

    def test_tiles_have_buffers_with_addresses(self) -> None:
        bare = TileType([16, 16], F32, None, None, Mem.Vec)
        unplaced = TileType([16, 16], F32, MemRef("m", -1, 1024), None, Mem.Vec)
        placed = TileType([16, 16], F32, MemRef("m", 0, 1024), None, Mem.Vec)
        assert found(self.tile_program(bare), P.HasMemRefs) == [
            (306, "'t' must have a memory reference")
        ]
        assert found(self.tile_program(unplaced), P.HasMemRefs) == []
        assert found(self.tile_program(unplaced), P.AllocatedMemoryAddr) == [
            (307, "'t' must have an address in m")
        ]
        assert found(self.tile_program(placed), P.AllocatedMemoryAddr) == []

    def test_control_functions_have_no_tiles_to_judge(self) -> None:
        bare = TileType([2, 16, 16], F32)
        for member in (P.TileOps2D, P.TileMemoryInferred, P.HasMemRefs):
            assert found(self.tile_program(bare, FunctionType.Orchestration), member) == []


KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[16, 256], pl.FP8E4M3FN],
             sa: pl.Tensor[[16, 8], pl.FP8E8M0, pl.MX_A_ZZ],
             b: pl.Tensor[[256, 32], pl.FP8E4M3FN],
             sb: pl.Tensor[[8, 32], pl.FP8E8M0, pl.MX_B_NN],
             c: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        acc = pl.matmul_mx(pl.load(a, [0, 0], [16, 64], [16, {k}]), pl.load(sa, [0, 0], [16, 2]),
                           pl.load(b, [0, 0], [64, 32], [{k}, 32]), pl.load(sb, [0, 0], [2, 32]))
        for k in pl.pipeline(64, 256, 64, stage=2):
            acc = pl.matmul_mx_acc(
                acc, pl.load(a, [0, k], [16, 64]), pl.load(sa, [0, k // 32], [16, 2]),
                pl.load(b, [k, 0], [64, 32]), pl.load(sb, [k // 32, 0], [2, 32]))
        c = pl.store(acc, [0, 0], c)
        return c
"""


def kernel(k: int = 64) -> Program:
    made = pl.parse(KERNEL.format(k=k))
    assert isinstance(made, Program)
    return made


class TestKernels:
    def test_every_pass_keeps_what_it_promises(self) -> None:
        made = kernel()
        held = set(STRUCTURAL)
        assert verify(made, held) == []
        for each in default_pipeline():
            assert set(each.get_required_properties()) <= held, each.get_name()
            made = each(made)
            held -= set(each.get_invalidated_properties())
            held |= set(each.get_produced_properties())
            assert verify(made, held) == [], each.get_name()
        assert held >= {P.HasMemRefs, P.AllocatedMemoryAddr, P.TensorViewCanonical}

    @pytest.mark.parametrize(("k", "groups"), [(33, 2), (64, 2), (32, 1), (1, 1)])
    def test_the_strict_rule_on_the_valid_k_is_a_switch(self, k: int, groups: int) -> None:
        made = kernel(k)
        assert found(made, P.TypeChecked) == []
        strict = found(made, P.TypeChecked, strict_valid_k=True)
        message = (
            f"tile.matmul_mx: the valid K must reach into all 2 groups of the physical K 64, but "
            f"{k} reaches into {groups}"
        )
        assert strict == ([] if groups == 2 else [(110, message)])


class TestReport:
    BROKEN = program(let("y", plus_one(var("x"))), EvalStmt(var("z"), SPAN))
    REPORT = """\
IR Verification Report
======================
Total diagnostics: 2 (2 errors, 0 warnings)

[1] ERROR - UseAfterDefCheck
    Message: 'x' must be defined before it is used
    Location: k.py:12:5
    Error Code: 401

[2] ERROR - UseAfterDefCheck
    Message: 'z' must be defined before it is used
    Location: k.py:12:5
    Error Code: 401

Status: FAILED (2 error(s) found)"""

    def test_the_report(self) -> None:
        assert generate_report(verify(self.BROKEN, [P.UseAfterDef])) == self.REPORT
        assert generate_report([]).endswith("\n\nStatus: PASSED")

    def test_the_error_is_the_report_at_the_first_place(self) -> None:
        with pytest.raises(VerificationError) as caught:
            verify_or_throw(self.BROKEN, [P.UseAfterDef], title="Verification failed after 'X'")
        assert caught.value.message == f"Verification failed after 'X':\n{self.REPORT}"
        assert caught.value.span == SPAN

    def test_a_warning_is_no_failure(self) -> None:
        warning = Diagnostic(Severity.WARNING, "Rule", 7, "It could be better", SPAN)
        assert "(0 errors, 1 warnings)" in generate_report([warning])
        assert "[1] WARNING - Rule" in generate_report([warning])
        assert str(warning) == "[warning] [Rule] It could be better at k.py:12:5"
        assert dataclasses.replace(warning, span=Span.unknown()).hint_code == 0

    def test_the_verifier_hands_a_good_program_back(self) -> None:
        made = kernel()
        assert run_verifier()(made) is made
        assert run_verifier([P.UseAfterDef])(made) is made
        with pytest.raises(VerificationError):
            run_verifier([P.SSAForm])(made)
        with pytest.raises(VerificationError):
            run_verifier(strict_valid_k=True)(kernel(32))

    def test_every_property_has_a_rule_of_its_own(self) -> None:
        assert list(RULES) == list(IRProperty)
        assert len({rule.name for rule in RULES.values()}) == len(RULES)
