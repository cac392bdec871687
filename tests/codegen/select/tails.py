"""Products whose valid extents end anywhere, on a machine whose memories begin full of NaN codes."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import scalebox
from scalebox.ir.core import Program

Array = npt.NDArray[Any]
Extents = tuple[int, int, int]

POISON = 0xFF
"""A NaN of E4M3, E5M2, E8M0 and Float32, and -6 and -6 of E2M1."""

NUMPY: dict[str, Any] = {
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FP8E5M2": ml_dtypes.float8_e5m2,
    "FP4": ml_dtypes.float4_e2m1fn,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "FP32": np.float32,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT32": np.int32,
}
BITS = {"FP4": 4, "FP16": 16, "BF16": 16, "FP32": 32}
"""Widths of elements other than 8 bits."""

ROWS = COLUMNS = (1, 4, 15, 16, 17, 47, 64, 115, 127)
DEPTHS = (30, 32, 50, 64, 72, 110, 128, 192)
PAIRS = (("FP8E4M3FN", "FP8E4M3FN"), ("FP8E4M3FN", "FP8E5M2"), ("FP4", "FP4"))

HEAD = """
from scalebox.ir import language as pl

@pl.program
class Tail:
    @pl.function(type=pl.FunctionType.InCore)
"""


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def matrix() -> Iterator[tuple[Extents, tuple[str, str]]]:
    """Yield valid extents and operand types; rows of 4-bit elements are whole bytes."""
    for pair in PAIRS:
        unit = 2 if pair[0] == "FP4" else 1
        for m in ROWS:
            for n in COLUMNS:
                for k in DEPTHS:
                    yield (m, k, round_up(n, unit)), pair


def parsed(text: str) -> Program:
    program = scalebox.pl.parse(HEAD + text)
    assert isinstance(program, Program)
    return program


def boxed_a(scales: Array) -> Array:
    """Return scales [M, G] as the bytes of MX_A_ZZ: boxes of 16 rows by 2 groups, row boxes first."""
    m, g = scales.shape
    return scales.reshape(m // 16, 16, g // 2, 2).transpose(0, 2, 1, 3).reshape(m, g)


def boxed_b(scales: Array) -> Array:
    """Return scales [G, N] as the bytes of MX_B_NN: boxes of 16 columns by 2 groups."""
    g, n = scales.shape
    return scales.reshape(g // 2, 2, n // 16, 16).transpose(2, 0, 3, 1).reshape(g, n)


def codes(values: Array, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return codes of the values in the corner of an array of poison."""
    made = values.astype(NUMPY[dtype])
    full = np.full(shape, POISON & (0xF if dtype == "FP4" else 0xFF), np.uint8)
    if made.dtype.itemsize > 1:
        full = np.full((*shape, made.dtype.itemsize), POISON, np.uint8)
    full = full.view(made.dtype).reshape(shape)
    full[tuple(slice(extent) for extent in made.shape)] = made
    return full


def small(rng: np.random.Generator, *shape: int) -> Array:
    """Integers from -2 to 2: every sum of their products is exact in Float32."""
    return rng.integers(-2, 3, shape).astype(np.float64)


def scaled_tail(
    valid: Extents, pair: tuple[str, str], *, physical: Extents | None = None, seed: int = 0
) -> tuple[Program, dict[str, Array], Array]:
    """Return a block-scaled product, its inputs with poison around them, and what it must give."""
    m, k, n = valid
    rows, depth, columns = physical or (round_up(m, 16), round_up(k, 64), round_up(n, 32))
    groups, all_groups = -(-k // 32), depth // 32
    program = parsed(f"""
    def tail(self, a: pl.Tensor[[{rows}, {depth}], pl.{pair[0]}],
             sa: pl.Tensor[[{rows}, {all_groups}], pl.FP8E8M0, pl.MX_A_ZZ],
             b: pl.Tensor[[{depth}, {columns}], pl.{pair[1]}],
             sb: pl.Tensor[[{all_groups}, {columns}], pl.FP8E8M0, pl.MX_B_NN],
             c: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]]):
        al = pl.load(a, [0, 0], [{rows}, {depth}], [{m}, {k}])
        pl_ = pl.load(sa, [0, 0], [{rows}, {all_groups}], [{m}, {groups}])
        bl = pl.load(b, [0, 0], [{depth}, {columns}], [{k}, {n}])
        ql = pl.load(sb, [0, 0], [{all_groups}, {columns}], [{groups}, {n}])
        acc = pl.matmul_mx(al, pl_, bl, ql)
        c = pl.store(acc, [0, 0], c)
        return c
""")
    rng = np.random.default_rng((seed, m, k, n))
    a, b = small(rng, m, k), small(rng, k, n)
    sa, sb = rng.integers(126, 130, (m, groups)), rng.integers(126, 130, (groups, n))
    boxes_a, boxes_b = (
        np.full(s, POISON, np.uint8) for s in ((rows, all_groups), (all_groups, columns))
    )
    boxes_a[:m, :groups], boxes_b[:groups, :n] = sa, sb
    inputs = {
        "a": codes(a, pair[0], (rows, depth)),
        "sa": boxed_a(boxes_a),
        "b": codes(b, pair[1], (depth, columns)),
        "sb": boxed_b(boxes_b),
    }
    left = a * np.repeat(2.0 ** (sa - 127), 32, 1)[:, :k]
    right = b * np.repeat(2.0 ** (sb - 127), 32, 0)[:k]
    return program, inputs, (left @ right).astype(np.float32)


def check(program: Program, inputs: dict[str, Array], expected: Array) -> None:
    """Hold the machine and the interpreter to what a product must give; the machine may not warn."""
    ran = scalebox.run(scalebox.compile(program), inputs, timing=False)
    assert not ran.simulation.warnings
    found = ran.outputs["c"]
    assert found.dtype == expected.dtype
    assert scalebox.compare(found, expected), str(scalebox.compare(found, expected))
    assert scalebox.compare(ran.outputs, scalebox.interpret(program, inputs))
