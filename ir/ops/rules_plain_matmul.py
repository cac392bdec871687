"""Type rules of the matmuls without scales: of matrices, and of a row with a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from ..errors import IRTypeError
from ..expr import ScalarType, index
from ..numerics.plain_matmul import K_STEP, check_pair, result_dtype
from ..types import AccPhase, TileType
from .checks import operand_type
from .rules_matmul import (
    accumulator,
    check_acc,
    check_bias,
    check_extents,
    check_row,
    check_space,
    matrix,
)

if TYPE_CHECKING:
    from .row import CallSite

_RANK = 2
_BOX = 16


def infer_matmul(site: CallSite) -> TileType:
    """Return the accumulator of lhs times rhs."""
    return _product_type(site, first=0)


def infer_matmul_acc(site: CallSite) -> TileType:
    """Return the accumulator after the product of lhs and rhs was added to it, or replaced it."""
    product = _product_type(site, first=1)
    check_acc(site, product)
    if len(site.args) > 3:
        found = site.args[3].type
        assert isinstance(found, ScalarType), found
        if found.dtype is not DType.Bool:
            message = f"init_cond must be a comparison, of Bool, not a scalar of {found.dtype.name}"
            raise site.type_error(message, "matmul_acc(acc, a, b, init_cond=(k == 0))")
    return product


def infer_matmul_bias(site: CallSite) -> TileType:
    """Return the accumulator of lhs times rhs, started from a row of biases."""
    product = _product_type(site, first=0)
    check_bias(site, 2, product)
    return product


def _product_type(site: CallSite, *, first: int) -> TileType:
    lhs, rhs = (operand_type(site, position, TileType) for position in (first, first + 1))
    for position in (first, first + 1):
        check_space(site, position)
    try:
        check_pair(lhs.dtype, rhs.dtype)
    except IRTypeError as error:
        hint = (
            "pl.cast converts a tile in Vec; one that leaves Acc becomes what "
            "pl.move(…, target_memory=pl.Mem.Mat, dtype=…) says, else it stays FP32; "
            "MX elements are multiplied by pl.matmul_mx"
        )
        raise site.type_error(error.message, hint) from error
    ones = (index(1),) * (len(lhs.shape) - _RANK)
    lhs, rhs = matrix(site, "lhs", lhs), matrix(site, "rhs", rhs)
    is_gemv = site.row.name.startswith("tile.gemv")
    multiples = {"M": 1 if is_gemv else _BOX, "K": K_STEP[lhs.dtype], "N": _BOX}
    check_extents(site, lhs, rhs, multiples)
    if is_gemv:
        check_row(site, first, lhs)
        check_phase(site)
    return accumulator(ones, lhs, rhs, result_dtype(lhs.dtype))


def read_phase(given: object) -> object:
    """Return the name of a phase that is given by name or as a member of the enumeration."""
    return given.value if isinstance(given, AccPhase) else given


def check_phase(site: CallSite) -> None:
    """Refuse a phase of an accumulation that has no name."""
    phase = site.row.attribute(site.kwargs, "acc_phase")
    names = [each.value for each in AccPhase]
    if phase not in names:
        known = ", ".join(map(repr, names))
        message = f"acc_phase must be one of {known}, not {phase!r}"
        raise site.value_error(message)
