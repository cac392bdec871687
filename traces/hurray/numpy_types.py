"""Which numpy type holds which element type: one table, read both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

from . import dtype as types
from .errors import UnsupportedError

if TYPE_CHECKING:
    from .elements import Dtype

# fmt: off
_ROWS: Final[tuple[tuple[Dtype, Any], ...]] = (
    # element type       type of an item
    (types.float16,      np.float16),
    (types.bfloat16,     ml_dtypes.bfloat16),
    (types.float32,      np.float32),
    (types.float64,      np.float64),
    (types.int8,         np.int8),
    (types.uint8,        np.uint8),
    (types.int16,        np.int16),
    (types.uint16,       np.uint16),
    (types.int32,        np.int32),
    (types.uint32,       np.uint32),
    (types.int64,        np.int64),
    (types.uint64,       np.uint64),
    (types.bool,         np.bool_),
    (types.float8_e4m3,  ml_dtypes.float8_e4m3fn),
    (types.float8_e5m2,  ml_dtypes.float8_e5m2),
    (types.float8_e8m0,  ml_dtypes.float8_e8m0fnu),
    (types.float4_e2m1,  ml_dtypes.float4_e2m1fn),
    (types.float6_e2m3,  ml_dtypes.float6_e2m3fn),
    (types.float6_e3m2,  ml_dtypes.float6_e3m2fn),
    (types.int4,         ml_dtypes.int4),
    (types.uint4,        ml_dtypes.uint4),
    (types.int2,         ml_dtypes.int2),
    (types.uint2,        ml_dtypes.uint2),
    (types.complex64,    np.complex64),
    (types.complex128,   np.complex128),
)
# fmt: on

_ITEM_OF: Final = {dtype: np.dtype(item) for dtype, item in _ROWS}
_DTYPE_OF: Final = {np.dtype(item): dtype for dtype, item in _ROWS}


def numpy_dtype(dtype: Dtype) -> np.dtype[Any]:
    """Return the numpy type of the elements; narrow ones take a byte each.

    Raises:
        UnsupportedError: numpy and ml_dtypes have none: a private type, or float128.
    """
    item = _ITEM_OF.get(dtype)
    if item is None:
        why = "its values are private" if dtype.is_private else "numpy has no such type"
        sentence = f"Elements must be of a type that numpy can hold, not {dtype!r}: {why}"
        raise UnsupportedError(sentence, hint="Tensor.buffer(0) gives the bytes.")
    return item


def dtype_of(item: np.dtype[Any]) -> Dtype:
    """Return the element type that a numpy type holds.

    Raises:
        UnsupportedError: There is none.
    """
    dtype = _DTYPE_OF.get(item.newbyteorder("="))
    if dtype is None:
        valid = ", ".join(known.name for known in _DTYPE_OF)
        sentence = f"An array's type must be one that the format has, not {item}"
        raise UnsupportedError(sentence, hint=f"Valid are: {valid}.")
    return dtype
