"""The functions of the vector core, element by element, on codes.

Interpreter and machine both call these, so their bits agree:

* sums, differences and products of floats are one float32 operation, rounded once more to a 16-bit
  dtype; integers wrap;
* quotients, remainders and the functions such as exp are evaluated in float64 and rounded once;
* maximum and minimum hand a NaN on and put -0 below +0; every NaN that leaves is the dtype's own;
* a comparison with a NaN is false, but for "not equal".
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..choices import numbered_choice
from ..dtypes import BFloat16, DType, Float16, Int16, UInt8, UInt16, UInt32
from ..dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from ..errors import IRValueError
from .codec import decode
from .convert import canonical_float32, float32_to_bfloat16, float32_to_float16

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from ..dtypes import SimpleDType

    Codes = npt.NDArray[np.unsignedinteger[Any]]
    Doubles = npt.NDArray[np.float64]

FLOATS: tuple[SimpleDType, ...] = (DType.Float32, Float16, BFloat16)
"""The float dtypes that the vector core computes with."""

SIGNED: tuple[SimpleDType, ...] = (DType.Int8, Int16, DType.Int32)
UNSIGNED: tuple[SimpleDType, ...] = (UInt8, UInt16, UInt32)
NUMBERS: tuple[SimpleDType, ...] = (*FLOATS, *SIGNED, *UNSIGNED)
"""All dtypes that the vector core computes with."""


class Unary(Enum):
    """A function of one element."""

    EXP = "exp"
    LOG = "log"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    RECIP = "recip"
    SIN = "sin"
    COS = "cos"
    NEG = "neg"
    ABS = "abs"
    RELU = "relu"

    @property
    def dtypes(self) -> tuple[SimpleDType, ...]:
        """What it takes, and gives."""
        if self in _IN_FLOAT64:
            return FLOATS
        return (*FLOATS, *SIGNED)


class Binary(Enum):
    """A function of two elements; `expdif` is exp(a - b), `second` is b."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    REM = "rem"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    EXPDIF = "expdif"
    SECOND = "second"

    @property
    def dtypes(self) -> tuple[SimpleDType, ...]:
        """What it takes, and gives."""
        return FLOATS if self in (Binary.DIV, Binary.EXPDIF) else NUMBERS


class Comparison(Enum):
    """A comparison of two elements."""

    eq = 0
    ne = 1
    lt = 2
    le = 3
    gt = 4
    ge = 5

    def __str__(self) -> str:
        return self.name

    @classmethod
    def of(cls, given: object) -> Comparison:
        """Return the comparison that a name or a number means.

        Raises:
            IRValueError: When it means none.
        """
        return numbered_choice(cls, given, "cmp_type")


_IN_FLOAT64: Mapping[Unary, Callable[[Doubles], Doubles]] = {
    Unary.EXP: np.exp,
    Unary.LOG: np.log,
    Unary.SQRT: np.sqrt,
    Unary.RSQRT: lambda x: 1.0 / np.sqrt(x),
    Unary.RECIP: lambda x: 1.0 / x,
    Unary.SIN: np.sin,
    Unary.COS: np.cos,
}
_OF_TWO_IN_FLOAT64: Mapping[Binary, Callable[[Doubles, Doubles], Doubles]] = {
    Binary.DIV: lambda a, b: a / b,
    Binary.REM: np.remainder,
    Binary.EXPDIF: lambda a, b: np.exp(a - b),
}
_NATIVE: Mapping[Binary, Callable[..., npt.NDArray[Any]]] = {
    Binary.ADD: np.add,
    Binary.SUB: np.subtract,
    Binary.MUL: np.multiply,
}
_COMPARE: Mapping[Comparison, Callable[..., npt.NDArray[np.bool_]]] = {
    Comparison.eq: np.equal,
    Comparison.ne: np.not_equal,
    Comparison.lt: np.less,
    Comparison.le: np.less_equal,
    Comparison.gt: np.greater,
    Comparison.ge: np.greater_equal,
}


def unary(function: Unary, codes: Codes, dtype: SimpleDType) -> Codes:
    """Apply a function to each element.

    Args:
        function: What to apply.
        codes: Codes of `dtype`, of any shape.
        dtype: One of `function.dtypes`.

    Returns:
        Codes of `dtype` in the same shape.
    """
    assert dtype in function.dtypes, (function, dtype)
    x = numbers(codes, dtype)
    with np.errstate(all="ignore"):
        if function in _IN_FLOAT64:
            # One contiguous row: numpy may take another routine for elements that lie apart.
            flat = np.ascontiguousarray(x, np.float64).reshape(-1)
            return from_float64(_IN_FLOAT64[function](flat), dtype).reshape(codes.shape)
        match function:
            case Unary.NEG:
                return codes_of(np.negative(x), dtype)
            case Unary.ABS:
                return codes_of(np.abs(x), dtype)
            case _:
                return codes_of(np.where(x <= 0, np.zeros_like(x), x), dtype)


def binary(function: Binary, left: Codes, right: Codes, dtype: SimpleDType) -> Codes:
    """Apply a function to pairs of elements; the shapes are broadcast.

    Args:
        function: What to apply.
        left: Codes of `dtype`.
        right: Codes of `dtype`.
        dtype: One of `function.dtypes`.

    Returns:
        Codes of `dtype`.

    Raises:
        IRValueError: For an integer remainder of a division by zero.
    """
    assert dtype in function.dtypes, (function, dtype)
    if function is Binary.SECOND:
        return np.broadcast_to(right, np.broadcast_shapes(left.shape, right.shape)).copy()
    if function in (Binary.MAXIMUM, Binary.MINIMUM):
        choose = np.maximum if function is Binary.MAXIMUM else np.minimum
        return codes_of_keys(choose(*ordered_keys((left, right), dtype)), dtype)
    a, b = numbers(left, dtype), numbers(right, dtype)
    with np.errstate(all="ignore"):
        if function in _NATIVE:
            return codes_of(_NATIVE[function](a, b), dtype)
        if dtype in FLOATS:
            shape = np.broadcast_shapes(a.shape, b.shape)
            first, second = (
                np.ascontiguousarray(np.broadcast_to(x, shape), np.float64).reshape(-1)
                for x in (a, b)
            )
            made = _OF_TWO_IN_FLOAT64[function](first, second)
            return from_float64(made, dtype).reshape(shape)
        if not b.all():
            message = "The divisor of a remainder of integers must not be 0"
            raise IRValueError(message)
        return codes_of(np.remainder(a, b), dtype)


def compare(
    kind: Comparison, left: Codes, right: Codes, dtype: SimpleDType
) -> npt.NDArray[np.uint8]:
    """Compare pairs of elements; the shapes are broadcast.

    Returns:
        uint8, 1 where the comparison holds and 0 where not; -0 and +0 are equal.
    """
    assert dtype in NUMBERS, dtype
    holds = _COMPARE[kind](numbers(left, dtype), numbers(right, dtype))
    return np.asarray(holds).astype(np.uint8)


def numbers(codes: Codes, dtype: SimpleDType) -> npt.NDArray[Any]:
    """Return what codes stand for: float32, or integers of the dtype's width."""
    if dtype in FLOATS:
        return decode(codes, dtype)
    return np.ascontiguousarray(codes).view(_integer_type(dtype)).reshape(codes.shape)


def codes_of(values: npt.NDArray[Any], dtype: SimpleDType) -> Codes:
    """Return the codes of float32 numbers, rounded once, or of integers of the dtype's width."""
    if dtype is Float16:
        return float32_to_float16(values)
    if dtype is BFloat16:
        return float32_to_bfloat16(values)
    if dtype is DType.Float32:
        return canonical_float32(values).view(np.uint32)
    kind = _integer_type(dtype)
    return np.ascontiguousarray(values, kind).view(f"u{kind.itemsize}").reshape(values.shape)


def from_float64(values: Doubles, dtype: SimpleDType) -> Codes:
    """Return the codes of float64 numbers, rounded once to nearest even.

    The way to 16 bits leads over a float32 that is rounded to odd: its last bit says that something
    is missing, so that the second rounding is the only one that counts.
    """
    with np.errstate(all="ignore"):
        near = values.astype(np.float32)
    if dtype is DType.Float32:
        return codes_of(near, dtype)
    wide = near.astype(np.float64)
    inexact = (wide != values) & ~np.isnan(values)
    outward = inexact & (np.abs(wide) > np.abs(values))
    bits = near.view(np.uint32) - outward.astype(np.uint32)
    return codes_of((bits | inexact.astype(np.uint32)).view(np.float32), dtype)


def scalar_code(value: float, dtype: SimpleDType) -> Codes:
    """Return the code of a number of `dtype`, as an array without axes."""
    if dtype in FLOATS:
        return from_float64(np.array([value], np.float64), dtype).reshape(())
    row = INTEGER_FORMATS[dtype]
    return np.array(int(value) & ((1 << row.bits) - 1), f"u{row.bits // 8}")


def ordered_keys(
    operands: tuple[Codes, ...], dtype: SimpleDType
) -> tuple[npt.NDArray[np.int64], ...]:
    """Return integers in the order of the numbers, -0 below +0; all are NaN where one is.

    Where an operand is a NaN, the keys of all operands there are the same, of the dtype's own NaN.
    """
    if dtype not in FLOATS:
        return tuple(numbers(codes, dtype).astype(np.int64) for codes in operands)
    row = FLOAT_FORMATS[dtype]
    keys: list[npt.NDArray[np.int64]] = []
    is_nan = np.zeros((), np.bool_)
    for codes in operands:
        magnitude = (codes & codes.dtype.type(row.magnitude_mask)).astype(np.int64)
        negative = (codes & codes.dtype.type(row.sign_mask)) != 0
        keys.append(np.where(negative, -magnitude - 1, magnitude))
        is_nan = is_nan | (magnitude > (row.infinity_code or row.max_code))
    return tuple(np.where(is_nan, np.int64(row.nan_code or 0), key) for key in keys)


def codes_of_keys(keys: npt.NDArray[np.int64], dtype: SimpleDType) -> Codes:
    """Return the codes whose keys, as :func:`ordered_keys` has them, are given."""
    if dtype not in FLOATS:
        return codes_of(keys, dtype)
    row = FLOAT_FORMATS[dtype]
    codes = np.where(keys < 0, (-keys - 1) | row.sign_mask, keys)
    return codes.astype(f"u{row.bits // 8}")


def _integer_type(dtype: SimpleDType) -> np.dtype[Any]:
    row = INTEGER_FORMATS[dtype]
    return np.dtype(f"{'i' if row.signed else 'u'}{row.bits // 8}")
