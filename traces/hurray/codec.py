"""Descriptors on the wire: every part in its order, checked as it is read.

| part | bytes | present when |
|---|---|---|
| header: magic, version, length, flags, element type, layout, rank | 20 | always |
| shape | 8 a dimension | always |
| byte offset | 8 | always |
| layout | by its tag | always |
| buffer table | 1, and 16 a buffer | always |
| quantization | 4, and its length | flag 0 |
| shard | 16 a dimension | flag 1 |
| statistics | 72 | flag 3 |
| extension type | 20 | flag 2 |
| composite member | 16 | flag 4 |

Integers are little-endian. Nothing is taken from a length before it was held against the bytes that
are there.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, TypeVar

from . import layout_codec
from .buffers import HANDLE_BYTES, decode_handle
from .elements import BY_TAG, unknown_tag
from .errors import InvalidDescriptorError, Part, truncated
from .extension import SECTION_BYTES as EXTENSION_BYTES
from .extension import decode_extension_type
from .quantization import decode_quantization
from .sections import (
    COMPOSITE_BYTES,
    STATISTICS_BYTES,
    Statistics,
    decode_role,
    decode_shard,
    role_bytes,
    shard_bytes,
)
from .shapes import MAX_RANK, check_rank, from_wire, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from .buffers import BufferHandle
    from .descriptor import Descriptor
    from .extension import ExtensionType
    from .layout_codec import Layout
    from .quantization import Quantization
    from .sections import CompositeRole, Shard

MAGIC: Final = b"HRRY"
MAJOR: Final = 1
HEADER_BYTES: Final = 20
PREFIX_BYTES: Final = 10
"""Bytes that tell how long a descriptor is."""

QUANTIZATION_FLAG: Final = 1 << 0
SHARD_FLAG: Final = 1 << 1
EXTENSION_FLAG: Final = 1 << 2
STATISTICS_FLAG: Final = 1 << 3
COMPOSITE_FLAG: Final = 1 << 4

_KNOWN_FLAGS = 0x1F
_HEADER = Struct("<4sBBIIBBI")
_PREFIX = Struct("<4sBBI")
_LENGTH = Struct("<I")
_AT_MAJOR, _AT_LENGTH, _AT_FLAGS, _AT_TYPE, _AT_LAYOUT, _AT_RANK = 4, 6, 10, 14, 15, 16
_SHAPE_AND_OFFSET = tuple(Struct(f"<{rank + 1}Q") for rank in range(MAX_RANK + 1))
_SIMPLE_LAYOUTS: Final[dict[int, Layout]] = {
    layout.tag: layout for layout in (layout_codec.ROW_MAJOR, layout_codec.COL_MAJOR)
}
_Part = TypeVar("_Part")
_Sections: TypeAlias = """tuple[
    Quantization | None, Shard | None, Statistics | None, ExtensionType | None, CompositeRole | None
]"""
_NO_SECTIONS: Final[_Sections] = (None, None, None, None, None)


def declared_length(prefix: bytes) -> int:
    """Return how long a descriptor is, from its first 10 bytes.

    Raises:
        InvalidDescriptorError: They do not begin a descriptor of a version that we read.
    """
    if len(prefix) < PREFIX_BYTES:
        _need("A descriptor's prefix", PREFIX_BYTES, 0, len(prefix))
    magic, major, _, length = _PREFIX.unpack_from(prefix)
    if magic != MAGIC:
        sentence = f"A descriptor's magic must be {_hex(MAGIC)} ('HRRY'), not {_hex(magic)}"
        raise InvalidDescriptorError(sentence, offset=0, found=magic)
    if major != MAJOR:
        age = "newer" if major > MAJOR else "older"
        sentence = f"A descriptor's major version must be {MAJOR}, not {major}, which is {age}"
        raise InvalidDescriptorError(sentence, offset=_AT_MAJOR, found=major)
    if length < HEADER_BYTES:
        sentence = f"A descriptor's length must be at least {HEADER_BYTES}, not {length}"
        raise InvalidDescriptorError(sentence, offset=_AT_LENGTH, found=length)
    return length


def decode(data: bytes, kind: type[Descriptor]) -> Descriptor:
    """Return the descriptor that `data` holds, from its first byte to its last.

    Args:
        data: The bytes.
        kind: The class to make.

    Raises:
        InvalidDescriptorError: The bytes break a rule of the format.
    """
    if len(data) < HEADER_BYTES:
        length = declared_length(data)
        raise _wrong_length(length, len(data))
    header: tuple[bytes, int, int, int, int, int, int, int] = _HEADER.unpack_from(data)
    magic, major, minor, length, flags, type_tag, layout_tag, rank = header
    dtype = BY_TAG[type_tag]
    if (
        magic != MAGIC
        or major != MAJOR
        or length != len(data)
        or flags > _KNOWN_FLAGS
        or dtype is None
        or rank > MAX_RANK
    ):
        _refuse_header(data)
    if dtype.is_private != bool(flags & EXTENSION_FLAG):
        raise _unpaired(type_tag, flags)
    layout_at = HEADER_BYTES + 8 * rank + 8
    if layout_at > length:
        _refuse_short_shape(rank, length)
    words: tuple[int, ...] = _SHAPE_AND_OFFSET[rank].unpack_from(data, HEADER_BYTES)
    layout: Layout | None = _SIMPLE_LAYOUTS.get(layout_tag)
    table_at = layout_at
    if layout is None:
        if not layout_codec.is_layout_tag(layout_tag):
            raise layout_codec.unknown_layout(layout_tag, offset=_AT_LAYOUT)
        layout, table_at = layout_codec.decode_layout(layout_tag, data, layout_at, length, rank)
    handles, sections_at = _handles(data, table_at, length)
    sections, at = _sections(data, flags, sections_at, length, rank)
    if at != length and minor == 0:
        sentence = (
            f"A descriptor of version 1.0 must end with its last section, at byte {at}, "
            f"not at byte {length}"
        )
        raise InvalidDescriptorError(sentence, offset=at, found=length)
    shape = from_wire(words[:-1])
    try:
        return kind(dtype, shape, handles, words[-1], layout, *sections, (major, minor), data[at:])
    except InvalidDescriptorError as error:
        places = {
            Part.TAG: _AT_TYPE,
            Part.LAYOUT: HEADER_BYTES if layout_at == table_at else layout_at,
            Part.BYTE_OFFSET: layout_at - 8,
            Part.BUFFERS: table_at,
            Part.QUANTIZATION: sections_at + _LENGTH.size,
            Part.SHARD: _shard_at(data, flags, sections_at),
            Part.COMPOSITE: at - COMPOSITE_BYTES,
        }
        raise error.moved(places[error.part or Part.TAG]) from None


def _sections(data: bytes, flags: int, at: int, end: int, rank: int) -> tuple[_Sections, int]:
    """Return the sections that `flags` announce from `at` on, and where the last one ends."""
    if flags == 0:
        return _NO_SECTIONS, at
    quantization = shard = statistics = extension = role = None
    if flags & QUANTIZATION_FLAG:
        begin = _need("The quantization section's length", _LENGTH.size, at, end)
        at = _need("The quantization section", _LENGTH.unpack_from(data, at)[0], begin, end)
        quantization = _placed(decode_quantization, data[begin:at], begin)
    if flags & SHARD_FLAG:
        after = _need("The shard section", 16 * rank, at, end)
        shard = decode_shard(data[at:after], rank)
        at = after
    if flags & STATISTICS_FLAG:
        after = _need("The statistics section", STATISTICS_BYTES, at, end)
        statistics = _placed(Statistics.from_section, data[at:after], at)
        at = after
    if flags & EXTENSION_FLAG:
        after = _need("The extension type section", EXTENSION_BYTES, at, end)
        extension = _placed(decode_extension_type, data[at:after], at)
        at = after
    if flags & COMPOSITE_FLAG:
        after = _need("The composite member section", COMPOSITE_BYTES, at, end)
        role = _placed(decode_role, data[at:after], at)
        at = after
    return (quantization, shard, statistics, extension, role), at


def _shard_at(data: bytes, flags: int, sections_at: int) -> int:
    if flags & QUANTIZATION_FLAG:
        return sections_at + _LENGTH.size + _LENGTH.unpack_from(data, sections_at)[0]
    return sections_at


def encode(descriptor: Descriptor) -> bytes:
    """Return the bytes of a descriptor."""
    d = descriptor
    flags = 0
    sections: list[bytes] = []
    if d.quantization is not None:
        flags |= QUANTIZATION_FLAG
        section = d.quantization.encode()
        sections += (_LENGTH.pack(len(section)), section)
    if d.shard is not None:
        flags |= SHARD_FLAG
        sections.append(shard_bytes(d.shard))
    if d.statistics is not None:
        flags |= STATISTICS_FLAG
        sections.append(d.statistics.encode())
    if d.extension_type is not None:
        flags |= EXTENSION_FLAG
        sections.append(d.extension_type.encode())
    if d.composite_role is not None:
        flags |= COMPOSITE_FLAG
        sections.append(role_bytes(d.composite_role))
    rank = len(d.shape)
    body = b"".join(
        (
            _SHAPE_AND_OFFSET[rank].pack(*to_wire(d.shape), d.byte_offset),
            layout_codec.encode_layout(d.layout),
            bytes((len(d.buffer_handles),)),
            *(handle.encode() for handle in d.buffer_handles),
            *sections,
            d.trailing,
        )
    )
    header = _HEADER.pack(
        MAGIC, *d.version, HEADER_BYTES + len(body), flags, d.dtype.tag, d.layout.tag, rank
    )
    return header + body


def _refuse_header(data: bytes) -> NoReturn:
    """Raise the error for the first wrong field of a header."""
    length = declared_length(data[:PREFIX_BYTES])
    if length != len(data):
        raise _wrong_length(length, len(data))
    *_, flags, type_tag, layout_tag, rank = _HEADER.unpack_from(data)
    del layout_tag
    if flags > _KNOWN_FLAGS:
        sentence = f"A descriptor's flags must have no bits above 4, not be 0x{flags:08X}"
        raise InvalidDescriptorError(sentence, offset=_AT_FLAGS, found=flags)
    if BY_TAG[type_tag] is None:
        raise unknown_tag(type_tag, offset=_AT_TYPE)
    check_rank(rank, offset=_AT_RANK)
    raise AssertionError(data[:HEADER_BYTES])


def _wrong_length(declared: int, have: int) -> InvalidDescriptorError:
    how = "cut off" if declared > have else "followed by other bytes"
    sentence = (
        f"A descriptor of {declared} bytes must be given whole and alone, not as {have} bytes: "
        f"it is {how}"
    )
    return InvalidDescriptorError(sentence, offset=_AT_LENGTH, found=declared)


def _unpaired(type_tag: int, flags: int) -> InvalidDescriptorError:
    if flags & EXTENSION_FLAG:
        sentence = (
            "A descriptor with an extension type section must have a private element type "
            f"(0xF0 to 0xFE), not tag 0x{type_tag:02X}"
        )
        return InvalidDescriptorError(sentence, offset=_AT_TYPE, found=type_tag)
    sentence = (
        f"A descriptor of the private element type 0x{type_tag:02X} must have an extension type "
        f"section (flag 0x{EXTENSION_FLAG:02X}), not flags 0x{flags:08X}"
    )
    return InvalidDescriptorError(sentence, offset=_AT_FLAGS, found=flags)


def _refuse_short_shape(rank: int, length: int) -> NoReturn:
    offset_at = HEADER_BYTES + 8 * rank
    _need(f"The shape of {rank} dimensions", 8 * rank, HEADER_BYTES, length)
    _need("The byte offset", 8, offset_at, length)
    raise AssertionError((rank, length))


def _handles(data: bytes, at: int, end: int) -> tuple[tuple[BufferHandle, ...], int]:
    begin = _need("The buffer count", 1, at, end)
    count = data[at]
    after = _need(f"The table of {count} buffers", HANDLE_BYTES * count, begin, end)
    if count == 1:
        return (_placed(decode_handle, data[begin:after], begin),), after
    entries = range(begin, after, HANDLE_BYTES)
    return tuple(_placed(decode_handle, data[e : e + HANDLE_BYTES], e) for e in entries), after


def _need(what: str, size: int, at: int, end: int) -> int:
    """Return where `size` bytes from `at` on end.

    Raises:
        InvalidDescriptorError: The descriptor ends before.
    """
    if at + size > end:
        raise truncated(what, offset=at, need=size, have=end - at)
    return at + size


def _placed(decoder: Callable[[bytes], _Part], section: bytes, at: int) -> _Part:
    """Return what a section says, with the offsets of errors counted from the descriptor."""
    try:
        return decoder(section)
    except InvalidDescriptorError as error:
        raise error.moved(at) from None


def _hex(data: bytes) -> str:
    return data.hex(" ").upper()
