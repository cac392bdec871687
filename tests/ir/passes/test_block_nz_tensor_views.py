"""BlockNzTensorViews: what becomes of types and loads, and every refusal with its sentence and place."""

from collections.abc import Sequence
from typing import Any

import pytest

from scalebox.ir.core import AssignStmt, Function, FunctionType, Program, ReturnStmt
from scalebox.ir.dtypes import BFloat16, DType, SimpleDType
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Add, Call, Expr, FloorMod, Max, Mul, Op, Sub, Submit, Type, Var, index
from scalebox.ir.ops import create_op_call
from scalebox.ir.passes import PassContext, block_nz_tensor_views
from scalebox.ir.passes.nz_offset_proof import NzFacts, prove_boxes, prove_within
from scalebox.ir.passes.nz_offset_requirements import nz_offset_requirements
from scalebox.ir.types import (
    DistributedTensorType,
    MemorySpace,
    TensorType,
    TensorView,
    TileType,
    TupleType,
    constant_dims,
)
from scalebox.ir.verification.walk import all_calls

from .nz_parts import NZ, nz, nz_load, nz_type
from .parts import (
    INDEX,
    assign,
    at,
    call,
    function,
    ints,
    loop,
    only,
    program,
    quotient,
    scalar,
    submit,
)

STAMP = "nz_tensor_views_blocked"


def blocked(made: Program) -> Program:
    with PassContext([]):
        return block_nz_tensor_views()(made)


def shape_of(type_: Type) -> tuple[int, ...] | None:
    assert isinstance(type_, TensorType)
    assert type_.layout is NZ
    return constant_dims(type_.shape)


def loaded(
    shape: Sequence[int], offsets: Sequence[Expr | int], window: Sequence[int], dtype: SimpleDType
) -> Call:
    """The blocked load of a kernel of one load."""
    x = nz(shape, dtype)
    made = program(function("k", [x], assign("t", nz_load(x, offsets, window))))
    (found,) = calls(only(blocked(made)))
    assert isinstance(found, Call)
    return found


def calls(made: Function) -> list[Call | Submit]:
    return list(all_calls(made))


# --------------------------------------------------------------------------- what becomes of it


@pytest.mark.parametrize(
    ("shape", "dtype", "physical"),
    [
        ((32, 2048, 4096), DType.Int8, (32, 128, 128, 16, 32)),
        ((256, 512), DType.Int8, (1, 16, 16, 16, 32)),
        ((16, 16), BFloat16, (1, 1, 1, 16, 16)),
        ((32, 24), DType.Float32, (1, 3, 2, 16, 8)),
        ((2, 3, 16, 32), DType.E4M3, (6, 1, 1, 16, 32)),
    ],
)
def test_a_logical_shape_becomes_columns_of_boxes(
    shape: tuple[int, ...], dtype: SimpleDType, physical: tuple[int, ...]
) -> None:
    (param,) = only(blocked(program(function("k", [nz(shape, dtype)], ReturnStmt())))).params
    assert shape_of(param.type) == physical
    assert isinstance(param.type, TensorType)
    assert (param.type.stride, param.type.dtype, param.type.valid_shape) == ((), dtype, ())


def test_the_published_example_of_a_weight() -> None:
    found = loaded((32, 2048, 4096), [1, 256, 512], (1, 256, 512), DType.Int8)
    assert ints(found.args[1]) == [1, 16, 16, 0, 0]
    assert ints(found.args[2]) == [1, 16, 16, 16, 32]
    assert found.args[3] is found.args[2]
    assert found.type == TileType((256, 512), DType.Int8, memory_space=MemorySpace.Mat)


def test_leading_offsets_are_folded() -> None:
    assert ints(loaded((4, 8, 32, 64), [2, 3, 16, 32], (1, 1, 16, 32), DType.E4M3).args[1]) == [
        19, 1, 1, 0, 0,
    ]  # fmt: skip
    several = loaded((4, 8, 32, 64), [2, 0, 0, 0], (2, 8, 16, 64), DType.E4M3)
    assert ints(several.args[2]) == [16, 2, 1, 16, 32]


def test_an_offset_that_stays_symbolic_is_divided_as_it_stands() -> None:
    x, i, k = nz(), scalar("i"), scalar("k")
    offset = Add(Mul(k, index(2), INDEX.dtype), index(32), INDEX.dtype)
    body = loop(i, 0, 64, 16, loop(k, 0, 32, 32, assign("t", nz_load(x, [i, offset]))))
    (found,) = calls(only(blocked(program(function("k", [x], body)))))
    places = found.args[1]
    assert quotient(places, 2) == (i, 16)
    assert quotient(places, 1) == (offset, 32)
    assert ints(places)[0] == 0


def test_types_change_everywhere_and_other_layouts_nowhere() -> None:
    x = nz()
    plain = TensorType((64, 128), DType.Int8)
    y = Var("y", plain)
    both = TupleType([nz_type(), plain])
    made = only(blocked(program(function("k", [x, y], ReturnStmt(), returns=[both, plain]))))
    new, kept = made.params
    assert new is not x
    assert kept is y
    returned = made.return_types[0]
    assert isinstance(returned, TupleType)
    assert shape_of(returned.types[0]) == (1, 4, 4, 16, 32)
    assert returned.types[1] is plain
    assert made.return_types[1] is plain


def test_every_function_is_stamped_and_a_second_run_is_the_same_program() -> None:
    x, y = nz(), nz()
    kernel = function("k", [x], assign("t", nz_load(x, [0, 0])))
    other = function("other", [scalar("n")], ReturnStmt())
    main = function("main", [y], assign("r", call("k", y)), kind=FunctionType.Orchestration)
    made = program(kernel, other, main)
    done = blocked(made)
    assert [f.attrs[STAMP] for f in done.functions.values()] == [True] * 3
    assert blocked(done) is done
    assert all(STAMP not in f.attrs for f in made.functions.values())
    assert shape_of(kernel.params[0].type) == (64, 128)


def test_calls_and_submits_follow_their_parameters() -> None:
    x, y = nz(), nz()
    kernel = function("k", [x], ReturnStmt())
    launches = [assign("r", call("k", y, type_=nz_type())), assign("q", submit("k", y))]
    done = blocked(program(kernel, function("main", [y], *launches)))
    main = done.get_function("main")
    assert main is not None
    (param,) = main.params
    plain, submitted = calls(main)
    assert plain.args == (param,)
    assert shape_of(plain.type) == (1, 4, 4, 16, 32)
    assert submitted.args == (param,)


# --------------------------------------------------------------------------- what is refused


def check(made: Program, message: str, line: int) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        blocked(made)
    error = caught.value
    assert isinstance(error, IRValueError)
    assert error.message == message
    assert error.span is not None
    assert error.span.line == line


def viewed(shape: Sequence[Any] = (64, 128), **view: Any) -> TensorType:
    return TensorType(shape, DType.Int8, None, TensorView(layout=NZ, **view))


N = scalar("n")
WHAT = "A tensor in NZ must"


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (viewed((64,)), f"{WHAT} have rank 2 to 4, not 1"),
        (viewed((2, 2, 2, 16, 32)), f"{WHAT} have rank 2 to 4, not 5"),
        (viewed((24, 128)), f"{WHAT} have a positive multiple of 16 rows, not 24"),
        (viewed((64, 48)), f"{WHAT} have a positive multiple of 32 columns, not 48"),
        (nz_type((64, 24), BFloat16), f"{WHAT} have a positive multiple of 16 columns, not 24"),
        (
            viewed((N, 128)),
            f"{WHAT} have static rows, not symbolic ones: dynamic NZ tensors are not supported yet",
        ),
        (
            viewed((64, N)),
            f"{WHAT} have static columns, not symbolic ones: dynamic NZ tensors are not supported yet",
        ),
        (viewed((N, 64, 128)), f"{WHAT} have constant, positive leading extents, not [n, 64, 128]"),
        (
            nz_type((64, 128), DType.E2M1),
            f"{WHAT} have elements of whole bytes, not of the 4 bits of E2M1",
        ),
        (
            viewed(valid_shape=[32, 128]),
            f"{WHAT} be valid as a whole: a partial tensor valid_shape is not supported yet",
        ),
        (viewed(stride=[128, 1]), f"{WHAT} be packed, not have strides of its own"),
        (
            DistributedTensorType((64, 128), DType.Int8, None, TensorView(layout=NZ)),
            "A distributed tensor must have layout ND, not NZ: NZ is not supported on distributed "
            "tensors yet",
        ),
    ],
)
def test_a_tensor_without_boxes_is_refused(type_: TensorType, message: str) -> None:
    check(program(function("k", [Var("x", type_, at(3))], ReturnStmt())), message, 3)


def one_load(*args: Any, shape: Sequence[int] = (64, 128), **kwargs: Any) -> Program:
    x = nz(shape)
    return program(function("k", [x], assign("t", nz_load(x, *args, line=7, **kwargs))))


ON_ROWS = "The offset of a load from NZ on the row axis must be"
PROVABLE = (
    "provable are constants, loop variables with constant start and step, block numbers, scalar "
    "parameters that every call passes so, and sums, products and quotients of these"
)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (one_load([8, 0]), f"{ON_ROWS} a non-negative multiple of 16, not 8"),
        (one_load([-16, 0]), f"{ON_ROWS} a non-negative multiple of 16, not -16"),
        (
            one_load([0, 16]),
            "The offset of a load from NZ on the column axis must be a non-negative multiple of 32, "
            "not 16",
        ),
        (
            one_load([-1, 0, 0], (1, 16, 32), shape=(2, 64, 128)),
            "The offset of a load from NZ on axis 0 must be a non-negative multiple of 1, not -1",
        ),
        (one_load([N, 0]), f"{ON_ROWS} a multiple of 16, which cannot be proven here; {PROVABLE}"),
        (
            one_load([Sub(index(32), index(16), INDEX.dtype), 0]),
            f"{ON_ROWS} non-negative, which cannot be proven here; {PROVABLE}, where none is negative "
            "and nothing is subtracted",
        ),
        (
            one_load([0, 0], target=MemorySpace.Vec),
            'A load of a tensor in NZ must have target_memory=MemorySpace.Mat, not "Vec": its boxes '
            "are those of L1",
        ),
        (
            one_load([0, 0], target=None),
            "A load of a tensor in NZ must have target_memory=MemorySpace.Mat, not no target_memory: "
            "its boxes are those of L1",
        ),
        (
            one_load([0, 0], valid=(10, 32)),
            "A load of a tensor in NZ must be valid as a whole, since it takes whole boxes: its "
            "valid_shape must be [16, 32], without clamp",
        ),
        (
            one_load([0, 0], clamp=True),
            "A load of a tensor in NZ must be valid as a whole, since it takes whole boxes: its "
            "valid_shape must be [16, 32], without clamp",
        ),
        (
            one_load([0, 0], (20, 32)),
            "The window of a load from NZ must have a positive multiple of 16 rows, not 20",
        ),
        (
            one_load([0, 0], (N, 32)),
            "The window of a load from NZ must have static rows, not symbolic ones: dynamic NZ tensors "
            "are not supported yet",
        ),
        (
            one_load([48, 0], (32, 32)),
            "The window of a load must lie within the tensor in NZ: on axis 0 it covers 48..79 of 64",
        ),
        (
            one_load([0, 1, 0, 0], (2, 2, 16, 32), shape=(4, 3, 64, 128)),
            "The matrices that a load takes of a tensor in NZ must follow one another, as those of "
            "[2, 2, 16, 32] of [4, 3, 64, 128] do not",
        ),
        (
            one_load([0, 0], (16, 64), shape=(65568, 64)),
            "A load of several columns of boxes must skip at most 65535 rows of the tensor in NZ from "
            "one to the next, not 65552: load one column of 32 elements at a time",
        ),
        (
            one_load([0, 0, 0], (16, 32)),
            "The offsets of a load from NZ must have 2 elements, one an axis of the tensor, not 3",
        ),
    ],
)
def test_a_load_without_boxes_is_refused(made: Program, message: str) -> None:
    check(made, message, 7)


def test_the_widest_gap_is_accepted_and_one_column_may_skip_any() -> None:
    loaded((65552, 64), [0, 0], (32, 64), DType.Int8)
    loaded((131072, 64), [0, 0], (16, 32), DType.Int8)


def test_other_ops_must_leave_nz_alone() -> None:
    x, y = nz(), Var("y", TensorType((64, 128), DType.Int8))
    tile = Var("t", TileType((16, 32), DType.Int8, memory_space=MemorySpace.Vec))
    store = create_op_call("tile.store", [tile, [0, 0], x], {}, at(9))
    check(
        program(function("k", [x, tile], assign("r", store))),
        "A tensor in NZ must be used only by tile.load, not by tile.store (argument 2)",
        9,
    )
    view = Call(Op("tensor.view"), [x], {}, y.type, at(8))
    check(
        program(function("k", [x], assign("v", view))),
        "A tensor in NZ must be used only by tile.load, not by tensor.view (argument 0)",
        8,
    )
    create = create_op_call(
        "tensor.create", [[64, 128]], {"dtype": DType.Int8, "layout": NZ}, at(5)
    )
    check(
        program(function("k", [], assign("c", create))),
        "tensor.create must not make a tensor in NZ: it comes in by a parameter",
        5,
    )


def test_raw_coordinates_that_are_no_tuple_are_told() -> None:
    x, n = nz(), scalar("n")
    raw = Call(Op("tile.load"), [x, n], {"target_memory": MemorySpace.Mat}, INDEX, at(4))
    check(
        program(function("k", [x, n], assign("t", raw))),
        "Argument 1 of tile.load must be a tuple of coordinates, not Var",
        4,
    )


# --------------------------------------------------------------------------- proofs


def facts_of(made: Program) -> NzFacts:
    return NzFacts(made)


def operation(kind: Any, left: Expr, right: Expr | int) -> Expr:
    return kind(left, index(right) if isinstance(right, int) else right, INDEX.dtype)


def test_a_budget_of_256_expressions() -> None:
    i = scalar("i")
    made = program(function("k", [], loop(i, 0, 64, 16, ReturnStmt())))
    total: Expr = i
    for _ in range(127):
        total = operation(Add, total, i)
    facts = facts_of(made)
    assert prove_boxes(facts, total, 16) == {}
    assert prove_within(facts, total) == ()
    assert prove_boxes(facts, operation(Add, total, i), 16) is None
    assert prove_within(facts, operation(Add, total, i)) is None


def test_what_proves_nothing() -> None:
    i, twice, n = scalar("i"), scalar("twice"), scalar("n")
    made = program(
        function(
            "k",
            [n],
            loop(i, 0, 64, 16, ReturnStmt()),
            assign_to(twice, index(16)),
            assign_to(twice, index(32)),
        )
    )
    facts = facts_of(made)
    assert prove_boxes(facts, n, 16) is None, "a parameter that no call passes"
    assert prove_boxes(facts, twice, 16) is None, "assigned twice"
    assert prove_boxes(facts, operation(Max, i, 16), 16) is None
    assert prove_boxes(facts, operation(FloorMod, i, 32), 16) is None
    assert prove_within(facts, operation(Max, i, 0)) is None
    assert prove_within(facts, operation(Sub, i, 0)) is None
    assert prove_within(facts, operation(FloorMod, i, 32)) == ()
    assert prove_within(facts, operation(FloorMod, operation(Sub, i, 1), 32)) is None


def assign_to(var: Var, value: Expr) -> Any:
    return AssignStmt(var, value)


def test_every_call_must_prove_a_parameter_and_a_launch_is_held_to_it() -> None:
    x, row, y = nz(), scalar("row"), nz()
    kernel = function("k", [x, row], assign("t", nz_load(x, [row, 0])))

    def made(*rows: int) -> Program:
        launches = [assign(f"r{n}", call("k", y, each)) for n, each in enumerate(rows)]
        return program(kernel, function("main", [y], *launches))

    blocked(made(0, 16, 48))
    (need,) = nz_offset_requirements(made(0, 16))["k"]
    assert (need.param, need.multiple, need.non_negative) == ("row", 16, True)
    with pytest.raises(IRValueError, match="a multiple of 16, which cannot be proven"):
        blocked(made(0, 8))
    with pytest.raises(IRValueError, match="non-negative, which cannot be proven"):
        blocked(made(0, -16))


def test_a_call_that_calls_itself_with_its_own_parameter_ends() -> None:
    x, row = nz(), scalar("row")
    again = assign("r", call("k", x, row))
    made = program(function("k", [x, row], assign("t", nz_load(x, [row, 0])), again))
    with pytest.raises(IRValueError, match="cannot be proven"):
        blocked(made)
