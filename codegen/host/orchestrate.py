"""Orchestration: a function that makes tensors and launches kernels becomes a host program.

Other control functions that it calls, such as the wrapper of a grid, are spliced in where they are
called.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ...ir.binding import result_name, source_name
from ...ir.core import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    Function,
    IfStmt,
    ReturnStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ...ir.errors import IRValueError
from ...ir.expr import Call, Expr, GlobalVar, MakeTuple, ScalarType, Submit, TupleGetItemExpr, Var
from ...ir.types import TensorType
from ..scalars.exprs import Variable
from ..select.body import ONE_TENSOR, yielded
from .launching import (
    Launched,
    Manner,
    callee_of,
    declared,
    launch,
    manner_of,
    pair_arguments,
)
from .names import Names
from .program import ONE_BLOCK, Alias, Allocate, Assign, For, HostProgram, If, Join, Output, While

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...ir.errors import Span
    from ..tensors import Param
    from .bindings import Callee
    from .program import Statement


def host_program(
    function: Function,
    params: tuple[Param, ...],
    callees: Mapping[str, Callee],
    control: Mapping[str, Function] | None = None,
) -> HostProgram:
    """Return the host program of a control function.

    Args:
        function: The function after all passes.
        params: Its parameters as written.
        callees: The program's kernels by name.
        control: The program's control functions by name.

    Raises:
        IRValueError: For a statement that the control plane cannot run.
        IRTypeError: For a tensor of symbolic shape, or a scalar that is no integer.
    """
    builder = _Builder(function, callees, control or {})
    body = builder.body(function.body)
    written = [param.name for param in params if param.is_tensor and param.direction.writes]
    returned = [
        (name, buffer)
        for name, buffer in builder.returned
        if builder.names.roots[buffer] not in written
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

    def __init__(
        self, function: Function, callees: Mapping[str, Callee], control: Mapping[str, Function]
    ) -> None:
        self.returned: list[tuple[str | None, str]] = []
        self.names = Names()
        self._callees = callees
        self._control = control
        self._inside = [function.name]
        self._manner = Manner()
        for param in function.params:
            if isinstance(param.type, TensorType):
                self.names.declare(param)
            else:
                self.names.scalar_name(param)

    # ----------------------------------------------------------------- statements

    def body(self, body: Stmt | None) -> tuple[Statement, ...]:
        """Return the host statements of a body."""
        out: list[Statement] = []
        for stmt in flatten_to_stmts(body):
            match stmt:
                case AssignStmt():
                    out += self._assign(stmt)
                case EvalStmt(expr=Call() | Submit() as call):
                    out += self._call(None, call)
                case ForStmt():
                    out += self._for(stmt)
                case WhileStmt():
                    out += self._while(stmt)
                case IfStmt():
                    out += self._if(stmt)
                case SpmdScopeStmt():
                    out += self._grid(stmt)
                case ReturnStmt():
                    self.returned = [self._result(value, stmt.span) for value in stmt.value]
                case YieldStmt():
                    continue
                case _:
                    kind = type(stmt).__name__.removesuffix("Stmt").lower()
                    message = (
                        "An orchestration that is compiled must be made of assignments, calls, "
                        f"loops and branches, not of {kind!r}"
                    )
                    raise IRValueError(message, stmt.span)
        return tuple(out)

    def _result(self, value: Expr, span: Span) -> tuple[str | None, str]:
        if not self.names.has_tensor(value):
            message = "An orchestration that is compiled must return tensors, not scalars"
            raise IRValueError(message, span)
        return result_name(value), self.names.tensor(value, span)

    def _assign(self, stmt: AssignStmt) -> list[Statement]:
        var, value, names = stmt.var, stmt.value, self.names
        match value:
            case Call(args=(MakeTuple(elements=deps),)) if value.op.name == "system.task_dummy":
                waited = tuple(names.scalar(dep, stmt.span) for dep in deps)
                return [Join(names.scalar_name(var), waited)]
            case TupleGetItemExpr():
                parts = names.parts(value.tuple)
                assert parts is not None, "tuples come from calls"
                names.bind(var, parts[value.index])
                return []
            case _ if isinstance(var.type, ScalarType):
                lowered = names.scalar(value, stmt.span)
                return [Assign(names.scalar_name(var), lowered)]
            case Call() | Submit():
                return self._call(var, value)
            case Var():
                names.bind(var, *(names.parts(value) or (names.tensor(value, stmt.span),)))
                return []
            case _:
                message = (
                    "An orchestration that is compiled must get its tensors from calls, not from a "
                    f"{type(value).__name__}"
                )
                raise IRValueError(message, stmt.span)

    def _call(self, var: Var | None, call: Call | Submit) -> list[Statement]:
        if isinstance(call, Submit):
            return self._submit(var, call)
        if isinstance(call.op, GlobalVar):
            launched = self._launch(call, self._manner)
            if var is not None and launched.results:
                self.names.bind(var, *launched.results)
            return list(launched.statements)
        if call.op.name not in ("tensor.create", "tensor.view"):
            message = (
                "An orchestration that is compiled must call kernels, tensor.create and "
                f"tensor.view, not {call.op.name}"
            )
            raise IRValueError(message, call.span, hint="move the op into a kernel and call that")
        if var is None:
            return []
        what = declared(cast("TensorType", var.type), call.span)
        if call.op.name == "tensor.create":
            return [Allocate(self.names.declare(var), *what)]
        source = self.names.tensor(call.args[0], call.span)
        return [Alias(self.names.declare(var, source), source, *what)]

    # ----------------------------------------------------------------- launches

    def _submit(self, var: Var | None, submit: Submit) -> list[Statement]:
        manner = manner_of(self.names, submit, self._manner)
        launched = self._launch(submit, manner)
        if var is not None:
            self.names.bind(var, *launched.results, manner.name)
        if submit.predicate is None:
            return list(launched.statements)
        # Its outputs are there in any case, and who waits for it then waits for nothing.
        condition = self.names.scalar(submit.predicate, submit.span)
        made = [each for each in launched.statements if isinstance(each, Allocate)]
        rest = tuple(each for each in launched.statements if not isinstance(each, Allocate))
        return [*made, If(condition, rest, (Join(manner.name, ()),))]

    def _grid(self, stmt: SpmdScopeStmt) -> list[Statement]:
        """Return the launch that a grid holds, once a block."""
        outer, names = self._manner, self.names
        if outer.blocks != ONE_BLOCK:
            message = "A grid must not stand inside another one"
            raise IRValueError(message, stmt.span)
        self._manner = replace(
            outer,
            blocks=names.scalar(stmt.core_num, stmt.span),
            deps=(*outer.deps, *(names.scalar(dep, stmt.span) for dep in stmt.deps)),
            name=outer.name if stmt.task_id is None else names.scalar_name(stmt.task_id),
            sync_start=stmt.sync_start,
        )
        made = list(self.body(stmt.body))
        self._manner = outer
        return made

    def _launch(self, call: Call | Submit, manner: Manner) -> Launched:
        function = self._control.get(call.op.name)
        if function is None:
            return launch(self.names, callee_of(self._callees, call), call, manner)
        return self._spliced(function, call, manner)

    def _spliced(self, function: Function, call: Call | Submit, manner: Manner) -> Launched:
        """Return the statements of another control function, its parameters bound."""
        if function.name in self._inside:
            chain = " -> ".join((*self._inside, function.name))
            message = f"Control functions that are compiled must not call themselves, as in {chain}"
            raise IRValueError(message, call.span)
        if isinstance(call, Submit) and not _is_grid(function):
            message = (
                f"A submit that is compiled must launch a kernel or a grid, not {function.name!r}"
            )
            raise IRValueError(message, call.span)
        made: list[Statement] = []
        for param, _, arg in pair_arguments(function, call):
            if isinstance(param.type, TensorType):
                if arg is None:
                    name = self.names.scratch(param.name_hint)
                    made.append(Allocate(name, *declared(param.type, call.span)))
                else:
                    name = self.names.tensor(arg, call.span)
                self.names.bind(param, name)
            else:
                assert arg is not None, "only outputs are left out"
                value = self.names.scalar(arg, call.span)
                made.append(Assign(self.names.scalar_name(param), value))
        outer = self._manner, self.returned
        self._manner, self.returned = manner, []
        self._inside.append(function.name)
        made += self.body(function.body)
        self._inside.pop()
        results = tuple(buffer for _, buffer in self.returned)
        self._manner, self.returned = outer
        return Launched(tuple(made), results)

    # ----------------------------------------------------------------- control flow

    def _for(self, stmt: ForStmt) -> list[Statement]:
        start, stop, step = (
            self.names.scalar(each, stmt.span) for each in (stmt.start, stmt.stop, stmt.step)
        )
        before = self._enter(stmt)
        variable = self.names.scalar_name(stmt.loop_var)
        return [*before, For(variable, start, stop, step, self._trip(stmt))]

    def _while(self, stmt: WhileStmt) -> list[Statement]:
        before = self._enter(stmt)
        condition = self.names.scalar(stmt.condition, stmt.span)
        return [*before, While(condition, self._trip(stmt))]

    def _enter(self, stmt: ForStmt | WhileStmt) -> list[Statement]:
        """Give what a loop carries its first values."""
        before: list[Statement] = []
        for arg in stmt.iter_args:
            if isinstance(arg.type, TensorType):
                self.names.bind(arg, self.names.tensor(arg.init_value, stmt.span))
            else:
                first = self.names.scalar(arg.init_value, stmt.span)
                before.append(Assign(self.names.scalar_name(arg), first))
        return before

    def _trip(self, stmt: ForStmt | WhileStmt) -> tuple[Statement, ...]:
        """Return a loop's body, with what hands its values on."""
        inner = list(self.body(stmt.body))
        moves: list[Statement] = []
        for arg, value, result in zip(
            stmt.iter_args, yielded(stmt.body), stmt.return_vars, strict=True
        ):
            if isinstance(arg.type, TensorType):
                self._same(arg, value, stmt.span)
                self.names.bind(result, self.names.tensor(arg, stmt.span))
                continue
            # All are computed before the first one changes.
            fresh = self.names.fresh(arg.name_hint)
            inner.append(Assign(fresh, self.names.scalar(value, stmt.span)))
            carried = self.names.scalar(arg, stmt.span)
            assert isinstance(carried, Variable)
            moves.append(Assign(carried.name, Variable(fresh)))
            self.names.bind(result, carried.name)
        return (*inner, *moves)

    def _if(self, stmt: IfStmt) -> list[Statement]:
        condition = self.names.scalar(stmt.condition, stmt.span)
        then = list(self.body(stmt.then_body))
        otherwise = list(self.body(stmt.else_body))
        if not stmt.return_vars:
            return [If(condition, tuple(then), tuple(otherwise))]
        values = (yielded(stmt.then_body), yielded(stmt.else_body))
        for var, first, second in zip(stmt.return_vars, *values, strict=True):
            if isinstance(var.type, TensorType):
                self.names.bind(var, self.names.tensor(first, stmt.span))
                self._same(var, second, stmt.span)
            else:
                one, other = (self.names.scalar(each, stmt.span) for each in (first, second))
                name = self.names.scalar_name(var)
                then.append(Assign(name, one))
                otherwise.append(Assign(name, other))
        return [If(condition, tuple(then), tuple(otherwise))]

    def _same(self, var: Var, value: Expr, span: Span) -> None:
        if self.names.tensor(var, span) != self.names.tensor(value, span):
            message = (
                f"{source_name(var)!r} must stand for one tensor on every way to it, not for two"
            )
            raise IRValueError(message, span, hint=ONE_TENSOR)


def _is_grid(function: Function) -> bool:
    """Whether a control function does nothing but launch one grid and return its results."""
    stmts = flatten_to_stmts(function.body)
    return sum(isinstance(stmt, SpmdScopeStmt) for stmt in stmts) == 1 and not any(
        isinstance(stmt, ForStmt | WhileStmt | IfStmt | EvalStmt)
        or (isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call | Submit))
        for stmt in stmts
    )
