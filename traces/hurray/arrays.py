"""numpy arrays, those of ml_dtypes among them, as tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .numpy_types import dtype_of
from .packing import pack_codes
from .tensor import Tensor

if TYPE_CHECKING:
    import numpy.typing as npt

    from .sections import Statistics

_BYTE = 8


def from_numpy(array: npt.ArrayLike, *, statistics: Statistics | None = None) -> Tensor:
    """Return a row-major tensor with the elements of an array.

    A contiguous little-endian array of whole bytes is not copied. Elements of less than a byte,
    which numpy keeps one a byte, are packed.

    Args:
        array: Of a numpy or ml_dtypes type that the format has.
        statistics: What was computed of the values.

    Raises:
        UnsupportedError: The format has no such type.
    """
    given: npt.NDArray[Any] = np.asarray(array)
    dtype = dtype_of(given.dtype)
    # A scalar must stay one: ascontiguousarray would make it a vector.
    whole = np.ascontiguousarray(given).reshape(given.shape)
    if dtype.bit_width < _BYTE:
        data = pack_codes(whole.view(np.uint8), dtype.bit_width)
    else:
        little = whole.astype(whole.dtype.newbyteorder("<"), copy=False)
        data = little.reshape(-1).view(np.uint8)
    return Tensor(data, dtype, given.shape, statistics=statistics)


def asarray(given: Tensor | npt.ArrayLike) -> Tensor:
    """Return a tensor as it is, and anything else as :func:`from_numpy` does.

    Raises:
        UnsupportedError: The format has no such type.
    """
    return given if isinstance(given, Tensor) else from_numpy(given)
