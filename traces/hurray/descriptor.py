"""Descriptors: everything that is said of a tensor, apart from its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import codec
from .buffers import CPU, BufferHandle, Device
from .errors import FieldTypeError
from .invariants import VERSION, check
from .layout_codec import ROW_MAJOR, Layout
from .shapes import element_count

if TYPE_CHECKING:
    from .elements import Dtype
    from .extension import ExtensionType
    from .quantization import Quantization
    from .sections import CompositeRole, Shard, Statistics
    from .shapes import Shape


@dataclass(frozen=True, slots=True, repr=False)
class Descriptor:
    """What is said of a tensor. Two that say the same are equal.

    Args:
        dtype: The element type.
        shape: Extents, dimension 0 first; None where one is dynamic.
        buffer_handles: The buffers, those of the layout first.
        byte_offset: Where in buffer 0 the element of index 0 stands.
        layout: Where the other elements stand.
        quantization: The scheme, or None.
        shard: Where the tensor stands in a larger one, or None.
        statistics: What was computed of the values, or None.
        extension_type: The section of a private element type, else None.
        composite_role: What the tensor is in an overlay, or None.
        version: Major, which is 1, and minor.
        trailing: Bytes that a later minor version has behind the sections.

    Raises:
        InvalidDescriptorError: The parts contradict each other.
    """

    dtype: Dtype
    shape: Shape
    buffer_handles: tuple[BufferHandle, ...]
    byte_offset: int = 0
    layout: Layout = ROW_MAJOR
    quantization: Quantization | None = None
    shard: Shard | None = None
    statistics: Statistics | None = None
    extension_type: ExtensionType | None = None
    composite_role: CompositeRole | None = None
    version: tuple[int, int] = VERSION
    trailing: bytes = b""

    def __post_init__(self) -> None:
        check(self)

    @staticmethod
    def decode(data: bytes | bytearray | memoryview) -> Descriptor:
        """Return the descriptor that `data` holds, from its first byte to its last.

        Encoding it gives the same bytes again.

        Raises:
            InvalidDescriptorError: The bytes break a rule of the format; `offset` and `found` tell
                where and what was found there.
            FieldTypeError: `data` are no bytes.
        """
        return codec.decode(data if type(data) is bytes else _as_bytes(data), Descriptor)

    def encode(self) -> bytes:
        """Return the descriptor's bytes."""
        return codec.encode(self)

    @property
    def encoded_len(self) -> int:
        """How many bytes `encode` gives."""
        return len(self.encode())

    @property
    def ndim(self) -> int:
        """The rank."""
        return len(self.shape)

    @property
    def size(self) -> int | None:
        """The number of elements, or None where an extent is dynamic."""
        return element_count(self.shape)

    @property
    def device(self) -> Device:
        """Where the buffers live; the CPU for the head of a composite, which has none."""
        return self.buffer_handles[0].device if self.buffer_handles else CPU

    @property
    def buffer_count(self) -> int:
        """How many buffers there are."""
        return len(self.buffer_handles)

    @property
    def bit_width(self) -> int:
        """Bits of an element, from the extension section for a private type."""
        extension = self.extension_type
        return self.dtype.bit_width if extension is None else extension.bit_width

    def __repr__(self) -> str:
        return (
            f"hurray.Descriptor(dtype={self.dtype}, shape={self.shape}, "
            f"layout={self.layout.name!r}, buffers={self.buffer_count})"
        )


def _as_bytes(data: Any) -> bytes:
    try:
        return bytes(memoryview(data))
    except TypeError as error:
        sentence = f"A descriptor must be decoded from bytes, not from {type(data).__name__}"
        raise FieldTypeError(sentence) from error
