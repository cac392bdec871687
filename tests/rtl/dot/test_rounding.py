# amaranth: UnusedElaboratable=no
"""Sums in two halves become sign and magnitude, and these the nearest FP32."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from scalebox.rtl.dot.rounding import RoundFp32
from scalebox.rtl.dot.shapes import PRODUCT_EXPONENT
from scalebox.rtl.dot.sums import (
    HIGH_HALF,
    LOW_HALF,
    MAGNITUDE_BITS,
    PLAIN_MAGNITUDE_BITS,
    SUM_EXPONENT,
    Magnitude,
)

from .blocks import VerilatedBlock
from .exact import fp32_bits

EXPONENTS = range(-286, 257)


class RoundedSum(wiring.Component):
    """A sum in two halves, rounded."""

    def __init__(self) -> None:
        super().__init__(
            {
                "low": In(LOW_HALF),
                "high": In(HIGH_HALF),
                "exponent": In(PRODUCT_EXPONENT),
                "o": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.magnitude = magnitude = Magnitude()
        m.submodules.rounding = rounding = RoundFp32(
            magnitude_bits=MAGNITUDE_BITS, exponent_bits=SUM_EXPONENT.width
        )
        for name in ("low", "high", "exponent"):
            m.d.comb += getattr(magnitude, name).eq(getattr(self, name))
        m.d.comb += rounding.sign.eq(magnitude.sign)
        m.d.comb += rounding.magnitude.eq(magnitude.magnitude)
        m.d.comb += rounding.exponent.eq(magnitude.magnitude_exponent)
        m.d.comb += self.o.eq(rounding.o)
        return m


@pytest.fixture(scope="module")
def rounded_sum() -> VerilatedBlock:
    return VerilatedBlock("rounded_sum", RoundedSum())


@pytest.fixture(scope="module", params=[MAGNITUDE_BITS, PLAIN_MAGNITUDE_BITS])
def rounding(request: pytest.FixtureRequest) -> tuple[int, VerilatedBlock]:
    bits = request.param
    block = RoundFp32(magnitude_bits=bits, exponent_bits=SUM_EXPONENT.width)
    return bits, VerilatedBlock(f"round_{bits}", block)


def ragged(rng: random.Random, bits: int) -> int:
    """Draw a number of any length, often with long runs of zeros or ones."""
    number = rng.getrandbits(rng.randint(1, bits))
    match rng.randrange(4):
        case 0:
            number &= rng.getrandbits(bits) << rng.randrange(bits)
        case 1:
            number |= (1 << rng.randrange(bits)) - 1
        case 2:
            number = (1 << rng.randrange(bits)) + (1 << rng.randrange(bits)) + rng.randint(-1, 1)
        case _:
            pass
    return max(0, min(number, (1 << bits) - 1))


def raw(values: list[int], bits: int) -> np.ndarray:
    return np.array([value & ((1 << bits) - 1) for value in values], dtype=np.uint64)


def test_a_magnitude_becomes_the_nearest_fp32(rounding: tuple[int, VerilatedBlock]) -> None:
    bits, block = rounding
    rng = random.Random(bits)
    cases = [(rng.random() < 0.5, ragged(rng, bits), rng.choice(EXPONENTS)) for _ in range(20_000)]
    # As many near the least normal number, and near the largest.
    for _ in range(20_000):
        magnitude = ragged(rng, bits)
        leading = rng.choice([*range(-152, -120), *range(120, 130)])
        cases.append((rng.random() < 0.5, magnitude, leading - magnitude.bit_length()))
    signs, magnitudes, exponents = (list(each) for each in zip(*cases, strict=True))
    found = block(
        sign=signs,
        magnitude=raw(magnitudes, bits),
        exponent=raw(exponents, SUM_EXPONENT.width),
    )
    np.testing.assert_array_equal(found["o"], [fp32_bits(*case) for case in cases])


@pytest.mark.parametrize(
    ("negative", "magnitude", "exponent", "bits"),
    [
        (False, 0, 0, 0x00000000),
        (True, 0, 200, 0x00000000),  # an exact zero is +0
        (True, 1, -286, 0x80000000),  # too small and negative: -0
        (False, 1, -150, 0x00000000),  # half the least subnormal: a tie goes to even
        (False, 3, -151, 0x00000001),  # three quarters of it
        (True, 3, -150, 0x80000002),  # one and a half of it: a tie goes to even
        (False, 1, -149, 0x00000001),
        (False, (1 << 24) - 1, -150, 0x00800000),  # rounds up to the least normal number
        (False, (1 << 24) - 1, 104, 0x7F7FFFFF),  # the largest number
        (False, (1 << 25) - 1, 103, 0x7F800000),  # the tie above it: infinity
        (False, (1 << 25) - 2, 103, 0x7F7FFFFF),
        (True, 1, 128, 0xFF800000),
        (False, 3, 127, 0x7F800000),  # no NaN, though bits stand below the leading one
        (False, (1 << 24) + 1, 0, 0x4B800000),  # ties
        (False, (1 << 24) + 3, 0, 0x4B800002),
        (False, (1 << 63) + (1 << 39) + 1, 0, 0x5F000001),  # a tie and a little more
        (False, (1 << 64) - 1, 0, 0x5F800000),
    ],
)
def test_magnitudes_by_hand(
    rounded_sum: VerilatedBlock, negative: bool, magnitude: int, exponent: int, bits: int
) -> None:
    assert fp32_bits(negative, magnitude, exponent) == bits
    value = -magnitude if negative else magnitude
    found = rounded_sum(
        low=value & 0xFFFFFFFF,
        high=raw([value >> 32], HIGH_HALF.width),
        exponent=raw([exponent], PRODUCT_EXPONENT.width),
    )
    assert int(found["o"][0]) == bits


def test_a_sum_in_two_halves_rounds_once_whatever_its_halves_carry(
    rounded_sum: VerilatedBlock,
) -> None:
    rng = random.Random(3)
    most = 49 * 32 << 58  # 32 times the largest number of E5M2, squared, in units of 2^-32
    lows: list[int] = []
    highs: list[int] = []
    cases: list[tuple[bool, int, int]] = []
    for _ in range(40_000):
        value = min(ragged(rng, 69), most) * rng.choice([-1, 1])
        low = (value & 0xFFFFFFFF) + (rng.randrange(32) << 32)
        lows.append(low)
        highs.append((value - low) >> 32)
        cases.append((value < 0, abs(value), rng.choice(EXPONENTS)))
    found = rounded_sum(
        low=lows,
        high=raw(highs, HIGH_HALF.width),
        exponent=raw([case[2] for case in cases], PRODUCT_EXPONENT.width),
    )
    np.testing.assert_array_equal(found["o"], [fp32_bits(*case) for case in cases])


def test_a_rounding_whose_exponents_do_not_reach_subnormals_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="exponents reach subnormals"):
        RoundFp32(magnitude_bits=64, exponent_bits=signed(8).width)
