"""A stretch of a file that is read from front to back and never past its end."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from .errors import InvalidFileError

if TYPE_CHECKING:
    from typing import NoReturn

_STRUCTS: dict[str, Struct] = {form: Struct(f"<{form}") for form in ("B", "H", "I", "Q", "q", "d")}


class Reader:
    """Reads numbers and bytes; every error tells the file's byte at which it happened.

    Args:
        data: The bytes of the stretch.
        base: Where in the file the stretch begins.
        what: What the stretch is, for messages.
    """

    __slots__ = ("_at", "_base", "_data", "_what")

    def __init__(self, data: bytes, base: int, what: str) -> None:
        self._data = data
        self._base = base
        self._what = what
        self._at = 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._at

    @property
    def offset(self) -> int:
        """The file's byte that is read next."""
        return self._base + self._at

    def number(self, form: str, what: str) -> Any:
        """Return the number that stands next, in one of the forms of `struct`.

        Raises:
            InvalidFileError: The stretch ends before.
        """
        packer = _STRUCTS[form]
        at = self._advance(packer.size, what)
        return packer.unpack_from(self._data, at)[0]

    def take(self, size: int, what: str) -> bytes:
        """Return the next `size` bytes.

        Raises:
            InvalidFileError: The stretch ends before.
        """
        at = self._advance(size, what)
        return self._data[at : at + size]

    def text(self, size: int, what: str) -> str:
        """Return the next `size` bytes as text.

        Raises:
            InvalidFileError: The stretch ends before, or they are no UTF-8.
        """
        begin = self.offset
        data = self.take(size, what)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            sentence = f"{what} must be UTF-8, not {data!r}"
            raise InvalidFileError(sentence, offset=begin, found=data) from error

    def zero(self, size: int, what: str) -> None:
        """Pass over reserved bytes.

        Raises:
            InvalidFileError: The stretch ends before, or one of them is not 0.
        """
        begin = self.offset
        found = self.take(size, what)
        if any(found):
            sentence = f"{what} must be 0, not 0x{found.hex().upper()}"
            raise InvalidFileError(sentence, offset=begin, found=found)

    def finish(self) -> None:
        """Refuse bytes that nobody has read.

        Raises:
            InvalidFileError: There are some.
        """
        if self.left:
            self.refuse(f"{self._what} must end here, not {self.left} bytes later", self.left)

    def refuse(self, sentence: str, found: object) -> NoReturn:
        """Raise an error about the byte that is read next."""
        raise InvalidFileError(sentence, offset=self.offset, found=found)

    def _advance(self, size: int, what: str) -> int:
        if size > self.left:
            self.refuse(
                f"{what} must have {size} bytes, but only {self.left} are left of {self._what}",
                self.left,
            )
        at = self._at
        self._at += size
        return at
