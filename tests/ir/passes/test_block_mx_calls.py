"""BlockMxScaleTensorViews: calls, submits and stores, the stamp, and what keeps its identity."""

from collections.abc import Sequence

import pytest

from scalebox.ir.core import (
    AssignStmt,
    Function,
    FunctionType,
    ParamDirection,
    Program,
    ReturnStmt,
    SeqStmts,
    Stmt,
)
from scalebox.ir.dtypes import DType, TaskId
from scalebox.ir.errors import Span
from scalebox.ir.expr import (
    Add,
    Call,
    GlobalVar,
    Gt,
    Op,
    ScalarType,
    Submit,
    Type,
    UnknownType,
    Var,
    index,
)
from scalebox.ir.passes import PassContext, block_mx_scale_tensor_views, run_verifier
from scalebox.ir.printer import python_print
from scalebox.ir.properties import IRProperty
from scalebox.ir.types import (
    TensorLayout,
    TensorType,
    TupleType,
    constant_dims,
)

from .parts import (
    INDEX,
    A,
    B,
    assign,
    call,
    function,
    ints,
    load,
    loop,
    only,
    program,
    scalar,
    scale_tile,
    scales,
    stmts,
    tuple_of,
)

STAMP = "mx_tensor_views_blocked"


def blocked(made: Program) -> Program:
    return block_mx_scale_tensor_views()(made)


def kernel(
    name: str,
    params: Sequence[Var | tuple[Var, ParamDirection]],
    *body: Stmt,
    returns: Sequence[Type] = (),
) -> Function:
    """The blocked function of a program of one function."""
    return only(blocked(program(function(name, params, *body, returns=returns))))


def call_at(made: Function, position: int = 0) -> Call:
    stmt = stmts(made)[position]
    assert isinstance(stmt, AssignStmt)
    assert isinstance(stmt.value, Call)
    return stmt.value


def shape_of(type_: Type) -> tuple[int, ...] | None:
    assert isinstance(type_, TensorType)
    return constant_dims(type_.shape)


# --------------------------------------------------------------------------- calls and submits


def two_functions(caller_statement: AssignStmt, *params: Var) -> Program:
    s, row = scales(), scalar("row")
    callee = function("k", [s, row], assign("t", load(s, [row, 0])))
    return program(
        callee, function("main", params, caller_statement, kind=FunctionType.Orchestration)
    )


def test_a_call_of_a_function_hands_the_new_variable_on() -> None:
    s = scales()
    launch = call("k", s, 16, type_=TupleType([s.type, INDEX]))
    made = blocked(two_functions(AssignStmt(Var("r", launch.type), launch), s))
    main = made.get_function("main")
    assert main is not None
    new = call_at(main)
    assert new.args[0] is main.params[0]
    assert new.args[1] is launch.args[1]
    assert isinstance(new.type, TupleType)
    assert shape_of(new.type.types[0]) == (1, 4, 2, 16, 2)
    assert new.type.types[1] is INDEX


def test_variables_in_the_attributes_of_a_call_follow() -> None:
    s = scales()
    other = Var("o", TensorType([4, 4], DType.Float32))
    attrs = {"dump_vars": [s, other], "plain": 3}
    old = Call(GlobalVar("k"), [s, index(16)], {}, attrs, UnknownType(), Span.unknown())
    made = blocked(two_functions(AssignStmt(Var("r", UnknownType()), old), s, other))
    main = made.get_function("main")
    assert main is not None
    new = call_at(main)
    assert list(new.attrs) == ["dump_vars", "plain"]
    assert new.attrs["dump_vars"] == [main.params[0], other]
    assert new.attrs["plain"] == 3
    assert old.attrs["dump_vars"] == [s, other]


def test_variables_in_the_attributes_of_a_load_follow() -> None:
    s = scales()
    old = load(s, [0, 0])
    tagged = Call(old.op, old.args, old.kwargs, {"dump_vars": [s]}, old.type, Span.unknown())
    made = kernel("k", [s], AssignStmt(Var("t", old.type), tagged))
    assert call_at(made).attrs["dump_vars"] == [made.params[0]]


def test_a_submit_changes_its_result_type_and_nothing_else() -> None:
    s, tid, n = scales(), Var("tid", ScalarType(TaskId)), scalar("n")
    type_ = TupleType([s.type, ScalarType(TaskId)])
    predicate = Gt(n, index(0), DType.Bool)
    plain = Var("plain", TensorType([4, 4], DType.Float32))
    old = Submit(
        GlobalVar("k"),
        [plain, index(16)],
        [tid],
        {"key": 1},
        {"dumps": [plain]},
        type_,
        Span("kernel.py", 9, 1),
        core_num=4,
        sync_start=True,
        allow_early_resolve=True,
        predicate=predicate,
    )
    made = blocked(two_functions(AssignStmt(Var("r", type_), old), plain, tid, n))
    main = made.get_function("main")
    assert main is not None
    (stmt,) = stmts(main)
    assert isinstance(stmt, AssignStmt)
    new = stmt.value
    assert isinstance(new, Submit)
    assert new is not old
    assert isinstance(new.type, TupleType)
    assert shape_of(new.type.types[0]) == (1, 4, 2, 16, 2)
    assert new.type.types[1] is type_.types[1]
    for name in ("op", "args", "deps", "kwargs", "attrs", "span", "core_num", "predicate"):
        assert getattr(new, name) is getattr(old, name), name
    assert new.sync_start
    assert new.allow_early_resolve


def test_a_submit_without_mx_tensors_is_the_same_object() -> None:
    plain = Var("plain", TensorType([4, 4], DType.Float32))
    type_ = TupleType([plain.type, ScalarType(TaskId)])
    old = Submit(GlobalVar("k"), [plain, index(16)], [], type_, Span.unknown())
    made = blocked(two_functions(AssignStmt(Var("r", type_), old), plain))
    main = made.get_function("main")
    assert main is not None
    (stmt,) = stmts(main)
    assert isinstance(stmt, AssignStmt)
    assert stmt.value is old


# --------------------------------------------------------------------------- stamp and identity


def test_every_function_is_stamped_and_keeps_its_attributes() -> None:
    plain = Function("f", [scalar("n")], [], ReturnStmt(), attrs={"other": 1})
    made = blocked(program(function("k", [scales()], ReturnStmt()), plain))
    found = {g.name: dict(f.attrs) for g, f in made.functions.items()}
    assert found == {"k": {STAMP: True}, "f": {"other": 1, STAMP: True}}


def test_a_second_run_returns_the_same_program() -> None:
    s = scales()
    once = blocked(program(function("k", [s], assign("t", load(s, [16, 2])))))
    assert blocked(once) is once


def test_a_stamped_function_is_handed_back_whatever_it_holds() -> None:
    looks_logical = Function("k", [scales()], [], ReturnStmt(), attrs={STAMP: True})
    other = function("other", [scalar("n")], ReturnStmt())
    made = blocked(program(looks_logical, other))
    assert made.get_function("k") is looks_logical
    assert made.get_function("other") is not other


def test_a_stamp_that_says_no_is_no_stamp() -> None:
    s = scales()
    made = only(blocked(program(Function("k", [s], [], ReturnStmt(), attrs={STAMP: False}))))
    assert made.attrs == {STAMP: True}
    assert shape_of(made.params[0].type) == (1, 4, 2, 16, 2)


def test_the_input_is_never_changed() -> None:
    s = scales()
    made = program(function("k", [s], assign("t", load(s, [16, 2])), returns=[s.type]))
    text, before = python_print(made), only(made)
    blocked(made)
    assert only(made) is before
    assert python_print(made) == text
    assert shape_of(s.type) == (64, 4)


def test_what_has_no_mx_tensor_keeps_its_identity() -> None:
    s, x = scales(), Var("x", TensorType([64, 64], DType.Float32))
    i = scalar("i")
    untouched = loop(i, 0, 4, 1, assign("y", Add(i, index(1), INDEX.dtype)))
    made = kernel("k", [s, x], untouched, assign("t", load(s, [0, 0])), ReturnStmt((x,)))
    first, _, last = stmts(made)
    assert first is untouched
    assert isinstance(last, ReturnStmt)
    assert last.value == (x,)
    assert made.params[1] is x


def test_a_sequence_within_a_sequence_stays_one() -> None:
    s = scales()
    inner = SeqStmts((assign("y", index(1)), ReturnStmt()))
    made = kernel("k", [s], assign("t", load(s, [0, 0])), inner)
    assert isinstance(made.body, SeqStmts)
    assert made.body.stmts[1] is inner


def test_a_program_without_mx_tensors_changes_in_its_stamps_only() -> None:
    f = function("f", [scalar("n")], ReturnStmt())
    new = only(blocked(program(f)))
    assert new.body is f.body
    assert new.params is f.params
    assert new.return_types is f.return_types


def test_it_works_under_an_empty_context_and_keeps_ssa() -> None:
    s, i = scales(shape=(64, 4)), scalar("i")
    made = program(function("k", [s], loop(i, 0, 64, 16, assign("t", load(s, [i, 0])))))
    with PassContext([]):
        new = blocked(made)
    assert run_verifier([IRProperty.SSAForm, IRProperty.UseAfterDef])(new) is new


def test_the_factory_knows_its_name() -> None:
    assert block_mx_scale_tensor_views().get_name() == "BlockMxScaleTensorViews"


# --------------------------------------------------------------------------- stores


def store_program(
    tile_layout: TensorLayout, layout: TensorLayout, offsets: tuple[int, int]
) -> Program:
    shape, window = ((64, 4), (16, 2)) if layout is A else ((4, 64), (2, 16))
    s = scales("s", shape, layout)
    tile = Var("t", scale_tile(window, tile_layout))
    stored = Call(
        Op("tile.store"), [tile, tuple_of(*offsets), s], {}, s.type, Span("kernel.py", 4, 9)
    )
    return program(function("k", [tile, s], AssignStmt(Var("r", s.type), stored)))


@pytest.mark.parametrize(
    ("layout", "offsets", "boxes"),
    [(A, (32, 2), [0, 2, 1, 0, 0]), (B, (2, 32), [0, 2, 1, 0, 0])],
)
def test_a_store_is_blocked_where_it_is_allowed(
    layout: TensorLayout, offsets: tuple[int, int], boxes: list[int]
) -> None:
    made = only(
        block_mx_scale_tensor_views(allow_mx_store=True)(store_program(layout, layout, offsets))
    )
    new = call_at(made)
    assert ints(new.args[1]) == boxes
    assert new.args[2] is made.params[1]
    assert shape_of(new.type) == shape_of(made.params[1].type)
