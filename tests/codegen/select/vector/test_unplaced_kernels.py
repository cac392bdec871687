"""Kernels that say no memory and make no move: names are reused as in PyPTO's own kernels."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox import pl
from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.ir.core import Program
from scalebox.ir.errors import ParserTypeError
from scalebox.ir.passes import default_pipeline

from .vector_kernels import agreed, compiled, kernel

Array = npt.NDArray[Any]

X = np.random.default_rng(5).integers(-4, 5, (64, 64)).astype(np.float32)
W = np.random.default_rng(6).integers(-2, 3, (64, 64)).astype(np.float32)
SQUARE = "[[64, 64], pl.FP32]"
LOAD_X, LOAD_W = "pl.load(x, [0, 0], [64, 64])", "pl.load(w, [0, 0], [64, 64])"
STORE = "out = pl.store(t, [0, 0], out)"


def written(*lines: str, scalar: bool = False, weights: bool = False) -> Program:
    params = {"x": SQUARE}
    params |= {"w": SQUARE} if weights else {}
    params |= {"n": "INT32"} if scalar else {}
    return kernel(params, [*lines, STORE], SQUARE)


def is_of_the_vector_core(program: Program) -> bool:
    (made,) = compiled(program).kernels
    return made.core is CoreKind.AIV and made.mate is None


def test_a_load_is_replaced_by_what_is_made_of_it():
    program = written(f"t = {LOAD_X}", "t = pl.neg(t)", "t = pl.mul(t, t)")
    assert is_of_the_vector_core(program)
    np.testing.assert_array_equal(agreed(program, {"x": X}), X * X)


def test_a_name_goes_back_to_a_load():
    program = written(f"t = pl.neg({LOAD_X})", "u = t", f"t = {LOAD_X}", "t = pl.mul(t, u)")
    np.testing.assert_array_equal(agreed(program, {"x": X}), -X * X)


@pytest.mark.parametrize("header", ["pl.range(3)", "pl.unroll(3)", "pl.pipeline(3, stage=2)"])
def test_a_load_is_carried_into_a_loop(header: str):
    program = written(f"t = {LOAD_X}", f"for i in {header}:", "    t = pl.adds(t, 2.0)")
    assert is_of_the_vector_core(program)
    np.testing.assert_array_equal(agreed(program, {"x": X}), X + 6)


def test_a_load_is_carried_explicitly():
    program = written(
        f"s0 = {LOAD_X}",
        "for i, (s,) in pl.range(3, init_values=(s0,)):",
        "    t = pl.yield_(pl.adds(s, 2.0))",
    )
    np.testing.assert_array_equal(agreed(program, {"x": X}), X + 6)


@pytest.mark.parametrize(("n", "wanted"), [(0, X), (1, -X)])
def test_a_load_is_changed_in_a_branch(n: int, wanted: Array):
    program = written(f"t = {LOAD_X}", "if n > 0:", "    t = pl.neg(t)", scalar=True)
    np.testing.assert_array_equal(agreed(program, {"x": X, "n": n}), wanted)


@pytest.mark.parametrize(("n", "wanted"), [(0, -X), (1, X)])
@pytest.mark.parametrize("loads_first", [True, False])
def test_one_arm_loads_and_the_other_one_computes(n: int, wanted: Array, loads_first: bool):
    arms = [f"    t = {LOAD_X}", f"    t = pl.neg({LOAD_X})"]
    if not loads_first:
        arms.reverse()
        wanted = -wanted
    program = written("if n > 0:", arms[0], "else:", arms[1], scalar=True)
    np.testing.assert_array_equal(agreed(program, {"x": X, "n": n}), wanted)


def test_a_loop_gives_a_computed_name_to_a_load():
    program = written(
        f"t = pl.neg({LOAD_X})",
        "s = t",
        "for i in pl.range(3):",
        "    s = pl.add(s, t)",
        f"    t = {LOAD_X}",
        "t = s",
    )
    np.testing.assert_array_equal(agreed(program, {"x": X}), np.zeros_like(X))


def test_vector_and_cube_work_on_what_says_no_memory():
    program = written(
        f"t = {LOAD_X}",
        "t = pl.relu(t)",
        f"v = {LOAD_W}",
        "p = pl.matmul(t, v)",
        "t = pl.neg(p)",
        weights=True,
    )
    found = agreed(program, {"x": X, "w": W})
    np.testing.assert_array_equal(found, -(np.maximum(X, 0) @ W))


def test_a_product_of_fp16_needs_no_memory_either():
    program = kernel(
        {"x": "[[64, 64], pl.BF16]", "w": "[[64, 64], pl.BF16]"},
        [
            f"t = {LOAD_X}",
            "t = pl.neg(t)",
            f"p = pl.matmul(t, {LOAD_W})",
            "r = pl.maximums(p, -3.0)",
            "out = pl.store(r, [0, 0], out)",
        ],
        SQUARE,
    )
    x, w = X.astype(ml_dtypes.bfloat16), W.astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(agreed(program, {"x": x, "w": w}), np.maximum(-X @ W, -3))


def test_a_product_takes_the_place_of_a_load_over_the_trips_of_a_loop():
    program = written(
        f"t = {LOAD_X}",
        f"v = {LOAD_W}",
        "for i in pl.range(2):",
        "    t = pl.matmul(t, v)",
        weights=True,
    )
    np.testing.assert_array_equal(agreed(program, {"x": X, "w": W}), X @ W @ W)


@pytest.mark.parametrize(("n", "wanted"), [(0, X), (1, X @ W)])
def test_a_product_takes_the_place_of_a_load_in_a_branch(n: int, wanted: Array):
    program = written(
        f"t = {LOAD_X}", "if n > 0:", f"    t = pl.matmul(t, {LOAD_W})", scalar=True, weights=True
    )
    np.testing.assert_array_equal(agreed(program, {"x": X, "w": W, "n": n}), wanted)


def test_a_name_is_reused_on_all_levels_of_nested_loops():
    program = written(
        f"t = {LOAD_X}",
        "for i in pl.range(2):",
        "    t = pl.minimums(pl.maximums(t, -3.0), 3.0)",
        "    for j in pl.range(2):",
        f"        t = pl.matmul(t, {LOAD_W})",
        weights=True,
    )
    wanted = X
    for _ in range(2):
        wanted = np.clip(wanted, -3, 3) @ W @ W
    np.testing.assert_array_equal(agreed(program, {"x": X, "w": W}), wanted)


def test_a_product_is_worked_on_in_an_inner_loop():
    program = written(
        f"t = {LOAD_X}",
        "for i in pl.range(2):",
        f"    t = pl.matmul(t, {LOAD_W})",
        "    for j in pl.range(2):",
        "        t = pl.minimums(pl.maximums(t, -3.0), 3.0)",
        weights=True,
    )
    wanted = X
    for _ in range(2):
        wanted = np.clip(wanted @ W, -3, 3)
    np.testing.assert_array_equal(agreed(program, {"x": X, "w": W}), wanted)


def test_a_product_is_multiplied_again_where_its_name_was_that_of_a_load():
    program = written(
        f"t = {LOAD_X}",
        "for i in pl.range(1):",
        "    v = t",
        f"    t = pl.matmul(t, {LOAD_W})",
        "    t = pl.matmul(v, t)",
        weights=True,
    )
    np.testing.assert_array_equal(agreed(program, {"x": X, "w": W}), X @ (X @ W))


def test_a_load_that_is_stored_and_multiplied_leaves_from_vec():
    program = written(
        f"a = {LOAD_X}",
        "o = pl.store(a, [0, 0], out)",
        f"t = pl.matmul(a, {LOAD_W})",
        weights=True,
    )
    np.testing.assert_array_equal(agreed(program, {"x": X, "w": W}), X @ W)


def test_what_reuses_a_name_runs_after_every_pass():
    program = written(
        f"t = {LOAD_X}",
        f"v = {LOAD_W}",
        "if n > 0:",
        "    v = pl.neg(v)",
        "for i in pl.range(2):",
        "    t = pl.matmul(t, v)",
        scalar=True,
        weights=True,
    )
    inputs = {"x": X, "w": W, "n": 1}
    np.testing.assert_array_equal(agreed(program, inputs), X @ W @ W)
    for each in default_pipeline():
        program = each(program)
        np.testing.assert_array_equal(scalebox.interpret(program, inputs)["out"], X @ W @ W)


def test_a_name_that_both_kinds_of_op_placed_must_not_be_reused():
    with pytest.raises(ParserTypeError, match=r"must be .*Mem.Acc\], not .*Mem.Vec") as caught:
        written(f"t = pl.matmul({LOAD_X}, {LOAD_X})", "t = pl.neg(t)")
    assert caught.value.hint == "use another name for a value of another type or memory space"


@pytest.mark.parametrize("use", ["pl.neg(t)", "t"])
def test_a_load_that_nobody_uses_leaves_a_vector_kernel_alone(use: str):
    program = written(f"z = {LOAD_X}", f"t = {LOAD_X}", f"t = {use}")
    assert is_of_the_vector_core(program)
    np.testing.assert_array_equal(agreed(program, {"x": X}), X if use == "t" else -X)


def test_loads_that_only_the_vector_core_uses_leave_its_kernel_alone():
    program = written(
        f"t = {LOAD_X}",
        "a = pl.slice(t, [64, 32], [0, 0])",
        "b = pl.slice(t, [64, 32], [0, 32])",
        "t = pl.concat(b, a)",
    )
    assert is_of_the_vector_core(program)
    np.testing.assert_array_equal(agreed(program, {"x": X}), np.roll(X, 32, axis=1))


@pytest.mark.parametrize(
    ("results", "names"), [("t, t", ["t"]), ("u, t", ["u"]), ("y, y", ["y", "y_1"])]
)
def test_a_created_tensor_that_a_kernel_returns_twice_is_one_output(results: str, names: list[str]):
    program = pl.parse(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor{SQUARE}):
        t = pl.create_tensor([64, 64], pl.FP32)
        u = pl.store({LOAD_X}, [0, 0], t)
        y = pl.add(x, 1.0)
        return {results}
""")
    assert isinstance(program, Program)
    wanted = X + 1 if "y" in names else X
    for outputs in (
        scalebox.interpret(program, {"x": X}),
        scalebox.run(program, {"x": X}, timing=False).outputs,
    ):
        assert list(outputs) == names
        for each in outputs.values():
            np.testing.assert_array_equal(each, wanted)
