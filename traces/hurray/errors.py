"""What is wrong with a descriptor, a buffer, a file or a stream, in classes of one root.

Names and bases are those of the published implementation, which has no common root; ours is
:class:`HurrayError`. Everything that is wrong with *bytes* is an :class:`InvalidDescriptorError`,
wherever the bytes came from: a damaged file is also a :class:`FileError`, a damaged stream also a
:class:`StreamError`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from ...ir.errors import UserError

if TYPE_CHECKING:
    from typing import Self


class HurrayError(UserError):
    """The root of all errors about tensors in the Hurray format."""


class Part(Enum):
    """Which part of a descriptor an error is about, where its rule spans several fields."""

    TAG = auto()
    LAYOUT = auto()
    BYTE_OFFSET = auto()
    BUFFERS = auto()
    QUANTIZATION = auto()
    SHARD = auto()
    COMPOSITE = auto()


class InvalidDescriptorError(HurrayError, ValueError):
    """A descriptor, or a part of one, that breaks a rule of the format.

    Attributes:
        sentence: What must be, and what was found.
        offset: The byte at which the bad field begins, or None where nothing was decoded.
        found: The value found there, or None.
        part: The part of the descriptor that breaks a rule spanning several fields, or None.
    """

    part: Part | None = None

    def __init__(
        self,
        sentence: str,
        *,
        offset: int | None = None,
        found: object = None,
        hint: str | None = None,
    ) -> None:
        where = "" if offset is None else f"At byte {offset}: "
        super().__init__(where + sentence, hint=hint)
        self.sentence = sentence
        self.offset = offset
        self.found = found

    def moved(self, base: int) -> Self:
        """Return the same error, its offset counted from `base` bytes further to the front."""
        offset = base + (self.offset or 0)
        return type(self)(self.sentence, offset=offset, found=self.found, hint=self.hint)


class FieldRangeError(InvalidDescriptorError, OverflowError):
    """A number that does not fit its field."""


class FieldTypeError(HurrayError, TypeError):
    """An argument of the wrong type."""


class BufferError(HurrayError, ValueError):  # noqa: A001 - the specification's name
    """Bytes that are too few for the tensor, or that cannot be taken as bytes at all."""


class BufferSizeError(InvalidDescriptorError, BufferError):
    """A descriptor that gives a buffer fewer bytes, or other ones, than its parts ask for."""


class UnsupportedError(HurrayError, NotImplementedError):
    """Something that the format can say and this implementation does not do."""


class FileError(HurrayError, OSError):
    """A tensor file that cannot be read or written."""


class InvalidFileError(InvalidDescriptorError, FileError):
    """A tensor file whose bytes break a rule of the format."""


class StreamError(HurrayError, OSError):
    """A tensor stream that cannot be read or written, or that passes a limit."""


class InvalidStreamError(InvalidDescriptorError, StreamError):
    """A tensor stream that ends early or passes a limit."""


def truncated(what: str, *, offset: int, need: int, have: int) -> InvalidDescriptorError:
    """Return the error for a part that needs `need` bytes at `offset` where `have` are left."""
    sentence = f"{what} must have {_bytes(need)}, but only {max(have, 0)} are left"
    return InvalidDescriptorError(sentence, offset=offset, found=max(have, 0))


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"
