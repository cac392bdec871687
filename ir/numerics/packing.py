"""Narrow codes in bytes: element 0 in the low bits, no gaps."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import IRTypeError, IRValueError
from .arguments import as_codes
from .elements import code_type, element_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import DType

_BYTE = 8
_PIECE = 1 << 16
"""Codes taken at once, whole runs of any width, so that temporary arrays stay small."""


def pack(codes: npt.ArrayLike, dtype: DType) -> npt.NDArray[np.uint8]:
    """Pack codes into bytes, least significant bit first.

    Two 4-bit codes fill a byte and four 6-bit codes three bytes, the first in the lowest bits;
    codes of whole bytes are stored low byte first.

    Args:
        codes: Codes of `dtype`, one an item; they are taken in row-major order.
        dtype: A simple number format of at most 32 bits.

    Returns:
        uint8 `[ceil(count * bits / 8)]`; unused bits of the last byte are 0.

    Raises:
        IRTypeError: `dtype` is no such format, or `codes` cannot be codes.
        IRValueError: A code does not fit the format's width.
    """
    bits = element_of(dtype).bits
    flat: npt.NDArray[Any] = np.ascontiguousarray(as_codes(codes, dtype)).reshape(-1)
    if bits % _BYTE == 0:
        return _little_endian(flat).view(np.uint8).copy()
    packed = np.empty(-(-flat.size * bits // _BYTE), np.uint8)
    for first in range(0, flat.size, _PIECE):
        piece = flat[first : first + _PIECE]
        start = first * bits // _BYTE
        packed[start : start + -(-piece.size * bits // _BYTE)] = _packed(piece, bits)
    return packed


def unpack(packed: npt.ArrayLike, dtype: DType, count: int) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Read codes back from bytes.

    Args:
        packed: uint8 bytes as `pack` leaves them, of any shape; more than are needed may follow.
        dtype: A simple number format of at most 32 bits.
        count: How many codes to read.

    Returns:
        Codes `[count]`, one an item.

    Raises:
        IRTypeError: `dtype` is no such format, `packed` are no bytes, or `count` is no integer.
        IRValueError: `count` is negative, or `packed` holds fewer codes.
    """
    element = element_of(dtype)
    array = np.asarray(packed)
    if array.dtype != np.uint8:
        message = f"Packed codes must be uint8 bytes, not {array.dtype}"
        raise IRTypeError(message)
    try:
        count = index(count)
    except TypeError as error:
        message = f"The count must be an integer, not {count!r}"
        raise IRTypeError(message) from error
    needed = -(-count * element.bits // _BYTE)
    if count < 0 or array.size < needed:
        message = (
            f"The count must be in 0..{array.size * _BYTE // element.bits}, the codes of "
            f"{element.name} that {array.size} bytes hold, not {count}"
        )
        raise IRValueError(message)
    stream: npt.NDArray[Any] = np.ascontiguousarray(array).reshape(-1)[:needed]
    wanted = code_type(element)
    if element.bits % _BYTE == 0:
        return stream.view(wanted.newbyteorder("<")).astype(wanted)
    codes = np.empty(count, wanted)
    for first in range(0, count, _PIECE):
        piece = codes[first : first + _PIECE]
        start = first * element.bits // _BYTE
        bytes_read = stream[start : start + -(-piece.size * element.bits // _BYTE)]
        piece[...] = _unpacked(bytes_read, element.bits)[: piece.size]
    return codes


def _packed(codes: npt.NDArray[Any], bits: int) -> npt.NDArray[np.uint8]:
    per_run, run_bytes = _run(bits)
    runs = -(-codes.size // per_run)
    padded = np.zeros((runs, per_run), np.uint32)
    padded.reshape(-1)[: codes.size] = codes
    word = np.zeros(runs, np.uint32)
    for position in range(per_run):
        word |= padded[:, position] << np.uint32(position * bits)
    stream = _little_endian(word).view(np.uint8).reshape(runs, 4)[:, :run_bytes]
    return stream.reshape(-1)[: -(-codes.size * bits // _BYTE)]


def _unpacked(stream: npt.NDArray[np.uint8], bits: int) -> npt.NDArray[np.uint32]:
    per_run, run_bytes = _run(bits)
    runs = -(-stream.size // run_bytes)
    padded = np.zeros((runs, run_bytes), np.uint32)
    padded.reshape(-1)[: stream.size] = stream
    word = np.zeros(runs, np.uint32)
    for position in range(run_bytes):
        word |= padded[:, position] << np.uint32(position * _BYTE)
    codes = np.empty((runs, per_run), np.uint32)
    for position in range(per_run):
        codes[:, position] = (word >> np.uint32(position * bits)) & np.uint32((1 << bits) - 1)
    return codes.reshape(-1)


def _run(bits: int) -> tuple[int, int]:
    """Return the fewest codes that fill whole bytes, and how many bytes these are."""
    per_run = next(n for n in range(1, _BYTE + 1) if n * bits % _BYTE == 0)
    assert per_run * bits <= 4 * _BYTE, bits
    return per_run, per_run * bits // _BYTE


def _little_endian(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values.astype(values.dtype.newbyteorder("<"), copy=False)
