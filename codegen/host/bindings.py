"""The parameters of a function, and which of them its results are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...ir.core import (
    Function,
    ParamDirection,
)
from ...ir.dtypes.formats import FLOAT_FORMATS
from ...ir.errors import IRValueError
from ...ir.expr import ScalarType
from ...ir.numerics.functions import FLOATS
from ...ir.types import TensorType
from ..select.places import constant
from ..tensors import Direction, Layout, Param, ParamKind

if TYPE_CHECKING:
    from ...ir.dtypes import SimpleDType

_DIRECTION = {
    ParamDirection.In: Direction.IN,
    ParamDirection.Out: Direction.OUT,
    ParamDirection.InOut: Direction.INOUT,
}


@dataclass(frozen=True)
class Callee:
    """A kernel as its callers see it.

    Attributes:
        index: Its number in the executable.
        function: The function.
        returned: For each result, the number of the parameter whose tensor it is, or None.
    """

    index: int
    function: Function
    returned: tuple[int | None, ...]


def params_of(function: Function) -> tuple[Param, ...]:
    """Return the parameters of a function as written, before any pass, for the executable.

    Raises:
        IRTypeError: For a tensor of symbolic shape.
        IRValueError: For a parameter that is neither a tensor nor a scalar that a core can hold.
    """
    made: list[Param] = []
    for var, direction in zip(function.params, function.param_directions, strict=True):
        type_ = var.type
        if isinstance(type_, TensorType):
            dtype = cast("SimpleDType", type_.dtype)
            made.append(
                Param(
                    var.name_hint,
                    ParamKind.TENSOR,
                    dtype.name,
                    dtype.bits,
                    _DIRECTION[direction],
                    constant(type_.shape, f"The shape of {var.name_hint!r}", var.span),
                    Layout(type_.layout.value.lower()),
                )
            )
        elif isinstance(type_, ScalarType):
            if type_.dtype in FLOAT_FORMATS and type_.dtype not in FLOATS:
                names = ", ".join(dtype.name for dtype in FLOATS)
                message = (
                    f"The scalar parameter {var.name_hint!r} must be an integer, a Bool or one of "
                    f"{names} to be compiled, not {type_.dtype.name}"
                )
                raise IRValueError(message, var.span)
            made.append(Param(var.name_hint, ParamKind.SCALAR, type_.dtype.name, type_.dtype.bits))
        else:
            message = f"The parameter {var.name_hint!r} must be a tensor or a scalar to be compiled"
            raise IRValueError(message, var.span)
    return tuple(made)
