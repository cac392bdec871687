"""The tables of number formats, against ml_dtypes, numpy, gfloat and the standard's own figures."""

import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np
import pytest
from gfloat import FormatInfo, decode_float  # pyright: ignore[reportMissingTypeStubs]
from gfloat.types import Domain  # pyright: ignore[reportMissingTypeStubs]

from scalebox.ir.dtypes import DType, SimpleDType
from scalebox.ir.dtypes.formats import (
    FLOAT_FORMATS,
    INTEGER_FORMATS,
    FloatFormat,
    IntegerFormat,
    NanStyle,
    format_of,
    integer_format_of,
)

if TYPE_CHECKING:
    from scalebox.ir.errors import UserError

OUTSIDERS: dict[str, Any] = {
    "E4M3": ml_dtypes.float8_e4m3fn,
    "E5M2": ml_dtypes.float8_e5m2,
    "E3M2": ml_dtypes.float6_e3m2fn,
    "E2M3": ml_dtypes.float6_e2m3fn,
    "E2M1": ml_dtypes.float4_e2m1fn,
    "E8M0": ml_dtypes.float8_e8m0fnu,
    "Float16": np.float16,
    "BFloat16": ml_dtypes.bfloat16,
    "Float32": np.float32,
    "Float64": np.float64,
}
E1M2 = FormatInfo(
    "e1m2",
    4,
    3,
    bias=1,
    is_signed=True,
    domain=Domain.Finite,
    has_nz=True,
    num_high_nans=0,
    has_subnormals=True,
    is_twos_complement=False,
)


def row(name: str) -> FloatFormat:
    return format_of(DType.from_name(name))


def unsigned(dtype: SimpleDType) -> str:
    return f"u{max(8, dtype.bits) // 8}"


def codes_to_check(known: FloatFormat) -> list[int]:
    if known.bits <= 16:
        return list(range(known.code_count))
    drawn = np.random.default_rng(1).integers(known.code_count, size=2000, dtype=np.uint64)
    near = [known.max_code, known.nan_code, known.infinity_code, 1 << known.mantissa_bits, 0]
    signed = [int(code) ^ known.sign_mask for code in near if code is not None]
    around = [code + step for code in [*near, *signed] if code is not None for step in (-1, 0, 1)]
    return [*map(int, drawn), *(code for code in around if 0 <= code < known.code_count)]


def same(value: float, other: float) -> bool:
    if math.isnan(value) or math.isnan(other):
        return math.isnan(value) and math.isnan(other)
    return value == other and math.copysign(1, value) == math.copysign(1, other)


@pytest.mark.parametrize("name", OUTSIDERS)
def test_every_code_has_the_value_that_others_give_it(name: str) -> None:
    known = row(name)
    codes = codes_to_check(known)
    stored = np.array(codes, dtype=unsigned(known.dtype)).view(OUTSIDERS[name])
    values = [float(value) for value in stored]
    assert [c for c, v in zip(codes, values, strict=True) if not same(known.value(c), v)] == []


def test_every_code_of_e1m2_has_its_value() -> None:
    known = row("E1M2")
    assert [known.value(code) for code in range(8)] == [code / 4 for code in range(8)]
    for code in range(16):
        assert same(known.value(code), decode_float(E1M2, code).fval)


@pytest.mark.parametrize("name", OUTSIDERS)
def test_derived_figures_agree_with_finfo(name: str) -> None:
    known, info = row(name), cast("Any", ml_dtypes.finfo(OUTSIDERS[name]))
    assert known.max == float(info.max)
    assert known.bits == info.bits
    assert known.mantissa_bits == info.nmant
    assert known.smallest_normal == float(info.smallest_normal)
    if known.has_subnormals:
        assert known.smallest_subnormal == float(info.smallest_subnormal)
    assert known.emax == math.frexp(float(info.max))[1] - 1


# The maximum, its exponent and the smallest value above zero, as the OCP standard prints them.
OCP = {
    "E4M3": (448.0, 8, 2.0**-9),
    "E5M2": (57344.0, 15, 2.0**-16),
    "E3M2": (28.0, 4, 0.0625),
    "E2M3": (7.5, 2, 0.125),
    "E2M1": (6.0, 2, 0.5),
    "E1M2": (1.75, 0, 0.25),
}


@pytest.mark.parametrize("name", OCP)
def test_the_figures_of_the_narrow_formats(name: str) -> None:
    known = row(name)
    assert (known.max, known.emax, known.smallest_subnormal) == OCP[name]


def test_e8m0_is_all_exponent() -> None:
    known = row("E8M0")
    assert not known.signed
    assert not known.has_zero
    assert known.value(0) == 2.0**-127
    assert known.value(254) == known.max == 2.0**127
    assert known.nan_code == 255
    assert (known.emax, known.emin, known.sign_mask) == (127, -127, 0)


@pytest.mark.parametrize(
    ("name", "nan", "infinity"),
    [
        ("E4M3", 0x7F, None),
        ("E5M2", 0x7E, 0x7C),
        ("E3M2", None, None),
        ("E2M3", None, None),
        ("E2M1", None, None),
        ("E1M2", None, None),
        ("E8M0", 0xFF, None),
        ("Float16", 0x7E00, 0x7C00),
        ("BFloat16", 0x7FC0, 0x7F80),
        ("Float32", 0x7FC00000, 0x7F800000),
        ("Float64", 0x7FF8 << 48, 0x7FF0 << 48),
    ],
)
def test_nan_is_quiet_and_positive(name: str, nan: int | None, infinity: int | None) -> None:
    known = row(name)
    assert (known.nan_code, known.infinity_code) == (nan, infinity)
    assert known.has_nan is (nan is not None)
    assert known.has_infinity is (infinity is not None)
    if infinity is not None:
        assert known.is_infinity(infinity | known.sign_mask)
        assert known.value(infinity | known.sign_mask) == -math.inf
        assert not known.is_nan(infinity)


def test_every_float_of_the_dtype_system_has_a_row() -> None:
    floats = {d for d in SimpleDType.registered() if d.name in {*OUTSIDERS, "E1M2"}}
    assert set(FLOAT_FORMATS) == floats


INTEGERS = [d.name for d in INTEGER_FORMATS]


@pytest.mark.parametrize("name", INTEGERS)
def test_an_integer_row_has_the_range_and_the_codes_of_twos_complement(name: str) -> None:
    known = integer_format_of(DType.from_name(name))
    bits, signed = known.bits, not name.startswith("U")
    assert known.min == (-(2 ** (bits - 1)) if signed else 0)
    assert known.max == (2 ** (bits - 1) if signed else 2**bits) - 1
    assert known.value(0) == 0
    assert known.value(known.code_count - 1) == (-1 if signed else known.max)
    assert known.value(known.code_count // 2) == (known.min if signed else known.code_count // 2)


@pytest.mark.parametrize("dtype", [DType.Int32, DType.Any, DType.MXFP4, "E4M3", None])
def test_asking_for_the_float_format_of_something_else_names_the_valid_dtypes(dtype: Any) -> None:
    with pytest.raises(TypeError, match="must be one with a floating-point format, not") as error:
        format_of(dtype)
    assert "Valid are: E4M3, E5M2, E3M2" in cast("UserError", error.value).render()


def test_asking_for_the_integer_format_of_a_float_is_an_error() -> None:
    with pytest.raises(TypeError, match="must be one with an integer format, not Float32"):
        integer_format_of(DType.Float32)


FACTS: dict[str, Any] = {
    "dtype": DType.E4M3,
    "exponent_bits": 4,
    "mantissa_bits": 3,
    "bias": 7,
    "signed": True,
    "has_subnormals": True,
    "has_infinity": False,
    "nan": NanStyle.ALL_ONES,
}


@pytest.mark.parametrize(
    "change",
    [
        {"exponent_bits": 5},
        {"signed": False},
        {"has_infinity": True},
        {"has_subnormals": False},
        {"exponent_bits": 0, "mantissa_bits": 7},
        {"dtype": DType.E8M0, "mantissa_bits": 0, "exponent_bits": 7, "nan": NanStyle.IEEE},
    ],
)
def test_a_row_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    FloatFormat(**FACTS)
    with pytest.raises(AssertionError):
        FloatFormat(**(FACTS | change))


def test_rows_are_frozen() -> None:
    for known in (row("E4M3"), IntegerFormat(dtype=DType.Int8, signed=True)):
        with pytest.raises(AttributeError):
            setattr(known, "signed", False)  # noqa: B010 - read-only for a type checker too


def test_importing_dtypes_is_light() -> None:
    heavy = "numpy", "numba", "ml_dtypes", "amaranth"
    script = (
        "import sys, scalebox.ir.dtypes, scalebox.ir.dtypes.formats, scalebox.ir.layout\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"
