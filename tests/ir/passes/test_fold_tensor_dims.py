"""FoldTensorDims: extents become constants, and so does what is made of them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox import pl
from scalebox.ir.core import Program
from scalebox.ir.passes import fold_tensor_dims
from scalebox.ir.printer import python_print

Array = npt.NDArray[Any]

X = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


def kernel(*lines: str, rows: str = "64", header: str = "", scalars: str = "") -> Program:
    body = "\n".join(f"        {line}" for line in lines)
    made = pl.parse(f"""
{header}
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[{rows}, 64], pl.FP32], {scalars}out: pl.Out[pl.Tensor[[{rows}, 64], pl.FP32]]):
{body}
        return out
""")
    assert isinstance(made, Program)
    return made


def both(program: Program, x: Array = X, **scalars: int) -> Array:
    found = scalebox.run(program, {"x": x, **scalars}, timing=False).outputs["out"]
    golden = scalebox.interpret(program, {"x": x, **scalars})["out"]
    np.testing.assert_array_equal(found, golden)
    return found


def test_an_extent_and_what_is_made_of_it_are_constants():
    program = kernel(
        "n = pl.tensor.dim(x, 0)",
        "half = n // 2",
        "for i in pl.range(0, n, half):",
        "    t = pl.load(x, [i, 0], [32, 64], valid_shape=[half, half + 16])",
        "    out = pl.store(t, [i, 0], out)",
    )
    text = python_print(fold_tensor_dims()(program))
    assert "tensor.dim" not in text
    assert "pl.range(0, 64, 32)" in text
    assert "[32, 64], [32, 48]" in text
    found = both(program)
    np.testing.assert_array_equal(found[:, :48], X[:, :48])


def test_a_name_that_means_something_else_later_is_left():
    program = kernel(
        "n = pl.tensor.dim(x, 1)",
        "n = n - 32",
        "t = pl.load(x, [n, 0], [32, 64])",
        "out = pl.store(t, [0, 0], out)",
    )
    assert "[n, 0]" in python_print(fold_tensor_dims()(program))
    np.testing.assert_array_equal(both(program)[:32], X[32:])


@pytest.mark.parametrize(("c", "first"), [(0, 32), (1, 0)])
def test_a_parameter_that_gets_an_extent_on_one_way_only_is_left(c: int, first: int):
    program = kernel(
        "if c == 1:",
        "    n = pl.tensor.dim(x, 0)",
        "t = pl.load(x, [64 - n, 0], [32, 64])",
        "out = pl.store(t, [0, 0], out)",
        scalars="c: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INDEX], ",
    )
    np.testing.assert_array_equal(both(program, c=c, n=32)[:32], X[first : first + 32])


@pytest.mark.parametrize(("axis", "wanted"), [(0, 48), (1, 64), (-1, 64), (-2, 48)])
def test_an_axis_counts_from_either_end(axis: int, wanted: int):
    program = kernel(f"n = pl.tensor.dim(x, {axis})", rows="48")
    assert f"n: pl.Scalar[pl.INDEX] = {wanted}\n" in python_print(fold_tensor_dims()(program))


@pytest.mark.parametrize("rows", [16, 48])
def test_an_extent_that_a_launch_binds_is_a_constant_too(rows: int):
    program = kernel(
        "for i in pl.range(0, pl.tensor.dim(x, 0), 16):",
        "    t = pl.load(x, [i, 0], [16, 64])",
        "    out = pl.store(pl.neg(t), [i, 0], out)",
        rows="R",
        header='R = pl.dynamic("R")',
    )
    np.testing.assert_array_equal(both(program, X[:rows]), -X[:rows])


def test_a_program_without_extents_stays_as_it_is():
    program = kernel("out = pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], out)")
    assert fold_tensor_dims()(program) is program
