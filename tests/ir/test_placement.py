"""Where elements stand in global memory."""

import numpy as np
import pytest

from scalebox.ir.dtypes import BFloat16, DType, SimpleDType
from scalebox.ir.errors import IRValueError
from scalebox.ir.numerics import pack_nz
from scalebox.ir.placement import axis_positions, code_type, packed_stride, window_positions
from scalebox.ir.types import TensorLayout

ND, DN = TensorLayout.ND, TensorLayout.DN
ZZ, NN = TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN


def everywhere(
    layout: TensorLayout, shape: tuple[int, ...], stride: tuple[int, ...] = ()
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    positions = axis_positions(layout, shape, stride)
    return window_positions(positions, [slice(None)] * len(shape))


def test_plain_tensors_are_row_major() -> None:
    assert everywhere(ND, (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert packed_stride(ND, (4, 5, 6)) == (30, 6, 1)


def test_dn_is_column_major_in_the_last_two_axes() -> None:
    assert everywhere(DN, (2, 3)).tolist() == [[0, 2, 4], [1, 3, 5]]
    assert packed_stride(DN, (4, 5, 6)) == (30, 1, 5)


def test_known_strides_win() -> None:
    assert everywhere(ND, (2, 2), (10, 3)).tolist() == [[0, 3], [10, 13]]


@pytest.mark.parametrize(
    ("layout", "shape"), [(ZZ, (32, 4)), (NN, (4, 32)), (ZZ, (16, 2)), (NN, (64, 16))]
)
def test_boxes_follow_the_formula_of_the_instruction_set(
    layout: TensorLayout, shape: tuple[int, int]
) -> None:
    found = everywhere(layout, shape)
    groups = shape[1] if layout is ZZ else shape[0]
    for i in range(shape[0]):
        for j in range(shape[1]):
            row, group = (i, j) if layout is ZZ else (j, i)
            byte = (row // 16) * 16 * groups + (group // 2) * 32 + (row % 16) * 2 + group % 2
            assert found[i, j] == byte, (i, j)
    assert sorted(found.ravel()) == list(range(shape[0] * shape[1]))


def test_the_published_example_of_a_box_offset() -> None:
    assert everywhere(ZZ, (32, 4))[17, 3] == 99
    assert everywhere(NN, (4, 32))[3, 17] == 99


@pytest.mark.parametrize(("layout", "shape"), [(ZZ, (64, 8)), (NN, (8, 64))])
def test_cutting_into_boxes_moves_no_byte(layout: TensorLayout, shape: tuple[int, int]) -> None:
    blocked = everywhere(layout, (1, 4, 4, 16, 2))
    assert blocked.ravel().tolist() == list(range(512))
    logical = everywhere(layout, shape)
    boxes = logical if layout is ZZ else logical.T
    assert blocked[0, 1, 2, 3, 1] == boxes[16 + 3, 2 * 2 + 1]


def test_a_window_is_a_cut_of_the_whole() -> None:
    positions = axis_positions(ZZ, (64, 8))
    cut = window_positions(positions, [slice(16, 48), slice(2, 6)])
    assert (cut == everywhere(ZZ, (64, 8))[16:48, 2:6]).all()


@pytest.mark.parametrize(("bits", "kind"), [(8, np.uint8), (16, np.uint16), (32, np.uint32)])
@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_nz_puts_elements_where_packing_does(
    bits: int, kind: type, leading: tuple[int, ...]
) -> None:
    shape = (*leading, 32, 2 * 256 // bits)
    array = np.arange(np.prod(shape), dtype=np.int64).astype(np.dtype(kind)).reshape(shape)
    places = window_positions(
        axis_positions(TensorLayout.NZ, shape, bits=bits), [slice(None)] * len(shape)
    )
    assert (pack_nz(array).reshape(-1)[places] == array).all()


def test_blocked_nz_is_row_major() -> None:
    places = axis_positions(TensorLayout.NZ, (2, 3, 4, 16, 32))
    assert [int(table[1]) for table in places] == [6144, 2048, 512, 32, 1]


def test_nz_of_broken_boxes_is_refused() -> None:
    expected = "^A tensor in NZ that is run must have a positive multiple of 32 columns, not 16$"
    with pytest.raises(IRValueError, match=expected):
        axis_positions(TensorLayout.NZ, (16, 16))


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (DType.E2M1, np.uint8),
        (DType.E8M0, np.uint8),
        (BFloat16, np.uint16),
        (DType.Float32, np.uint32),
        (DType.Float64, np.uint64),
    ],
)
def test_the_type_that_holds_a_code(dtype: SimpleDType, kind: type) -> None:
    assert code_type(dtype) == np.dtype(kind)
