"""CRC-32C (Castagnoli), which guards the index of a file."""

from __future__ import annotations

from typing import Final

import numpy as np

_POLYNOMIAL = 0x82F63B78
_ALL_ONES = 0xFFFFFFFF
_WIDTH = 32

_LONG = 1 << 17
_LANE_BYTES = 1 << 10


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE: Final = tuple(_entry(byte) for byte in range(256))


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of `data`."""
    if len(data) < _LONG:
        return _run(_ALL_ONES, data) ^ _ALL_ONES
    # The register is linear in its start and in the data: lanes run side by side from 0, and each
    # result is carried over the lanes behind it.
    lanes = len(data) // _LANE_BYTES
    columns = np.frombuffer(data, np.uint8, lanes * _LANE_BYTES).reshape(lanes, _LANE_BYTES)
    table = np.array(_TABLE, np.uint32)
    registers = np.zeros(lanes, np.uint32)
    for column in columns.T:
        registers = registers >> np.uint32(8) ^ table[(registers ^ column) & np.uint32(0xFF)]
    over_a_lane = [_run(1 << bit, bytes(_LANE_BYTES)) for bit in range(_WIDTH)]
    crc = _ALL_ONES
    for register in registers.tolist():
        carried = register
        for bit, image in enumerate(over_a_lane):
            if crc >> bit & 1:
                carried ^= image
        crc = carried
    return _run(crc, data[lanes * _LANE_BYTES :]) ^ _ALL_ONES


def _run(register: int, data: bytes) -> int:
    table = _TABLE
    for byte in data:
        register = register >> 8 ^ table[(register ^ byte) & 0xFF]
    return register
