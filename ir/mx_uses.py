"""How a program uses its tensors of compound dtypes, and the axis of their groups that follows.

A tensor of a compound dtype comes in through a parameter. It can be renamed, carried, and handed on
to functions, until a matmul takes it: on the left its groups lie along its last axis, on the right
along its first one. A tensor that is taken on both sides would need both, which none has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .core import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ParamDirection,
    ReturnStmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from .errors import IRValueError, Span
from .expr import Call, GlobalVar, MakeTuple, Op, Submit, Var
from .mx_types import Side
from .numerics.block_format import block_format_of
from .ops.rules_tensor import placement_fault
from .types import TensorType, TileType, TupleType, constant_dim
from .verification.walk import all_calls, all_vars, bodies, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .core import Function, Program
    from .expr import Expr, Type

#: The ops that multiply tensors of compound dtypes, with the position of their left operand.
MATMULS = {"tensor.matmul": 0, "tensor.matmul_acc": 1}
SLICE = "tensor.slice"


@dataclass(frozen=True)
class Use:
    """A matmul that takes a tensor of a compound dtype: on which side, and where.

    Seen from a function that hands the tensor on, the place is that of its call.
    """

    side: Side
    span: Span


@dataclass(frozen=True)
class Fault:
    """A mistake: what must be and what was found, where, what works, and what else to know."""

    message: str
    span: Span
    hint: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class Conflict:
    """A parameter that is taken on both sides."""

    param: Var
    first: Use
    other: Use

    @property
    def fault(self) -> Fault:
        """What is wrong, at the second use."""
        where = self.first.span
        has_note = where.is_known and where != self.other.span
        side = self.first.side.value
        return Fault(
            f"{self.param.name_hint!r} must be used on one side of matmuls, which decides the axis "
            f"of its groups, not as {side} and as {self.other.side.value} operand",
            self.other.span,
            "make it two parameters, one quantized along each axis",
            f"it is the {side} operand at {where}" if has_note else None,
        )


def is_compound(type_: Type) -> bool:
    """Return whether a type is a tensor of a compound dtype."""
    return isinstance(type_, TensorType) and type_.dtype.is_compound()


def compound_params(function: Function) -> list[Var]:
    """Return the parameters of a function that are tensors of compound dtypes."""
    return [param for param in function.params if is_compound(param.type)]


class CompoundUses:
    """The uses of every tensor of a compound dtype in a program.

    Args:
        program: Any program; functions that it calls but does not have are left aside.
    """

    def __init__(self, program: Program) -> None:
        self._taken: dict[Var, list[Use]] = {}
        self._flows: dict[Var, list[tuple[Var, Span | None]]] = {}
        for function in program.functions.values():
            self._read(function, program)

    def uses(self, var: Var) -> list[Use]:
        """Return the matmuls that take `var`, under whatever name, in the order of discovery."""
        seen = {var}
        waiting: list[tuple[Var, Span | None]] = [(var, None)]
        found: list[Use] = []
        while waiting:
            current, call = waiting.pop(0)
            found += [Use(u.side, call or u.span) for u in self._taken.get(current, ())]
            for target, span in self._flows.get(current, ()):
                if target not in seen:
                    seen.add(target)
                    waiting.append((target, call or span))
        return found

    def conflict(self, param: Var) -> Conflict | None:
        """Return how `param` is taken on both sides, or None if it is not."""
        uses = self.uses(param)
        other = next((use for use in uses if use.side is not uses[0].side), None)
        return None if other is None else Conflict(param, uses[0], other)

    def conflicts(self, function: Function) -> list[Conflict]:
        """Return the parameters of a function that are taken on both sides.

        One that is handed to a function whose own parameter is taken on both sides is that
        function's affair.
        """
        found = [self.conflict(param) for param in compound_params(function)]
        return [c for c in found if c is not None and not self._is_passed_on(c)]

    def grouped_axes(self, function: Function) -> dict[Var, int]:
        """Return the axis of the groups of each parameter that a matmul takes.

        Raises:
            IRValueError: A parameter is taken on both sides.
        """
        axes: dict[Var, int] = {}
        for param in compound_params(function):
            conflict = self.conflict(param)
            if conflict is not None:
                fault = conflict.fault
                raise IRValueError(fault.message, fault.span, hint=fault.hint, note=fault.note)
            uses = self.uses(param)
            if uses:
                axes[param] = uses[0].side.grouped_axis
        return axes

    def _is_passed_on(self, conflict: Conflict) -> bool:
        targets = self._flows.get(conflict.param, ())
        return any(span and self.conflict(var) is not None for var, span in targets)

    # ------------------------------------------------------------------------ reading

    def _read(self, function: Function, program: Program) -> None:
        for call in all_calls(function):
            match call:
                case Call(op=Op(name), args=args):
                    if name in MATMULS:
                        for side, arg in zip(Side, args[MATMULS[name] :], strict=False):
                            self._take(arg, Use(side, call.span))
                case Call(op=GlobalVar(name), args=args) | Submit(op=GlobalVar(name), args=args):
                    callee = program.get_function(name)
                    if callee is not None:
                        self._pass(args, callee.params, call.span)
                case _:
                    pass
        for stmt in statements(function.body):
            match stmt:
                case AssignStmt(var, value):
                    self._pass([value], [var])
                case ForStmt() | WhileStmt():
                    self._pass([arg.init_value for arg in stmt.iter_args], stmt.iter_args)
                    self._pass(stmt.iter_args, stmt.return_vars)
                    for values in _yielded(stmt):
                        self._pass(values, stmt.iter_args)
                case IfStmt():
                    for values in _yielded(stmt):
                        self._pass(values, stmt.return_vars)
                case _:
                    pass

    def _take(self, arg: Expr, use: Use) -> None:
        arg = cut_from(arg)
        if isinstance(arg, Var) and is_compound(arg.type):
            self._taken.setdefault(arg, []).append(use)

    def _pass(
        self, values: Iterable[Expr], targets: Sequence[Var], call: Span | None = None
    ) -> None:
        for value, target in zip(map(cut_from, values), targets, strict=False):
            if isinstance(value, Var) and is_compound(value.type) and value is not target:
                self._flows.setdefault(value, []).append((target, call))


def cut_from(value: Expr) -> Expr:
    """Return the tensor from which a window is cut, or the value itself where it is no window."""
    while isinstance(value, Call) and value.op.name == SLICE and value.args:
        value = value.args[0]
    return value


def _yielded(stmt: ForStmt | WhileStmt | IfStmt) -> Iterator[Sequence[Expr]]:
    """Yield what each body of a statement hands on."""
    for body in bodies(stmt):
        last = flatten_to_stmts(body)[-1:]
        if last and isinstance(last[0], YieldStmt):
            yield last[0].value


# --------------------------------------------------------------------------- faults

_WAY_OUT = "such a tensor comes in by a parameter of its own and goes into pl.matmul"


def compound_faults(function: Function, program: Program) -> list[Fault]:
    """Return what is wrong with the tensors of compound dtypes in a function of a program."""
    found: list[Fault] = []
    for param, direction in zip(function.params, function.param_directions, strict=True):
        if is_compound(param.type) and direction is not ParamDirection.In:
            message = (
                f"{param.name_hint!r} must be of a simple dtype to be written, not of "
                f"{_compound_name(param.type)}"
            )
            hint = "the product of two tensors of compound dtypes is of FP32"
            found.append(Fault(message, param.span, hint))
    for var in all_vars(function):
        fault = _type_fault(var.type)
        if fault is not None:
            text, hint = fault
            found.append(Fault(f"{var.name_hint!r} {text}", var.span, hint))
    for stmt in statements(function.body):
        values = stmt.value if isinstance(stmt, ReturnStmt) else ()
        for name in filter(None, (_compound_name(value.type) for value in values)):
            message = f"{function.name!r} must return tensors of simple dtypes, not of {name}"
            found.append(Fault(message, stmt.span, _WAY_OUT))
    if any(compound_params(function)):
        uses = CompoundUses(program)
        found += filter(None, (_cut_fault(call, uses) for call in all_calls(function)))
        found += [conflict.fault for conflict in uses.conflicts(function)]
    return found


def _cut_fault(call: Call | Submit, uses: CompoundUses) -> Fault | None:
    """Return what is wrong with a window of a compound tensor, once its use says its axis."""
    source = cut_from(call)
    if call.op.name != SLICE or not isinstance(source, Var) or not is_compound(source.type):
        return None
    taken = uses.uses(source)
    if not taken:
        return None
    axis = taken[0].side.grouped_axis
    assert isinstance(source.type, TensorType), source
    dtype, block = source.type.dtype, block_format_of(source.type.dtype).block
    for what, dims in zip(("extent", "offset"), call.args[1:], strict=False):
        along = dims.elements[axis : axis + 1] if isinstance(dims, MakeTuple) else ()
        value = constant_dim(along[0]) if along else None
        if value is not None and value % block:
            message = (
                f"A window of {dtype.name} must be made of whole blocks: its {what} along axis "
                f"{axis} must be a multiple of {block}, not {value}"
            )
            return Fault(message, call.span)
    return None


def _type_fault(type_: Type) -> tuple[str, str] | None:
    """Return what a variable of a type must be, and what works; None where nothing is wrong."""
    match type_:
        case TileType(dtype=dtype) if dtype.is_compound():
            text = f"must be of a simple dtype as every tile is, not of {dtype.name}"
            return text, f"pl.matmul takes whole tensors of {dtype.name}"
        case TupleType(types=types):
            name = next(filter(None, map(_compound_name, types)), None)
            if name is not None:
                return f"must hold no tensor of {name} in a tuple", _WAY_OUT
        case TensorType(dtype=dtype) if dtype.is_compound():
            text = placement_fault(type_)
            if text is not None:
                return text, "leave the layout and the view out: the planes have their own"
        case _:
            pass
    return None


def _compound_name(type_: Type) -> str | None:
    return type_.dtype.name if isinstance(type_, TensorType) and is_compound(type_) else None
