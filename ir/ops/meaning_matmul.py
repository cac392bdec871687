"""What the matmuls without scales mean on numpy values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..numerics.plain_matmul import matmul_plain, result_dtype
from .meaning_vector import simple
from .values import TileValue

if TYPE_CHECKING:
    from typing import Any

    import numpy.typing as npt

    from .values import Evaluation


def multiply(run: Evaluation, lhs: TileValue, rhs: TileValue) -> TileValue:
    """Multiply two tiles, from +0."""
    return _product(run, lhs, rhs, None)


def multiply_acc(
    run: Evaluation, acc: TileValue, lhs: TileValue, rhs: TileValue, init: bool = False
) -> TileValue:
    """Multiply two tiles, from what the accumulator holds, or from +0 where the condition holds."""
    return _product(run, lhs, rhs, None if init else acc.codes)


def multiply_bias(run: Evaluation, lhs: TileValue, rhs: TileValue, bias: TileValue) -> TileValue:
    """Multiply two tiles, from a row of biases."""
    return _product(run, lhs, rhs, bias.codes)


def _product(
    run: Evaluation, lhs: TileValue, rhs: TileValue, start: npt.NDArray[Any] | None
) -> TileValue:
    left, right = _matrix(lhs.codes), _matrix(rhs.codes)
    if left.shape[1] != right.shape[0]:
        message = (
            "the valid K must be the same on both sides, but lhs has "
            f"{left.shape[1]} and rhs has {right.shape[0]}"
        )
        raise run.site.value_error(message)
    made = matmul_plain(
        left,
        right,
        a_dtype=simple(lhs),
        b_dtype=simple(rhs),
        start=None if start is None else _matrix(start),
        sum=run.sum,
    )
    ones = (1,) * (lhs.codes.ndim - 2)
    return TileValue(made.reshape(ones + made.shape), result_dtype(lhs.dtype))


def _matrix(codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a matrix without the axes of one element before it."""
    return codes.reshape(codes.shape[-2], codes.shape[-1])
