"""How a jitted kernel says what went wrong: a code and its operands in a small integer array.

A kernel returns True when all is well. Otherwise it writes `fault[0] = FaultCode` and the operands
that the code's docstring lists, in order, from `fault[1]` on. `faults` makes the sentence.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

FAULT_WORDS: Final = 8
PADDED: Final = 7
"""The word of a record that is set by a mad which was done, but with the padding that the others tell."""


class FaultCode(IntEnum):
    """What went wrong, and which operands follow the code."""

    NONE = 0
    """Nothing."""
    LOCAL_RANGE = 1
    """Outside a local memory: space, first address, bytes, bytes that the space has."""
    VIEW_RANGE = 2
    """Outside a view: axis, first index, extent, the view's dimension."""
    SUBBYTE = 3
    """A 4-bit window that splits a byte: row of the window, first element, elements."""
    UNWRITTEN = 4
    """A read of never-written bytes: space, address, row, column of the element."""
    DIVISION = 5
    """A division by zero: static index."""
    BUDGET = 6
    """More dynamic instructions than allowed: static index, instructions."""
    NO_RESULT = 7
    """A vector instruction without a result: a remainder by zero, a NaN for a type without one."""


LOCAL_RANGE: Final = int(FaultCode.LOCAL_RANGE)
VIEW_RANGE: Final = int(FaultCode.VIEW_RANGE)
SUBBYTE: Final = int(FaultCode.SUBBYTE)
UNWRITTEN: Final = int(FaultCode.UNWRITTEN)
DIVISION: Final = int(FaultCode.DIVISION)
BUDGET: Final = int(FaultCode.BUDGET)
NO_RESULT: Final = int(FaultCode.NO_RESULT)


def new_fault() -> npt.NDArray[np.int64]:
    """Return an empty fault record, int64 [FAULT_WORDS]."""
    return np.zeros(FAULT_WORDS, np.int64)
