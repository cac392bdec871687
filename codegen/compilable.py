"""What a function must be like to be compiled, where the language and the interpreter allow more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.core import FunctionType, ReturnStmt, flatten_to_stmts
from ..ir.dynamic_dims import dynamic_dims, way_out
from ..ir.errors import IRTypeError, IRValueError
from ..ir.ops.checks import show_dims
from ..ir.ops.row import describe_type
from ..ir.ops.rules_memory import is_packed
from ..ir.types import TensorLayout, TensorType, TileType
from ..ir.visitor import IRVisitor

if TYPE_CHECKING:
    from ..ir.core import Program
    from ..ir.expr import Expr


def check_dims(program: Program) -> None:
    """Refuse a dimension that only a launch decides.

    Raises:
        IRValueError: With its name.
    """
    for dim in dynamic_dims(program):
        message = f"All dimensions must be constant to be compiled, but {dim.name_hint!r} is a dynamic one"
        hint = f"scalebox.run binds it from its inputs; {way_out(dim.name_hint)}"
        raise IRValueError(message, hint=hint)


def check_returns(program: Program) -> None:
    """Refuse a function that returns before its last statement, and a kernel of other than tensors.

    The instructions and the launches of a function run to its end: one that may leave it earlier has
    no form in them, while the interpreter does leave. What leaves a device is tensors.

    Raises:
        IRValueError: With the place of the return.
    """
    for function in program.functions.values():
        if function.func_type is FunctionType.Inline:
            continue  # it is gone before anything is compiled
        stmts = flatten_to_stmts(function.body)
        finder = _Returns()
        for stmt in stmts:
            finder.visit_stmt(stmt)
        for found in finder.found:
            if found is not stmts[-1]:
                message = (
                    f"A return must be the last statement of {function.name!r} to be compiled, and "
                    "stand in no branch and no loop"
                )
                hint = "let the branches only store, and return once at the end"
                raise IRValueError(message, found.span, hint=hint)
            others = [value for value in found.value if not isinstance(value.type, TensorType)]
            if others and function.func_type is not FunctionType.Orchestration:
                message = (
                    f"{function.name!r} must return tensors to be compiled, not "
                    f"{describe_type(others[0])}"
                )
                hint = "store the tile and return the tensor: out = pl.store(tile, offsets, out)"
                is_tile = isinstance(others[0].type, TileType)
                raise IRValueError(message, found.span, hint=hint if is_tile else None)


def check_strides(program: Program) -> None:
    """Refuse a parameter that is not packed: a launch hands over tensors without gaps.

    Raises:
        IRTypeError: With the place of the parameter.
    """
    for function in program.functions.values():
        for param in function.params:
            type_ = param.type
            if not isinstance(type_, TensorType) or type_.layout is not TensorLayout.ND:
                continue
            if type_.stride and not is_packed(type_):
                message = (
                    f"The tensor {param.name_hint!r} of {function.name!r} must be packed to be "
                    f"compiled, not of stride {show_dims(type_.stride)}"
                )
                raise IRTypeError(message, param.span)


class _Returns(IRVisitor):
    """Collects the returns of a statement."""

    def __init__(self) -> None:
        self.found: list[ReturnStmt] = []

    def visit_return_stmt(self, op: ReturnStmt) -> None:
        """Keep the return; nothing inside of it is of interest."""
        self.found.append(op)

    def visit_expr(self, op: Expr) -> None:
        """Look into no expression."""
