"""NZ order: element by element, by the published formula."""

import numpy as np
import pytest

from scalebox.ir.errors import IRValueError
from scalebox.ir.numerics import pack_nz, unpack_nz
from scalebox.ir.numerics.nz import nz_folds, nz_given_shapes, nz_logical_shape


@pytest.mark.parametrize("kind", [np.int8, np.float16, np.float32, np.int64])
@pytest.mark.parametrize("leading", [(), (3,), (2, 3)])
def test_an_element_stands_where_the_formula_says(kind: type, leading: tuple[int, ...]) -> None:
    wide = 32 // np.dtype(kind).itemsize
    rows, columns = 48, 2 * wide
    shape = (*leading, rows, columns)
    array = np.arange(np.prod(shape), dtype=np.int64).reshape(shape).astype(np.dtype(kind))
    packed = pack_nz(array)
    assert packed.shape == (int(np.prod(leading)), 2, 3, 16, wide)
    assert packed.flags.c_contiguous
    flat = packed.reshape(-1)
    matrices = array.reshape(-1, rows, columns)
    for b, r, c in [(0, 0, 0), (0, 17, 1), (len(matrices) - 1, 47, columns - 1)]:
        place = b * rows * columns + (c // wide) * rows * wide + r * wide + c % wide
        assert flat[place] == matrices[b, r, c]
    assert (unpack_nz(flat, shape) == array).all()


def test_the_bytes_of_a_box_are_sixteen_lines_of_32() -> None:
    array = np.arange(32 * 64).reshape(32, 64).astype(np.uint8)
    boxes = pack_nz(array).tobytes()
    assert boxes[:32] == array[0, :32].tobytes()
    assert boxes[32:64] == array[1, :32].tobytes()
    assert boxes[512:544] == array[16, :32].tobytes()
    assert boxes[1024:1056] == array[0, 32:].tobytes()


@pytest.mark.parametrize(
    ("shape", "fault"),
    [
        ((24, 32), "a positive multiple of 16 rows, not 24"),
        ((16, 48), "a positive multiple of 32 columns, not 48"),
        ((0, 32), "a positive multiple of 16 rows, not 0"),
        ((32,), "rank 2 or more, not 1"),
    ],
)
def test_a_shape_of_broken_boxes_is_refused(shape: tuple[int, ...], fault: str) -> None:
    with pytest.raises(IRValueError) as caught:
        pack_nz(np.zeros(shape, np.uint8))
    assert caught.value.message == f"An array in NZ order must have {fault}"


def test_another_number_of_elements_is_refused() -> None:
    with pytest.raises(IRValueError) as caught:
        unpack_nz(np.zeros(100, np.uint8), (16, 32))
    assert caught.value.message == (
        "An array of shape [16, 32] must come from 512 elements, not from 100"
    )


def test_shapes_that_hold_the_same_boxes() -> None:
    assert nz_logical_shape((1, 2, 3, 16, 32)) == (48, 64)
    assert nz_logical_shape((6, 2, 3, 16, 32)) == (6, 48, 64)
    assert nz_given_shapes((48, 64), 8) == [
        (48, 64), (1, 2, 3, 16, 32), (2, 3, 16, 32), (1, 48, 64), (3072,),
    ]  # fmt: skip
    assert nz_given_shapes((2, 48, 64), 8) == [(2, 48, 64), (2, 2, 3, 16, 32), (6144,)]
    assert nz_folds((2, 3, 16, 32), (6, 16, 32))
    assert not nz_folds((2, 3, 32, 16), (6, 16, 32))
