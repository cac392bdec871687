"""IEEE 754 binary32 as the arithmetic sees it, from its row in the table of formats."""

from __future__ import annotations

from typing import Final

from ...ir.dtypes import DType
from ...ir.dtypes.formats import format_of

__all__ = [
    "BIAS",
    "EXPONENT_BITS",
    "FIELD_LIMIT",
    "INFINITY",
    "MANTISSA_BITS",
    "NAN",
    "PRECISION",
]

_ROW: Final = format_of(DType.Float32)
assert _ROW.nan_code is not None
assert _ROW.infinity_code is not None

BIAS: Final = _ROW.bias
EXPONENT_BITS: Final = _ROW.exponent_bits
MANTISSA_BITS: Final = _ROW.mantissa_bits
PRECISION: Final = _ROW.precision
FIELD_LIMIT: Final = (1 << EXPONENT_BITS) - 1
"""The exponent field of infinities and NaNs."""

INFINITY: Final = _ROW.infinity_code
NAN: Final = _ROW.nan_code
"""The one NaN that leaves the unit."""
