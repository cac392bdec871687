"""Shapes: extents, some of which may be unknown, and how many elements they hold."""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias, cast

from .errors import FieldRangeError, FieldTypeError, InvalidDescriptorError
from .sizes import U64_MAX, checked_uint

Shape: TypeAlias = "tuple[int | None, ...]"
"""Extents, dimension 0 first; None is a dynamic extent."""

DYNAMIC: Final = U64_MAX
"""How a dynamic extent is written."""

MAX_RANK: Final = 64


def checked_shape(shape: Any, what: str = "A shape") -> Shape:
    """Return extents as a tuple.

    Raises:
        InvalidDescriptorError: There are more than 64, or one is negative; a `FieldRangeError` where
            one does not fit 64 bits.
        FieldTypeError: They are no sequence of integers and None.
    """
    try:
        extents = tuple(shape)
    except TypeError as error:
        sentence = f"{what} must be a sequence of integers and None, not {shape!r}"
        raise FieldTypeError(sentence) from error
    return tuple(None if extent is None else _extent(extent, what) for extent in extents)


def check_rank(rank: int, *, offset: int | None = None) -> None:
    """Refuse more than 64 dimensions.

    Raises:
        InvalidDescriptorError: There are more.
    """
    if rank > MAX_RANK:
        sentence = f"The rank must be at most {MAX_RANK}, not {rank}"
        raise InvalidDescriptorError(sentence, offset=offset, found=rank)


def from_wire(words: tuple[int, ...]) -> Shape:
    """Return extents with None in place of the dynamic sentinel."""
    if DYNAMIC in words:
        return tuple(None if word == DYNAMIC else word for word in words)
    return words


def to_wire(shape: Shape) -> tuple[int, ...]:
    """Return extents with the dynamic sentinel in place of None."""
    return tuple(DYNAMIC if extent is None else extent for extent in shape)


def static(shape: Shape) -> tuple[int, ...] | None:
    """Return the extents if all are known, else None."""
    return None if None in shape else cast("tuple[int, ...]", shape)


def element_count(shape: Shape) -> int | None:
    """Return the exact number of elements, 1 for a scalar, or None where an extent is dynamic."""
    known = static(shape)
    return None if known is None else math.prod(known)


def spell(shape: Shape) -> str:
    """Return a shape for a message."""
    return f"[{', '.join('None' if extent is None else str(extent) for extent in shape)}]"


def _extent(extent: Any, what: str) -> int:
    try:
        number = checked_uint(extent, DYNAMIC - 1, f"An extent of {_lower(what)}")
    except FieldRangeError as error:
        if not isinstance(error.found, int) or error.found > 0:
            raise
        sentence = (
            f"An extent of {_lower(what)} must be 0 or more, or None where it is dynamic, "
            f"not {error.found}"
        )
        raise InvalidDescriptorError(sentence, found=error.found) from None
    return number


def _lower(what: str) -> str:
    return what[0].lower() + what[1:]
