"""The product of two block-scaled arrays in plain numpy, and which formats have one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import IRTypeError, IRValueError
from . import reference, two_level
from .block_format import block_format_of
from .elements import Summation
from .mxarray import MXArray

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..dtypes import DType


def matmul_arrays(
    a: MXArray,
    b: MXArray,
    *,
    acc: npt.NDArray[np.float32] | None = None,
    sum: Summation | str = Summation.GROUP,  # noqa: A002 - the public name of the choice
) -> npt.NDArray[np.float32]:
    """Multiply two block-scaled matrices, as `numerics.matmul` says, in plain numpy.

    Args:
        a: `[M, K]`, grouped along its last axis.
        b: `[K, N]`, grouped along its first axis.
        acc: What the accumulator starts from, float32 `[M, N]`; by default +0.
        sum: `"group"` or `"sequential"`: whether a group's products are added up exactly before
            they are rounded, or each is rounded and added for itself, k ascending.

    Returns:
        float32 `[M, N]`; every NaN is 0x7FC00000.

    Raises:
        IRTypeError: An operand is no MXArray, or the formats do not multiply.
        IRValueError: An operand is no matrix or grouped along another axis, K differs, or there is
            no such order.
    """
    order = Summation.of(sum)
    check_operands(a, b)
    block = block_format_of(a.dtype).block
    if a.tensor_scale is not None and b.tensor_scale is not None:
        return two_level.matmul_groups(
            a.elements,
            a.scales,
            b.elements,
            b.scales,
            element=a.dtype.element,
            block=block,
            tensor_scale=(a.tensor_scale, b.tensor_scale),
            acc=acc,
            sum=order,
        )
    return reference.matmul_mx(
        a.elements,
        a.scales,
        b.elements,
        b.scales,
        a_dtype=a.dtype.element,
        b_dtype=b.dtype.element,
        acc=acc,
        sum=order,
        group=block,
    )


def check_formats(left: DType, right: DType) -> None:
    """Refuse two formats that do not multiply.

    Raises:
        IRTypeError: One is not block-scaled, or they are neither one format nor both of E8M0 scales
            over groups of one size.
    """
    a, b = block_format_of(left), block_format_of(right)
    both_plain = not a.has_tensor_scale and not b.has_tensor_scale
    if left is not right and not (both_plain and a.block == b.block):
        message = (
            "The operands must both have E8M0 scales over groups of one size, or be of one format, "
            f"not {left.name} and {right.name}"
        )
        raise IRTypeError(message)


def check_operands(a: object, b: object) -> None:
    """Refuse operands that have no product.

    Raises:
        IRTypeError: An operand is no MXArray, or the formats do not multiply.
        IRValueError: An operand is no matrix or grouped along another axis, or K differs.
    """
    for operand, what, axis in ((a, "The left operand", 1), (b, "The right operand", 0)):
        if not isinstance(operand, MXArray):
            message = f"{what} must be an MXArray, not {type(operand).__name__}"
            raise IRTypeError(message)
        if operand.elements.ndim != 2 or operand.axis != axis:
            message = (
                f"{what} must be a matrix grouped along axis {axis}, not of shape "
                f"{list(operand.shape)} grouped along axis {operand.axis}"
            )
            raise IRValueError(message)
    assert isinstance(a, MXArray)
    assert isinstance(b, MXArray)
    check_formats(a.dtype, b.dtype)
    if a.shape[1] != b.shape[0] or a.shape[1] == 0:
        message = f"The operands must share a K of at least 1, not {a.shape[1]} and {b.shape[0]}"
        raise IRValueError(message)
