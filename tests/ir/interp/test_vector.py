"""Elementwise ops in kernels, on tiles that are valid in part and on tensors."""

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir.errors import IRValueError
from scalebox.ir.interp import interpret_program

from .one_kernel import kernel, outputs
from .vector_expressions import EACH, NUMPY, Array, One, Two, check, drawn, second_is, wide


def chosen_or(other: Any, mask: Array, a: Array) -> Any:
    return np.where(mask, a, other)


def wide_of_one(function: One) -> One:
    """Return a function that works in float64."""
    return lambda x: function(x.astype(np.float64))


ONE: dict[str, One] = {
    "exp": wide_of_one(np.exp),
    "log": wide_of_one(np.log),
    "sqrt": wide_of_one(np.sqrt),
    "rsqrt": wide_of_one(lambda x: 1 / np.sqrt(x)),
    "recip": wide_of_one(lambda x: 1 / x),
    "sin": wide_of_one(np.sin),
    "cos": wide_of_one(np.cos),
    "neg": np.negative,
    "abs": np.abs,
    "relu": partial(np.maximum, 0),
}


@EACH
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_element(name: str, dtype: str, on_tiles: bool) -> None:
    given = {"a": np.abs(drawn(3, dtype)) + NUMPY[dtype](0.25)}
    check(f"pl.{name}(a)", ONE[name], dtype, on_tiles=on_tiles, given=given)


@EACH
@pytest.mark.parametrize("name", ["neg", "abs", "relu"])
def test_signs_of_integers(name: str, on_tiles: bool) -> None:
    given = {"a": drawn(3, "INT8")}
    check(f"pl.{name}(a)", ONE[name], "INT8", on_tiles=on_tiles, given=given)


TWO: dict[str, Two] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": wide(lambda a, b: a / b),
    "rem": wide(np.remainder),
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@EACH
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_elements(name: str, dtype: str, on_tiles: bool) -> None:
    check(f"pl.{name}(a, b)", TWO[name], dtype, on_tiles=on_tiles)


@EACH
@pytest.mark.parametrize("dtype", ["INT32", "UINT16"])
@pytest.mark.parametrize("name", [name for name in TWO if name != "div"])
def test_functions_of_two_integers(name: str, dtype: str, on_tiles: bool) -> None:
    b = drawn(2, dtype)
    b[b == 0] = 7
    given = {"a": drawn(1, dtype), "b": b}
    check(f"pl.{name}(a, b)", TWO[name], dtype, on_tiles=on_tiles, given=given)


SCALARS = ["adds", "subs", "muls", "divs", "rems", "maximums", "minimums"]


@EACH
@pytest.mark.parametrize("scalar", ["2", "0.3", "-1.5"])
@pytest.mark.parametrize("name", SCALARS)
def test_a_number_on_the_right_meets_every_element(name: str, scalar: str, on_tiles: bool) -> None:
    short = name.removesuffix("s")
    for written, dtype in ((short, "FP32"), (name, "BF16")):
        number = np.array(float(scalar)).astype(NUMPY[dtype])
        check(
            f"pl.{written}(a, {scalar})",
            partial(second_is, number, TWO[short]),
            dtype,
            on_tiles=on_tiles,
            given={"a": drawn(1, dtype)},
        )


def test_a_scalar_variable_is_taken_as_it_is_when_the_op_runs() -> None:
    program = kernel(
        "a: pl.Tensor[[1, 8], pl.FP16], s: pl.Scalar[pl.FP16], n: pl.Scalar[pl.INDEX], "
        "c: pl.Out[pl.Tensor[[1, 8], pl.FP16]]",
        """
x = pl.load(a, [0, 0], [1, 8], target_memory=pl.Mem.Vec)
for i in pl.range(n):
    x = pl.mul(x, s)
c = pl.store(x, [0, 0], c)
return c""",
    )
    x = np.arange(8, dtype=np.float16)[None]
    found = outputs(program, {"a": x, "s": 0.1, "n": 2})["c"]
    once = (x * np.float16(0.1)).astype(np.float16)
    assert (found == once * np.float16(0.1)).all()


COMPARISONS: dict[str, Two] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


@EACH
@pytest.mark.parametrize("number", range(6))
def test_comparisons_make_masks(number: int, on_tiles: bool) -> None:
    name = list(COMPARISONS)[number]
    a, b = drawn(1, "INT8"), drawn(2, "INT8")
    a[::2] = b[::2]
    check(
        f'pl.cmp(a, b, cmp_type="{name}")',
        COMPARISONS[name],
        "INT8",
        on_tiles=on_tiles,
        result="BOOL",
        given={"a": a, "b": b},
    )
    check(
        f"pl.cmps(a, 3, {number})",
        partial(second_is, 3, COMPARISONS[name]),
        "INT8",
        on_tiles=on_tiles,
        result="BOOL",
        given={"a": a},
    )


@EACH
def test_masks_choose(on_tiles: bool) -> None:
    mask = drawn(4, "FP32") > 0
    given = {"m": mask, "a": drawn(1, "BF16"), "b": drawn(2, "BF16")}
    check("pl.sel(m, a, b)", np.where, "BF16", on_tiles=on_tiles, given=given, masks=("m",))
    del given["b"]
    for written in ("pl.sels(m, a, -1.5)", "pl.sel(m, a, -1.5)"):
        check(
            written,
            partial(chosen_or, ml_dtypes.bfloat16(-1.5)),
            "BF16",
            on_tiles=on_tiles,
            given=given,
            masks=("m",),
        )


def test_a_result_of_the_cube_is_moved_to_the_vector_core() -> None:
    program = kernel(
        "a: pl.Tensor[[16, 64], pl.FP8E4M3FN], sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ], "
        "b: pl.Tensor[[64, 32], pl.FP8E4M3FN], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN], "
        "c: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
        """
z = pl.matmul_mx(pl.load(a, [0, 0], [16, 64]), pl.load(sa, [0, 0], [16, 2]),
                 pl.load(b, [0, 0], [64, 32]), pl.load(sb, [0, 0], [2, 32]))
c = pl.store(pl.relu(z), [0, 0], c)
return c""",
    )
    rng = np.random.default_rng(7)
    a, b = (
        rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((16, 64), (64, 32))
    )
    given = {
        "a": a,
        "b": b,
        "sa": np.full((16, 2), 127, np.uint8),
        "sb": np.full((2, 32), 127, np.uint8),
    }
    found = outputs(program, given)["c"]
    product = a.astype(np.float64) @ b.astype(np.float64)
    assert np.allclose(found, np.maximum(product, 0), rtol=1e-5, atol=1e-5)
    assert (found == 0).any()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "z = pl.add(x, pl.load(b, [0, 0], [4, 8], valid_shape=[n, 8]))",
            "tile.add: the operands must be valid in the same extents, not in [4, 8] and [3, 8]",
        ),
        (
            "z = pl.row_expand_add(x, pl.load(v, [0, 0], [4, 1], valid_shape=[n, 1]))",
            "tile.row_expand_add: vec must be valid in [4, 1], not in [3, 1]",
        ),
        (
            "z = pl.col_max(pl.load(b, [n + 1, 0], [4, 8], clamp=True))",
            "tile.col_max: x must have valid elements to reduce, not the extents [0, 8]",
        ),
    ],
)
def test_extents_that_only_the_run_knows_are_checked_there(body: str, message: str) -> None:
    program = kernel(
        "a: pl.Tensor[[4, 8], pl.FP32], b: pl.Tensor[[4, 8], pl.FP32], "
        "v: pl.Tensor[[4, 1], pl.FP32], n: pl.Scalar[pl.INDEX], c: pl.Out[pl.Tensor[[4, 8], pl.FP32]]",
        f"x = pl.load(a, [0, 0], [4, 8])\n{body}\nc = pl.store(z, [0, 0], c)\nreturn c",
    )
    zeros = np.zeros((4, 8), np.float32)
    given = {"a": zeros, "b": zeros, "v": zeros[:, :1], "n": 3}
    with pytest.raises(IRValueError) as caught:
        interpret_program(program, given)
    assert caught.value.message == message
