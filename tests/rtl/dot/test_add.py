# amaranth: UnusedElaboratable=no
"""The FP32 adder against the processor's own, bit by bit."""

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.rtl.dot.add import AddFp32

from .blocks import VerilatedBlock
from .exact import NAN


@pytest.fixture(scope="module")
def add() -> VerilatedBlock:
    return VerilatedBlock("add_fp32", AddFp32())


def expected(a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    with np.errstate(all="ignore"):
        total = a.view(np.float32) + b.view(np.float32)
    return np.where(np.isnan(total), np.uint32(NAN), total.view(np.uint32))


def check(add: VerilatedBlock, a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]) -> None:
    np.testing.assert_array_equal(add(a=a, b=b)["o"], expected(a, b))


def test_all_pairs_of_edges_of_the_format(add: VerilatedBlock) -> None:
    fields = np.array([0, 1, 2, 3, 23, 24, 25, 26, 27, 28, 29, 126, 127, 128, 152, 253, 254, 255])
    mantissas = np.array([0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF])
    magnitudes = (fields[:, None] << 23 | mantissas).reshape(-1)
    edges = np.concatenate([magnitudes, magnitudes | 1 << 31]).astype(np.uint32)
    a, b = np.meshgrid(edges, edges)
    check(add, a.reshape(-1), b.reshape(-1))


def test_a_million_random_pairs(add: VerilatedBlock) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 1 << 32, (2, 500_000), dtype=np.uint32)
    check(add, a, b)
    # Most random pairs lie too far apart to meet: bring the second near the first.
    near = rng.integers(-28, 29, a.shape)
    field = np.clip((a >> 23 & 255).astype(np.int64) + near, 0, 255).astype(np.uint32)
    check(add, a, b & np.uint32(0x807FFFFF) | field << np.uint32(23))


def test_neighbours_cancel_to_the_bit(add: VerilatedBlock) -> None:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32)
    apart = rng.integers(-40, 41, a.shape)
    b = (a.astype(np.int64) + apart).astype(np.uint32) ^ np.uint32(1 << 31)
    check(add, a, b)


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [
        (0x3F800000, 0xBF800000, 0x00000000),  # 1 - 1 is +0
        (0xBF800000, 0x3F800000, 0x00000000),
        (0x80000000, 0x80000000, 0x80000000),  # -0 - 0 is -0
        (0x80000000, 0x00000000, 0x00000000),
        (0x00000001, 0x007FFFFF, 0x00800000),  # two subnormals make the smallest normal number
        (0x7F7FFFFF, 0x73000000, 0x7F800000),  # the largest number and half its last place: a tie
        (0x7F7FFFFF, 0x72FFFFFF, 0x7F7FFFFF),  # and a little less
        (0x3F800000, 0x33800000, 0x3F800000),  # 1 + 2^-24: a tie goes to even
        (0x3F800001, 0x33800000, 0x3F800002),
        (0x3F800000, 0x33800001, 0x3F800001),
        (0x7F800000, 0xFF800000, 0x7FC00000),  # inf - inf
        (0xFF800000, 0x7F7FFFFF, 0xFF800000),
        (0x7F800001, 0x3F800000, 0x7FC00000),  # a signalling NaN
        (0x3F800000, 0xFFFFFFFF, 0x7FC00000),  # a NaN with a sign and a payload
    ],
)
def test_sums_by_hand(add: VerilatedBlock, a: int, b: int, total: int) -> None:
    assert int(add(a=a, b=b)["o"]) == total
    assert int(add(a=b, b=a)["o"]) == total
