"""Quantising by the definitions, in fractions: the oracle of every rule."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from scalebox.ir.dtypes import BlockScaledDType, DType

from . import oracles

RULES = ("floor", "ceil", "even", "rceil", "nv")

MX_FORMATS = (
    DType.MXFP8_E4M3,
    DType.MXFP8_E5M2,
    DType.MXFP6_E3M2,
    DType.MXFP6_E2M3,
    DType.MXFP4,
    DType.MXINT8,
)

# OCP MX v1.0, tables 1 and 2: fraction bits, emax, and the largest element.
FACTS = {
    DType.MXFP8_E4M3: (3, 8, Fraction(448)),
    DType.MXFP8_E5M2: (2, 15, Fraction(57344)),
    DType.MXFP6_E3M2: (2, 4, Fraction(28)),
    DType.MXFP6_E2M3: (3, 2, Fraction(15, 2)),
    DType.MXFP4: (1, 2, Fraction(6)),
    DType.MXINT8: (6, 0, Fraction(127, 64)),
}

NAN_ELEMENT = {DType.MXFP8_E4M3: 0x7F, DType.MXFP8_E5M2: 0x7E}

TWO = Fraction(2)


def floor_log2(value: Fraction) -> int:
    """Return the largest e with 2^e <= value."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length() - 1
    while TWO ** (exponent + 1) <= value:
        exponent += 1
    return exponent


def ceil_log2(value: Fraction) -> int:
    """Return the smallest e with value <= 2^e."""
    return floor_log2(value) + (TWO ** floor_log2(value) != value)


def scale_code(amax: Fraction, dtype: BlockScaledDType, rule: str) -> int:
    """Return the E8M0 code that a rule gives a group of finite elements."""
    if amax == 0:
        return 0
    mantissa_bits, emax, largest = FACTS[dtype]
    match rule:
        case "floor":
            exponent = floor_log2(amax) - emax
        case "ceil":
            exponent = ceil_log2(amax) - emax
        case "even":
            step = TWO ** (floor_log2(amax) - mantissa_bits)
            exponent = floor_log2(round(amax / step) * step) - emax
        case "rceil":
            exponent = ceil_log2(amax / largest)
        case "nv":
            reciprocal = Fraction(float(oracles.float32(1 / largest)))
            ratio = Fraction(float(oracles.float32(amax * reciprocal)))
            exponent = ceil_log2(ratio) if ratio else -127
        case _:
            raise AssertionError(rule)
    return min(max(exponent + 127, 0), 254)


def element_code(value: float, scale: int, dtype: BlockScaledDType) -> int:
    """Return the code of `value / 2^(scale - 127)`, rounded once and saturated."""
    negative = math.copysign(1, value) < 0
    infinite = math.isinf(value)
    quotient = TWO**40 if infinite else abs(Fraction(value)) / TWO ** (scale - 127)
    if dtype is DType.MXINT8:
        steps = round(quotient * 64)
        return -min(steps, 128) % 256 if negative else min(steps, 127)
    return oracles.nearest(quotient, dtype.element) + negative * (1 << (dtype.element.bits - 1))


def quantize_group(
    group: list[float], dtype: BlockScaledDType, rule: str, infinity: str = "nan"
) -> tuple[list[int], int]:
    """Return element codes and the scale code of one group."""
    finite = [abs(Fraction(value)) for value in group if math.isfinite(value)]
    scale = scale_code(max(finite, default=Fraction(0)), dtype, rule)
    if any(math.isinf(value) for value in group):
        scale = 254 if rule == "nv" or infinity == "saturate" else 255
    if any(math.isnan(value) for value in group):
        scale = 255
    if scale == 255:
        return [NAN_ELEMENT.get(dtype, 0)] * len(group), scale
    known = {value: element_code(value, scale, dtype) for value in set(group) if value}
    signs = {False: element_code(0.0, scale, dtype), True: element_code(-0.0, scale, dtype)}
    return [known[v] if v else signs[math.copysign(1, v) < 0] for v in group], scale


def quantize_rows(
    x: npt.NDArray[np.floating], dtype: BlockScaledDType, rule: str, infinity: str = "nan"
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Quantise `[R, K]` along K, 32 elements a group."""
    codes: list[list[int]] = []
    scales: list[list[int]] = []
    for row in x.tolist():
        groups = [
            quantize_group(row[k : k + 32], dtype, rule, infinity) for k in range(0, len(row), 32)
        ]
        codes.append([code for group, _ in groups for code in group])
        scales.append([scale for _, scale in groups])
    return np.array(codes, np.uint8), np.array(scales, np.uint8)
