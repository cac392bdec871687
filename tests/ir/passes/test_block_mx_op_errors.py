"""Ops that BlockMxScaleTensorViews refuses to give an MX tensor to: sentences and places."""

import re

import pytest

from scalebox.ir.core import AssignStmt, EvalStmt, Program
from scalebox.ir.dtypes import DType, UInt8
from scalebox.ir.errors import IRValueError, UserError
from scalebox.ir.expr import Call, Expr, MakeTuple, Op, Sub, Type, UnknownType, Var, index
from scalebox.ir.passes import block_mx_scale_tensor_views
from scalebox.ir.types import (
    MemorySpace,
    TensorLayout,
    TensorType,
    TensorView,
    TileType,
    TupleType,
)

from .parts import (
    INDEX,
    A,
    B,
    assign,
    at,
    function,
    load,
    loop,
    program,
    scalar,
    scale_tile,
    scales,
    scales_type,
    tuple_of,
)


def refusal(made: Program, *, allow_mx_store: bool = False) -> UserError:
    with pytest.raises(ValueError, match=r".") as caught:
        block_mx_scale_tensor_views(allow_mx_store=allow_mx_store)(made)
    error = caught.value
    assert isinstance(error, IRValueError)
    return error


def check(made: Program, message: str, line: int, *, allow_mx_store: bool = False) -> None:
    error = refusal(made, allow_mx_store=allow_mx_store)
    assert error.message == message
    assert error.span is not None
    assert error.span.line == line


# --------------------------------------------------------------------------- other ops


def op_on(name: str, *args: Var | MakeTuple, type_: Type | None = None) -> Program:
    stmt = EvalStmt(Call(Op(name), args, type_ or UnknownType(), at(7)))
    return program(function("k", [a for a in args if isinstance(a, Var)], stmt))


@pytest.mark.parametrize("name", ["tensor.slice", "tensor.reshape", "tile.prefetch", "made.up"])
def test_an_op_that_knows_no_boxes(name: str) -> None:
    plain = Var("x", TensorType([4, 4], DType.Float32))
    message = (
        "An MX tensor must be used only by tile.load and by shaped FP8E8M0 tensor.view aliases, not "
        f"by {name} (argument 1)"
    )
    check(op_on(name, plain, scales()), message, 7)


def test_the_tensor_must_stand_where_the_op_wants_it() -> None:
    plain = Var("x", TensorType([4, 4], DType.Float32))
    found = refusal(op_on("tile.load", plain, scales())).message
    assert found.endswith("not by tile.load (argument 1)")
    found = refusal(op_on("tile.load", scales(), scales("q"))).message
    assert found.endswith("not by tile.load (argument 0)")


def test_an_mx_tensor_in_a_tuple_operand_is_found() -> None:
    found = refusal(op_on("made.up", MakeTuple((index(1), scales())))).message
    assert found.endswith("not by made.up (argument 0)")


def test_a_tuple_with_an_mx_tensor_in_it_counts_as_one() -> None:
    inner = TupleType([INDEX, TupleType([scales_type()])])
    found = refusal(op_on("made.up", scalar("n"), Var("pair", inner))).message
    assert found.endswith("not by made.up (argument 1)")
    found = refusal(op_on("made.up", scalar("n"), type_=inner)).message
    assert found.startswith("made.up must not make an MX tensor")


def test_making_a_tensor_in_boxes() -> None:
    made = op_on("tensor.create", tuple_of(64, 4), type_=scales_type())
    message = (
        "tensor.create must not make an MX tensor: make it ND in box order and give it the MX layout "
        "by tensor.view"
    )
    check(made, message, 7)


# --------------------------------------------------------------------------- views


ND = TensorType([1, 256], DType.E8M0)


@pytest.mark.parametrize(
    ("source", "result", "shape", "message"),
    [
        (
            scales_type(),
            scales_type((4, 64), B),
            (4, 64),
            "An MX layout must be viewed from ND or as ND, not MX_A_ZZ as MX_B_NN",
        ),
        (
            scales_type(),
            scales_type((32, 8)),
            (32, 8),
            "An MX layout must be viewed from ND or as ND, not MX_A_ZZ as MX_A_ZZ",
        ),
        (
            TensorType([4, 64], DType.E8M0, None, TensorView(layout=TensorLayout.DN)),
            scales_type(),
            (64, 4),
            "An MX layout must be viewed from ND or as ND, not DN as MX_A_ZZ",
        ),
        (ND, scales_type(), None, "A tensor.view of ND as MX_A_ZZ must be given its shape"),
        (
            TensorType([1, 256], UInt8),
            scales_type(dtype=UInt8),
            (64, 4),
            "A tensor.view of ND as MX_A_ZZ must hold FP8E8M0, not UInt8",
        ),
        (
            scales_type(dtype=UInt8),
            TensorType([1, 256], UInt8),
            (1, 256),
            "A tensor.view of MX_A_ZZ as ND must hold FP8E8M0, not UInt8",
        ),
        (
            TensorType([16, 16], DType.E8M0, None, TensorView([32, 1], TensorLayout.ND)),
            scales_type(),
            (64, 4),
            "A tensor.view of ND as MX_A_ZZ must look at a packed tensor, not a strided one",
        ),
        (
            ND,
            scales_type((8, 32)),
            (8, 32),
            "The block dimension of an MX_A_ZZ tensor must be a positive multiple of 16, not 8",
        ),
    ],
)
def test_a_view_that_is_no_alias_of_boxes(
    source: TensorType, result: TensorType, shape: tuple[int, int] | None, message: str
) -> None:
    var = Var("x", source)
    args = [var] if shape is None else [var, tuple_of(*shape)]
    view = Call(Op("tensor.view"), args, {"layout": result.layout}, result, at(7))
    made = program(function("k", [var], AssignStmt(Var("v", result, at(6)), view, at(7))))
    error = refusal(made)
    assert error.message == message
    assert error.span is not None
    assert error.span.line in (6, 7)


def test_a_view_must_be_of_a_tensor() -> None:
    made = op_on("tensor.view", scalar("n"), type_=scales_type())
    check(made, "tensor.view must look at a tensor and give a tensor", 7)


# --------------------------------------------------------------------------- stores


def one_store(
    tile: TileType, offsets: tuple[int, ...] = (0, 0), layout: TensorLayout = A
) -> Program:
    s = scales("s", (64, 4) if layout is A else (4, 64), layout)
    source = Var("t", tile)
    stored = Call(Op("tile.store"), [source, tuple_of(*offsets), s], s.type, at(7))
    return program(function("k", [source, s], AssignStmt(Var("r", s.type), stored, at(7))))


def test_a_store_into_boxes() -> None:
    message = (
        "A tile must not be stored into an MX_A_ZZ tensor: store its bytes into an ND tensor and view "
        "that as MX in the next kernel"
    )
    check(one_store(scale_tile((16, 2))), message, 7)
    hint = refusal(one_store(scale_tile((16, 2)))).hint
    assert hint is not None
    assert hint.startswith("scalebox.compile(program, allow_mx_store=True) takes a tile of scales")


@pytest.mark.parametrize(
    ("tile", "layout", "message"),
    [
        (
            TileType([16, 2], UInt8, None, None, MemorySpace.Mat),
            A,
            "Only an FP8E8M0 tile can be stored into an MX_A_ZZ tensor",
        ),
        (
            scale_tile((2, 16), A),
            B,
            "A tile stored into an MX_B_NN tensor must be arranged col_major/col_major/32, not "
            "row_major/row_major/32",
        ),
        (
            scale_tile((16, 2), B),
            A,
            "A tile stored into an MX_A_ZZ tensor must be arranged row_major/row_major/32, not "
            "col_major/col_major/32",
        ),
        (
            TileType([16, 2], DType.E8M0, None, None, MemorySpace.Vec),
            A,
            "A tile stored into an MX_A_ZZ tensor must be arranged row_major/row_major/32, not "
            "row_major/none_box/512",
        ),
        (
            scale_tile((16, 2), A, (8, 2)),
            A,
            "A tile stored into an MX_A_ZZ tensor must be valid as a whole",
        ),
    ],
)
def test_a_store_of_the_wrong_tile_where_stores_are_allowed(
    tile: TileType, layout: TensorLayout, message: str
) -> None:
    check(one_store(tile, layout=layout), message, 7, allow_mx_store=True)


def test_an_allowed_store_is_held_to_the_rules_of_loads() -> None:
    def message(offsets: tuple[int, ...], tile: TileType) -> str:
        return refusal(one_store(tile, offsets), allow_mx_store=True).message

    fits = scale_tile((16, 2))
    assert message((8, 0), fits).endswith("a non-negative multiple of 16, not 8")
    assert message((0, 0, 0), fits).endswith("a rank-2 logical offset, not rank 3")
    assert message((64, 0), fits).endswith("on axis 0 it covers 64..79 of 64")
    assert message((0, 0), scale_tile((24, 2))).endswith("a positive multiple of 16, not 24")


# --------------------------------------------------------------------------- malformed calls


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (1, "Argument 1 of tile.load must be a tuple of coordinates, not nothing"),
        (2, "Argument 2 of tile.load must be a tuple of coordinates, not nothing"),
    ],
)
def test_a_load_with_too_few_arguments(count: int, message: str) -> None:
    s = scales()
    old = load(s, (0, 0))
    short = Call(old.op, old.args[:count], old.kwargs, old.type, at(7))
    check(program(function("k", [s], EvalStmt(short))), message, 7)


def test_coordinates_that_are_no_tuple() -> None:
    s, n = scales(), scalar("n")
    old = load(s, (0, 0))
    odd = Call(old.op, [s, n, *old.args[2:]], old.kwargs, old.type, at(7))
    message = "Argument 1 of tile.load must be a tuple of coordinates, not Var"
    check(program(function("k", [s, n], EvalStmt(odd))), message, 7)


def test_the_string_of_an_error_names_divisor_and_proof() -> None:
    s, n = scales(), scalar("n")
    made = program(function("k", [s, n], assign("t", load(s, (n, 0), line=7))))
    assert re.search(r"multiple of 16.*cannot be proven", str(refusal(made)))


def test_an_expression_of_any_depth_gives_an_error() -> None:
    s, i = scales("s", (64, 4)), scalar("i")
    deep: Expr = i
    for _ in range(5000):
        deep = Sub(deep, index(0), INDEX.dtype)
    offset = program(function("k", [s], loop(i, 0, 64, 16, assign("t", load(s, (deep, 0))))))
    assert "cannot be proven" in refusal(offset).message
    elsewhere = program(function("k", [s], loop(i, 0, 64, 16, assign("x", deep))))
    assert refusal(elsewhere).message == "The expressions and loops of 'p' must not nest so deep"
