"""The members of enums by what a user writes for them."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from .errors import IRValueError

_Choice = TypeVar("_Choice", bound=Enum)


def choice(kind: type[_Choice], name: _Choice | str, what: str) -> _Choice:
    """Return the member of `kind` whose value is called `name`.

    Raises:
        IRValueError: There is none; the message says what `what` must be.
    """
    for member in kind:
        if isinstance(name, str | kind) and name in (member, member.value):
            return member
    valid = ", ".join(repr(member.value) for member in kind)
    message = f"{what} must be one of {valid}, not {name!r}"
    raise IRValueError(message)


def numbered_choice(kind: type[_Choice], given: object, what: str) -> _Choice:
    """Return the member of `kind`, whose values are numbers, that a name or a number means.

    Raises:
        IRValueError: It means none; the message says what `what` must be.
    """
    if isinstance(given, kind):
        return given
    for member in kind:
        if isinstance(given, str) and given == member.name:
            return member
        if type(given) is int and given == member.value:
            return member
    names = ", ".join(f"{member.name} ({member.value})" for member in kind)
    message = f"{what} must be one of {names}, not {given!r}"
    raise IRValueError(message)
