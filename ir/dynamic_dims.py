"""Dimensions that a launch decides: `M = pl.dynamic("M")` in a shape.

A name is one dimension in the whole program. What its extent is follows from the tensors that a caller
hands in; the program that then runs has it as a constant everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .core import Program, seq
from .dtypes import Index
from .errors import InputError, IRValueError
from .expr import And, BinaryExpr, ConstBool, ConstInt, Expr, Not, Or, ScalarType, Var
from .types import TensorType
from .verification.walk import type_uses
from .visitor import IRMutator, IRVisitor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .core import Function, IfStmt, Stmt
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


def sizes_of_dims(
    program: Program,
    entry: Function,
    inputs: Mapping[str, Any],
    bind: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Return the extent of each dynamic dimension of a program, by name.

    Args:
        program: What is to run.
        entry: Its function that is launched.
        inputs: Parameter name to array or number.
        bind: Extents that are given by name, for dimensions that no array has.

    Raises:
        InputError: For a dimension that is neither given nor an extent of an array, one with two
            different extents, and a name that is no dimension.
    """
    dims = dynamic_dims(program)
    found: dict[Var, tuple[int, str]] = {}
    misfits: dict[Var, tuple[Var, tuple[int, ...]]] = {}
    for name, size in _checked(bind, dims).items():
        found[dynamic(name)] = (size, "bind")
    for param in entry.params if dims else ():
        if not isinstance(param.type, TensorType) or param.name_hint not in inputs:
            continue
        shape = _shape(inputs[param.name_hint])
        if len(shape) != len(param.type.shape):
            # Not the logical shape; where another array has its dimensions, binding tells what is wrong.
            misfits |= {dim: (param, shape) for dim in param.type.shape if isinstance(dim, Var)}
            continue
        for dim, size in zip(param.type.shape, shape, strict=True):
            if isinstance(dim, Var) and is_dynamic(dim):
                _note(found, dim, size, repr(param.name_hint))
    for dim in dims:
        if dim not in found:
            if dim in misfits:
                raise _wrong_rank(dim, *misfits[dim])
            message = (
                f"The dimension {dim.name_hint!r} must be an extent of an array that is given, but "
                "none has it"
            )
            raise InputError(message, hint=way_out(dim.name_hint))
    return {dim.name_hint: found[dim][0] for dim in dims}


def _wrong_rank(dim: Var, param: Var, shape: tuple[int, ...]) -> InputError:
    """Return the error for an array that would have a dimension if it were of another rank."""
    assert isinstance(param.type, TensorType), param
    wanted = ", ".join(
        str(getattr(d, "value", getattr(d, "name_hint", "…"))) for d in param.type.shape
    )
    message = (
        f"{param.name_hint} must be an array of rank {len(param.type.shape)}, which has the dimension "
        f"{dim.name_hint!r}, not of rank {len(shape)}"
    )
    hint = f"valid is an array of shape [{wanted}], not {list(shape)}"
    return InputError(message, hint=hint)


def way_out(name: str) -> str:
    """Return how a caller gives a dimension its extent without an array that has it."""
    return f'bind={{"{name}": 64}} gives it, on the command line --param {name}=64'


def _shape(given: Any) -> tuple[int, ...]:
    """Return the logical shape of an input; that of its elements for a block-scaled array."""
    import numpy as np  # here, since the language loads nothing heavy

    return tuple(np.shape(getattr(given, "elements", given)))


def _checked(bind: Mapping[str, int] | None, dims: list[Var]) -> dict[str, int]:
    """Return given extents, once each is a positive integer for a dimension of the program."""
    names = [dim.name_hint for dim in dims]
    checked: dict[str, int] = {}
    for name, size in (bind or {}).items():
        if name not in names:
            message = f"bind must name dynamic dimensions of the program, not {name!r}"
            raise InputError(message, hint=f"valid here: {', '.join(names) or 'none'}")
        is_number = hasattr(size, "__index__") and not isinstance(size, bool)
        if not is_number or size < 1:
            message = f"The dimension {name!r} must be a positive integer, not {size!r}"
            raise InputError(message)
        checked[name] = size.__index__()
    return checked


def with_bound_dims(
    program: Program,
    entry: Function,
    inputs: Mapping[str, Any],
    bind: Mapping[str, int] | None = None,
) -> Program:
    """Return a program with its dynamic dimensions as the constants that inputs give them.

    Args:
        program: What is to run; the same object comes back when it has no such dimension.
        entry: Its function that is launched.
        inputs: Parameter name to array or number.
        bind: Extents that are given by name.

    Raises:
        InputError: As :func:`sizes_of_dims`.
    """
    return bind_dims(program, sizes_of_dims(program, entry, inputs, bind))


def bind_dims(program: Program, sizes: Mapping[str, int]) -> Program:
    """Return a program with dynamic dimensions as constants; the same object for none.

    Args:
        program: What is to run.
        sizes: Extents by name; a dimension that is not among them stays.

    Raises:
        InputError: For a name that is no dimension of it, and an extent that is not positive.
    """
    checked = _checked(sizes, dynamic_dims(program))
    if not checked:
        return program
    bound = ConstantDims({dynamic(name): size for name, size in checked.items()})
    functions = [bound.visit_function(function) for function in program.functions.values()]
    return Program(functions, program.name, program.span)


def _note(found: dict[Var, tuple[int, str]], dim: Var, size: int, owner: str) -> None:
    before, first = found.setdefault(dim, (size, owner))
    if before != size or size < 1:
        here = f"{size} in {owner}"
        other = "a positive integer" if size < 1 else f"{before}, as in {first}"
        message = f"The dimension {dim.name_hint!r} must be {other}, not {here}"
        raise InputError(message)


class ConstantDims(IRMutator):
    """Puts constants in the place of variables, and works out what they make constant.

    Of a branch that they decide the arm is left that is taken: the other one need not be legal for them,
    such as a load of what a last trip has less where there is nothing less. A branch whose arms name
    results stays.

    Attributes:
        sizes: What each of the variables is.
    """

    def __init__(self, sizes: Mapping[Var, int]) -> None:
        super().__init__()
        self.sizes = dict(sizes)

    def visit(self, node: Any) -> Any:
        """Return what stands for a node."""
        if isinstance(node, Var) and node in self.sizes:
            return ConstInt(self.sizes[node], Index, node.span)
        return super().visit(node)

    def visit_binary_expr(self, op: BinaryExpr) -> Expr:
        """Return an expression, or its value where both sides have become constants."""
        done = super().visit_binary_expr(op)
        if done is op or not isinstance(done, BinaryExpr):
            return done
        left, right = done.left, done.right
        if done.dtype is Index and isinstance(left, ConstInt) and isinstance(right, ConstInt):
            value = done.evaluate(left.value, right.value)
            if isinstance(value, int):
                return ConstInt(value, Index, op.span)
        return done

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        """Return a branch, or the arm that is taken where its condition has become constant."""
        condition = self.visit_expr(op.condition)
        taken = None if condition is op.condition or op.return_vars else _decided(condition)
        if taken is None:
            return self.visit_children(op)
        arm = op.then_body if taken else op.else_body
        return seq(() if arm is None else (self.visit_stmt(arm),), op.span)


def _decided(condition: Expr) -> bool | None:
    """Return the value of a condition that is made of constants; None for any other."""
    match condition:
        case ConstBool(value=value):
            return value
        case Not(operand=operand):
            value = _decided(operand)
            return None if value is None else not value
        case And() | Or():
            settles = isinstance(condition, Or)
            parts = [_decided(part) for part in (condition.left, condition.right)]
            if settles in parts:
                return settles
            return None if None in parts else not settles
        case BinaryExpr(left=ConstInt(value=left), right=ConstInt(value=right)):
            return bool(condition.evaluate(left, right))
        case _:
            return None
