"""Kernels by size and dtype, and the way of one through every room."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox.app.result import Result
from scalebox.ir.core import Program

from ..codegen.select.tails import boxed_a, boxed_b

Array = npt.NDArray[Any]


def gemm_text(
    m: int,
    k: int,
    n: int,
    *,
    a: str = "FP8E4M3FN",
    b: str = "FP8E4M3FN",
    c: str = "FP32",
    step: int | None = None,
    bias: bool = False,
    valid: tuple[int, int, int] | None = None,
) -> str:
    """Return a kernel that multiplies m x k by k x n, `step` of k at a time, as a kernel file.

    With `valid`, only so much of m, k and n is loaded and stored; what lies beyond is padding.
    """
    step = k if step is None else step
    vm, vk, vn = valid if valid is not None else (m, step, n)
    groups, vg = step // 32, -(-vk // 32)

    def operands(at_k: str, at_g: str, indent: str) -> str:
        loads = (
            f"al = pl.load(a, [0, {at_k}], [{m}, {step}], [{vm}, {vk}], target_memory=pl.Mem.Mat)",
            f"pl_ = pl.load(sa, [0, {at_g}], [{m}, {groups}], [{vm}, {vg}], "
            "target_memory=pl.Mem.Mat)",
            f"bl = pl.load(b, [{at_k}, 0], [{step}, {n}], [{vk}, {vn}], target_memory=pl.Mem.Mat)",
            f"ql = pl.load(sb, [{at_g}, 0], [{groups}, {n}], [{vg}, {vn}], "
            "target_memory=pl.Mem.Mat)",
            "at = pl.move(al, target_memory=pl.Mem.Left)",
            "pt = pl.move(pl_, target_memory=pl.Mem.LeftScale)",
            "bt = pl.move(bl, target_memory=pl.Mem.Right)",
            "qt = pl.move(ql, target_memory=pl.Mem.RightScale)",
        )
        return "\n".join(indent + line for line in loads)

    row = "        bias: pl.Tensor[[1, N], pl.FP32],\n" if bias else ""
    start = (
        "        rl = pl.load(bias, [0, 0], [1, N], target_memory=pl.Mem.Mat)\n"
        "        rt = pl.move(rl, target_memory=pl.Mem.Bias)\n"
        "        acc = pl.matmul_mx_bias(at, pt, bt, qt, rt)"
        if bias
        else "        acc = pl.matmul_mx(at, pt, bt, qt)"
    )
    loop = (
        f"        for k in pl.pipeline({step}, K, {step}, stage=2):\n"
        "            g = k // 32\n"
        f"{operands('k', 'g', '            ')}\n"
        "            acc = pl.matmul_mx_acc(acc, at, pt, bt, qt)\n"
        if step < k
        else ""
    )
    return f"""from scalebox.ir import language as pl

M, K, N = {m}, {k}, {n}


@pl.program
class Gemm:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[M, K], pl.{a}],
        sa: pl.Tensor[[M, K // 32], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[K, N], pl.{b}],
        sb: pl.Tensor[[K // 32, N], pl.FP8E8M0, pl.MX_B_NN],
{row}        c: pl.Out[pl.Tensor[[M, N], pl.{c}]],
    ):
{operands("0", "0", "        ")}
{start}
{loop}        c = pl.store(acc, [0, 0], c)
        return c
"""


@pytest.fixture(scope="session")
def kernel_text() -> Callable[..., str]:
    """`gemm_text`: a kernel file by sizes and dtypes."""
    return gemm_text


@pytest.fixture(scope="session")
def gemm() -> Callable[..., Program]:
    """A program by sizes and dtypes, as `gemm_text`."""

    def build(*sizes: int, **options: Any) -> Program:
        program = scalebox.pl.parse(gemm_text(*sizes, **options))
        assert isinstance(program, Program)
        return program

    return build


@pytest.fixture(scope="session")
def mx_inputs() -> Callable[..., dict[str, Array]]:
    """Launch inputs of a `gemm` out of logical arrays: scales are put into boxes."""

    def build(a: Array, sa: Array, b: Array, sb: Array, **more: Array) -> dict[str, Array]:
        scales = {"sa": boxed_a(sa.astype(np.uint8)), "sb": boxed_b(sb.astype(np.uint8))}
        return {"a": a, "b": b, **scales, **more}

    return build


@pytest.fixture
def through(tmp_path: Path) -> Callable[..., Result]:
    """Compile, save, load, run, and hold the outputs against golden bit for bit."""

    def run(program: Program, inputs: Mapping[str, Any], **options: Any) -> Result:
        path = tmp_path / "kernel.sbx"
        scalebox.compile(program).save(path)
        result = scalebox.run(scalebox.Executable.load(path), inputs, **options)
        verdict = scalebox.compare(result.outputs, scalebox.interpret(program, inputs))
        assert verdict, str(verdict)
        assert not result.simulation.warnings
        assert result.cycles > result.simulation.launch_cycles > 0
        return result

    return run


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> Path:
    """The current folder, with a copy of the examples, as in a clone."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(root / "examples", "examples")
    return tmp_path


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Writes `kernel.py` into the current folder, which is empty at first."""
    monkeypatch.chdir(tmp_path)

    def write(*sizes: int, end: str = "") -> str:
        Path("kernel.py").write_text(gemm_text(*(sizes or (32, 128, 64))) + end)
        return "kernel.py"

    return write


SIZED = """
from scalebox.ir import language as pl

M = pl.param("M", 32)
K = pl.param("K", 128)
"""


@pytest.fixture
def sized(kernel: Callable[..., str]) -> str:
    """A kernel file with parameters M and K."""
    kernel()
    text = Path("kernel.py").read_text().replace("M, K, N = 32, 128, 64", "N = 64")
    text = text.replace("from scalebox.ir import language as pl", SIZED, 1)
    text = text.replace("[32, 128]", "[M, K]").replace("[128, 64]", "[K, N]")
    text = text.replace("[32, 4]", "[M, K // 32]").replace("[4, 64]", "[K // 32, N]")
    Path("sized.py").write_text(text)
    return "sized.py"
