"""Element types: one table of the public ones, and the range of private tags.

A type is known by its tag, a byte. Tags 0xF0 to 0xFE are private: the tag says nothing of such a
type, and its width of 0 is a sentinel; the descriptor's extension section has the real one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from operator import index
from typing import Any, Final

from .errors import FieldRangeError, FieldTypeError, InvalidDescriptorError

PRIVATE_FIRST: Final = 0xF0
PRIVATE_LAST: Final = 0xFE
PRIVATE_NAME: Final = "extension"

_TAGS = 256
_FIRST_TIER_2 = 0x40
_FIRST_RESERVED = 0x80
_INVALID = frozenset({0x00, 0xFF})
_RESERVED_BELOW = 0x47


class ElementKind(Enum):
    """What the values of an element type are."""

    FLOAT = auto()
    UNSIGNED_FLOAT = auto()
    COMPLEX = auto()
    SIGNED = auto()
    UNSIGNED = auto()
    BOOL = auto()
    PRIVATE = auto()


@dataclass(frozen=True, slots=True)
class _Row:
    tag: int
    name: str
    bits: int
    kind: ElementKind


# fmt: off
_ROWS: Final = (
    #    tag   name           bits  kind
    _Row(0x01, "float16",       16, ElementKind.FLOAT),
    _Row(0x02, "bfloat16",      16, ElementKind.FLOAT),
    _Row(0x03, "float32",       32, ElementKind.FLOAT),
    _Row(0x04, "float64",       64, ElementKind.FLOAT),
    _Row(0x10, "int8",           8, ElementKind.SIGNED),
    _Row(0x11, "uint8",          8, ElementKind.UNSIGNED),
    _Row(0x12, "int16",         16, ElementKind.SIGNED),
    _Row(0x13, "uint16",        16, ElementKind.UNSIGNED),
    _Row(0x14, "int32",         32, ElementKind.SIGNED),
    _Row(0x15, "uint32",        32, ElementKind.UNSIGNED),
    _Row(0x16, "int64",         64, ElementKind.SIGNED),
    _Row(0x17, "uint64",        64, ElementKind.UNSIGNED),
    _Row(0x20, "bool",           1, ElementKind.BOOL),
    _Row(0x40, "float8_e4m3",    8, ElementKind.FLOAT),
    _Row(0x41, "float8_e5m2",    8, ElementKind.FLOAT),
    _Row(0x42, "float8_e8m0",    8, ElementKind.UNSIGNED_FLOAT),
    _Row(0x43, "float4_e2m1",    4, ElementKind.FLOAT),
    _Row(0x44, "float6_e2m3",    6, ElementKind.FLOAT),
    _Row(0x45, "float6_e3m2",    6, ElementKind.FLOAT),
    _Row(0x46, "float128",     128, ElementKind.FLOAT),
    _Row(0x48, "int4",           4, ElementKind.SIGNED),
    _Row(0x49, "uint4",          4, ElementKind.UNSIGNED),
    _Row(0x4A, "int2",           2, ElementKind.SIGNED),
    _Row(0x4B, "uint2",          2, ElementKind.UNSIGNED),
    _Row(0x50, "complex64",     64, ElementKind.COMPLEX),
    _Row(0x51, "complex128",   128, ElementKind.COMPLEX),
)
# fmt: on

_ROW_OF: Final = {row.tag: row for row in _ROWS} | {
    tag: _Row(tag, PRIVATE_NAME, 0, ElementKind.PRIVATE)
    for tag in range(PRIVATE_FIRST, PRIVATE_LAST + 1)
}


@dataclass(frozen=True, slots=True, repr=False)
class Dtype:
    """An element type, equal to every other of its tag.

    Args:
        tag: A public tag or a private one, 0xF0 to 0xFE.

    Attributes:
        tag: The type's byte on the wire.
        name: Its name; `extension` for every private type.
        bit_width: Bits of an element; 0 for a private type, whose section has the real width.
        kind: What its values are.
        is_private: Whether the tag says nothing and an extension section must describe the type.

    Raises:
        InvalidDescriptorError: No type has that tag.
        FieldTypeError: `tag` is no integer.
    """

    tag: int
    name: str = field(init=False, compare=False)
    bit_width: int = field(init=False, compare=False)
    kind: ElementKind = field(init=False, compare=False)
    is_private: bool = field(init=False, compare=False)

    def __post_init__(self) -> None:
        row = _ROW_OF.get(checked_tag(self.tag))
        if row is None:
            raise unknown_tag(self.tag)
        object.__setattr__(self, "tag", row.tag)
        object.__setattr__(self, "name", row.name)
        object.__setattr__(self, "bit_width", row.bits)
        object.__setattr__(self, "kind", row.kind)
        object.__setattr__(self, "is_private", row.kind is ElementKind.PRIVATE)

    @staticmethod
    def from_tag(tag: int) -> Dtype:
        """Return the type of a tag.

        Raises:
            InvalidDescriptorError: No type has it; a :class:`FieldRangeError` where it is no byte.
            FieldTypeError: It is no integer.
        """
        known = BY_TAG[checked_tag(tag)]
        if known is None:
            raise unknown_tag(tag)
        return known

    @staticmethod
    def from_name(name: str) -> Dtype:
        """Return the public type of a name.

        Raises:
            InvalidDescriptorError: There is none. Private types have no names of their own.
        """
        for row in _ROWS:
            if row.name == name:
                return Dtype.from_tag(row.tag)
        valid = ", ".join(row.name for row in _ROWS)
        sentence = f"The name of an element type must be a public one, not {name!r}"
        raise InvalidDescriptorError(sentence, found=name, hint=f"Valid are: {valid}.")

    @property
    def tier(self) -> int:
        """1 for the types of the array API, 2 for all others."""
        return 1 if self.tag < _FIRST_TIER_2 else 2

    @property
    def element_alignment(self) -> int:
        """Bytes on which an element must be aligned."""
        width = self.bit_width // 2 if self.kind is ElementKind.COMPLEX else self.bit_width
        return max(1, width // 8)

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers, complex ones included."""
        return self.kind in (ElementKind.FLOAT, ElementKind.UNSIGNED_FLOAT, ElementKind.COMPLEX)

    @property
    def is_integer(self) -> bool:
        """Whether values are integers."""
        return self.kind in (ElementKind.SIGNED, ElementKind.UNSIGNED)

    @property
    def is_signed(self) -> bool:
        """Whether values can be negative."""
        return self.kind in (ElementKind.FLOAT, ElementKind.COMPLEX, ElementKind.SIGNED)

    @property
    def is_sub_byte(self) -> bool:
        """Whether several elements share a byte."""
        return 0 < self.bit_width < 8

    @property
    def is_array_api(self) -> bool:
        """Whether the array API has the type."""
        return self.tier == 1

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        if self.is_private:
            return f"hurray.Dtype.from_tag(0x{self.tag:02X})"
        return f"hurray.{self.name}" if self.is_array_api else f"hurray.dtype.{self.name}"


def checked_tag(tag: Any) -> int:
    """Return a tag that fits its byte.

    Raises:
        FieldTypeError: It is no integer.
        FieldRangeError: It is no byte.
    """
    try:
        value = index(tag)
    except TypeError as error:
        sentence = f"An element type's tag must be an integer, not {tag!r}"
        raise FieldTypeError(sentence) from error
    if not 0 <= value < _TAGS:
        sentence = f"An element type's tag must be in 0..255, not {value}"
        raise FieldRangeError(sentence, found=value)
    return value


def unknown_tag(tag: int, *, offset: int | None = None) -> InvalidDescriptorError:
    """Return the error for a tag that no type has."""
    if tag in _INVALID:
        why = "invalid: it never appears"
    elif tag == _RESERVED_BELOW or tag >= _FIRST_RESERVED:
        why = "reserved for later versions"
    else:
        why = "unknown"
    sentence = (
        f"The element type tag must be a public one or a private one (0xF0 to 0xFE), "
        f"not 0x{tag:02X}, which is {why}"
    )
    return InvalidDescriptorError(sentence, offset=offset, found=tag)


BY_TAG: Final[tuple[Dtype | None, ...]] = tuple(
    Dtype(tag) if tag in _ROW_OF else None for tag in range(_TAGS)
)
"""The type of every tag, or None."""

PUBLIC: Final[tuple[Dtype, ...]] = tuple(Dtype.from_tag(row.tag) for row in _ROWS)
"""The public types, by tag."""

assert len({row.tag for row in _ROWS}) == len(_ROWS), "two element types share a tag"
assert len({row.name for row in _ROWS}) == len(_ROWS), "two element types share a name"
