"""Rules: their grammar, and their meaning beside the arithmetic they name."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from scalebox.ir.errors import InputError
from scalebox.traces.compare import compare
from scalebox.traces.rules import Close, Exact, Fraction, Ulp, parse_rule

FLOATS = (
    np.float16,
    np.float32,
    np.float64,
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e8m0fnu,
    ml_dtypes.float4_e2m1fn,
    ml_dtypes.float6_e2m3fn,
)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("exact", Exact()),
        ("ulp:0", Ulp(0)),
        ("ulp:12", Ulp(12)),
        ("close:1e-3,0", Close(1e-3, 0)),
        ("close: 1e-3, 1e-5", Close(1e-3, 1e-5)),
        ("fraction:0.001,0.01", Fraction(0.001, 0.01)),
    ],
)
def test_a_rule_is_read_and_prints_as_a_rule(text: str, rule: object) -> None:
    assert parse_rule(text) == rule
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize("count", [1, 10**30])
def test_any_whole_number_of_ulps_is_a_rule(count: int) -> None:
    assert (
        compare(np.array([1], np.float32), np.array([2], np.float32), rule=f"ulp:{count}")
        is not None
    )


@pytest.mark.parametrize(
    "text",
    ["", "equal", "ulps:3", "ulp", "ulp:", "ulp:-1", "ulp:1.5", "ulp:1,2", "close:1", "exact:0"],
)
def test_an_unknown_rule_lists_the_valid_ones(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_rule(text)
    assert str(caught.value) == (
        f"rule must be exact, ulp:N, close:rtol,atol or fraction:tol,share, not {text!r}"
    )


@pytest.mark.parametrize("bad", ["-1", "nan", "inf", "x", ""])
def test_a_tolerance_must_be_finite_and_not_negative(bad: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_rule(f"close:0,{bad}")
    assert str(caught.value) == (
        f"a tolerance of rule 'close:0,{bad}' must be a finite number from 0 up, not {bad!r}"
    )


def test_a_share_is_what_may_differ_not_what_must_agree() -> None:
    with pytest.raises(InputError) as caught:
        parse_rule("fraction:1e-3,0.99")
    assert str(caught.value) == (
        "the share of rule 'fraction:1e-3,0.99' must be the part of the elements that may differ, "
        "from 0 to below 0.5, not '0.99'"
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_are_one_ulp_apart_in_every_format(dtype: type) -> None:
    library: Any = ml_dtypes
    bits = int(library.finfo(dtype).bits) if dtype is not np.float64 else 64
    if bits > 16:
        values = np.array([1.0, 0.0, -3.5, np.finfo(dtype).tiny], dtype=dtype)
        others = np.nextafter(values, np.array(np.inf, dtype=dtype))
        assert compare(others, values, rule="ulp:1")
        assert not compare(others, values, rule="ulp:0")
        return
    codes = np.arange(1 << bits, dtype=f"u{np.dtype(dtype).itemsize}")
    values = codes.view(dtype)
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    line = np.unique(wide[np.isfinite(wide)]) + 0.0  # -0 + 0 is +0
    ascending = line.astype(dtype)
    assert compare(ascending[1:], ascending[:-1], rule="ulp:2")
    from_zero_up = line[line >= 0].astype(dtype)
    assert compare(from_zero_up[1:], from_zero_up[:-1], rule="ulp:1")
    assert not compare(from_zero_up[2:], from_zero_up[:-2], rule="ulp:1")


@pytest.mark.parametrize("rule", ["exact", "ulp:1000000000", "close:1,1e300", "fraction:1,0"])
def test_special_values_are_never_near_anything(rule: str) -> None:
    inf, nan, most = np.float32(np.inf), np.float32(np.nan), np.finfo(np.float32).max
    for actual, golden in (
        (inf, most),
        (most, inf),
        (inf, -inf),
        (nan, most),
        (most, nan),
        (nan, inf),
    ):
        assert not compare(np.array([actual]), np.array([golden]), rule=rule), (actual, golden)
    other_nan = np.array([0xFFC00001], np.uint32).view(np.float32)
    assert compare(other_nan, np.array([nan]), rule=rule)
    assert compare(np.array([inf, -inf]), np.array([inf, -inf]), rule=rule)


def test_minus_zero_differs_from_zero_unless_the_rule_has_room() -> None:
    minus, plus = np.array([-0.0], np.float32), np.array([0.0], np.float32)
    assert not compare(minus, plus)
    assert not compare(minus, plus, rule="ulp:0")
    assert compare(minus, plus, rule="ulp:1")
    assert compare(minus, plus, rule="close:0,0")


@given(
    pair=arrays.arrays(
        np.float32, (2, 5), elements=st.floats(-100, 100, width=32, allow_subnormal=False)
    ),
    rtol=st.sampled_from([0.0, 0.01, 0.5]),
    atol=st.sampled_from([0.0, 0.125, 10.0]),
)
def test_close_is_the_inequality_with_the_golden_value_on_the_right(
    pair: np.ndarray, rtol: float, atol: float
) -> None:
    actual, golden = pair
    expected = all(
        abs(float(a) - float(g)) <= atol + rtol * abs(float(g))
        for a, g in zip(actual, golden, strict=True)
    )
    assert bool(compare(actual, golden, rule=f"close:{rtol},{atol}")) == expected


@pytest.mark.parametrize(("wrong", "verdict"), [(0, True), (2, True), (3, False)])
def test_fraction_lets_a_share_of_an_output_differ(wrong: int, verdict: bool) -> None:
    golden = np.ones(200, np.float32)
    actual = golden.copy()
    actual[:wrong] = 2.0
    actual[wrong:] += np.float32(1e-4)
    result = compare(actual, golden, rule="fraction:1e-3,0.01")
    assert bool(result) == verdict
    assert result.differing == wrong


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64, ml_dtypes.int4]
)
def test_ulps_of_integers_are_their_distance(dtype: type) -> None:
    if dtype is ml_dtypes.int4:
        low, high = -8, 7
    else:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    result = compare(np.array([low], dtype), np.array([high], dtype))
    assert result.first is not None
    assert result.first.ulps == high - low
    assert (result.first.actual, result.first.golden) == (low, high)
    assert math.isfinite(result.first.actual)
