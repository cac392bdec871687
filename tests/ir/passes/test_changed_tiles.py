"""Elements of tiles, and tiles that are changed in part: what they mean is the same after every pass."""

from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox import pl
from scalebox.ir.core import Program
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.passes import (
    copy_changed_tiles,
    default_pipeline,
    legalize_element_access,
    legalize_quant_mx,
)
from scalebox.ir.passes.base import Pass
from scalebox.ir.verification.walk import all_calls

from .kernels import after

HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[32, 64], pl.FP32], y: pl.Out[pl.Tensor[[96, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [32, 64]{valid}, target_memory=pl.Mem.Vec)
"""


def program(*lines: str, valid: str = "") -> Program:
    body = "".join(f"        {line}\n" for line in lines)
    made = pl.parse(f"{HEAD.format(valid=valid)}{body}        return y\n")
    assert isinstance(made, Program)
    return made


def steps(made: Program, last: type[Pass]) -> list[str]:
    (function,) = after(made, last).functions.values()
    return [call.op.name for call in all_calls(function)]


KERNELS = {
    "an element in every op with a scalar": program(
        "s = pl.read(t, [3, 5])",
        "u = pl.add(pl.mul(t, s), pl.read(t, [0, 0]))",
        "v = pl.minimum(pl.maximum(u, s), pl.read(t, [1, 1]))",
        "w = pl.sel(pl.cmp(t, s, cmp_type=4), v, s)",
        "y = pl.store(pl.div(pl.sub(w, s), s), [0, 0], y)",
        "y = pl.store(pl.full([8, 64], dtype=pl.FP32, value=s), [32, 0], y)",
        valid=", [20, 50]",
    ),
    "elements that are written": program(
        "u = pl.write(t, [3, 5], 1.5)",
        "v = pl.write(u, [0, 0], pl.read(t, [3, 5]))",
        "y = pl.store(u, [0, 0], y)",
        "y = pl.store(v, [32, 0], y)",
        "y = pl.store(t, [64, 0], y)",
    ),
    "a tile that is changed under another name": program(
        "u = pl.set_validshape(t, 16, 64)",
        "s = pl.load(x, [8, 0], [8, 64], target_memory=pl.Mem.Vec)",
        "v = pl.assemble(u, s, [8, 0])",
        "y = pl.store(t, [0, 0], y)",
        "y = pl.store(v, [32, 0], y)",
    ),
}


def test_an_element_goes_into_as_much_of_a_tile_as_a_launch_says_is_valid() -> None:
    made = pl.parse("""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, x: pl.Tensor[[32, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
    ):
        t = pl.load(x, [0, 0], [32, 64], [20, n], target_memory=pl.Mem.Vec)
        y = pl.store(pl.mul(t, pl.read(t, [3, 5])), [0, 0], y)
        return y
""")
    assert isinstance(made, Program)
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    wanted = np.zeros_like(x)
    wanted[:20, :50] = x[:20, :50] * x[3, 5]
    found = scalebox.interpret(after(made, legalize_element_access), {"x": x, "n": 50})["y"]
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("name", KERNELS)
def test_the_interpreter_says_the_same_after_every_pass(name: str) -> None:
    made = KERNELS[name]
    x = np.random.default_rng(2).standard_normal((32, 64)).astype(np.float32)
    wanted: Any = scalebox.interpret(made, {"x": x})["y"]
    for each in default_pipeline():
        made = each(made)
        found = scalebox.interpret(made, {"x": x})["y"]
        assert found.tobytes() == wanted.tobytes(), each.name


def test_an_element_that_was_read_is_a_row_for_all_rows() -> None:
    made = program("y = pl.store(pl.mul(t, pl.read(t, [3, 5])), [0, 0], y)")
    assert steps(made, legalize_element_access) == [
        "tile.load", "tile.slice", "tile.create", "tile.row_expand", "tile.col_expand_mul",
        "tile.store",
    ]  # fmt: skip


def test_where_no_op_takes_a_row_the_element_is_repeated() -> None:
    made = program("y = pl.store(pl.rem(t, pl.read(t, [3, 5])), [0, 0], y)")
    names = steps(made, legalize_element_access)
    assert names[-3:] == ["tile.col_expand", "tile.rem", "tile.store"]


def test_what_nobody_needs_again_is_changed_where_it_stands() -> None:
    made = program(
        "s = pl.load(x, [0, 0], [8, 64], target_memory=pl.Mem.Vec)",
        "u = pl.assemble(t, s, [8, 0])",
        "y = pl.store(u, [0, 0], y)",
    )
    assert "tile.move" not in steps(made, copy_changed_tiles)


def test_what_a_later_trip_needs_is_copied_in_each() -> None:
    made = program(
        "for i in pl.range(3):",
        "    s = pl.load(x, [i * 8, 0], [8, 64], target_memory=pl.Mem.Vec)",
        "    u = pl.assemble(t, s, [8, 0])",
        "    y = pl.store(u, [i * 32, 0], y)",
    )
    assert steps(made, copy_changed_tiles).count("tile.move") == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("if pl.read(t, [0, 0]) > 1.0:", "    y = pl.store(t, [0, 0], y)"),
        ("s = pl.read(t, [0, 0]) + 1.0", "y = pl.store(pl.mul(t, s), [0, 0], y)"),
    ],
)
def test_what_is_read_steers_nothing(lines: tuple[str, ...]) -> None:
    with pytest.raises(IRValueError, match="must go into an op on tiles or into"):
        after(program(*lines), legalize_element_access)


def test_a_mask_is_written_with_what_was_read_of_one_only() -> None:
    made = program(
        "m = pl.write(pl.cmp(t, t), [0, 0], False)", "y = pl.store(pl.sel(m, t, t), [0, 0], y)"
    )
    with pytest.raises(
        IRTypeError, match="to be compiled with a value of the scalar unit, not Bool"
    ):
        after(made, legalize_element_access)


@pytest.mark.parametrize("made", [legalize_quant_mx, legalize_element_access, copy_changed_tiles])
def test_a_program_without_such_ops_stays_the_same_object(made: type[Pass]) -> None:
    plain = program("y = pl.store(t, [0, 0], y)")
    for each in default_pipeline():
        before, plain = plain, each(plain)
        if isinstance(each, made):
            assert plain is before
            return
