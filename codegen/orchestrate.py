"""Orchestration: a function that makes tensors and calls kernels becomes a host program."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..ir.binding import result_name
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
from ..ir.expr import Call, Expr, GlobalVar, ScalarType, TupleGetItemExpr, Var
from ..ir.types import TensorType, TupleType
from .host import (
    Alias,
    Allocate,
    Assign,
    For,
    HostProgram,
    If,
    Launch,
    Output,
    Variable,
)
from .kernel import Layout
from .places import constant
from .scalars import lower_scalar
from .select import yielded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..ir.dtypes import SimpleDType
    from ..ir.errors import Span
    from .bindings import Callee
    from .host import Scalar, Statement
    from .kernel import Param


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
        IRTypeError: For a tensor of symbolic shape, or a scalar that is no integer.
    """
    builder = _Builder(function, callees)
    body = builder.body(function.body)
    written = [param.name for param in params if param.is_tensor and param.direction.writes]
    returned = [
        (name, buffer) for name, buffer in builder.returned if builder.roots[buffer] not in written
    ]
    return HostProgram(function.name, params, body, outputs_of(written, returned))


def outputs_of(
    written: Sequence[str], returned: Sequence[tuple[str | None, str]]
) -> tuple[Output, ...]:
    """Return the outputs of an entry.

    Args:
        written: The tensor parameters that it writes; each is an output under its name.
        returned: What it returns besides, as (name in the source, buffer). One without a name is
            `out`; a name that is taken gets a number.
    """
    outputs = {name: name for name in written}
    for name, buffer in returned:
        base = name or "out"
        free, count = base, 1
        while free in outputs:
            free, count = f"{base}_{count}", count + 1
        outputs[free] = buffer
    return tuple(Output(name, buffer) for name, buffer in outputs.items())


class _Builder:
    """Statement by statement; tensors go by the names of their host buffers."""

    def __init__(self, function: Function, callees: Mapping[str, Callee]) -> None:
        self.returned: list[tuple[str | None, str]] = []
        self.roots: dict[str, str] = {}
        """The buffer whose bytes each name stands for."""
        self._callees = callees
        self._tensors: dict[Var, str] = {}
        self._tuples: dict[Var, tuple[str, ...]] = {}
        self._scalars: dict[Var, str] = {}
        self._taken: set[str] = set()
        for param in function.params:
            name = self._name(param)
            if isinstance(param.type, TensorType):
                self._tensors[param] = self.roots[name] = name
            else:
                self._scalars[param] = name

    def _name(self, var: Var) -> str:
        base = var.name_hint.replace("#", "_")
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    # ----------------------------------------------------------------- statements

    def body(self, body: Stmt | None) -> tuple[Statement, ...]:
        """Return the host statements of a body."""
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
                    kind = type(stmt).__name__.removesuffix("Stmt").lower()
                    message = (
                        "An orchestration that is compiled must be made of assignments, calls, for "
                        f"loops and branches, not of {kind!r}"
                    )
                    raise IRValueError(message, stmt.span)
        return tuple(out)

    def _result(self, value: Expr, span: Span) -> tuple[str | None, str]:
        if not isinstance(value, Var) or value not in self._tensors:
            message = "An orchestration that is compiled must return tensors, not scalars"
            raise IRValueError(message, span)
        return result_name(value), self._tensors[value]

    def _assign(self, stmt: AssignStmt) -> list[Statement]:
        var, value = stmt.var, stmt.value
        if isinstance(var.type, ScalarType):
            lowered = self._scalar(value, stmt.span)
            name = self._scalars[var] = self._name(var)
            return [Assign(name, lowered)]
        match value:
            case Call():
                return self._call(var, value)
            case Var() if value in self._tuples:
                self._tuples[var] = self._tuples[value]
                return []
            case Var():
                self._tensors[var] = self._tensors[value]
                return []
            case TupleGetItemExpr(tuple=Var() as whole):
                self._tensors[var] = self._tuples[whole][value.index]
                return []
            case _:
                message = (
                    "An orchestration that is compiled must get its tensors from calls, not from a "
                    f"{type(value).__name__}"
                )
                raise IRValueError(message, stmt.span)

    def _call(self, var: Var | None, call: Call) -> list[Statement]:
        if isinstance(call.op, GlobalVar):
            return self._launch(var, call)
        if call.op.name not in ("tensor.create", "tensor.view"):
            message = (
                "An orchestration that is compiled must call kernels, tensor.create and "
                f"tensor.view, not {call.op.name}"
            )
            raise IRValueError(message, call.span, hint="move the op into a kernel and call that")
        if var is None:
            return []
        declared = _declared(cast("TensorType", var.type), call.span)
        source = self._tensor(call.args[0], call.span) if call.op.name == "tensor.view" else None
        name = self._tensors[var] = self._name(var)
        self.roots[name] = name if source is None else self.roots[source]
        return [Allocate(name, *declared) if source is None else Alias(name, source, *declared)]

    def _launch(self, var: Var | None, call: Call) -> list[Statement]:
        callee = self._callees.get(call.op.name)
        if callee is None:
            message = f"An orchestration that is compiled must call kernels, not {call.op.name!r}"
            hint = f"it can call {', '.join(self._callees) or 'none: the program has no kernel'}"
            raise IRValueError(message, call.span, hint=hint)
        bound: list[str | None] = []
        scalars: list[Scalar] = []
        for param, arg in zip(callee.function.params, call.args, strict=True):
            if isinstance(param.type, TensorType):
                bound.append(self._tensor(arg, call.span))
            else:
                scalars.append(self._scalar(arg, call.span))
                bound.append(None)
        self._refuse_overlap(callee, bound, call.span)
        if var is not None:
            self._bind_results(var, callee, bound, call.span)
        buffers = tuple(name for name in bound if name is not None)
        return [Launch(callee.index, buffers, tuple(scalars))]

    def _refuse_overlap(self, callee: Callee, bound: Sequence[str | None], span: Span) -> None:
        """Refuse one tensor for two parameters of which the kernel writes one: pipes would race."""
        params, directions = callee.function.params, callee.function.param_directions
        for i, (name, direction) in enumerate(zip(bound, directions, strict=True)):
            if name is None or direction is ParamDirection.In:
                continue
            for j, other in enumerate(bound):
                if i != j and other is not None and self.roots[other] == self.roots[name]:
                    written, read = params[i].name_hint, params[j].name_hint
                    message = (
                        f"The parameters {written!r} and {read!r} of {callee.function.name!r} must "
                        f"get different tensors, since the kernel writes {written!r}, not both "
                        f"{self.roots[name]!r}"
                    )
                    raise IRValueError(message, span)

    def _bind_results(
        self, var: Var, callee: Callee, bound: Sequence[str | None], span: Span
    ) -> None:
        results: list[str] = []
        for number in callee.returned:
            name = None if number is None else bound[number]
            if name is None:
                message = (
                    f"The kernel {callee.function.name!r} must return tensors that it got as "
                    "parameters to be compiled, not others"
                )
                hint = "store a result into an Out parameter and return that"
                raise IRValueError(message, span, hint=hint)
            results.append(name)
        if isinstance(var.type, TupleType):
            self._tuples[var] = tuple(results)
        elif results:
            self._tensors[var] = results[0]

    def _tensor(self, value: Expr, span: Span) -> str:
        if not isinstance(value, Var) or value not in self._tensors:
            message = "A tensor argument must be a variable of the orchestration"
            raise IRValueError(message, span)
        return self._tensors[value]

    # ----------------------------------------------------------------- control flow

    def _for(self, stmt: ForStmt) -> list[Statement]:
        before: list[Statement] = []
        start, stop, step = (
            self._scalar(each, stmt.span) for each in (stmt.start, stmt.stop, stmt.step)
        )
        for arg in stmt.iter_args:
            if isinstance(arg.type, TensorType):
                self._tensors[arg] = self._tensor(arg.init_value, stmt.span)
            else:
                first = self._scalar(arg.init_value, stmt.span)
                name = self._scalars[arg] = self._name(arg)
                before.append(Assign(name, first))
        variable = self._scalars[stmt.loop_var] = self._name(stmt.loop_var)
        inner = list(self.body(stmt.body))
        pairs = list(zip(stmt.iter_args, yielded(stmt.body), stmt.return_vars, strict=True))
        moves: list[Statement] = []
        for arg, value, result in pairs:
            if isinstance(arg.type, TensorType):
                self._same(arg, value, stmt.span)
                self._tensors[result] = self._tensors[arg]
                continue
            # All are computed before the first one changes.
            fresh = self._name(arg)
            inner.append(Assign(fresh, self._scalar(value, stmt.span)))
            moves.append(Assign(self._scalars[arg], Variable(fresh)))
            self._scalars[result] = self._scalars[arg]
        return [*before, For(variable, start, stop, step, (*inner, *moves))]

    def _if(self, stmt: IfStmt) -> list[Statement]:
        condition = self._scalar(stmt.condition, stmt.span)
        then = list(self.body(stmt.then_body))
        otherwise = list(self.body(stmt.else_body))
        if not stmt.return_vars:
            return [If(condition, tuple(then), tuple(otherwise))]
        values = (yielded(stmt.then_body), yielded(stmt.else_body))
        for var, first, second in zip(stmt.return_vars, *values, strict=True):
            if isinstance(var.type, TensorType):
                self._tensors[var] = self._tensor(first, stmt.span)
                self._same(var, second, stmt.span)
            else:
                name = self._name(var)
                then.append(Assign(name, self._scalar(first, stmt.span)))
                otherwise.append(Assign(name, self._scalar(second, stmt.span)))
                self._scalars[var] = name
        return [If(condition, tuple(then), tuple(otherwise))]

    def _same(self, var: Var, value: Expr, span: Span) -> None:
        if self._tensors[var] != self._tensor(value, span):
            message = f"{var.name_hint!r} must stand for one tensor on every way to it, not for two"
            raise IRValueError(message, span)

    def _scalar(self, value: Expr, span: Span) -> Scalar:
        return lower_scalar(value, span, lambda var: Variable(self._scalars[var]))


def _declared(type_: TensorType, span: Span) -> tuple[str, int, tuple[int, ...], Layout]:
    dtype = cast("SimpleDType", type_.dtype)
    shape = constant(type_.shape, "The shape of a tensor that is compiled", span)
    return dtype.name, dtype.bits, shape, Layout(type_.layout.value.lower())
