"""The form of the kernels, which are the datapaths, one jitted function each, and what they share.

Every kernel has the form `kernel(memory, views, op, r0, r1, fault, mode) -> bool`: `op` holds the
operands in the order that the kernel's first line names (the order of `actions.ACTIONS`), `r0` and
`r1` the values of its two registers, `mode` says how much is done. A kernel first checks its
bounds, then moves bytes and, from `TRACK` on, their written masks the same way. It returns False
and fills `fault` (see `faultcodes`) without having moved anything if a bound is broken.

Places are unsigned in loops over single bytes: at a signed one compiled code would ask each time whether
it counts from the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ...codegen.isa.vocabulary import Space
from ...ir.jit import inner, lean
from ..faultcodes import LOCAL_RANGE, SUBBYTE, UNWRITTEN, VIEW_RANGE
from .moves import RUN, copy_bytes, fill_bytes, meet_runs

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Words = npt.NDArray[np.uint32]
    Table = npt.NDArray[np.int64]
    Line = npt.NDArray[np.int64]


class Spaces(NamedTuple):
    """The codes of `Space`; as attributes of a tuple numba compiles no version per constant."""

    gm: int
    l1: int
    l0a: int
    l0b: int
    l0c: int
    bias: int
    scale_a: int
    scale_b: int
    fixp: int
    ub: int


SPACE: Final = Spaces(*(int(space) for space in Space))

UNIT: Final = 32
"""Bytes that a register counts where it tells a distance in L1; without one it reads as 0."""

ROOM: Final = 1 << 15
"""Bytes behind all local memories in which a kernel may work."""

CHECK, MOVE, TRACK, REPORT = 0, 1, 2, 3
"""Modes: check bounds only; move bytes; move written masks too; and report what reaches a result
without ever having been written."""

BASE, OFFSET, BITS, RANK, DIMS, STRIDES, VIEW_WORDS = 0, 1, 2, 3, 4, 9, 14
"""Columns of a bound view: byte address of the buffer (to execute, its place in `gm`), offset in elements,
bits of an element, rank, five dimensions and five strides in elements."""


class Memory(NamedTuple):
    """What a kernel may touch; see `memory` for the parts. `words` is `local` as uint32."""

    gm: Bytes
    gm_written: Bytes
    gm_written_base: int
    local: Bytes
    words: Words
    written: Bytes
    bases: Line
    sizes: Line


@lean
def local_ok(memory: Memory, space: int, address: int, size: int, fault: Line) -> bool:
    """Return whether `size` bytes at `address` lie inside the local memory `space`."""
    if address >= 0 and address + size <= memory.sizes[space]:
        return True
    fault[0], fault[1], fault[2], fault[3] = LOCAL_RANGE, space, address, size
    fault[4] = memory.sizes[space]
    return False


@inner
def unwritten(memory: Memory, space: int, place: int, row: int, column: int, fault: Line) -> None:
    """Tell that an element at a place of the local bytes was never written."""
    fault[0], fault[1], fault[2] = UNWRITTEN, space, place - memory.bases[space]
    fault[3], fault[4] = row, column


@lean
def all_written(written: Bytes, place: int, size: int) -> bool:
    """Return whether `size` bytes were written; a loop without a way out goes many at once."""
    runs = size // RUN
    if runs and meet_runs(written, place, runs) != -1:
        return False
    here, mask = np.uintp(place), np.uint8(0xFF)
    for i in range(np.uintp(runs * RUN), np.uintp(size)):
        mask &= written[here + i]
    return mask == 0xFF


@lean
def window_ok(view: Line, axis: int, first: int, extent: int, fault: Line) -> bool:
    """Return whether `extent` indices from `first` on lie inside `axis` of the view."""
    dimension = view[DIMS + axis]
    if first >= 0 and extent <= dimension and first <= dimension - extent:
        return True
    fault[0], fault[1], fault[2], fault[3], fault[4] = VIEW_RANGE, axis, first, extent, dimension
    return False


@lean
def whole_bytes_ok(view: Line, element: int, rows: int, cols: int, fault: Line) -> bool:
    """Return whether every row of a window begins and ends on a byte and lies in one piece.

    Where elements follow one another along the columns, these are what must.
    """
    lines, count, step = rows, cols, view[STRIDES]
    if view[STRIDES + 1] != 1:
        lines, count, step = cols, rows, view[STRIDES + 1]
    for line in range(min(lines, 2)):
        start = element + line * step
        if (start * view[BITS]) % 8 or (count * view[BITS]) % 8:
            fault[0], fault[1], fault[2], fault[3] = SUBBYTE, line, start, count
            return False
    return True


@inner
def copy_local(memory: Memory, source: int, target: int, size: int, mode: int) -> None:
    """Copy local bytes and, from `TRACK` on, their written masks."""
    copy_bytes(memory.local, target, memory.local, source, size)
    if mode >= TRACK:
        copy_bytes(memory.written, target, memory.written, source, size)


@lean
def masks_at(memory: Memory, place: int) -> int:
    """Return where the masks of the GM bytes from a place on stand; -1 if these count as written."""
    hidden = place - memory.gm_written_base
    return hidden if 0 <= hidden < len(memory.gm_written) else -1


@inner
def fetch(memory: Memory, source: int, target: int, size: int, mode: int) -> None:
    """Copy `size` bytes from place `source` of GM to place `target` of the local bytes."""
    copy_bytes(memory.local, target, memory.gm, source, size)
    if mode < TRACK:
        return
    hidden = masks_at(memory, source)
    if hidden < 0:
        fill_bytes(memory.written, target, size, 0xFF)
    else:
        copy_bytes(memory.written, target, memory.gm_written, hidden, size)


@inner
def clear(memory: Memory, target: int, size: int, mode: int) -> None:
    """Set local bytes to zero."""
    fill_bytes(memory.local, target, size, 0)
    if mode >= TRACK:
        fill_bytes(memory.written, target, size, 0xFF)
