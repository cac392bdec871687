# amaranth: UnusedElaboratable=no
"""Sums worked out by hand, through the Verilated dot unit: specials, signs of zero, roundings."""

import numpy as np
import pytest

from scalebox.codegen.isa.vocabulary import ElementType
from scalebox.rtl.cosim.dot import evaluate_dots

from .exact import INFINITY, MIXES, NAN, added, bits_of, code_of

E4M3, E5M2, E2M1, E1M2 = ElementType
ALL_MIXES = pytest.mark.parametrize(("a_type", "b_type"), MIXES, ids=lambda kind: kind.name)
NAN_CODES = {E4M3: 0xFF, E5M2: 0x7D}
MINUS_ZERO = 1 << 31


def one(
    a: dict[int, float] | list[float],
    b: dict[int, float] | list[float],
    kinds: tuple[ElementType, ElementType] = (E5M2, E5M2),
    *,
    depth: int = 32,
    scales: list[tuple[int, int]] | None = None,
    start: int = 0,
) -> int:
    """Return the bits of a single sum; elements are given as values, the others are +0."""
    codes = np.zeros((2, depth), np.uint8)
    for side, (given, kind) in enumerate(zip((a, b), kinds, strict=True)):
        placed = given if isinstance(given, dict) else dict(enumerate(given))
        for place, value in placed.items():
            codes[side, place] = NAN_CODES[kind] if np.isnan(value) else code_of(kind, value)
    pairs = np.array(scales or [(127, 127)] * -(-depth // 32), np.uint8)
    sums = evaluate_dots(
        codes[:1],
        pairs[None, :, 0].copy(),
        codes[1:],
        pairs[None, :, 1].copy(),
        a_type=kinds[0],
        b_type=kinds[1],
        start=np.array([start], np.uint32).view(np.float32),
    )
    return int(sums.view(np.uint32)[0])


@pytest.mark.parametrize("kinds", [(E4M3, E4M3), (E4M3, E5M2), (E5M2, E4M3), (E5M2, E5M2)])
@pytest.mark.parametrize("place", [0, 13, 31])
def test_a_nan_element_of_either_side_makes_the_sum_nan(
    kinds: tuple[ElementType, ElementType], place: int
) -> None:
    assert one({place: np.nan}, {}, kinds) == NAN
    assert one({}, {place: np.nan}, kinds) == NAN
    assert one({place: 1.0}, {place: 1.0}, kinds) == bits_of(1.0)


@ALL_MIXES
def test_a_nan_scale_makes_the_sum_nan_even_over_zeros(
    a_type: ElementType, b_type: ElementType
) -> None:
    for scales in ([(255, 127)], [(127, 255)], [(255, 255)]):
        assert one({}, {}, (a_type, b_type), scales=scales) == NAN
        assert one({}, {}, (a_type, b_type), depth=64, scales=[(127, 127), *scales]) == NAN


@pytest.mark.parametrize(
    ("a", "b", "bits"),
    [
        ([np.inf], [1.0], INFINITY),
        ([-np.inf], [1.0], INFINITY | MINUS_ZERO),
        ([-np.inf], [-0.25], INFINITY),
        ([np.inf], [np.inf], INFINITY),
        ([np.inf], [-np.inf], INFINITY | MINUS_ZERO),
        ([np.inf], [0.0], NAN),
        ([0.0], [-np.inf], NAN),
        ([-0.0], [np.inf], NAN),
        ([np.inf, np.inf], [1.0, 1.0], INFINITY),
        ([np.inf, np.inf], [1.0, -1.0], NAN),
        ([np.inf, 1.0], [1.0, -np.inf], NAN),
        ([np.inf, -57344.0], [1.0, 57344.0], INFINITY),
        ([np.inf, np.nan], [1.0, 1.0], NAN),
    ],
)
def test_infinities_follow_ieee(a: list[float], b: list[float], bits: int) -> None:
    # A zero stands wherever nothing is given, on both sides: it meets no infinity.
    assert one(a, b) == bits
    assert one(a, b, scales=[(0, 0)]) == bits
    assert one(b, a) == bits


def test_infinities_meet_in_the_accumulator() -> None:
    assert one([np.inf], [1.0], start=INFINITY) == INFINITY
    assert one([np.inf], [1.0], start=INFINITY | MINUS_ZERO) == NAN
    assert one([1.0], [1.0], start=0xFFC12345) == NAN
    assert one({0: np.inf, 32: -np.inf}, {0: 1.0, 32: 1.0}, depth=64) == NAN


def test_scales_beyond_the_range_of_fp32() -> None:
    assert one([1.0], [1.0], scales=[(254, 254)]) == INFINITY
    assert one([-1.0], [1.0], scales=[(254, 254)]) == INFINITY | MINUS_ZERO
    assert one([1.0], [1.0], scales=[(254, 127)]) == 254 << 23
    assert one([1.5, 0.5], [1.0, 1.0], scales=[(254, 127)]) == INFINITY
    assert one([1.0], [1.0], scales=[(0, 127)]) == 1 << 22  # 2^-127, a subnormal
    assert one([1.0], [1.0], scales=[(0, 105)]) == 1  # 2^-149, the least
    assert one([1.0], [1.0], scales=[(0, 104)]) == 0  # 2^-150 is a tie
    assert one([1.25], [1.0], scales=[(0, 104)]) == 1
    assert one([1.5], [1.0], scales=[(0, 105)]) == 2  # 1.5 * 2^-149 is a tie


def test_a_negative_term_that_underflows_is_minus_0_and_an_exact_zero_is_plus_0() -> None:
    kinds = (E2M1, E2M1)
    assert one([-1.0], [1.0], kinds, scales=[(0, 0)], start=MINUS_ZERO) == MINUS_ZERO
    assert one([-1.0], [1.0], kinds, scales=[(0, 0)], start=0) == 0
    assert one([1.0], [1.0], kinds, scales=[(0, 0)], start=MINUS_ZERO) == 0
    assert one([-0.0], [1.0], kinds, start=MINUS_ZERO) == 0
    assert one([1.0, -1.0], [1.0, 1.0], kinds, start=MINUS_ZERO) == 0
    assert one([-1.0], [1.0], (E5M2, E5M2), scales=[(0, 0)], start=MINUS_ZERO) == MINUS_ZERO


def test_an_absent_second_group_is_not_added_and_one_of_zeros_is() -> None:
    kinds = (E2M1, E1M2)
    tiny = [(0, 0)]
    assert one([-1.0], [1.0], kinds, scales=tiny, start=MINUS_ZERO) == MINUS_ZERO
    assert one([-1.0], [1.0], kinds, depth=33, scales=tiny * 2, start=MINUS_ZERO) == 0


def test_the_groups_of_a_step_are_added_in_ascending_order() -> None:
    kinds = (E2M1, E2M1)
    a, b = {0: 1.0, 32: -1.0}, {0: 1.0, 32: 1.0}
    big = [(127 + 24, 127)] * 2
    # (1 + 2^24) - 2^24 is 0 in FP32; in any other order it is 1.
    assert one(a, b, kinds, depth=64, scales=big, start=bits_of(1.0)) == 0


ONE = {0: 1.0}
HALF_A_PLACE = {1: 2.0**-12}  # squared: half of the last place of 1
LEAST = {2: 2.0**-16}  # squared: the least product of E5M2


@pytest.mark.parametrize(
    ("a", "b", "bits"),
    [
        (ONE | HALF_A_PLACE, ONE | HALF_A_PLACE, 0x3F800000),  # a tie, to even
        (ONE | HALF_A_PLACE | LEAST, ONE | HALF_A_PLACE | LEAST, 0x3F800001),
        (ONE | HALF_A_PLACE | LEAST, ONE | HALF_A_PLACE | {2: -(2.0**-16)}, 0x3F800000),
        (ONE | {1: 1.5 * 2**-11}, ONE | {1: 2.0**-12}, 0x3F800002),  # 1.5 places: a tie, to even
        (ONE | {1: 1.5 * 2**-11}, ONE | {1: -(2.0**-13)}, 0x3F7FFFFE),  # 1.5 of finer places
    ],
)
def test_halfway_sums_go_to_even_and_a_little_more_goes_up(
    a: dict[int, float], b: dict[int, float], bits: int
) -> None:
    assert one(a, b) == bits
    assert one({k: -v for k, v in a.items()}, b) == bits | MINUS_ZERO


def test_sums_beyond_64_bits_keep_what_falls_off() -> None:
    # Four times 2^30 is 2^32, whose last place is 2^9; half of it, and the least product.
    big = dict.fromkeys(range(4), 2.0**15)
    half = {4: 2.0**4}
    least = {5: 2.0**-16}
    assert one(big | half, big | half) == bits_of(2.0**32)
    assert one(big | half | least, big | half | least) == bits_of(2.0**32) + 1
    assert one(big | half | least, big | half | {5: -(2.0**-16)}) == bits_of(2.0**32)
    most = dict.fromkeys(range(32), 57344.0)
    assert one(most, most) == bits_of(32 * 57344.0**2)
    assert one(most, {k: -v for k, v in most.items()}) == bits_of(-32 * 57344.0**2)


def test_a_sum_of_large_terms_that_cancel_keeps_the_least() -> None:
    a = {0: 57344.0, 1: 57344.0, 31: 2.0**-16}
    b = {0: 57344.0, 1: -57344.0, 31: -(2.0**-16)}
    assert one(a, b) == bits_of(-(2.0**-32))


def test_the_expectation_itself_adds_as_fp32() -> None:
    assert added(bits_of(1.0), bits_of(2.0**-24)) == bits_of(1.0)
    assert added(INFINITY, INFINITY | MINUS_ZERO) == NAN
