"""BlockMxScaleTensorViews: what becomes of types, loads, views, calls and submits."""

from collections.abc import Sequence

import pytest

from scalebox.ir.core import (
    AssignStmt,
    ForStmt,
    Function,
    IfStmt,
    ParamDirection,
    Program,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from scalebox.ir.dtypes import DType, UInt8
from scalebox.ir.errors import Span
from scalebox.ir.expr import (
    Add,
    Call,
    Gt,
    IterArg,
    MakeTuple,
    Mul,
    Op,
    TupleGetItemExpr,
    Type,
    UnknownType,
    Var,
    index,
)
from scalebox.ir.passes import block_mx_scale_tensor_views
from scalebox.ir.types import (
    DistributedTensorType,
    MemorySpace,
    MemRef,
    PadValue,
    TensorLayout,
    TensorType,
    TensorView,
    TileType,
    TupleType,
    constant_dims,
)

from .parts import (
    INDEX,
    A,
    B,
    assign,
    function,
    ints,
    load,
    loop,
    only,
    program,
    quotient,
    scalar,
    scale_tile,
    scales,
    scales_type,
    stmts,
    tuple_of,
)


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


# --------------------------------------------------------------------------- types


# Worked by hand from [M, G] -> [1, M/16, G/2, 16, 2] and [G, N] -> [1, N/16, G/2, 16, 2].
WORKED = [
    (A, (64, 4), (1, 4, 2, 16, 2)),
    (B, (4, 64), (1, 4, 2, 16, 2)),
    (A, (128, 2), (1, 8, 1, 16, 2)),
    (B, (2, 64), (1, 4, 1, 16, 2)),
    (A, (16, 64), (1, 1, 32, 16, 2)),
    (A, (32, 4), (1, 2, 2, 16, 2)),
    (B, (4, 32), (1, 2, 2, 16, 2)),
    (A, (16, 2), (1, 1, 1, 16, 2)),
    (B, (16, 32), (1, 2, 8, 16, 2)),
]


@pytest.mark.parametrize(("layout", "logical", "physical"), WORKED)
def test_a_logical_shape_becomes_boxes(
    layout: TensorLayout, logical: tuple[int, int], physical: tuple[int, ...]
) -> None:
    (param,) = kernel("k", [scales("s", logical, layout)], ReturnStmt()).params
    assert shape_of(param.type) == physical


def test_a_blocked_type_keeps_everything_but_its_shape_and_stride() -> None:
    memref = MemRef("gm", 0, 256)
    view = TensorView([4, 1], A, None, PadValue.zero)
    type_ = TensorType([64, 4], DType.E8M0, memref, view)
    (param,) = kernel("k", [Var("s", type_)], ReturnStmt()).params
    found = param.type
    assert isinstance(found, TensorType)
    assert found.dtype is DType.E8M0
    assert found.memref is memref
    assert found.layout is A
    assert found.stride == ()
    assert found.valid_shape == ()
    assert found.tensor_view is not None
    assert found.tensor_view.pad is PadValue.zero


def test_the_dtype_of_a_scale_tensor_is_left_to_the_op_rules() -> None:
    (param,) = kernel("k", [Var("s", scales_type(dtype=UInt8))], ReturnStmt()).params
    assert shape_of(param.type) == (1, 4, 2, 16, 2)


@pytest.mark.parametrize(
    "type_",
    [
        INDEX,
        UnknownType(),
        TensorType([64, 4], DType.E8M0),
        TensorType([64, 4], DType.E8M0, None, TensorView([1, 64], TensorLayout.DN)),
        TensorType([64, 64], DType.E4M3, None, TensorView(layout=TensorLayout.NZ)),
        DistributedTensorType([64, 4], DType.E8M0),
        scale_tile((16, 2)),
        TupleType([INDEX, TensorType([64, 4], DType.Float32)]),
    ],
)
def test_other_types_stay_the_same_object(type_: Type) -> None:
    var = Var("x", type_)
    (param,) = kernel("k", [var], ReturnStmt()).params
    assert param is var


def test_a_tuple_is_rebuilt_around_its_mx_tensor_only() -> None:
    plain, nested = TensorType([4, 4], DType.Float32), TupleType([INDEX])
    (param,) = kernel(
        "k", [Var("x", TupleType([plain, TupleType([scales_type()]), nested]))], ReturnStmt()
    ).params
    assert isinstance(param.type, TupleType)
    first, second, third = param.type.types
    assert first is plain
    assert third is nested
    assert isinstance(second, TupleType)
    assert shape_of(second.types[0]) == (1, 4, 2, 16, 2)


def test_return_types_are_blocked() -> None:
    s = scales()
    made = kernel("k", [s], ReturnStmt((s,)), returns=[s.type, INDEX])
    assert shape_of(made.return_types[0]) == (1, 4, 2, 16, 2)
    assert made.return_types[1] is INDEX


def test_a_parameter_is_replaced_once_by_a_new_variable_of_its_name() -> None:
    s = scales(line=3)
    other = scalar("n")
    made = kernel(
        "k", [(s, ParamDirection.InOut), other], assign("t", load(s, [0, 0])), ReturnStmt((s,))
    )
    new = made.params[0]
    assert new is not s
    assert new.unique_id != s.unique_id
    assert (new.name_hint, new.span) == (s.name_hint, s.span)
    assert made.param_directions == (ParamDirection.InOut, ParamDirection.In)
    assert made.params[1] is other
    assert call_at(made).args[0] is new
    last = stmts(made)[1]
    assert isinstance(last, ReturnStmt)
    assert last.value == (new,)


def test_iteration_arguments_and_results_are_blocked_and_their_uses_follow() -> None:
    s, i = scales(), scalar("i")
    arg = IterArg("x", s.type, s)
    result = Var("y", s.type)
    body = SeqStmts((assign("t", load(arg, [0, 0])), YieldStmt((arg,))))
    stmt = ForStmt(i, index(0), index(4), index(1), (arg,), body, (result,))
    made = kernel("k", [s], stmt, ReturnStmt((result,)), returns=[s.type])
    new = stmts(made)[0]
    assert isinstance(new, ForStmt)
    assert new.iter_args[0].init_value is made.params[0]
    assert shape_of(new.iter_args[0].type) == (1, 4, 2, 16, 2)
    assert shape_of(new.return_vars[0].type) == (1, 4, 2, 16, 2)
    inner = new.body
    assert isinstance(inner, SeqStmts)
    first, last = inner.stmts
    assert isinstance(first, AssignStmt)
    assert isinstance(first.value, Call)
    assert first.value.args[0] is new.iter_args[0]
    assert isinstance(last, YieldStmt)
    assert last.value == (new.iter_args[0],)
    back = stmts(made)[1]
    assert isinstance(back, ReturnStmt)
    assert back.value == (new.return_vars[0],)


def test_while_loops_and_branches_are_rewritten_too() -> None:
    s, n = scales(), scalar("n")
    arg, result, merged = IterArg("x", s.type, s), Var("y", s.type), Var("z", s.type)
    while_ = WhileStmt(Gt(n, index(0), DType.Bool), (arg,), YieldStmt((arg,)), (result,))
    if_ = IfStmt(Gt(n, index(0), DType.Bool), YieldStmt((result,)), YieldStmt((s,)), (merged,))
    made = kernel("k", [s, n], while_, if_, assign("t", load(merged, [0, 0])))
    new_while, new_if, last = stmts(made)
    assert isinstance(new_while, WhileStmt)
    assert isinstance(new_if, IfStmt)
    assert new_while.iter_args[0].init_value is made.params[0]
    assert new_if.else_body is not None
    assert call_at(made, 2).args[0] is new_if.return_vars[0]
    assert shape_of(new_if.return_vars[0].type) == (1, 4, 2, 16, 2)
    assert isinstance(last, AssignStmt)


def test_expressions_in_types_follow_the_variables_that_changed() -> None:
    pair = Var("pair", TupleType([INDEX, scales_type()]))
    extent = TupleGetItemExpr(pair, 0)
    view = TensorView([extent, 1], TensorLayout.ND, [extent, 4])
    x = Var("x", TensorType([extent, 4], DType.Float32, None, view))
    made = kernel("k", [pair, x], ReturnStmt((x,)))
    found = made.params[1].type
    assert isinstance(found, TensorType)
    for each in (found.shape[0], found.stride[0], found.valid_shape[0]):
        assert isinstance(each, TupleGetItemExpr)
        assert each.tuple is made.params[0]
    assert extent.tuple is pair


# --------------------------------------------------------------------------- loads


def test_a_load_with_constant_offsets_folds_them() -> None:
    s = scales(shape=(64, 8))
    made = kernel("k", [s], assign("t", load(s, [32, 4], (16, 2))))
    new = call_at(made)
    tensor, offsets, window, valid = new.args
    assert tensor is made.params[0]
    assert ints(offsets) == [0, 2, 2, 0, 0]
    assert ints(window) == [1, 1, 1, 16, 2]
    assert valid is window


def test_a_load_from_a_right_scale_tensor_swaps_the_axes() -> None:
    s = scales(shape=(8, 64), layout=B)
    made = kernel("k", [s], assign("t", load(s, [2, 48], (4, 16), layout=B)))
    _, offsets, window, _ = call_at(made).args
    assert ints(offsets) == [0, 3, 1, 0, 0]
    assert ints(window) == [1, 1, 2, 16, 2]


def test_the_blocked_elements_are_index_constants() -> None:
    s = scales()
    new = call_at(kernel("k", [s], assign("t", load(s, [16, 2]))))
    elements = [e for arg in new.args[1:3] if isinstance(arg, MakeTuple) for e in arg.elements]
    assert len(elements) == 10
    assert all(e.type == INDEX for e in elements)


def test_a_load_keeps_its_tile_its_keywords_and_its_place() -> None:
    s = scales()
    old = load(s, [0, 0], line=7)
    new = call_at(kernel("k", [s], AssignStmt(Var("t", old.type), old)))
    assert new.type is old.type
    assert new.op == Op("tile.load")
    assert new.kwargs == {"target_memory": MemorySpace.Mat}
    assert new.span == old.span


def test_a_narrowed_valid_shape_stays_on_the_tile_and_the_box_is_complete() -> None:
    s = scales()
    old = load(s, [0, 0], (32, 2), (20, 1))
    new = call_at(kernel("k", [s], AssignStmt(Var("t", old.type), old)))
    assert ints(new.args[2]) == [1, 2, 1, 16, 2]
    assert new.args[3] is new.args[2]
    assert isinstance(new.type, TileType)
    assert constant_dims(new.type.valid_shape) == (20, 1)


def test_a_load_without_a_valid_shape_gets_none() -> None:
    s = scales()
    old = load(s, [0, 0])
    short = Call(old.op, old.args[:3], old.kwargs, old.type, Span.unknown())
    assert len(call_at(kernel("k", [s], AssignStmt(Var("t", old.type), short))).args) == 3


def test_a_symbolic_offset_is_divided_as_it_is() -> None:
    s, i = scales(shape=(256, 4)), scalar("i")
    offset = Add(Mul(i, index(16), INDEX.dtype), index(32), INDEX.dtype)
    made = kernel("k", [s], loop(i, 0, 4, 1, assign("t", load(s, [offset, 0]))))
    (stmt,) = stmts(made)
    assert isinstance(stmt, ForStmt)
    assert isinstance(stmt.body, AssignStmt)
    assert isinstance(stmt.body.value, Call)
    dividend, divisor = quotient(stmt.body.value.args[1], 1)
    assert dividend is offset
    assert divisor == 16


def test_a_product_of_constants_is_not_folded() -> None:
    s = scales()
    offset = Mul(index(1), index(16), INDEX.dtype)
    made = kernel("k", [s], assign("t", load(s, [offset, 0])))
    assert quotient(call_at(made).args[1], 1) == (offset, 16)


def test_a_load_whose_tensor_is_no_variable_is_blocked_all_the_same() -> None:
    pair = Var("pair", TupleType([scales_type(), INDEX]))
    made = kernel("k", [pair], assign("t", load(TupleGetItemExpr(pair, 0), [16, 0])))
    tensor, offsets, *_ = call_at(made).args
    assert isinstance(tensor, TupleGetItemExpr)
    assert tensor.tuple is made.params[0]
    assert ints(offsets) == [0, 1, 0, 0, 0]


# --------------------------------------------------------------------------- views


def view(source: Var, shape: tuple[int, ...], layout: TensorLayout) -> Call:
    type_ = TensorType(shape, DType.E8M0, None, TensorView(layout=layout))
    args = [source, tuple_of(*shape)]
    return Call(Op("tensor.view"), args, {"layout": layout}, type_, Span.unknown())


@pytest.mark.parametrize(
    ("layout", "shape", "physical"),
    [(A, (16, 2), [1, 1, 1, 16, 2]), (B, (2, 32), [1, 2, 1, 16, 2])],
)
def test_a_view_of_bytes_as_boxes_gets_a_blocked_shape(
    layout: TensorLayout, shape: tuple[int, int], physical: list[int]
) -> None:
    nd = Var("nd", TensorType([1, shape[0] * shape[1]], DType.E8M0))
    alias = assign("s", view(nd, shape, layout))
    window = (16, 2) if layout is A else (2, 16)
    made = kernel("k", [nd], alias, assign("t", load(alias.var, [0, 0], window, layout=layout)))
    new = call_at(made)
    assert made.params[0] is nd
    assert new.args[0] is nd
    assert ints(new.args[1]) == physical
    assert list(shape_of(new.type) or ()) == physical
    assert new.kwargs == {"layout": layout}
    loaded = call_at(made, 1)
    first = stmts(made)[0]
    assert isinstance(first, AssignStmt)
    assert loaded.args[0] is first.var
    assert first.var.type == new.type


def test_a_view_of_boxes_as_bytes_keeps_its_shape_and_type() -> None:
    s = scales(shape=(32, 4))
    old = view(s, (1, 128), TensorLayout.ND)
    made = kernel("k", [s], AssignStmt(Var("nd", old.type), old))
    new = call_at(made)
    assert new.args[0] is made.params[0]
    assert new.args[1] is old.args[1]
    assert new.type is old.type
