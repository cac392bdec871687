"""What the routines of this room ask of a number format, beyond its row in the table."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import SimpleDType
from ..dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS, FloatFormat, IntegerFormat
from ..errors import IRTypeError, IRValueError

if TYPE_CHECKING:
    from ..dtypes import DType

FLOAT32_NAN = 0x7FC00000
"""The one NaN that leaves a computation, as float32 bits."""

_FLOAT32_BITS = 32
_WIDEST_INTEGER = 16
_BLOCK_INTEGER_EXPONENT = -6


class Summation(Enum):
    """The order in which a matmul's products meet the float32 accumulator."""

    GROUP = "group"
    SEQUENTIAL = "sequential"

    @classmethod
    def of(cls, name: Summation | str) -> Summation:
        """Return the order called `name`.

        Raises:
            IRValueError: There is no such order.
        """
        for order in cls:
            if isinstance(name, str | cls) and name in (order, order.value):
                return order
        message = f"sum must be 'group' or 'sequential', not {name!r}"
        raise IRValueError(message)


def element_of(dtype: DType) -> FloatFormat | IntegerFormat:
    """Return the format of a simple dtype whose every value float32 holds exactly.

    Raises:
        IRTypeError: `dtype` is not simple, or float32 cannot hold its values.
    """
    row = None
    if isinstance(dtype, SimpleDType):
        row = FLOAT_FORMATS.get(dtype) or INTEGER_FORMATS.get(dtype)
    if row is None or row.bits > (_FLOAT32_BITS if _is_float(row) else _WIDEST_INTEGER):
        found = getattr(dtype, "name", repr(dtype))
        message = f"The dtype must be a simple number format that float32 holds, not {found}"
        valid = ", ".join(
            [known.name for known in FLOAT_FORMATS if known.bits <= _FLOAT32_BITS]
            + [known.name for known in INTEGER_FORMATS if known.bits <= _WIDEST_INTEGER]
        )
        raise IRTypeError(message, hint=f"Valid are: {valid}.")
    return row


def code_type(element: FloatFormat | IntegerFormat) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest unsigned numpy type that holds a code."""
    for kind in (np.uint8, np.uint16, np.uint32):
        if element.bits <= 8 * np.dtype(kind).itemsize:
            return np.dtype(kind)
    return np.dtype(np.uint64)


def unit_exponent(element: FloatFormat | IntegerFormat) -> int:
    """Return the exponent of the unit in which every finite value is an integer."""
    match element:
        case FloatFormat():
            return element.emin - element.mantissa_bits
        case IntegerFormat():
            return 0


def block_exponent(element: FloatFormat | IntegerFormat) -> int:
    """Return the exponent that block scaling adds to an element's value.

    OCP MX v1.0 counts an INT8 element in units of 2^-6; the plain integer Int8 does not.
    """
    match element:
        case FloatFormat():
            return 0
        case IntegerFormat():
            return _BLOCK_INTEGER_EXPONENT


def _is_float(row: FloatFormat | IntegerFormat) -> bool:
    return isinstance(row, FloatFormat)
