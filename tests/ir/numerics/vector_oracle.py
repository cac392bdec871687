"""Codes of the vector core's dtypes, and what Python's own mathematics says about them."""

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from scalebox.ir.dtypes import BFloat16, DType, Float16, Int16, SimpleDType, UInt8, UInt16, UInt32
from scalebox.ir.numerics.functions import FLOATS

FP32 = DType.Float32
Array = npt.NDArray[Any]
KINDS: dict[SimpleDType, Any] = {
    FP32: np.float32,
    Float16: np.float16,
    BFloat16: ml_dtypes.bfloat16,
    DType.Int8: np.int8,
    Int16: np.int16,
    DType.Int32: np.int32,
    UInt8: np.uint8,
    UInt16: np.uint16,
    UInt32: np.uint32,
}
NAN: dict[SimpleDType, int] = {FP32: 0x7FC00000, Float16: 0x7E00, BFloat16: 0x7FC0}
# Bits of a significand, and the exponents of the smallest normal and of the largest binade.
FIELDS: dict[SimpleDType, tuple[int, int, int]] = {
    FP32: (24, -126, 127),
    Float16: (11, -14, 15),
    BFloat16: (8, -126, 127),
}


def codes(values: Any, dtype: SimpleDType) -> Array:
    with np.errstate(all="ignore"):
        array = np.asarray(values).astype(KINDS[dtype])
    return array.view(f"u{array.dtype.itemsize}")


def values(found: Array, dtype: SimpleDType) -> Array:
    return found.view(KINDS[dtype])


def doubles(found: Array, dtype: SimpleDType) -> list[float]:
    with np.errstate(all="ignore"):  # the cast of a signalling NaN
        return values(found, dtype).astype(np.float64).tolist()


def rounded(value: float, dtype: SimpleDType) -> float:
    """Round a number to nearest even, by Python's rounding of a fraction."""
    if not math.isfinite(value) or value == 0:
        return value
    bits, emin, emax = FIELDS[dtype]
    exponent = max(math.frexp(value)[1] - bits, emin - bits + 1)
    steps = round(Fraction(value) / Fraction(2) ** exponent)
    made = abs(steps) * Fraction(2) ** exponent
    size = math.inf if made >= Fraction(2) ** (emax + 1) else float(made)
    return math.copysign(size, value)


def same(found: Array, wanted: list[float], dtype: SimpleDType) -> None:
    """Check codes against numbers: NaN as the dtype's own, zeros with their sign."""
    assert found.dtype.itemsize * 8 == dtype.bits
    expected = codes(np.array(wanted, np.float64), dtype).copy()
    expected[np.isnan(np.array(wanted))] = NAN[dtype]
    differs = np.flatnonzero(found.reshape(-1) != expected)
    assert not differs.size, (differs[:5], found.reshape(-1)[differs[:5]], expected[differs[:5]])


def pairs(dtype: SimpleDType, count: int = 3000) -> tuple[Array, Array]:
    rng = np.random.default_rng(2)
    top = 1 << dtype.bits
    kind = f"u{dtype.bits // 8}"
    a, b = (rng.integers(0, top, count, np.uint64).astype(kind) for _ in range(2))
    near = codes(rng.standard_normal(count // 2), dtype) if dtype in FLOATS else a[: count // 2]
    a[: count // 2] = near
    b[: count // 2] = near[::-1]
    return a, b
