"""How many bytes elements take: exact integers, bounded by what a size field can say."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Final

from .errors import FieldRangeError, FieldTypeError, InvalidDescriptorError

if TYPE_CHECKING:
    from .elements import Dtype

U32_MAX: Final = (1 << 32) - 1
U64_MAX: Final = (1 << 64) - 1

_BYTE = 8
_STRIDE_LIMIT = 1 << 63
_WIDE_GROUP_BITS = 6
_WIDE_GROUP = 4
_WIDE_GROUP_BYTES = 3


def packed_bytes(bit_width: int, count: int) -> int:
    """Return the bytes of `count` elements of `bit_width` bits, packed from the low bits up.

    Elements of 8 bits or more take whole bytes. Four elements of 6 bits take three bytes, and a
    group of four that is not full takes three all the same.
    """
    if bit_width >= _BYTE:
        return count * (bit_width // _BYTE)
    if bit_width == _WIDE_GROUP_BITS:
        return -(-count // _WIDE_GROUP) * _WIDE_GROUP_BYTES
    return -(-count * bit_width // _BYTE)


def buffer_size_bytes(dtype: Dtype, count: int) -> int:
    """Return the bytes that `count` elements of a public type take.

    Raises:
        InvalidDescriptorError: The type is private: the size is unknown, not 0. A
            :class:`FieldRangeError` where `count` or the size is no number of 64 bits.
        FieldTypeError: `count` is no integer.
    """
    elements = checked_count(count)
    if dtype.is_private:
        sentence = (
            f"The size of private elements (tag 0x{dtype.tag:02X}) must be asked of their "
            "ExtensionType section, which has their width: use "
            "ExtensionType(...).buffer_size_bytes(count)"
        )
        raise InvalidDescriptorError(sentence, found=dtype.tag)
    return bounded(packed_bytes(dtype.bit_width, elements))


def checked_count(count: Any) -> int:
    """Return a number of elements of at most 64 bits.

    Raises:
        FieldTypeError: It is no integer.
        FieldRangeError: It is negative or too large.
    """
    return checked_uint(count, U64_MAX, "The number of elements")


def checked_uint(value: Any, largest: int, what: str) -> int:
    """Return an integer in 0..`largest`.

    Raises:
        FieldTypeError: It is no integer.
        FieldRangeError: It is negative or too large.
    """
    try:
        number = index(value)
    except TypeError as error:
        sentence = f"{what} must be an integer, not {value!r}"
        raise FieldTypeError(sentence) from error
    if not 0 <= number <= largest:
        sentence = f"{what} must be in 0..{largest}, not {number}"
        raise FieldRangeError(sentence, found=number)
    return number


def checked_uints(values: Any, largest: int, what: str) -> tuple[int, ...]:
    """Return integers in 0..`largest` as a tuple; `what` names them in the plural.

    Raises:
        FieldTypeError: They are no sequence of integers.
        FieldRangeError: One is negative or too large.
    """
    return tuple(checked_uint(value, largest, f"Each of {what}") for value in _listed(values, what))


def checked_strides(values: Any, what: str) -> tuple[int, ...]:
    """Return integers of at most 64 signed bits as a tuple; `what` names them in the plural.

    Raises:
        FieldTypeError: They are no sequence of integers.
        FieldRangeError: One is too small or too large.
    """
    return tuple(_stride(value, f"Each of {what}") for value in _listed(values, what))


def bounded(size: int) -> int:
    """Return a size in bytes that a 64-bit field can say.

    Raises:
        FieldRangeError: It cannot.
    """
    if size > U64_MAX:
        sentence = f"A size in bytes must fit 64 bits, not be {size}"
        raise FieldRangeError(sentence, found=size)
    return size


def _listed(values: Any, what: str) -> tuple[Any, ...]:
    try:
        return tuple(values)
    except TypeError as error:
        sentence = f"{what[0].upper()}{what[1:]} must be a sequence of integers, not {values!r}"
        raise FieldTypeError(sentence) from error


def _stride(value: Any, what: str) -> int:
    try:
        number = index(value)
    except TypeError as error:
        sentence = f"{what} must be an integer, not {value!r}"
        raise FieldTypeError(sentence) from error
    if not -_STRIDE_LIMIT <= number < _STRIDE_LIMIT:
        sentence = f"{what} must be in {-_STRIDE_LIMIT}..{_STRIDE_LIMIT - 1}, not {number}"
        raise FieldRangeError(sentence, found=number)
    return number
