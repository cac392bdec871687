"""The matmul without scales, against exact fractions and integers."""

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir.dtypes import BFloat16, DType, Float16, SimpleDType
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.numerics import decode
from scalebox.ir.numerics.plain_matmul import K_STEP, PAIRS, exact_sums, matmul_plain

Array = npt.NDArray[Any]
FP32, FP8, BF8 = DType.Float32, DType.E4M3, DType.E5M2
KINDS: dict[SimpleDType, Any] = {
    FP32: np.float32,
    Float16: np.float16,
    BFloat16: ml_dtypes.bfloat16,
    FP8: ml_dtypes.float8_e4m3fn,
    BF8: ml_dtypes.float8_e5m2,
}
STEPS = {FP32: 8, Float16: 16, BFloat16: 16, FP8: 32, BF8: 32}
FLOAT_PAIRS = [(FP32, FP32), (Float16, Float16), (BFloat16, BFloat16), (FP8, BF8), (BF8, FP8)]


def codes(values: Array, dtype: SimpleDType) -> Array:
    array = values.astype(KINDS[dtype])
    return array.view(f"u{array.dtype.itemsize}")


def doubles(found: Array, dtype: SimpleDType) -> list[list[float]]:
    with np.errstate(all="ignore"):
        return found.view(KINDS[dtype]).astype(np.float64).tolist()


def to_float32(value: Fraction) -> np.float32:
    """Round once to float32, nearest even, by Python's rounding of a fraction."""
    if value == 0:
        return np.float32(0)
    size = abs(value)
    exponent = max(size.numerator.bit_length() - size.denominator.bit_length() - 24, -149)
    while size >= Fraction(2) ** (exponent + 24):
        exponent += 1
    made = round(size / Fraction(2) ** exponent) * Fraction(2) ** exponent
    result = np.float32(np.inf) if made >= 2**128 else np.float32(float(made))
    return -result if value < 0 else result


def step_of(pairs: list[tuple[float, float]]) -> np.float32:
    with np.errstate(all="ignore"):
        products = [np.float64(a) * np.float64(b) for a, b in pairs]
        if not all(map(math.isfinite, products)):
            return np.float32(sum(products, np.float64(0)))
    return to_float32(sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0)))


def by_fractions(
    a: list[list[float]], b: list[list[float]], step: int, start: Array | None = None
) -> Array:
    out = np.zeros((len(a), len(b[0])), np.float32) if start is None else start.copy()
    with np.errstate(all="ignore"):
        for m, row in enumerate(a):
            for n in range(len(b[0])):
                for first in range(0, len(row), step):
                    ks = range(first, min(first + step, len(row)))
                    out[m, n] += step_of([(row[k], b[k][n]) for k in ks])
    bits = out.view(np.uint32).copy()
    bits[np.isnan(out)] = 0x7FC00000
    return bits


def random_codes(seed: int, shape: tuple[int, int], dtype: SimpleDType) -> Array:
    """Return codes of all exponents, without NaN and infinity."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << dtype.bits, shape, np.uint64).astype(f"u{dtype.bits // 8}")
    with np.errstate(all="ignore"):
        wild = ~np.isfinite(bits.view(KINDS[dtype]).astype(np.float64))
    bits[wild] = 0
    return bits


@pytest.mark.parametrize(("lhs", "rhs"), FLOAT_PAIRS)
@pytest.mark.parametrize("order", ["group", "sequential"])
@pytest.mark.parametrize("wide", [False, True], ids=["near", "wide"])
def test_each_step_is_exact_and_rounds_once(
    lhs: SimpleDType, rhs: SimpleDType, order: str, wide: bool
) -> None:
    shape_a, shape_b = (5, 70), (70, 6)
    rng = np.random.default_rng(11)
    if wide:
        a, b = random_codes(1, shape_a, lhs), random_codes(2, shape_b, rhs)
    else:
        a = codes(rng.standard_normal(shape_a), lhs)
        b = codes(rng.standard_normal(shape_b), rhs)
    start = rng.standard_normal((5, 6)).astype(np.float32)
    step = STEPS[lhs] if order == "group" else 1
    found = matmul_plain(a, b, a_dtype=lhs, b_dtype=rhs, sum=order)
    numbers = doubles(a, lhs), doubles(b, rhs)
    assert (found == by_fractions(*numbers, step)).all()
    more = matmul_plain(a, b, a_dtype=lhs, b_dtype=rhs, start=start.view(np.uint32), sum=order)
    assert (more == by_fractions(*numbers, step, start)).all()


@pytest.mark.parametrize("lhs", [FP32, Float16, BFloat16])
def test_a_sum_between_two_float32_is_no_tie(lhs: SimpleDType) -> None:
    one = 1.0
    tiny = 2.0**-12 if lhs is Float16 else 2.0**-40
    # 1 + 2^-24 is a tie and goes to 1; with a little more it goes up, with a little less down.
    half = (2.0**-12, 2.0**-12)
    for sign, wanted in ((0.0, 1.0), (1.0, 1.0 + 2.0**-23), (-1.0, 1.0)):
        a = codes(np.array([[one, half[0], sign * tiny]]), lhs)
        b = codes(np.array([[one], [half[1]], [tiny]]), lhs)
        found = matmul_plain(a, b, a_dtype=lhs, b_dtype=lhs)
        assert found.view(np.float32)[0, 0] == np.float32(wanted), sign


def test_what_cancels_is_an_exact_zero_and_what_underflows_keeps_its_sign() -> None:
    below_zero = np.array([[0x80000000]], np.uint32)
    for a, b, wanted in (
        ([1.0, -1.0], [3.0, 3.0], 0x00000000),
        ([-0.0, -0.0], [1.0, 1.0], 0x00000000),
        ([-(2.0**-100), 0.0], [2.0**-100, 0.0], 0x80000000),
        ([2.0**127, 2.0**127], [2.0, -1.0], 0x7F000000),
    ):
        x, y = codes(np.array([a]), FP32), codes(np.array(b)[:, None], FP32)
        found = matmul_plain(x, y, a_dtype=FP32, b_dtype=FP32, start=below_zero)
        assert found[0, 0] == wanted


@pytest.mark.parametrize("dtype", [FP32, Float16, BFloat16, BF8])
def test_nan_and_infinity_decide_as_ieee_says(dtype: SimpleDType) -> None:
    nan, inf = math.nan, math.inf
    for a, b, wanted in (
        ([nan, 1.0], [1.0, 1.0], 0x7FC00000),
        ([inf, 1.0], [1.0, 1.0], 0x7F800000),
        ([inf, inf], [1.0, -1.0], 0x7FC00000),
        ([inf, 1.0], [0.0, 1.0], 0x7FC00000),
        ([-inf, 1.0], [2.0, 1.0], 0xFF800000),
    ):
        x, y = codes(np.array([a]), dtype), codes(np.array(b)[:, None], dtype)
        assert matmul_plain(x, y, a_dtype=dtype, b_dtype=dtype)[0, 0] == wanted


@pytest.mark.parametrize("order", ["group", "sequential"])
def test_integers_wrap_in_32_bits(order: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((4, 50), (50, 5)))
    start = rng.integers(-(2**31), 2**31, (4, 5)).astype(np.int32)
    start[0, 0] = 2**31 - 1
    a[0], b[:, 0] = 127, 127
    found = matmul_plain(
        a.view(np.uint8),
        b.view(np.uint8),
        a_dtype=DType.Int8,
        b_dtype=DType.Int8,
        start=start.view(np.uint32),
        sum=order,
    )
    exact = a.astype(object) @ b.astype(object) + start.astype(object)
    wanted = (exact + 2**31) % 2**32 - 2**31
    assert (found.view(np.int32) == wanted).all()


def in_one_piece(a: Array, b: Array, dtype: SimpleDType, step: int, start: Array) -> Array:
    """Return the product by the exact sums of whole matrices, one after the other along K."""
    x, y = (decode(each, dtype).astype(np.float64) for each in (a, b))
    acc = start.copy()
    with np.errstate(all="ignore"):
        for first in range(0, a.shape[1], step):
            cut = slice(first, first + step)
            acc += exact_sums(x[:, cut].T[:, :, None], y[cut][:, None, :])
    bits = acc.view(np.uint32)
    bits[np.isnan(acc)] = 0x7FC00000
    return bits


@pytest.mark.parametrize("order", ["group", "sequential"])
@pytest.mark.parametrize("dtype", [FP32, Float16, BF8])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (127, 33, 129), (128, 32, 128), (129, 17, 257), (300, 8, 1)]
)
def test_a_product_in_blocks_has_the_bits_of_one_in_a_piece(
    m: int, k: int, n: int, dtype: SimpleDType, order: str
) -> None:
    rng = np.random.default_rng(m)
    # Ties, sums that cancel, exponents far apart and what is not finite, all near the blocks' borders.
    left, right = rng.integers(-3, 4, (m, k)) * 0.75, rng.integers(-3, 4, (k, n)) * 0.75
    left[:, :1] += 2.0**-9
    a, b = codes(left, dtype), codes(right, dtype)
    a[-2:], b[:, -2:] = (
        random_codes(m, a[-2:].shape, dtype),
        random_codes(n, b[:, -2:].shape, dtype),
    )
    a[m // 2, k // 2] = codes(np.array([math.inf]), dtype)[0]
    b[0, n // 2] = codes(np.array([math.nan]), dtype)[0]
    start = rng.standard_normal((m, n)).astype(np.float32)
    step = STEPS[dtype] if order == "group" else 1
    begin = start.view(np.uint32)
    found = matmul_plain(a, b, a_dtype=dtype, b_dtype=dtype, start=begin, sum=order)
    assert np.array_equal(found, in_one_piece(a, b, dtype, step, start))


@pytest.mark.parametrize(
    ("m", "k", "n"), [(63, 31, 127), (64, 32, 128), (65, 33, 129), (1, 200, 1)]
)
def test_integers_in_blocks_have_the_bits_of_one_product(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(k)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n)))
    a[-1], b[:, -1] = -128, -128
    found = matmul_plain(a.view(np.uint8), b.view(np.uint8), a_dtype=DType.Int8, b_dtype=DType.Int8)
    assert np.array_equal(found.view(np.int32), a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("dtype", [FP32, Float16, FP8, DType.Int8])
@pytest.mark.parametrize("order", ["group", "sequential"])
def test_a_product_takes_little_memory_beside_its_operands(dtype: SimpleDType, order: str) -> None:
    a, b = (np.ones(shape, f"u{dtype.bits // 8}") for shape in ((768, 32), (32, 768)))
    tracemalloc.start()
    try:
        made = matmul_plain(a, b, a_dtype=dtype, b_dtype=dtype, sum=order)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most <= 4 * made.nbytes


def test_a_step_is_32_bytes() -> None:
    assert {dtype.name: step for dtype, step in K_STEP.items()} == {
        "Float16": 16, "BFloat16": 16, "Float32": 8, "E4M3": 32, "E5M2": 32, "Int8": 32,
    }  # fmt: skip
    assert {dtype for each in PAIRS for dtype in each} == set(K_STEP)


def test_other_operands_are_refused() -> None:
    half, single = np.zeros((2, 2), np.uint16), np.zeros((2, 2), np.uint32)
    with pytest.raises(IRTypeError, match=r"^lhs and rhs must be both from one of \{Float16\}, "):
        matmul_plain(half, single, a_dtype=Float16, b_dtype=FP32)
    with pytest.raises(IRValueError, match=r"^K must be the same on both sides, but a has 2 and b"):
        matmul_plain(half, half[:1], a_dtype=Float16, b_dtype=Float16)
    with pytest.raises(IRValueError, match=r"^sum must be 'group' or 'sequential'"):
        matmul_plain(half, half, a_dtype=Float16, b_dtype=Float16, sum="pairs")
