"""Scalar arithmetic: which dtype wins, where casts appear, and what is refused."""

from collections.abc import Callable

import pytest

from scalebox.ir import scalar_ops as ops
from scalebox.ir.dtypes import BFloat16, DType, Float16, Index, Int64, SimpleDType, TaskId
from scalebox.ir.errors import IRTypeError, Span
from scalebox.ir.expr import (
    Add,
    BinaryExpr,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    ScalarType,
    Var,
    index,
)
from scalebox.ir.types import TensorType

I32, F32, BOOL = DType.Int32, DType.Float32, DType.Bool
SPAN = Span("k.py", 2, 3)


def scalar(dtype: SimpleDType) -> Var:
    return Var("x", ScalarType(dtype))


@pytest.mark.parametrize(
    ("left", "right", "wide", "cast_left", "cast_right"),
    [
        (Index, Index, Index, False, False),
        (Index, Int64, Index, False, False),
        (Int64, Index, Int64, False, False),
        (I32, Index, Index, True, False),
        (Index, I32, Index, False, True),
        (Float16, BFloat16, Float16, False, True),
        (Float16, F32, F32, True, False),
    ],
)
def test_the_wider_dtype_wins_and_the_left_one_on_ties(
    left: SimpleDType, right: SimpleDType, wide: SimpleDType, cast_left: bool, cast_right: bool
) -> None:
    a, b = scalar(left), scalar(right)
    done = ops.add(a, b, SPAN)
    assert isinstance(done, Add)
    assert (done.dtype, done.span) == (wide, SPAN)
    for side, operand, is_cast in ((done.left, a, cast_left), (done.right, b, cast_right)):
        assert isinstance(side, Cast) == is_cast
        assert (side.operand if isinstance(side, Cast) else side) is operand
        assert side.type in (ScalarType(wide), operand.type)


@pytest.mark.parametrize(
    ("make", "symbol"),
    [
        (ops.add, "+"), (ops.sub, "-"), (ops.mul, "*"), (ops.floordiv, "//"), (ops.mod, "%"),
        (ops.min_, "min"), (ops.max_, "max"), (ops.shift_left, "<<"), (ops.shift_right, ">>"),
    ],
)  # fmt: skip
def test_every_integer_operator(
    make: Callable[[Expr, Expr, Span | None], Expr], symbol: str
) -> None:
    done = make(scalar(I32), scalar(I32), None)
    assert isinstance(done, BinaryExpr)
    assert (done.symbol, done.dtype) == (symbol, I32)


@pytest.mark.parametrize("make", [ops.eq, ops.ne, ops.lt, ops.le, ops.gt, ops.ge])
def test_a_comparison_is_a_truth_value(
    make: Callable[[Expr, Expr, Span | None], Expr],
) -> None:
    done = make(scalar(I32), index(3), None)
    assert done.type == ScalarType(BOOL)
    assert isinstance(done, BinaryExpr)
    assert isinstance(done.left, Cast)


def test_logic_takes_truth_values() -> None:
    a = scalar(BOOL)
    assert ops.and_(a, a, None).type == ScalarType(BOOL)
    assert ops.or_(a, a, None).type == ScalarType(BOOL)
    assert ops.not_(a).type == ScalarType(BOOL)


def test_floats_divide_by_a_slash() -> None:
    assert ops.truediv(scalar(F32), scalar(Float16), None).type == ScalarType(F32)


@pytest.mark.parametrize(
    ("action", "message", "hint"),
    [
        (
            lambda: ops.add(scalar(I32), scalar(F32), SPAN),
            "Both sides of '+' must be integers or both floats, not Int32 and Float32",
            "pl.cast one side",
        ),
        (
            lambda: ops.mul(scalar(BOOL), scalar(BOOL), SPAN),
            "Both sides of '*' must be integers or both floats, not Bool and Bool",
            "pl.cast one side",
        ),
        (
            lambda: ops.eq(scalar(TaskId), scalar(TaskId), SPAN),
            "Both sides of '==' must be integers or both floats, not TaskId and TaskId",
            "pl.cast one side",
        ),
        (
            lambda: ops.floordiv(scalar(F32), scalar(F32), SPAN),
            "'//' must have operands of kind int, not Float32",
            None,
        ),
        (
            lambda: ops.truediv(scalar(I32), scalar(I32), SPAN),
            "'/' must have operands of kind float, not Int32",
            "integers divide by //",
        ),
        (
            lambda: ops.and_(scalar(I32), scalar(BOOL), SPAN),
            "'and' must have operands of kind bool, not Int32",
            None,
        ),
        (lambda: ops.not_(index(1), SPAN), "'not' must have operands of kind bool, not Index", None),
        (lambda: ops.bit_not(scalar(F32), SPAN), "'~' must have operands of kind int, not Float32", None),
        (
            lambda: ops.neg(ConstBool(True), SPAN),
            "'-' must have an operand of kind int or float, not Bool",
            None,
        ),
        (
            lambda: ops.add(Var("t", TensorType([2], I32)), index(1), SPAN),
            "Each side of '+' must be a scalar, not TensorType",
            None,
        ),
        (
            lambda: ops.cast(scalar(TaskId), I32, SPAN),
            "A cast must be between numbers, not from TaskId to Int32",
            None,
        ),
    ],
)  # fmt: skip
def test_categories_do_not_mix(action: Callable[[], Expr], message: str, hint: str | None) -> None:
    with pytest.raises(IRTypeError) as caught:
        action()
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.span == SPAN


def test_minus_folds_into_a_constant() -> None:
    done = ops.neg(index(5))
    assert isinstance(done, ConstInt)
    assert done.value == -5
    least = ops.neg(ConstInt(-(2**63), Int64))
    assert isinstance(least, ConstInt)
    assert least.value == -(2**63)
    real = ops.neg(ConstFloat(1.5, F32))
    assert isinstance(real, ConstFloat)
    assert real.value == -1.5
    assert ops.neg(scalar(I32)).type == ScalarType(I32)


def test_a_cast_to_the_same_dtype_is_the_operand() -> None:
    x = scalar(I32)
    assert ops.cast(x, I32) is x
    assert isinstance(ops.cast(x, F32), Cast)
    assert isinstance(ops.cast(scalar(Index), Int64), Cast)


@pytest.mark.parametrize(
    ("dtype", "kind"), [(Index, "int"), (F32, "float"), (BOOL, "bool"), (TaskId, "opaque")]
)
def test_the_category_of_a_dtype(dtype: SimpleDType, kind: str) -> None:
    assert ops.category(dtype) == kind
