"""What a function must be like to be compiled, where the language and the interpreter allow more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir.core import FunctionType, ReturnStmt, flatten_to_stmts
from ..ir.dynamic_dims import dynamic_dims
from ..ir.errors import IRTypeError, IRValueError
from ..ir.ops import ROWS
from ..ir.ops.checks import show_dims
from ..ir.ops.row import describe_type
from ..ir.ops.rules_memory import is_packed
from ..ir.types import TensorLayout, TensorType
from ..ir.verification.walk import all_calls
from ..ir.visitor import IRVisitor

if TYPE_CHECKING:
    from ..ir.core import Program
    from ..ir.expr import Expr


#: The ops that have instructions, and those that passes or the launcher make of others or of nothing.
COMPILED = frozenset(
    {
        "system.task_dummy",
        "system.task_invalid",
        "tensor.assemble",
        "tensor.create",
        "tensor.matmul",
        "tensor.matmul_acc",
        "tensor.matmul_mx",
        "tensor.matmul_mx_acc",
        "tensor.matmul_mx_bias",
        "tensor.slice",
        "tensor.slice_scales",
        "tensor.view",
        "tile.extract",
        "tile.get_block_idx",
        "tile.get_block_num",
        "tile.get_subblock_idx",
        "tile.load",
        "tile.matmul_mx",
        "tile.matmul_mx_acc",
        "tile.matmul_mx_bias",
        "tile.move",
        "tile.store",
        "tile.tget_scale_addr",
    }
)


def check_cores(program: Program) -> None:
    """Refuse an op that only a vector core can run, or for which there are no instructions yet.

    Raises:
        IRValueError: With the place of the op.
    """
    for function in program.functions.values():
        for call in all_calls(function):
            row = ROWS.get(call.op.name)
            if row is None or row.name in COMPILED:
                continue
            if row.vector:
                message = (
                    f"{row.name} must run on a vector core, which is not part of this machine yet, "
                    "so it cannot be compiled"
                )
            else:
                message = f"{row.name} cannot be compiled yet: it has no instructions so far"
            hint = "scalebox.interpret runs it"
            raise IRValueError(message, call.span, hint=hint)


def check_dims(program: Program) -> None:
    """Refuse a dimension that only a launch decides.

    Raises:
        IRValueError: With its name.
    """
    for dim in dynamic_dims(program):
        message = f"All dimensions must be constant to be compiled, but {dim.name_hint!r} is a dynamic one"
        hint = "scalebox.interpret binds it from its inputs; pl.param makes a constant of it"
        raise IRValueError(message, hint=hint)


def check_returns(program: Program) -> None:
    """Refuse a function that returns before its last statement, and a kernel of other than tensors.

    The instructions and the launches of a function run to its end: one that may leave it earlier has
    no form in them, while the interpreter does leave. What leaves a device is tensors.

    Raises:
        IRValueError: With the place of the return.
    """
    for function in program.functions.values():
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
                raise IRValueError(message, found.span)


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
