"""Second opinions: the same numbers by other means, in fractions and in ordered integers.

Nothing here uses the package's own arithmetic. What a code is worth comes from ml_dtypes, or from
gfloat for the 4-bit format that ml_dtypes lacks.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import gfloat  # pyright: ignore[reportMissingTypeStubs]
import ml_dtypes
import numpy as np
import numpy.typing as npt

from scalebox.ir.dtypes import E1M2, BFloat16, DType, Float16, SimpleDType

BYTE_FLOATS = (DType.E4M3, DType.E5M2, DType.E3M2, DType.E2M3, DType.E2M1, E1M2)
"""The element formats of block scaling, Int8 aside."""

SIGNED_FLOATS = (*BYTE_FLOATS, Float16, BFloat16)

NUMPY_TYPES: dict[SimpleDType, Any] = {
    DType.E4M3: ml_dtypes.float8_e4m3fn,
    DType.E5M2: ml_dtypes.float8_e5m2,
    DType.E3M2: ml_dtypes.float6_e3m2fn,
    DType.E2M3: ml_dtypes.float6_e2m3fn,
    DType.E2M1: ml_dtypes.float4_e2m1fn,
    DType.E8M0: ml_dtypes.float8_e8m0fnu,
    Float16: np.float16,
    BFloat16: ml_dtypes.bfloat16,
}

_E1M2 = gfloat.FormatInfo(
    name="e1m2",
    k=4,
    precision=3,
    bias=1,
    is_signed=True,
    domain=gfloat.Domain.Finite,
    has_nz=True,
    num_high_nans=0,
    has_subnormals=True,
    is_twos_complement=False,
)


@cache
def values(dtype: SimpleDType) -> npt.NDArray[np.float32]:
    """Return the value of every code, float32, by the other library."""
    count = 1 << dtype.bits
    if dtype is E1M2:
        decoded = [gfloat.decode_float(_E1M2, code).fval for code in range(count)]
        return np.array(decoded, np.float32)
    codes = np.arange(count, dtype=np.uint8 if dtype.bits <= 8 else np.uint16)
    return codes.view(NUMPY_TYPES[dtype]).astype(np.float32)


@dataclass(frozen=True)
class Magnitudes:
    """The finite magnitudes of a format, ascending by code, and the points halfway between."""

    values: list[Fraction]
    midpoints: list[Fraction]
    infinity: int | None
    nan: int | None


@cache
def magnitudes(dtype: SimpleDType) -> Magnitudes:
    """Return the positive half of a signed format."""
    half = values(dtype)[: 1 << (dtype.bits - 1)]
    finite = [Fraction(float(value)) for value in half if np.isfinite(value)]
    between = [(low + high) / 2 for low, high in pairwise(finite)]
    infinities = np.flatnonzero(np.isinf(half))
    nans = np.flatnonzero(np.isnan(half))
    return Magnitudes(
        values=finite,
        midpoints=between,
        infinity=int(infinities[0]) if infinities.size else None,
        # The quiet NaN is the one whose highest mantissa bit is set.
        nan=int(nans[nans.size // 2]) if nans.size else None,
    )


def nearest(magnitude: Fraction, dtype: SimpleDType) -> int:
    """Return the code nearest to a magnitude, ties to even, saturated."""
    known = magnitudes(dtype)
    code = bisect_left(known.midpoints, magnitude)
    is_tie = code < len(known.midpoints) and known.midpoints[code] == magnitude
    return code + 1 if is_tie and code % 2 else code


def encode_by_order(x: npt.NDArray[np.float32], dtype: SimpleDType) -> npt.NDArray[np.int64]:
    """Encode float32 with saturation by comparing bit patterns as integers; NaN gives -1.

    Every midpoint of a narrow format is a float32, and magnitudes are ordered as their patterns.
    """
    known = magnitudes(dtype)
    points = np.array([float(point) for point in known.midpoints], np.float32)
    assert [Fraction(float(point)) for point in points] == known.midpoints
    edges = points.view(np.uint32).astype(np.int64)
    bits = x.view(np.uint32).astype(np.int64)
    magnitude = bits & 0x7FFFFFFF
    codes = np.searchsorted(edges, magnitude, side="left")
    tie = np.searchsorted(edges, magnitude, side="right") > codes
    codes = codes + (tie & (codes % 2 == 1))
    infinity = len(known.values) - 1 if known.infinity is None else known.infinity
    codes = np.where(magnitude == 0x7F800000, infinity, codes)
    codes = codes + (bits >> 31 << (dtype.bits - 1))
    return np.where(magnitude > 0x7F800000, -1, codes)


def float32_bits(value: Fraction) -> int:
    """Return the float32 pattern of an exact number, rounded once to nearest even."""
    if value == 0:
        return 0
    sign = (value < 0) << 31
    magnitude = abs(value)
    exponent = math.floor(math.log2(magnitude)) if magnitude > 2**-1000 else -1000
    while Fraction(2) ** exponent > magnitude:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    quantum = max(exponent, -126) - 23
    steps = round(magnitude / Fraction(2) ** quantum)  # Python rounds a tie to even
    # Patterns of ascending magnitudes are ascending integers; a carry moves into the exponent.
    pattern = steps + (max(exponent, -126) + 126 << 23)
    return sign | min(pattern, 0x7F800000)


def float32(value: Fraction) -> np.float32:
    """Return the float32 nearest to an exact number, ties to even; an exact zero is +0."""
    return np.uint32(float32_bits(value)).view(np.float32)


def group_term(
    a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], scale: Fraction | None
) -> np.float32:
    """Return what one group adds: its exact sum of products times the scale, rounded once.

    `scale` is None for NaN.
    """
    if scale is None or np.isnan(a).any() or np.isnan(b).any():
        return np.float32(np.nan)
    infinities = set[bool]()
    total = Fraction(0)
    for left, right in zip(a.tolist(), b.tolist(), strict=True):
        if math.isinf(left) or math.isinf(right):
            if left == 0 or right == 0:
                return np.float32(np.nan)
            infinities.add((left < 0) != (right < 0))
        else:
            total += Fraction(left) * Fraction(right)
    if infinities:
        sign = -1.0 if True in infinities else 1.0
        return np.float32(np.nan if len(infinities) > 1 else sign * np.inf)
    return float32(total * scale)


def matmul(
    a: npt.NDArray[np.float32],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.float32],
    b_scales: npt.NDArray[np.uint8],
    *,
    start: npt.NDArray[np.float32] | None = None,
    group: int = 32,
    step: int = 32,
) -> npt.NDArray[np.uint32]:
    """Multiply decoded matrices with E8M0 scale codes, in fractions; float32 patterns.

    `step` elements are summed before each rounding: the group's 32, or 1.
    """
    rows, depth = a.shape
    columns = b.shape[1]
    out = np.zeros((rows, columns), np.float32) if start is None else start.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for m in range(rows):
            for n in range(columns):
                for first in range(0, depth, step):
                    cut = slice(first, min(first + step, depth))
                    left, right = int(a_scales[m, first // group]), int(b_scales[first // group, n])
                    scale = None if 255 in (left, right) else Fraction(2) ** (left + right - 254)
                    out[m, n] += group_term(a[m, cut], b[cut, n], scale)
    bits = out.view(np.uint32)
    bits[np.isnan(out)] = 0x7FC00000
    return bits
