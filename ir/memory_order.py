"""The order of a tensor's elements in global memory, where strides say so, and arrays in that order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .errors import InputError
from .placement import axis_positions, packed_stride
from .types import TensorLayout, TensorType, constant_dims

if TYPE_CHECKING:
    import numpy.typing as npt

_STRIPE: Final = 16
"""Neighbours in memory that are turned at once: so many lines of the other order stay in the cache."""

_AT_LEAST: Final = 1 << 14
"""Elements of a stripe that are worth a step in Python."""


def tensor_shape(type_: TensorType, what: str) -> tuple[int, ...]:
    """Return a tensor's extents; `what` names the tensor in the error.

    Raises:
        InputError: When an extent is not a constant.
    """
    shape = constant_dims(type_.shape)
    if shape is None:
        message = f"{what} must have constant dimensions to be run, not symbolic ones"
        raise InputError(message)
    return shape


def memory_strides(type_: TensorType) -> tuple[int, ...] | None:
    """Return the elements of memory per step of each axis, or None where order is the given order."""
    shape = tensor_shape(type_, "The tensor")
    stride = constant_dims(type_.stride) or ()
    is_boxed = type_.layout.is_mx or type_.layout is TensorLayout.NZ
    if is_boxed or (type_.layout is TensorLayout.ND and not stride):
        return None
    axis_positions(type_.layout, shape, stride)  # refuses what gives two elements one place
    return tuple(stride) or packed_stride(type_.layout, shape)


def buffer_items(type_: TensorType) -> int:
    """Return how many elements of memory a tensor spans, gaps of its strides included."""
    shape = tensor_shape(type_, "The tensor")
    strides = memory_strides(type_)
    if strides is None:
        return math.prod(shape)
    if 0 in shape:
        return 0
    return sum((dim - 1) * step for dim, step in zip(shape, strides, strict=True)) + 1


def in_memory(
    codes: npt.NDArray[Any], type_: TensorType, strides: tuple[int, ...], *, copied: bool
) -> npt.NDArray[Any]:
    """Return codes as memory has them, flat, zero in gaps."""
    items = buffer_items(type_)
    if items != codes.size:
        buffer = np.zeros(items, codes.dtype)
        strided(buffer, codes.shape, strides)[...] = codes
        return buffer
    order = sorted(range(codes.ndim), key=lambda axis: strides[axis], reverse=True)
    moved = codes.transpose([*order])
    if moved.flags.c_contiguous and not copied:
        return moved.reshape(-1)
    buffer = np.empty(moved.shape, codes.dtype)
    lines = max(1, moved.size // max(1, moved.shape[-1]))
    step = max(_STRIPE, -(-_AT_LEAST // lines))
    for first in range(0, moved.shape[-1], step):
        buffer[..., first : first + step] = moved[..., first : first + step]
    return buffer.reshape(-1)


def strided(
    buffer: npt.NDArray[Any], shape: tuple[int, ...], strides: tuple[int, ...]
) -> npt.NDArray[Any]:
    """Return the elements of memory of a tensor in its shape, sharing memory."""
    return np.ndarray(shape, buffer.dtype, buffer, 0, [step * buffer.itemsize for step in strides])
