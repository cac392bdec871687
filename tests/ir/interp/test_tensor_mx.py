"""Whole tensors multiplied, cut and put together, and numbers quantised, against second opinions."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir import language as pl
from scalebox.ir import numerics
from scalebox.ir.core import Program
from scalebox.ir.dtypes import BlockScaledDType, DType
from scalebox.ir.errors import IRValueError
from scalebox.ir.interp import interpret_program
from scalebox.ir.numerics import pack_scales_a, pack_scales_b

from .block_fractions import in_fractions

Arrays = dict[str, Any]
M, K, N = 16, 64, 32

PRODUCTS = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.{kind})
    def f(self, a: pl.Tensor[[16, 64], pl.FP8E4M3FN], sa: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
          b: pl.Tensor[[64, 32], pl.FP8E5M2], sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
          bias: pl.Tensor[[1, 32], pl.FP32]):
        c = pl.matmul_mx(a, sa, b, sb)
        d = pl.matmul_mx_acc(c, a, sa, b, sb)
        e = pl.tensor.matmul_mx_bias(a, sa, b, sb, bias)
        return c, d, e
"""


def program(text: str, **fields: Any) -> Program:
    made = pl.parse(text.format(**fields) if fields else text)
    assert isinstance(made, Program)
    return made


@pytest.fixture(name="given")
def _given() -> Arrays:
    rng = np.random.default_rng(7)
    a = rng.integers(0, 0x7F, (M, K), np.uint8) | (rng.integers(0, 2, (M, K), np.uint8) << 7)
    b = rng.integers(0, 0x7C, (K, N), np.uint8) | (rng.integers(0, 2, (K, N), np.uint8) << 7)
    return {
        "a": a,
        "sa": rng.integers(100, 140, (M, K // 32)).astype(np.uint8),
        "b": b,
        "sb": rng.integers(100, 140, (K // 32, N)).astype(np.uint8),
        "bias": rng.standard_normal((1, N)).astype(np.float32),
    }


def boxed(given: Arrays) -> Arrays:
    packed = {
        "sa": pack_scales_a(given["sa"]).reshape(given["sa"].shape),
        "sb": pack_scales_b(given["sb"]).reshape(given["sb"].shape),
    }
    return {**given, **packed}


@pytest.mark.parametrize(
    ("kind", "order"), [("InCore", "group"), ("Orchestration", "group"), ("InCore", "sequential")]
)
def test_products_are_those_of_fractions(
    kind: str, order: str, given: Arrays, oracle: Callable[..., npt.NDArray[np.float32]]
) -> None:
    found = interpret_program(program(PRODUCTS, kind=kind), boxed(given), sum=order)
    arrays = [given[name] for name in ("a", "sa", "b", "sb")]
    kwargs: dict[str, Any] = {
        "dtypes": (DType.E4M3, DType.E5M2),
        "group": 32 if order == "group" else 1,
    }
    product = oracle(*arrays, **kwargs)
    total = oracle(*arrays, **kwargs, start=product)
    biased = oracle(*arrays, **kwargs, start=np.repeat(given["bias"], M, axis=0))
    for name, wanted in (("c", product), ("d", total), ("e", biased)):
        assert found[name].tobytes() == wanted.tobytes(), name


def test_data_may_lie_in_columns(given: Arrays) -> None:
    text = PRODUCTS.replace(
        "b: pl.Tensor[[64, 32], pl.FP8E5M2]",
        "b: pl.Tensor[[64, 32], pl.FP8E5M2, pl.TensorView(stride=[1, 64], layout=pl.TensorLayout.DN)]",
    )
    rows = interpret_program(program(PRODUCTS, kind="InCore"), boxed(given))
    columns = interpret_program(program(text, kind="InCore"), boxed(given))
    assert rows["d"].tobytes() == columns["d"].tobytes()


# --------------------------------------------------------------------------- quantising

QUANTISE = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[{rows}, 64], pl.{source}]):
        q, s = pl.quant_mx(x, group_axis={axis}, dtype=pl.{target}, rule="{rule}")
        return q, s
"""
SOURCES = {"FP32": np.float32, "BF16": ml_dtypes.bfloat16, "FP16": np.float16}
TARGETS = {
    "FP8E4M3FN": (ml_dtypes.float8_e4m3fn, 448.0, 8),
    "FP4": (ml_dtypes.float4_e2m1fn, 6.0, 2),
}
CASES = [
    (source, target, axis, rule)
    for target in TARGETS
    for source in SOURCES
    for axis in (0, 1)
    for rule in ("floor", "nv")
    if (source, target) != ("FP32", "FP4")
]


def by_hand(
    x: npt.NDArray[Any], target: str, rule: str
) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Quantise rows in groups of 32 by the published rules, in Python numbers and ml_dtypes."""
    kind, largest, emax = TARGETS[target]
    codes = np.zeros(x.shape, kind)
    scales = np.zeros((x.shape[0], x.shape[1] // 32), np.uint8)
    for m in range(x.shape[0]):
        for g in range(x.shape[1] // 32):
            group = x[m, 32 * g : 32 * g + 32].astype(np.float64)
            amax = np.abs(group).max()
            if rule == "floor":
                code = 0 if amax == 0 else max(0, np.frexp(amax)[1] - 1 - emax + 127)
            else:
                ratio = np.float32(amax * np.float64(np.float32(1) / np.float32(largest)))
                mantissa, exponent = np.frexp(ratio)
                code = 0 if amax == 0 else max(0, exponent - 1 + 127 + (mantissa > 0.5))
            scaled = np.clip(group / 2.0 ** (code - 127), -largest, largest)
            codes[m, 32 * g : 32 * g + 32] = scaled.astype(np.float32).astype(kind)
            scales[m, g] = code
    return codes, scales


@pytest.mark.parametrize(("source", "target", "axis", "rule"), CASES)
def test_quantised_numbers_are_those_of_the_published_rules(
    source: str, target: str, axis: int, rule: str
) -> None:
    rng = np.random.default_rng(5)
    spread = np.exp2(rng.integers(-10, 10, (64, 1)))
    x = (rng.standard_normal((64, 64)) * spread).astype(SOURCES[source])
    x[3, :32] = 0
    text = program(QUANTISE, rows=64, source=source, axis=axis, target=target, rule=rule)
    found = interpret_program(text, {"x": x})
    codes, scales = by_hand(x, target, rule)
    if axis == 0:
        codes, scales = codes.T, scales.T
        packed = pack_scales_b(scales)
    else:
        packed = pack_scales_a(scales)
    np.testing.assert_array_equal(found["q"].view(np.uint8), codes.view(np.uint8))
    np.testing.assert_array_equal(found["s"].view(np.uint8).reshape(-1), packed)


@pytest.mark.parametrize("rule", ["floor", "nv"])
def test_groups_that_are_not_finite(rule: str) -> None:
    x = np.ones((16, 64), np.float32)
    x[0, 5], x[1, 40] = np.nan, np.inf
    text = program(QUANTISE, rows=16, source="FP32", axis=1, target="FP8E4M3FN", rule=rule)
    found = interpret_program(text, {"x": x})
    scales = numerics.unpack_scales_a(found["s"].view(np.uint8).reshape(-1), (16, 2))
    assert scales[0, 0] == 255
    assert scales[1, 1] == (255 if rule == "floor" else 254)
    assert np.isnan(found["q"][0, :32].astype(np.float32)).all()
    assert (found["q"][2].view(np.uint8) == found["q"][3].view(np.uint8)).all()


CHAIN = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def quantise(self, x: pl.Tensor[[64, 256], pl.FP32], q: pl.Out[pl.Tensor[[64, 256], pl.FP8E4M3FN]],
                 s: pl.Out[pl.Tensor[[1, 512], pl.FP8E8M0]]):
        quant, scale = pl.quant_mx(pl.load(x, [0, 0], [64, 256]), layout=pl.MX_A_ZZ)
        q = pl.store(quant, [0, 0], q)
        s = pl.store(scale, [0, 0], s, [1, 512])
        return q, s

    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, q: pl.Tensor[[64, 256], pl.FP8E4M3FN], s: pl.Tensor[[64, 8], pl.FP8E8M0, pl.MX_A_ZZ],
             b: pl.Tensor[[256, 64], pl.FP8E4M3FN], sb: pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN]):
        return pl.matmul_mx(q, s, b, sb)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 256], pl.FP32], b: pl.Tensor[[256, 64], pl.FP8E4M3FN],
             sb: pl.Tensor[[1, 512], pl.FP8E8M0]):
        q = pl.create_tensor([64, 256], dtype=pl.FP8E4M3FN)
        s = pl.create_tensor([1, 512], dtype=pl.FP8E8M0)
        q, s = self.quantise(x, q, s)
        zz = pl.tensor.view(s, [64, 8], layout=pl.MX_A_ZZ)
        c = self.gemm(q, zz, b, pl.tensor.view(sb, [8, 64], layout=pl.MX_B_NN))
        return c
"""


def test_scales_are_stored_as_a_row_of_boxes() -> None:
    """Every row and group has a code of its own; the product gives the numbers back exactly."""
    row, group = np.arange(64)[:, None], np.arange(8)[None, :]
    code = 100 + ((row // 16) * 13 + (row % 16) * 7 + group * 3) % 64
    x = np.repeat(np.exp2(code.astype(np.float64) - 127), 32, axis=1).astype(np.float32)
    b = np.zeros((256, 64), ml_dtypes.float8_e4m3fn)
    b[np.arange(256), np.arange(256) // 32] = 1
    sb = np.full((1, 512), 127, np.uint8)
    found = interpret_program(program(CHAIN), {"x": x, "b": b, "sb": sb})["c"]
    np.testing.assert_array_equal(found, x @ b.astype(np.float32))


# --------------------------------------------------------------------------- windows

WINDOWS = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a: pl.Tensor[[64, 128], pl.{dtype}], b: pl.Tensor[[128, 32], pl.{dtype}],
          k: pl.Scalar[pl.INDEX]):
        c = pl.matmul(pl.slice(a, [16, 64], [32, k]), pl.slice(b, [64, 32], [k, 0]))
        return c
"""


@pytest.mark.parametrize(
    "dtype", [DType.MXFP8_E4M3, DType.MXFP6_E2M3, DType.MXINT8, DType.MXFP4, DType.NVFP4]
)
def test_windows_of_compound_tensors(dtype: BlockScaledDType) -> None:
    rng = np.random.default_rng(9)
    a = numerics.quantize(rng.standard_normal((64, 128)), dtype, axis=1)
    b = numerics.quantize(rng.standard_normal((128, 32)), dtype, axis=0)
    found = interpret_program(program(WINDOWS, dtype=dtype.name), {"a": a, "b": b, "k": 64})["c"]
    block = 16 if dtype is DType.NVFP4 else 32
    part = numerics.MXArray(
        a.elements[32:48, 64:], a.scales[32:48, 64 // block :], dtype, 1, a.tensor_scale
    )
    other = numerics.MXArray(b.elements[64:], b.scales[64 // block :], dtype, 0, b.tensor_scale)
    assert found.tobytes() == in_fractions(part, other).tobytes()
    assert found.tobytes() == numerics.matmul(part, other).tobytes()


def test_a_window_that_cuts_a_block_while_it_runs() -> None:
    a = numerics.quantize(np.ones((64, 128)), DType.MXFP4, axis=1)
    b = numerics.quantize(np.ones((128, 32)), DType.MXFP4, axis=0)
    with pytest.raises(IRValueError, match="multiples of 32, not 16 and 64"):
        interpret_program(program(WINDOWS, dtype="MXFP4"), {"a": a, "b": b, "k": 16})
    with pytest.raises(IRValueError, match=r"^tensor\.slice: the window must lie within"):
        interpret_program(program(WINDOWS, dtype="MXFP4"), {"a": a, "b": b, "k": 96})


def test_a_window_is_what_the_tensor_held_when_it_was_cut() -> None:
    made = program(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.InOut[pl.Tensor[[32, 32], pl.FP32]], y: pl.Tensor[[32, 32], pl.FP32],
          out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
        before = pl.slice(x, [16, 32], [16, 0])
        x = pl.assemble(x, y, [0, 0])
        out = pl.assemble(out, before, [0, 0])
        out = pl.assemble(out, pl.slice(x, [16, 32], [16, 0]), [16, 32])
        return x, out
"""
    )
    x, y = np.arange(1024, dtype=np.float32).reshape(32, 32), np.full((32, 32), 7, np.float32)
    found = interpret_program(made, {"x": x, "y": y})
    wanted = np.zeros((32, 64), np.float32)
    wanted[:16, :32], wanted[16:, 32:] = x[16:], 7
    np.testing.assert_array_equal(found["out"], wanted)
    np.testing.assert_array_equal(found["x"], y)


SUM = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.{kind})
    def f(self, acc: pl.Tensor[[16, 32], pl.FP32], a: pl.Tensor[[16, 96], pl.{dtype}],
          b: pl.Tensor[[96, 32], pl.{dtype}]):
        c = pl.matmul_acc(acc, a, b)
        d = pl.matmul(a[:, 0:32], b[0:32])
        for k in pl.range(32, 96, 32):
            d = pl.matmul_acc(d, a[:, k : k + 32], b[k : k + 32])
        return c, d
"""


@pytest.mark.parametrize("dtype", [DType.MXFP8_E4M3, DType.MXINT8, DType.NVFP4])
def test_sums_of_compound_products(dtype: BlockScaledDType) -> None:
    rng = np.random.default_rng(4)
    a = numerics.quantize(rng.standard_normal((16, 96)), dtype, axis=1)
    b = numerics.quantize(rng.standard_normal((96, 32)), dtype, axis=0)
    acc = rng.standard_normal((16, 32)).astype(np.float32)
    made = program(SUM, kind="InCore", dtype=dtype.name)
    found = interpret_program(made, {"acc": acc, "a": a, "b": b})
    # Blocks ascend, one after another, whichever way K is cut.
    assert found["d"].tobytes() == numerics.matmul(a, b).tobytes()
    assert found["d"].tobytes() == in_fractions(a, b).tobytes()
    assert found["c"].tobytes() == in_fractions(a, b, start=acc).tobytes()
