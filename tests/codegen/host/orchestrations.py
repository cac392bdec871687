"""Orchestrations by their lines, over a few kernels, and what they become."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Executable
from scalebox.codegen.host.tasks import TaskGraph, expand
from scalebox.ir.errors import UserError

Compile = Callable[[str], Executable]

OPERANDS = (
    "a: pl.Tensor[[32, 64], pl.FP8E4M3FN], sa: pl.Tensor[[32, 2], pl.FP8E8M0, pl.MX_A_ZZ], "
    "b: pl.Tensor[[64, 64], pl.FP8E4M3FN], sb: pl.Tensor[[2, 64], pl.FP8E8M0, pl.MX_B_NN]"
)
KERNELS = f"""
import scalebox.ir.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def tile(self, {OPERANDS}, c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
             row: pl.Scalar[pl.INDEX], col: pl.Scalar[pl.INDEX]):
        a0 = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        sa0 = pl.load(sa, [0, 0], [16, 2], target_memory=pl.Mem.Mat)
        b0 = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        sb0 = pl.load(sb, [0, 0], [2, 32], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx(a0, sa0, b0, sb0)
        c = pl.store(acc, [row, col], c)
        return c

    @pl.function(type=pl.FunctionType.InCore)
    def biased(self, {OPERANDS}, z: pl.Tensor[[1, 2048], pl.FP32],
               c: pl.Out[pl.Tensor[[32, 64], pl.FP32]], first: pl.Scalar[pl.INDEX]):
        a0 = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        sa0 = pl.load(sa, [0, 0], [32, 2], target_memory=pl.Mem.Mat)
        b0 = pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        sb0 = pl.load(sb, [0, 0], [2, 64], target_memory=pl.Mem.Mat)
        z0 = pl.load(z, [0, first], [1, 64], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx_bias(a0, sa0, b0, sb0, z0)
        c = pl.store(acc, [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.InCore)
    def both(self, {OPERANDS}, c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
             d: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
        a0 = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        sa0 = pl.load(sa, [0, 0], [32, 2], target_memory=pl.Mem.Mat)
        b0 = pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
        sb0 = pl.load(sb, [0, 0], [2, 64], target_memory=pl.Mem.Mat)
        acc = pl.matmul_mx(a0, sa0, b0, sb0)
        c = pl.store(acc, [0, 0], c)
        twice = pl.matmul_mx_acc(acc, a0, sa0, b0, sb0)
        d = pl.store(twice, [0, 0], d)
        return d, c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {OPERANDS}, c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
             d: pl.Out[pl.Tensor[[32, 64], pl.FP32]], n: pl.Scalar[pl.INDEX], t: pl.Scalar[pl.INT8]):
"""


def program(*lines: str) -> str:
    return KERNELS + "".join(f"        {line}\n" for line in lines)


def inputs(**scalars: int) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        "a": rng.integers(0, 0x70, (32, 64), dtype=np.uint8),
        "sa": rng.integers(120, 130, (32, 2), dtype=np.uint8),
        "b": rng.integers(0, 0x70, (64, 64), dtype=np.uint8),
        "sb": rng.integers(120, 130, (2, 64), dtype=np.uint8),
        "n": 3,
        "t": 100,
    } | scalars


def tasks_of(executable: Executable, given: Mapping[str, Any]) -> TaskGraph:
    host = executable.entry(None)
    scalars = {p.name: given[p.name] for p in host.params if not p.is_tensor}
    return expand(host, executable.kernels, scalars)


def refused(compiled: Compile, text: str) -> tuple[str, str, str | None]:
    with pytest.raises(UserError) as caught:
        compiled(text)
    assert caught.value.span is not None
    line = text.splitlines()[caught.value.span.line - 1].strip()
    return caught.value.message, line, caught.value.hint


SCALARS = ", d: pl.Out[pl.Tensor[[32, 64], pl.FP32]], n: pl.Scalar[pl.INDEX], t: pl.Scalar[pl.INT8]"
OTHER = f"""
    @pl.function(type=pl.FunctionType.{{kind}})
    def {{name}}(self, {OPERANDS}, c: pl.Out[pl.Tensor[[32, 64], pl.FP32]]{{more}}):
        {{body}}
        return c
"""
