"""The fixed parts of a tensor file: header, index and trailer.

A file is its header, the tensors, the key-values, the index and the trailer. Of every tensor it has
the descriptor at a multiple of 8, and each buffer at a multiple of 4096 behind it.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from .crc import crc32c
from .errors import InvalidFileError
from .reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC: Final = b"HRRYFILE"
TRAILER_MAGIC: Final = b"HRRY"
HEADER_BYTES: Final = 64
TRAILER_BYTES: Final = 40
PAGE_ALIGNMENT: Final = 4096
DESCRIPTOR_ALIGNMENT: Final = 8

_MAJOR, _MINOR = 1, 0
_LARGEST_ALIGNMENT = 2 << 20
_SORTED_FLAG, _CRC_FLAG, _KNOWN_FLAGS = 1 << 1, 1 << 2, 0b111
_UNKNOWN_COUNT = (1 << 64) - 1
_LEAST_ENTRY = 35
_HEADER = Struct("<8sBBHIIQQ28s")
_ENTRY = Struct("<QIQQI")
_TRAILER = Struct("<QQQII4s4s")
_LENGTH, _COUNT = Struct("<H"), Struct("<Q")


class Entry(NamedTuple):
    """Where a tensor stands in a file."""

    descriptor_at: int
    descriptor_length: int
    data_at: int
    data_length: int


class Header(NamedTuple):
    """What the header says: how buffers are aligned, and how to read the index."""

    alignment: int
    is_sorted: bool
    has_crc: bool
    tensors: int | None


class Trailer(NamedTuple):
    """Where the index and the key-values stand."""

    index_at: int
    index_length: int
    key_values_at: int
    key_values_length: int
    crc: int


def encode_header() -> bytes:
    """Return the 64 bytes with which every file of ours begins."""
    return _HEADER.pack(
        MAGIC,
        _MAJOR,
        _MINOR,
        0,
        _CRC_FLAG,
        PAGE_ALIGNMENT,
        HEADER_BYTES,
        _UNKNOWN_COUNT,
        bytes(28),
    )


def decode_header(data: bytes) -> Header:
    """Return what the first 64 bytes of a file say.

    Raises:
        InvalidFileError: They break a rule of the format.
    """
    magic, major, minor, reserved, flags, alignment, first, count, rest = _HEADER.unpack(data)
    del minor
    if magic != MAGIC:
        sentence = f"A tensor file's magic must be {MAGIC!r}, not {magic!r}"
        raise InvalidFileError(sentence, offset=0, found=magic)
    if major != _MAJOR:
        age = "newer" if major > _MAJOR else "older"
        sentence = f"A tensor file's major version must be {_MAJOR}, not {major}, which is {age}"
        raise InvalidFileError(sentence, offset=8, found=major)
    for at, found in ((10, reserved), (36, int.from_bytes(rest, "little"))):
        if found:
            sentence = f"Reserved bytes of a tensor file's header must be 0, not 0x{found:X}"
            raise InvalidFileError(sentence, offset=at, found=found)
    if flags & ~_KNOWN_FLAGS:
        sentence = f"A tensor file's flags must have no bits above 2, not be 0x{flags:08X}"
        raise InvalidFileError(sentence, offset=12, found=flags)
    if not PAGE_ALIGNMENT <= alignment <= _LARGEST_ALIGNMENT or alignment & (alignment - 1):
        sentence = (
            f"A tensor file's alignment must be a power of two in {PAGE_ALIGNMENT}.."
            f"{_LARGEST_ALIGNMENT}, not {alignment}"
        )
        raise InvalidFileError(sentence, offset=16, found=alignment)
    if first != HEADER_BYTES:
        sentence = f"A tensor file's first descriptor must be at byte {HEADER_BYTES}, not {first}"
        raise InvalidFileError(sentence, offset=20, found=first)
    known = None if count == _UNKNOWN_COUNT else count
    return Header(alignment, bool(flags & _SORTED_FLAG), bool(flags & _CRC_FLAG), known)


def encode_trailer(index: bytes, index_at: int, key_values: bytes, key_values_at: int) -> bytes:
    """Return the 40 bytes with which a file ends."""
    return _TRAILER.pack(
        index_at,
        len(index),
        key_values_at if key_values else 0,
        len(key_values),
        crc32c(index),
        bytes(4),
        TRAILER_MAGIC,
    )


def decode_trailer(data: bytes, size: int) -> Trailer:
    """Return what the last 40 bytes of a file of `size` bytes say.

    Raises:
        InvalidFileError: They break a rule of the format, or point out of the file.
    """
    base = size - TRAILER_BYTES
    index_at, index_length, kv_at, kv_length, crc, reserved, magic = _TRAILER.unpack(data)
    if magic != TRAILER_MAGIC:
        sentence = f"A tensor file must end with {TRAILER_MAGIC!r}, not {magic!r}"
        raise InvalidFileError(sentence, offset=size - 4, found=magic)
    if any(reserved):
        sentence = f"Reserved bytes of a tensor file's trailer must be 0, not 0x{reserved.hex()}"
        raise InvalidFileError(sentence, offset=base + 32, found=reserved)
    if index_at < HEADER_BYTES or index_at + index_length != base:
        sentence = (
            f"The index must lie between the header and the trailer at byte {base}, not be "
            f"{index_length} bytes at byte {index_at}"
        )
        raise InvalidFileError(sentence, offset=base, found=index_at)
    if kv_length and not HEADER_BYTES <= kv_at <= index_at - kv_length:
        sentence = (
            f"The key-values must lie between the header and the index at byte {index_at}, not be "
            f"{kv_length} bytes at byte {kv_at}"
        )
        raise InvalidFileError(sentence, offset=base + 16, found=kv_at)
    if kv_at and not kv_length:
        sentence = f"The key-values must be at byte 0 where there are none, not at byte {kv_at}"
        raise InvalidFileError(sentence, offset=base + 16, found=kv_at)
    return Trailer(index_at, index_length, kv_at, kv_length, crc)


def encode_index(entries: Iterable[tuple[bytes, Entry]]) -> bytes:
    """Return the bytes of the index."""
    listed = list(entries)
    parts = [_COUNT.pack(len(listed))]
    for name, entry in listed:
        parts += (_LENGTH.pack(len(name)), name, _ENTRY.pack(*entry, 0))
    return b"".join(parts)


def decode_index(data: bytes, header: Header, trailer: Trailer) -> dict[str, Entry]:
    """Return where each tensor stands, by name.

    Args:
        data: The bytes of the index.
        header: Of the file.
        trailer: Of the file.

    Raises:
        InvalidFileError: The index breaks a rule of the format, or points out of the file.
    """
    if header.has_crc and crc32c(data) != trailer.crc:
        sentence = (
            f"The checksum of the index must be 0x{crc32c(data):08X}, not 0x{trailer.crc:08X}"
        )
        at = trailer.index_at + trailer.index_length + 28
        raise InvalidFileError(sentence, offset=at, found=trailer.crc)
    reader = Reader(data, trailer.index_at, "the index")
    count = reader.number("Q", "The number of tensors")
    if count * _LEAST_ENTRY > reader.left or header.tensors not in (None, count):
        valid = reader.left // _LEAST_ENTRY if header.tensors in (None, count) else header.tensors
        which = "at most " if header.tensors in (None, count) else ""
        sentence = f"The number of tensors must be {which}{valid}, not {count}"
        raise InvalidFileError(sentence, offset=trailer.index_at, found=count)
    found: dict[str, Entry] = {}
    last = b""
    for _ in range(count):
        at = reader.offset
        name = reader.text(reader.number("H", "The length of a name"), "A tensor's name")
        if not name or name in found:
            why = "used twice" if name else "empty"
            sentence = (
                f"A tensor's name must be of its own and not empty, not {name!r}, which is {why}"
            )
            raise InvalidFileError(sentence, offset=at, found=name)
        encoded = name.encode("utf-8")
        if header.is_sorted and encoded < last:
            sentence = f"The names of a sorted index must ascend, not be {name!r} behind {last!r}"
            raise InvalidFileError(sentence, offset=at, found=name)
        last = encoded
        found[name] = _entry(reader, name, trailer, header)
    reader.finish()
    return found


def _entry(reader: Reader, name: str, trailer: Trailer, header: Header) -> Entry:
    at = reader.offset
    fields = _ENTRY.unpack(reader.take(_ENTRY.size, "An entry of the index"))
    entry, reserved = Entry(*_reordered(fields)), fields[-1]
    if reserved:
        sentence = f"Reserved bytes of an entry of the index must be 0, not 0x{reserved:08X}"
        raise InvalidFileError(sentence, offset=at + 28, found=reserved)
    end = trailer.index_at
    for what, begin, size, field_at in (
        ("descriptor", entry.descriptor_at, entry.descriptor_length, at),
        ("data", entry.data_at, entry.data_length, at + 12),
    ):
        if begin < HEADER_BYTES or begin + size > end:
            sentence = (
                f"The {what} of tensor {name!r} must lie between the header and the index at byte "
                f"{end}, not be {size} bytes at byte {begin}"
            )
            raise InvalidFileError(sentence, offset=field_at, found=begin)
    if entry.descriptor_at % DESCRIPTOR_ALIGNMENT:
        sentence = (
            f"The descriptor of tensor {name!r} must be at a multiple of {DESCRIPTOR_ALIGNMENT}, "
            f"not at byte {entry.descriptor_at}"
        )
        raise InvalidFileError(sentence, offset=at, found=entry.descriptor_at)
    if entry.data_length and entry.data_at % header.alignment:
        sentence = (
            f"The data of tensor {name!r} must be at a multiple of {header.alignment}, "
            f"not at byte {entry.data_at}"
        )
        raise InvalidFileError(sentence, offset=at + 12, found=entry.data_at)
    return entry


def _reordered(fields: tuple[int, ...]) -> tuple[int, int, int, int]:
    descriptor_at, descriptor_length, data_at, data_length, _ = fields
    return descriptor_at, descriptor_length, data_at, data_length
