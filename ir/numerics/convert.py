"""Float32 to the cube's 16-bit outputs: nearest even, overflow to infinity, one NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .elements import FLOAT32_NAN

if TYPE_CHECKING:
    import numpy.typing as npt

_FLOAT16_NAN = 0x7E00
_BFLOAT16_NAN = 0x7FC0


def float32_to_float16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Round to Float16 codes, nearest even.

    Args:
        values: float32 of any shape.

    Returns:
        uint16 codes of the same shape: subnormals are kept, overflow is infinity of the same sign,
        every NaN is 0x7E00.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        codes = values.astype(np.float16).view(np.uint16)
    codes[np.isnan(values)] = _FLOAT16_NAN
    return codes


def float32_to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Round to BFloat16 codes, nearest even.

    Args:
        values: float32 of any shape.

    Returns:
        uint16 codes of the same shape: subnormals are kept, overflow is infinity of the same sign,
        every NaN is 0x7FC0.
    """
    bits = np.ascontiguousarray(values).view(np.uint32)
    codes = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    codes[np.isnan(values)] = _BFLOAT16_NAN
    return codes


def canonical_float32(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return a copy in which every NaN is 0x7FC00000."""
    out = np.array(values, dtype=np.float32)
    out.view(np.uint32)[np.isnan(out)] = FLOAT32_NAN
    return out
