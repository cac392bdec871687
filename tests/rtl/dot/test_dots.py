# amaranth: UnusedElaboratable=no
"""Whole sums through the Verilated dot unit: groups, specials, chains, bulk."""

import itertools
import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.codegen.isa.vocabulary import ElementType
from scalebox.ir.dtypes import DType
from scalebox.ir.dtypes.hardware import E1M2
from scalebox.ir.errors import UserError
from scalebox.ir.numerics.fast_matmul import matmul_mx
from scalebox.rtl.cosim.dot import evaluate_dots, pack_steps, run_steps
from scalebox.rtl.dot.unit import DotUnit

from .exact import INFINITY, MIXES, NAN, added, bits_of, code_of, dot_bits, fp32_bits

DTYPES = {
    ElementType.E4M3: DType.E4M3,
    ElementType.E5M2: DType.E5M2,
    ElementType.E2M1: DType.E2M1,
    ElementType.E1M2: E1M2,
}
E4M3, E5M2, E2M1, E1M2_TYPE = ElementType
ALL_MIXES = pytest.mark.parametrize(("a_type", "b_type"), MIXES, ids=lambda kind: kind.name)


class Tile(NamedTuple):
    """Operands of a matmul of 16 x 16: codes, scales, and what the sums start from."""

    a: npt.NDArray[np.uint8]
    a_scales: npt.NDArray[np.uint8]
    b: npt.NDArray[np.uint8]
    b_scales: npt.NDArray[np.uint8]
    start: npt.NDArray[np.float32]


def tile(rng: np.random.Generator, kinds: tuple[ElementType, ElementType], depth: int) -> Tile:
    """Draw a tile, with a NaN or an infinity in few of its groups, and scales that nearly cancel."""
    groups = -(-depth // 32)
    sides: list[npt.NDArray[np.uint8]] = []
    for kind in kinds:
        codes = rng.integers(0, 1 << kind.bits, (16, depth), dtype=np.uint8)
        if kind.bits == 8:
            high = codes & 0x7F >= (0x7F if kind is E4M3 else 0x7C)
            codes[high & (rng.random(codes.shape) < 0.98)] &= 0x9F
        codes[rng.random(codes.shape) < rng.choice([0, 0.5, 0.9])] = 0
        sides.append(codes)
    a_scales = rng.integers(0, 255, (16, groups), dtype=np.uint8)
    near = 254 - a_scales[:1].astype(np.int64) + rng.integers(-30, 31, (16, groups))
    b_scales = np.clip(near, 0, 254).astype(np.uint8)
    # Rows whose scales let the terms meet; the others are far apart, subnormal or infinite.
    a_scales[4:] = a_scales[0]
    for scales in (a_scales, b_scales):
        scales[rng.random(scales.shape) < 0.3 / groups / 16] = 255
    start = rng.integers(0, 1 << 32, (16, 16), dtype=np.uint32).view(np.float32)
    start = np.where(rng.random(start.shape) < 0.5, np.float32(0), start)
    return Tile(sides[0], a_scales, sides[1], b_scales, start)


def run(drawn: Tile, a_type: ElementType, b_type: ElementType) -> npt.NDArray[np.uint32]:
    """Return the bits of all 256 sums of a tile."""
    rows, columns = np.repeat(np.arange(16), 16), np.tile(np.arange(16), 16)
    sums = evaluate_dots(
        drawn.a[rows],
        drawn.a_scales[rows],
        drawn.b[columns],
        drawn.b_scales[columns],
        a_type=a_type,
        b_type=b_type,
        start=drawn.start.reshape(-1),
    )
    return sums.view(np.uint32)


def by_numerics(drawn: Tile, a_type: ElementType, b_type: ElementType) -> npt.NDArray[np.uint32]:
    with np.errstate(all="ignore"):
        product = matmul_mx(
            drawn.a,
            drawn.a_scales,
            np.ascontiguousarray(drawn.b.T),
            np.ascontiguousarray(drawn.b_scales.T),
            a_dtype=DTYPES[a_type],
            b_dtype=DTYPES[b_type],
            acc=drawn.start,
        )
    return product.reshape(-1).view(np.uint32)


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


NAN_CODES = {E4M3: 0xFF, E5M2: 0x7D}
MINUS_ZERO = 1 << 31


@ALL_MIXES
def test_random_groups_against_fractions(a_type: ElementType, b_type: ElementType) -> None:
    rng = np.random.default_rng([a_type, b_type])
    for depth in (32, 33, 95):
        drawn = tile(rng, (a_type, b_type), depth)
        found = run(drawn, a_type, b_type)
        for place in range(0, 256, 5):
            row, column = divmod(place, 16)
            expected = dot_bits(
                drawn.a[row].tolist(),
                drawn.b[column].tolist(),
                (a_type, b_type),
                drawn.a_scales[row].tolist(),
                drawn.b_scales[column].tolist(),
                int(drawn.start.view(np.uint32)[row, column]),
            )
            # A NaN to start from leaves as the one NaN.
            assert int(found[place]) == (NAN if expected & 0x7FFFFFFF > INFINITY else expected)


@ALL_MIXES
@pytest.mark.parametrize("depth", [1, 31, 64, 97, 512])
def test_random_sums_against_numerics(a_type: ElementType, b_type: ElementType, depth: int) -> None:
    rng = np.random.default_rng([a_type, b_type, depth])
    drawn = tile(rng, (a_type, b_type), depth)
    np.testing.assert_array_equal(run(drawn, a_type, b_type), by_numerics(drawn, a_type, b_type))


@ALL_MIXES
def test_every_pair_of_scales(a_type: ElementType, b_type: ElementType) -> None:
    a_scales, b_scales = (each.reshape(-1, 1) for each in np.mgrid[:256, :256].astype(np.uint8))
    elements = np.zeros((len(a_scales), 32), np.uint8)
    elements[:, 0] = code_of(a_type, -1.5)
    others = np.zeros_like(elements)
    others[:, 0] = code_of(b_type, 1.5)
    found = evaluate_dots(
        elements,
        a_scales,
        others,
        b_scales,
        a_type=a_type,
        b_type=b_type,
        start=np.full(len(elements), -0.0, np.float32),
    )
    # -2.25 as a whole number of quarters.
    terms = [fp32_bits(True, 9, exponent - 254 - 2) for exponent in range(509)]
    exponents = (a_scales.astype(int) + b_scales).reshape(-1)
    is_nan = ((a_scales == 255) | (b_scales == 255)).reshape(-1)
    expected = [NAN if nan else terms[at] for nan, at in zip(is_nan, exponents, strict=True)]
    np.testing.assert_array_equal(found.view(np.uint32), expected)


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
    kinds = (E2M1, E1M2_TYPE)
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


@ALL_MIXES
def test_a_long_chain_rounds_at_every_group(a_type: ElementType, b_type: ElementType) -> None:
    rng = np.random.default_rng([7, a_type, b_type])
    depth = 32 * 301
    drawn = tile(rng, (a_type, b_type), depth)
    drawn.a_scales[:], drawn.b_scales[:] = rng.integers(117, 138, (2, 16, depth // 32))
    plain = [np.where(side & 0x7C == 0x7C, 0, side) for side in (drawn.a, drawn.b)]
    drawn = drawn._replace(a=plain[0], b=plain[1], start=np.zeros_like(drawn.start))
    found = run(drawn, a_type, b_type)
    assert not np.isnan(found.view(np.float32)).any()
    np.testing.assert_array_equal(found, by_numerics(drawn, a_type, b_type))


def test_a_step_a_cycle_and_the_stated_latency() -> None:
    steps = pack_steps(
        np.zeros((40, 512), np.uint8),
        np.zeros((40, 16), np.uint8),
        np.zeros((40, 512), np.uint8),
        np.zeros((40, 16), np.uint8),
        a_type=E2M1,
        b_type=E2M1,
    )
    words = steps.reshape(-1, steps.shape[-1])
    assert len(words) == 40 * 8
    assert run_steps(words).cycles == len(words) + DotUnit().latency_cycles
    single = steps[:, -1]  # every step a last one
    assert run_steps(single).cycles == 40 + DotUnit().latency_cycles


@pytest.mark.parametrize(("idle", "stall"), list(itertools.product([0, 0.5, 0.95], repeat=2)))
def test_pauses_on_either_side_change_no_sum(idle: float, stall: float) -> None:
    rng = np.random.default_rng(11)
    for depth in (32, 300):
        drawn = tile(rng, (E4M3, E5M2), depth)
        steps = pack_steps(
            drawn.a, drawn.a_scales, drawn.b, drawn.b_scales, a_type=E4M3, b_type=E5M2
        )
        words = np.concatenate([steps.reshape(-1, steps.shape[-1])] * 8)
        expected = run_steps(words).sums
        found = run_steps(words, idle=idle, stall=stall, seed=depth)
        np.testing.assert_array_equal(found.sums.view(np.uint32), expected.view(np.uint32))


@pytest.mark.slow
@ALL_MIXES
def test_a_million_groups_against_numerics(a_type: ElementType, b_type: ElementType) -> None:
    rng = np.random.default_rng([9, a_type, b_type])
    groups = 0
    while groups < 1_000_000:
        depth = int(rng.integers(1, 65)) * 32 - int(rng.integers(0, 32))
        drawn = tile(rng, (a_type, b_type), depth)
        np.testing.assert_array_equal(
            run(drawn, a_type, b_type), by_numerics(drawn, a_type, b_type)
        )
        groups += 256 * -(-depth // 32)


def _zeros(*shape: int) -> npt.NDArray[np.uint8]:
    return np.zeros(shape, np.uint8)


@pytest.mark.parametrize(
    ("changes", "kind", "sentence"),
    [
        (
            {"b_type": E2M1},
            ValueError,
            "a_type and b_type must both have elements of 8 bits, or both of 4, not E4M3 and E2M1",
        ),
        ({"a": np.zeros((2, 40))}, TypeError, "a must be an array of uint8, not of float64"),
        ({"a": [0]}, TypeError, "a must be an array of uint8, not an object of type list"),
        (
            {"a_type": 0},
            TypeError,
            "a_type must be an ElementType (E4M3, E5M2, E2M1, E1M2), not 0",
        ),
        (
            {"b_type": "E4M3"},
            TypeError,
            "b_type must be an ElementType (E4M3, E5M2, E2M1, E1M2), not 'E4M3'",
        ),
        ({"b": _zeros(2, 41)}, ValueError, "b must be of shape [2, 40], not [2, 41]"),
        ({"a_scales": _zeros(2, 1)}, ValueError, "a_scales must be of shape [2, 2], not [2, 1]"),
        ({"a": _zeros(40)}, ValueError, "a must be of shape [any, any], not [40]"),
        ({"start": np.zeros(2)}, TypeError, "start must be an array of float32, not of float64"),
        (
            {"a_type": E2M1, "b_type": E2M1, "b": _zeros(2, 40) + np.uint8(16)},
            ValueError,
            "b must be codes of 4 bits, not 16",
        ),
        (
            {
                "a": _zeros(2, 0),
                "b": _zeros(2, 0),
                "a_scales": _zeros(2, 0),
                "b_scales": _zeros(2, 0),
            },
            ValueError,
            "a must have at least one element a row, not 0",
        ),
    ],
)
def test_what_is_no_sum_is_refused(
    changes: dict[str, object], kind: type[Exception], sentence: str
) -> None:
    given: dict[str, object] = {
        "a": _zeros(2, 40),
        "a_scales": _zeros(2, 2),
        "b": _zeros(2, 40),
        "b_scales": _zeros(2, 2),
        "a_type": E4M3,
        "b_type": E4M3,
    }
    with pytest.raises(kind) as caught:
        evaluate_dots(**{**given, **changes})  # pyright: ignore[reportArgumentType]
    assert str(caught.value) == sentence
    assert isinstance(caught.value, UserError)


ONE_STEP = pack_steps(
    *(_zeros(1, 32), _zeros(1, 1), _zeros(1, 32), _zeros(1, 1)), a_type=E4M3, b_type=E4M3
)[0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"stall": 1.0}, "stall must be at least 0 and less than 1, not 1.0"),
        ({"idle": -0.5}, "idle must be at least 0 and less than 1, not -0.5"),
        ({"seed": 0}, f"seed must be an integer from 1 to {(1 << 63) - 1}, not 0"),
        ({"seed": 1 << 63}, f"seed must be an integer from 1 to {(1 << 63) - 1}, not {1 << 63}"),
    ],
)
def test_pauses_that_would_never_end_are_refused(changes: dict[str, float], sentence: str) -> None:
    words = np.zeros((1, ONE_STEP.shape[-1]), np.uint32)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$") as caught:
        run_steps(words, **changes)  # pyright: ignore[reportArgumentType]
    assert isinstance(caught.value, UserError)


def test_no_sum_is_asked_for_where_no_step_is_a_last_one() -> None:
    assert run_steps(np.zeros_like(ONE_STEP)).sums.size == 0
    assert run_steps(ONE_STEP[:0]).sums.size == 0
    behind = np.concatenate([ONE_STEP, np.zeros_like(ONE_STEP)])
    np.testing.assert_array_equal(run_steps(behind).sums, [0.0])
    nothing = evaluate_dots(
        *(_zeros(0, 40), _zeros(0, 2), _zeros(0, 40), _zeros(0, 2)), a_type=E4M3, b_type=E5M2
    )
    assert nothing.shape == (0,)
    assert nothing.dtype == np.float32


def test_the_expectation_itself_adds_as_fp32() -> None:
    assert added(bits_of(1.0), bits_of(2.0**-24)) == bits_of(1.0)
    assert added(INFINITY, INFINITY | MINUS_ZERO) == NAN
