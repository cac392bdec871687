"""What the dot unit must answer, said once more in whole numbers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import ml_dtypes
import numpy as np

from scalebox.codegen.isa.vocabulary import ElementType

MIXES: Final = [(a, b) for a in ElementType for b in ElementType if a.bits == b.bits]
NAN: Final = 0x7FC00000
INFINITY: Final = 0x7F800000

_QUARTERS = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
VALUES: Final = {
    ElementType.E4M3: np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn),
    ElementType.E5M2: np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2),
    ElementType.E2M1: np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn),
    ElementType.E1M2: np.array(_QUARTERS + [-value for value in _QUARTERS]),
}
"""The values of all codes of a format: from ml_dtypes, or from a list where it has no such format."""


def value_table(kind: ElementType) -> np.ndarray:
    """Return the values of all codes in float64, which holds each of them exactly."""
    return VALUES[kind].astype(np.float64)


def code_of(kind: ElementType, value: float) -> int:
    """Return the code of a value that the format has, of +0 for 0.0 and of -0 for -0.0."""
    table = value_table(kind)
    same = (table == value) & (np.signbit(table) == np.signbit(value))
    (codes,) = np.nonzero(same)
    assert len(codes) == 1, (kind, value)
    return int(codes[0])


def fp32_bits(negative: bool, magnitude: int, exponent: int) -> int:
    """Round `magnitude * 2^exponent` to the bits of the nearest FP32, ties to even.

    The unit of the last place is 2^(leading - 23), and never finer than 2^-149.
    """
    if magnitude == 0:
        return 0
    leading = magnitude.bit_length() - 1 + exponent
    unit = max(leading - 23, -149)
    exact = Fraction(magnitude) * Fraction(2) ** (exponent - unit)
    whole = math.floor(exact)
    rest = exact - whole
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    # A subnormal has the exponent field 0 and no bit 2^23; a normal number steps on from there.
    bits = whole + ((unit + 149) << 23)
    return min(bits, INFINITY) | negative << 31


def bits_of(value: float) -> int:
    """Return the bits of an FP32."""
    return int(np.float32(value).view(np.uint32))


def added(a: int, b: int) -> int:
    """Return the bits of the sum of two FP32, with the one NaN."""
    with np.errstate(all="ignore"):
        total = np.uint32(a).view(np.float32) + np.uint32(b).view(np.float32)
    return NAN if np.isnan(total) else int(total.view(np.uint32))


def term_bits(
    a: list[int], b: list[int], kinds: tuple[ElementType, ElementType], a_scale: int, b_scale: int
) -> int:
    """Return the bits of the term that a group of codes adds."""
    if 255 in (a_scale, b_scale):
        return NAN
    left, right = (value_table(kind)[codes] for kind, codes in zip(kinds, (a, b), strict=True))
    with np.errstate(all="ignore"):
        products = left * right
    if np.isnan(products).any():
        return NAN
    signs = set(np.sign(products[np.isinf(products)]))
    if signs:
        return NAN if len(signs) == 2 else INFINITY | (signs == {-1.0}) << 31
    total = sum((Fraction(float(product)) for product in products), Fraction(0))
    scaled = total * Fraction(2) ** (a_scale + b_scale - 254)
    denominator = scaled.denominator.bit_length() - 1
    return fp32_bits(scaled < 0, abs(scaled.numerator), -denominator)


def dot_bits(
    a: list[int],
    b: list[int],
    kinds: tuple[ElementType, ElementType],
    a_scales: list[int],
    b_scales: list[int],
    start: int,
) -> int:
    """Return the bits of a sum of groups of 32, the last of which may be shorter."""
    total = start
    for group, (a_scale, b_scale) in enumerate(zip(a_scales, b_scales, strict=True)):
        cut = slice(32 * group, 32 * group + 32)
        total = added(total, term_bits(a[cut], b[cut], kinds, a_scale, b_scale))
    return total
