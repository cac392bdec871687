from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, BFloat16, DType, Float16, SimpleDType, UInt8
from scalebox.ir.errors import IRTypeError, IRValueError

from . import oracles

NAN_FREE = (DType.E3M2, DType.E2M3, DType.E2M1, E1M2, DType.Int8)
by_name = pytest.mark.parametrize("dtype", oracles.SIGNED_FLOATS, ids=lambda dtype: dtype.name)


def random_patterns(count: int, seed: int) -> np.ndarray:
    patterns = np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint64)
    return patterns.astype(np.uint32).view(np.float32)


def around_every_edge(dtype: SimpleDType) -> np.ndarray:
    """Every value and every tie of a format with both signs, and their float32 neighbours."""
    known = oracles.magnitudes(dtype)
    last = known.values[-1]
    beyond = [last + (last - known.values[-2]) / 2, min(2 * last, Fraction(2) ** 127)]
    points = np.array([float(p) for p in (*known.values, *known.midpoints, *beyond)], np.float32)
    near = [points, np.nextafter(points, np.float32(np.inf)), np.nextafter(points, np.float32(0))]
    half = np.concatenate([*near, np.array([np.inf, 0, 1e-45, 3.4e38], np.float32)])
    return np.concatenate([half, -half])


def check(x: np.ndarray, dtype: SimpleDType) -> None:
    expected = oracles.encode_by_order(x, dtype)
    nan = oracles.magnitudes(dtype).nan
    if nan is None:
        x, expected = x[expected >= 0], expected[expected >= 0]
    else:
        expected = np.where(expected < 0, nan, expected)
    np.testing.assert_array_equal(numerics.encode(x, dtype), expected)


@by_name
def test_ties_go_to_the_even_code_and_neighbours_to_the_nearer(dtype: SimpleDType) -> None:
    check(around_every_edge(dtype), dtype)


@by_name
def test_random_patterns_agree_with_the_order_of_integers(dtype: SimpleDType) -> None:
    check(random_patterns(100_000, seed=1), dtype)
    scaled = np.random.default_rng(2).standard_normal(100_000).astype(np.float32)
    check(scaled * np.float32(min(oracles.magnitudes(dtype).values[-1] / 3, 1 << 100)), dtype)


@pytest.mark.slow
@by_name
def test_ten_million_patterns_agree_with_the_order_of_integers(dtype: SimpleDType) -> None:
    for seed in range(10):
        check(random_patterns(1_000_000, seed=100 + seed), dtype)


@pytest.mark.parametrize(
    "dtype", [*oracles.SIGNED_FLOATS, DType.E8M0, DType.Int8], ids=lambda dtype: dtype.name
)
@pytest.mark.parametrize("saturate", [True, False])
def test_encoding_what_was_decoded_gives_the_code_again(dtype: SimpleDType, saturate: bool) -> None:
    codes = np.arange(1 << dtype.bits, dtype=np.uint8 if dtype.bits <= 8 else np.uint16)
    values = numerics.decode(codes, dtype)
    is_number = ~np.isnan(values)
    again = numerics.encode(values[is_number], dtype, saturate=saturate)
    assert again.dtype == codes.dtype
    np.testing.assert_array_equal(again, codes[is_number])


@pytest.mark.parametrize("dtype", [DType.E4M3, DType.E5M2, Float16, BFloat16], ids=lambda d: d.name)
def test_without_saturation_overflow_is_what_ml_dtypes_makes_of_it(dtype: SimpleDType) -> None:
    x = np.concatenate([around_every_edge(dtype), random_patterns(50_000, seed=3)])
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(oracles.NUMPY_TYPES[dtype])
    is_nan = np.isnan(expected.astype(np.float32))
    codes = numerics.encode(x, dtype, saturate=False)
    np.testing.assert_array_equal(codes[~is_nan], expected.view(codes.dtype)[~is_nan])
    assert (codes[is_nan] == oracles.magnitudes(dtype).nan).all()


def test_case_a3_rounds_and_saturates() -> None:
    x = np.array([1.1875, 1e6, -1e6, np.nan, -0.0])
    np.testing.assert_array_equal(numerics.encode(x, DType.E4M3), [0x3A, 0x7E, 0xFE, 0x7F, 0x80])


def test_infinity_stays_where_there_is_one_and_else_is_the_maximum() -> None:
    x = np.array([np.inf, -np.inf])
    np.testing.assert_array_equal(numerics.encode(x, DType.E5M2), [0x7C, 0xFC])
    np.testing.assert_array_equal(numerics.encode(x, DType.E4M3), [0x7E, 0xFE])
    np.testing.assert_array_equal(numerics.encode(x, DType.E2M1), [0x7, 0xF])
    np.testing.assert_array_equal(numerics.encode(x, DType.Int8), [127, 128])
    np.testing.assert_array_equal(numerics.encode(x, DType.E4M3, saturate=False), [0x7F, 0x7F])
    np.testing.assert_array_equal(numerics.encode(x, DType.E5M2, saturate=False), [0x7C, 0xFC])


@pytest.mark.parametrize("dtype", NAN_FREE, ids=lambda dtype: dtype.name)
def test_a_nan_for_a_format_without_nan_is_refused(dtype: SimpleDType) -> None:
    sentence = rf"^x must be free of NaN for {dtype.name}, which has no code for it$"
    with pytest.raises(IRValueError, match=sentence):
        numerics.encode([1.0, np.nan], dtype)


@pytest.mark.parametrize("dtype", NAN_FREE, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("value", [1e9, -1e9, np.inf])
def test_what_neither_fits_nor_may_saturate_is_refused(dtype: SimpleDType, value: float) -> None:
    sentence = rf"^x must lie within the range of {dtype.name} \(up to [\d.]+\), which has neither"
    with pytest.raises(IRValueError, match=sentence) as caught:
        numerics.encode([value], dtype, saturate=False)
    assert caught.value.hint == "saturate=True takes the nearest number in range."


def test_e2m1_without_saturation_takes_what_rounds_into_its_range() -> None:
    just_below = np.nextafter(np.float32(7), np.float32(0))
    np.testing.assert_array_equal(numerics.encode([just_below], DType.E2M1, saturate=False), [7])
    with pytest.raises(IRValueError):
        numerics.encode([7.0], DType.E2M1, saturate=False)


def test_int8_rounds_ties_to_even_and_saturates() -> None:
    x = [0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -128.5, 1e30, -1e30, 1e-40]
    expected = np.array([0, 2, 2, 0, -2, 126, 127, -128, 127, -128, 0]).astype(np.int8)
    np.testing.assert_array_equal(numerics.encode(x, DType.Int8), expected.view(np.uint8))
    np.testing.assert_array_equal(numerics.encode([-3.0, 300.0], UInt8), [0, 255])


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(oracles.BYTE_FLOATS))
def test_a_float64_is_rounded_once(value: float, dtype: SimpleDType) -> None:
    half = 1 << (dtype.bits - 1)
    code = int(numerics.encode(value, dtype))
    assert code % half == oracles.nearest(abs(Fraction(value)), dtype)
    assert (code >= half) == np.signbit(value)


def test_a_float64_next_to_a_tie_does_not_become_one() -> None:
    tie = 1.0625  # between the E4M3 codes 0x38 and 0x39
    above, below = np.nextafter(tie, 2), np.nextafter(tie, 1)
    assert np.float32(above) == np.float32(below) == np.float32(tie)
    np.testing.assert_array_equal(
        numerics.encode([below, tie, above], DType.E4M3), [0x38, 0x38, 0x39]
    )


@given(st.floats(allow_nan=False))
def test_a_float64_becomes_the_nearest_float32(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = np.float64(value).astype(np.float32).view(np.uint32)
    assert numerics.encode(value, DType.Float32, saturate=False) == expected


def test_sources_of_every_kind() -> None:
    for kind in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16, np.int8, np.int64):
        x = np.array([0, 1, 2, 3, 96]).astype(kind)
        np.testing.assert_array_equal(numerics.encode(x, DType.E4M3), [0, 0x38, 0x40, 0x44, 0x6C])
    assert numerics.encode(np.float16(6e-8), Float16) == 1
    assert numerics.encode(2.0, DType.E2M1).shape == ()
    assert numerics.encode(np.zeros((0, 3)), DType.E2M1).shape == (0, 3)


def test_what_is_no_real_number_is_refused() -> None:
    for wrong in (np.array(["1"]), np.array([1j]), np.array([True]), np.zeros(2, "f4,f4")):
        with pytest.raises(IRTypeError, match=r"^x must be an array of real numbers up to float64"):
            numerics.encode(wrong, DType.E4M3)
    with pytest.raises(IRValueError, match=r"^Integers in x must be at most 2\^53"):
        numerics.encode([2**53 + 1], DType.Float32)


class TestPowersOfTwo:
    """E8M0."""

    VALUES = (1.5, 3.0, 6.0, 1.0000001, 1.5 * 2.0**127, 3.4e38)

    @pytest.mark.parametrize(
        ("rounding", "expected"),
        [
            ("nearest", [0x80, 0x81, 0x82, 0x7F, 0xFE, 0xFE]),
            ("up", [0x80, 0x81, 0x82, 0x80, 0xFE, 0xFE]),
            ("down", [0x7F, 0x80, 0x81, 0x7F, 0xFE, 0xFE]),
        ],
    )
    def test_case_a9_in_each_mode(self, rounding: str, expected: list[int]) -> None:
        codes = numerics.encode(self.VALUES, DType.E8M0, rounding=rounding)
        np.testing.assert_array_equal(codes, expected)
        beyond = expected if rounding == "down" else [*expected[:4], 0xFF, 0xFF]
        codes = numerics.encode(self.VALUES, DType.E8M0, rounding=rounding, saturate=False)
        np.testing.assert_array_equal(codes, beyond)

    @pytest.mark.slow
    def test_ten_million_patterns_agree_with_the_bits(self) -> None:
        for seed in range(10):
            patterns = random_patterns(1_000_000, seed=300 + seed).view(np.uint32) & 0x7FFFFFFF
            patterns = np.maximum(patterns, 1)
            # A subnormal is a whole number of 2^-149; its bit length says its binade.
            length = np.frexp(patterns.astype(np.float64))[1]
            field = np.where(patterns >> 23, patterns >> 23, length.astype(np.int64) - 23)
            top = np.where(patterns >> 23, 1 << 23, 1 << np.maximum(length - 1, 0))
            rest = np.where(patterns >> 23, patterns & 0x7FFFFF, patterns.astype(np.int64) - top)
            up = {"down": rest < 0, "nearest": 2 * rest >= top, "up": rest > 0}
            for rounding, is_up in up.items():
                expected = np.clip(field + is_up, 0, 254)
                expected = np.where(patterns > 0x7F800000, 255, expected)
                codes = numerics.encode(patterns.view(np.float32), DType.E8M0, rounding=rounding)
                np.testing.assert_array_equal(codes, expected)

    def test_exact_powers_and_nan_need_no_name(self) -> None:
        x = np.ldexp(1.0, np.arange(-127, 128))
        np.testing.assert_array_equal(numerics.encode(x, DType.E8M0), np.arange(255))
        assert numerics.encode(-np.nan, DType.E8M0) == 255

    @pytest.mark.parametrize("value", [1.5, np.inf, 2.0**128, 2.0**-128])
    def test_anything_else_does(self, value: float) -> None:
        sentence = (
            r"^E8M0 holds powers of two from 2\^-127 to 2\^127; x must be such, or a rounding"
        )
        with pytest.raises(IRValueError, match=sentence):
            numerics.encode([1.0, value], DType.E8M0)

    @pytest.mark.parametrize("value", [0.0, -0.0, -1.0, -np.inf])
    @pytest.mark.parametrize("rounding", [None, "nearest", "up", "down"])
    def test_zero_and_negatives_are_always_refused(
        self, value: float, rounding: str | None
    ) -> None:
        sentence = r"^E8M0 has no zero and no sign: x must be positive throughout$"
        with pytest.raises(IRValueError, match=sentence):
            numerics.encode([1.0, value], DType.E8M0, rounding=rounding)

    @pytest.mark.parametrize("rounding", ["nearest", "up", "down"])
    def test_below_the_smallest_is_the_smallest(self, rounding: str) -> None:
        x = np.array([2.0**-128, 1e-45, 5e-324])
        np.testing.assert_array_equal(numerics.encode(x, DType.E8M0, rounding=rounding), [0, 0, 0])

    def test_infinity_with_a_name(self) -> None:
        assert numerics.encode(np.inf, DType.E8M0, rounding="up") == 254
        assert numerics.encode(np.inf, DType.E8M0, rounding="up", saturate=False) == 255

    def test_an_unknown_name_says_which_there_are(self) -> None:
        sentence = r"^rounding for E8M0 must be 'nearest', 'up', 'down' or None, not 'even'$"
        with pytest.raises(IRValueError, match=sentence):
            numerics.encode(1.0, DType.E8M0, rounding="even")
        with pytest.raises(IRValueError, match=r"^rounding for E4M3 must be 'even' or None, not"):
            numerics.encode(1.0, DType.E4M3, rounding="up")
