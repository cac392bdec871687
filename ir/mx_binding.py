"""Launch inputs of compound dtypes: block-scaled arrays, grouped along the axis that their use needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from .errors import InputError
from .given import article, describe_given, show_shape
from .mx_types import Side
from .numerics.mxarray import MXArray
from .types import TensorLayout, TensorType, constant_dims

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .core import Function
    from .dtypes import DType

COMPOUND_PARAMS = "compound_params"
"""The attribute of a function whose compound tensors stand as planes: the parameter of the elements,
with the name of that of the scales, or None, and the dtype that both are of."""


@dataclass(frozen=True)
class CompoundParam:
    """A tensor of a compound dtype that a function takes as its planes.

    Attributes:
        name: The parameter of its elements; callers give a block-scaled array under this name.
        scale: The parameter of its scales; None where nobody reads them.
        dtype: What elements and scales are together.
    """

    name: str
    scale: str | None
    dtype: DType


def compound_params_of(function: Function) -> dict[str, CompoundParam]:
    """Return, by name, the parameters of a function that stand for compound tensors as planes."""
    noted = cast("Mapping[str, tuple[str | None, DType]]", function.attrs.get(COMPOUND_PARAMS, {}))
    return {name: CompoundParam(name, *parts) for name, parts in noted.items()}


def compound_params_attr(params: Mapping[str, CompoundParam]) -> dict[str, object]:
    """Return the attributes that say which parameters stand for compound tensors as planes."""
    noted = {param.name: [param.scale, param.dtype] for param in params.values()}
    return {COMPOUND_PARAMS: noted} if noted else {}


def axis_of_scales(layout: TensorLayout) -> int:
    """Return the grouped axis of the operand whose scales are in `layout`."""
    return (Side.LEFT if layout is TensorLayout.MX_A_ZZ else Side.RIGHT).grouped_axis


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
