"""A second opinion: the block-scaled matmul in exact fractions, rounded as the design says."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir.dtypes import E1M2, DType, SimpleDType

# Exponent bits, mantissa bits, bias, whether NaN is all ones only, whether there is infinity.
FIELDS: dict[SimpleDType, tuple[int, int, int, bool, bool]] = {
    DType.E4M3: (4, 3, 7, True, False),
    DType.E5M2: (5, 2, 15, False, True),
    DType.E2M1: (2, 1, 1, False, False),
    E1M2: (1, 2, 1, False, False),
}


def value_of(code: int, dtype: SimpleDType) -> Fraction | float:
    """Return what an element code means, exactly; infinities and NaN as floats."""
    exponent_bits, mantissa_bits, bias, one_nan, has_infinity = FIELDS[dtype]
    sign = -1 if code >> (exponent_bits + mantissa_bits) else 1
    exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    top = (1 << exponent_bits) - 1
    if one_nan and exponent == top and mantissa == (1 << mantissa_bits) - 1:
        return float("nan")
    if has_infinity and exponent == top:
        return float("nan") if mantissa else sign * float("inf")
    if exponent:
        mantissa += 1 << mantissa_bits
    return sign * Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits)


def to_float32(value: Fraction) -> np.float32:
    """Round once to float32, nearest even, subnormals kept, overflow to infinity."""
    if value == 0:
        return np.float32(0)
    size = abs(value)
    length = size.numerator.bit_length() - size.denominator.bit_length()
    exponent = max(length - 24, -149)
    while size >= Fraction(2) ** (exponent + 24):
        exponent += 1
    steps = round(size / Fraction(2) ** exponent)  # Python rounds a Fraction to nearest even
    rounded = steps * Fraction(2) ** exponent
    result = np.float32(np.inf) if rounded >= 2**128 else np.float32(float(rounded))
    return -result if value < 0 else result


def group_term(pairs: list[tuple[Any, Any]], exponent: int) -> np.float32:
    """Return one group's contribution: the exact sum, scaled, rounded once."""
    products = [a * b for a, b in pairs]
    if all(isinstance(p, Fraction) for p in products):
        return to_float32(sum(products, Fraction(0)) * Fraction(2) ** exponent)
    return np.float32(sum(float(p) for p in products))


def exact_matmul(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    *,
    dtypes: tuple[SimpleDType, SimpleDType] = (DType.E4M3, DType.E4M3),
    start: npt.NDArray[np.float32] | None = None,
    group: int = 32,
) -> npt.NDArray[np.float32]:
    """Return the product of codes `[M, K]` and `[K, N]` with scales `[M, G]` and `[G, N]`."""
    left = [[value_of(int(code), dtypes[0]) for code in row] for row in a]
    right = [[value_of(int(code), dtypes[1]) for code in row] for row in b]
    out = np.zeros((a.shape[0], b.shape[1]), np.float32) if start is None else start.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for m in range(a.shape[0]):
            for n in range(b.shape[1]):
                for first in range(0, a.shape[1], group):
                    scales = int(a_scales[m, first // 32]), int(b_scales[first // 32, n])
                    last = min(first + group, a.shape[1])
                    pairs = [(left[m][k], right[k][n]) for k in range(first, last)]
                    term = (
                        np.float32(np.nan)
                        if 255 in scales
                        else group_term(pairs, sum(scales) - 254)
                    )
                    out[m, n] += term
    return out


@pytest.fixture
def oracle() -> Callable[..., npt.NDArray[np.float32]]:
    """The block-scaled matmul in exact fractions."""
    return exact_matmul


@pytest.fixture
def run() -> Callable[..., dict[str, npt.NDArray[Any]]]:
    """Run the body of an Orchestration function of `n`, an INDEX, and `x`, an FP32 scalar."""
    from scalebox.ir import language as pl
    from scalebox.ir.core import Program
    from scalebox.ir.interp import interpret_program

    def run_body(body: str, n: int = 0, x: float = 0.0) -> dict[str, npt.NDArray[Any]]:
        lines = [f"        {line}" for line in body.strip("\n").split("\n")]
        text = "\n".join(
            [
                "@pl.program",
                "class P:",
                "    @pl.function(type=pl.FunctionType.Orchestration)",
                "    def f(self, n: pl.Scalar[pl.INDEX], x: pl.Scalar[pl.FP32]):",
                *lines,
                "",
            ]
        )
        program = pl.parse(text)
        assert isinstance(program, Program)
        return interpret_program(program, {"n": n, "x": x})

    return run_body
