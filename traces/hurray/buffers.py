"""The buffer table: how large each buffer is, how it is aligned and where it lives."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from .errors import FieldTypeError, InvalidDescriptorError
from .sizes import U32_MAX, U64_MAX, checked_uint

HANDLE_BYTES: Final = 16
MIN_BUFFER_ALIGNMENT: Final = 64
PRIVATE_TAGS: Final = range(0xF0, 0xFF)

_WIRE = Struct("<QI4B")
_SIZE_AND_ALIGNMENT = Struct("<QI")
_set = object.__setattr__
_AT_ALIGNMENT, _AT_DEVICE, _AT_SYNC, _AT_MEMORY, _AT_RESERVED = 8, 12, 13, 14, 15
_INVALID_TAG = 0xFF

# Position is the tag.
_DEVICES = (
    "cpu", "cuda", "rocm", "metal", "vulkan", "webgpu", "hexagon", "level_zero", "opencl",
)  # fmt: skip
_MEMORY_CLASSES = ("standard", "host_pinned", "unified", "peer")
_ILLEGAL_PAIRS = frozenset(
    [("peer", device) for device in ("cpu", "metal", "hexagon", "opencl", "webgpu")]
    + [(memory, "webgpu") for memory in ("host_pinned", "unified")]
)


class SyncMode(StrEnum):
    """How a consumer knows that the bytes are there; in the order of their wire values."""

    PRODUCER_SYNCED = "producer_synced"
    EVENT = "event"
    CONSUMER_STREAM = "consumer_stream"


_SYNC_MODES: Final[tuple[SyncMode, ...]] = (
    SyncMode.PRODUCER_SYNCED,
    SyncMode.EVENT,
    SyncMode.CONSUMER_STREAM,
)
_SYNC_BYTES = {mode: value for value, mode in enumerate(_SYNC_MODES)}


def _tag(value: Any, names: tuple[str, ...], what: str) -> int:
    if isinstance(value, int) and value in PRIVATE_TAGS:
        return value
    if value not in names:
        sentence = (
            f"{what} must be a name of the format or a private tag (0xF0 to 0xFE), not {value!r}"
        )
        raise InvalidDescriptorError(sentence, found=value, hint=f"Valid are: {', '.join(names)}.")
    return names.index(value)


@dataclass(frozen=True, slots=True)
class Device:
    """Where a buffer lives.

    Args:
        kind: `cpu`, `cuda`, `rocm`, `metal`, `vulkan`, `webgpu`, `hexagon`, `level_zero`, `opencl`,
            or a private tag, 0xF0 to 0xFE.
        device_id: Which of several; it is not part of a descriptor.
        memory_class: `standard`, `host_pinned`, `unified`, `peer`, or a private tag.

    Raises:
        InvalidDescriptorError: There is no such kind or class, or the two do not go together.
    """

    kind: str | int = "cpu"
    device_id: int = 0
    memory_class: str | int = "standard"

    def __post_init__(self) -> None:
        _tag(self.kind, _DEVICES, "The kind of a device")
        _tag(self.memory_class, _MEMORY_CLASSES, "The memory class of a device")
        checked_uint(self.device_id, U32_MAX, "The id of a device")
        if (self.memory_class, self.kind) in _ILLEGAL_PAIRS:
            sentence = (
                f"The memory class of a device must be one that {self.kind} has, "
                f"not {self.memory_class}"
            )
            raise InvalidDescriptorError(sentence, found=self.memory_class)

    @property
    def tag(self) -> int:
        """The byte of the kind."""
        return _tag(self.kind, _DEVICES, "The kind of a device")

    @property
    def memory_class_tag(self) -> int:
        """The byte of the memory class."""
        return _tag(self.memory_class, _MEMORY_CLASSES, "The memory class of a device")

    @property
    def is_private(self) -> bool:
        """Whether the kind is a private one."""
        return self.tag in PRIVATE_TAGS


CPU: Final = Device()


@dataclass(frozen=True, slots=True)
class BufferHandle:
    """What a descriptor says of one buffer.

    Args:
        byte_size: Its bytes; 0 for an empty buffer.
        alignment: Bytes that its address is a multiple of: a power of two, at least 64 unless the
            buffer is empty.
        device: Where it lives.
        sync_mode: How a consumer knows that its bytes are there; on a CPU, always by then.

    Raises:
        InvalidDescriptorError: A field breaks a rule of the format.
        FieldTypeError: A field is of the wrong type.
    """

    byte_size: int
    alignment: int = MIN_BUFFER_ALIGNMENT
    _: KW_ONLY
    device: Device = CPU
    sync_mode: SyncMode = SyncMode.PRODUCER_SYNCED

    def __post_init__(self) -> None:
        size = checked_uint(self.byte_size, U64_MAX, "The size of a buffer")
        alignment = checked_uint(self.alignment, U32_MAX, "The alignment of a buffer")
        device: Any = self.device
        if not isinstance(device, Device):
            sentence = f"The device of a buffer must be a Device, not {device!r}"
            raise FieldTypeError(sentence)
        _check_alignment(size, alignment)
        _check_sync(self.device.tag, _SYNC_BYTES[SyncMode(self.sync_mode)])

    @property
    def is_empty(self) -> bool:
        """Whether the buffer has no bytes."""
        return self.byte_size == 0

    def encode(self) -> bytes:
        """Return the 16 bytes of the table's entry."""
        device = self.device
        return _WIRE.pack(
            self.byte_size,
            self.alignment,
            device.tag,
            _SYNC_BYTES[self.sync_mode],
            device.memory_class_tag,
            0,
        )


def authored_handle(size: int, device: Device = CPU) -> BufferHandle:
    """Return the handle of a new buffer: aligned to 64 bytes, or to 1 where it is empty."""
    return BufferHandle(size, MIN_BUFFER_ALIGNMENT if size else 1, device=device)


def decode_handle(entry: bytes) -> BufferHandle:
    """Return what the 16 bytes of an entry say.

    Raises:
        InvalidDescriptorError: They break a rule; offsets count from the entry's first byte.
    """
    fields: tuple[int, int] = _SIZE_AND_ALIGNMENT.unpack_from(entry)
    size, alignment = fields
    device, sync_mode = _place(entry[_AT_DEVICE:])
    if alignment < MIN_BUFFER_ALIGNMENT or alignment & (alignment - 1):
        _check_alignment(size, alignment, offset=_AT_ALIGNMENT)
    # Every field has been checked: the constructor, which does it again, is passed by.
    handle = BufferHandle.__new__(BufferHandle)
    _set(handle, "byte_size", size)
    _set(handle, "alignment", alignment)
    _set(handle, "device", device)
    _set(handle, "sync_mode", sync_mode)
    return handle


@lru_cache(maxsize=256)
def _place(tags: bytes) -> tuple[Device, SyncMode]:
    device_tag, sync, memory_tag, reserved = tags
    if reserved:
        sentence = f"The reserved byte of a buffer must be 0, not 0x{reserved:02X}"
        raise InvalidDescriptorError(sentence, offset=_AT_RESERVED, found=reserved)
    if sync >= len(_SYNC_MODES):
        sentence = f"The sync mode of a buffer must be 0, 1 or 2, not {sync}"
        raise InvalidDescriptorError(sentence, offset=_AT_SYNC, found=sync)
    kind = _name(device_tag, _DEVICES, "device tag", _AT_DEVICE)
    memory = _name(memory_tag, _MEMORY_CLASSES, "memory class", _AT_MEMORY)
    _check_sync(device_tag, sync, offset=_AT_SYNC)
    try:
        device = Device(kind, memory_class=memory)
    except InvalidDescriptorError as error:
        raise error.moved(_AT_MEMORY) from None
    return device, _SYNC_MODES[sync]


def _check_alignment(size: int, alignment: int, *, offset: int | None = None) -> None:
    if alignment == 0 or alignment & (alignment - 1):
        sentence = f"The alignment of a buffer must be a power of two, not {alignment}"
    elif size and alignment < MIN_BUFFER_ALIGNMENT:
        sentence = (
            f"The alignment of a buffer must be at least {MIN_BUFFER_ALIGNMENT} unless it is "
            f"empty, not {alignment}"
        )
    else:
        return
    raise InvalidDescriptorError(sentence, offset=offset, found=alignment)


def _check_sync(device_tag: int, sync: int, *, offset: int | None = None) -> None:
    if device_tag == 0 and sync != 0:
        sentence = f"The sync mode of a buffer on a CPU must be producer_synced (0), not {sync}"
        raise InvalidDescriptorError(sentence, offset=offset, found=sync)


def _name(tag: int, names: tuple[str, ...], what: str, offset: int) -> str | int:
    if tag < len(names):
        return names[tag]
    if tag in PRIVATE_TAGS:
        return tag
    why = "invalid" if tag == _INVALID_TAG else "reserved"
    sentence = (
        f"The {what} of a buffer must be below {len(names)} or private (0xF0 to 0xFE), "
        f"not 0x{tag:02X}, which is {why}"
    )
    raise InvalidDescriptorError(sentence, offset=offset, found=tag)
