"""What the vector core's ops mean on numpy values: the functions of `ir/numerics`, on valid regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..dtypes import DType
from ..numerics import functions, reductions
from .meaning_tensors import fresh, whole
from .values import TensorValue, TileValue

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from ..dtypes import SimpleDType
    from ..numerics.functions import Binary, Unary
    from ..numerics.reductions import Reduction
    from .rules_reduce import Line
    from .values import Evaluation


def on_tensors(meaning: Callable[..., TileValue]) -> Callable[..., TensorValue]:
    """Return the meaning of an op on whole tensors, which is that on tiles of them."""

    def lifted(run: Evaluation, *values: Any) -> TensorValue:
        tiles = (whole(each) if isinstance(each, TensorValue) else each for each in values)
        return fresh(meaning(run, *tiles))

    return lifted


def simple(tile: TileValue) -> SimpleDType:
    """Return the dtype of a tile, which no type rule lets be compound."""
    return cast("SimpleDType", tile.dtype)


def check_extents(run: Evaluation, one: TileValue, other: TileValue) -> None:
    """Refuse two tiles that turn out to be valid in different extents."""
    if one.codes.shape != other.codes.shape:
        message = (
            f"the operands must be valid in the same extents, not in {list(one.codes.shape)} and "
            f"{list(other.codes.shape)}"
        )
        raise run.site.value_error(message)


def unary(
    function: Unary, run: Evaluation, x: TileValue, tmp: TileValue | None = None
) -> TileValue:
    """Apply a function to each element."""
    del run, tmp
    return TileValue(functions.unary(function, x.codes, simple(x)), x.dtype)


def binary(function: Binary, run: Evaluation, a: TileValue, b: TileValue) -> TileValue:
    """Apply a function to pairs of elements."""
    check_extents(run, a, b)
    return TileValue(functions.binary(function, a.codes, b.codes, simple(a)), a.dtype)


def scalar(function: Binary, run: Evaluation, a: TileValue, b: float) -> TileValue:
    """Apply a function to each element and one scalar."""
    del run
    other = functions.scalar_code(b, simple(a))
    return TileValue(functions.binary(function, a.codes, other, simple(a)), a.dtype)


def compare(run: Evaluation, a: TileValue, b: TileValue) -> TileValue:
    """Compare pairs of elements."""
    check_extents(run, a, b)
    return TileValue(functions.compare(_kind(run), a.codes, b.codes, simple(a)), DType.Bool)


def compare_scalar(run: Evaluation, a: TileValue, b: float) -> TileValue:
    """Compare each element with one scalar."""
    other = functions.scalar_code(b, simple(a))
    return TileValue(functions.compare(_kind(run), a.codes, other, simple(a)), DType.Bool)


def _kind(run: Evaluation) -> functions.Comparison:
    found = run.site.row.attribute(run.site.kwargs, "cmp_type")
    assert isinstance(found, functions.Comparison), found
    return found


def select(run: Evaluation, mask: TileValue, a: TileValue, b: TileValue) -> TileValue:
    """Take elements of `a` where the mask is set, else of `b`, bit for bit."""
    check_extents(run, mask, a)
    check_extents(run, a, b)
    return TileValue(np.where(mask.codes != 0, a.codes, b.codes), a.dtype)


def select_scalar(run: Evaluation, mask: TileValue, a: TileValue, b: float) -> TileValue:
    """Take elements of `a` where the mask is set, else the scalar."""
    check_extents(run, mask, a)
    other: npt.NDArray[Any] = functions.scalar_code(b, simple(a))
    return TileValue(np.where(mask.codes != 0, a.codes, other), a.dtype)


def reduce(
    line: Line, function: Reduction, run: Evaluation, x: TileValue, tmp: TileValue | None = None
) -> TileValue:
    """Reduce each row, or each column, to one element."""
    del tmp
    if not x.codes.shape[line]:
        message = f"x must have valid elements to reduce, not the extents {list(x.codes.shape)}"
        raise run.site.value_error(message)
    return TileValue(reductions.reduce(function, x.codes, simple(x), int(line)), x.dtype)


def expand(
    line: Line, function: Binary, run: Evaluation, x: TileValue, vec: TileValue
) -> TileValue:
    """Apply a function to each element and the one that stands for its row or column."""
    wanted = list(x.codes.shape)
    wanted[line] = 1
    if list(vec.codes.shape) != wanted:
        message = f"vec must be valid in {wanted}, not in {list(vec.codes.shape)}"
        raise run.site.value_error(message)
    return TileValue(functions.binary(function, x.codes, vec.codes, simple(x)), x.dtype)
