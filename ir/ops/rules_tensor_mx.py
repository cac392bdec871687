"""Type rules of the block-scaled matmuls on whole tensors, their scales in tensors of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import DType
from ..dtypes.boxes import GROUP
from ..expr import index
from ..types import MemorySpace, TensorLayout, TensorType, constant_dim
from .checks import operand_type, same_dim, same_dims, show_dims
from .rules_matmul import MULTIPLES, check_pair, scale_shape
from .rules_memory import SCALE_DTYPES, SCALE_LAYOUT, scale_hint
from .rules_tensor import check_addend, check_whole

if TYPE_CHECKING:
    from .row import CallSite

_RANK = 2
_LEFT = SCALE_LAYOUT[MemorySpace.LeftScale]
_RIGHT = SCALE_LAYOUT[MemorySpace.RightScale]


def infer_matmul_mx(site: CallSite) -> TensorType:
    """Return the fresh FP32 product of lhs and rhs."""
    return _product_type(site, first=0)


def infer_matmul_mx_acc(site: CallSite) -> TensorType:
    """Return the fresh FP32 sum of acc and the product of lhs and rhs."""
    product = _product_type(site, first=1)
    check_addend(site, 0, product.shape)
    return product


def infer_matmul_mx_bias(site: CallSite) -> TensorType:
    """Return the fresh FP32 product of lhs and rhs, started from a row of biases."""
    product = _product_type(site, first=0)
    check_addend(site, 4, (index(1), product.shape[1]))
    return product


def _product_type(site: CallSite, *, first: int) -> TensorType:
    lhs, lhs_scale, rhs, rhs_scale = (
        operand_type(site, position, TensorType) for position in range(first, first + 4)
    )
    for position, tensor in ((first, lhs), (first + 2, rhs)):
        name = site.row.operands[position].name
        if len(tensor.shape) != _RANK:
            message = f"{name} must have rank {_RANK}, not {len(tensor.shape)}"
            raise site.value_error(message)
        if tensor.layout.is_mx:
            message = f"{name} must hold elements, not scales in {tensor.layout.name}"
            raise site.value_error(message)
        check_whole(site, name, tensor)
    check_pair(site, lhs.dtype, rhs.dtype)
    for name, dim in (("M", lhs.shape[0]), ("K", lhs.shape[1]), ("N", rhs.shape[1])):
        value = constant_dim(dim)
        if value is not None and value % MULTIPLES[name]:
            message = f"{name} must be a multiple of {MULTIPLES[name]}, not {value}"
            raise site.value_error(message, "fill up with elements of code 0")
    if same_dim(lhs.shape[1], rhs.shape[0]) is False:
        message = (
            "K must be the same on both sides, but lhs has "
            f"{constant_dim(lhs.shape[1])} and rhs has {constant_dim(rhs.shape[0])}"
        )
        raise site.value_error(message)
    _check_scale(site, first + 1, lhs_scale, lhs, _LEFT)
    _check_scale(site, first + 3, rhs_scale, rhs, _RIGHT)
    return TensorType((lhs.shape[0], rhs.shape[1]), DType.Float32)


def _check_scale(
    site: CallSite, position: int, scale: TensorType, data: TensorType, layout: TensorLayout
) -> None:
    name = site.row.operands[position].name
    if scale.dtype not in SCALE_DTYPES:
        message = f"{name} must hold E8M0, not {scale.dtype.name}"
        raise site.type_error(message)
    if scale.layout is not layout:
        message = f"{name} must be in {layout.name}, not in {scale.layout.name}"
        raise site.value_error(message, scale_hint(layout))
    check_whole(site, name, scale)
    wanted = scale_shape(data.shape, k_axis=1 if layout is _LEFT else 0)
    if not same_dims(scale.shape, wanted):
        message = (
            f"{name} must be {show_dims(wanted)}, one scale for {GROUP} elements along K, "
            f"not {show_dims(scale.shape)}"
        )
        raise site.value_error(message)
