"""Decoding through tables, compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType
from ..jit import compiled
from .arguments import as_codes
from .large_arrays import unfilled
from .parts import LEAST_NORMAL, SUBNORMAL_EXPONENT
from .tables import decode_table

if TYPE_CHECKING:
    import numpy.typing as npt

_STEPS = 2.0**-SUBNORMAL_EXPONENT
_ROUNDER = 2.0**52


def decode(codes: npt.ArrayLike, dtype: DType) -> npt.NDArray[np.float32]:
    """Return what codes of at most 16 bits stand for; the bits of `codec.decode`.

    Args:
        codes: Codes of `dtype`, one an item, of any shape.
        dtype: A simple number format of at most 16 bits.

    Returns:
        float32 of the same shape.

    Raises:
        IRTypeError: `dtype` is no such format, or `codes` cannot be codes.
        IRValueError: A code does not fit the format's width.
    """
    array: npt.NDArray[Any] = as_codes(codes, dtype)
    flat = np.ascontiguousarray(array).reshape(-1)
    out = unfilled(array.shape, np.uint32)
    if dtype is DType.E8M0:
        _shift(flat, decode_table(dtype), out.reshape(-1))
    else:
        _gather(flat, decode_table(dtype), out.reshape(-1))
    return out.view(np.float32)


@compiled
def _gather(
    codes: npt.NDArray[Any], table: npt.NDArray[np.uint32], out: npt.NDArray[np.uint32]
) -> None:
    for i in range(codes.size):
        out[i] = table[codes[i]]


@compiled
def _shift(
    codes: npt.NDArray[np.uint8], table: npt.NDArray[np.uint32], out: npt.NDArray[np.uint32]
) -> None:
    """Decode E8M0, whose codes are float32's exponent fields but for the first and the last."""
    first, last = table[0], table[-1]
    for i in range(codes.size):
        code = np.uint32(codes[i])
        ordinary = np.uint32(code << np.uint32(23))
        out[i] = first if code == 0 else last if code == 255 else ordinary


@compiled
def dequantize(
    elements: npt.NDArray[np.uint8],
    scales: npt.NDArray[np.uint8],
    block: int,
    element_values: npt.NDArray[np.float64],
    scale_values: npt.NDArray[np.float64],
    out: npt.NDArray[np.uint32],
) -> None:
    """Put the float32 bits of element times scale, rounded once, into `out`.

    Args:
        elements: Codes `[outer, K, inner]`.
        scales: Codes `[outer, ceil(K / block), inner]`.
        block: Elements along K that share one scale.
        element_values: What each element code is worth, `[256]`.
        scale_values: What each scale code is worth, `[256]`; a product with an element is exact.
        out: uint32 `[outer, K, inner]`.
    """
    outer, depth, inner = elements.shape
    for plane in range(outer):
        for k in range(depth):
            for j in range(inner):
                scale = scale_values[scales[plane, k // block, j]]
                product = element_values[elements[plane, k, j]] * scale
                if abs(product) < LEAST_NORMAL:
                    # A sum with 2^52 is rounded to whole steps, by a processor that flushes too.
                    steps = (abs(product) * _STEPS + _ROUNDER) - _ROUNDER
                    sign = np.uint32(0x80000000) if np.signbit(product) else np.uint32(0)
                    out[plane, k, j] = np.uint32(steps) | sign
                else:
                    out[plane, k, j] = np.float32(product).view(np.uint32)
