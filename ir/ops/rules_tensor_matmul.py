"""Type rules of the matmuls of whole tensors: of compound dtypes, and of the cube's plain ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from ..errors import IRTypeError
from ..expr import ScalarType, index
from ..numerics.plain_matmul import check_pair, result_dtype
from ..types import TensorType
from . import rules_tensor
from .checks import operand_type, same_dim, same_dims, show_dims
from .rules_memory import ACC_STORE_DTYPES
from .rules_vector import check_whole_tensor

if TYPE_CHECKING:
    from ..types import Dims
    from .row import CallSite

_RANK = 2
TRANSPOSED = ("a_trans", "b_trans")
"""The attributes that say that an operand is given as [K, M] or as [N, K]."""


def infer_matmul(site: CallSite) -> TensorType:
    """Return the product of two matrices, in `out_dtype` or as the cube adds it up."""
    if _has_compounds(site, 0):
        return rules_tensor.infer_matmul(site)
    if site.row.attribute(site.kwargs, "c_matrix_nz"):
        message = "c_matrix_nz must be False: the result is row-major"
        raise site.value_error(message)
    shape, dtype = _product(site, 0)
    wanted: DType = site.row.attribute(site.kwargs, "out_dtype") or dtype
    if wanted not in ACC_STORE_DTYPES[dtype]:
        names = ", ".join(each.name for each in ACC_STORE_DTYPES[dtype])
        message = f"out_dtype must be one of {names}, not {wanted.name}"
        raise site.type_error(message, "those are what leaves the accumulator")
    return TensorType(shape, wanted)


def infer_matmul_acc(site: CallSite) -> TensorType:
    """Return the sum of acc and the product of two matrices."""
    if _has_compounds(site, 1):
        if len(site.args) > 3:
            message = "init_cond must be left out where dtypes are compound"
            hint = "start from pl.matmul, and go on with pl.matmul_acc"
            raise site.value_error(message, hint)
        return rules_tensor.infer_matmul_acc(site)
    shape, dtype = _product(site, 1)
    _check_addend(site, 0, shape, dtype)
    if len(site.args) > 3:
        condition = site.args[3].type
        assert isinstance(condition, ScalarType), condition
        if condition.dtype is not DType.Bool:
            found = condition.dtype.name
            message = f"init_cond must be a comparison, of Bool, not a scalar of {found}"
            raise site.type_error(message, "pl.matmul_acc(acc, a, b, init_cond=(k == 0))")
    return TensorType(shape, dtype)


def infer_matmul_bias(site: CallSite) -> TensorType:
    """Return the product of two matrices, started from a row of biases."""
    shape, dtype = _product(site, 0)
    _check_addend(site, 2, (index(1), shape[1]), dtype)
    return TensorType(shape, dtype)


def _has_compounds(site: CallSite, first: int) -> bool:
    return any(
        operand_type(site, position, TensorType).dtype.is_compound()
        for position in (first, first + 1)
    )


def _product(site: CallSite, first: int) -> tuple[Dims, DType]:
    """Return shape and dtype of the product of two operands of plain dtypes."""
    sides: list[Dims] = []
    dtypes: list[DType] = []
    for name, flag, position in zip(("lhs", "rhs"), TRANSPOSED, (first, first + 1), strict=True):
        tensor = operand_type(site, position, TensorType)
        if len(tensor.shape) != _RANK:
            message = f"{name} must have rank {_RANK}, not {len(tensor.shape)}"
            raise site.value_error(message)
        check_whole_tensor(site, name, tensor)
        is_turned = flag in site.row.by_name and site.row.attribute(site.kwargs, flag)
        sides.append(tensor.shape[::-1] if is_turned else tensor.shape)
        dtypes.append(tensor.dtype)
    try:
        check_pair(*dtypes)
    except IRTypeError as error:
        hint = "pl.cast converts a tensor; MX elements are multiplied by pl.matmul_mx"
        raise site.type_error(error.message, hint) from error
    left, right = sides
    if same_dim(left[1], right[0]) is False:
        message = (
            "K must be the same on both sides, but lhs is "
            f"{show_dims(left)} and rhs is {show_dims(right)}"
        )
        hint = "a_trans=True takes lhs as [K, M], b_trans=True takes rhs as [N, K]"
        raise site.value_error(message, hint)
    return (left[0], right[1]), result_dtype(dtypes[0])


def _check_addend(site: CallSite, position: int, wanted: Dims, dtype: DType) -> None:
    name, addend = site.row.operands[position].name, operand_type(site, position, TensorType)
    if addend.dtype is not dtype:
        message = f"{name} must hold {dtype.name}, not {addend.dtype.name}"
        raise site.type_error(message)
    if not same_dims(addend.shape, wanted):
        message = f"{name} must be {show_dims(wanted)}, not {show_dims(addend.shape)}"
        raise site.value_error(message)
    check_whole_tensor(site, name, addend)
