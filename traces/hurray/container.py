"""Tensor files: written whole or not at all, and read where they lie."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...ir.errors import InputError
from ..whole import written_whole
from . import codec
from .descriptor import Descriptor
from .errors import FieldTypeError, FileError, InvalidDescriptorError, InvalidFileError
from .file_format import (
    DESCRIPTOR_ALIGNMENT,
    HEADER_BYTES,
    PAGE_ALIGNMENT,
    TRAILER_BYTES,
    Entry,
    decode_header,
    decode_index,
    decode_trailer,
    encode_header,
    encode_index,
    encode_trailer,
)
from .key_values import decode_key_values, encode_key_values, encoded_name
from .reader import Reader
from .tensor import Tensor

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import BinaryIO, Self

    from .key_values import Value

_LEAST_FILE = HEADER_BYTES + 8 + TRAILER_BYTES


def save(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Tensor],
    kv: Mapping[str, Value] | None = None,
) -> None:
    """Write tensors to a file, which appears whole or not at all.

    The same tensors in the same order give the same bytes.

    Args:
        path: The file; one that is there is replaced. Its folder is made if need be.
        tensors: By name.
        kv: Texts, integers, floats, truth values, bytes, and lists of these, by key.

    Raises:
        FileError: The file cannot be written.
        InvalidFileError: A name or a key cannot be stored, or a value.
        FieldTypeError: A tensor is none.
    """
    named: list[tuple[bytes, Tensor]] = []
    for name, given in tensors.items():
        tensor: Any = given
        if not isinstance(tensor, Tensor):
            sentence = f"{name!r} must be a Tensor, not {type(tensor).__name__}"
            raise FieldTypeError(sentence, hint="from_numpy makes one of an array.")
        named.append((encoded_name(name, "A tensor's name"), tensor))
    key_values = encode_key_values(kv) if kv else b""
    try:
        with written_whole(Path(path)) as temporary, temporary.open("wb") as file:
            _write(file, named, key_values)
    except InputError as error:
        raise FileError(error.message) from error


def load(path: str | os.PathLike[str], names: Iterable[str] | None = None) -> dict[str, Tensor]:
    """Return the tensors of a file, in its order; their bytes stay where they lie until read.

    Args:
        path: The file. While tensors of it are in use it may be replaced, but not be changed.
        names: Which tensors; all by default.

    Raises:
        FileError: The file cannot be read, or has no tensor of a name.
        InvalidFileError: Its bytes break a rule of the format.
        InvalidDescriptorError: Those of a descriptor do.
    """
    with HurrayFile(path) as file:
        return {name: file[name] for name in (file.names if names is None else names)}


def load_kv(path: str | os.PathLike[str]) -> dict[str, Value]:
    """Return the key-values of a file.

    Raises:
        FileError: The file cannot be read.
        InvalidFileError: Its bytes break a rule of the format.
    """
    with HurrayFile(path) as file:
        return file.kv


class HurrayFile:
    """An open tensor file. Any number of threads may read it at once.

    Opening reads the index; a tensor's descriptor is read when it is asked for, and its bytes are
    views of the file, which stay valid when the file is closed.

    Args:
        path: The file.

    Raises:
        FileError: It cannot be read.
        InvalidFileError: Its bytes break a rule of the format.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._data = _mapped(self._path)
        size = len(self._data)
        if size < _LEAST_FILE:
            sentence = f"A tensor file must have at least {_LEAST_FILE} bytes, not {size}"
            raise InvalidFileError(sentence, offset=0, found=size)
        self._header = decode_header(self._bytes(0, HEADER_BYTES))
        self._trailer = decode_trailer(self._bytes(size - TRAILER_BYTES, TRAILER_BYTES), size)
        index = self._bytes(self._trailer.index_at, self._trailer.index_length)
        self._entries = decode_index(index, self._header, self._trailer)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tensors, in the file's order."""
        return tuple(self._entries)

    @property
    def kv(self) -> dict[str, Value]:
        """The key-values.

        Raises:
            InvalidFileError: Their bytes break a rule of the format.
        """
        at, length = self._trailer.key_values_at, self._trailer.key_values_length
        if not length:
            return {}
        return decode_key_values(Reader(self._bytes(at, length), at, "the key-values"))

    def descriptor(self, name: str) -> Descriptor:
        """Return the descriptor of a tensor without a look at its bytes.

        Raises:
            FileError: There is no tensor of that name.
            InvalidDescriptorError: The descriptor breaks a rule; the offset is that of the file.
        """
        entry = self._entry(name)
        data = self._bytes(entry.descriptor_at, entry.descriptor_length)
        try:
            return codec.decode(data, Descriptor)
        except InvalidDescriptorError as error:
            raise error.moved(entry.descriptor_at) from None

    def __getitem__(self, name: str) -> Tensor:
        entry = self._entry(name)
        descriptor = self.descriptor(name)
        at = entry.data_at
        buffers: list[memoryview] = []
        for handle in descriptor.buffer_handles:
            at = _aligned(at, self._header.alignment)
            # What lies beyond the data's end is refused below, before anyone reads it.
            buffers.append(self._data[at : at + handle.byte_size])
            at += handle.byte_size
        if at - entry.data_at != entry.data_length:
            sentence = (
                f"The data of tensor {name!r} must be {at - entry.data_at} bytes, as its descriptor "
                f"says, not {entry.data_length}"
            )
            raise InvalidFileError(sentence, offset=entry.data_at, found=entry.data_length)
        return Tensor.from_parts(descriptor, buffers)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def close(self) -> None:
        """Let go of the file; tensors that were read keep what they need."""
        self._data = memoryview(b"")
        self._entries = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _entry(self, name: str) -> Entry:
        entry = self._entries.get(name)
        if entry is None:
            listed = ", ".join(repr(known) for known in self._entries) or "none"
            message = f"The name of a tensor must be one that {self._path} has, not {name!r}"
            raise FileError(message, hint=f"It has: {listed}.")
        return entry

    def _bytes(self, at: int, size: int) -> bytes:
        return bytes(self._data[at : at + size])


def _mapped(path: Path) -> memoryview:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:  # a null character is a ValueError
        reason = error.strerror if isinstance(error, OSError) else None
        message = f"{path} must be a tensor file that can be read: {reason or error}"
        raise FileError(message) from error


def _write(file: BinaryIO, tensors: list[tuple[bytes, Tensor]], key_values: bytes) -> None:
    at = file.write(encode_header())
    entries: list[tuple[bytes, Entry]] = []
    for name, tensor in tensors:
        descriptor = tensor.descriptor.encode()
        descriptor_at = at
        at += file.write(descriptor)
        at += _pad(file, at, PAGE_ALIGNMENT)
        data_at = data_end = at
        for index in range(tensor.buffer_count):
            at += _pad(file, at, PAGE_ALIGNMENT)
            at += file.write(tensor.buffer(index))
            data_end = at
        at += _pad(file, at, DESCRIPTOR_ALIGNMENT)
        entries.append((name, Entry(descriptor_at, len(descriptor), data_at, data_end - data_at)))
    key_values_at = at
    at += file.write(key_values)
    at += _pad(file, at, DESCRIPTOR_ALIGNMENT)
    index = encode_index(entries)
    file.write(index)
    file.write(encode_trailer(index, at, key_values, key_values_at))


def _aligned(at: int, alignment: int) -> int:
    return -(-at // alignment) * alignment


def _pad(file: BinaryIO, at: int, alignment: int) -> int:
    return file.write(bytes(_aligned(at, alignment) - at))
