"""Casts: every rounding of every pair of dtypes, against exact fractions and ml_dtypes."""

from fractions import Fraction
from itertools import permutations

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir.cast_mode import CastMode
from scalebox.ir.dtypes import (
    E1M2,
    BFloat16,
    DType,
    Float16,
    Int16,
    Int64,
    SimpleDType,
    UInt8,
    UInt16,
    UInt32,
)
from scalebox.ir.dtypes.formats import FloatFormat
from scalebox.ir.errors import IRValueError
from scalebox.ir.numerics.cast import cast_codes, cast_format
from scalebox.ir.placement import code_type

SMALL = (DType.E2M1, E1M2, DType.E3M2, DType.E4M3, DType.E5M2, DType.Int8, UInt8)
ALL = (*SMALL, Float16, BFloat16, DType.Float32, Int16, UInt16, DType.Int32, UInt32, Int64)
FP32 = DType.Float32


def codes_of(dtype: SimpleDType) -> np.ndarray:
    """Every code of a narrow dtype; of a wide one those of ties, of the ends and some others."""
    if dtype.bits <= 8:
        return np.arange(1 << dtype.bits).astype(code_type(dtype))
    rng = np.random.default_rng(dtype.bits)
    # Codes near each other differ in the last bits; shifted ones have short significands.
    made = [
        int(rng.integers(0, 1 << min(62, dtype.bits))) >> int(s) << int(s)
        for s in rng.integers(0, dtype.bits, 120)
    ]
    made += [
        code % (1 << dtype.bits)
        for base in (0, 1 << (dtype.bits - 1))
        for code in range(base - 3, base + 4)
    ]
    return np.array(made, np.uint64).astype(code_type(dtype))


def value_of(code: int, dtype: SimpleDType) -> Fraction | float:
    form = cast_format(dtype)
    assert form is not None
    found = form.value(code)
    return Fraction(found) if np.isfinite(float(found)) else float(found)


def nearest_values(dtype: SimpleDType) -> list[tuple[Fraction, int]]:
    """The finite values of a narrow dtype in order, negative zero left out, each with its code."""
    form = cast_format(dtype)
    assert form is not None
    found: dict[Fraction, int] = {}
    for code in reversed(range(1 << dtype.bits)):
        value = value_of(code, dtype)
        if isinstance(value, Fraction) and not (
            isinstance(form, FloatFormat) and value == 0 and code
        ):
            found[value] = code
    return sorted(found.items())


def expected(value: Fraction, table: list[tuple[Fraction, int]], mode: CastMode) -> Fraction:
    """What a finite value becomes: one of the two neighbours, or the nearest end."""
    values = [each for each, _ in table]
    codes = dict(table)
    if value <= values[0]:
        return values[0]
    if value >= values[-1]:
        return values[-1]
    below = max(each for each in values if each <= value)
    above = min(each for each in values if each >= value)
    if below == above:
        return below
    toward_zero, away = (below, above) if value > 0 else (above, below)
    match mode:
        case CastMode.floor:
            return below
        case CastMode.ceil:
            return above
        case CastMode.trunc:
            return toward_zero
        case CastMode.odd:
            return next(each for each in (toward_zero, away) if codes[each] % 2)
        case CastMode.round:
            return away if abs(away - value) <= abs(value - toward_zero) else toward_zero
        case CastMode.none | CastMode.rint:
            distances = value - below, above - value
            if distances[0] != distances[1]:
                return below if distances[0] < distances[1] else above
            return next(each for each in (below, above) if codes[each] % 2 == 0)


@pytest.mark.parametrize("mode", CastMode, ids=str)
@pytest.mark.parametrize("target", SMALL, ids=lambda d: d.name)
@pytest.mark.parametrize("source", ALL, ids=lambda d: d.name)
def test_a_value_becomes_the_neighbour_that_the_mode_names(
    source: SimpleDType, target: SimpleDType, mode: CastMode
) -> None:
    if source is target:
        return
    codes = codes_of(source)
    values = [value_of(int(code), source) for code in codes]
    finite = [isinstance(value, Fraction) for value in values]
    table = nearest_values(target)
    found = cast_codes(codes[finite], source, target, mode)
    for value, code in zip(np.array(values, object)[finite], found, strict=True):
        assert value_of(int(code), target) == expected(value, table, mode), (value, code)


@pytest.mark.parametrize(
    ("target", "kind"), [(Float16, np.float16), (BFloat16, ml_dtypes.bfloat16)], ids=["16", "b16"]
)
def test_float32_rounds_to_nearest_even_as_numpy_does(target: SimpleDType, kind: type) -> None:
    rng = np.random.default_rng(3)
    drawn = rng.standard_normal(50_000) * 2.0 ** rng.integers(-150, 129, 50_000)
    with np.errstate(over="ignore"):
        x = np.concatenate([drawn, [65519, 65520, 3.4e38, np.inf, -np.inf, 0.0, -0.0]]).astype(
            np.float32
        )
        wanted = x.astype(kind).view(np.uint16)
    found = cast_codes(x.view(np.uint32), FP32, target, CastMode.rint)
    assert (found == wanted).all()


def test_wide_integers_round_once() -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(-(1 << 63), (1 << 63) - 1, 20_000)
    found = cast_codes(x.view(np.uint64), Int64, FP32, CastMode.rint).view(np.float32)
    assert (found == x.astype(np.float32)).all()


@pytest.mark.parametrize(
    ("mode", "positive", "negative"),
    [
        (CastMode.rint, 0x7C00, 0xFC00),
        (CastMode.round, 0x7C00, 0xFC00),
        (CastMode.floor, 0x7BFF, 0xFC00),
        (CastMode.ceil, 0x7C00, 0xFBFF),
        (CastMode.trunc, 0x7BFF, 0xFBFF),
        (CastMode.odd, 0x7BFF, 0xFBFF),
    ],
    ids=lambda v: str(v),
)
def test_beyond_float16_lies_infinity_where_the_rounding_leads_there(
    mode: CastMode, positive: int, negative: int
) -> None:
    x = np.array([1e6, -1e6], np.float32).view(np.uint32)
    assert cast_codes(x, FP32, Float16, mode).tolist() == [positive, negative]


def test_specials_by_hand() -> None:
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 500, -500], np.float32).view(np.uint32)
    assert cast_codes(x, FP32, DType.E4M3).tolist() == [0x7F, 0x7E, 0xFE, 0x80, 0x7E, 0xFE]
    assert cast_codes(x, FP32, DType.E5M2).tolist() == [0x7E, 0x7C, 0xFC, 0x80, 0x60, 0xE0]
    assert cast_codes(x, FP32, DType.Int8).tolist() == [0, 127, 128, 0, 127, 128]
    assert cast_codes(x, FP32, UInt8).tolist() == [0, 255, 0, 0, 255, 0]
    assert cast_codes(x[1:], FP32, DType.E2M1).tolist() == [7, 15, 8, 7, 15]
    with pytest.raises(
        IRValueError, match=r"^What is cast to E2M1, which has no NaN, must be free of NaN$"
    ):
        cast_codes(x, FP32, DType.E2M1)


def test_halves_by_hand() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], np.float32).view(np.uint32)
    by_mode = {
        "rint": [0, 2, 2, 0, -2, -2],
        "round": [1, 2, 3, -1, -2, -3],
        "floor": [0, 1, 2, -1, -2, -3],
        "ceil": [1, 2, 3, 0, -1, -2],
        "trunc": [0, 1, 2, 0, -1, -2],
        "odd": [1, 1, 3, -1, -1, -3],
    }
    for name, wanted in by_mode.items():
        found = cast_codes(x, FP32, DType.Int8, CastMode.of(name))
        assert found.view(np.int8).tolist() == wanted, name


def test_the_shape_and_width_of_codes_follow_the_target() -> None:
    for source, target in permutations((Float16, DType.Int8, FP32), 2):
        made = cast_codes(np.zeros((2, 3, 4), code_type(source)), source, target)
        assert (made.shape, made.dtype) == ((2, 3, 4), code_type(target))


@pytest.mark.parametrize("given", ["floor", 3, CastMode.floor])
def test_a_mode_is_a_name_or_a_number(given: object) -> None:
    assert CastMode.of(given) is CastMode.floor


@pytest.mark.parametrize("given", ["Floor", 7, -1, True, 3.0, None])
def test_anything_else_is_no_mode(given: object) -> None:
    with pytest.raises(IRValueError) as caught:
        CastMode.of(given)
    assert caught.value.message == (
        "mode must be one of none (0), rint (1), round (2), floor (3), ceil (4), trunc (5), odd (6), "
        f"not {given!r}"
    )
