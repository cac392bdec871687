"""The parameters of a function, and which of them its results are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..ir.core import (
    AssignStmt,
    ForStmt,
    Function,
    IfStmt,
    ParamDirection,
    ReturnStmt,
    Stmt,
    flatten_to_stmts,
)
from ..ir.dtypes.formats import FLOAT_FORMATS
from ..ir.errors import IRValueError
from ..ir.expr import Call, Expr, Op, ScalarType, Var
from ..ir.types import TensorType
from .kernel import Direction, Layout, Param, ParamKind
from .places import constant
from .select import yielded

if TYPE_CHECKING:
    from ..ir.dtypes import SimpleDType

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
        IRValueError: For a parameter that is neither a tensor nor an integer.
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
            if type_.dtype in FLOAT_FORMATS:
                message = (
                    f"The scalar parameter {var.name_hint!r} must be an integer or a Bool to be "
                    f"compiled, not {type_.dtype.name}: the scalar unit has no floats"
                )
                raise IRValueError(message, var.span)
            made.append(Param(var.name_hint, ParamKind.SCALAR, type_.dtype.name, type_.dtype.bits))
        else:
            message = f"The parameter {var.name_hint!r} must be a tensor or a scalar to be compiled"
            raise IRValueError(message, var.span)
    return tuple(made)


def returned_params(function: Function) -> tuple[int | None, ...]:
    """Return, for each returned value, the number of the parameter whose tensor it is, or None."""
    return _Roots(function).returned


class _Roots:
    """Follows tensors through stores, views, loops and branches back to parameters."""

    def __init__(self, function: Function) -> None:
        self._root: dict[Var, int] = {p: number for number, p in enumerate(function.params)}
        self.returned: tuple[int | None, ...] = ()
        self._walk(function.body)

    def _of(self, value: Expr) -> int | None:
        return self._root.get(value) if isinstance(value, Var) else None

    def _note(self, var: Var, value: Expr) -> None:
        root = self._of(value)
        if root is not None:
            self._root[var] = root

    def _walk(self, body: Stmt | None) -> None:
        for stmt in flatten_to_stmts(body):
            match stmt:
                case AssignStmt(value=Call(op=Op(name="tile.store")) as call):
                    self._note(stmt.var, call.args[2])
                case AssignStmt(value=Call(op=Op(name="tensor.view")) as call):
                    self._note(stmt.var, call.args[0])
                case AssignStmt():
                    self._note(stmt.var, stmt.value)
                case ForStmt():
                    for arg in stmt.iter_args:
                        self._note(arg, arg.init_value)
                    self._walk(stmt.body)
                    for arg, var in zip(stmt.iter_args, stmt.return_vars, strict=True):
                        self._note(var, arg)
                case IfStmt():
                    self._walk(stmt.then_body)
                    self._walk(stmt.else_body)
                    # Selection sees to it that both arms agree.
                    for var, value in zip(stmt.return_vars, yielded(stmt.then_body), strict=False):
                        self._note(var, value)
                case ReturnStmt():
                    self.returned = tuple(self._of(value) for value in stmt.value)
                case _:
                    continue
