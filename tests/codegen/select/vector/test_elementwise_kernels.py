"""Whole kernels of elementwise ops: the machine's numbers are the interpreter's, and numpy's."""

from collections.abc import Iterable
from itertools import product as _product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scalebox
from scalebox.ir.cast_mode import CastMode
from scalebox.ir.core import Program
from scalebox.ir.numerics.functions import Comparison

from .vector_kernels import agreed, compiled, kernel

Array = npt.NDArray[Any]


def product(*choices: Iterable[Any]) -> list[tuple[Any, ...]]:
    return list(_product(*choices))


SHAPE = "[[16, 64], pl.FP32]"
LOADS = [f"{name} = pl.load({name}0, [0, 0], [16, 64])" for name in "ab"]
STORE = "out = pl.store(u, [0, 0], out)"
NUMPY: dict[str, Any] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "UINT16": np.uint16,
    "INT32": np.int32,
    "UINT32": np.uint32,
}
INTEGERS = tuple(name for name in NUMPY if "INT" in name)


def numbers(dtype: str, seed: int, shape: tuple[int, int] = (16, 64)) -> Array:
    """Return numbers of all sizes, with zeros, infinities and NaNs where the dtype has them."""
    rng = np.random.default_rng(seed)
    kind = NUMPY[dtype]
    if dtype in INTEGERS:
        limits = np.iinfo(kind)
        return np.asarray(rng.integers(limits.min, limits.max, shape, kind, endpoint=True))
    made = rng.standard_normal(shape) * np.exp2(rng.integers(-20, 15, shape))
    made.flat[:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    with np.errstate(over="ignore"):
        return np.asarray(made.astype(kind))


def same(found: Array, wanted: Array) -> None:
    """Check that numbers are equal, NaNs among them, whatever numpy knows of their dtype."""
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


def binary(op: str, dtype: str, a: Array, b: Array) -> Array:
    shape = f"[[16, 64], pl.{dtype}]"
    program = kernel({"a0": shape, "b0": shape}, [*LOADS, f"u = pl.{op}(a, b)", STORE], shape)
    return agreed(program, {"a0": a, "b0": b})


# --------------------------------------------------------------------------- arithmetic

EXACT = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@pytest.mark.parametrize(("op", "dtype"), product(EXACT, NUMPY))
def test_sums_and_products_are_those_of_numpy(op: str, dtype: str):
    a, b = numbers(dtype, 1), numbers(dtype, 2)[::-1].copy()
    found = binary(op, dtype, a, b)
    with np.errstate(all="ignore"):
        wanted = (
            EXACT[op](a, b)
            if dtype in INTEGERS
            else EXACT[op](a.astype(np.float32), b.astype(np.float32)).astype(NUMPY[dtype])
        )
    same(found, wanted)


@pytest.mark.parametrize(("op", "dtype"), product(("div", "rem", "maximum", "minimum"), NUMPY))
def test_other_functions_of_two_are_the_interpreters(op: str, dtype: str):
    if op == "div" and dtype in INTEGERS:
        return
    a, b = numbers(dtype, 3), numbers(dtype, 4)
    if op == "rem" and dtype in INTEGERS:
        b[b == 0] = 1
    found = binary(op, dtype, a, b)
    if op in ("maximum", "minimum") and dtype in INTEGERS:
        same(found, getattr(np, op)(a, b))


@pytest.mark.parametrize(
    "op", ["exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos", "neg", "abs", "relu"]
)
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
def test_functions_of_one_are_the_interpreters(op: str, dtype: str):
    shape = f"[[16, 64], pl.{dtype}]"
    program = kernel({"a0": shape}, [LOADS[0], f"u = pl.{op}(a)", STORE], shape)
    a = numbers(dtype, 5)
    found = agreed(program, {"a0": a})
    if op == "neg":
        same(found, -a)
    if op == "sqrt":
        with np.errstate(all="ignore"):
            same(found, np.sqrt(a.astype(np.float64)).astype(a.dtype))


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "maximum", "minimum", "rem"])
def test_a_scalar_operand_is_one_for_all(op: str, dtype: str):
    shape = f"[[16, 64], pl.{dtype}]"
    program = kernel({"a0": shape}, [LOADS[0], f"u = pl.{op}(a, 3)", STORE], shape)
    a = numbers(dtype, 6)
    found = agreed(program, {"a0": a})
    same(found, binary(op, dtype, a, np.full_like(a, 3)))


@pytest.mark.parametrize("dtype", ["INT8", "UINT16", "INT32"])
@pytest.mark.parametrize("number", [0, 1, 100])
def test_a_scalar_may_come_from_the_caller(dtype: str, number: int):
    shape = f"[[16, 64], pl.{dtype}]"
    body = [LOADS[0], "u = pl.add(a, s)", STORE]
    a = numbers(dtype, 7)
    found = agreed(kernel({"a0": shape, "s": dtype}, body, shape), {"a0": a, "s": number})
    with np.errstate(over="ignore"):
        same(found, a + a.dtype.type(number))


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
@pytest.mark.parametrize("number", [-2, 0.1, 3.0e38, -0.0])
def test_a_float_may_come_from_the_caller(dtype: str, number: float):
    shape = f"[[16, 64], pl.{dtype}]"
    body = [LOADS[0], "m = pl.cmps(a, s, cmp_type=2)", "u = pl.sels(m, pl.mul(a, s), s)", STORE]
    a = numbers(dtype, 7)
    found = agreed(kernel({"a0": shape, "s": dtype}, body, shape), {"a0": a, "s": number})
    with np.errstate(all="ignore"):
        s: Array = np.asarray(number).astype(a.dtype).astype(np.float32)
        wide = a.astype(np.float32)
        same(found, np.where(wide < s, (wide * s).astype(a.dtype), s.astype(a.dtype)))


def test_a_float_goes_through_the_orchestration():
    text = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor{SHAPE}, f: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor{SHAPE}]):
        t = pl.load(a, [0, 0], [16, 64])
        out = pl.store(pl.mul(t, f), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor{SHAPE}, f: pl.Scalar[pl.FP32], b: pl.Out[pl.Tensor{SHAPE}],
             c: pl.Out[pl.Tensor{SHAPE}]):
        b = self.k(a, f, b)
        c = self.k(a, -2.5, c)
        return b, c
"""
    program = scalebox.pl.parse(text)
    assert isinstance(program, Program)
    a = numbers("FP32", 15)
    found = scalebox.run(program, {"a": a, "f": 0.75}).outputs
    same(found["b"], a * np.float32(0.75))
    same(found["c"], a * np.float32(-2.5))


# --------------------------------------------------------------------------- comparisons, choices

_HOLDS = {
    Comparison.eq: np.equal,
    Comparison.ne: np.not_equal,
    Comparison.lt: np.less,
    Comparison.le: np.less_equal,
    Comparison.gt: np.greater,
    Comparison.ge: np.greater_equal,
}


@pytest.mark.parametrize(("comparison", "dtype"), product(Comparison, ["FP32", "BF16", "INT16"]))
def test_a_mask_chooses_between_two_tiles(comparison: Comparison, dtype: str):
    shape = f"[[16, 64], pl.{dtype}]"
    body = [*LOADS, f"m = pl.cmp(a, b, cmp_type={comparison.value})", "u = pl.sel(m, a, b)", STORE]
    a, b = numbers(dtype, 8), numbers(dtype, 9)
    b.flat[::7] = a.flat[::7]
    found = agreed(kernel({"a0": shape, "b0": shape}, body, shape), {"a0": a, "b0": b})
    with np.errstate(invalid="ignore"):
        same(found, np.where(_HOLDS[comparison](a, b), a, b))


@pytest.mark.parametrize("comparison", Comparison, ids=lambda c: c.name)
def test_a_mask_chooses_between_a_tile_and_a_number(comparison: Comparison):
    body = [LOADS[0], f"m = pl.cmps(a, 0.5, cmp_type={comparison.value})", "u = pl.sels(m, a, 9.0)"]
    a = numbers("FP32", 10)
    a.flat[::5] = 0.5
    found = agreed(kernel({"a0": SHAPE}, [*body, STORE], SHAPE), {"a0": a})
    same(found, np.where(_HOLDS[comparison](a, 0.5), a, np.float32(9)))


@pytest.mark.parametrize("columns", [8, 16, 24])
def test_masks_of_few_columns(columns: int):
    shape = f"[[5, {columns}], pl.FP32]"
    body = [
        f"a = pl.load(a0, [0, 0], [5, {columns}])",
        "u = pl.sels(pl.cmps(a, 0.0, cmp_type=4), a, 0.0)",
        STORE,
    ]
    a = np.random.default_rng(11).standard_normal((5, columns)).astype(np.float32)
    found = agreed(kernel({"a0": shape}, body, shape), {"a0": a})
    same(found, np.where(a > 0, a, np.float32(0)))


# --------------------------------------------------------------------------- casts


def casts(source: str, target: str, mode: str, a: Array) -> Array:
    body = [LOADS[0], f"u = pl.cast(a, pl.{target}, mode='{mode}')", STORE]
    program = kernel({"a0": f"[[16, 64], pl.{source}]"}, body, f"[[16, 64], pl.{target}]")
    return agreed(program, {"a0": a})


@pytest.mark.parametrize(
    ("target", "mode"),
    product(["INT16", "INT32", "FP16", "BF16", "FP8E4M3FN", "FP8E5M2"], CastMode),
    ids=str,
)
def test_every_rounding_of_a_cast_from_fp32(target: str, mode: CastMode):
    a = numbers("FP32", 12)
    a.flat[8:24] = np.arange(-8, 8) + 0.5
    found = casts("FP32", target, mode.name, a)
    rounding = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint}
    if target == "INT32" and mode.name in rounding:
        small = np.abs(a) < 1 << 20
        same(found[small], rounding[mode.name](a[small]))
    if target in ("FP16", "BF16") and mode.name == "rint":
        with np.errstate(over="ignore"):
            same(found, a.astype(NUMPY[target]))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("FP4", "FP8E4M3FN"),
        ("FP8E4M3FN", "BF16"),
        ("FP8E5M2", "FP16"),
        ("FP8E5M2", "FP8E4M3FN"),
        ("BF16", "FP4"),
    ],
)
def test_chains_of_casts_run(source: str, target: str):
    codes = np.arange(16 * 64).reshape(16, 64)
    a: Array = (codes % (16 if source == "FP4" else 256)).astype(np.uint8)
    if source == "BF16":
        a = ((codes - 512) / 64).astype(ml_dtypes.bfloat16)
    casts(source, target, "rint", a)


def test_fp4_becomes_fp8_exactly():
    codes = (np.arange(16 * 64) % 16).reshape(16, 64).astype(np.uint8)
    found = casts("FP4", "FP8E4M3FN", "rint", codes)
    wanted = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    same(found.view(ml_dtypes.float8_e4m3fn).astype(np.float32), wanted)


# --------------------------------------------------------------------------- windows, valid shapes


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 16),
    cols=st.integers(1, 64),
    row=st.integers(0, 16),
    col=st.integers(0, 32),
    dtype=st.sampled_from(["FP32", "BF16", "INT8"]),
)
def test_what_is_valid_of_a_window_is_worked_on(
    rows: int, cols: int, row: int, col: int, dtype: str
):
    body = [
        f"a = pl.load(a0, [{row}, {col}], [16, 64], [{rows}, {cols}])",
        "m = pl.cmps(a, 1, cmp_type=3)",
        "u = pl.sel(m, pl.add(a, a), pl.sub(a, 1))",
        f"out = pl.store(u, [{col % 3}, {row % 5}], out)",
    ]
    a = numbers(dtype, 13, (32, 96))
    a[~np.isfinite(a.astype(np.float32))] = 0
    program = kernel({"a0": f"[[32, 96], pl.{dtype}]"}, body, f"[[18, 68], pl.{dtype}]")
    found = agreed(program, {"a0": a})
    window = a[row : row + rows, col : col + cols]
    one = window.dtype.type(1)
    with np.errstate(over="ignore"):
        wanted = np.where(window <= one, window + window, window - one)
    place = found[col % 3 : col % 3 + rows, row % 5 : row % 5 + cols]
    same(place, wanted)


def test_a_block_takes_its_part_of_a_grid():
    text = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIV)
    def k(self, a: pl.Tensor{SHAPE}, out: pl.Out[pl.Tensor{SHAPE}]):
        i = pl.tile.get_block_idx()
        t = pl.load(a, [i * 4, 0], [4, 64])
        out = pl.store(pl.mul(t, 2.0), [i * 4, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor{SHAPE}, out: pl.Out[pl.Tensor{SHAPE}]):
        with pl.spmd(4):
            out = self.k(a, out)
        return out
"""
    program = scalebox.pl.parse(text)
    assert isinstance(program, Program)
    a = numbers("FP32", 14)
    found = scalebox.run(compiled(program), {"a": a}).outputs["out"]
    same(found, scalebox.interpret(program, {"a": a})["out"])
    same(found, a * 2)
