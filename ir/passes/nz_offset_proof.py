"""The proof engine of BlockNzTensorViews: is an offset whole boxes, and is it never negative?

What is known comes from the whole program: constants, loops with constant start and step, block
numbers, scalars assigned once, and, for a parameter, what every call in the program passes. A proof may
look at 256 expressions; one that needs more, or anything unknown, has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
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
    from collections.abc import Sequence

    from ..core import AssignStmt, ForStmt, Function, IfStmt, Program, WhileStmt

STEPS = 256
_BLOCKS = ("tile.get_block_idx", "tile.get_block_num")
_LARGEST = (1 << 63) - 1

PROVABLE = (
    "constants, loop variables with constant start and step, block numbers, scalar parameters that "
    "every call passes so, and sums, products and quotients of these"
)
"""What the error of an offset lists that could not be proven."""


@dataclass
class _Scalar:
    """How a scalar variable comes to its value: what it may be, and whether that is all."""

    values: list[Expr] = field(default_factory=list[Expr])
    loops: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    is_block: bool = False
    is_param: bool = False
    is_known: bool = True
    ways: int = 0


class NzFacts(IRVisitor):
    """What a program says about its scalars."""

    def __init__(self, program: Program) -> None:
        self._functions = {g.name: f for g, f in program.functions.items()}
        self._scalars: dict[Var, _Scalar] = {}
        for function in program.functions.values():
            for param in function.params:
                self._of(param).is_param = True
        self.visit_program(program)

    def scalar(self, var: Var) -> _Scalar | None:
        """Return what is known of a variable, or None when that is nothing."""
        found = self._scalars.get(var)
        return (
            found if found is not None and found.is_known and not isinstance(var, IterArg) else None
        )

    def _of(self, var: Var) -> _Scalar:
        return self._scalars.setdefault(var, _Scalar())

    def _one_more_way(self, var: Var) -> _Scalar:
        found = self._of(var)
        found.ways += 1
        if found.ways > 1 or found.is_param or found.loops:
            found.is_known = False
        return found

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        """Note what a scalar is assigned."""
        if isinstance(op.var.type, ScalarType):
            found = self._one_more_way(op.var)
            found.values.append(op.value)
            found.is_block = isinstance(op.value, Call) and op.value.op.name in _BLOCKS
        self.visit_expr(op.value)

    def visit_for_stmt(self, op: ForStmt) -> None:
        """Note start and step of a loop; a variable of several loops obeys all of them."""
        found = self._of(op.loop_var)
        if found.values or found.is_param:
            found.is_known = False
        if isinstance(op.start, ConstInt) and isinstance(op.step, ConstInt):
            found.loops.append((op.start.value, op.step.value))
        else:
            found.is_known = False
        self._results(op)

    def visit_while_stmt(self, op: WhileStmt) -> None:
        """Note that what a loop hands on is not known."""
        self._results(op)

    def visit_if_stmt(self, op: IfStmt) -> None:
        """Note that what a branch hands on is not known."""
        self._results(op)

    def _results(self, op: ForStmt | WhileStmt | IfStmt) -> None:
        for var in op.return_vars:
            self._of(var).is_known = False
        self.visit_children(op)

    def visit_call(self, op: Call) -> None:
        """Note what a call of a function of the program passes."""
        callee = self._functions.get(op.op.name) if isinstance(op.op, GlobalVar) else None
        if callee is not None:
            self._pass(callee, op.args if len(op.args) == len(callee.params) else None)
        self.visit_children(op)

    def visit_submit(self, op: Submit) -> None:
        """Note what a launch passes; outputs before the trailing contexts may be left out."""
        callee = self._functions.get(op.op.name)
        if callee is not None:
            contexts = 0
            while contexts < len(callee.params) and isinstance(
                callee.params[-1 - contexts].type, CommCtxType
            ):
                contexts += 1
            missing = len(callee.params) - len(op.args)
            if missing < 0 or len(op.args) < contexts:
                self._pass(callee, None)
            else:
                head = len(op.args) - contexts
                self._pass(callee, (*op.args[:head], *(None,) * missing, *op.args[head:]))
        self.visit_children(op)

    def _pass(self, callee: Function, args: Sequence[Expr | None] | None) -> None:
        for position, param in enumerate(callee.params):
            found = self._of(param)
            if args is None:
                found.is_known = False
                continue
            given = args[position]
            if given is not None:
                found.values.append(given)


#: A rule at work: it asks for expressions to be shown, is told whether they were, and returns its own
#: verdict.
_Rule = Generator[tuple[Expr, int], bool, bool]


@dataclass
class _Proof:
    """One proof: rules ask each other through `run`, so that no chain of definitions is too deep."""

    facts: NzFacts
    rule: Callable[[_Proof, Expr, int], _Rule]
    left: int = STEPS
    leans_on: dict[Var, int] = field(default_factory=dict[Var, int])

    def run(self, expr: Expr, unit: int) -> bool:
        """Return whether the rule shows an expression within the budget."""
        asked: list[_Rule] = []
        goal: tuple[Expr, int] | None = (expr, unit)
        shown = False
        while goal is not None or asked:
            if goal is not None:
                self.left -= 1
                if self.left < 0:
                    return False
                asked.append(self.rule(self, *goal))
            try:
                goal = next(asked[-1]) if goal is not None else asked[-1].send(shown)
            except StopIteration as verdict:
                asked.pop()
                goal, shown = None, bool(verdict.value)
        return shown


def _is_multiple(proof: _Proof, expr: Expr, unit: int) -> _Rule:
    """Show that an expression is a multiple of a power of two."""
    match expr:
        case ConstInt():
            return expr.value % unit == 0
        case Add() | Sub():
            return (yield expr.left, unit) and (yield expr.right, unit)
        case Mul():
            before = dict(proof.leans_on)
            if (yield expr.left, unit):
                return True
            proof.leans_on = before
            return (yield expr.right, unit)
        case FloorDiv(right=ConstInt(value=by)):
            fits = by > 0 and by & (by - 1) == 0 and by * unit <= _LARGEST
            return fits and (yield expr.left, by * unit)
        case Var():
            known = proof.facts.scalar(expr)
            if known is None:
                return False
            if known.loops:
                return all(start % unit == 0 and step % unit == 0 for start, step in known.loops)
            if known.is_param:
                proof.leans_on[expr] = max(unit, proof.leans_on.get(expr, 1))
            for value in known.values:
                if not (yield value, unit):
                    return False
            return bool(known.values)
        case _:
            return False


def _is_non_negative(proof: _Proof, expr: Expr, unit: int) -> _Rule:
    """Show that an expression is 0 or more."""
    match expr:
        case ConstInt():
            return expr.value >= 0
        case Add() | Mul():
            return (yield expr.left, unit) and (yield expr.right, unit)
        case FloorDiv(right=ConstInt(value=by)) | FloorMod(right=ConstInt(value=by)):
            return by > 0 and (yield expr.left, unit)
        case Var():
            known = proof.facts.scalar(expr)
            if known is None or known.is_block:
                return known is not None
            if known.loops:
                return all(start >= 0 and step >= 0 for start, step in known.loops)
            if known.is_param:
                proof.leans_on[expr] = 1
            for value in known.values:
                if not (yield value, unit):
                    return False
            return bool(known.values)
        case _:
            return False


def prove_boxes(facts: NzFacts, expr: Expr, unit: int) -> dict[Var, int] | None:
    """Prove an expression a multiple of `unit`, a power of two.

    Returns:
        The parameters that the proof leans on, each with what it must be a multiple of; None
        without a proof.
    """
    proof = _Proof(facts, _is_multiple)
    return proof.leans_on if proof.run(expr, unit) else None


def prove_within(facts: NzFacts, expr: Expr) -> tuple[Var, ...] | None:
    """Prove an expression 0 or more.

    Returns:
        The parameters that must be so for it; None without a proof.
    """
    proof = _Proof(facts, _is_non_negative)
    return tuple(proof.leans_on) if proof.run(expr, 1) else None
