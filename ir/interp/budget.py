"""How much of what it may do a running program has done, so that one without an end is an error.

The machine counts instructions, the host that launches on it counts steps and tasks. Here rounds of
loops are counted, each as the fewest instructions or steps that it can be: what the machine runs to
its end is never refused, and what does not end always is.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .. import limits
from ..errors import IRValueError

if TYPE_CHECKING:
    from collections.abc import Generator

    from ..errors import Span

#: A loop that counts adds to its number and jumps back; one with a condition asks, leaves or not,
#: changes something, and jumps back.
_COUNTED_ROUND: Final = 2
_ASKED_ROUND: Final = 4
_HINT: Final = "a loop whose condition turns false, or a shorter one"


class Budget:
    """Counts the rounds and tasks of one launch.

    Args:
        entry: The function that is launched.
    """

    def __init__(self, entry: str) -> None:
        self._entry = entry
        self._kernel: str | None = None
        self._tasks = 0
        self._steps = 0
        self._instructions = 0

    def round(self, span: Span, *, asks: bool = False) -> None:
        """Count a round of a loop, which `asks` a condition or counts.

        Raises:
            IRValueError: When the machine would not go on either.
        """
        if self._kernel is None:
            self._steps += 1
            if self._steps > limits.MAX_STEPS:
                raise IRValueError(limits.too_many_steps(self._entry), span, hint=_HINT)
            return
        self._instructions += _ASKED_ROUND if asks else _COUNTED_ROUND
        if self._instructions > limits.MAX_INSTRUCTIONS:
            message = (
                f"Kernel {self._kernel!r} must end within {limits.MAX_INSTRUCTIONS} instructions, "
                "not still be in this loop."
            )
            raise IRValueError(message, span, hint=_HINT)

    def grid(self, blocks: int, span: Span) -> None:
        """Refuse a grid that holds more blocks than a launch may have left, before it runs.

        Raises:
            IRValueError: When it does.
        """
        if self._kernel is None and self._tasks + blocks > limits.MAX_TASKS:
            raise IRValueError(limits.too_many_tasks(self._entry), span)

    @contextmanager
    def kernel(self, name: str, span: Span) -> Generator[None]:
        """Count what runs inside as one task; a kernel that a kernel calls is part of it.

        Raises:
            IRValueError: When a launch has too many.
        """
        if self._kernel is not None:
            yield
            return
        self.grid(1, span)
        self._kernel = name
        self._tasks += 1
        self._instructions = 0
        yield
        self._kernel = None
