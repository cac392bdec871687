"""MaterializeTensorStrides: every tensor says its strides.

A tensor without strides is packed in the order of its layout. A blocked MX tensor is packed
row-major over its rank-5 shape like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import IRValueError
from ..placement import packed_stride
from ..properties import IRProperty
from ..types import TensorLayout, TensorType, TensorView, TupleType, constant_dims
from ..visitor import IRMutator
from .base import FunctionPass

if TYPE_CHECKING:
    from ..core import Function
    from ..expr import Type


@dataclass(frozen=True)
class MaterializeTensorStrides(FunctionPass):
    """Fill in the strides of every tensor type in a function."""

    name = "MaterializeTensorStrides"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.TileMemoryInferred}
    )
    produced = frozenset({IRProperty.TensorViewCanonical})

    def transform_function(self, function: Function) -> Function:
        """Fill in the strides of one function."""
        return _Strides().visit_function(function)


class _Strides(IRMutator):
    def visit_type(self, type_: Type) -> Type:
        match type_:
            case TupleType():
                types = tuple(self.visit_type(t) for t in type_.types)
                same = all(a is b for a, b in zip(types, type_.types, strict=True))
                return type_ if same else TupleType(types)
            case TensorType() if not type_.stride:
                return _with_strides(type_)
            case _:
                return type_


def _with_strides(type_: TensorType) -> TensorType:
    shape = constant_dims(type_.shape)
    if shape is None:
        message = "The strides of a tensor must follow from constant dimensions, not symbolic ones"
        raise IRValueError(message)
    if type_.layout is TensorLayout.NZ:
        return type_
    pad = type_.tensor_view.pad if type_.tensor_view else None
    view = TensorView(packed_stride(type_.layout, shape), type_.layout, type_.valid_shape)
    if pad is not None:
        view = TensorView(view.stride, view.layout, view.valid_shape, pad)
    return type(type_)(type_.shape, type_.dtype, type_.memref, view)
