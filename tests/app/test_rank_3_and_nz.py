"""Tensors of higher rank and in NZ, from kernel text to the machine's outputs."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir import numerics
from scalebox.ir.core import Function, Program
from scalebox.ir.errors import IRValueError, SimulationFault, UserError
from scalebox.ir.printer import python_print

B, M, K, N = 3, 64, 128, 64

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        a: pl.Tensor[[{a}], pl.FP8E4M3FN{a_layout}],
        sa: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[{b}], pl.FP8E4M3FN{b_layout}],
        sb: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[{c}], pl.FP32]],
        row: pl.Scalar[pl.INDEX],
    ):
        x = pl.load(a, [{x}], [{xw}], target_memory=pl.Mem.Mat)
        p = pl.load(sa, [0, 0], [64, 4])
        y = pl.load(b, [{y}], [{yw}], target_memory=pl.Mem.Mat)
        q = pl.load(sb, [0, 0], [4, 64])
        c = pl.store(pl.matmul_mx(x, p, y, q), [{z}], c{shapes})
        return c
"""
PLAIN = {
    "a": "64, 128", "a_layout": "", "b": "128, 64", "b_layout": "", "c": "64, 64",
    "x": "0, 0", "xw": "64, 128", "y": "0, 0", "yw": "128, 64", "z": "0, 0", "shapes": "",
}  # fmt: skip
Arrays = dict[str, npt.NDArray[Any]]


def kernel(**parts: str) -> Program:
    parsed = pl.parse(KERNEL.format(**{**PLAIN, **parts}))
    assert isinstance(parsed, Program)
    return parsed


def drawn() -> Arrays:
    rng = np.random.default_rng(11)

    def elements(*shape: int) -> npt.NDArray[Any]:
        return rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn)

    codes = rng.permutation(256).astype(np.uint8).reshape(64, 4) % 16 + 120
    return {
        "a": elements(M, K),
        "b": elements(K, N),
        "sa": numerics.pack_scales_a(codes),
        "sb": numerics.pack_scales_b(codes.T.copy()),
    }


def product(given: Arrays) -> npt.NDArray[Any]:
    return scalebox.interpret(kernel(), {**given, "row": 0})["c"]


def both(made: Program, given: dict[str, Any]) -> npt.NDArray[Any]:
    """What the machine computes, which the interpreter must compute too."""
    golden = scalebox.interpret(made, given)["c"]
    found = scalebox.run(made, given, timing=False).outputs["c"]
    assert found.tobytes() == golden.tobytes()
    return found


def test_operands_in_nz_give_the_product_of_the_same_operands_in_nd() -> None:
    given = drawn()
    boxed = {**given, "a": numerics.pack_nz(given["a"]), "b": numerics.pack_nz(given["b"])}
    made = kernel(a_layout=", pl.NZ", b_layout=", pl.NZ")
    assert (both(made, {**boxed, "row": 0}) == product(given)).all()


@pytest.mark.parametrize("shape", [(128, 64), (1, 2, 8, 16, 32), (2, 8, 16, 32), (8192,)])
def test_nz_is_given_in_memory_order_under_any_of_its_shapes(shape: tuple[int, ...]) -> None:
    given = drawn()
    boxes = numerics.pack_nz(given["b"]).reshape(shape)
    assert (
        both(kernel(b_layout=", pl.NZ"), {**given, "b": boxes, "row": 0}) == product(given)
    ).all()


def test_another_shape_of_nz_is_told_with_those_that_are_right() -> None:
    given = drawn()
    with pytest.raises(UserError) as caught:
        scalebox.interpret(kernel(b_layout=", pl.NZ"), {**given, "b": given["b"].T, "row": 0})
    assert (
        caught.value.message == "b must be an E4M3 array of shape [128, 64], not of shape [64, 128]"
    )
    assert caught.value.hint == (
        "valid are arrays of float8_e4m3fn or uint8 codes, of shape [128, 64], [1, 2, 8, 16, 32], "
        "[2, 8, 16, 32], [1, 128, 64], [8192], in NZ order (numerics.pack_nz makes it)"
    )


def test_a_matrix_of_a_batch_is_multiplied_and_stored_where_it_belongs() -> None:
    given = drawn()
    rng = np.random.default_rng(2)
    a = rng.standard_normal((2, B, M, K)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.standard_normal((B, K, N)).astype(ml_dtypes.float8_e4m3fn)
    a[1, 2], b[1] = given["a"], given["b"]
    made = kernel(
        a="2, 3, 64, 128", x="1, 2, row, 0", xw="1, 1, 64, 128",
        b="3, 128, 64", b_layout=", pl.NZ", y="row + 1, 0, 0", yw="1, 128, 64",
        c="2, 3, 64, 64", z="1, row, 0, 0",
    )  # fmt: skip
    made = pl.parse(LAUNCHED.replace("KERNEL", python_print(made)))
    assert isinstance(made, Program)
    filled = {**given, "a": a, "b": numerics.pack_nz(b)}
    found = both(made, filled)
    assert (found[1, 0] == product(given)).all()
    assert not found[0].any()
    assert not found[1, 1:].any()


LAUNCHED = """
KERNEL
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[2, 3, 64, 128], pl.FP8E4M3FN],
        sa: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[3, 128, 64], pl.FP8E4M3FN, pl.NZ],
        sb: pl.Tensor[[4, 64], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[2, 3, 64, 64], pl.FP32]],
    ):
        c = self.k(a, sa, b, sb, c, 0)
        return c
"""


@pytest.mark.parametrize("row", [1, -1, 64, 1 << 20])
def test_a_row_beyond_its_matrix_is_a_fault_and_never_the_next_one(row: int) -> None:
    given = drawn()
    a = np.zeros((B, M, K), ml_dtypes.float8_e4m3fn)
    made = kernel(a="3, 64, 128", x="1, row, 0", xw="1, 64, 128", c="1, 64, 64", z="0, 0, 0")
    filled = {**given, "a": a, "row": row}
    with pytest.raises(IRValueError, match="must lie within the tensor"):
        scalebox.interpret(made, filled)
    with pytest.raises(SimulationFault):
        scalebox.run(made, filled, timing=False)
    both(made, {**filled, "row": 0})


def test_a_store_beyond_its_matrix_is_a_fault() -> None:
    given = drawn()
    made = kernel(c="3, 96, 64", z="1, row, 0", shapes=", [1, 64, 64]")
    assert both(made, {**given, "row": 32})[1, 32:].any()
    with pytest.raises(SimulationFault):
        scalebox.run(made, {**given, "row": 33}, timing=False)


def test_a_store_by_shapes_cuts_rows_into_matrices() -> None:
    given = drawn()
    made = kernel(c="4, 16, 64", z="0, 0, 0", shapes=", [4, 16, 64]")
    assert (both(made, {**given, "row": 0}) == product(given).reshape(4, 16, 64)).all()


def test_a_launch_is_held_to_what_its_callers_proved_of_nz_offsets() -> None:
    text = python_print(kernel(b="256, 64", b_layout=", pl.NZ", y="0, 0")).replace(
        "pl.tile.load(b, [0, 0]", "pl.tile.load(b, [row, 0]"
    )
    main = LAUNCHED.replace("[2, 3, 64, 128]", "[64, 128]").replace("[3, 128, 64]", "[256, 64]")
    main = main.replace("[2, 3, 64, 64]", "[64, 64]").replace("c, 0)", "c, 16)")
    made = pl.parse(main.replace("KERNEL", text))
    assert isinstance(made, Program)
    given = drawn()
    b = np.zeros((256, 64), ml_dtypes.float8_e4m3fn)
    b[16:144] = given["b"]
    filled = {**given, "b": numerics.pack_nz(b)}
    assert (both(made, filled) == product(given)).all()
    executable = scalebox.compile(made)
    found = scalebox.run(executable, {**filled, "row": 16}, entry="k", timing=False).outputs["c"]
    assert (found == product(given)).all()
    with pytest.raises(UserError, match="multiple of 16"):
        scalebox.run(executable, {**filled, "row": 8}, entry="k", timing=False)


def test_several_matrices_of_nz_at_a_time_are_refused_by_the_cube_core() -> None:
    made = pl.parse(
        """
@pl.function(type=pl.FunctionType.InCore)
def k(self, b: pl.Tensor[[2, 64, 64], pl.FP8E4M3FN, pl.NZ]):
    t = pl.load(b, [0, 0, 0], [2, 64, 64])
"""
    )
    assert isinstance(made, Function)
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(Program([made], "p"))
    assert caught.value.message == (
        "A load of the cube core must take one matrix of a tensor in NZ at a time, not 2"
    )
