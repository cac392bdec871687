"""Which results may be written where an operand lies, and that tight memories make use of it."""

import dataclasses

import pytest

from scalebox.codegen.isa.table import BY_MNEMONIC
from scalebox.codegen.isa.vector_rules import IN_PLACE
from scalebox.ir.errors import IRValueError
from scalebox.ir.ops import ROWS
from scalebox.ir.passes import PassContext, allocate_memory_addr
from scalebox.ir.passes.in_place import overwritable
from scalebox.ir.target import load_target

from .kernels import after, assignments, kernel, tiles

X = "pl.load(bias, [0, 0], [1, 64], target_memory=pl.Mem.Vec)"
ROW_BYTES = 256


def operands(op: str) -> list[str]:
    """Return the operands of an op over tiles `x`, `y` and `m` that its result may overwrite."""
    body = f"x = {X}\ny = {X}\nm = pl.cmps(x, 0.0)\nu = {op}"
    (stmt,) = (each for each in assignments(kernel(body)) if each.var.name_hint == "u")
    return [var.name_hint for var in overwritable(stmt.value, stmt.var)]


@pytest.mark.parametrize(
    ("op", "names"),
    [
        ("pl.exp(x)", ["x"]),
        ("pl.add(x, y)", ["x", "y"]),
        ("pl.mul(x, 2.0)", ["x"]),
        ("pl.sel(m, x, y)", ["x", "y"]),
        ("pl.sels(m, x, 2.0)", []),
        ("pl.cmps(x, 1.0)", []),
        ("pl.cast(x, pl.INT32)", []),
        ("pl.col_expand_add(x, y)", ["x"]),
        ("pl.row_sum(x)", []),
        ("x", []),
    ],
)
def test_the_operands_that_a_result_may_overwrite(op: str, names: list[str]) -> None:
    assert operands(op) == names


def test_the_manual_promises_it_for_the_instructions_of_these_ops() -> None:
    families = ("v_unary", "v_binary", "v_scalar", "v_expand")
    assert {r.mnemonic for r in BY_MNEMONIC.values() if IN_PLACE in r.doc} == set(families)
    able = {name.removeprefix("tile.") for name, row in ROWS.items() if row.in_place}
    assert {"exp", "add", "adds", "row_expand_mul", "col_expand"} <= able
    # A choice changes the elements that the mask names, in the tile that holds the others.
    assert {"sel"} <= able
    assert not {"sels", "cmp", "cast", "transpose", "row_sum"} & able


def allocated(body: str, rows: int) -> dict[str, int]:
    """Return the addresses of tiles on a machine with room for so many rows of 64 FP32 numbers."""
    target = dataclasses.replace(load_target("a5"), ub_bytes=rows * ROW_BYTES)
    with PassContext([], target):
        made = after(kernel(body), allocate_memory_addr)
    return {
        name: tile.memref.byte_offset
        for name, tile in tiles(made).items()
        if tile.memref is not None
    }


CHAIN = f"x = {X}\ny = pl.exp(x)\nz = pl.neg(y)\nc = pl.store(z, [0, 0], c)"


def test_a_chain_spreads_while_there_is_room() -> None:
    assert sorted(allocated(CHAIN, 3).values()) == [0, ROW_BYTES, 2 * ROW_BYTES]


def test_a_chain_fits_into_the_room_of_one_tile() -> None:
    assert set(allocated(CHAIN, 1).values()) == {0}


def test_an_operand_that_is_needed_later_keeps_its_place() -> None:
    body = f"x = {X}\ny = pl.exp(x)\nz = pl.add(x, y)\nc = pl.store(z, [0, 0], c)"
    found = allocated(body, 2)
    assert found["x"] != found["y"]
    with pytest.raises(IRValueError, match="not 512 bytes: x"):
        allocated(body, 1)


def test_a_comparison_does_not_overwrite_what_it_compares() -> None:
    body = f"x = {X}\nm = pl.cmps(x, 0.0)\ny = pl.sels(m, {X}, 1.0)\nc = pl.store(y, [0, 0], c)"
    found = allocated(body, 3)
    assert found["m"] != found["x"]
    assert found["y"] != found["m"]
