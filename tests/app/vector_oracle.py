"""What kernels of the vector core must give, written without the project: numpy and ml_dtypes, a
rounding a step."""

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .oracle import E4M3, Array

GROUP = 32


@dataclass(frozen=True)
class Target:
    """An element type of MX, with numbers of OCP MX v1.0, table 1.

    Attributes:
        numpy: Its dtype in numpy.
        emax: The exponent of its largest binade.
        largest: Its largest number.
        unit: The exponent of the power of two of which all its numbers are multiples.
        nan: The code of every element of a group whose scale is NaN.
    """

    numpy: Any
    emax: int
    largest: float
    unit: int
    nan: int


TARGETS = {
    "FP8E4M3FN": Target(E4M3, 8, 448.0, -9, 0x7F),
    "FP4": Target(ml_dtypes.float4_e2m1fn, 2, 6.0, -1, 0),
}


def quantised(x: Array, target: Target, rule: str) -> tuple[Array, Array]:
    """Return the codes of the elements and of the scales of x, in groups along the last axis.

    A power of two of the float32 numbers that are divided by it is exact in float64, so each element is
    rounded once.
    """
    groups = x.astype(np.float64).reshape(x.shape[0], -1, GROUP)
    scales = np.empty(groups.shape[:2], np.uint8)
    for place in np.ndindex(*scales.shape):
        scales[place] = scale_code(float(np.abs(groups[place]).max()), target, rule)
    ratios = groups * np.exp2(127.0 - scales.astype(np.float64))[:, :, None]
    clipped = np.clip(np.nan_to_num(ratios, nan=0.0), -target.largest, target.largest)
    codes = clipped.astype(target.numpy).view(np.uint8)
    return np.where(scales[:, :, None] == 255, target.nan, codes).reshape(x.shape), scales


def scale_code(amax: float, target: Target, rule: str) -> int:
    """Return the scale of a group: a biased exponent; NaN, infinity and zero have codes of their own."""
    if math.isnan(amax):
        return 255
    if math.isinf(amax):
        return {"floor": 255, "nv": 254}[rule]
    if amax == 0:
        return 0
    if rule == "floor":
        exponent = math.frexp(amax)[1] - 1 - target.emax
    else:
        ratio = np.float32(amax) * (np.float32(1) / np.float32(target.largest))
        fraction, exponent = math.frexp(float(ratio))
        exponent -= fraction == 0.5  # a power of two needs no rounding up
        exponent = exponent if ratio else -127
    return min(max(exponent + 127, 0), 254)


def decoded(codes: Array, target: Target) -> Array:
    """Return what codes of elements stand for, in float64."""
    return codes.astype(np.uint8).view(target.numpy).astype(np.float64)


def boxes_of_rows(scales: Array) -> Array:
    """Return scales [M, G] as bytes of MX_A_ZZ: boxes of 16 rows by 2 groups, rows of boxes first.

    Scales [N, G] of the columns of a right operand give the bytes of MX_B_NN.
    """
    rows, groups = scales.shape
    return scales.reshape(rows // 16, 16, groups // 2, 2).transpose(0, 2, 1, 3).reshape(-1)


def row_sums(x: Array) -> Array:
    """Return the sums of rows as a column, from left to right, in float32."""
    total = np.zeros((x.shape[0], 1), np.float32)
    for column in x.T:
        total += column[:, None]
    return total


def rounded_once(function: Any, *operands: Array) -> Array:
    """Return a function of Python's mathematics, element by element, rounded to float32."""
    return np.vectorize(function, otypes=[np.float64])(*operands).astype(np.float32)
