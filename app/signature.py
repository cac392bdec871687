"""The parameters and outputs of an executable's entry, as the types that inputs are bound by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ..codegen.executable import Direction, Layout
from ..codegen.scalars.lower import word_of
from ..ir.binding import bind_scalar
from ..ir.core import Function, FunctionType, ParamDirection, SeqStmts
from ..ir.dtypes import DType
from ..ir.errors import InputError
from ..ir.expr import ScalarType, Var
from ..ir.mx_binding import CompoundParam, compound_params_attr
from ..ir.types import TensorLayout, TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..codegen.executable import Buffer, HostProgram, Param
    from ..codegen.host.program import Alias, Allocate
    from ..ir.dtypes import SimpleDType

_DIRECTIONS = {
    Direction.IN: ParamDirection.In,
    Direction.OUT: ParamDirection.Out,
    Direction.INOUT: ParamDirection.InOut,
}


def tensor_type(declared: Param | Buffer | Allocate | Alias) -> TensorType:
    """Return the logical type of a tensor that an executable declares."""
    layout = TensorLayout[Layout(declared.layout).value.upper()]
    return TensorType(declared.shape, DType.from_name(declared.dtype), None, layout)


def entry_function(host: HostProgram) -> Function:
    """Return a function with the parameters of `host` and no body."""
    params: list[tuple[Var, ParamDirection]] = []
    for param in host.params:
        if param.is_tensor:
            params.append((Var(param.name, tensor_type(param)), _DIRECTIONS[param.direction]))
        else:
            dtype = cast("SimpleDType", DType.from_name(param.dtype))
            params.append((Var(param.name, ScalarType(dtype)), ParamDirection.In))
    compounds = {
        each.param: CompoundParam(each.param, each.scale or None, DType.from_name(each.dtype))
        for each in host.compounds
    }
    attrs = compound_params_attr(compounds)
    return Function(host.name, params, (), SeqStmts(()), type=FunctionType.Opaque, attrs=attrs)


def entry_types(host: HostProgram) -> dict[str, TensorType]:
    """Return output name to logical type; a view of a tensor has its own."""
    return {each.name: tensor_type(host.declaration(each.buffer)) for each in host.outputs}


def given_scalars(function: Function, given: Mapping[str, object]) -> dict[str, Any]:
    """Return the scalar arguments, checked; arrays play no part in a timing-only run.

    Raises:
        InputError: For a name that is no parameter's, or a scalar that is missing or does not fit.
    """
    scalars: dict[str, Any] = {}
    names = [param.name_hint for param in function.params]
    for name in given:
        if name not in names:
            message = f"{function.name} has no parameter {name!r}"
            raise InputError(message, hint=f"valid here: {', '.join(names) or 'none'}")
    for param in function.params:
        if isinstance(param.type, ScalarType):
            name = param.name_hint
            scalars[name] = bind_scalar(name, param.type.dtype, given.get(name))
    return scalars


def scalar_words(function: Function, bound: Mapping[str, object]) -> dict[str, int]:
    """Return the scalar arguments of an entry, by name, as the words in which they travel."""
    words: dict[str, int] = {}
    for param in function.params:
        value = bound.get(param.name_hint)
        if isinstance(param.type, ScalarType) and isinstance(value, int | float):
            words[param.name_hint] = word_of(value, param.type.dtype)
    return words
