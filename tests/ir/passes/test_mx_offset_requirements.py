"""What a function's scalars must keep to when it is launched by itself."""

from scalebox.ir.core import AssignStmt, Program
from scalebox.ir.expr import Add, Call, FloorDiv, Mul, Op, Var, index
from scalebox.ir.passes import block_mx_scale_tensor_views
from scalebox.ir.passes.mx_offset_requirements import offset_requirements
from scalebox.ir.passes.offset_requirements import Requirement

from .parts import (
    INDEX,
    B,
    assign,
    call,
    function,
    load,
    program,
    scalar,
    scale_tile,
    scales,
    submit,
    tuple_of,
)


def with_main(kernel_body: AssignStmt, params: list[Var], *args: int) -> Program:
    t = scales("t")
    launch = assign("r", call("k", t, *args))
    return program(function("k", params, kernel_body), function("main", [t], launch))


def test_an_offset_passed_as_it_is() -> None:
    s, row, col = scales(), scalar("row"), scalar("col")
    made = with_main(assign("t", load(s, [row, col])), [s, row, col], 16, 2)
    assert offset_requirements(made) == {
        "k": (Requirement("row", 16, True), Requirement("col", 2, True))
    }


def test_the_axes_of_a_right_scale_tensor() -> None:
    s, row, col = scales("s", (4, 64), B), scalar("row"), scalar("col")
    made = with_main(assign("t", load(s, [row, col], (2, 16), layout=B)), [s, row, col], 2, 16)
    assert offset_requirements(made) == {
        "k": (Requirement("row", 2, True), Requirement("col", 16, True))
    }


def test_a_divided_offset_asks_for_more_and_a_multiplied_one_for_its_sign_only() -> None:
    s, row, n = scales(), scalar("row"), scalar("n")
    block = Mul(n, index(16), INDEX.dtype)
    group = FloorDiv(row, index(32), INDEX.dtype)
    made = with_main(assign("t", load(s, [block, group])), [s, row, n], 64, 3)
    assert offset_requirements(made) == {
        "k": (Requirement("row", 64, True), Requirement("n", 1, True))
    }


def test_the_strictest_of_several_loads_counts() -> None:
    s, row = scales(), scalar("row")
    first = assign("a", load(s, [0, row]))
    second = assign("b", load(s, [Add(row, index(16), INDEX.dtype), 0]))
    t = scales("t")
    made = program(
        function("k", [s, row], first, second),
        function("main", [t], assign("r", call("k", t, 32))),
    )
    assert offset_requirements(made) == {"k": (Requirement("row", 16, True),)}


def test_a_function_that_only_hands_a_scalar_on_keeps_the_promise_too() -> None:
    s, row, u, outer, t = scales(), scalar("row"), scales("u"), scalar("outer"), scales("t")
    made = program(
        function("k", [s, row], assign("t", load(s, [row, 0]))),
        function("middle", [u, outer], assign("r", call("k", u, outer))),
        function("main", [t], assign("r", submit("middle", t, 48))),
    )
    assert offset_requirements(made) == {
        "k": (Requirement("row", 16, True),),
        "middle": (Requirement("outer", 16, True),),
    }


def test_a_factor_that_does_not_matter_is_not_asked_for() -> None:
    s, row, n, t = scales(), scalar("row"), scalar("n"), scales("t")
    # The left factor is tried first and fails at n: its other half must leave no trace.
    left = Mul(Add(row, n, INDEX.dtype), index(16), INDEX.dtype)
    made = program(
        function("k", [s, row, n], assign("t", load(s, [left, 0]))),
        function("main", [t], assign("r", call("k", t, 16, 1))),
    )
    assert offset_requirements(made) == {
        "k": (Requirement("row", 1, True), Requirement("n", 1, True))
    }


def test_a_store_counts_like_a_load() -> None:
    s, row, t = scales(), scalar("row"), scales("t")
    tile = Var("x", scale_tile((16, 2)))
    stored = Call(Op("tile.store"), [tile, tuple_of(row, 0), s], s.type)
    made = program(
        function("k", [s, row, tile], AssignStmt(Var("r", s.type), stored)),
        function("main", [t, tile], assign("r", call("k", t, 16, tile))),
    )
    assert offset_requirements(made) == {"k": (Requirement("row", 16, True),)}


def test_constants_and_loops_ask_for_nothing() -> None:
    s = scales()
    assert offset_requirements(program(function("k", [s], assign("t", load(s, [16, 2]))))) == {}


def test_a_blocked_program_asks_for_what_it_asked_for_before() -> None:
    s, row, col = scales("s", (4, 64), B), scalar("row"), scalar("col")
    made = with_main(assign("t", load(s, [row, col], (2, 16), layout=B)), [s, row, col], 2, 16)
    blocked = block_mx_scale_tensor_views()(made)
    assert offset_requirements(blocked) == {
        "k": (Requirement("row", 2, True), Requirement("col", 16, True))
    }
