"""Scalars: integers wrap at their width, division rounds down, floats round to their dtype."""

import math

import numpy as np
import pytest

from scalebox.ir.dtypes import DType, Float16, Index, Int64, SimpleDType, UInt8
from scalebox.ir.errors import IRValueError, Span
from scalebox.ir.expr import (
    Add,
    And,
    BinaryExpr,
    BitNot,
    BitShiftLeft,
    BitShiftRight,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    FloatDiv,
    FloorDiv,
    FloorMod,
    Lt,
    Max,
    Min,
    Mul,
    Neg,
    Not,
    Sub,
)
from scalebox.ir.interp.scalars import evaluate_binary, evaluate_unary, in_range

MOST, LEAST = 2**63 - 1, -(2**63)
SPAN = Span("k.py", 4, 2)
F32 = DType.Float32


def const(value: float, dtype: SimpleDType) -> Expr:
    if dtype is DType.Bool:
        return ConstBool(bool(value))
    if isinstance(value, float):
        return ConstFloat(value, dtype)
    return ConstInt(value, dtype)


def binary(kind: type[BinaryExpr], left: float, right: float, dtype: SimpleDType = Index) -> float:
    result = DType.Bool if kind.is_comparison else dtype
    return evaluate_binary(kind(const(left, dtype), const(right, dtype), result, SPAN), left, right)


@pytest.mark.parametrize(
    ("kind", "left", "right", "expected"),
    [
        (Add, MOST, 1, LEAST),
        (Sub, LEAST, 1, MOST),
        (Mul, 2**62, 2, LEAST),
        (Mul, 2**32, 2**32, 0),
        (FloorDiv, -3, 16, -1),
        (FloorDiv, 3, -16, -1),
        (FloorDiv, LEAST, -1, LEAST),
        (FloorMod, -3, 16, 13),
        (FloorMod, 3, -16, -13),
        (BitShiftLeft, 1, 63, LEAST),
        (BitShiftLeft, 1, 64, 0),
        (BitShiftLeft, 1, 10**12, 0),
        (BitShiftRight, -1, 10**12, -1),
        (BitShiftRight, -8, 1, -4),
        (Min, -1, 2, -1),
        (Max, -1, 2, 2),
    ],
)
def test_words_wrap_and_division_rounds_down(
    kind: type[BinaryExpr], left: int, right: int, expected: int
) -> None:
    assert binary(kind, left, right) == expected
    assert binary(kind, left, right, Int64) == expected


def test_narrow_integers_wrap_at_their_own_width() -> None:
    assert binary(Add, 2**31 - 1, 1, DType.Int32) == -(2**31)
    assert binary(Sub, 0, 1, UInt8) == 255
    assert evaluate_unary(BitNot(const(0, UInt8), UInt8), 0) == 255
    assert evaluate_unary(Neg(const(-128, DType.Int8), DType.Int8), -128) == -128


@pytest.mark.parametrize("kind", [FloorDiv, FloorMod])
def test_division_by_zero_is_told_with_its_place(kind: type[BinaryExpr]) -> None:
    expected = f"^The divisor of '{kind.symbol}' must not be zero"
    with pytest.raises(IRValueError, match=expected) as caught:
        binary(kind, 1, 0)
    assert caught.value.span == SPAN


def test_a_shift_by_a_negative_count_is_told() -> None:
    expected = "^The count of '<<' must not be negative, but is -1"
    with pytest.raises(IRValueError, match=expected):
        binary(BitShiftLeft, 1, -1)


def test_floats_round_to_their_dtype() -> None:
    assert binary(Add, 1.0, 2.0**-24, F32) == 1.0
    assert binary(Add, 1.0, 2.0**-23, F32) == 1.0 + 2.0**-23
    assert binary(Mul, 3e38, 2.0, F32) == math.inf
    assert binary(Add, 2048.0, 1.0, Float16) == 2048.0
    tenth = float(np.float32(0.1))
    assert binary(Add, tenth, tenth, F32) == float(np.float32(0.1) + np.float32(0.1))


def test_floats_divide_as_ieee_says() -> None:
    assert binary(FloatDiv, 1.0, 0.0, F32) == math.inf
    assert binary(FloatDiv, -1.0, 0.0, F32) == -math.inf
    assert math.isnan(binary(FloatDiv, 0.0, 0.0, F32))
    assert binary(FloatDiv, 1.0, 3.0, F32) == float(np.float32(1) / np.float32(3))


def test_comparisons_and_logic_give_truth_values() -> None:
    assert binary(Lt, -1, 0) is True
    assert binary(Lt, 0.0, 0.0, F32) is False
    both = And(ConstBool(True), ConstBool(False), DType.Bool)
    assert evaluate_binary(both, True, False) is False
    assert evaluate_unary(Not(ConstBool(True), DType.Bool), True) is False


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (300, Index, UInt8, 44),
        (-1, Index, UInt8, 255),
        (200, Index, DType.Int8, -56),
        (2.9, F32, Index, 2),
        (-2.9, F32, Index, -2),
        (7, Index, F32, 7.0),
        (2**24 + 1, Index, F32, 2.0**24),
        (5, Index, DType.Bool, True),
        (True, DType.Bool, Index, 1),
    ],
)
def test_casts(value: float, source: SimpleDType, target: SimpleDType, expected: float) -> None:
    done = evaluate_unary(Cast(const(value, source), target), value)
    assert (done, type(done)) == (expected, type(expected))


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_cast_that_has_no_integer_is_told(value: float) -> None:
    expected = f"^A cast to Index must be of a finite number, not {value}"
    with pytest.raises(IRValueError, match=expected):
        evaluate_unary(Cast(const(value, F32), Index), value)


def test_constants_are_held_as_their_dtype_holds_them() -> None:
    assert in_range(2**63, Index) == LEAST
    assert in_range(0.1, F32) == float(np.float32(0.1))
    assert in_range(1, DType.Bool) is True
