"""Quantization sections: the MXFP scheme in full, every other one as the bytes that it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from . import dtype as types
from .errors import BufferSizeError, InvalidDescriptorError
from .shapes import static
from .sizes import U32_MAX, checked_uint

if TYPE_CHECKING:
    from .buffers import BufferHandle
    from .elements import Dtype
    from .shapes import Shape

HEADER_BYTES: Final = 4
MXFP_SCHEME: Final = 0x05
CANONICAL_BLOCK: Final = 32

_VERSION = 1
_LEAST_BLOCK, _LARGEST_BLOCK = 16, 2048
_MXFP = Struct("<BBH3I")
_AT_AXIS, _AT_BLOCK, _AT_SCALES = 4, 8, 12
_INVALID = frozenset({0x00, 0xFF})

MXFP_STORAGE: Final = (
    types.float8_e4m3,
    types.float8_e5m2,
    types.float4_e2m1,
    types.float6_e2m3,
    types.float6_e3m2,
    types.int8,
    types.int4,
)
"""The element types that the MXFP scheme stores."""

_STORAGE_TAGS = frozenset(dtype.tag for dtype in MXFP_STORAGE)


@dataclass(frozen=True, slots=True)
class MXFP:
    """The microscaling scheme: one float8_e8m0 scale for every block along an axis.

    Scale number `outer * (extent / block_size) + block` belongs to block `block` along the axis, at
    the row-major position `outer` among the other indices.

    Args:
        axis: Along which elements share scales.
        block_size: How many do: a power of two, 16 to 2048, dividing the extent.
        scale_buffer_index: Which buffer holds the scales, one byte each.
        extra: Bytes that a later minor version has behind the fields.

    Raises:
        InvalidDescriptorError: A field breaks a rule of the scheme; a `FieldRangeError` where it does
            not fit 32 bits.
        FieldTypeError: A field is no integer.
    """

    axis: int
    block_size: int
    scale_buffer_index: int
    extra: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        checked_uint(self.axis, U32_MAX, "The axis of the MXFP scheme")
        checked_uint(self.scale_buffer_index, U32_MAX, "The scale_buffer_index of the MXFP scheme")
        checked_uint(self.block_size, U32_MAX, "The block_size of the MXFP scheme")
        _check_block(self.block_size)
        _check_scale_index(self.scale_buffer_index)

    def encode(self) -> bytes:
        """Return the bytes of the section, its length word left out."""
        fields = _MXFP.pack(
            MXFP_SCHEME, _VERSION, 0, self.axis, self.block_size, self.scale_buffer_index
        )
        return fields + self.extra


@dataclass(frozen=True, slots=True)
class VerbatimScheme:
    """A scheme that is carried as it is: a header of 4 bytes and a payload.

    Args:
        section: The bytes of the section, its length word left out.

    Raises:
        InvalidDescriptorError: The header is cut off, or the scheme's tag is one that never appears.
    """

    section: bytes

    def __post_init__(self) -> None:
        object.__setattr__(self, "section", bytes(self.section))
        if len(self.section) < HEADER_BYTES:
            sentence = (
                f"A quantization section must have a header of {HEADER_BYTES} bytes, "
                f"not {len(self.section)}"
            )
            raise InvalidDescriptorError(sentence, offset=0, found=len(self.section))
        if self.scheme in _INVALID:
            sentence = (
                "The scheme of a quantization section must be in 0x01..0xFE, "
                f"not 0x{self.scheme:02X}, which is invalid: it never appears"
            )
            raise InvalidDescriptorError(sentence, offset=0, found=self.scheme)

    @property
    def scheme(self) -> int:
        """The scheme's tag; 0xF0 to 0xFE are private."""
        return self.section[0]

    @property
    def version(self) -> int:
        """The scheme's version."""
        return self.section[1]

    @property
    def payload(self) -> bytes:
        """What follows the header."""
        return self.section[HEADER_BYTES:]

    def encode(self) -> bytes:
        """Return the bytes of the section, its length word left out."""
        return self.section


Quantization: TypeAlias = MXFP | VerbatimScheme


def decode_quantization(section: bytes) -> Quantization:
    """Return what a section says, its length word left out.

    Raises:
        InvalidDescriptorError: It breaks a rule; offsets count from its first byte.
    """
    if len(section) == _MXFP.size:
        return _decode_short(section)
    return _decode(section)


def _decode(section: bytes) -> Quantization:
    if not section or section[0] != MXFP_SCHEME:
        return VerbatimScheme(section)
    if len(section) < _MXFP.size:
        sentence = f"A section of the MXFP scheme must have {_MXFP.size} bytes, not {len(section)}"
        raise InvalidDescriptorError(sentence, offset=0, found=len(section))
    _, version, flags, axis, block_size, scales = _MXFP.unpack_from(section)
    if version != _VERSION:
        sentence = f"The version of the MXFP scheme must be {_VERSION}, not {version}"
        raise InvalidDescriptorError(sentence, offset=1, found=version)
    if flags:
        sentence = f"The flags of the MXFP scheme must be 0, not 0x{flags:04X}"
        raise InvalidDescriptorError(sentence, offset=2, found=flags)
    _check_block(block_size, offset=_AT_BLOCK)
    _check_scale_index(scales, offset=_AT_SCALES)
    return MXFP(axis, block_size, scales, section[_MXFP.size :])


def _check_block(block: int, *, offset: int | None = None) -> None:
    if not _LEAST_BLOCK <= block <= _LARGEST_BLOCK or block & (block - 1):
        sentence = (
            "The block_size of the MXFP scheme must be a power of two in "
            f"{_LEAST_BLOCK}..{_LARGEST_BLOCK}, not {block}"
        )
        raise InvalidDescriptorError(sentence, offset=offset, found=block)


def _check_scale_index(index: int, *, offset: int | None = None) -> None:
    if index == U32_MAX:
        sentence = "The scale_buffer_index of the MXFP scheme must name a buffer, not 0xFFFFFFFF"
        raise InvalidDescriptorError(sentence, offset=offset, found=index)


_decode_short = lru_cache(maxsize=256)(_decode)


def check_mxfp(
    scheme: MXFP,
    dtype: Dtype,
    shape: Shape,
    handles: tuple[BufferHandle, ...],
    data_buffers: int,
) -> None:
    """Refuse a tensor that the MXFP scheme cannot describe.

    Args:
        scheme: The scheme.
        dtype: The stored element type.
        shape: The logical shape.
        handles: The buffers.
        data_buffers: How many of them belong to the layout.

    Raises:
        InvalidDescriptorError: The axis, its extent, the element type, or the buffer of scales does
            not fit; offsets count from the section's first byte.
    """
    if dtype.tag not in _STORAGE_TAGS:
        valid = ", ".join(known.name for known in MXFP_STORAGE)
        sentence = f"Elements of the MXFP scheme must be one of {valid}, not {dtype.name}"
        raise InvalidDescriptorError(sentence, offset=0, found=dtype.tag)
    if scheme.axis >= len(shape):
        sentence = (
            f"The axis of the MXFP scheme must be below the rank {len(shape)}, not {scheme.axis}"
        )
        raise InvalidDescriptorError(sentence, offset=_AT_AXIS, found=scheme.axis)
    extent = shape[scheme.axis]
    if not extent or extent % scheme.block_size:
        sentence = (
            f"The extent of the MXFP scheme's axis {scheme.axis} must be a positive multiple of "
            f"the block of {scheme.block_size}, not {extent}"
        )
        raise InvalidDescriptorError(sentence, offset=_AT_BLOCK, found=extent)
    index = scheme.scale_buffer_index
    if not data_buffers <= index < len(handles):
        sentence = (
            "The scale_buffer_index of the MXFP scheme must be that of a buffer behind the "
            f"{data_buffers} of the data, below {len(handles)}, not {index}"
        )
        raise InvalidDescriptorError(sentence, offset=_AT_SCALES, found=index)
    known = static(shape)
    if known is None:
        return
    scales = math.prod(known) // scheme.block_size
    if handles[index].byte_size != scales:
        sentence = (
            f"The scales of the MXFP scheme (buffer {index}) must be {scales} bytes, one a block, "
            f"not {handles[index].byte_size}"
        )
        raise BufferSizeError(sentence, offset=_AT_SCALES, found=handles[index].byte_size)
