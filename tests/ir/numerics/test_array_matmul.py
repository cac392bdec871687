"""The product of block-scaled arrays of any format, in plain numpy, against fractions."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, BlockScaledDType, DType, Float16, Level, SimpleDType, Whole
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.numerics.array_matmul import check_formats, matmul_arrays

from . import oracles

BLOCKS = (1, 8, 16, 64, 256)
ELEMENTS = (DType.E4M3, DType.E5M2, DType.E3M2, DType.E2M3, DType.E2M1, DType.Int8)


def registered(element: SimpleDType, levels: tuple[Level, ...]) -> BlockScaledDType:
    """Return the format of an element and its levels, made here if no other test has made it."""
    for known in BlockScaledDType.registered():
        if known.element is element and known.levels == levels:
            return known
    blocks = "By".join(str(level.block) for level in levels)
    return BlockScaledDType(f"Own{element.name}By{blocks}", element=element, levels=levels)


def own(element: SimpleDType, block: int) -> BlockScaledDType:
    """Return a format with E8M0 scales over a block."""
    return registered(element, (Level(DType.E8M0, block),))


def two_levels(element: SimpleDType, block: int) -> BlockScaledDType:
    """Return a format with E4M3 scales over a block and one float32 over the tensor."""
    return registered(element, (Level(DType.E4M3, block), Level(DType.Float32, Whole)))


def draw(
    rng: np.random.Generator, shape: tuple[int, int], element: SimpleDType
) -> npt.NDArray[Any]:
    """Return any codes, the largest and the smallest often among them."""
    codes = rng.integers(0, 1 << element.bits, shape).astype(np.uint8)
    if element is not DType.Int8:
        finite = np.isfinite(oracles.values(element))
        extremes = np.flatnonzero(finite)[[1, -1]]
        return np.where(rng.random(shape) < 0.3, rng.choice(extremes, shape), codes).astype(
            np.uint8
        )
    return codes


def worth(codes: npt.NDArray[np.uint8], element: SimpleDType) -> npt.NDArray[np.float32]:
    if element is DType.Int8:
        return codes.view(np.int8).astype(np.float32) * np.float32(2.0**-6)
    return oracles.values(element)[codes]


def pair(
    rng: np.random.Generator, left: BlockScaledDType, right: BlockScaledDType, depth: int
) -> tuple[numerics.MXArray, numerics.MXArray]:
    """Return operands of 2 rows and 3 columns with any scales around 1."""
    block = left.levels[0].block
    assert isinstance(block, int)
    groups = -(-depth // block)
    scales = [
        rng.integers(100, 150, shape).astype(np.uint8) for shape in ((2, groups), (groups, 3))
    ]
    return (
        numerics.MXArray(draw(rng, (2, depth), left.element), scales[0], left, 1),
        numerics.MXArray(draw(rng, (depth, 3), right.element), scales[1], right, 0),
    )


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("right", ELEMENTS, ids=lambda d: d.name)
@pytest.mark.parametrize("left", ELEMENTS, ids=lambda d: d.name)
def test_groups_of_any_size(left: SimpleDType, right: SimpleDType, block: int) -> None:
    rng = np.random.default_rng(block)
    depth = 2 * block + block // 2 + 1
    a, b = pair(rng, own(left, block), own(right, block), depth)
    for order, step in (("group", block), ("sequential", 1)):
        expected = oracles.matmul(
            worth(a.elements, left), a.scales, worth(b.elements, right), b.scales,
            group=block, step=step,
        )  # fmt: skip
        found = matmul_arrays(a, b, sum=order)
        np.testing.assert_array_equal(found.view(np.uint32), expected)
    np.testing.assert_array_equal(numerics.matmul(a, b), matmul_arrays(a, b))


def test_a_group_beyond_64_bits_is_rounded_once() -> None:
    # 129 times 2^15 * 2^15, and half a float32 step; 2^-32 more is 70 bits further down.
    wide = own(DType.E5M2, 256)
    codes = np.zeros((1, 256), np.uint8)
    codes[0, :129] = 0x78  # 2^15
    codes[0, 129:131] = 0x60, 0x01  # 2^9 and 2^-16
    right = codes.T.copy()
    right[129, 0] = 0x4C  # 2^4
    one = np.full((1, 1), 127, np.uint8)
    a, b = (numerics.MXArray(c, one, wide, axis) for c, axis in ((codes, 1), (right, 0)))
    assert numerics.matmul(a, b).item() == 129 * 2.0**30 + 2.0**14
    right[130, 0] = 0
    tie = numerics.MXArray(right, one, wide, 0)
    assert numerics.matmul(a, tie).item() == 129 * 2.0**30


def test_a_large_product_of_another_block_size_is_not_left_to_the_machines_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scalebox.ir.numerics.quantization.COMPILED_FROM", 0)
    x = np.ones((2, 64), np.float32)
    x[:, 16:32] = 8.0
    by_16 = own(DType.E4M3, 16)
    product = numerics.matmul(numerics.quantize(x, by_16), numerics.quantize(x.T, by_16, axis=0))
    assert (product == 48 + 16 * 64).all()


class TestTwoLevels:
    @pytest.mark.parametrize("order", ["group", "sequential"])
    @pytest.mark.parametrize("element", [DType.E2M1, E1M2, DType.E2M3, DType.E3M2], ids=str)
    @pytest.mark.parametrize("tensors", [(1.1, -0.7), (3e38, 1e-30), (3e-41, 1.0), (0.0, 1.0)])
    def test_each_block_or_each_product_is_rounded_once(
        self, element: SimpleDType, order: str, tensors: tuple[float, float]
    ) -> None:
        rng = np.random.default_rng(8)
        dtype = DType.NVFP4 if element is DType.E2M1 else two_levels(element, 16)
        depth, groups = 40, 3
        a = numerics.MXArray(
            draw(rng, (2, depth), element),
            rng.integers(0, 128, (2, groups)).astype(np.uint8),
            dtype,
            1,
            np.float32(tensors[0]),
        )
        b = numerics.MXArray(
            draw(rng, (depth, 3), element),
            rng.integers(0, 127, (groups, 3)).astype(np.uint8),
            dtype,
            0,
            np.float32(tensors[1]),
        )
        expected = self.oracle(a, b, element, 16 if order == "group" else 1)
        np.testing.assert_array_equal(matmul_arrays(a, b, sum=order).view(np.uint32), expected)

    @staticmethod
    def oracle(
        a: numerics.MXArray, b: numerics.MXArray, element: SimpleDType, step: int
    ) -> npt.NDArray[np.uint32]:
        values, scales = oracles.values(element), oracles.values(DType.E4M3)
        assert a.tensor_scale is not None
        assert b.tensor_scale is not None
        both = Fraction(float(a.tensor_scale)) * Fraction(float(b.tensor_scale))
        out = np.zeros((a.shape[0], b.shape[1]), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            for m, n in np.ndindex(*out.shape):
                for first in range(0, a.shape[1], step):
                    last = min(first + step, (first // 16 + 1) * 16, a.shape[1])
                    two = scales[a.scales[m, first // 16]], scales[b.scales[first // 16, n]]
                    scale = None
                    if not np.isnan(two).any():
                        scale = Fraction(float(two[0])) * Fraction(float(two[1])) * both
                    left, right = a.elements[m, first:last], b.elements[first:last, n]
                    out[m, n] += oracles.group_term(values[left], values[right], scale)
        bits = out.view(np.uint32)
        bits[np.isnan(out)] = 0x7FC00000
        return bits


class TestWhatDoesNotMultiply:
    def test_groups_of_two_sizes(self) -> None:
        check_formats(own(DType.E4M3, 16), own(DType.E2M1, 16))
        other = own(DType.E4M3, 16)
        with pytest.raises(IRTypeError) as caught:
            check_formats(DType.MXFP4, other)
        assert caught.value.message == (
            "The operands must both have E8M0 scales over groups of one size, or be of one format, "
            f"not MXFP4 and {other.name}"
        )

    @pytest.mark.parametrize("dtype", [DType.MXFP4, DType.NVFP4], ids=lambda d: d.name)
    def test_a_k_of_nothing(self, dtype: BlockScaledDType) -> None:
        a = numerics.quantize(np.zeros((2, 0)), dtype)
        b = numerics.quantize(np.zeros((0, 3)), dtype, axis=0)
        with pytest.raises(IRValueError, match=r"must share a K of at least 1, not 0 and 0$"):
            numerics.matmul(a, b)

    def test_two_formats_of_two_levels(self) -> None:
        other = two_levels(DType.E2M3, 16)
        with pytest.raises(IRTypeError, match=f"or be of one format, not NVFP4 and {other.name}$"):
            check_formats(DType.NVFP4, other)

    @pytest.mark.parametrize("element", [DType.E8M0, Float16, DType.Int32], ids=str)
    def test_elements_that_block_scaling_does_not_define(self, element: SimpleDType) -> None:
        with pytest.raises(IRTypeError) as caught:
            numerics.quantize(np.ones((1, 32)), own(element, 32))
        assert element.name in caught.value.message

    @pytest.mark.parametrize("element", [DType.E4M3, DType.E5M2, DType.Int8], ids=str)
    def test_two_levels_need_plain_elements(self, element: SimpleDType) -> None:
        name = two_levels(element, 16)
        with pytest.raises(IRTypeError) as caught:
            numerics.quantize(np.ones((1, 16)), name)
        assert caught.value.message == (
            f"The elements of {name.name}, which has two levels of scales, must be floats with "
            f"neither NaN nor infinity, not {element.name}"
        )
