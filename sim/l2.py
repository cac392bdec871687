"""The second-level cache: which blocks it holds, and what a transfer finds there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ..codegen.isa.vocabulary import Pipe
from .jit import inner

if TYPE_CHECKING:
    import numpy.typing as npt

    from .pipe_tables import Setting

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_FIX, _MTE3 = int(Pipe.FIX), int(Pipe.MTE3)
_NONE: Final = -1


class L2:
    """Which blocks of GM the second-level cache holds; least recently used go first."""

    def __init__(self, gm_bytes: int, block_bytes: int) -> None:
        self.stamps: Line = np.zeros(gm_bytes // block_bytes + 1, np.int64)
        self.state: Line = np.zeros(2, np.int64)
        """A clock and the number of resident blocks."""


@inner
def latency_of(
    item: int,
    record: int,
    pipe: int,
    transfers: Table,
    starts: Line,
    registers: Table,
    setting: Setting,
    stamps: Line,
    cache: Line,
) -> int:
    """Touch the blocks of a window; return the latency of a read, 0 for a posted write."""
    start = starts[item] + registers[record, 0] * transfers[item, 2]
    start = (start + registers[record, 1] * transfers[item, 3]) // 8
    rows, apart, size = transfers[item, 4], transfers[item, 5], transfers[item, 6]
    last = start + (rows - 1) * apart
    if start // setting.block_bytes == (last + size - 1) // setting.block_bytes:
        rows, size = 1, last + size - start
    missed, previous = False, _NONE
    for row in range(rows):
        address = start + row * apart
        for block in range(
            address // setting.block_bytes,
            (address + size - 1) // setting.block_bytes + 1,
        ):
            if block != previous and 0 <= block < stamps.shape[0]:
                missed |= _touch(block, setting.l2_blocks, stamps, cache)
            previous = block
    if pipe in (_FIX, _MTE3):
        return 0
    return setting.hit_cycles + (setting.miss_cycles if missed else 0)


@inner
def _touch(block: int, capacity: int, stamps: Line, cache: Line) -> bool:
    """Make `block` the youngest of the cache; return whether it was not there."""
    cache[0] += 1
    missed = stamps[block] == 0
    if missed and capacity == 0:
        return True
    if missed:
        if cache[1] == capacity:
            oldest = _NONE
            for other in range(stamps.shape[0]):
                if stamps[other] and (oldest == _NONE or stamps[other] < stamps[oldest]):
                    oldest = other
            stamps[oldest] = 0
        else:
            cache[1] += 1
    stamps[block] = cache[0]
    return missed
