"""The array types that numpy and ml_dtypes have for the values of simple dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from ..dtypes import (
    BFloat16,
    DType,
    Float16,
    Index,
    Int16,
    Int64,
    SimpleDType,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

NATURAL: Final[Mapping[SimpleDType, np.dtype[Any]]] = {
    DType.E4M3: np.dtype(ml_dtypes.float8_e4m3fn),
    DType.E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DType.E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    DType.E3M2: np.dtype(ml_dtypes.float6_e3m2fn),
    DType.E2M3: np.dtype(ml_dtypes.float6_e2m3fn),
    DType.E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    Float16: np.dtype(np.float16),
    BFloat16: np.dtype(ml_dtypes.bfloat16),
    DType.Float32: np.dtype(np.float32),
    DType.Float64: np.dtype(np.float64),
    DType.Int8: np.dtype(np.int8),
    UInt8: np.dtype(np.uint8),
    Int16: np.dtype(np.int16),
    UInt16: np.dtype(np.uint16),
    DType.Int32: np.dtype(np.int32),
    UInt32: np.dtype(np.uint32),
    Int64: np.dtype(np.int64),
    Index: np.dtype(np.int64),
    UInt64: np.dtype(np.uint64),
    DType.Bool: np.dtype(np.bool_),
}
"""The array type of each dtype's values; a dtype that is missing here is given and comes as codes."""
