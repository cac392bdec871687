"""Elementwise ops, reductions and expansions in kernels, on tiles that are valid in part and on tensors.

What a tile holds beyond its valid shape is poison: a NaN or the largest integer.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir.errors import IRValueError
from scalebox.ir.interp import interpret_program

from .one_kernel import kernel, outputs

Array = npt.NDArray[Any]
ROWS, COLUMNS, VALID = 16, 32, (11, 29)
NUMPY: dict[str, Any] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT32": np.int32,
    "INT8": np.int8,
    "UINT16": np.uint16,
    "BOOL": np.bool_,
}
EACH = pytest.mark.parametrize("on_tiles", [True, False], ids=["tile", "tensor"])


def drawn(seed: int, dtype: str, shape: tuple[int, int] = (ROWS, COLUMNS)) -> Array:
    rng = np.random.default_rng(seed)
    if dtype in ("INT8", "INT32", "UINT16"):
        low = 0 if dtype == "UINT16" else -100
        return rng.integers(low, 100, shape).astype(NUMPY[dtype])
    return (rng.standard_normal(shape) * 3).astype(NUMPY[dtype])


def part(whole: Array) -> Array:
    """Return the valid part of an array of the shape of a tile, a column or a row."""
    return whole[tuple(slice(min(n, v)) for n, v in zip(whole.shape, VALID, strict=True))]


def poisoned(whole: Array) -> Array:
    kind = whole.dtype
    poison = np.iinfo(kind).max if kind.kind in "iu" else 1 if kind.kind == "b" else math.nan
    out = np.full_like(whole, poison)
    rows, columns = part(whole).shape
    out[:rows, :columns] = part(whole)
    return out


def apply(expression: str, given: dict[str, Array], dtypes: dict[str, str], shape: Any) -> Array:
    """Return an expression of ops over tiles that are loaded from the valid part of `given`."""
    params = [f"{n}_gm: pl.Tensor[{list(x.shape)}, pl.{dtypes[n]}]" for n, x in given.items()]
    lines = [
        f"{n} = pl.load({n}_gm, [0, 0], {list(x.shape)}, valid_shape={list(part(x).shape)})"
        for n, x in given.items()
    ]
    lines += [f"out = pl.store({expression}, [0, 0], out)", "return out"]
    params.append(f"out: pl.Out[pl.Tensor[{list(shape)}, pl.{dtypes['out']}]]")
    program = kernel(", ".join(params), "\n".join(lines))
    return outputs(program, {f"{name}_gm": poisoned(x) for name, x in given.items()})["out"]


def apply_to_tensors(expression: str, given: dict[str, Array], dtypes: dict[str, str]) -> Array:
    """Return an expression of ops over whole tensors."""
    params = [f"{n}: pl.Tensor[{list(x.shape)}, pl.{dtypes[n]}]" for n, x in given.items()]
    body = f"out = {expression}\nreturn out"
    program = kernel(", ".join(params), body, kind="Orchestration")
    return outputs(program, given, passes=False)["out"]


def check(
    expression: str,
    wanted: Callable[..., Any],
    dtype: str = "FP32",
    *,
    on_tiles: bool,
    result: str | None = None,
    given: dict[str, Array] | None = None,
    masks: tuple[str, ...] = (),
    shape: tuple[int, int] = (ROWS, COLUMNS),
) -> None:
    """Compare an expression over `a` and `b`, or over `given`, with numpy on what is valid."""
    arrays = given if given is not None else {"a": drawn(1, dtype), "b": drawn(2, dtype)}
    dtypes = {name: "BOOL" if name in masks else dtype for name in arrays}
    dtypes["out"] = result or dtype
    if on_tiles:
        found = apply(expression, arrays, dtypes, shape)
    else:
        found = apply_to_tensors(expression, arrays, dtypes)
    operands = [part(each) if on_tiles else each for each in arrays.values()]
    with np.errstate(all="ignore"):
        expected = np.asarray(wanted(*operands)).astype(NUMPY[result or dtype])
    rows, columns = expected.shape
    assert found.dtype == expected.dtype
    assert found[:rows, :columns].tobytes() == expected.tobytes()
    assert not found[rows:].any()
    assert not found[:, columns:].any()


One = Callable[[Any], Any]
Two = Callable[[Any, Any], Any]


def second_is(b: Any, function: Two, a: Array) -> Any:
    return function(a, b)


def reduced_alone(axis: int, function: Two, a: Array, _scratch: Array) -> Any:
    return function(a, axis)


def chosen_or(other: Any, mask: Array, a: Array) -> Any:
    return np.where(mask, a, other)


def wide_of_one(function: One) -> One:
    """Return a function that works in float64."""
    return lambda x: function(x.astype(np.float64))


def wide(function: Two) -> Two:
    """Return a function of two operands that works in float64."""
    return lambda a, b: function(a.astype(np.float64), b.astype(np.float64))


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


def in_order(of: Two) -> Callable[[Array, int], Array]:
    """Return the reduction of an axis, one float32 operation after another."""

    def reduced(a: Array, axis: int) -> Array:
        lines = np.moveaxis(a, axis, 0)
        integer = a.dtype.kind in "iu"
        total = lines[0] if integer else lines[0].astype(np.float32)
        for line in lines[1:]:
            total = of(total, line if integer else line.astype(np.float32))
        return np.expand_dims(total, axis)

    return reduced


REDUCTIONS: dict[str, Callable[[Array, int], Array]] = {
    "sum": in_order(np.add),
    "prod": in_order(np.multiply),
    "max": lambda a, axis: a.max(axis=axis, keepdims=True),
    "min": lambda a, axis: a.min(axis=axis, keepdims=True),
}
REDUCED = ["row_sum", "row_prod", "row_max", "row_min", "col_sum", "col_prod", "col_max", "col_min"]


@EACH
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT32"])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_see_what_is_valid_only(name: str, dtype: str, on_tiles: bool) -> None:
    line, _, function = name.partition("_")
    axis, shape = (1, (ROWS, 1)) if line == "row" else (0, (1, COLUMNS))
    check(
        f"pl.{name}(a)",
        partial(second_is, axis, REDUCTIONS[function]),
        dtype,
        on_tiles=on_tiles,
        given={"a": drawn(1, dtype)},
        shape=shape,
    )


@pytest.mark.parametrize("name", ["row_sum", "row_max", "row_min", "row_prod", "col_sum"])
def test_a_scratch_tile_changes_nothing(name: str) -> None:
    line, _, function = name.partition("_")
    axis, shape = (1, (ROWS, 1)) if line == "row" else (0, (1, COLUMNS))
    check(
        f"pl.{name}(a, b)",
        partial(reduced_alone, axis, REDUCTIONS[function]),
        on_tiles=True,
        shape=shape,
    )


EXPANSIONS: dict[str, Two] = {
    "": lambda a, vec: np.broadcast_to(vec, a.shape),
    "_add": lambda a, vec: a + vec,
    "_sub": lambda a, vec: a - vec,
    "_mul": lambda a, vec: a * vec,
    "_div": wide(lambda a, vec: a / vec),
    "_max": np.maximum,
    "_min": np.minimum,
    "_expdif": wide(lambda a, vec: np.exp(a - vec)),
}
EXPANDED = [
    "row_expand", "row_expand_add", "row_expand_sub", "row_expand_mul", "row_expand_div",
    "row_expand_max", "row_expand_min", "row_expand_expdif",
    "col_expand", "col_expand_add", "col_expand_sub", "col_expand_mul", "col_expand_div",
    "col_expand_max", "col_expand_min", "col_expand_expdif",
]  # fmt: skip


@EACH
@pytest.mark.parametrize("dtype", ["FP32", "BF16"])
@pytest.mark.parametrize("name", EXPANDED)
def test_one_element_stands_for_its_row_or_column(name: str, dtype: str, on_tiles: bool) -> None:
    is_row = name.startswith("row")
    vec = drawn(5, dtype, (ROWS, 1) if is_row else (1, COLUMNS))
    suffix = name.removeprefix("row_expand").removeprefix("col_expand")
    given = {"a": drawn(1, dtype), "v": vec}
    check(f"pl.{name}(a, v)", EXPANSIONS[suffix], dtype, on_tiles=on_tiles, given=given)


def test_softmax_of_a_row_is_what_its_steps_are() -> None:
    program = kernel(
        "a: pl.Tensor[[16, 64], pl.FP32], c: pl.Out[pl.Tensor[[16, 64], pl.FP32]]",
        """
x = pl.load(a, [0, 0], [16, 64], valid_shape=[16, 50])
e = pl.row_expand_expdif(x, pl.row_max(x))
c = pl.store(pl.row_expand_div(e, pl.row_sum(e)), [0, 0], c)
return c""",
    )
    x = np.random.default_rng(6).standard_normal((16, 64)).astype(np.float32)
    x[:, 50:] = np.nan
    found = outputs(program, {"a": x})["c"]
    part = x[:, :50]
    e = np.exp(part.astype(np.float64) - part.max(axis=1, keepdims=True)).astype(np.float32)
    total = e[:, 0]
    for column in e.T[1:]:
        total = total + column
    assert (found[:, :50] == (e / total[:, None])).all()
    assert not found[:, 50:].any()


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
