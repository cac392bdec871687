"""Constants with a dtype of their own: `pl.const`, and literals that take the dtype asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType, Index, SimpleDType
from ..dtypes.formats import FLOAT_FORMATS, INTEGER_FORMATS
from ..errors import IRTypeError, IRValueError, Span
from ..expr import ConstBool, ConstFloat, ConstInt, ScalarType

if TYPE_CHECKING:
    from ..expr import Expr, Type

Constant = ConstInt | ConstFloat | ConstBool


def const(value: float, dtype: SimpleDType) -> Constant:
    """Return a scalar constant of a given dtype; usable inside and outside of kernels.

    Args:
        value: An integer for an integer dtype, a number for a float dtype, a bool for BOOL.
        dtype: What the constant is.

    Raises:
        IRTypeError: If the value is not of the dtype's kind.
        IRValueError: If the value does not fit.
    """
    return typed_constant(value, dtype, Span.unknown())


def typed_constant(value: object, dtype: object, span: Span) -> Constant:
    """Return `value` as a constant of `dtype`; raises as :func:`const`."""
    if not isinstance(dtype, SimpleDType):
        message = f"A constant must have a dtype of one plane, not {dtype!r}"
        raise IRTypeError(message, span)
    if dtype in INTEGER_FORMATS and isinstance(value, int) and not isinstance(value, bool):
        row = INTEGER_FORMATS[dtype]
        if not row.min <= value <= row.max:
            message = f"A constant of {dtype.name} must be in {row.min}..{row.max}, not {value}"
            raise IRValueError(message, span)
        return ConstInt(value, dtype, span)
    if dtype in FLOAT_FORMATS and isinstance(value, int | float) and not isinstance(value, bool):
        return ConstFloat(float(value), dtype, span)
    if dtype is DType.Bool and isinstance(value, bool):
        return ConstBool(value, span)
    message = f"A constant of {dtype.name} must be a number of that kind, not {value!r}"
    raise IRTypeError(message, span)


def literal_as(made: Expr, wanted: Type) -> Expr:
    """Return an untyped literal as a constant of the scalar type that its place wants.

    A literal is an INDEX or FP32 constant; anything else, and what does not fit, comes back as it is.
    """
    if not isinstance(wanted, ScalarType):
        return made
    dtype = wanted.dtype
    match made:
        case ConstInt(value, found, span) if found is Index and dtype in INTEGER_FORMATS:
            row = INTEGER_FORMATS[dtype]
            return ConstInt(value, dtype, span) if row.min <= value <= row.max else made
        case ConstFloat(value, found, span) if found is DType.Float32 and dtype in FLOAT_FORMATS:
            return ConstFloat(value, dtype, span)
        case _:
            return made
