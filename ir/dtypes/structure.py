"""What a recorded structure is made of: nested tuples of strings, told apart by type.

A structure is recorded once, compared and hashed by value, and pickled as it stands.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeAlias, cast, final

from ..errors import IRTypeError

if TYPE_CHECKING:
    from typing import NoReturn

Structure: TypeAlias = "tuple[str | Structure, ...]"
"""Nested tuples of exact strings."""


@final
class WholeExtent:
    """The symbolic extent that groups an entire source level into one target coordinate.

    There is one object of this class, exported as `Whole`; constructing, copying and unpickling
    return it.
    """

    __slots__ = ()

    def __new__(cls) -> WholeExtent:  # noqa: D102 - the class says it
        return Whole

    def __init_subclass__(cls) -> NoReturn:
        message = "WholeExtent must stay the class of one object, not become a base class"
        raise IRTypeError(message)

    def __repr__(self) -> str:
        return "Whole"

    def __copy__(self) -> WholeExtent:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> WholeExtent:
        return self

    def __reduce__(self) -> tuple[type[WholeExtent], tuple[()]]:
        return WholeExtent, ()


Whole: Final = object.__new__(WholeExtent)


def encode_leaf(value: object) -> str | None:
    """Return the spelling of a structure's leaf, or None if a structure may not hold it.

    True, 1 and 1.0 differ, so do 0.0 and -0.0, None and "none"; all NaNs are one.
    """
    if value is None:
        return "none"
    if value is Whole:
        return "whole"
    kind = type(value)
    if kind is str:
        return f"str:{value}"
    if kind is bool:
        return f"bool:{value}"
    if kind is int:
        return f"int:{value:#x}"
    if kind is float:
        number = cast("float", value)
        return "float:nan" if math.isnan(number) else f"float:{number.hex()}"
    return None


def encode_extension(extension: object) -> Structure:
    """Return what `structure_extension()` gave as a structure.

    Permitted are exact str, int, float, bool, None, Whole and exact tuples of permitted values.

    Raises:
        IRTypeError: If it is no exact tuple, or holds a value that is not permitted.
    """
    if type(extension) is not tuple:
        message = f"structure_extension() must return a tuple, not {describe(extension)}"
        raise IRTypeError(message)
    return tuple(_encode_item(item) for item in cast("tuple[object, ...]", extension))


def _encode_item(item: object) -> str | Structure:
    if type(item) is tuple:
        return encode_extension(cast("object", item))
    leaf = encode_leaf(item)
    if leaf is None:
        message = (
            "A structure value must be a str, int, float, bool, None, Whole or a tuple of these, "
            f"not {describe(item)}"
        )
        raise IRTypeError(message)
    return leaf


def first_difference(here: str | Structure, there: str | Structure) -> tuple[str, str]:
    """Return the first place where two unequal structures differ, as the spellings of both."""
    if isinstance(here, tuple) and isinstance(there, tuple):
        for mine, other in zip(here, there, strict=False):
            if mine != other:
                return first_difference(mine, other)
        return f"{len(here)} entries", f"{len(there)} entries"
    return _spell(here), _spell(there)


def _spell(value: str | Structure) -> str:
    return value if isinstance(value, str) else "a tuple"


def describe(value: object) -> str:
    """Return `value` for an error message: its type and, where short, its spelling."""
    kind = type(value)
    if kind is str:
        return f"the string {value!r}"
    if value is None or value is Whole or kind in (bool, int, float):
        return repr(value)
    return f"an object of type {kind.__qualname__}"


def exact_int(value: object) -> int | None:
    """Return an int or int subclass, bool excepted, as an exact int; None for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return int.__pos__(value)
