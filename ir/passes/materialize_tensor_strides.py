"""MaterializeTensorStrides: every tensor says its strides.

A tensor without strides is packed in the order of its layout. A tensor that was cut into boxes, of MX
scales or in NZ, is packed row-major over its rank-5 shape like any other; one in NZ that was not has
no strides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import IRValueError, Span
from ..ops.checks import is_nz_blocked
from ..placement import packed_stride
from ..properties import IRProperty
from ..types import PadValue, TensorLayout, TensorType, TensorView, TupleType, constant_dims
from ..visitor import IRMutator
from .base import FunctionPass

if TYPE_CHECKING:
    from ..core import AssignStmt, Function, Stmt
    from ..expr import Type


@dataclass(frozen=True)
class MaterializeTensorStrides(FunctionPass):
    """Fill in the strides of every tensor type in a function."""

    name = "MaterializeTensorStrides"
    required = frozenset(
        {
            IRProperty.SSAForm,
            IRProperty.NormalizedStmtStructure,
            IRProperty.TileOps2D,
            IRProperty.TileMemoryInferred,
        }
    )
    produced = frozenset({IRProperty.TensorViewCanonical})

    def transform_function(self, function: Function) -> Function:
        """Fill in the strides of one function.

        Raises:
            IRValueError: For a tensor of symbolic shape.
        """
        return _Strides().visit_function(function)


class _Strides(IRMutator):
    def __init__(self) -> None:
        super().__init__()
        self._span = Span.unknown()

    def visit_function(self, op: Function) -> Function:
        self._span = op.span
        return super().visit_function(op)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        self._span = op.span
        return self.visit_children(op)

    def visit_type(self, type_: Type) -> Type:
        match type_:
            case TupleType():
                types = tuple(self.visit_type(t) for t in type_.types)
                same = all(a is b for a, b in zip(types, type_.types, strict=True))
                return type_ if same else TupleType(types)
            case TensorType() if type_.layout is TensorLayout.NZ and not is_nz_blocked(type_):
                return type_
            case TensorType() if not type_.stride:
                return self._with_strides(type_)
            case _:
                return type_

    def _with_strides(self, type_: TensorType) -> TensorType:
        shape = constant_dims(type_.shape)
        if shape is None:
            message = (
                "The strides of a tensor must follow from constant dimensions, not symbolic ones"
            )
            raise IRValueError(message, self._span)
        stride, pad = packed_stride(type_.layout, shape), PadValue.null
        if type_.tensor_view is not None:
            pad = type_.tensor_view.pad
        view = TensorView(stride, type_.layout, type_.valid_shape, pad)
        return type(type_)(type_.shape, type_.dtype, type_.memref, view)
