"""The vector functions, against Python's own mathematics, numpy on whole arrays and exact fractions."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from scalebox.ir.dtypes import BFloat16, DType, Float16, SimpleDType, UInt32
from scalebox.ir.errors import IRValueError
from scalebox.ir.numerics.functions import (
    FLOATS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    Binary,
    Comparison,
    Unary,
    binary,
    compare,
    from_float64,
    scalar_code,
    unary,
)

from .vector_oracle import FIELDS, FP32, codes, doubles, pairs, rounded, same, values


def guarded(function: Callable[[float], float], at_infinity: float) -> Callable[[float], float]:
    """Return a function of Python that gives what IEEE says where Python raises."""

    def of(x: float) -> float:
        if math.isnan(x):
            return math.nan
        try:
            return function(x)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return at_infinity if math.isinf(x) or x == 0 else math.nan

    return of


def _recip(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1.0 / x


def _rsqrt(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1.0 / math.sqrt(x)


OF_ONE: dict[Unary, Callable[[float], float]] = {
    Unary.EXP: guarded(math.exp, math.nan),
    Unary.LOG: guarded(lambda x: -math.inf if x == 0 else math.log(x), math.nan),
    Unary.SQRT: guarded(math.sqrt, math.nan),
    Unary.RSQRT: guarded(_rsqrt, math.nan),
    Unary.RECIP: guarded(_recip, math.nan),
    Unary.SIN: guarded(math.sin, math.nan),
    Unary.COS: guarded(math.cos, math.nan),
    Unary.NEG: lambda x: -x,
    Unary.ABS: abs,
    Unary.RELU: lambda x: x if x > 0 or math.isnan(x) else 0.0,
}


@pytest.mark.parametrize("function", Unary)
@pytest.mark.parametrize("dtype", [Float16, BFloat16])
def test_every_code_of_16_bits_gives_what_python_computes(
    function: Unary, dtype: SimpleDType
) -> None:
    given = np.arange(1 << 16, dtype=np.uint16)
    numbers = doubles(given, dtype)
    wanted = [rounded(OF_ONE[function](x), dtype) for x in numbers]
    same(unary(function, given, dtype), wanted, dtype)


@pytest.mark.parametrize("function", Unary)
def test_codes_of_32_bits_give_what_python_computes(function: Unary) -> None:
    rng = np.random.default_rng(1)
    given = rng.integers(0, 1 << 32, 4000, np.uint32)
    given[:8] = [0, 0x80000000, 1, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF, 0x3F800000]
    given[2000:] = codes(rng.uniform(-100, 100, 2000), FP32)
    numbers = doubles(given, FP32)
    same(unary(function, given, FP32), [rounded(OF_ONE[function](x), FP32) for x in numbers], FP32)


@pytest.mark.parametrize("dtype", SIGNED)
def test_integers_are_negated_and_made_positive_and_wrap(dtype: SimpleDType) -> None:
    bits = dtype.bits
    low = -(1 << (bits - 1))
    numbers = list(range(-128, 128)) if bits == 8 else [low, low + 1, -1, 0, 1, -low - 1, 77]
    given = codes(numbers, dtype)

    def wrap(x: int) -> int:
        return (x - low) % (1 << bits) + low

    for function, of in ((Unary.NEG, int.__neg__), (Unary.ABS, abs)):
        found = values(unary(function, given, dtype), dtype).tolist()
        assert found == [wrap(of(x)) for x in numbers], function
    relu = values(unary(Unary.RELU, given, dtype), dtype).tolist()
    assert relu == [max(x, 0) for x in numbers]


def test_functions_are_of_floats_but_for_those_of_signs() -> None:
    assert {f for f in Unary if f.dtypes == FLOATS} == {
        Unary.EXP, Unary.LOG, Unary.SQRT, Unary.RSQRT, Unary.RECIP, Unary.SIN, Unary.COS,
    }  # fmt: skip
    assert Binary.ADD.dtypes == NUMBERS
    assert Binary.DIV.dtypes == FLOATS


def exact(function: Binary, a: float, b: float, dtype: SimpleDType) -> float:
    """Return a function of two floats, from fractions where both are finite."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if not (math.isfinite(a) and math.isfinite(b)):
        with np.errstate(all="ignore"):
            operator = {Binary.ADD: np.add, Binary.SUB: np.subtract, Binary.MUL: np.multiply}
            return float(operator[function](np.float64(a), np.float64(b)))
    x, y = Fraction(a), Fraction(b)
    result = {Binary.ADD: x + y, Binary.SUB: x - y, Binary.MUL: x * y}[function]
    if result == 0:
        negative = {
            Binary.ADD: math.copysign(1, a) < 0 and math.copysign(1, b) < 0 and a == 0 == b,
            Binary.SUB: math.copysign(1, a) < 0 and math.copysign(1, b) > 0 and a == 0 == b,
            Binary.MUL: math.copysign(1, a) * math.copysign(1, b) < 0,
        }[function]
        return -0.0 if negative else 0.0
    first = _round_fraction(result, FP32)
    return first if dtype is FP32 else rounded(first, dtype)


def _round_fraction(value: Fraction, dtype: SimpleDType) -> float:
    bits, emin, emax = FIELDS[dtype]
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length() - bits
    exponent = max(exponent, emin - bits + 1)
    while size >= Fraction(2) ** (exponent + bits):
        exponent += 1
    made = round(size / Fraction(2) ** exponent) * Fraction(2) ** exponent
    result = math.inf if made >= Fraction(2) ** (emax + 1) else float(made)
    return -result if value < 0 else result


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [Binary.ADD, Binary.SUB, Binary.MUL])
def test_sums_and_products_round_in_float32_and_then_to_the_dtype(
    function: Binary, dtype: SimpleDType
) -> None:
    a, b = pairs(dtype)
    numbers = zip(doubles(a, dtype), doubles(b, dtype), strict=True)
    wanted = [exact(function, float(x), float(y), dtype) for x, y in numbers]
    same(binary(function, a, b, dtype), wanted, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_quotients_round_once(dtype: SimpleDType) -> None:
    a, b = pairs(dtype)
    wanted: list[float] = []
    for x, y in zip(doubles(a, dtype), doubles(b, dtype), strict=True):
        p, q = float(x), float(y)
        if math.isfinite(p) and math.isfinite(q) and p and q:
            wanted.append(_round_fraction(Fraction(p) / Fraction(q), dtype))
        else:
            with np.errstate(all="ignore"):
                wanted.append(float(np.float64(p) / np.float64(q)))
    same(binary(Binary.DIV, a, b, dtype), wanted, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_remainder_has_the_sign_of_its_divisor(dtype: SimpleDType) -> None:
    a = codes([5.5, -5.5, 5.5, -5.5, 0.0, -0.0, 1.0, math.inf, 2.0, math.nan, -4.0], dtype)
    b = codes([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 0.0, 2.0, math.inf, 1.0, 2.0], dtype)
    nan = math.nan
    wanted = [1.5, 0.5, -0.5, -1.5, 0.0, 0.0, nan, nan, 2.0, nan, 0.0]
    same(binary(Binary.REM, a, b, dtype), wanted, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_exponential_of_a_difference_rounds_once(dtype: SimpleDType) -> None:
    rng = np.random.default_rng(3)
    a, b = (codes(rng.uniform(-5, 5, 500), dtype) for _ in range(2))
    numbers = zip(doubles(a, dtype), doubles(b, dtype), strict=True)
    wanted = [rounded(math.exp(float(x) - float(y)), dtype) for x, y in numbers]
    same(binary(Binary.EXPDIF, a, b, dtype), wanted, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_maximum_and_minimum_order_zeros_and_hand_nan_on(dtype: SimpleDType) -> None:
    nan, inf = math.nan, math.inf
    a = codes([0.0, -0.0, 1.0, nan, 1.0, -inf, inf, -2.0, -0.0], dtype)
    b = codes([-0.0, 0.0, nan, nan, 2.0, -1.0, 3.0, -3.0, -0.0], dtype)
    same(
        binary(Binary.MAXIMUM, a, b, dtype), [0.0, 0.0, nan, nan, 2.0, -1.0, inf, -2.0, -0.0], dtype
    )
    same(
        binary(Binary.MINIMUM, a, b, dtype),
        [-0.0, -0.0, nan, nan, 1.0, -inf, 3.0, -3.0, -0.0],
        dtype,
    )


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_integers_wrap(dtype: SimpleDType) -> None:
    a, b = pairs(dtype)
    low = -(1 << (dtype.bits - 1)) if dtype in SIGNED else 0
    numbers = list(zip(values(a, dtype).tolist(), values(b, dtype).tolist(), strict=True))
    for function, of in {
        Binary.ADD: int.__add__,
        Binary.SUB: int.__sub__,
        Binary.MUL: int.__mul__,
        Binary.MAXIMUM: max,
        Binary.MINIMUM: min,
    }.items():
        found = values(binary(function, a, b, dtype), dtype).tolist()
        assert found == [(of(x, y) - low) % (1 << dtype.bits) + low for x, y in numbers], function
    nonzero = b != 0
    found = values(binary(Binary.REM, a[nonzero], b[nonzero], dtype), dtype).tolist()
    assert found == [(x % y - low) % (1 << dtype.bits) + low for x, y in numbers if y]


def test_a_remainder_by_the_integer_0_is_refused() -> None:
    a = codes([1, 2], DType.Int32)
    with pytest.raises(
        IRValueError, match=r"^The divisor of a remainder of integers must not be 0$"
    ):
        binary(Binary.REM, a, codes([1, 0], DType.Int32), DType.Int32)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_comparisons_are_those_of_python(dtype: SimpleDType) -> None:
    a, b = pairs(dtype, 1000)
    a[:5] = b[:5]
    x, y = (doubles(each, dtype) for each in (a, b))
    operators = {
        Comparison.eq: float.__eq__, Comparison.ne: float.__ne__, Comparison.lt: float.__lt__,
        Comparison.le: float.__le__, Comparison.gt: float.__gt__, Comparison.ge: float.__ge__,
    }  # fmt: skip
    for kind, of in operators.items():
        wanted = [int(of(p, q)) for p, q in zip(x, y, strict=True)]
        found = compare(kind, a, b, dtype)
        assert found.dtype == np.uint8
        assert found.tolist() == wanted, kind


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_nan_compares_as_unequal_only_and_zeros_as_equal(dtype: SimpleDType) -> None:
    a, b = codes([math.nan, 0.0], dtype), codes([math.nan, -0.0], dtype)
    found = {kind.name: compare(kind, a, b, dtype).tolist() for kind in Comparison}
    assert found == {
        "eq": [0, 1], "ne": [1, 0], "lt": [0, 0], "le": [0, 1], "gt": [0, 0], "ge": [0, 1],
    }  # fmt: skip


def test_shapes_are_broadcast() -> None:
    a = codes(np.arange(6).reshape(2, 3), FP32)
    row, column = codes([[10.0, 20.0, 30.0]], FP32), codes([[1.0], [2.0]], FP32)
    assert values(binary(Binary.ADD, a, row, FP32), FP32).tolist() == [[10, 21, 32], [13, 24, 35]]
    assert values(binary(Binary.SUB, a, column, FP32), FP32).tolist() == [[-1, 0, 1], [1, 2, 3]]
    assert values(binary(Binary.SECOND, a, column, FP32), FP32).tolist() == [[1] * 3, [2] * 3]


@pytest.mark.parametrize("dtype", FLOATS)
def test_float64_rounds_once_also_between_two_narrow_numbers(dtype: SimpleDType) -> None:
    bits, emin, _ = FIELDS[dtype]
    rng = np.random.default_rng(4)
    numbers: list[float] = []
    for exponent in (emin - bits, emin - 1, emin, 0, 10):
        half = 2.0 ** (exponent - bits + 1) / 2
        base = 2.0**exponent
        for steps in rng.integers(0, 1 << bits, 40).tolist():
            middle = base + (2 * steps + 1) * half
            numbers += [middle, math.nextafter(middle, 0), math.nextafter(middle, 9e99), -middle]
    numbers += [1e300, -1e300, 5e-324, 0.0, -0.0, math.inf, -math.inf, math.nan]
    found = from_float64(np.array(numbers), dtype)
    same(found, [rounded(x, dtype) for x in numbers], dtype)


def test_a_scalar_is_one_code_of_the_dtype() -> None:
    assert scalar_code(-1, DType.Int8) == 0xFF
    assert scalar_code(1.5, Float16) == 0x3E00
    assert scalar_code(-0.0, BFloat16) == 0x8000
    assert scalar_code(math.nan, FP32) == 0x7FC00000
    assert scalar_code(3, UInt32).dtype == np.uint32


@pytest.mark.parametrize("given", ["lt", 2, Comparison.lt])
def test_a_comparison_goes_by_name_or_number(given: object) -> None:
    assert Comparison.of(given) is Comparison.lt


@pytest.mark.parametrize("given", ["less", 6, -1, True, None, 2.0])
def test_other_names_of_comparisons_are_refused(given: object) -> None:
    with pytest.raises(IRValueError) as caught:
        Comparison.of(given)
    assert caught.value.message == (
        f"cmp_type must be one of eq (0), ne (1), lt (2), le (3), gt (4), ge (5), not {given!r}"
    )
