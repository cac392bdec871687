"""Products without scales, and of single rows, in kernels: tails of any size, sums over a loop, biases."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.ir.errors import IRValueError
from scalebox.ir.interp import interpret_program

from .one_kernel import kernel, outputs

Array = npt.NDArray[Any]
KINDS: dict[str, Any] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FP8E5M2": ml_dtypes.float8_e5m2,
    "INT8": np.int8,
}
PAIRS = [
    ("FP32", "FP32"), ("FP16", "FP16"), ("BF16", "BF16"), ("FP8E4M3FN", "FP8E5M2"),
    ("FP8E5M2", "FP8E4M3FN"), ("INT8", "INT8"),
]  # fmt: skip


def whole_numbers(seed: int, shape: tuple[int, int], dtype: str) -> Array:
    """Return small integers, of which every sum of products is exact in float32."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(KINDS[dtype])


def product(a: Array, b: Array) -> Array:
    return a.astype(np.float64) @ b.astype(np.float64)


def poisoned(whole: Array, rows: int, columns: int) -> Array:
    out = np.full_like(whole, 77 if whole.dtype == np.int8 else np.nan)
    out[:rows, :columns] = whole[:rows, :columns]
    return out


@pytest.mark.parametrize(("m", "k", "n"), [(32, 64, 32), (17, 50, 15), (1, 33, 31)])
@pytest.mark.parametrize(("lhs", "rhs"), PAIRS)
def test_a_product_uses_what_is_valid_only(lhs: str, rhs: str, m: int, k: int, n: int) -> None:
    result = "INT32" if lhs == "INT8" else "FP32"
    program = kernel(
        f"a: pl.Tensor[[32, 64], pl.{lhs}], b: pl.Tensor[[64, 32], pl.{rhs}], "
        f"bias: pl.Tensor[[1, 32], pl.{result}], c: pl.Out[pl.Tensor[[32, 32], pl.{result}]], "
        f"d: pl.Out[pl.Tensor[[32, 32], pl.{result}]], e: pl.Out[pl.Tensor[[32, 32], pl.{result}]]",
        f"""
x = pl.load(a, [0, 0], [32, 64], valid_shape=[{m}, {k}])
y = pl.load(b, [0, 0], [64, 32], valid_shape=[{k}, {n}])
z = pl.matmul_bias(x, y, pl.load(bias, [0, 0], [1, 32], valid_shape=[1, {n}]))
d = pl.store(z, [0, 0], d)
s = pl.matmul_acc(z, x, y)
e = pl.store(s, [0, 0], e)
c = pl.store(pl.matmul(x, y), [0, 0], c)
return c, d, e""",
    )
    a, b = whole_numbers(1, (32, 64), lhs), whole_numbers(2, (64, 32), rhs)
    bias = np.arange(32, dtype=np.int32 if result == "INT32" else np.float32)[None] - 9
    given = {"a": poisoned(a, m, k), "b": poisoned(b, k, n), "bias": bias}
    found = outputs(program, given)
    once = product(a[:m, :k], b[:k, :n])
    for name, wanted in (
        ("c", once), ("d", once + bias[:, :n]), ("e", 2 * once + bias[:, :n]),
    ):  # fmt: skip
        assert found[name].dtype == bias.dtype
        assert (found[name][:m, :n] == wanted).all(), name
        assert not found[name][m:].any()
        assert not found[name][:, n:].any()


LOOP = """
acc = pl.create_tile([16, 32], pl.FP32, target_memory=pl.Mem.Acc)
for k in pl.range(0, 128, 32):
    x = pl.load(a, [0, k], [16, 32])
    y = pl.load(b, [k, 0], [32, 32])
    acc = pl.matmul_acc(acc, x, y, init_cond=(k == 0))
c = pl.store(acc, [0, 0], c)
return c"""


def test_a_sum_over_a_loop_begins_where_its_condition_holds() -> None:
    program = kernel(
        "a: pl.Tensor[[16, 128], pl.BF16], b: pl.Tensor[[128, 32], pl.BF16], "
        "c: pl.Out[pl.Tensor[[16, 32], pl.FP32]]",
        LOOP,
    )
    a, b = whole_numbers(3, (16, 128), "BF16"), whole_numbers(4, (128, 32), "BF16")
    assert (outputs(program, {"a": a, "b": b})["c"] == product(a, b)).all()


def test_the_order_of_summation_is_the_one_asked_for() -> None:
    program = kernel(
        "a: pl.Tensor[[16, 16], pl.FP16], b: pl.Tensor[[16, 16], pl.FP16], "
        "c: pl.Out[pl.Tensor[[16, 16], pl.FP32]]",
        "z = pl.matmul(pl.load(a, [0, 0], [16, 16]), pl.load(b, [0, 0], [16, 16]))\n"
        "c = pl.store(z, [0, 0], c)\nreturn c",
    )
    a, b = np.zeros((16, 16), np.float16), np.zeros((16, 16), np.float16)
    a[0, :3], b[:3, 0] = [4096, 1, -4096], [4096, 1, 4096]
    assert interpret_program(program, {"a": a, "b": b})["c"][0, 0] == 1.0
    assert interpret_program(program, {"a": a, "b": b}, sum="sequential")["c"][0, 0] == 0.0


@pytest.mark.parametrize(("lhs", "rhs"), PAIRS)
def test_a_row_is_multiplied_with_a_matrix(lhs: str, rhs: str) -> None:
    result = "INT32" if lhs == "INT8" else "FP32"
    program = kernel(
        f"a: pl.Tensor[[1, 64], pl.{lhs}], b: pl.Tensor[[64, 32], pl.{rhs}], "
        f"bias: pl.Tensor[[1, 32], pl.{result}], c: pl.Out[pl.Tensor[[3, 32], pl.{result}]]",
        """
x = pl.load(a, [0, 0], [1, 64], valid_shape=[1, 50])
y = pl.load(b, [0, 0], [64, 32], valid_shape=[50, 32])
c = pl.store(pl.gemv(x, y, acc_phase="partial"), [0, 0], c)
z = pl.gemv_bias(x, y, pl.load(bias, [0, 0], [1, 32]))
c = pl.store(z, [1, 0], c)
c = pl.store(pl.gemv_acc(z, x, y, "final"), [2, 0], c)
return c""",
    )
    a, b = whole_numbers(5, (1, 64), lhs), whole_numbers(6, (64, 32), rhs)
    bias = np.arange(32, dtype=np.int32 if result == "INT32" else np.float32)[None]
    found = outputs(program, {"a": poisoned(a, 1, 50), "b": poisoned(b, 50, 32), "bias": bias})["c"]
    once = product(a[:, :50], b[:50])
    assert (found == np.vstack([once, once + bias, 2 * once + bias])).all()


def test_a_block_scaled_row_is_multiplied_with_a_matrix(
    oracle: Callable[..., npt.NDArray[np.float32]],
) -> None:
    program = kernel(
        "a: pl.Tensor[[1, 128], pl.FP8E4M3FN], sa: pl.Tensor[[1, 4], pl.FP8E8M0], "
        "b: pl.Tensor[[128, 32], pl.FP8E4M3FN], sb: pl.Tensor[[4, 32], pl.FP8E8M0, pl.MX_B_NN], "
        "bias: pl.Tensor[[1, 32], pl.FP32], c: pl.Out[pl.Tensor[[3, 32], pl.FP32]]",
        """
x = pl.load(a, [0, 0], [1, 128], valid_shape=[1, 110])
s = pl.load(sa, [0, 0], [1, 4])
y = pl.load(b, [0, 0], [128, 32], valid_shape=[110, 32])
t = pl.load(sb, [0, 0], [4, 32])
c = pl.store(pl.gemv_mx(x, s, y, t), [0, 0], c)
z = pl.gemv_mx_bias(x, s, y, t, pl.load(bias, [0, 0], [1, 32]))
c = pl.store(z, [1, 0], c)
c = pl.store(pl.gemv_mx_acc(z, x, s, y, t), [2, 0], c)
return c""",
    )
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 0x7F, shape).astype(np.uint8) for shape in ((1, 128), (128, 32)))
    sa, sb = (rng.integers(110, 140, shape).astype(np.uint8) for shape in ((1, 4), (4, 32)))
    bias = rng.standard_normal((1, 32)).astype(np.float32)
    boxes = scalebox.ir.numerics.pack_scales_b(sb).reshape(sb.shape)
    a[:, 110:], b[110:] = 0x7F, 0x7F
    found = outputs(program, {"a": a, "sa": sa, "b": b, "sb": boxes, "bias": bias})["c"]
    x, y = a[:, :110], b[:110]
    biased = oracle(x, sa, y, sb, start=bias)
    wanted = [oracle(x, sa, y, sb), biased, oracle(x, sa, y, sb, start=biased)]
    assert found.tobytes() == np.vstack(wanted).tobytes()


def test_valid_extents_that_only_the_run_knows_are_checked_there() -> None:
    program = kernel(
        "a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], k: pl.Scalar[pl.INDEX]",
        "z = pl.matmul(pl.load(a, [0, 0], [16, 64], valid_shape=[16, k]), "
        "pl.load(b, [0, 0], [64, 32]))",
    )
    given = {"a": np.zeros((16, 64), np.float16), "b": np.zeros((64, 32), np.float16), "k": 63}
    with pytest.raises(IRValueError, match="but lhs has 63 and rhs has 64"):
        interpret_program(program, given)
