"""Rows of 16-bit floats to float32 and back, compiled: the bits of `codec.decode` and `convert`.

Every loop is arithmetic on integers but for one float32 addition of normal numbers, so that many
lanes go at a time and a processor that flushes subnormals gets the same. All rows are contiguous.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..dtypes import BFloat16, Float16
from ..dtypes.formats import FLOAT_FORMATS
from ..jit import compiled
from .elements import FLOAT32_NAN

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint32]
    Halves = npt.NDArray[np.uint16]
    Doubles = npt.NDArray[np.float64]

_HALF, _BRAIN = FLOAT_FORMATS[Float16], FLOAT_FORMATS[BFloat16]
_MANTISSA = 23
_INFINITY = 0xFF << _MANTISSA
_MAGNITUDE = 0x7FFFFFFF
_SIGN = 0x80000000
_BIAS = 127
_SHIFT = _MANTISSA - _HALF.mantissa_bits
_HALF_SIGN = _HALF.sign_mask
_HALF_MAGNITUDE = _HALF.magnitude_mask
_HALF_INFINITY = _HALF.infinity_code or 0
_HALF_NAN = _HALF.nan_code or 0
_HALF_LEAST = 1 << _HALF.mantissa_bits
"""The code of the least normal number of Float16."""
_BRAIN_NAN = _BRAIN.nan_code or 0
_REBIAS = (_BIAS - _HALF.bias) << _MANTISSA
_LEAST = (_BIAS + _HALF.emin) << _MANTISSA
"""float32 bits of the least normal number of Float16."""
_ANCHOR = (_BIAS + _HALF.emin - _HALF.mantissa_bits + _MANTISSA) << _MANTISSA
"""float32 bits of a number beside which a float32 counts in units of Float16's subnormals."""


@compiled
def float16_to_float32(codes: Halves, out: Words) -> None:
    """Put the float32 bits of Float16 codes into `out`; every NaN is 0x7FC00000."""
    for i in range(codes.size):
        magnitude = np.uint32(codes[i] & np.uint16(_HALF_MAGNITUDE))
        sign = np.uint32(np.uint32(codes[i] & np.uint16(_HALF_SIGN)) << np.uint32(16))
        moved = np.uint32(magnitude << np.uint32(_SHIFT))
        # A subnormal behind the leading bit of the least normal number, less that number.
        behind = np.uint32(moved + np.uint32(_LEAST)).view(np.float32)
        small = np.float32(behind - np.uint32(_LEAST).view(np.float32)).view(np.uint32)
        bits = np.uint32(moved + np.uint32(_REBIAS))
        bits = small if magnitude < np.uint32(_HALF_LEAST) else bits
        bits = np.uint32(_INFINITY) if magnitude == np.uint32(_HALF_INFINITY) else bits
        bits = np.uint32(bits | sign)
        out[i] = np.uint32(FLOAT32_NAN) if magnitude > np.uint32(_HALF_INFINITY) else bits


@compiled
def bfloat16_to_float32(codes: Halves, out: Words) -> None:
    """Put the float32 bits of BFloat16 codes into `out`; every NaN is 0x7FC00000."""
    for i in range(codes.size):
        bits = np.uint32(np.uint32(codes[i]) << np.uint32(16))
        is_nan = np.uint32(bits & np.uint32(_MAGNITUDE)) > np.uint32(_INFINITY)
        out[i] = np.uint32(FLOAT32_NAN) if is_nan else bits


@compiled
def float32_to_float16(bits: Words, out: Halves) -> None:
    """Round float32, given as bits, to Float16 codes, as `convert.float32_to_float16`."""
    for i in range(bits.size):
        magnitude = np.uint32(bits[i] & np.uint32(_MAGNITUDE))
        sign = np.uint32((bits[i] & np.uint32(_SIGN)) >> np.uint32(16))
        odd = np.uint32((magnitude >> np.uint32(_SHIFT)) & np.uint32(1))
        rounder = np.uint32(odd + np.uint32((1 << (_SHIFT - 1)) - 1))
        # Beyond the maximum the codes go on past infinity.
        moved = np.uint32(np.uint32(magnitude - np.uint32(_REBIAS)) + rounder)
        code = min(np.uint32(moved >> np.uint32(_SHIFT)), np.uint32(_HALF_INFINITY))
        total = np.float32(magnitude.view(np.float32) + np.uint32(_ANCHOR).view(np.float32))
        small = np.uint32(total.view(np.uint32) - np.uint32(_ANCHOR))
        code = small if magnitude < np.uint32(_LEAST) else code
        code = np.uint32(code | sign)
        code = np.uint32(_HALF_NAN) if magnitude > np.uint32(_INFINITY) else code
        out[i] = np.uint16(code)


@compiled
def float32_to_bfloat16(bits: Words, out: Halves) -> None:
    """Round float32, given as bits, to BFloat16 codes, as `convert.float32_to_bfloat16`."""
    for i in range(bits.size):
        is_nan = np.uint32(bits[i] & np.uint32(_MAGNITUDE)) > np.uint32(_INFINITY)
        odd = np.uint32((bits[i] >> np.uint32(16)) & np.uint32(1))
        moved = np.uint32(bits[i] + np.uint32(odd + np.uint32(0x7FFF)))
        code = np.uint32(_BRAIN_NAN) if is_nan else np.uint32(moved >> np.uint32(16))
        out[i] = np.uint16(code)


@compiled
def canonical_float32(bits: Words, out: Words) -> None:
    """Copy float32 bits; every NaN becomes 0x7FC00000."""
    for i in range(bits.size):
        is_nan = np.uint32(bits[i] & np.uint32(_MAGNITUDE)) > np.uint32(_INFINITY)
        out[i] = np.uint32(FLOAT32_NAN) if is_nan else bits[i]


@compiled
def float64_to_float32(values: Doubles, is_final: bool, out: Words) -> None:
    """Round float64 to float32 bits: to nearest even, or else to odd.

    What is rounded to odd may be rounded once more, to 16 bits, and is as if it had been rounded
    once; see `functions.from_float64`.
    """
    rounded = out.view(np.float32)
    for i in range(values.size):
        rounded[i] = np.float32(values[i])
    if is_final:
        return
    for i in range(values.size):
        value, wide = values[i], np.float64(rounded[i])
        is_inexact = (wide < value) | (wide > value)
        outward = np.uint32(abs(wide) > abs(value))
        out[i] = np.uint32(np.uint32(out[i] - outward) | np.uint32(is_inexact))
