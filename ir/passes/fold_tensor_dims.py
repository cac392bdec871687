"""FoldTensorDims: the extent that `pl.tensor.dim` asks for is a constant, and what is made of it too."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..dtypes import Index
from ..dynamic_dims import ConstantDims
from ..expr import ConstInt
from ..types import TensorType, constant_dim
from ..verification.walk import all_vars
from .base import FunctionPass

if TYPE_CHECKING:
    from ..core import AssignStmt, Function
    from ..expr import Call, Expr, Var

DIM = "tensor.dim"


@dataclass(frozen=True)
class FoldTensorDims(FunctionPass):
    """Put constants in the place of extents, and of names that stand for one of them only."""

    name = "FoldTensorDims"

    def transform_function(self, function: Function) -> Function:
        """Fold the extents of one function; one that is not constant stays."""
        return _Folder(function).visit_function(function)


class _Folder(ConstantDims):
    def __init__(self, function: Function) -> None:
        super().__init__({})
        self._definitions: Counter[Var] = Counter(all_vars(function))

    def visit_call(self, op: Call) -> Expr:
        """Return the constant that an extent is."""
        done: Call = self.visit_children(op)
        if done.op.name != DIM:
            return done
        tensor, axis = done.args[0].type, done.kwargs["axis"]
        assert isinstance(tensor, TensorType), tensor
        assert isinstance(axis, int), axis
        extent = constant_dim(tensor.shape[axis])
        return done if extent is None else ConstInt(extent, Index, op.span)

    def visit_assign_stmt(self, op: AssignStmt) -> AssignStmt:
        """Rewrite an assignment, and note its name if it is always the same constant."""
        done: AssignStmt = self.visit_children(op)
        value = done.value
        folded = value is not op.value and self._definitions[op.var] == 1
        if folded and isinstance(value, ConstInt):
            self.sizes[op.var] = value.value
        return done
