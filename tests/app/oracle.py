"""What a matmul must give, written without the project: in float64 where sums are exact, in integers
that are rounded once where they are not."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import scalebox

Array = npt.NDArray[Any]

E4M3 = ml_dtypes.float8_e4m3fn
E5M2 = ml_dtypes.float8_e5m2
# Values of the 16 codes of the 4-bit formats.
E2M1_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
E1M2_VALUES = np.concatenate([np.arange(8) / 4, -np.arange(8) / 4])
UNIT_SCALE = 127
NAN_SCALE = 255
PLAIN_NAN = 0x7FC00000


def small(rng: np.random.Generator, *shape: int) -> Array:
    """Integers -2..2 and codes near 127 keep every sum of a matmul exact in float32."""
    return rng.integers(-2, 3, shape).astype(np.float64)


def near_one(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(126, 130, shape)


def in_float64(a: Array, sa: Array, b: Array, sb: Array) -> Array:
    left = a * np.repeat(2.0 ** (sa - 127.0), 32, axis=1)
    return left @ (b * np.repeat(2.0 ** (sb - 127.0), 32, axis=0))


def rounded_once(digits: int, exponent: int) -> float:
    """Return digits · 2^exponent as the nearest float32, ties to even."""
    if digits == 0:
        return 0.0
    last = max(exponent + abs(digits).bit_length() - 24, -149)
    if last > exponent:
        cut = last - exponent
        kept, rest = abs(digits) >> cut, abs(digits) & ((1 << cut) - 1)
        half = 1 << (cut - 1)
        kept += rest > half or (rest == half and kept & 1)
    else:
        kept, last = abs(digits), exponent
    size = math.inf if kept.bit_length() + last > 128 else math.ldexp(kept, last)
    return math.copysign(size, digits)


def group_by_group(
    a: Array, sa: Array, b: Array, sb: Array, *, unit: tuple[int, int], start: Array | None = None
) -> Array:
    """Return the product as the numbers of a matmul are defined, out of Python's integers.

    Args:
        unit: Exponents of the powers of two of which a and b hold whole multiples.
        start: What the accumulator starts from, float32 [n]; zero by default.
    """
    m, n = a.shape[0], b.shape[1]
    left = (a * 2.0 ** -unit[0]).astype(np.int64)
    right = (b * 2.0 ** -unit[1]).astype(np.int64)
    total = np.zeros((m, n), np.float32) if start is None else np.tile(start, (m, 1))
    for g in range(sa.shape[1]):
        dot = left[:, g * 32 : g * 32 + 32] @ right[g * 32 : g * 32 + 32]
        exponents = sa[:, g, None].astype(int) + sb[None, g].astype(int) - 254 + sum(unit)
        parts = [
            rounded_once(int(digits), int(exponent))
            for digits, exponent in zip(dot.flat, exponents.flat, strict=True)
        ]
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + np.array(parts, np.float32).reshape(m, n)
    return total


def assert_bits(actual: Array, expected: Array) -> None:
    assert actual.dtype == expected.dtype
    verdict = scalebox.compare(actual, expected)
    assert verdict, str(verdict)
