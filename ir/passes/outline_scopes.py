"""OutlineScopes: a region that a core runs becomes a function of its own, and the region its launch.

What the region uses from around it becomes parameters, scalars included, so that what is known of an
offset travels with it. Tensors that it writes are outputs; the function returns them and the caller goes
on with what it returns. A grid becomes two functions: a wrapper that launches once a block, and the
function that a block runs. A function that launches is an Orchestration from then on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ..core import (
    AssignStmt,
    EvalStmt,
    Function,
    FunctionType,
    InCoreScopeStmt,
    ParamDirection,
    Program,
    ReturnStmt,
    ScopeStmt,
    SpmdScopeStmt,
    Stmt,
    seq,
)
from ..dtypes import TaskId
from ..errors import IRValueError
from ..expr import (
    DUMP_VARS,
    Call,
    GlobalVar,
    ScalarType,
    Submit,
    TupleGetItemExpr,
    Type,
    UnknownType,
    Var,
)
from ..properties import IRProperty
from ..types import TupleType
from ..verification.structure import CORE_TYPES
from ..verification.walk import all_calls, all_vars, statements
from ..visitor import IRMutator
from .base import Pass
from .regions import Region, region_of, variable_counts

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

_FORM = frozenset(
    {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
)
_LAUNCHED = frozenset({*CORE_TYPES, FunctionType.Spmd, FunctionType.Group})


@dataclass(frozen=True)
class OutlineScopes(Pass):
    """Make a function of every region, and a launch of every region's place."""

    name = "OutlineScopes"
    required = _FORM
    produced = _FORM

    def transform(self, program: Program) -> Program:
        """Outline the regions of all functions; the program itself when there are none.

        Raises:
            IRValueError: For a region that hands on anything but tensors, or that stands where no
                region can.
        """
        names = _FunctionNames({function.name for function in program.functions.values()})
        done: list[Function] = []
        made: list[Function] = []
        for function in program.functions.values():
            outliner = _Outliner(function, program, names)
            new = outliner.visit_function(function)
            made += outliner.made
            done.append(_as_control(new, program, launches=bool(outliner.made)))
        if not made and all(a is b for a, b in zip(done, program.functions.values(), strict=True)):
            return program
        return Program([*done, *made], program.name, program.span)


def _as_control(function: Function, program: Program, *, launches: bool) -> Function:
    """Return `function` as an Orchestration if it was undecided and launches something."""
    if function.func_type is not FunctionType.Opaque:
        return function
    if not launches:
        callees = (program.get_function(call.op.name) for call in all_calls(function))
        if not any(callee and callee.func_type in _LAUNCHED for callee in callees):
            return function
    return Function(
        function.name,
        zip(function.params, function.param_directions, strict=True),
        function.return_types,
        function.body,
        function.span,
        FunctionType.Orchestration,
        function.level,
        function.role,
        function.attrs,
    )


class _FunctionNames:
    """Names for functions that no other function has."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._next: dict[str, int] = {}

    def hinted(self, name: str) -> str:
        """Return `name`, with a number from 1 on if it is taken."""
        if name not in self._taken:
            self._taken.add(name)
            return name
        return self.counted(name, first=1)

    def counted(self, stem: str, *, first: int = 0) -> str:
        """Return `stem` with the first number that makes it free."""
        count = self._next.get(stem, first)
        while f"{stem}_{count}" in self._taken:
            count += 1
        self._next[stem] = count + 1
        self._taken.add(f"{stem}_{count}")
        return f"{stem}_{count}"


class _Outliner(IRMutator):
    """Rewrites one function; what its regions become stands in `made`."""

    def __init__(self, function: Function, program: Program, names: _FunctionNames) -> None:
        super().__init__()
        self.made: list[Function] = []
        self._caller = function
        self._program = program
        self._names = names
        self._counts: Counter[Var] | None = None
        self._order: dict[Var, int] = {}

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> Stmt:
        self._refuse_nested(op)
        region = self._region(op)
        name = self._name(op.name_hint, "incore")
        self.made.append(_core_function(name, region, op))
        return self._launch(name, region, op)

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        self._refuse_nested(op)
        if not isinstance(op.body, InCoreScopeStmt):
            return op
        region = self._region(op.body, grid=True)
        hint = op.name_hint or op.body.name_hint
        core = self._name(hint, "incore")
        self.made.append(_core_function(core, region, op))
        name = self._name(f"{hint}_spmd" if hint else "", "spmd")
        wrapped = region.with_inputs(variable_counts(op.core_num), self._order)
        self.made.append(_wrapper(name, core, wrapped, region, op))
        return self._launch(name, wrapped, op)

    def _name(self, hint: str, kind: str) -> str:
        if hint:
            return self._names.hinted(hint)
        return self._names.counted(f"{self._caller.name}_{kind}")

    def _region(self, scope: InCoreScopeStmt, *, grid: bool = False) -> Region:
        if self._counts is None:
            self._counts = variable_counts(self._caller)
            self._order = {var: place for place, var in enumerate(all_vars(self._caller))}
        return region_of(scope, self._order, self._counts, self._program, grid=grid)

    def _refuse_nested(self, scope: ScopeStmt) -> None:
        name = self._caller.name
        if self._caller.func_type in CORE_TYPES:
            message = f"{name!r} runs on a core and must not launch a region"
            raise IRValueError(message, scope.span)
        inside = [s for s in statements(scope.body) if isinstance(s, ScopeStmt)]
        if isinstance(scope, SpmdScopeStmt) and scope.body in inside:
            inside.remove(cast("ScopeStmt", scope.body))
        if inside:
            message = "A region that is launched must not stand inside another one"
            raise IRValueError(message, inside[0].span)

    def _launch(self, name: str, region: Region, scope: ScopeStmt) -> Stmt:
        """Return the launch of an outlined function, and what names its results."""
        attrs = {DUMP_VARS: list(scope.dumps)} if scope.dumps else {}
        results, span = region.returned, scope.span
        after: list[Stmt] = [AssignStmt(var, source, span) for var, source in region.aliases]
        is_submit = bool(scope.deps) or scope.task_id is not None or scope.allow_early_resolve
        if not is_submit:
            type_ = _result_type([var.type for var in results])
            call = Call(GlobalVar(name), region.inputs, {}, attrs, type_, span)
            return seq([*_named(results, call), *after], span)
        types = [*(var.type for var in results), ScalarType(TaskId)]
        submit = Submit(
            GlobalVar(name),
            region.inputs,
            scope.deps,
            {},
            attrs,
            TupleType(types),
            span,
            allow_early_resolve=scope.allow_early_resolve,
        )
        named = [*results, *(() if scope.task_id is None else (scope.task_id,))]
        return seq([*_unpacked(named, submit), *after], span)


def _core_function(name: str, region: Region, scope: ScopeStmt) -> Function:
    """Return the function that a core runs: the region with parameters for what it uses."""
    renamed = _Renamed(region)
    body = renamed.visit_stmt(region.body)
    results = [cast("Var", renamed.visit_expr(var)) for var in region.returned]
    if results:
        body = seq([body, ReturnStmt(tuple(results), scope.span)], region.body.span)
    types = [var.type for var in results]
    return Function(name, renamed.params, types, body, scope.span, FunctionType.InCore)


def _wrapper(name: str, core: str, region: Region, inner: Region, scope: SpmdScopeStmt) -> Function:
    """Return the function that launches `core` once a block; its parameters are those of `region`."""
    renamed = _Renamed(region)
    args = [renamed.visit_expr(var) for var in inner.inputs]
    results = [cast("Var", renamed.visit_expr(var)) for var in inner.returned]
    types = [var.type for var in results]
    call = Call(GlobalVar(core), args, _result_type(types), scope.span)
    launch, *unpacking = _named(results, call)
    grid = SpmdScopeStmt(
        core_num=renamed.visit_expr(scope.core_num),
        sync_start=scope.sync_start,
        body=launch,
        span=scope.span,
    )
    end = [ReturnStmt(tuple(results), scope.span)] if results else []
    body = seq([grid, *unpacking, *end], scope.span)
    return Function(name, renamed.params, types, body, scope.span, FunctionType.Spmd)


def _result_type(types: Sequence[Type]) -> Type:
    if len(types) == 1:
        return types[0]
    return TupleType(types) if types else UnknownType()


def _named(results: Sequence[Var], call: Call) -> list[Stmt]:
    """Return the statements that run a call and give its results their names."""
    if len(results) == 1:
        return [AssignStmt(results[0], call, call.span)]
    return _unpacked(results, call)


def _unpacked(names: Sequence[Var], value: Call | Submit) -> list[Stmt]:
    """Return the statements that run a launch and name the first of its results."""
    if not names:
        return [EvalStmt(value, value.span)]
    whole = Var("_tuple_tmp", value.type, value.span)
    parts = (
        AssignStmt(var, TupleGetItemExpr(whole, number, value.span), value.span)
        for number, var in enumerate(names)
    )
    return [AssignStmt(whole, value, value.span), *parts]


class _Renamed(IRMutator):
    """Puts parameters in the place of what a region uses, and new variables for what it returns."""

    def __init__(self, region: Region) -> None:
        super().__init__()
        self.params: list[tuple[Var, ParamDirection]] = []
        for name, var, direction in region.parameters():
            param = Var(name, self.visit_type(var.type), var.span)
            self.variables[var] = param
            self.params.append((param, direction))
        for var in (*region.returned, *(var for var, _ in region.aliases)):
            self.variables[var] = Var(var.name_hint, self.visit_type(var.type), var.span)
