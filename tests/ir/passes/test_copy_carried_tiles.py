"""CopyCarriedTiles: which tiles in Vec are copied, and that no more are than must be."""

import pytest

from scalebox.ir.core import AssignStmt, Program, flatten_to_stmts
from scalebox.ir.expr import Call, Var
from scalebox.ir.passes import copy_carried_tiles, materialize_semantic_aliases

from .kernels import OPERANDS, after, before, buffers, calls_of, kernel, the

LOAD = "pl.load(bias, [0, {at}], [1, 64], target_memory=pl.Mem.Vec)"
X, Y = LOAD.format(at=0), LOAD.format(at=64)
STORE = "c = pl.store({tile}, [0, 0], c)"


def done(*lines: str) -> Program:
    return after(kernel("\n".join(lines)), copy_carried_tiles)


def moves(made: Program) -> list[tuple[Var, Call]]:
    return calls_of(made, "tile.move")


def copies(*lines: str) -> tuple[int, int]:
    """Return how many copies stand in loops or branches and how many do not."""
    made = done(*lines)
    assert copy_carried_tiles()(made) is made, "the pass has nothing to add to its own work"
    outside = sum(
        isinstance(stmt, AssignStmt)
        and isinstance(stmt.value, Call)
        and stmt.value.name == "tile.move"
        for stmt in flatten_to_stmts(the(made).body)
    )
    return len(moves(made)) - outside, outside


def test_a_running_sum_is_computed_where_it_stands() -> None:
    lines = (
        f"s = {X}",
        "for i in pl.range(4):",
        f"    s = pl.add(s, {Y})",
        STORE.format(tile="s"),
    )
    assert copies(*lines) == (0, 0)
    made = after(kernel("\n".join(lines)), materialize_semantic_aliases)
    assert len({name for var, name in buffers(made).items() if var.startswith("s")}) == 1


def test_a_first_value_that_is_needed_later_is_copied_before_the_loop() -> None:
    lines = (
        f"x = {X}",
        "s = x",
        "for i in pl.range(4):",
        "    s = pl.add(s, s)",
        STORE.format(tile="pl.add(s, x)"),
    )
    assert copies(*lines) == (0, 1)


def test_a_value_whose_predecessor_is_needed_still_is_copied_at_the_end_of_the_trip() -> None:
    lines = (
        f"m = {X}",
        f"s = {Y}",
        "for i in pl.range(4):",
        "    k = pl.maximum(m, s)",
        "    s = pl.add(s, pl.sub(m, k))",
        "    m = k",
        STORE.format(tile="pl.add(m, s)"),
    )
    assert copies(*lines) == (1, 0)


def test_an_op_that_cannot_write_in_place_gets_a_copy() -> None:
    # The mask of one byte an element does not lie as the elements that it is made of.
    lines = (
        f"m = {X}",
        "for i in pl.range(4):",
        "    m = pl.sels(pl.cmps(m, 0.0), m, 1.0)",
        STORE.format(tile="m"),
    )
    assert copies(*lines) == (1, 0)


def test_values_that_change_places_need_room_on_the_way() -> None:
    lines = (
        f"p = {X}",
        f"q = {Y}",
        "for i in pl.range(3):",
        "    t = p",
        "    p = q",
        "    q = t",
        STORE.format(tile="pl.sub(p, q)"),
    )
    inside, outside = copies(*lines)
    assert inside >= 3
    assert outside <= 2


def test_what_an_arm_hands_on_and_what_is_needed_besides_are_two() -> None:
    lines = (
        f"p = {X}",
        f"q = {Y}",
        "if n > 1:",
        "    r = pl.add(p, q)",
        "else:",
        "    r = p",
        STORE.format(tile="pl.sub(p, r)"),
    )
    assert copies(*lines) == (1, 0)


@pytest.mark.parametrize("header", ["for i in pl.range(4):", "for i in pl.pipeline(4, stage=2):"])
def test_copies_are_moves_within_vec(header: str) -> None:
    lines = (
        f"m = {X}",
        f"s = {Y}",
        header,
        "    k = pl.maximum(m, s)",
        "    s = pl.add(s, pl.sub(m, k))",
        "    m = k",
        STORE.format(tile="pl.add(m, s)"),
    )
    for var, call in moves(done(*lines)):
        assert var.type == call.args[0].type


def test_a_kernel_of_the_cube_is_left_alone() -> None:
    made = before(kernel(f"{OPERANDS}c = pl.store(x, [0, 0], c)"), copy_carried_tiles)
    assert copy_carried_tiles()(made) is made
