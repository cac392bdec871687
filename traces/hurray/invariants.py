"""What must hold between the parts of a descriptor, whether it was authored or decoded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, cast

from .carried_layouts import BlockPagedLayout, CompositeLayout, CsfLayout
from .errors import BufferSizeError, InvalidDescriptorError, Part
from .extent import buffer_needs
from .layouts import ColMajorLayout, PrivateExtensionLayout
from .quantization import MXFP, check_mxfp
from .shapes import DYNAMIC, check_rank
from .sizes import checked_uint, packed_bytes

if TYPE_CHECKING:
    from .descriptor import Descriptor
    from .elements import Dtype
    from .extension import ExtensionType
    from .sections import Shard

VERSION: Final = (1, 0)
"""The version of descriptors that are written: major and minor."""

_MOST_BUFFERS = 255
_LARGEST_MINOR = 255
_LAST_CONTIGUOUS = ColMajorLayout.tag
_OFFSET_FREE = ("coo", "csr", "csc", "csf", "block_paged", "composite")
_UNSHARDED = (BlockPagedLayout, CsfLayout)


def check(descriptor: Descriptor) -> None:
    """Refuse a descriptor whose parts contradict each other.

    Raises:
        InvalidDescriptorError: They do; `part` tells which, and an offset counts from its first byte.
    """
    part = Part.TAG
    try:
        if descriptor.version != VERSION or descriptor.trailing:
            _version(descriptor)
        if descriptor.dtype.is_private or descriptor.extension_type is not None:
            check_pairing(descriptor.dtype, descriptor.extension_type)
        part = Part.LAYOUT
        _layout(descriptor)
        part = Part.BUFFERS
        _buffers(descriptor)
        if descriptor.byte_offset:
            part = Part.BYTE_OFFSET
            _byte_offset(descriptor)
        part = Part.BUFFERS
        _sizes(descriptor)
        if descriptor.quantization is not None:
            part = Part.QUANTIZATION
            _quantization(descriptor)
        if descriptor.shard is not None:
            part = Part.SHARD
            _shard(descriptor, descriptor.shard)
        if descriptor.composite_role is not None:
            part = Part.COMPOSITE
            _composite(descriptor)
    except InvalidDescriptorError as error:
        error.part = part
        raise


def check_pairing(dtype: Dtype, extension_type: ExtensionType | None) -> None:
    """Refuse a private type without its section, and a section without a private type.

    Raises:
        InvalidDescriptorError: Only one of the two is there.
    """
    if dtype.is_private:
        if extension_type is None:
            sentence = (
                f"An element type of tag 0x{dtype.tag:02X} must describe itself, as it is private: "
                "extension_type must be an ExtensionType, not None"
            )
            raise InvalidDescriptorError(sentence, found=dtype.tag)
    elif extension_type is not None:
        sentence = (
            f"extension_type must be left out for {dtype.name}, which is not a private extension "
            f"type (tag 0xF0 to 0xFE), not be {extension_type!r}"
        )
        raise InvalidDescriptorError(sentence, found=dtype.tag)


def _version(d: Descriptor) -> None:
    major, minor = d.version
    if major != VERSION[0] or not 0 <= minor <= _LARGEST_MINOR:
        sentence = (
            f"A descriptor's version must be {VERSION[0]}.0 to {VERSION[0]}.{_LARGEST_MINOR}, "
            f"not {major}.{minor}"
        )
        raise InvalidDescriptorError(sentence, found=d.version)
    if minor == 0 and d.trailing:
        sentence = (
            "A descriptor of version 1.0 must end with its last section, not have "
            f"{len(d.trailing)} bytes behind it"
        )
        raise InvalidDescriptorError(sentence, found=d.trailing)


def _layout(d: Descriptor) -> None:
    shape = d.shape
    check_rank(len(shape))
    for extent in shape:
        if extent is not None and not 0 <= extent < DYNAMIC:
            checked_uint(extent, DYNAMIC - 1, "An extent of a shape")
    d.layout.validate_against_shape(shape)


def _buffers(d: Descriptor) -> None:
    handles, layout = d.buffer_handles, d.layout
    count = len(handles)
    if layout.is_virtual:
        if count:
            sentence = f"The head of a composite must have no buffers, not {count}"
            raise InvalidDescriptorError(sentence, offset=0, found=count)
        return
    least = 1 if layout.buffer_count is None else layout.buffer_count
    if not least <= count <= _MOST_BUFFERS:
        sentence = (
            f"The buffers of a {layout.name} layout must be {least} to {_MOST_BUFFERS}, not {count}"
        )
        raise InvalidDescriptorError(sentence, offset=0, found=count)
    first = handles[0].device
    for handle in handles:
        device = handle.device
        if device is not first and device != first:
            sentence = (
                f"All buffers must live on one device in one memory class, {first.kind} and "
                f"{first.memory_class}, not on {device.kind} in {device.memory_class}"
            )
            raise InvalidDescriptorError(sentence, offset=0, found=device)


def _byte_offset(d: Descriptor) -> None:
    offset = d.byte_offset
    if d.layout.name in _OFFSET_FREE:
        sentence = f"The byte offset of a {d.layout.name} layout must be 0, not {offset}"
        raise InvalidDescriptorError(sentence, found=offset)
    size = d.buffer_handles[0].byte_size
    if not 0 <= offset <= size:
        sentence = f"The byte offset must lie in the {size} bytes of buffer 0, not at {offset}"
        raise InvalidDescriptorError(sentence, found=offset)


def _sizes(d: Descriptor) -> None:
    extension = d.extension_type
    width = d.dtype.bit_width if extension is None else extension.bit_width
    handles = d.buffer_handles
    if d.layout.tag <= _LAST_CONTIGUOUS and None not in d.shape:
        count = math.prod(cast("tuple[int, ...]", d.shape))
        if d.byte_offset + packed_bytes(width, count) <= handles[0].byte_size:
            return  # by far the most common case, at a fraction of the cost
    for need in buffer_needs(d.layout, d.shape, width, d.byte_offset):
        size = handles[need.buffer].byte_size
        if size < need.size:
            sentence = (
                f"Buffer {need.buffer} ({need.role}) of this {d.layout.name} layout must have at "
                f"least {need.size} bytes, not {size}"
            )
            # Behind the count, entries follow in order.
            raise BufferSizeError(sentence, offset=1 + 16 * need.buffer, found=size)


def _quantization(d: Descriptor) -> None:
    scheme = d.quantization
    if not isinstance(scheme, MXFP):
        return
    if scheme.extra and d.version[1] == 0:
        sentence = (
            "A section of the MXFP scheme in a descriptor of version 1.0 must have 16 bytes, "
            f"not {16 + len(scheme.extra)}"
        )
        raise InvalidDescriptorError(sentence, offset=0, found=16 + len(scheme.extra))
    layout = d.layout
    data_buffers = layout.buffer_count
    if data_buffers is None:
        assert isinstance(layout, PrivateExtensionLayout), layout
        data_buffers = 1
    check_mxfp(scheme, d.dtype, d.shape, d.buffer_handles, data_buffers)


def _shard(d: Descriptor, shard: Shard) -> None:
    if isinstance(d.layout, _UNSHARDED):
        sentence = f"A tensor of a {d.layout.name} layout must be no shard of a larger one"
        raise InvalidDescriptorError(sentence, offset=0, found=d.layout.tag)
    shard.check(d.shape)


def _composite(d: Descriptor) -> None:
    if isinstance(d.layout, CompositeLayout):
        sentence = (
            f"The head of a composite must have no role in one itself, not be {d.composite_role}"
        )
        raise InvalidDescriptorError(sentence, offset=0, found=d.composite_role)
