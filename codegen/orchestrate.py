"""Orchestration: a function that makes tensors and calls kernels becomes a host program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from ..ir.core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    Function,
    IfStmt,
    ParamDirection,
    ReturnStmt,
    Stmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..ir.errors import IRValueError
from ..ir.expr import (
    BinaryExpr,
    Call,
    Cast,
    ConstBool,
    ConstInt,
    Expr,
    GlobalVar,
    Neg,
    Not,
    Op,
    ScalarType,
    TupleGetItemExpr,
    Var,
    wrap_int64,
)
from ..ir.types import TensorType, TupleType, static_dims
from .emit import MNEMONICS
from .host import (
    Alias,
    Allocate,
    Assign,
    Binary,
    BinaryOp,
    Const,
    For,
    HostProgram,
    If,
    Launch,
    Output,
    Scalar,
    Statement,
    Variable,
)
from .kernel import Direction, Layout, Param, ParamKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..ir.dtypes import SimpleDType
    from ..ir.errors import Span

_DIRECTION = {
    ParamDirection.In: Direction.IN,
    ParamDirection.Out: Direction.OUT,
    ParamDirection.InOut: Direction.INOUT,
}


def params_of(function: Function) -> tuple[Param, ...]:
    """Return the parameters of a function as written, before any pass, for the executable."""
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
                    static_dims(type_.shape, f"The parameter {var.name_hint!r}"),
                    Layout(type_.layout.value.lower()),
                )
            )
        elif isinstance(type_, ScalarType):
            made.append(Param(var.name_hint, ParamKind.SCALAR, type_.dtype.name, type_.dtype.bits))
        else:
            message = f"The parameter {var.name_hint!r} must be a tensor or a scalar to be compiled"
            raise IRValueError(message, var.span)
    return tuple(made)


def returned_params(function: Function) -> tuple[int | None, ...]:
    """Return, for each returned value, the number of the parameter whose tensor it is, or None."""
    roots = _Roots(function)
    return roots.returned


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
                    last = flatten_to_stmts(stmt.then_body)[-1:]
                    values = last[0].value if last and isinstance(last[0], YieldStmt) else ()
                    for var, value in zip(stmt.return_vars, values, strict=False):
                        self._note(var, value)
                case ReturnStmt():
                    self.returned = tuple(self._of(value) for value in stmt.value)
                case _:
                    continue


@dataclass(frozen=True)
class Callee:
    """A kernel as its callers see it: its number, its function, and what it returns."""

    index: int
    function: Function
    returned: tuple[int | None, ...]


def host_program(
    function: Function, params: tuple[Param, ...], callees: Mapping[str, Callee]
) -> HostProgram:
    """Return the host program of an Orchestration function.

    Args:
        function: The function after all passes.
        params: Its parameters as written.
        callees: The program's kernels by name.

    Raises:
        IRValueError: For a statement that the control plane cannot run.
    """
    builder = _Builder(function, callees)
    body = builder.body(function.body)
    written = [p.name for p in params if p.is_tensor and p.direction.writes]
    outputs = [Output(name, name) for name in written]
    for number, (name, buffer) in enumerate(builder.returned):
        if buffer in written:
            continue
        shown = name or ("out" if len(builder.returned) == 1 else f"out{number}")
        outputs.append(Output(shown, buffer))
    return HostProgram(function.name, params, body, tuple(outputs))


@dataclass
class _Builder:
    function: Function
    callees: Mapping[str, Callee]
    tensors: dict[Var, str] = field(default_factory=dict[Var, str])
    tuples: dict[Var, tuple[str, ...]] = field(default_factory=dict[Var, "tuple[str, ...]"])
    scalars: dict[Var, str] = field(default_factory=dict[Var, str])
    returned: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _taken: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        for param in self.function.params:
            self._taken.add(param.name_hint)
            table = self.tensors if isinstance(param.type, TensorType) else self.scalars
            table[param] = param.name_hint

    def _name(self, var: Var) -> str:
        base = var.name_hint.replace("#", "_")
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def body(self, body: Stmt | None) -> tuple[Statement, ...]:
        out: list[Statement] = []
        for stmt in flatten_to_stmts(body):
            match stmt:
                case AssignStmt():
                    out += self._assign(stmt)
                case EvalStmt(expr=Call() as call):
                    out += self._call(None, call)
                case ForStmt():
                    out += self._for(stmt)
                case IfStmt():
                    out += self._if(stmt)
                case ReturnStmt():
                    self.returned = [self._result(value, stmt.span) for value in stmt.value]
                case YieldStmt():
                    continue
                case _:
                    message = f"An orchestration must not contain a {type(stmt).__name__}"
                    raise IRValueError(message, stmt.span)
        return tuple(out)

    def _result(self, value: Expr, span: Span) -> tuple[str, str]:
        if not isinstance(value, Var) or value not in self.tensors:
            message = "An orchestration that is compiled must return tensors"
            raise IRValueError(message, span)
        name = value.name_hint.split("__")[0]
        return name, self.tensors[value]

    def _assign(self, stmt: AssignStmt) -> list[Statement]:
        var, value = stmt.var, stmt.value
        if isinstance(var.type, ScalarType):
            name = self.scalars[var] = self._name(var)
            return [Assign(name, self._scalar(value, stmt.span))]
        match value:
            case Call():
                return self._call(var, value)
            case Var():
                self.tensors[var] = self.tensors[value]
                return []
            case TupleGetItemExpr(tuple=Var() as whole):
                self.tensors[var] = self.tuples[whole][value.index]
                return []
            case _:
                message = f"An orchestration must not compute a {type(value).__name__}"
                raise IRValueError(message, stmt.span)

    def _call(self, var: Var | None, call: Call) -> list[Statement]:
        if isinstance(call.op, GlobalVar):
            return self._launch(var, call)
        if var is None:
            return []
        type_ = cast("TensorType", var.type)
        name = self._name(var)
        match call.op.name:
            case "tensor.create":
                self.tensors[var] = name
                return [Allocate(name, *_declared(type_))]
            case "tensor.view":
                source = self._tensor(call.args[0], call.span)
                self.tensors[var] = name
                return [Alias(name, source, *_declared(type_))]
            case other:
                message = f"An orchestration must not use {other}: call a kernel for it"
                raise IRValueError(message, call.span)

    def _launch(self, var: Var | None, call: Call) -> list[Statement]:
        callee = self.callees.get(call.op.name)
        if callee is None:
            message = f"An orchestration must call kernels, and {call.op.name!r} is none"
            raise IRValueError(message, call.span)
        buffers: list[str] = []
        scalars: list[Scalar] = []
        bound: list[str] = []
        for param, arg in zip(callee.function.params, call.args, strict=True):
            if isinstance(param.type, TensorType):
                buffers.append(self._tensor(arg, call.span))
                bound.append(buffers[-1])
            else:
                scalars.append(self._scalar(arg, call.span))
                bound.append("")
        _refuse_overlap(callee, bound, call.span)
        if var is not None:
            self._bind_results(var, callee, bound, call.span)
        return [Launch(callee.index, tuple(buffers), tuple(scalars))]

    def _bind_results(self, var: Var, callee: Callee, bound: Sequence[str], span: Span) -> None:
        results: list[str] = []
        for number in callee.returned:
            if number is None:
                message = (
                    f"The kernel {callee.function.name!r} must return tensors that it got as "
                    "parameters: store a result into an Out parameter and return that"
                )
                raise IRValueError(message, span)
            results.append(bound[number])
        if isinstance(var.type, TupleType):
            self.tuples[var] = tuple(results)
        elif results:
            self.tensors[var] = results[0]

    def _tensor(self, value: Expr, span: Span) -> str:
        if not isinstance(value, Var) or value not in self.tensors:
            message = "A kernel's tensor argument must be a tensor variable"
            raise IRValueError(message, span)
        return self.tensors[value]

    def _for(self, stmt: ForStmt) -> list[Statement]:
        before: list[Statement] = []
        for arg in stmt.iter_args:
            if isinstance(arg.type, TensorType):
                self.tensors[arg] = self._tensor(arg.init_value, stmt.span)
            else:
                name = self.scalars[arg] = self._name(arg)
                before.append(Assign(name, self._scalar(arg.init_value, stmt.span)))
        bounds = [self._scalar(each, stmt.span) for each in (stmt.start, stmt.stop, stmt.step)]
        variable = self.scalars[stmt.loop_var] = self._name(stmt.loop_var)
        inner = list(self.body(stmt.body))
        last = flatten_to_stmts(stmt.body)[-1:]
        values = last[0].value if last and isinstance(last[0], YieldStmt) else ()
        pairs = list(zip(stmt.iter_args, values, stmt.return_vars, strict=True))
        scalar_pairs = [p for p in pairs if isinstance(p[0].type, ScalarType)]
        fresh = [self._name(arg) for arg, _, _ in scalar_pairs]
        inner += [
            Assign(name, self._scalar(value, stmt.span))
            for name, (_, value, _) in zip(fresh, scalar_pairs, strict=True)
        ]
        inner += [
            Assign(self.scalars[arg], Variable(name))
            for name, (arg, _, _) in zip(fresh, scalar_pairs, strict=True)
        ]
        for arg, value, result in pairs:
            if isinstance(arg.type, TensorType):
                self._same(arg, value, stmt.span)
                self.tensors[result] = self.tensors[arg]
            else:
                self.scalars[result] = self.scalars[arg]
        return [*before, For(variable, bounds[0], bounds[1], bounds[2], tuple(inner))]

    def _if(self, stmt: IfStmt) -> list[Statement]:
        condition = self._scalar(stmt.condition, stmt.span)
        then = list(self.body(stmt.then_body))
        otherwise = list(self.body(stmt.else_body))
        arms: list[tuple[Expr, ...]] = []
        for body in (stmt.then_body, stmt.else_body):
            last = flatten_to_stmts(body)[-1:]
            arms.append(last[0].value if last and isinstance(last[0], YieldStmt) else ())
        for index, var in enumerate(stmt.return_vars):
            first, second = arms[0][index], arms[1][index]
            if isinstance(var.type, TensorType):
                self.tensors[var] = self._tensor(first, stmt.span)
                self._same(var, second, stmt.span)
            else:
                name = self.scalars[var] = self._name(var)
                then.append(Assign(name, self._scalar(first, stmt.span)))
                otherwise.append(Assign(name, self._scalar(second, stmt.span)))
        return [If(condition, tuple(then), tuple(otherwise))]

    def _same(self, var: Var, value: Expr, span: Span) -> None:
        if self.tensors[var] != self._tensor(value, span):
            message = f"{var.name_hint!r} must stand for one tensor on every way to it, not for two"
            raise IRValueError(message, span)

    def _scalar(self, value: Expr, span: Span) -> Scalar:
        match value:
            case ConstInt() | ConstBool():
                return Const(wrap_int64(int(value.value)))
            case Var():
                return Variable(self.scalars[value])
            case Cast():
                return self._scalar(value.operand, span)
            case Neg():
                return Binary(BinaryOp.SUB, Const(0), self._scalar(value.operand, span))
            case Not():
                return Binary(BinaryOp.EQ, self._scalar(value.operand, span), Const(0))
            case BinaryExpr() if type(value) in MNEMONICS:
                left, right = (self._scalar(each, span) for each in (value.left, value.right))
                return Binary(BinaryOp(MNEMONICS[type(value)]), left, right)
            case _:
                message = (
                    "A scalar of an orchestration must be integer arithmetic, a comparison or logic, "
                    f"not {type(value).__name__}"
                )
                raise IRValueError(message, span)


def _declared(type_: TensorType) -> tuple[str, int, tuple[int, ...], Layout]:
    dtype = cast("SimpleDType", type_.dtype)
    shape = static_dims(type_.shape, "A tensor that is compiled")
    return dtype.name, dtype.bits, shape, Layout(type_.layout.value.lower())


def _refuse_overlap(callee: Callee, bound: Sequence[str], span: Span) -> None:
    """Refuse one tensor bound to two parameters of which the kernel writes one: pipes would race."""
    for i, (name, direction) in enumerate(
        zip(bound, callee.function.param_directions, strict=True)
    ):
        if not name or direction is ParamDirection.In:
            continue
        for j, other in enumerate(bound):
            if i != j and other == name:
                first, second = (callee.function.params[n].name_hint for n in (i, j))
                message = (
                    f"The parameters {first!r} and {second!r} of {callee.function.name!r} must get "
                    f"different tensors, not both {name!r}, since the kernel writes {first!r}"
                )
                raise IRValueError(message, span)
