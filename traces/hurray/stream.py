"""Tensor streams: descriptor, buffers, next descriptor, until the input ends."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from . import codec
from .descriptor import Descriptor
from .errors import FieldTypeError, InvalidDescriptorError, InvalidStreamError, StreamError
from .tensor import Tensor

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from types import TracebackType
    from typing import BinaryIO, Self

MAX_DESCRIPTOR_BYTES: Final = 16 << 20

_PIECE = 1 << 20


class StreamReader:
    """Reads tensors one after the other; memory grows with the bytes that have arrived.

    Args:
        source: A path, bytes, or a binary file object with `read`.
        max_descriptor_bytes: The longest descriptor that is accepted.
        max_buffer_bytes: The largest buffer that is accepted; any by default.

    Raises:
        StreamError: The path cannot be read.
        FieldTypeError: The source is nothing that can be read.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO,
        *,
        max_descriptor_bytes: int = MAX_DESCRIPTOR_BYTES,
        max_buffer_bytes: int | None = None,
    ) -> None:
        self._file, self._is_own = _opened(source)
        self._max_descriptor_bytes = max_descriptor_bytes
        self._max_buffer_bytes = max_buffer_bytes
        self._at = 0

    def __iter__(self) -> Iterator[Tensor]:
        return self

    def __next__(self) -> Tensor:
        begin = self._at
        prefix = self._read(codec.PREFIX_BYTES)
        if not prefix:
            raise StopIteration
        try:
            length = codec.declared_length(prefix)
            self._check_limit(length, self._max_descriptor_bytes, "A descriptor", begin + 6)
            rest = self._whole(length - len(prefix), "A descriptor")
            descriptor = codec.decode(prefix + rest, Descriptor)
        except InvalidStreamError:
            raise
        except InvalidDescriptorError as error:
            raise error.moved(begin) from None
        buffers: list[bytes] = []
        for handle in descriptor.buffer_handles:
            self._check_limit(handle.byte_size, self._max_buffer_bytes, "A buffer", self._at)
            buffers.append(self._whole(handle.byte_size, "A buffer"))
        return Tensor.from_parts(descriptor, buffers)

    def close(self) -> None:
        """Close the source, if it was given by its path."""
        if self._is_own:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check_limit(self, size: int, limit: int | None, what: str, at: int) -> None:
        if limit is not None and size > limit:
            sentence = f"{what} of a stream must have at most {limit} bytes, not {size}"
            raise InvalidStreamError(sentence, offset=at, found=size)

    def _whole(self, size: int, what: str) -> bytes:
        begin = self._at
        data = self._read(size)
        if len(data) < size:
            sentence = f"{what} of a stream must have {size} bytes, but it ends after {len(data)}"
            raise InvalidStreamError(sentence, offset=begin, found=len(data))
        return data

    def _read(self, size: int) -> bytes:
        """Return `size` bytes, fewer at the end; a promise of bytes takes no memory."""
        pieces: list[bytes] = []
        left = size
        while left:
            try:
                piece = self._file.read(min(left, _PIECE))
            except OSError as error:
                message = f"A stream must be readable to its end: {error.strerror or error}"
                raise StreamError(message) from error
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        self._at += size - left
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class StreamWriter:
    """Writes tensors one after the other.

    Args:
        destination: A path, or a binary file object with `write`; by default the stream is built in
            memory.

    Raises:
        StreamError: The path cannot be written.
    """

    def __init__(self, destination: str | os.PathLike[str] | BinaryIO | None = None) -> None:
        self._memory = io.BytesIO() if destination is None else None
        if self._memory is not None:
            self._file, self._is_own = self._memory, False
        else:
            self._file, self._is_own = _opened(destination, mode="wb")

    def write(self, tensor: Tensor) -> None:
        """Write a tensor.

        Raises:
            StreamError: The destination cannot be written.
        """
        try:
            self._file.write(tensor.descriptor.encode())
            for index in range(tensor.buffer_count):
                self._file.write(tensor.buffer(index))
        except OSError as error:
            message = f"A stream must be writable: {error.strerror or error}"
            raise StreamError(message) from error

    def finish(self) -> None:
        """Let everything reach the destination; one that was given by its path is closed."""
        if self._is_own:
            self._file.close()
        elif self._memory is None:
            self._file.flush()

    def getvalue(self) -> bytes:
        """Return the stream that was built in memory.

        Raises:
            StreamError: It went elsewhere.
        """
        if self._memory is None:
            message = "A stream must be built in memory to be returned, not written elsewhere"
            raise StreamError(message)
        return self._memory.getvalue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.finish()


def _opened(given: Any, *, mode: str = "rb") -> tuple[BinaryIO, bool]:
    """Return a binary file, and whether it was opened here."""
    method = "read" if mode == "rb" else "write"
    if mode == "rb" and isinstance(given, bytes | bytearray | memoryview):
        return io.BytesIO(cast("bytes", given)), False
    if hasattr(given, method):
        return given, False
    try:
        path = Path(given)
    except TypeError as error:
        what = "A stream's source" if mode == "rb" else "A stream's destination"
        sentence = f"{what} must be a path or a binary file, not {type(given).__name__}"
        raise FieldTypeError(sentence) from error
    try:
        file: Any = path.open(mode)
    except (OSError, ValueError) as error:  # a null character is a ValueError
        reason = error.strerror if isinstance(error, OSError) else None
        message = f"{path} must be a stream that can be opened: {reason or error}"
        raise StreamError(message) from error
    return file, True
