"""The proof engine of BlockMxScaleTensorViews: is an offset aligned, and is it never negative?

One walk over the whole program collects facts; a proof is then a bounded search through them. Every
visited expression costs one step of a budget of 256, and nothing is remembered between visits, so
that a proof costs the same whatever was proved before. What cannot be shown counts as false.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ..expr import (
    Add,
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    FloorMod,
    GlobalVar,
    IterArg,
    Mul,
    ScalarType,
    Sub,
    Submit,
    Var,
)
from ..types import CommCtxType
from ..visitor import IRVisitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..core import AssignStmt, ForStmt, Function, IfStmt, Program, WhileStmt

BUDGET = 256
_INT64_MAX = (1 << 63) - 1
_BLOCK_IDENTITY = frozenset({"tile.get_block_idx", "tile.get_block_num"})

#: What the error of an offset lists that is not provably a multiple.
PROVABLE_MULTIPLES = (
    "constants, loop variables with constant start and step, scalar parameters that every call "
    "passes so, and sums, differences, products and quotients by a power of two of these"
)
#: What the error of an offset lists that is not provably non-negative.
PROVABLE_SIGNS = (
    "constants, loop variables with constant start and step of 0 or more, tile.get_block_idx(), "
    "tile.get_block_num(), scalar parameters that every call passes so, and sums, products, and "
    "quotients and remainders by a positive constant of these"
)


class _Binding(Enum):
    PARAMETER = "parameter"
    LOOP = "loop"
    VALUE = "value"


@dataclass
class OffsetFacts:
    """What a program says about its scalar variables.

    Attributes:
        definitions: The expression assigned to a scalar.
        block_identities: Scalars taken straight from the block index or number.
        loops: Start and step of each loop over a variable; None where they are not constants.
        sources: What each call passes for a scalar parameter; None is an unknown value.
        rebound: Variables that get values in two ways: nothing is known of them.
    """

    definitions: dict[Var, Expr] = field(default_factory=dict[Var, Expr])
    block_identities: set[Var] = field(default_factory=set[Var])
    loops: dict[Var, list[tuple[int, int] | None]] = field(
        default_factory=dict[Var, "list[tuple[int, int] | None]"]
    )
    sources: dict[Var, list[Expr | None]] = field(default_factory=dict[Var, "list[Expr | None]"])
    rebound: set[Var] = field(default_factory=set[Var])

    @classmethod
    def of(cls, program: Program) -> OffsetFacts:
        """Collect the facts of `program` in one walk."""
        collector = _Collector(program)
        collector.visit_program(program)
        return collector.facts


class _Collector(IRVisitor):
    def __init__(self, program: Program) -> None:
        self.facts = OffsetFacts()
        self._functions = {g.name: f for g, f in program.functions.items()}
        self._bindings: dict[Var, _Binding] = {}

    def _bind(self, var: Var, how: _Binding) -> None:
        """Note a way in which `var` gets a value; a second definition, or another way, spoils it."""
        known = self._bindings.setdefault(var, how)
        if known is not how:
            self.facts.rebound.add(var)

    def visit_function(self, op: Function) -> None:
        for param in op.params:
            self._bind(param, _Binding.PARAMETER)
        super().visit_function(op)

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if isinstance(op.var.type, ScalarType):
            self._bind(op.var, _Binding.VALUE)
            if self.facts.definitions.setdefault(op.var, op.value) is not op.value:
                self.facts.rebound.add(op.var)
            if isinstance(op.value, Call) and op.value.op.name in _BLOCK_IDENTITY:
                self.facts.block_identities.add(op.var)
        self.visit_children(op)

    def visit_for_stmt(self, op: ForStmt) -> None:
        self._bind(op.loop_var, _Binding.LOOP)
        known = isinstance(op.start, ConstInt) and isinstance(op.step, ConstInt)
        fact = (op.start.value, op.step.value) if known else None
        self.facts.loops.setdefault(op.loop_var, []).append(fact)
        self._results(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        self._results(op)

    def visit_if_stmt(self, op: IfStmt) -> None:
        self._results(op)

    def _results(self, op: ForStmt | WhileStmt | IfStmt) -> None:
        for var in op.return_vars:
            if var in self._bindings:
                self.facts.rebound.add(var)
            self._bind(var, _Binding.VALUE)
        self.visit_children(op)

    def visit_call(self, op: Call) -> None:
        callee = self._functions.get(op.op.name) if isinstance(op.op, GlobalVar) else None
        if callee is not None:
            known = len(op.args) == len(callee.params)
            self._record(callee, zip(callee.params, op.args, strict=True) if known else None)
        self.visit_children(op)

    def visit_submit(self, op: Submit) -> None:
        callee = self._functions.get(op.op.name)
        if callee is not None:
            self._record(callee, _submit_pairs(callee, op))
        self.visit_children(op)

    def _record(self, callee: Function, pairs: Iterable[tuple[Var, Expr]] | None) -> None:
        given = dict.fromkeys(callee.params) if pairs is None else dict(pairs)
        for param, source in given.items():
            if isinstance(param.type, ScalarType):
                self.facts.sources.setdefault(param, []).append(source)


def _submit_pairs(callee: Function, op: Submit) -> Iterable[tuple[Var, Expr]] | None:
    """Pair parameters and arguments; outputs in between may be left to the runtime."""
    params, args = callee.params, op.args
    trailing = 0
    while trailing < len(params) and isinstance(params[-1 - trailing].type, CommCtxType):
        trailing += 1
    if len(args) > len(params) or len(args) < trailing:
        return None
    head = len(args) - trailing
    tail = len(params) - trailing
    return [
        *zip(params[:head], args[:head], strict=True),
        *zip(params[tail:], args[head:], strict=True),
    ]


# --------------------------------------------------------------------------- proofs


def prove_multiple(
    facts: OffsetFacts, expr: Expr, divisor: int
) -> tuple[tuple[Var, int], ...] | None:
    """Prove `expr` a multiple of `divisor`, a power of two, within the budget.

    Returns:
        The parameters that the proof leans on, each with what it must be a multiple of; None when
        there is no proof.
    """
    proof = _Proof(facts)
    return tuple(proof.leans_on) if _within_budget(lambda: proof.divides(expr, divisor)) else None


def prove_non_negative(facts: OffsetFacts, expr: Expr) -> tuple[Var, ...] | None:
    """Prove `expr` never negative, within a budget of its own.

    Returns:
        The parameters that must not be negative for it; None when there is no proof.
    """
    proof = _Proof(facts)
    if not _within_budget(lambda: proof.non_negative(expr)):
        return None
    return tuple(var for var, _ in proof.leans_on)


class _OutOfBudget(Exception):  # noqa: N818 - control flow inside this file
    pass


def _within_budget(prove: Callable[[], bool]) -> bool:
    try:
        return prove()
    except _OutOfBudget:
        return False


class _Proof:
    """A proof under way: what is left of its budget, and the parameters that it leans on."""

    def __init__(self, facts: OffsetFacts) -> None:
        self._facts = facts
        self._left = BUDGET
        self.leans_on: list[tuple[Var, int]] = []

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _OutOfBudget

    def divides(self, expr: Expr | None, divisor: int) -> bool:
        if expr is None:
            return False
        self._spend()
        match expr:
            case ConstInt():
                return expr.value % divisor == 0
            case Mul():
                return self._one_of((expr.left, expr.right), lambda e: self.divides(e, divisor))
            case Add() | Sub():
                return self.divides(expr.left, divisor) and self.divides(expr.right, divisor)
            case FloorDiv(right=ConstInt(value=by)):
                power_of_two = by > 0 and by & (by - 1) == 0
                if not power_of_two or by * divisor > _INT64_MAX:
                    return False
                return self.divides(expr.left, by * divisor)
            case Var():
                return self._variable(
                    expr,
                    divisor,
                    lambda start, step: start % divisor == 0 and step % divisor == 0,
                    lambda e: self.divides(e, divisor),
                )
            case _:
                return False

    def non_negative(self, expr: Expr | None) -> bool:
        if expr is None:
            return False
        self._spend()
        match expr:
            case ConstInt():
                return expr.value >= 0
            case Mul() | Add():
                return self.non_negative(expr.left) and self.non_negative(expr.right)
            case FloorDiv(right=ConstInt(value=by)) | FloorMod(right=ConstInt(value=by)):
                return by > 0 and self.non_negative(expr.left)
            case Var() if expr in self._facts.block_identities:
                return expr not in self._facts.rebound
            case Var():
                return self._variable(
                    expr, 1, lambda start, step: start >= 0 and step >= 0, self.non_negative
                )
            case _:
                return False

    def _one_of(self, exprs: Iterable[Expr], prove: Callable[[Expr], bool]) -> bool:
        """Whether one expression is proved; what the others leaned on is forgotten, not refunded."""
        before = len(self.leans_on)
        for expr in exprs:
            if prove(expr):
                return True
            del self.leans_on[before:]
        return False

    def _variable(
        self,
        var: Var,
        divisor: int,
        loop_holds: Callable[[int, int], bool],
        prove: Callable[[Expr | None], bool],
    ) -> bool:
        """Prove a variable by its loops, else by what every call passes, else by its definition."""
        facts = self._facts
        if isinstance(var, IterArg) or var in facts.rebound:
            return False
        if var in facts.loops:
            return all(fact is not None and loop_holds(*fact) for fact in facts.loops[var])
        if var in facts.sources:
            self.leans_on.append((var, divisor))
            return all(prove(source) for source in facts.sources[var])
        return prove(facts.definitions.get(var))
