"""Launch inputs of compound dtypes: block-scaled arrays, grouped along the axis that their use needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import InputError
from .given import article, describe_given, show_shape
from .numerics.mxarray import MXArray
from .types import constant_dims

if TYPE_CHECKING:
    from .types import TensorType


def bind_compound(name: str, type_: TensorType, given: Any, axis: int | None) -> MXArray:
    """Return a block-scaled array as the argument for a tensor of a compound dtype.

    Args:
        name: The parameter, for the error.
        type_: Its type.
        given: What the caller handed in.
        axis: The axis along which its use needs the groups; None where no matmul takes it.

    Raises:
        InputError: It is missing, no MXArray, or of another dtype, shape or axis; or the parameter's
            own shape is not constant.
    """
    shape = constant_dims(type_.shape)
    if shape is None:
        message = f"{name} must have constant dimensions to be run, not symbolic ones"
        raise InputError(message)
    dtype = type_.dtype
    where = "" if axis is None else f", grouped along axis {axis}"
    wanted = (
        f"{name} must be {article(dtype)} {dtype.name} array of shape {show_shape(shape)}{where}"
    )
    along = "" if axis is None else f", axis={axis}"
    hint = f"numerics.quantize(x, pl.{dtype.name}{along}) makes it"
    if given is None:
        message = f"{wanted}, but it was not given"
        raise InputError(message, hint=hint)
    if not isinstance(given, MXArray):
        message = f"{wanted}, not {describe_given(given)}"
        raise InputError(message, hint=hint)
    if given.dtype is not dtype:
        message = f"{wanted}, not of {given.dtype.name}"
        raise InputError(message, hint=hint)
    if given.shape != shape:
        message = f"{wanted}, not of shape {show_shape(given.shape)}"
        raise InputError(message, hint=hint)
    if axis is not None and given.axis != axis:
        message = f"{wanted}, not along axis {given.axis}"
        raise InputError(message, hint=hint)
    return given
