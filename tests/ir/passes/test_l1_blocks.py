"""Products whose operands L1 does not hold are cut into blocks, of any size, and no bit changes."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import IRValueError
from scalebox.ir.target import Target, load_target

from .corpus import assert_same_bits, interpret

NUMPY: dict[str, Any] = {
    "BF16": ml_dtypes.bfloat16,
    "FP16": np.float16,
    "FP32": np.float32,
    "INT8": np.int8,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
}
PLAIN = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[{m}, {k}], pl.{dtype}], b: pl.Tensor[[{k}, {n}], pl.{dtype}],
          z: pl.Tensor[[1, {n}], pl.{sums}], c: pl.Out[pl.Tensor[[{m}, {n}], pl.{sums}]]):
        l = pl.load(a, [0, 0], [{pm}, {pk}], [{m}, {k}]{place})
        r = pl.load(b, [0, 0], [{pk}, {pn}], [{k}, {n}]{place})
        y = pl.load(z, [0, 0], [1, {pn}], [1, {n}])
        x = pl.{product}(l, r{bias})
        c = pl.store(x, [0, 0], c)
        return c
"""
SCALED = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[{pm}, {pk}], pl.FP8E4M3FN], sa: pl.Tensor[[{pm}, {groups}], pl.FP8E8M0{zz}],
          b: pl.Tensor[[{pk}, {pn}], pl.FP8E4M3FN], sb: pl.Tensor[[{groups}, {pn}], pl.FP8E8M0, pl.MX_B_NN],
          z: pl.Tensor[[1, {pn}], pl.FP32], c: pl.Out[pl.Tensor[[{pm}, {pn}], pl.FP32]]):
        l = pl.load(a, [0, 0], [{pm}, {pk}], [{m}, {k}])
        p = pl.load(sa, [0, 0], [{pm}, {groups}], [{m}, {valid}], target_memory=pl.Mem.Mat)
        r = pl.load(b, [0, 0], [{pk}, {pn}], [{k}, {n}])
        q = pl.load(sb, [0, 0], [{groups}, {pn}], [{valid}, {n}], target_memory=pl.Mem.Mat)
        y = pl.load(z, [0, 0], [1, {pn}], [1, {n}])
        x = pl.{product}_bias(l, p, r, q, y)
        c = pl.store(x, [0, 0], c)
        return c
"""


def small(**fields: int) -> Target:
    """Return the machine with smaller memories."""
    return load_target("a5").with_settings({k: str(v) for k, v in fields.items()}, source="test")


def up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def plain(m: int, k: int, n: int, dtype: str, *, biased: bool, place: str = "") -> Program:
    """Return a product without scales; of one row it is a gemv."""
    product = "gemv" if m == 1 else "matmul"
    text = PLAIN.format(
        m=m, k=k, n=n, dtype=dtype, sums="INT32" if dtype == "INT8" else "FP32",
        pm=1 if m == 1 else up(m, 16), pk=up(k, 32), pn=up(n, 32), place=place,
        product=product + ("_bias" if biased else ""), bias=", y" if biased else "",
    )  # fmt: skip
    made = pl.parse(text)
    assert isinstance(made, Program)
    return made


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> np.ndarray:
    if dtype == "INT8":
        return rng.integers(-128, 128, shape).astype(np.int8)
    return rng.standard_normal(shape).astype(NUMPY[dtype])


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(33, 70, 50), (80, 100, 17), (16, 500, 40), (100, 31, 150), (1, 300, 64), (1, 64, 301)],
)
def test_a_product_of_any_size_keeps_its_bits(
    m: int, k: int, n: int, dtype: str, biased: bool
) -> None:
    made = plain(m, k, n, dtype, biased=biased)
    rng = np.random.default_rng(m + k + n)
    sums = np.int32 if dtype == "INT8" else np.float32
    inputs = {
        "a": numbers(rng, dtype, m, k),
        "b": numbers(rng, dtype, k, n),
        "z": rng.integers(-9, 9, (1, n)).astype(sums),
    }
    l1 = 4096 if m > 1 else 8192
    l1 *= 2 if dtype == "FP32" else 1
    target = small(l1_bytes=l1, l0a_bytes=4096, l0b_bytes=4096, l0c_bytes=8192)
    by_name = plain(m, k, n, dtype, biased=biased, place=", target_memory=pl.Mem.Mat")
    with pytest.raises(IRValueError, match="bytes of L1"):
        scalebox.compile(by_name, machine=target)
    executable = scalebox.compile(made, machine=target)
    found = scalebox.run(executable, inputs, machine=target).outputs
    assert_same_bits(found, interpret(made, "k", inputs))


@pytest.mark.parametrize(
    ("m", "k", "n"), [(16, 600, 64), (70, 130, 90), (64, 100, 200), (1, 1500, 64), (1, 200, 300)]
)
def test_a_block_scaled_product_of_any_size_keeps_its_bits(m: int, k: int, n: int) -> None:
    rows = 1 if m == 1 else up(m, 16)
    sizes = {"m": m, "k": k, "n": n, "pm": rows, "pk": up(k, 64), "pn": up(n, 32)}
    groups, valid = up(k, 64) // 32, -(-k // 32)
    kind = {"product": "gemv_mx", "zz": ""} if m == 1 else {
        "product": "matmul_mx", "zz": ", pl.MX_A_ZZ"
    }  # fmt: skip
    made = pl.parse(SCALED.format(**sizes, groups=groups, valid=valid, **kind))
    assert isinstance(made, Program)
    rng = np.random.default_rng(m + k + n)
    inputs = {
        "a": numbers(rng, "FP8E4M3FN", rows, up(k, 64)),
        "sa": rng.integers(120, 135, (rows, groups)).astype(np.uint8),
        "b": numbers(rng, "FP8E4M3FN", up(k, 64), up(n, 32)),
        "sb": rng.integers(120, 135, (groups, up(n, 32))).astype(np.uint8),
        "z": rng.standard_normal((1, up(n, 32))).astype(np.float32),
    }
    l1 = 49152 if m == 1 else 12288
    target = small(l1_bytes=l1, l0a_bytes=16384, l0b_bytes=32768, l0c_bytes=8192)
    executable = scalebox.compile(made, machine=target)
    found = scalebox.run(executable, inputs, machine=target).outputs
    golden = interpret(made, "k", inputs)
    assert_same_bits({"c": found["c"][:m, :n]}, {"c": golden["c"][:m, :n]})


def test_a_tensor_product_that_l1_does_not_hold_runs() -> None:
    made = pl.parse("""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[300, 500], pl.BF16], b: pl.Tensor[[500, 200], pl.BF16]) -> pl.Tensor[[300, 200], pl.FP32]:
        return pl.matmul(a, b, out_dtype=pl.FP32)
""")
    assert isinstance(made, Program)
    rng = np.random.default_rng(7)
    inputs = {"a": numbers(rng, "BF16", 300, 500), "b": numbers(rng, "BF16", 500, 200)}
    assert_same_bits(scalebox.run(made, inputs).outputs, interpret(made, "k", inputs))


def test_what_the_kernel_loaded_to_mat_itself_is_left_alone() -> None:
    made = plain(300, 500, 200, "BF16", biased=False, place=", target_memory=pl.Mem.Mat")
    with pytest.raises(IRValueError, match="Mat buffer usage must be at most the 524288 bytes"):
        scalebox.compile(made)
