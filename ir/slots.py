"""Slots: the buffers of `buf = pl.MemRef(slots=2)` that a kernel gives its tiles by hand.

`x: pl.Tile[[64, 64], pl.FP16, pl.Mem.Mat, buf[i % 2]] = pl.load(…)` says that `x` lies in one buffer on even
trips and in another one on odd trips, so that a load need not wait for who still reads the last tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .expr import Call, Expr

SLOT: Final = "slot"
"""The attribute of a call whose result lies in a slot: `[name, count, index]`.

Once the loop around it has a copy of its body for each slot, the index is a number, or None where the copy
says it.
"""


@dataclass(frozen=True, eq=False)
class Slot:
    """A slot as a kernel writes it: which of the `count` buffers called `name`."""

    name: str
    count: int
    index: Expr | None


def slot_of(call: Call) -> Slot | None:
    """Return the slot that the result of a call lies in, or None."""
    found = call.attrs.get(SLOT)
    if found is None:
        return None
    name, count, index = found
    return Slot(name, count, index)
