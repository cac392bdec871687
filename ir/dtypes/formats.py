"""The table of number formats: what the codes of each simple dtype mean.

A row stores the few facts that a format is made of; everything else is derived. OCP MX v1.0 has
E4M3, E5M2, E3M2, E2M3, E2M1 and E8M0; E1M2 is the machine's second 4-bit format; the wide ones are
IEEE 754 and bfloat16. Decoding, rounding and the hardware read these rows and nothing else.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from ..errors import IRTypeError
from . import hardware
from .descriptors import DType, SimpleDType

if TYPE_CHECKING:
    from collections.abc import Mapping


class NanStyle(enum.Enum):
    """Which codes of a float format are NaN."""

    NONE = "none"
    """No code is."""
    ALL_ONES = "all ones"
    """Only the one whose exponent and mantissa are all ones (the "fn" form)."""
    IEEE = "ieee"
    """All with an exponent of all ones and a mantissa that is not zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatFormat:
    """A binary floating-point format; codes are sign, exponent, mantissa from the top.

    A format with subnormals reads exponent field 0 as subnormal and has zero; one without, E8M0,
    reads it as one more binade and has no zero.
    """

    dtype: SimpleDType
    exponent_bits: int
    mantissa_bits: int
    bias: int
    signed: bool
    has_subnormals: bool
    has_infinity: bool
    nan: NanStyle

    def __post_init__(self) -> None:
        width = int(self.signed) + self.exponent_bits + self.mantissa_bits
        assert width == self.dtype.bits, f"{self.dtype.name}: fields of {width} bits"
        assert self.exponent_bits >= 1, f"{self.dtype.name}: no exponent"
        assert self.mantissa_bits >= 0, f"{self.dtype.name}: negative mantissa width"
        assert not self.has_infinity or self.nan is NanStyle.IEEE, (
            f"{self.dtype.name}: infinity needs the exponent of all ones"
        )
        assert self.nan is not NanStyle.IEEE or self.mantissa_bits >= 1, (
            f"{self.dtype.name}: IEEE NaNs need a mantissa"
        )
        assert self.has_subnormals or self.mantissa_bits == 0, (
            f"{self.dtype.name}: a format without subnormals must be exponents only"
        )

    @property
    def name(self) -> str:
        """The dtype's name."""
        return self.dtype.name

    @property
    def bits(self) -> int:
        """The width of a code."""
        return self.dtype.bits

    @property
    def code_count(self) -> int:
        """The number of codes, NaNs and infinities included."""
        return 1 << self.bits

    @property
    def magnitude_mask(self) -> int:
        """The bits of exponent and mantissa: all of a code but its sign."""
        return (1 << (self.exponent_bits + self.mantissa_bits)) - 1

    @property
    def mantissa_mask(self) -> int:
        """The bits of the mantissa."""
        return (1 << self.mantissa_bits) - 1

    @property
    def sign_mask(self) -> int:
        """The sign bit, or 0 for an unsigned format."""
        return 1 << (self.bits - 1) if self.signed else 0

    @property
    def precision(self) -> int:
        """The bits of a normal significand, the hidden one included."""
        return self.mantissa_bits + 1

    @property
    def max_code(self) -> int:
        """The code of the largest finite value."""
        match self.nan:
            case NanStyle.NONE:
                return self.magnitude_mask
            case NanStyle.ALL_ONES:
                return self.magnitude_mask - 1
            case NanStyle.IEEE:
                return self.magnitude_mask - self.mantissa_mask - 1

    @property
    def max(self) -> float:
        """The largest finite value."""
        return self.value(self.max_code)

    @property
    def emax(self) -> int:
        """The exponent of the largest binade: floor(log2(max))."""
        return (self.max_code >> self.mantissa_bits) - self.bias

    @property
    def emin(self) -> int:
        """The exponent of the smallest normal binade."""
        return int(self.has_subnormals) - self.bias

    @property
    def smallest_normal(self) -> float:
        """The smallest positive value with a full significand."""
        return math.ldexp(1.0, self.emin)

    @property
    def smallest_subnormal(self) -> float:
        """The smallest positive value, or 0.0 for a format without subnormals."""
        return math.ldexp(1.0, self.emin - self.mantissa_bits) if self.has_subnormals else 0.0

    @property
    def has_zero(self) -> bool:
        """Whether a code means zero."""
        return self.has_subnormals

    @property
    def has_nan(self) -> bool:
        """Whether a code means NaN."""
        return self.nan is not NanStyle.NONE

    @property
    def infinity_code(self) -> int | None:
        """The code of positive infinity, or None."""
        return self.max_code + 1 if self.has_infinity else None

    @property
    def nan_code(self) -> int | None:
        """The NaN that we write: positive and, where there is a choice, quiet; or None."""
        match self.nan:
            case NanStyle.NONE:
                return None
            case NanStyle.ALL_ONES:
                return self.magnitude_mask
            case NanStyle.IEEE:
                return self.max_code + 1 + (1 << (self.mantissa_bits - 1))

    def is_nan(self, code: int) -> bool:
        """Return whether `code` means NaN."""
        magnitude = code & self.magnitude_mask
        match self.nan:
            case NanStyle.NONE:
                return False
            case NanStyle.ALL_ONES:
                return magnitude == self.magnitude_mask
            case NanStyle.IEEE:
                return magnitude > self.max_code + int(self.has_infinity)

    def is_infinity(self, code: int) -> bool:
        """Return whether `code` means an infinity of either sign."""
        return self.has_infinity and code & self.magnitude_mask == self.infinity_code

    def value(self, code: int) -> float:
        """Return the value of a code, exactly, as a Python float."""
        assert 0 <= code < self.code_count, f"{self.name}: no code {code}"
        if self.is_nan(code):
            return math.nan
        sign = -1.0 if code & self.sign_mask else 1.0
        if self.is_infinity(code):
            return math.copysign(math.inf, sign)
        mantissa = code & self.mantissa_mask
        field = (code & self.magnitude_mask) >> self.mantissa_bits
        if field or not self.has_subnormals:
            mantissa += 1 << self.mantissa_bits
        exponent = max(field - self.bias, self.emin)
        return math.copysign(math.ldexp(mantissa, exponent - self.mantissa_bits), sign)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerFormat:
    """A two's-complement or unsigned integer format."""

    dtype: SimpleDType
    signed: bool

    @property
    def name(self) -> str:
        """The dtype's name."""
        return self.dtype.name

    @property
    def bits(self) -> int:
        """The width of a code."""
        return self.dtype.bits

    @property
    def code_count(self) -> int:
        """The number of codes."""
        return 1 << self.bits

    @property
    def min(self) -> int:
        """The smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def max(self) -> int:
        """The largest value."""
        return (1 << (self.bits - int(self.signed))) - 1

    def value(self, code: int) -> int:
        """Return the value of a code."""
        assert 0 <= code < self.code_count, f"{self.name}: no code {code}"
        return code if code <= self.max else code - self.code_count


def _float(
    dtype: SimpleDType,
    exponent_bits: int,
    mantissa_bits: int,
    bias: int,
    nan: NanStyle,
    *,
    infinity: bool = False,
    signed: bool = True,
) -> FloatFormat:
    return FloatFormat(
        dtype=dtype,
        exponent_bits=exponent_bits,
        mantissa_bits=mantissa_bits,
        bias=bias,
        signed=signed,
        has_subnormals=signed,
        has_infinity=infinity,
        nan=nan,
    )


# fmt: off
_FLOAT_ROWS: Final = (
    #      dtype              exponent  mantissa  bias  NaN
    _float(DType.E4M3,              4,        3,     7, NanStyle.ALL_ONES),
    _float(DType.E5M2,              5,        2,    15, NanStyle.IEEE, infinity=True),
    _float(DType.E3M2,              3,        2,     3, NanStyle.NONE),
    _float(DType.E2M3,              2,        3,     1, NanStyle.NONE),
    _float(DType.E2M1,              2,        1,     1, NanStyle.NONE),
    _float(hardware.E1M2,           1,        2,     1, NanStyle.NONE),
    _float(DType.E8M0,              8,        0,   127, NanStyle.ALL_ONES, signed=False),
    _float(hardware.Float16,        5,       10,    15, NanStyle.IEEE, infinity=True),
    _float(hardware.BFloat16,       8,        7,   127, NanStyle.IEEE, infinity=True),
    _float(DType.Float32,           8,       23,   127, NanStyle.IEEE, infinity=True),
    _float(DType.Float64,          11,       52,  1023, NanStyle.IEEE, infinity=True),
)

_INTEGER_ROWS: Final = (
    IntegerFormat(dtype=hardware.Int4,   signed=True),
    IntegerFormat(dtype=hardware.UInt4,  signed=False),
    IntegerFormat(dtype=DType.Int8,      signed=True),
    IntegerFormat(dtype=hardware.UInt8,  signed=False),
    IntegerFormat(dtype=hardware.Int16,  signed=True),
    IntegerFormat(dtype=hardware.UInt16, signed=False),
    IntegerFormat(dtype=DType.Int32,     signed=True),
    IntegerFormat(dtype=hardware.UInt32, signed=False),
    IntegerFormat(dtype=hardware.Int64,  signed=True),
    IntegerFormat(dtype=hardware.UInt64, signed=False),
    IntegerFormat(dtype=hardware.Index,  signed=True),
)
# fmt: on

FLOAT_FORMATS: Final[Mapping[SimpleDType, FloatFormat]] = {row.dtype: row for row in _FLOAT_ROWS}
INTEGER_FORMATS: Final[Mapping[SimpleDType, IntegerFormat]] = {
    row.dtype: row for row in _INTEGER_ROWS
}
assert len(FLOAT_FORMATS) == len(_FLOAT_ROWS), "a dtype has two rows of floats"
assert len(INTEGER_FORMATS) == len(_INTEGER_ROWS), "a dtype has two rows of integers"
assert not FLOAT_FORMATS.keys() & INTEGER_FORMATS.keys(), "a dtype is both float and integer"

F = TypeVar("F", FloatFormat, IntegerFormat)


def format_of(dtype: DType) -> FloatFormat:
    """Return the float format of a dtype.

    Raises:
        IRTypeError: If it has none.
    """
    return _find(dtype, FLOAT_FORMATS, "a floating-point")


def integer_format_of(dtype: DType) -> IntegerFormat:
    """Return the integer format of a dtype.

    Raises:
        IRTypeError: If it has none.
    """
    return _find(dtype, INTEGER_FORMATS, "an integer")


def _find(dtype: object, rows: Mapping[SimpleDType, F], what: str) -> F:
    row = rows.get(dtype) if isinstance(dtype, SimpleDType) else None
    if row is None:
        found = dtype.name if isinstance(dtype, DType) else f"an object of type {type(dtype)}"
        message = f"The dtype must be one with {what} format, not {found}"
        valid = ", ".join(known.name for known in rows)
        raise IRTypeError(message, hint=f"Valid are: {valid}.")
    return row
