"""Type rules of reductions of rows and columns, and of operands that stand for all of them.

A column `[M, 1]` holds one element for each row, a row `[1, N]` one for each column.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from ..expr import index
from ..numerics.functions import NUMBERS
from .checks import same_dims, show_dims
from .rules_vector import array, check_same_dtype, check_scratch, made, valid_of

if TYPE_CHECKING:
    from ..numerics.functions import Binary
    from ..types import Dims
    from .row import CallSite
    from .rules_vector import Array

_RANK = 2


class Line(IntEnum):
    """A line of a matrix, by the axis along which it runs."""

    COLUMN = 0
    ROW = 1

    def reduced(self, dims: Dims) -> Dims:
        """Return the extents of a matrix with each such line as one element."""
        one = index(1)
        return (dims[0], one) if self is Line.ROW else (one, dims[1])


def infer_reduce(line: Line, site: CallSite) -> Array:
    """Return the type of one element for each row, `[M, 1]`, or for each column, `[1, N]`."""
    x = array(site, 0, NUMBERS, rank=_RANK)
    check_scratch(site, 1, x.dtype)
    return made(x, line.reduced(x.shape), line.reduced(valid_of(x)), x.dtype)


def infer_expand(line: Line, function: Binary, site: CallSite) -> Array:
    """Return the type of a function of each element and of the one that stands for its line."""
    x = array(site, 0, function.dtypes, rank=_RANK)
    vec = array(site, 1, function.dtypes, rank=_RANK)
    check_same_dtype(site, 0, 1)
    wanted, valid = line.reduced(x.shape), line.reduced(valid_of(x))
    if not same_dims(vec.shape, wanted):
        message = f"vec must be {show_dims(wanted)}, not {show_dims(vec.shape)}"
        raise site.value_error(message)
    if not same_dims(valid_of(vec), valid):
        message = f"vec must be valid in {show_dims(valid)}, not in {show_dims(valid_of(vec))}"
        raise site.value_error(message)
    return made(x, x.shape, valid_of(x), x.dtype)
