"""The reductions of the vector core: along one axis, in ascending order, on codes."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes.formats import FLOAT_FORMATS
from ..errors import IRValueError
from .functions import FLOATS, NUMBERS, codes_of, codes_of_keys, numbers, ordered_keys

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import SimpleDType
    from .functions import Codes


class Reduction(Enum):
    """What is made of all elements along an axis."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"


def reduce(function: Reduction, codes: Codes, dtype: SimpleDType, axis: int) -> Codes:
    """Reduce an axis to one element.

    A sum and a product of floats begin with the first element and take the others in ascending
    order, rounded to float32 at each step and to the dtype at the end; those of integers wrap in
    their own width. A NaN makes the maximum and the minimum NaN; -0 lies below +0.

    Args:
        function: What to make.
        codes: Codes of `dtype`.
        dtype: A number that the vector core computes with.
        axis: The axis to reduce; it stays, with one element.

    Returns:
        Codes of `dtype`.

    Raises:
        IRValueError: When the axis has no element.
    """
    assert dtype in NUMBERS, dtype
    if not codes.shape[axis]:
        message = "What is reduced must have at least one valid element"
        raise IRValueError(message)
    if function in (Reduction.MAX, Reduction.MIN):
        return _extreme(function, codes, dtype, axis)
    x = numbers(codes, dtype)
    step = np.add if function is Reduction.SUM else np.multiply
    with np.errstate(all="ignore"):
        # `accumulate` works from one element to the next, where `reduce` may add in pairs.
        steps: npt.NDArray[Any] = step.accumulate(x, axis=axis, dtype=x.dtype)
    return codes_of(np.take(steps, [-1], axis=axis), dtype)


def _extreme(function: Reduction, codes: Codes, dtype: SimpleDType, axis: int) -> Codes:
    (keys,) = ordered_keys((codes,), dtype)
    take = np.max if function is Reduction.MAX else np.min
    found = take(keys, axis=axis, keepdims=True)
    if dtype in FLOATS:
        nan = FLOAT_FORMATS[dtype].nan_code or 0
        found = np.where((keys == nan).any(axis=axis, keepdims=True), np.int64(nan), found)
    return codes_of_keys(found, dtype)
