"""Dimensions that a launch decides: `M = pl.dynamic("M")` in a shape.

A name is one dimension in the whole program. What its extent is follows from the tensors that a caller
hands in; the program that then runs has it as a constant everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .core import Program
from .dtypes import Index
from .errors import InputError, IRValueError
from .expr import BinaryExpr, ConstInt, Expr, ScalarType, Var
from .types import TensorType
from .verification.walk import type_uses
from .visitor import IRMutator, IRVisitor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .core import Function
    from .expr import Call

_DIMS: Final[dict[str, Var]] = {}


def dynamic(name: str) -> Var:
    """Return the dimension called `name`: the same one each time.

    Raises:
        IRValueError: When the name is none that a kernel's text could have.
    """
    if not isinstance(name, str) or not name.isidentifier():  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"The name of a dynamic dimension must be an identifier, not {name!r}"
        raise IRValueError(message)
    if name not in _DIMS:
        _DIMS[name] = Var(name, ScalarType(Index))
    return _DIMS[name]


def is_dynamic(var: Var) -> bool:
    """Return whether a variable is a dimension that a launch decides."""
    return _DIMS.get(var.name_hint) is var


def dynamic_dims(program: Program) -> list[Var]:
    """Return the dimensions of a program that a launch decides, in order of their names."""
    finder = _Finder()
    for function in program.functions.values():
        finder.visit_function(function)
        for type_ in function.return_types:
            finder.found.update(type_uses(type_))
    return sorted(filter(is_dynamic, finder.found), key=lambda var: var.name_hint)


class _Finder(IRVisitor):
    """Collects every variable, those in types included."""

    def __init__(self) -> None:
        self.found: set[Var] = set()

    def visit_var_like(self, op: Var) -> None:
        self.found.add(op)
        self.found.update(type_uses(op.type))

    def visit_call(self, op: Call) -> None:
        self.found.update(type_uses(op.type))
        self.visit_children(op)


def with_bound_dims(program: Program, entry: Function, inputs: Mapping[str, Any]) -> Program:
    """Return a program with its dynamic dimensions as the constants that inputs give them.

    Args:
        program: What is to run; the same object comes back when it has no such dimension.
        entry: Its function that is launched.
        inputs: Parameter name to array or number.

    Raises:
        InputError: For a dimension that no array has, or of which two have different extents.
    """
    import numpy as np  # here, since the language loads nothing heavy

    dims = dynamic_dims(program)
    if not dims:
        return program
    found: dict[Var, tuple[int, str]] = {}
    for param in entry.params:
        if not isinstance(param.type, TensorType) or param.name_hint not in inputs:
            continue
        shape = np.shape(inputs[param.name_hint])
        if len(shape) != len(param.type.shape):
            continue  # not the logical shape; binding the inputs tells what is wrong with it
        for dim, size in zip(param.type.shape, shape, strict=True):
            if isinstance(dim, Var) and is_dynamic(dim):
                _note(found, dim, size, param.name_hint)
    for dim in dims:
        if dim not in found:
            message = (
                f"The dimension {dim.name_hint!r} must be an extent of an array that is given, but "
                "none has it"
            )
            raise InputError(message)
    bound = _Bound({dim: size for dim, (size, _) in found.items()})
    functions = [bound.visit_function(function) for function in program.functions.values()]
    return Program(functions, program.name, program.span)


def _note(found: dict[Var, tuple[int, str]], dim: Var, size: int, name: str) -> None:
    before, owner = found.setdefault(dim, (size, name))
    if before != size or size < 1:
        here = f"{size} in {name!r}"
        other = "a positive number" if size < 1 else f"{before}, as in {owner!r}"
        message = f"The dimension {dim.name_hint!r} must be {other}, not {here}"
        raise InputError(message)


class _Bound(IRMutator):
    """Puts constants in the place of dynamic dimensions, and works out what they make constant."""

    def __init__(self, sizes: Mapping[Var, int]) -> None:
        super().__init__()
        self._sizes = sizes

    def visit(self, node: Any) -> Any:
        if isinstance(node, Var) and node in self._sizes:
            return ConstInt(self._sizes[node], Index, node.span)
        return super().visit(node)

    def visit_binary_expr(self, op: BinaryExpr) -> Expr:
        done = super().visit_binary_expr(op)
        if done is op or not isinstance(done, BinaryExpr):
            return done
        left, right = done.left, done.right
        if done.dtype is Index and isinstance(left, ConstInt) and isinstance(right, ConstInt):
            value = done.evaluate(left.value, right.value)
            if isinstance(value, int):
                return ConstInt(value, Index, op.span)
        return done
