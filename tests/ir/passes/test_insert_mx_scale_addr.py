"""InsertMxScaleAddr: a bind for each scale of each consumer, and scales moved again where they must be."""

import pytest

from scalebox.ir.core import FunctionType, Program
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Call, Op, Var, replace
from scalebox.ir.passes import infer_tile_memory_space, insert_mx_scale_addr
from scalebox.ir.types import MemorySpace
from scalebox.ir.visitor import IRMutator

from .kernels import OPERANDS, after, assignments, calls_of, kernel, the

BIND = "tile.tget_scale_addr"
ACC = "x = pl.matmul_mx_acc(x, {}, {}, {}, {})\n"


def bound(body: str) -> Program:
    return after(kernel(body), insert_mx_scale_addr)


def moves_of(made: Program, *spaces: MemorySpace) -> list[str]:
    return [
        var.name_hint
        for var, call in calls_of(made, "tile.move")
        if call.kwargs["target_memory"] in spaces
    ]


def scale_moves(made: Program) -> list[str]:
    return moves_of(made, MemorySpace.LeftScale, MemorySpace.RightScale)


@pytest.mark.parametrize(
    ("more", "binds"),
    [
        ("", 2),
        (ACC.format("l", "p", "r", "q"), 4),
        # The operands of the first and the third matmul are the same: nothing is reused.
        (
            "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\n"
            "o = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)\n"
            + ACC.format("m", "o", "r", "q")
            + ACC.format("l", "p", "r", "q"),
            6,
        ),
    ],
)
def test_there_are_two_binds_a_consumer(more: str, binds: int) -> None:
    made = bound(OPERANDS + more)
    assert len(calls_of(made, BIND)) == binds


def test_binds_stand_just_before_their_consumer_the_left_one_first() -> None:
    made = bound(OPERANDS)
    found = [stmt.var.name_hint for stmt in assignments(made)][-3:]
    assert found == ["p_bound", "q_bound", "x"]
    (left, left_call), (right, right_call) = calls_of(made, BIND)
    assert [a.name_hint for a in left_call.args if isinstance(a, Var)] == ["p", "l"]
    assert [a.name_hint for a in right_call.args if isinstance(a, Var)] == ["q", "r"]
    ((_, matmul),) = calls_of(made, "tile.matmul_mx")
    assert matmul.args[1] is left
    assert matmul.args[3] is right


def test_the_operands_of_all_three_matmuls_are_found() -> None:
    body = f"""{OPERANDS}
d = pl.load(bias, [0, 0], [1, 32])
y = pl.matmul_mx_bias(l, p, r, q, d)
x = pl.matmul_mx_acc(x, l, p, r, q)
"""
    made = bound(body)
    for op, positions in (("_bias", (1, 3)), ("_acc", (2, 4)), ("", (1, 3))):
        ((_, call),) = calls_of(made, f"tile.matmul_mx{op}")
        for position in positions:
            arg = call.args[position]
            assert isinstance(arg, Var)
            assert arg.name_hint.endswith("_bound")


def test_a_second_run_adds_another_layer() -> None:
    once = bound(OPERANDS)
    twice = insert_mx_scale_addr()(once)
    assert len(calls_of(twice, BIND)) == 4
    ((_, matmul),) = calls_of(twice, "tile.matmul_mx")
    names = [a.name_hint for a in matmul.args if isinstance(a, Var)]
    assert names == ["l", "p_bound_bound", "r", "q_bound_bound"]
    assert scale_moves(twice) == ["p", "q"]


def test_a_second_run_over_scales_that_were_moved_again_works_too() -> None:
    once = bound(OPERANDS + "m = l\n" + ACC.format("m", "p", "r", "q"))
    assert scale_moves(once) == ["p", "q"]
    shared = bound(
        OPERANDS
        + "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\n"
        + ACC.format("m", "p", "r", "q")
    )
    twice = insert_mx_scale_addr()(shared)
    assert len(calls_of(twice, BIND)) == 8


@pytest.mark.parametrize(
    ("more", "moves"),
    [
        # One scale for two data tiles.
        (
            "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\n"
            + ACC.format("m", "p", "r", "q"),
            ["q", "p_again", "p_again"],
        ),
        # Two scales for one data tile.
        (
            "o = pl.move(pl.load(sb, [2, 0], [2, 32]), pl.Mem.RightScale)\n"
            + ACC.format("l", "p", "r", "o"),
            ["p", "q_again", "o_again"],
        ),
        # Data made in a loop, scales before it.
        (
            "o = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)\n"
            "for k in pl.range(0, 128, 64):\n"
            "    m = pl.move(pl.load(a, [0, k], [16, 64]), pl.Mem.Left)\n"
            "    " + ACC.format("m", "o", "r", "q"),
            ["p", "q", "o_again"],
        ),
        # Data before a loop, scales made in it: they are filled where they are moved.
        (
            "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\n"
            "for k in pl.range(0, 4, 2):\n"
            "    o = pl.move(pl.load(sa, [0, k], [16, 2]), pl.Mem.LeftScale)\n"
            "    " + ACC.format("m", "o", "r", "q"),
            ["p", "q", "o"],
        ),
        # A data tile that a loop hands on is made anew in it.
        (
            "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\n"
            "o = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)\n"
            "for k in pl.range(0, 128, 64):\n"
            "    "
            + ACC.format("m", "o", "r", "q")
            + "    m = pl.move(pl.load(a, [0, k], [16, 64]), pl.Mem.Left)\n",
            ["p", "q", "o_again"],
        ),
        # Other names of the tiles are the same tiles.
        ("m = l\no = p\n" + ACC.format("m", "o", "r", "q"), ["p", "q"]),
    ],
)
def test_scales_are_moved_again_where_one_place_does_not_serve(more: str, moves: list[str]) -> None:
    assert scale_moves(bound(OPERANDS + more)) == moves


def test_a_move_that_nobody_reads_any_more_is_dropped_with_its_other_names() -> None:
    body = (
        OPERANDS
        + "m = pl.move(pl.load(a, [0, 64], [16, 64]), pl.Mem.Left)\no = p\n"
        + ACC.format("m", "o", "r", "q")
    )
    made = bound(body)
    assert [stmt.var.name_hint for stmt in assignments(made) if stmt.var.name_hint in "po"] == []


def test_functions_off_the_core_are_left_alone() -> None:
    made = after(kernel(OPERANDS), infer_tile_memory_space)
    moved = replace(the(made), func_type=FunctionType.Opaque)
    opaque = Program([moved], "p")
    assert insert_mx_scale_addr()(opaque) is opaque


def refusal(made: Program) -> IRValueError:
    with pytest.raises(IRValueError) as caught:
        insert_mx_scale_addr()(made)
    return caught.value


@pytest.mark.parametrize(
    "change",
    [
        "for k in pl.range(0, 4, 2):\n"
        "    x = pl.matmul_mx_acc(x, l, p, r, q)\n"
        "    p = pl.move(pl.load(sa, [0, k], [16, 2]), pl.Mem.LeftScale)",
        "if n > 0:\n    p = pl.move(pl.load(sa, [0, 2], [16, 2]), pl.Mem.LeftScale)",
    ],
)
def test_a_scale_tile_that_is_carried_is_refused(change: str) -> None:
    body = f"{OPERANDS}{change}\nx = pl.matmul_mx_acc(x, l, p, r, q)"
    error = refusal(after(kernel(body), infer_tile_memory_space))
    assert error.message.startswith("The scale tile 'p' ")
    assert error.message.endswith(
        " must not be carried by a loop or a branch: its address follows from the data tile that it is "
        "used with"
    )
    assert error.hint == "carry the tile in Mat, and move it to its scale buffer where it is used"
    assert error.span is not None


def with_operands(made: Program, *args: object) -> Program:
    """The kernel with other operands of its one matmul."""

    class Change(IRMutator):
        def visit_call(self, op: Call) -> Call:
            return replace(op, args=args) if op.name == "tile.matmul_mx" else op

    return Change().visit_program(made)


def test_one_tile_as_both_scales_is_refused() -> None:
    made = after(kernel(OPERANDS), infer_tile_memory_space)
    ((_, matmul),) = calls_of(made, "tile.matmul_mx")
    left, p, r, _ = matmul.args
    error = refusal(with_operands(made, left, p, r, p))
    assert error.message == ("The two scales of tile.matmul_mx must be two tiles, not the same one")


def test_a_matmul_with_too_few_operands_is_refused() -> None:
    made = after(kernel(OPERANDS), infer_tile_memory_space)
    ((_, matmul),) = calls_of(made, "tile.matmul_mx")
    error = refusal(with_operands(made, *matmul.args[:3]))
    assert error.message == "tile.matmul_mx must have its four MX operands, not 3 operands"


def test_an_operand_that_is_no_variable_is_refused() -> None:
    made = after(kernel(OPERANDS), infer_tile_memory_space)
    ((_, matmul),) = calls_of(made, "tile.matmul_mx")
    left, _, r, q = matmul.args
    nested = Call(Op("tile.move"), [left], matmul.type)
    error = refusal(with_operands(made, left, nested, r, q))
    assert error.message == "An operand of tile.matmul_mx must be a variable, not an expression"


def test_a_scale_tile_that_was_never_moved_is_refused() -> None:
    made = after(kernel(OPERANDS), infer_tile_memory_space)
    ((_, matmul),) = calls_of(made, "tile.matmul_mx")
    left, p, r, q = matmul.args
    stranger = Var("s", p.type)
    error = refusal(with_operands(made, left, stranger, r, q))
    assert error.message == (
        "The scale tile 's' must be moved to its scale buffer in the function that uses it"
    )


def test_a_function_without_matmuls_is_left_alone() -> None:
    made = after(kernel("t = pl.load(a, [0, 0], [16, 64])"), infer_tile_memory_space)
    assert insert_mx_scale_addr()(made) is made
