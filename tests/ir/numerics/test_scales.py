from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.numerics import (
    pack_scales_a,
    pack_scales_b,
    unpack_scales_a,
    unpack_scales_b,
)
from scalebox.ir.numerics.scales import scale_offset_a, scale_offset_b

A_ORDERS, B_ORDERS = ("ZZ", "ND", "DN"), ("NN", "ND", "DN")
ROWS, GROUPS = 48, 8


def distinct(rows: int, columns: int) -> np.ndarray:
    return np.arange(rows * columns, dtype=np.uint16).reshape(rows, columns).astype(np.uint8)


def test_case_c4_both_sides_put_their_element_at_byte_99() -> None:
    a, b = distinct(32, 4), distinct(4, 32)
    assert pack_scales_a(a)[99] == a[17, 3]
    assert pack_scales_b(b)[99] == b[3, 17]
    assert scale_offset_a(17, 3, rows=32, groups=4) == 99
    assert scale_offset_b(3, 17, groups=4, columns=32) == 99


# The machine's own description of each order: a five-dimensional view of memory and its strides.
VIEWS_A = {
    "ZZ": ((ROWS // 16, GROUPS // 2, 16, 2), (16 * GROUPS, 32, 2, 1)),
    "ND": ((1, ROWS, GROUPS // 2, 2), (ROWS * GROUPS, GROUPS, 2, 1)),
    "DN": ((1, GROUPS // 2, ROWS, 2), (ROWS * GROUPS, 2 * ROWS, 2, 1)),
}
VIEWS_B = {
    "NN": ((ROWS // 16, GROUPS // 2, 16, 2), (16 * GROUPS, 32, 2, 1)),
    "ND": ((1, GROUPS // 2, ROWS, 2), (ROWS * GROUPS, 2 * ROWS, 2, 1)),
    "DN": ((1, ROWS, GROUPS // 2, 2), (ROWS * GROUPS, GROUPS, 2, 1)),
}


def place(row: int, group: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Where the view puts a scale; its axes are rows or groups, told apart by their extents."""
    match shape:
        case (_, _, 16, 2):
            index = (row // 16, group // 2, row % 16, group % 2)
        case (1, rows, _, 2) if rows == ROWS:
            index = (0, row, group // 2, group % 2)
        case _:
            index = (0, group // 2, row, group % 2)
    assert all(i < extent for i, extent in zip(index, shape, strict=True))
    return sum(i * stride for i, stride in zip(index, strides, strict=True))


@pytest.mark.parametrize("order", A_ORDERS)
def test_the_left_orders_are_those_of_the_instruction_set(order: str) -> None:
    logical = distinct(ROWS, GROUPS)
    packed = pack_scales_a(logical, order=order)
    assert packed.shape == (ROWS * GROUPS,)
    for row, group in np.ndindex(ROWS, GROUPS):
        offset = place(row, group, *VIEWS_A[order])
        assert packed[offset] == logical[row, group]
        assert scale_offset_a(row, group, rows=ROWS, groups=GROUPS, order=order) == offset


@pytest.mark.parametrize("order", B_ORDERS)
def test_the_right_orders_are_those_of_the_instruction_set(order: str) -> None:
    logical = distinct(GROUPS, ROWS)
    packed = pack_scales_b(logical, order=order)
    for group, column in np.ndindex(GROUPS, ROWS):
        offset = place(column, group, *VIEWS_B[order])
        assert packed[offset] == logical[group, column]
        assert scale_offset_b(group, column, groups=GROUPS, columns=ROWS, order=order) == offset


@pytest.mark.parametrize("order", A_ORDERS)
def test_left_scales_come_back(order: str) -> None:
    logical = np.random.default_rng(40).integers(0, 256, (ROWS, GROUPS), dtype=np.uint8)
    packed = pack_scales_a(logical, order=order)
    for form in (packed, packed.reshape(ROWS, GROUPS), packed.reshape(1, 3, 4, 16, 2)):
        np.testing.assert_array_equal(unpack_scales_a(form, (ROWS, GROUPS), order=order), logical)
    assert not np.shares_memory(packed, logical)


@pytest.mark.parametrize("order", B_ORDERS)
def test_right_scales_come_back(order: str) -> None:
    logical = np.random.default_rng(41).integers(0, 256, (GROUPS, ROWS), dtype=np.uint8)
    packed = pack_scales_b(logical, order=order)
    for form in (packed, packed.reshape(GROUPS, ROWS), packed.reshape(1, 3, 4, 16, 2)):
        np.testing.assert_array_equal(unpack_scales_b(form, (GROUPS, ROWS), order=order), logical)
    assert not np.shares_memory(packed, logical)


def test_a_right_operand_is_the_left_one_turned() -> None:
    logical = distinct(ROWS, GROUPS)
    for left, right in (("ZZ", "NN"), ("ND", "DN"), ("DN", "ND")):
        np.testing.assert_array_equal(
            pack_scales_a(logical, order=left), pack_scales_b(logical.T, order=right)
        )


def test_offsets_of_arrays() -> None:
    m, g = np.divmod(np.arange(ROWS * GROUPS), GROUPS)
    offsets = scale_offset_a(m, g, rows=ROWS, groups=GROUPS)
    np.testing.assert_array_equal(np.sort(offsets), np.arange(ROWS * GROUPS))
    np.testing.assert_array_equal(
        pack_scales_a(distinct(ROWS, GROUPS))[offsets], distinct(ROWS, GROUPS).reshape(-1)
    )


def test_e8m0_arrays_are_their_codes() -> None:
    codes = distinct(16, 2)
    typed = codes.view(ml_dtypes.float8_e8m0fnu)
    np.testing.assert_array_equal(pack_scales_a(typed), pack_scales_a(codes))


class TestBadInput:
    def test_extents(self) -> None:
        rows = r"^The M extent of scales in ZZ order must be a positive multiple of 16, not 24$"
        with pytest.raises(IRValueError, match=rows):
            pack_scales_a(distinct(24, 2))
        groups = r"^The group extent of scales must be a positive multiple of 2, not 3$"
        with pytest.raises(IRValueError, match=groups):
            pack_scales_a(distinct(16, 3))
        with pytest.raises(IRValueError, match=groups):
            pack_scales_b(distinct(3, 16), order="ND")
        columns = r"^The N extent of scales in NN order must be a positive multiple of 16, not 8$"
        with pytest.raises(IRValueError, match=columns):
            unpack_scales_b(np.zeros(16, np.uint8), (2, 8))
        assert pack_scales_a(distinct(24, 2), order="ND").size == 48

    @pytest.mark.parametrize(
        "kind", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.uint4, np.int8, np.int64]
    )
    def test_what_are_no_e8m0_codes(self, kind: Any) -> None:
        sentence = r"^A scales must be uint8 codes \(E8M0: 2\^\(code - 127\)\), not "
        with pytest.raises(IRTypeError, match=sentence):
            pack_scales_a(np.zeros((16, 2), kind))

    def test_orders(self) -> None:
        sentence = r"^The order of A scales must be 'ZZ', 'ND' or 'DN', not 'NN'$"
        with pytest.raises(IRValueError, match=sentence):
            pack_scales_a(distinct(16, 2), order="NN")
        sentence = r"^The order of B scales must be 'NN', 'ND' or 'DN', not 'ZZ'$"
        with pytest.raises(IRValueError, match=sentence):
            unpack_scales_b(np.zeros(32, np.uint8), (2, 16), order="ZZ")

    def test_shapes(self) -> None:
        with pytest.raises(
            IRValueError, match=r"^A scales must be a matrix \[M, G\], not of shape"
        ):
            pack_scales_a(np.zeros(32, np.uint8))
        with pytest.raises(
            IRValueError, match=r"^Packed scales of shape \[16, 4\] must be 64 bytes"
        ):
            unpack_scales_a(np.zeros(32, np.uint8), (16, 4))
        with pytest.raises(
            IRValueError, match=r"^The shape of scales must be \(G, N\), not \(1, 2"
        ):
            unpack_scales_b(np.zeros(32, np.uint8), (1, 2, 16))

    def test_linear_values(self) -> None:
        for wrong in (np.ones((16, 2), np.float32), np.ones((16, 2), np.int64)):
            with pytest.raises(IRTypeError, match=r"^A scales must be uint8 codes"):
                pack_scales_a(wrong)
