"""Large new arrays begin at large pages of the system."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir.numerics.large_arrays import LARGE_BYTES, PAGE_BYTES, unfilled


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.float64])
@pytest.mark.parametrize("count", [LARGE_BYTES, LARGE_BYTES + 8, 3 * PAGE_BYTES - 8])
def test_a_large_array_begins_at_a_large_page(count: int, dtype: npt.DTypeLike) -> None:
    items = count // np.dtype(dtype).itemsize
    array = unfilled((items,), dtype)
    assert array.ctypes.data % PAGE_BYTES == 0
    assert (array.shape, array.dtype) == ((items,), np.dtype(dtype))


def test_a_small_array_reserves_nothing_beside_itself() -> None:
    assert unfilled((LARGE_BYTES - 1,), np.uint8).base is None


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 5), (2, 1024, 1025)])
def test_it_has_the_shape_asked_for_and_may_be_written(shape: tuple[int, ...]) -> None:
    array = unfilled(shape, np.uint16)
    array[...] = 7
    assert array.shape == shape
    assert array.flags.c_contiguous
    assert (array == 7).all()


def test_two_arrays_share_no_byte() -> None:
    first, second = (unfilled((2048, 2048), np.uint8) for _ in range(2))
    assert not np.shares_memory(first, second)
