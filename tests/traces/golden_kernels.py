"""The kernels of the golden traces, with their inputs: small, and between them all that there is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scalebox.ir import numerics
from scalebox.ir.binding import natural_type
from scalebox.ir.dtypes import E1M2, BlockScaledDType, DType, SimpleDType
from scalebox.ir.numerics.mxarray import MXArray

Codes = np.ndarray
NAN, UNIT = 255, 127

NAMES = {
    DType.E4M3: "FP8E4M3FN",
    DType.E5M2: "FP8E5M2",
    DType.E2M1: "FP4",
    E1M2: "FP4E1M2",
}


@dataclass(frozen=True, kw_only=True)
class GoldenKernel:
    """A kernel of which a trace is kept.

    Attributes:
        name: Of the trace.
        text: The program.
        inputs: Launch inputs.
        valid: How much of M, K and N the kernel uses.
        is_sensitive: Whether every scale within that must count: no NaN and no infinity hides any.
        machine: What is changed of the machine a5.
    """

    name: str
    text: str
    inputs: Mapping[str, Any]
    valid: tuple[int, int, int]
    is_sensitive: bool = True
    machine: Mapping[str, int] = field(default_factory=dict[str, int])


HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[{m}, {k}], pl.{a}],
        sa: pl.Tensor[[{m}, {k} // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[{k}, {n}], pl.{b}],
        sb: pl.Tensor[[{k} // 32, {n}], pl.FP8E8M0, pl.MX_B_NN],
        {more}c: pl.Out[pl.Tensor[[{m}, {n}], pl.{c}]],
    ):
"""

LOADS = """
        al = pl.load(a, [0, {at}], [{m}, {step}], [{vm}, {vk}], target_memory=pl.Mem.Mat)
        pa = pl.load(sa, [0, {g}], [{m}, {sg}], [{vm}, {vg}], target_memory=pl.Mem.Mat)
        bl = pl.load(b, [{at}, 0], [{step}, {n}], [{vk}, {vn}], target_memory=pl.Mem.Mat)
        pb = pl.load(sb, [{g}, 0], [{sg}, {n}], [{vg}, {vn}], target_memory=pl.Mem.Mat)
        at = pl.move(al, target_memory=pl.Mem.Left)
        pt = pl.move(pa, target_memory=pl.Mem.LeftScale)
        bt = pl.move(bl, target_memory=pl.Mem.Right)
        qt = pl.move(pb, target_memory=pl.Mem.RightScale)
"""

BIAS = """
        rl = pl.load(bias, [0, 0], [1, {n}], target_memory=pl.Mem.Mat)
        rt = pl.move(rl, target_memory=pl.Mem.Bias)
        acc = pl.matmul_mx_bias(at, pt, bt, qt, rt)
"""
PRODUCT = "        acc = pl.matmul_mx(at, pt, bt, qt)\n"
LOOP = "        for k in pl.pipeline({step}, {k}, {step}, stage=2):\n            g = k // 32\n"
ADDED = "            acc = pl.matmul_mx_acc(acc, at, pt, bt, qt)\n"
TWICE = """
        once = pl.store(acc, [0, 0], once)
        acc = pl.matmul_mx_acc(acc, at, pt, bt, qt)
"""


def gemm(
    m: int,
    k: int,
    n: int,
    a: SimpleDType,
    b: SimpleDType,
    *,
    c: str = "FP32",
    step: int = 0,
    bias: bool = False,
    twice: bool = False,
    valid: tuple[int, int, int] | None = None,
) -> str:
    """Return a matmul as text: `step` of k at a time, or only so much of it as is `valid`."""
    step = step or k
    vm, vk, vn = valid or (m, step, n)
    sizes = {"m": m, "k": k, "n": n, "step": step, "sg": step // 32}
    sizes |= {"vm": vm, "vk": vk, "vn": vn, "vg": -(-vk // 32)}
    more = f"bias: pl.Tensor[[1, {n}], pl.FP32],\n        " if bias else ""
    more += f"once: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]],\n        " if twice else ""
    text = HEAD.format(**sizes, a=NAMES[a], b=NAMES[b], c=c, more=more)
    text += LOADS.format(**sizes, at=0, g=0)
    text += BIAS.format(**sizes) if bias else PRODUCT
    if step < k:
        inner = LOADS.format(**sizes, at="k", g="g").replace("\n        ", "\n            ")
        text += LOOP.format(**sizes) + inner + ADDED
    text += TWICE if twice else ""
    text += "        c = pl.store(acc, [0, 0], c)\n"
    return text + ("        return once, c\n" if twice else "        return c\n")


SPMD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[32, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[32, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ):
        for i in pl.spmd(2, name_hint="rows"):
            row = i * 16
            at = pl.load(a, [row, 0], [16, 64])
            pt = pl.load(sa, [row, 0], [16, 2])
            bt = pl.load(b, [0, 0], [64, 32])
            qt = pl.load(sb, [0, 0], [2, 32])
            acc = pl.matmul_mx(at, pt, bt, qt)
            c = pl.store(acc, [row, 0], c)
        return c
"""

COMPOUND = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, a: pl.Tensor[[16, 64], pl.MXFP8_E5M2], b: pl.Tensor[[64, 32], pl.MXFP8_E5M2]):
        c = pl.matmul(a, b)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[16, 64], pl.MXFP8_E5M2], b: pl.Tensor[[64, 32], pl.MXFP8_E5M2]):
        c = self.gemm(a, b)
        return c
"""

AUTO_TILE = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[32, 64], pl.FP8E4M3FN],
        sa: pl.Tensor[[32, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        sb: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ):
        al = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        pa = pl.load(sa, [0, 0], [32, 2], target_memory=pl.Mem.Mat)
        bl = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        pb = pl.load(sb, [0, 0], [2, 32], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx(al, pa, bl, pb)
        c = pl.store(acc, [0, 0], c)
        return c
"""


def drawn(
    seed: int,
    sizes: tuple[int, int, int],
    a: SimpleDType,
    b: SimpleDType,
    *,
    codes_a: tuple[int, int] = (124, 131),
    codes_b: tuple[int, int] = (124, 131),
    edit: Callable[[Codes, Codes], None] | None = None,
    bias: bool = False,
) -> dict[str, Any]:
    """Return inputs with scale codes of these ranges; `edit` changes the scales in place."""
    rng = np.random.default_rng(seed)
    m, k, n = sizes
    left, right = (_elements(rng, shape, dtype) for shape, dtype in (((m, k), a), ((k, n), b)))
    sa = rng.integers(codes_a[0], codes_a[1] + 1, (m, k // 32)).astype(np.uint8)
    sb = rng.integers(codes_b[0], codes_b[1] + 1, (k // 32, n)).astype(np.uint8)
    if edit is not None:
        edit(sa, sb)
    boxed = {"sa": numerics.pack_scales_a(sa), "sb": numerics.pack_scales_b(sb)}
    e8m0 = natural_type(DType.E8M0)
    found: dict[str, Any] = {
        "a": left,
        "sa": boxed["sa"].reshape(sa.shape).view(e8m0),
        "b": right,
        "sb": boxed["sb"].reshape(sb.shape).view(e8m0),
    }
    if bias:
        found["bias"] = rng.standard_normal((1, n)).astype(np.float32)
    return found


def _elements(rng: np.random.Generator, shape: tuple[int, int], dtype: SimpleDType) -> np.ndarray:
    values = 2 * rng.standard_normal(shape).astype(np.float32)
    return numerics.encode(values, dtype).view(natural_type(dtype))


def _compound(seed: int, dtype: BlockScaledDType) -> dict[str, Any]:
    found = drawn(seed, (16, 64, 32), DType.E5M2, DType.E5M2)
    scales = numerics.unpack_scales_a(found["sa"].view(np.uint8).reshape(-1), (16, 2))
    other = numerics.unpack_scales_b(found["sb"].view(np.uint8).reshape(-1), (2, 32))
    return {
        "a": MXArray(found["a"].view(np.uint8), scales, dtype, 1),
        "b": MXArray(found["b"].view(np.uint8), other, dtype, 0),
    }


def _nan_scales(sa: Codes, sb: Codes) -> None:
    sa[3, 1], sb[0, 7], sb[1, 30] = NAN, NAN, NAN


def _large_scales(sa: Codes, sb: Codes) -> None:
    sa[2:5], sb[:, 9:12] = 254, 250


def _matmul(
    name: str,
    a: SimpleDType,
    b: SimpleDType,
    seed: int,
    *,
    sizes: tuple[int, int, int] = (16, 64, 32),
    is_sensitive: bool = True,
    codes_a: tuple[int, int] = (124, 131),
    codes_b: tuple[int, int] = (124, 131),
    edit: Callable[[Codes, Codes], None] | None = None,
    **options: Any,
) -> GoldenKernel:
    return GoldenKernel(
        name=name,
        text=gemm(*sizes, a, b, **options),
        inputs=drawn(
            seed,
            sizes,
            a,
            b,
            codes_a=codes_a,
            codes_b=codes_b,
            edit=edit,
            bias=options.get("bias", False),
        ),
        valid=options.get("valid") or sizes,
        is_sensitive=is_sensitive,
    )


E4M3, E5M2, E2M1 = DType.E4M3, DType.E5M2, DType.E2M1
LONG = (16, 128, 32)

# fmt: off
KERNELS = (
    _matmul("e4m3_k_loop",           E4M3, E4M3, 1, sizes=LONG, step=64),
    _matmul("e5m2",                  E5M2, E5M2, 2),
    _matmul("e4m3_e5m2_fp16",        E4M3, E5M2, 3, c="FP16"),
    _matmul("e5m2_e4m3_bf16",        E5M2, E4M3, 4, c="BF16"),
    _matmul("e2m1",                  E2M1, E2M1, 5, sizes=LONG),
    _matmul("e1m2",                  E1M2, E1M2, 6),
    _matmul("e2m1_e1m2_tails",       E2M1, E1M2, 7, valid=(11, 42, 20)),
    _matmul("e1m2_e2m1_k_loop_fp16", E1M2, E2M1, 8, sizes=LONG, c="FP16", step=64),
    _matmul("bias_bf16",             E4M3, E4M3, 9, c="BF16", bias=True),
    _matmul("accumulate",            E4M3, E4M3, 10, twice=True),
    _matmul("nan_scale",             E4M3, E4M3, 11, edit=_nan_scales, is_sensitive=False),
    _matmul("subnormal_scale",       E4M3, E4M3, 12, codes_a=(0, 4), codes_b=(119, 127)),
    _matmul("overflow",              E5M2, E5M2, 13, edit=_large_scales, is_sensitive=False),
    _matmul("tails",                 E4M3, E4M3, 14, sizes=LONG, valid=(13, 75, 27)),
    GoldenKernel(name="spmd", text=SPMD, valid=(32, 64, 32),
                 inputs=drawn(15, (32, 64, 32), E4M3, E4M3)),
    GoldenKernel(name="compound", text=COMPOUND, valid=(16, 64, 32),
                 inputs=_compound(16, DType.MXFP8_E5M2)),
    GoldenKernel(name="auto_tile", text=AUTO_TILE, valid=(32, 64, 32),
                 inputs=drawn(17, (32, 64, 32), E4M3, E4M3),
                 machine={"l0a_bytes": 1024, "l0b_bytes": 2048, "l0c_bytes": 2048}),
)
# fmt: on
