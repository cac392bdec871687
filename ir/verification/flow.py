"""Rules on where variables get their values: SSA form, use after definition, use after Out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    ForStmt,
    Function,
    IfStmt,
    ParamDirection,
    Program,
    ScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..dynamic_dims import is_dynamic
from ..expr import Call, GlobalVar, Submit, Var
from ..tensor_roots import returned_params
from .walk import all_vars, bodies, calls, defined_vars, leaves, own_exprs, type_uses, uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..errors import Span
    from ..expr import Expr
    from .diagnostics import Findings

MULTIPLE_ASSIGNMENT = 1
SHADOWING = 2
MISSING_YIELD = 3
ITER_RETURN_COUNT = 4
YIELD_COUNT = 5
SCOPE_VIOLATION = 6
MISPLACED_YIELD = 7
USE_BEFORE_DEFINITION = 401
USE_AFTER_OUT = 501


# --------------------------------------------------------------------------- SSA form


def check_ssa(function: Function, program: Program, findings: Findings) -> None:
    """Every variable is defined once and used inside its scope; yields are where they belong."""
    del program
    checker = _SSAChecker(function, findings)
    symbols = {var for param in function.params for var in type_uses(param.type)}
    checker.body(function.body, {*function.params, *symbols}, wanted=None)


class _SSAChecker:
    def __init__(self, function: Function, findings: Findings) -> None:
        self._findings = findings
        self._defined = set(function.params)
        self._anywhere = set(all_vars(function))

    def body(self, body: Stmt, visible: set[Var], wanted: int | None) -> None:
        """Check a body; `wanted` is how many values its last statement must yield."""
        self._statements(body, set(visible), wanted)

    def _statements(self, body: Stmt, visible: set[Var], wanted: int | None) -> None:
        """Check the statements of a body; what they define joins `visible`."""
        stmts = flatten_to_stmts(body)
        for position, stmt in enumerate(stmts):
            self._uses(own_exprs(stmt), visible, stmt.span)
            if isinstance(stmt, YieldStmt):
                self._yield(stmt, wanted, is_last=position == len(stmts) - 1)
            else:
                self._stmt(stmt, visible)
        ends = bool(stmts) and isinstance(stmts[-1], YieldStmt)
        if wanted and not ends and not leaves(body):
            message = f"A body must end in a yield of {wanted} value(s), but has none"
            self._findings.error(MISSING_YIELD, message, body.span)

    def _yield(self, stmt: YieldStmt, wanted: int | None, *, is_last: bool) -> None:
        if not is_last or wanted is None:
            message = "A yield must be the last statement of a loop or branch that hands on values"
            self._findings.error(MISPLACED_YIELD, message, stmt.span)
        elif len(stmt.value) != wanted:
            message = f"A yield must hand on {wanted} value(s), not {len(stmt.value)}"
            self._findings.error(YIELD_COUNT, message, stmt.span)

    def _stmt(self, stmt: Stmt, visible: set[Var]) -> None:
        match stmt:
            case AssignStmt():
                self._define(stmt.var, MULTIPLE_ASSIGNMENT, stmt.span)
                visible.add(stmt.var)
            case ForStmt() | WhileStmt():
                if len(stmt.iter_args) != len(stmt.return_vars):
                    message = (
                        "A loop must have as many return variables as iteration arguments, "
                        f"not {len(stmt.return_vars)} for {len(stmt.iter_args)}"
                    )
                    self._findings.error(ITER_RETURN_COUNT, message, stmt.span)
                inner = set(visible)
                own = defined_vars(stmt)[: -len(stmt.return_vars) or None]
                for var in own:
                    self._define(var, SHADOWING, stmt.span)
                    inner.add(var)
                if isinstance(stmt, WhileStmt):
                    self._uses((stmt.condition,), inner, stmt.span)
                self.body(stmt.body, inner, len(stmt.iter_args) or None)
                self._results(stmt.return_vars, visible, stmt.span)
            case IfStmt():
                wanted = len(stmt.return_vars) or None
                if wanted and stmt.else_body is None:
                    message = "A branch that hands on values must have an else"
                    self._findings.error(MISSING_YIELD, message, stmt.span)
                for arm in bodies(stmt):
                    self.body(arm, visible, wanted)
                self._results(stmt.return_vars, visible, stmt.span)
            case ScopeStmt():
                self._statements(stmt.body, visible, wanted=None)
                self._results(defined_vars(stmt), visible, stmt.span)
            case _:
                pass

    def _results(self, return_vars: Sequence[Var], visible: set[Var], span: Span) -> None:
        for var in return_vars:
            self._define(var, MULTIPLE_ASSIGNMENT, span)
            visible.add(var)

    def _define(self, var: Var, code: int, span: Span) -> None:
        if var in self._defined:
            verb = "hide a variable" if code == SHADOWING else "be assigned a second time"
            self._findings.error(code, f"{var.name_hint!r} must not {verb}", span)
        self._defined.add(var)

    def _uses(self, exprs: Iterable[Expr], visible: set[Var], span: Span) -> None:
        for var in uses(exprs):
            if var in self._defined and var in self._anywhere and var not in visible:
                message = (
                    f"{var.name_hint!r} must be used inside the loop or branch that defines it"
                )
                self._findings.error(SCOPE_VIOLATION, message, span)


# --------------------------------------------------------------------------- use after definition


def check_use_after_definition(function: Function, program: Program, findings: Findings) -> None:
    """Every use comes after a definition on every way to it.

    What a loop's body defines counts as defined after the loop, as it does before SSA conversion;
    the rule on SSA form is the one that refuses it there. Dimensions in types are uses too; those
    of parameters name the symbols of a dynamic shape.
    """
    del program
    symbols = {var for param in function.params for var in type_uses(param.type)}
    _Definitions(findings).body(function.body, {*function.params, *symbols})


class _Definitions:
    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def body(self, body: Stmt | None, defined: set[Var]) -> set[Var]:
        """Return what is defined after a body that starts with `defined`."""
        defined = set(defined)
        for stmt in flatten_to_stmts(body):
            defined = self._stmt(stmt, defined)
        return defined

    def _stmt(self, stmt: Stmt, defined: set[Var]) -> set[Var]:
        exprs = own_exprs(stmt)
        self._check(uses(exprs), defined, stmt.span)
        for call in calls(exprs):
            self._check(type_uses(call.type), defined, call.span)
        match stmt:
            case AssignStmt():
                self._check(type_uses(stmt.var.type), defined, stmt.span)
                return defined | {stmt.var}
            case ForStmt():
                inner = self.body(stmt.body, defined | {stmt.loop_var, *stmt.iter_args})
                return inner | set(stmt.return_vars)
            case WhileStmt():
                entered = defined | set(stmt.iter_args)
                self._check(uses((stmt.condition,)), entered, stmt.span)
                return self.body(stmt.body, entered) | set(stmt.return_vars)
            case IfStmt():
                then, other = (self.body(arm, defined) for arm in (stmt.then_body, stmt.else_body))
                if leaves(stmt.then_body):
                    after = other
                elif leaves(stmt.else_body):
                    after = then
                else:
                    after = then & other
                return after | set(stmt.return_vars)
            case ScopeStmt():
                return self.body(stmt.body, defined) | set(defined_vars(stmt))
            case _:
                return defined

    def _check(self, used: Iterable[Var], defined: set[Var], span: Span) -> None:
        for var in used:
            if var not in defined and not is_dynamic(var):
                message = f"{var.name_hint!r} must be defined before it is used"
                self._findings.error(USE_BEFORE_DEFINITION, message, span)


# --------------------------------------------------------------------------- use after Out


def check_inout_use(function: Function, program: Program, findings: Findings) -> None:
    """A variable that was passed as Out or InOut is not read afterwards: its result replaces it.

    Where the callee returns something else only, no result does, and the variable keeps its name.
    """
    _Consumption(program, findings).body(function.body, {})


class _Consumption:
    def __init__(self, program: Program, findings: Findings) -> None:
        self._program = program
        self._findings = findings
        self._returned: dict[str, frozenset[int]] = {}

    def body(self, body: Stmt | None, taken: dict[Var, str]) -> dict[Var, str]:
        """Return what is taken after a body: variable to the callee that took it."""
        taken = dict(taken)
        for stmt in flatten_to_stmts(body):
            exprs = own_exprs(stmt)
            if isinstance(stmt, WhileStmt):
                exprs = (*exprs, stmt.condition)
            for var in uses(exprs):
                if var in taken:
                    message = (
                        f"{var.name_hint!r} must not be read after it was passed as output to "
                        f"{taken[var]}: use the result of that call"
                    )
                    self._findings.error(USE_AFTER_OUT, message, stmt.span)
            for call in calls(exprs):
                taken.update(self._taken_by(call))
            match stmt:
                case IfStmt():
                    arms = (stmt.then_body, stmt.else_body)
                    first, second = (self.body(arm, taken) for arm in arms)
                    taken = first | second
                case ForStmt() | WhileStmt() | ScopeStmt():
                    taken |= self.body(stmt.body, taken)
                case _:
                    pass
            for var in defined_vars(stmt):
                taken.pop(var, None)
        return taken

    def _taken_by(self, call: Call | Submit) -> dict[Var, str]:
        name = call.op.name
        callee = self._program.get_function(name) if isinstance(call.op, GlobalVar) else None
        if callee is None or not callee.return_types:
            return {}
        replaced = self._replaced(callee)
        pairs = zip(call.args, callee.param_directions, strict=False)
        return {
            arg: name
            for number, (arg, direction) in enumerate(pairs)
            if isinstance(arg, Var) and direction is not ParamDirection.In and number in replaced
        }

    def _replaced(self, callee: Function) -> frozenset[int]:
        """Return the parameters of a function that its results replace."""
        if callee.name not in self._returned:
            numbers = returned_params(callee, self._program)
            self._returned[callee.name] = frozenset(n for n in numbers if n is not None)
        return self._returned[callee.name]
