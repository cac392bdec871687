"""The roundings that a cast can name."""

from __future__ import annotations

from enum import Enum

from .choices import numbered_choice


class CastMode(Enum):
    """How a cast rounds what the target cannot hold.

    `none` is for casts that lose nothing and rounds like `rint` where one does.
    """

    none = 0
    rint = 1
    """To the nearest, ties to the even one."""
    round = 2
    """To the nearest, ties away from zero."""
    floor = 3
    ceil = 4
    trunc = 5
    """Toward zero."""
    odd = 6
    """Toward zero, then the last bit is set: a later rounding sees that something is missing."""

    def __str__(self) -> str:
        return self.name

    @classmethod
    def of(cls, given: object) -> CastMode:
        """Return the mode that a name or a number means.

        Raises:
            IRValueError: When it means none.
        """
        return numbered_choice(cls, given, "mode")
