"""How long work tells how far it has come."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Who is told; always by the thread that called what takes long."""

    def phase(self, name: str, total: int = 0, *, cycles: int = 0) -> None:
        """Begin a part of the work; the one before it is over.

        Args:
            name: What is done, as a reader is told.
            total: Of how many tasks it consists; 0 if nobody knows.
            cycles: The cycles of the machine that all of it stands for, if they are known.
        """
        ...

    def advance(self, tasks: int = 1) -> None:
        """Tell that so many more tasks of this part are done."""
        ...


class Silent:
    """Tells nobody."""

    def phase(self, name: str, total: int = 0, *, cycles: int = 0) -> None:
        """Take note of nothing."""

    def advance(self, tasks: int = 1) -> None:
        """Take note of nothing."""


SILENT = Silent()
"""What functions use when nobody asks."""
