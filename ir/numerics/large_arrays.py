"""New arrays that the system can give in large pages.

Memory that a process has not had before costs a fault a page; for 4-KiB pages that is longer than
many of our kernels take to fill them. numpy asks for large pages where an array is long enough, but
lets it begin anywhere, so that its ends, which are all of an array of two pages, stay small.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

PAGE_BYTES = 1 << 21
"""A large page of x86-64, and of Arm with 4-KiB pages."""

LARGE_BYTES = 2 * PAGE_BYTES
"""Where numpy begins to ask for large pages."""


def unfilled(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array that says nothing yet, contiguous, as `np.empty` does.

    One of at least `LARGE_BYTES` begins at a page; a page more of addresses is reserved for it,
    which nobody writes, so that it takes no memory.
    """
    wanted = np.dtype(dtype)
    size = math.prod(shape) * wanted.itemsize
    if size < LARGE_BYTES:
        return np.empty(shape, wanted)
    room = np.empty(size + PAGE_BYTES, np.uint8)
    first = -room.ctypes.data % PAGE_BYTES
    return room[first : first + size].view(wanted).reshape(shape)
