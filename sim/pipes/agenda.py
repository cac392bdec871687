"""Who is due first: a tree of times, jitted, for `pipes` and `dispatch`.

Number i of n stands at place size + i of a table of 2 · size times, size being a power of two; every
place below size holds the earlier time of the two below it. So the first time of all stands at place 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...ir.jit import compiled, lean

if TYPE_CHECKING:
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]

NEVER: Final = 1 << 62
"""The time of what does not happen as things stand."""

FIRST: Final = 1
"""The place of the first time of all."""


@compiled
def new_agenda(count: int) -> Line:
    """Return an agenda of so many numbers, none of which is due."""
    size = 1
    while size < count:
        size *= 2
    return np.full(2 * size, NEVER, np.int64)


@lean
def set_due(number: int, when: int, due: Line) -> None:
    """Let `number` be due at a time, or NEVER."""
    place = len(due) // 2 + number
    due[place] = when
    place //= 2
    while place:
        first = min(due[2 * place], due[2 * place + 1])
        if due[place] == first:
            break
        due[place] = first
        place //= 2


@lean
def first_due(due: Line) -> int:
    """Return who is due first, the lowest number among equals."""
    size = len(due) // 2
    place = FIRST
    while place < size:
        place *= 2
        if due[place] > due[place + 1]:
            place += 1
    return place - size
