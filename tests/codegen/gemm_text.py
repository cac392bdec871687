"""Kernel sources in the shapes that real ones have: one accumulator, K in steps, loops around."""

from collections.abc import Sequence
from typing import TypedDict

from scalebox.ir import language as pl
from scalebox.ir.core import Program

HEADER = """
import scalebox.ir.language as pl
@pl.program
class Gemm:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(self, {params}):
"""
_OPERANDS = (
    ("a", "[{row}, {k}], [{m}, {step}]", "Left"),
    ("sa", "[{row}, {g}], [{m}, {groups}]", "LeftScale"),
    ("b", "[{k}, 0], [{step}, {n}]", "Right"),
    ("sb", "[{g}, 0], [{groups}, {n}]", "RightScale"),
)


class Options(TypedDict, total=False):
    """The arguments of `gemm` by name."""

    k: int
    step: int
    stage: int | None
    m: int
    n: int
    rows: int
    out: str
    bias: bool
    twice: bool
    unrolled: bool


def gemm(
    k: int = 1024,
    step: int = 256,
    *,
    stage: int | None = 2,
    m: int = 64,
    n: int = 128,
    rows: int = 1,
    out: str = "FP32",
    bias: bool = False,
    twice: bool = False,
    unrolled: bool = False,
) -> str:
    """Return a kernel's source.

    Args:
        k: Elements along K.
        step: Of them in one product.
        stage: Copies of a pipelined loop's body; None for a plain loop.
        m: Rows of a product.
        n: Columns.
        rows: Row blocks, in a loop around everything if more than one.
        out: Dtype of the result.
        bias: Whether the accumulator starts from a bias row.
        twice: Whether the first product is stored too.
        unrolled: Whether the steps stand one after another, without a loop.
    """
    numbers = {"m": m, "n": n, "step": step, "groups": step // 32}
    high, groups = m * rows, k // 32
    params = [
        f"a: pl.Tensor[[{high}, {k}], pl.FP8E4M3FN]",
        f"sa: pl.Tensor[[{high}, {groups}], pl.FP8E8M0, pl.MX_A_ZZ]",
        f"b: pl.Tensor[[{k}, {n}], pl.FP8E4M3FN]",
        f"sb: pl.Tensor[[{groups}, {n}], pl.FP8E8M0, pl.MX_B_NN]",
        f"c: pl.Out[pl.Tensor[[{high}, {n}], pl.{out}]]",
    ]
    if twice:
        params.append(f"first: pl.Out[pl.Tensor[[{high}, {n}], pl.{out}]]")
    if bias:
        params.append(f"z: pl.Tensor[[1, {n}], pl.FP32]")
    row = "row" if rows > 1 else "0"

    def operands(suffix: str, at: str, group: str) -> list[str]:
        lines: list[str] = []
        for name, window, memory in _OPERANDS:
            where = window.format(row=row, k=at, g=group, **numbers)
            load = f"pl.load({name}, {where}, target_memory=pl.Mem.Mat)"
            lines.append(f"{name}_{suffix} = pl.move({load}, target_memory=pl.Mem.{memory})")
        return lines

    def product(suffix: str) -> str:
        return ", ".join(f"{name}_{suffix}" for name, *_ in _OPERANDS)

    body = operands("0", "0", "0")
    if bias:
        load = f"pl.load(z, [0, 0], [1, {n}], target_memory=pl.Mem.Mat)"
        body.insert(0, f"start = pl.move({load}, target_memory=pl.Mem.Bias)")
        body.append(f"acc = pl.matmul_mx_bias({product('0')}, start)")
    else:
        body.append(f"acc = pl.matmul_mx({product('0')})")
    if twice:
        body.append(f"first = pl.store(acc, [{row}, 0], first)")
    if unrolled:
        for number in range(1, k // step):
            at = number * step
            body += operands(str(number), str(at), str(at // 32))
            body.append(f"acc = pl.matmul_mx_acc(acc, {product(str(number))})")
    elif k > step:
        kind = f"pl.pipeline({step}, {k}, {step}, stage={stage})"
        body.append(f"for k in {kind if stage else f'pl.range({step}, {k}, {step})'}:")
        inner = ["g = k // 32", *operands("k", "k", "g")]
        inner.append(f"acc = pl.matmul_mx_acc(acc, {product('k')})")
        body += [f"    {line}" for line in inner]
    body.append(f"c = pl.store(acc, [{row}, 0], c)")
    if rows > 1:
        body = [f"for row in pl.range(0, {high}, {m}):", *(f"    {line}" for line in body)]
    body.append("return c, first" if twice else "return c")
    return HEADER.format(params=", ".join(params)) + _indented(body)


def parsed(text: str) -> Program:
    """Return the program of a source text."""
    program = pl.parse(text)
    assert isinstance(program, Program)
    return program


def _indented(lines: Sequence[str]) -> str:
    return "".join(f"        {line}\n" for line in lines)
