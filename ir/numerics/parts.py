"""Floats taken apart into integers, and integers rounded to a format: plain numpy, no float step.

A finite value is `significand * 2^exponent` with its sign aside. Rounding is nearest even, done
once, on these integers; neither the host's rounding mode nor flushing of subnormals can touch it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import IRTypeError, IRValueError

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes.formats import FloatFormat

FULL = 53
"""Bits of a normalised significand: those of float64, the widest source."""

LEAST_NORMAL = 2.0**-126
"""The least float32 below which a processor may flush: it is kept as a float64 here."""

SUBNORMAL_EXPONENT = -149
"""Exponent of the unit in which float32's subnormals count."""

_EXACT = 1 << FULL
_WIDEST_SHIFT = 62
_FLOAT32_INFINITY = 0x7F800000
_FLOAT32_FRACTION = 0x007FFFFF


@dataclass(frozen=True, slots=True)
class Parts:
    """Values as integers: `(-1)^negative * significand * 2^exponent`, or infinity, or NaN.

    `significand` is at most 53 bits and 0 for zero, infinity and NaN alike.
    """

    negative: npt.NDArray[np.bool_]
    significand: npt.NDArray[np.int64]
    exponent: npt.NDArray[np.int64]
    is_infinite: npt.NDArray[np.bool_]
    is_nan: npt.NDArray[np.bool_]

    @property
    def length(self) -> npt.NDArray[np.int64]:
        """Bits of each significand; 0 for 0."""
        # frexp of an integer below 2^53 is exact, and its result is never subnormal.
        _, length = np.frexp(self.significand.astype(np.float64))
        return length.astype(np.int64)

    @property
    def leading(self) -> npt.NDArray[np.int64]:
        """The exponent of each value's leading bit: floor(log2 |value|)."""
        return self.exponent + self.length - 1


def floats(values: npt.ArrayLike, *, what: str = "x") -> npt.NDArray[Any]:
    """Return real numbers as float32 or float64, whichever holds them exactly.

    Raises:
        IRTypeError: `values` are no real numbers.
        IRValueError: An integer is too large for float64 to hold.
    """
    array = np.asarray(values)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind in "iu":
        if size < 4:
            return array.astype(np.float32)
        if array.size and max(-int(array.min()), int(array.max())) > _EXACT:
            message = f"Integers in {what} must be at most 2^53 in magnitude; convert them first"
            raise IRValueError(message)
        return array.astype(np.float64)
    if kind == "f" and size in (4, 8):
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    is_extension = kind == "V" and array.dtype.names is None and size <= 2
    if is_extension or (kind == "f" and size <= 2):
        try:
            return array.astype(np.float32)
        except TypeError:
            pass
    message = f"{what} must be an array of real numbers up to float64, not {array.dtype}"
    raise IRTypeError(message)


def take_apart(values: npt.NDArray[Any]) -> Parts:
    """Return the parts of float32 or float64 `values`, of the same shape."""
    width, mantissa_bits = (32, 23) if values.dtype == np.float32 else (64, 52)
    assert values.dtype.itemsize * 8 == width, values.dtype
    bits = values.view(np.uint32 if width == 32 else np.int64).astype(np.int64)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    top = (1 << (width - 1 - mantissa_bits)) - 1
    field = (bits >> mantissa_bits) & top
    is_finite = field < top
    significand = mantissa + (field > 0) * (1 << mantissa_bits)
    return Parts(
        negative=(bits >> (width - 1)) & 1 != 0,
        significand=np.where(is_finite, significand, 0),
        exponent=np.maximum(field, 1) - (top >> 1) - mantissa_bits,
        is_infinite=~is_finite & (mantissa == 0),
        is_nan=~is_finite & (mantissa != 0),
    )


def widened(values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return float32 or float64 values as float64; subnormals of float32 survive flushing."""
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        wide = values.astype(np.float64)
    if values.dtype == np.float32:
        bits = values.view(np.uint32)
        fraction = bits & _FLOAT32_FRACTION
        is_tiny = ((bits & _FLOAT32_INFINITY) == 0) & (fraction > 0)
        magnitude = np.ldexp(fraction[is_tiny].astype(np.float64), SUBNORMAL_EXPONENT)
        wide[is_tiny] = np.where(bits[is_tiny] >> 31, -magnitude, magnitude)
    return wide


def narrowed(values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint32]:
    """Return the float32 bits of float64 values, nearest even; subnormals survive flushing.

    Args:
        values: Zero, infinity, NaN, or normal numbers of float64.
    """
    with np.errstate(over="ignore"):
        bits = values.astype(np.float32).view(np.uint32)
    is_tiny = np.abs(values) < LEAST_NORMAL
    if is_tiny.any():
        steps = np.rint(np.ldexp(np.abs(values[is_tiny]), -SUBNORMAL_EXPONENT)).astype(np.uint32)
        bits[is_tiny] = steps | np.signbit(values[is_tiny]).astype(np.uint32) << np.uint32(31)
    return bits


def shift_to_even(
    significand: npt.NDArray[np.int64], shift: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return `significand / 2^shift` rounded to the nearest integer, ties to even.

    Args:
        significand: At most 53 bits, not negative.
        shift: Any; where it is negative the quotient must fit int64.
    """
    right = np.clip(shift, 0, _WIDEST_SHIFT)
    below_half = np.where(right > 0, (1 << np.maximum(right - 1, 0)) - 1, 0)
    odd = np.where(right > 0, (significand >> right) & 1, 0)
    return ((significand + below_half + odd) >> right) << np.maximum(-shift, 0)


def round_to_format(
    parts: Parts, element: FloatFormat, scale: npt.NDArray[np.int64] | int = 0
) -> npt.NDArray[np.int64]:
    """Return the magnitude codes of `value / 2^scale`, rounded once, as if without a maximum.

    Args:
        parts: Finite values; the others come out as code 0.
        element: A format with subnormals.
        scale: Exponent to divide by.

    Returns:
        int64 codes without sign; those above the format's `max_code` do not fit it.
    """
    exponent = parts.exponent - scale
    leading = np.maximum(exponent + parts.length - 1, element.emin)
    leading = np.where(parts.significand > 0, leading, element.emin)
    quantum = leading - element.mantissa_bits
    steps = shift_to_even(parts.significand, quantum - exponent)
    # One binade up a significand counts 2^mantissa_bits steps further; a carry lands in the field.
    return ((leading - element.emin) << element.mantissa_bits) + steps
