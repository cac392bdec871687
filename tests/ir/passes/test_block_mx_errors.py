"""What BlockMxScaleTensorViews refuses: the whole sentence, and the place in the kernel."""

import pytest

from scalebox.ir.core import EvalStmt, ForStmt, Program, ReturnStmt
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import IRValueError, Span, UserError
from scalebox.ir.expr import Add, Call, GlobalVar, IterArg, Op, Sub, Type, Var, index
from scalebox.ir.passes import block_mx_scale_tensor_views
from scalebox.ir.types import (
    DistributedTensorType,
    MemorySpace,
    TensorLayout,
    TensorType,
    TensorView,
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
    scales,
    scales_type,
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


def param(type_: Type, line: int = 3) -> Program:
    return program(function("k", [Var("s", type_, at(line))], ReturnStmt()))


def one_load(*args: object, **kwargs: object) -> Program:
    """A load at line 7 from a [64, 4] tensor of left scales."""
    s = scales()
    return program(function("k", [s], assign("t", load(s, *args, line=7, **kwargs))))  # type: ignore[arg-type]


# --------------------------------------------------------------------------- shapes


SYMBOLIC = scalar("m")
SHAPES = [
    (A, (16,), "An MX_A_ZZ tensor must have a rank-2 logical shape, not rank 1"),
    (A, (1, 64, 4), "An MX_A_ZZ tensor must have a rank-2 logical shape, not rank 3"),
    (
        A,
        (SYMBOLIC, 4),
        "An MX_A_ZZ tensor must have a static block dimension, not a symbolic one: dynamic MX "
        "tensors are not supported yet",
    ),
    (
        B,
        (4, SYMBOLIC),
        "An MX_B_NN tensor must have a static block dimension, not a symbolic one: dynamic MX "
        "tensors are not supported yet",
    ),
    (
        A,
        (64, SYMBOLIC),
        "An MX_A_ZZ tensor must have a static group dimension, not a symbolic one: dynamic MX "
        "tensors are not supported yet",
    ),
    (
        A,
        (8, 2),
        "The block dimension of an MX_A_ZZ tensor must be a positive multiple of 16, not 8",
    ),
    (
        B,
        (2, 40),
        "The block dimension of an MX_B_NN tensor must be a positive multiple of 16, not 40",
    ),
    (
        A,
        (16, 1),
        "The group dimension of an MX_A_ZZ tensor must be a positive multiple of 2, not 1",
    ),
    (
        B,
        (3, 16),
        "The group dimension of an MX_B_NN tensor must be a positive multiple of 2, not 3",
    ),
    (
        A,
        (0, 2),
        "The block dimension of an MX_A_ZZ tensor must be a positive multiple of 16, not 0",
    ),
    # The block axis is told first, a symbolic one before an extent that does not fit.
    (
        A,
        (8, 1),
        "The block dimension of an MX_A_ZZ tensor must be a positive multiple of 16, not 8",
    ),
    (
        A,
        (8, SYMBOLIC),
        "An MX_A_ZZ tensor must have a static group dimension, not a symbolic one: dynamic MX "
        "tensors are not supported yet",
    ),
]


@pytest.mark.parametrize(("layout", "shape", "message"), SHAPES)
def test_a_tensor_that_does_not_fill_its_boxes(
    layout: TensorLayout, shape: tuple[int, ...], message: str
) -> None:
    check(param(scales_type(shape, layout)), message, 3)


def test_the_error_of_a_type_stands_at_its_variable_or_at_the_function() -> None:
    bad = scales_type((8, 2))
    fine = scales("s", line=2)
    made = program(
        function("k", [fine], assign("x", Call(Op("f"), [], bad, Span.unknown()), line=5))
    )
    assert refusal(made).span == at(5)
    returned = program(function("k", [fine], ReturnStmt(), returns=[bad]))
    assert refusal(returned).span is None


def test_an_error_stands_at_the_innermost_place_that_is_known() -> None:
    s, n = scales(), scalar("n")
    at_statement = program(function("k", [s, n], assign("t", load(s, (n, 0)), line=5)))
    assert refusal(at_statement).span == at(5)
    bad = IterArg("a", scales_type((8, 2)), s)
    i = scalar("i")
    fine = assign("x", index(1), line=4)
    carried = ForStmt(i, index(0), index(4), index(1), (bad,), ReturnStmt(), (), at(6))
    assert refusal(program(function("k", [s], fine, carried))).span == at(6)
    result = Var("r", scales_type((8, 2)))
    inner = assign("y", index(1), line=7)
    looped = ForStmt(i, index(0), index(4), index(1), (), inner, (result,), at(6))
    assert refusal(program(function("k", [s], looped))).span == at(6)
    nested = Call(GlobalVar("g"), [], INDEX, at(9))
    outer = Call(GlobalVar("f"), [nested], scales_type((8, 2)), at(8))
    assert refusal(program(function("k", [s], EvalStmt(outer)))).span == at(8)


def test_a_partial_tensor_is_told_after_its_shape() -> None:
    def partial(shape: tuple[int, int]) -> Program:
        return param(TensorType(shape, DType.E8M0, None, TensorView(None, A, [16, 2])))

    message = (
        "An MX_A_ZZ tensor must be valid as a whole: a partial tensor valid_shape is not supported "
        "yet; narrow the load's valid_shape instead"
    )
    check(partial((32, 4)), message, 3)
    assert refusal(partial((8, 4))).message.startswith("The block dimension")


def test_a_strided_tensor() -> None:
    strided = TensorType([32, 4], DType.E8M0, None, TensorView([8, 1], A))
    message = (
        "An MX_A_ZZ tensor must be packed, not have strides of its own: its boxes lie one behind "
        "the other"
    )
    check(param(strided), message, 3)


def test_a_distributed_tensor() -> None:
    distributed = DistributedTensorType([32, 4], DType.E8M0, None, TensorView(layout=B))
    message = (
        "A distributed tensor must have layout ND, not MX_B_NN: MX layouts are not supported on "
        "distributed tensors yet"
    )
    check(param(distributed), message, 3)


# --------------------------------------------------------------------------- loads


@pytest.mark.parametrize(
    ("offsets", "axis", "divisor", "found"),
    [
        ((8, 0), "block", 16, 8),
        ((-16, 0), "block", 16, -16),
        ((-1, 0), "block", 16, -1),
        ((0, 1), "group", 2, 1),
        ((0, -2), "group", 2, -2),
        ((8, 1), "block", 16, 8),
    ],
)
def test_a_constant_offset_off_the_boxes(
    offsets: tuple[int, int], axis: str, divisor: int, found: int
) -> None:
    message = (
        f"The MX slice offset on the {axis} axis must be a non-negative multiple of {divisor}, "
        f"not {found}"
    )
    check(one_load(offsets), message, 7)


MULTIPLES = (
    "constants, loop variables with constant start and step, scalar parameters that every call "
    "passes so, and sums, differences, products and quotients by a power of two of these"
)
SIGNS = (
    "constants, loop variables with constant start and step of 0 or more, tile.get_block_idx(), "
    "tile.get_block_num(), scalar parameters that every call passes so, and sums, products, and "
    "quotients and remainders by a positive constant of these"
)


def test_an_offset_that_is_not_provably_a_multiple() -> None:
    s, n = scales(), scalar("n")
    for axis, divisor, offsets in (("block", 16, (n, 0)), ("group", 2, (0, n))):
        made = program(function("k", [s, n], assign("t", load(s, offsets, line=7))))
        message = (
            f"The MX slice offset on the {axis} axis must be a multiple of {divisor}, which cannot be "
            f"proven here in 256 steps; provable are {MULTIPLES}"
        )
        check(made, message, 7)


def test_an_offset_that_is_not_provably_non_negative() -> None:
    s, i = scales(), scalar("i")
    offset = Sub(i, index(16), INDEX.dtype)
    made = program(
        function("k", [s], loop(i, 16, 64, 16, assign("t", load(s, (offset, 0), line=7))))
    )
    message = (
        "The MX slice offset on the block axis must be non-negative, which cannot be proven here in 256 "
        f"steps, and a negative one would read the wrong box; provable are {SIGNS}"
    )
    check(made, message, 7)


def test_an_offset_that_a_loop_carries() -> None:
    s = scales()
    arg = IterArg("x", INDEX, index(0))
    assert "cannot be proven" in str(
        refusal(program(function("k", [s], assign("t", load(s, (arg, 0))))))
    )


def test_the_place_of_an_offset_is_told_where_it_is_written() -> None:
    s, n = scales(), scalar("n")
    offset = Add(n, index(8), INDEX.dtype, Span("kernel.py", 8, 20))
    made = program(function("k", [s, n], assign("t", load(s, (offset, 0), line=7))))
    assert refusal(made).span == Span("kernel.py", 8, 20)


@pytest.mark.parametrize("unit", [1, 16])
def test_the_place_of_a_variable_is_the_load_not_its_definition(unit: int) -> None:
    s, i = scales(), Var("i", INDEX, Span("kernel.py", 3, 13))
    body = assign("t", load(s, (i, 0), line=7))
    made = program(function("k", [s], loop(i, -16, 64, unit, body)))
    assert refusal(made).span == at(7)


@pytest.mark.parametrize("offsets", [(0,), (0, 0, 0), (0, 0, 0, 0, 0)])
def test_offsets_of_another_rank(offsets: tuple[int, ...]) -> None:
    message = f"An MX_A_ZZ tensor must have a rank-2 logical offset, not rank {len(offsets)}"
    check(one_load(offsets), message, 7)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (
            (8, 2),
            "The block dimension of an MX_A_ZZ tensor must be a positive multiple of 16, not 8",
        ),
        (
            (16, 1),
            "The group dimension of an MX_A_ZZ tensor must be a positive multiple of 2, not 1",
        ),
    ],
)
def test_a_window_that_cuts_boxes(window: tuple[int, int], message: str) -> None:
    check(one_load((0, 0), window), message, 7)


@pytest.mark.parametrize(
    ("offsets", "window", "axis", "covers", "whole"),
    [
        ((64, 0), (16, 2), 0, "64..79", 64),
        ((48, 0), (32, 2), 0, "48..79", 64),
        ((0, 4), (16, 2), 1, "4..5", 4),
        ((0, 2), (16, 4), 1, "2..5", 4),
    ],
)
def test_a_window_that_leaves_the_tensor(
    offsets: tuple[int, int], window: tuple[int, int], axis: int, covers: str, whole: int
) -> None:
    message = (
        f"The window of tile.load must lie within the MX_A_ZZ tensor: on axis {axis} it covers "
        f"{covers} of {whole}"
    )
    # A valid shape that stays inside does not help: the boxes are read as a whole.
    check(one_load(offsets, window, (16, 2)), message, 7)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (None, "no target_memory"),
        (MemorySpace.Vec, '"Vec"'),
        (MemorySpace.LeftScale, '"LeftScale"'),
    ],
)
def test_a_load_elsewhere_than_to_mat(target: MemorySpace | None, found: str) -> None:
    message = (
        "A load of an MX scale tensor must have target_memory=MemorySpace.Mat, not "
        f"{found}: only cube scale loads are supported"
    )
    check(one_load((0, 0), target=target), message, 7)
