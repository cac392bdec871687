"""The second-level cache: what of GM it holds, and what a transfer finds there.

Blocks come and go as a whole, the least recently used first; within a block, lines are fetched one by
one, and whole. What is stored stays in the cache, without being fetched before, until its block goes;
then its lines are written to memory by the transfer that takes the place. A line that another transfer
has asked for is a hit, but not there before the latency of that miss has passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ...codegen.isa.vocabulary import Pipe
from ...ir.jit import compiled, lean

if TYPE_CHECKING:
    import numpy.typing as npt

    from .tables import Setting

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]
    Bits = npt.NDArray[np.uint8]

NEWER, OLDER, IS_HELD, LINK_WORDS = 0, 1, 2, 3
"""Columns of a block: its neighbours in the order of use (-1 for none), and whether it is held."""

NEWEST, OLDEST, HELD, FETCHED, WRITTEN, MOVED, CACHE_WORDS = 0, 1, 2, 3, 4, 5, 6
"""What the cache knows as a whole: the ends of the order of use, how many blocks it holds, and the bytes
that it has fetched from memory, written there, and moved from and to the cores."""

_FIX, _MTE3 = int(Pipe.FIX), int(Pipe.MTE3)
_NONE: Final = -1


class Cache(NamedTuple):
    """The state of the cache.

    Args:
        links: int64 [blocks of GM, LINK_WORDS].
        lines: The cycle before which each line is not there, plus 1, int64 [lines of GM]; 0 if it is not in
            the cache.
        stored: Whether each line holds what memory does not, uint8 [lines of GM].
        whole: int64 [CACHE_WORDS].
    """

    links: Table
    lines: Line
    stored: Bits
    whole: Line


class L2:
    """The cache of a launch, empty at first.

    Args:
        gm_bytes: Bytes of GM.
        block_bytes: Bytes of a block.
        capacity_bytes: Bytes that it holds.
        line_bytes: What it fetches at once; a block is a multiple of it.
    """

    def __init__(
        self, gm_bytes: int, block_bytes: int, capacity_bytes: int, line_bytes: int
    ) -> None:
        self.line_bytes = line_bytes
        self.block_bytes = block_bytes
        self.blocks = capacity_bytes // block_bytes
        blocks = gm_bytes // block_bytes + 1
        lines = blocks * (block_bytes // self.line_bytes)
        whole = np.zeros(CACHE_WORDS, np.int64)
        whole[NEWEST] = whole[OLDEST] = _NONE
        self.cache = Cache(
            np.zeros((blocks, LINK_WORDS), np.int64),
            np.zeros(lines, np.int64),
            np.zeros(lines, np.uint8),
            whole,
        )

    def warm(self, address: int, size: int) -> None:
        """Let bytes of GM lie in the cache before the launch, as far as there is room."""
        warm_up(
            address, size, self.line_bytes, self.block_bytes // self.line_bytes, self.blocks,
            *self.cache,
        )  # fmt: skip

    @property
    def fetched_bytes(self) -> int:
        """Bytes that came from memory, in whole lines."""
        return int(self.cache.whole[FETCHED])

    @property
    def written_bytes(self) -> int:
        """Bytes that went to memory, in whole lines; what the cache still holds is not among them."""
        return int(self.cache.whole[WRITTEN])

    @property
    def moved_bytes(self) -> int:
        """Bytes that went between the cache and the cores."""
        return int(self.cache.whole[MOVED])


@compiled
def warm_up(
    address: int,
    size: int,
    line_bytes: int,
    lines_of_block: int,
    capacity: int,
    links: Table,
    lines: Line,
    stored: Bits,
    whole: Line,
) -> None:
    """Fill the cache; see `L2.warm`."""
    for line in range(address // line_bytes, (address + size - 1) // line_bytes + 1):
        block = line // lines_of_block
        if links[block, IS_HELD] or whole[HELD] < capacity:
            _touch(block, capacity, lines_of_block, links, lines, stored, whole)
            lines[line] = 1


@lean
def access(
    item: int,
    start: int,
    first_register: int,
    second_register: int,
    size_bytes: int,
    pipe: int,
    now: int,
    transfers: Table,
    setting: Setting,
    links: Table,
    lines: Line,
    stored: Bits,
    whole: Line,
) -> tuple[int, float]:
    """Touch the lines of a window.

    Args:
        item: The instruction.
        start: Bit address of its window where both registers are zero.
        first_register: Value of its first register operand.
        second_register: Value of the second.
        size_bytes: Bytes that it moves.
        pipe: The pipe that does it.
        now: When.
        transfers: What each instruction touches (`decode.transfers`).
        setting: The machine.
        links: The blocks.
        lines: The lines.
        stored: Which of them hold what memory does not.
        whole: The cache as a whole.

    Returns:
        The latency of a read, 0 for a posted write; and the bytes that memory moves for each byte of
        the transfer.
    """
    is_store = pipe in (_FIX, _MTE3)
    whole[MOVED] += size_bytes
    if setting.l2_blocks == 0:
        whole[WRITTEN if is_store else FETCHED] += size_bytes
        return (0 if is_store else setting.hit_cycles + setting.miss_cycles), 1.0
    start += first_register * transfers[item, 2] + second_register * transfers[item, 3]
    start //= 8
    rows, apart, size = transfers[item, 4], transfers[item, 5], transfers[item, 6]
    if apart == size:
        rows, size = 1, rows * size
    line_bytes = setting.line_bytes
    lines_of_block = setting.block_bytes // line_bytes
    arrives, latest, missed, evicted = now + setting.hit_cycles + setting.miss_cycles, now, 0, 0
    # A division takes longer than all else here, so that rows are followed without any.
    row_line, row_place = start // line_bytes, start % line_bytes
    lines_apart, places_apart = apart // line_bytes, apart % line_bytes
    last_line, block, block_end = _NONE, 0, 0
    for _ in range(rows):
        beyond = row_line + 1
        if row_place + size > line_bytes:
            beyond += (row_place + size - 1) // line_bytes
        for line in range(row_line, min(beyond, len(lines))):
            if line == last_line:
                continue
            last_line = line
            if not block_end - lines_of_block <= line < block_end:
                block = line // lines_of_block
                block_end = (block + 1) * lines_of_block
                evicted += _touch(
                    block, setting.l2_blocks, lines_of_block, links, lines, stored, whole
                )
            if is_store:
                stored[line] = 1
                lines[line] = max(lines[line], 1)
            elif lines[line] == 0:
                missed += 1
                lines[line] = arrives + 1
            else:
                latest = max(latest, lines[line] - 1)
        row_line += lines_apart
        row_place += places_apart
        if row_place >= line_bytes:
            row_place -= line_bytes
            row_line += 1
    whole[FETCHED] += missed * setting.line_bytes
    whole[WRITTEN] += evicted * setting.line_bytes
    beside = (missed + evicted) * setting.line_bytes / size_bytes
    if is_store:
        return 0, beside
    if missed:
        latest = arrives
    return max(latest - now, setting.hit_cycles), beside


@lean
def _touch(
    block: int,
    capacity: int,
    lines_of_block: int,
    links: Table,
    lines: Line,
    stored: Bits,
    whole: Line,
) -> int:
    """Make `block` the newest; return how many lines another one that goes for it had stored."""
    evicted = 0
    if block == whole[NEWEST]:
        return evicted
    if links[block, IS_HELD]:
        _unlink(block, links, whole)
    else:
        if whole[HELD] == capacity:
            oldest = whole[OLDEST]
            _unlink(oldest, links, whole)
            links[oldest, IS_HELD] = 0
            for line in range(oldest * lines_of_block, (oldest + 1) * lines_of_block):
                evicted += stored[line]
                stored[line], lines[line] = 0, 0
        else:
            whole[HELD] += 1
        links[block, IS_HELD] = 1
    links[block, NEWER], links[block, OLDER] = _NONE, whole[NEWEST]
    if whole[NEWEST] == _NONE:
        whole[OLDEST] = block
    else:
        links[whole[NEWEST], NEWER] = block
    whole[NEWEST] = block
    return evicted


@lean
def _unlink(block: int, links: Table, whole: Line) -> None:
    newer, older = links[block, NEWER], links[block, OLDER]
    if newer == _NONE:
        whole[NEWEST] = older
    else:
        links[newer, OLDER] = older
    if older == _NONE:
        whole[OLDEST] = newer
    else:
        links[older, NEWER] = newer
