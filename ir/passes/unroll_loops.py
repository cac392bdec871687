"""UnrollLoops: a loop over `pl.unroll` becomes its trips, one after another.

Each trip is a copy of the body with the loop variable's value in its place. The copies assign the same
names, as the trips did: which value is meant where is left to the conversion to SSA form.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core import (
    AssignStmt,
    ForKind,
    ForStmt,
    Function,
    IfStmt,
    InCoreScopeStmt,
    Stmt,
    WhileStmt,
    seq,
)
from ..errors import IRValueError
from ..expr import (
    Add,
    BinaryExpr,
    ConstBool,
    ConstInt,
    Eq,
    FloorDiv,
    FloorMod,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    ScalarType,
    Sub,
    replace,
)
from ..interp.scalars import evaluate_binary
from ..properties import IRProperty
from ..types import TensorType
from ..verification.walk import jumps, statements, type_uses
from ..visitor import IRMutator, IRVisitor, collect_def_vars
from .base import FunctionPass

if TYPE_CHECKING:
    from ..expr import Expr, Node, Var

_SAFE = (Add, Sub, Mul, Min, Max, Eq, Ne, Lt, Le, Gt, Ge)
MAX_STATEMENTS = 1 << 14
"""Statements that one loop may become."""


@dataclass(frozen=True)
class UnrollLoops(FunctionPass):
    """Replace every loop of kind Unroll by copies of its body."""

    name = "UnrollLoops"
    invalidated = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Unroll the loops of one function.

        Raises:
            IRValueError: For bounds that are no numbers, a loop that carries values or is left by a
                jump, or one that would become too long.
        """
        return _Unroller(function).visit_function(function)


class _Unroller(IRMutator):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        done = self.visit_children(op)
        if done.kind is not ForKind.Unroll:
            return done
        trips, var = _trips(done), done.loop_var
        _refuse_jumps(done.body)
        size = sum(1 for _ in statements(done.body))
        if len(trips) * size > MAX_STATEMENTS:
            message = (
                f"A loop over pl.unroll must become at most {MAX_STATEMENTS} statements, not "
                f"{len(trips)} times {size}"
            )
            raise IRValueError(message, op.span, hint="pl.range keeps it a loop")
        self._refuse_leaks(op)
        assert isinstance(var.type, ScalarType)
        results: dict[Var, Var] = {}
        copies: list[Stmt] = []
        for trip in trips:
            copy = _Copy(var, ConstInt(trip, var.type.dtype, var.span), results, trip == trips[-1])
            copies.append(copy.visit_stmt(done.body))
        return seq(copies, op.span)

    def _refuse_leaks(self, loop: ForStmt) -> None:
        """Refuse a variable of another type in each trip that is used behind the loop."""
        changing = [v for v in collect_def_vars(loop.body) if loop.loop_var in type_uses(v.type)]
        if not changing:
            return
        inside, everywhere = _occurrences(loop.body), _occurrences(self._function)
        for var in changing:
            if everywhere[var] > inside[var]:
                message = (
                    f"{var.name_hint!r} must be used inside of the loop over pl.unroll only, since "
                    f"its extents depend on {loop.loop_var.name_hint!r}"
                )
                raise IRValueError(message, var.span)


class _Copy(IRMutator):
    """Makes one trip of a loop: its number for the loop variable, and its own names where a name is new.

    A loop inside has a variable and arguments of its own in each trip, and so have results that are
    named by a yield; those of the last trip keep their variables, which are used behind the loop. A
    region has tiles and scalars of its own. Other names that are assigned stay: an assignment may be
    repeated.

    Args:
        var: The loop's variable.
        number: What stands for it.
        results: The variable for each named result so far; updated.
        last: Whether this is the last trip.
    """

    def __init__(self, var: Var, number: ConstInt, results: dict[Var, Var], last: bool) -> None:
        super().__init__()
        self._var = var
        self._number = number
        self._results = results
        self._last = last
        self._local: set[Var] | None = None
        self.variables.update(results)

    def visit_var(self, op: Var) -> Any:
        return self._number if op is self._var else super().visit_var(op)

    def visit_binary_expr(self, op: BinaryExpr) -> Expr:
        """Compute what the number makes constant: shapes and offsets must be seen to be."""
        new = self.visit_children(op)
        match new:
            case BinaryExpr(left=ConstInt(value=left), right=ConstInt(value=right)) if (
                new is not op
            ):
                is_safe = isinstance(new, _SAFE) or (isinstance(new, FloorDiv | FloorMod) and right)
                value = evaluate_binary(new, left, right) if is_safe else None
            case _:
                return new
        if value is None:
            return new
        if isinstance(value, bool):
            return ConstBool(value, op.span)
        return ConstInt(int(value), new.dtype, op.span)

    def visit_in_core_scope_stmt(self, op: InCoreScopeStmt) -> Stmt:
        outer, self._local = self._local, set()
        done = self.visit_children(op)
        self._local = outer
        return done

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = self.visit_expr(op.value)
        if self._local is not None and not isinstance(op.var.type, TensorType):
            if op.var not in self._local:
                self._own(op.var)
            self._local.add(op.var)
        var = self.visit_var(op.var)
        same = value is op.value and var is op.var
        return op if same else replace(op, var=var, value=value)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        bounds = {name: self.visit_expr(getattr(op, name)) for name in ("start", "stop", "step")}
        args = self._arguments(op)
        own = self._own(op.loop_var)
        body = self.visit_stmt(op.body)
        return replace(
            op, **bounds, loop_var=own, iter_args=args, body=body, return_vars=self._named(op)
        )

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        args = self._arguments(op)
        condition, body = self.visit_expr(op.condition), self.visit_stmt(op.body)
        return replace(
            op, condition=condition, iter_args=args, body=body, return_vars=self._named(op)
        )

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        condition = self.visit_expr(op.condition)
        then_body = self.visit_stmt(op.then_body)
        else_body = None if op.else_body is None else self.visit_stmt(op.else_body)
        return replace(
            op,
            condition=condition,
            then_body=then_body,
            else_body=else_body,
            return_vars=self._named(op),
        )

    def _arguments(self, op: ForStmt | WhileStmt) -> tuple[Var, ...]:
        first = [self.visit_expr(arg.init_value) for arg in op.iter_args]
        return tuple(
            self._own(arg, init_value=value) for arg, value in zip(op.iter_args, first, strict=True)
        )

    def _own(self, var: Var, **changes: object) -> Var:
        """Return the variable of this trip for one that the loop inside defines."""
        made = replace(var, type=self.visit_type(var.type), **changes)
        self.variables[var] = made
        return made

    def _named(self, op: ForStmt | WhileStmt | IfStmt) -> tuple[Var, ...]:
        for var in op.return_vars:
            self.variables.pop(var, None)
            made = self.visit_var(var) if self._last else self._own(var)
            self.variables[var] = self._results[var] = made
        return tuple(self._results[var] for var in op.return_vars)


def _trips(loop: ForStmt) -> range:
    bounds = (loop.start, loop.stop, loop.step)
    numbers = [bound.value for bound in bounds if isinstance(bound, ConstInt)]
    if len(numbers) < len(bounds) or numbers[2] == 0:
        found = "a step of 0" if len(numbers) == len(bounds) else "variables"
        message = f"The bounds of pl.unroll must be numbers, its step not 0, but it has {found}"
        raise IRValueError(message, loop.span, hint="pl.range takes bounds that are computed")
    if loop.iter_args or loop.return_vars:
        message = "A loop over pl.unroll must not carry values by init_values"
        raise IRValueError(message, loop.span, hint="assign the name again in the body: x = x + 1")
    return range(*numbers)


def _refuse_jumps(body: Stmt) -> None:
    for jump in jumps(body):
        message = "A loop over pl.unroll must not be left by break or continue"
        raise IRValueError(message, jump.span)


class _Occurrences(IRVisitor):
    def __init__(self) -> None:
        self.found: Counter[Var] = Counter()

    def visit_var_like(self, op: Var) -> None:
        self.found[op] += 1


def _occurrences(node: Node) -> Counter[Var]:
    counter = _Occurrences()
    if isinstance(node, Function):
        counter.visit_function(node)
    else:
        counter.visit(node)
    return counter.found
