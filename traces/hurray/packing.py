"""Codes in bytes: narrow ones from the low bits up, as the format packs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .sizes import packed_bytes

_BYTE = 8


def group(bit_width: int) -> tuple[int, int]:
    """Return how many elements fill whole bytes, and how many bytes."""
    if bit_width >= _BYTE:
        return 1, bit_width // _BYTE
    elements = next(n for n in range(1, _BYTE + 1) if n * bit_width % _BYTE == 0)
    return elements, elements * bit_width // _BYTE


def pack_codes(codes: npt.NDArray[np.uint8], bit_width: int) -> npt.NDArray[np.uint8]:
    """Pack codes of less than a byte.

    Args:
        codes: One code an item, taken in row-major order; bits above the width are dropped.
        bit_width: 1, 2, 4 or 6.

    Returns:
        uint8, unused high bits 0; codes of 6 bits fill groups of three bytes.
    """
    elements, size = group(bit_width)
    groups = -(-codes.size // elements)
    padded = np.zeros((groups, elements), np.uint32)
    padded.reshape(-1)[: codes.size] = codes.reshape(-1) & ((1 << bit_width) - 1)
    words = np.zeros(groups, np.uint32)
    for position in range(elements):
        words |= padded[:, position] << np.uint32(position * bit_width)
    packed = np.empty((groups, size), np.uint8)
    for position in range(size):
        packed[:, position] = words >> np.uint32(position * _BYTE) & np.uint32(0xFF)
    return packed.reshape(-1)


def unpack_codes(packed: npt.NDArray[np.uint8], bit_width: int, count: int) -> npt.NDArray[Any]:
    """Return the first `count` codes of less than a byte, one an item."""
    elements, size = group(bit_width)
    used = packed[: packed_bytes(bit_width, count)].reshape(-1, size)
    words = np.zeros(used.shape[0], np.uint32)
    for position in range(size):
        words |= used[:, position].astype(np.uint32) << np.uint32(position * _BYTE)
    codes = np.empty((used.shape[0], elements), np.uint8)
    for position in range(elements):
        codes[:, position] = words >> np.uint32(position * bit_width) & np.uint32(
            (1 << bit_width) - 1
        )
    return codes.reshape(-1)[:count]
