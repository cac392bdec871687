"""The proof engine of BlockMxScaleTensorViews: is an offset aligned, and is it never negative?

One walk over the whole program collects facts; a proof is then a bounded search through them. Every
visited expression costs one step of a budget of 256, and nothing is remembered between visits, so
that a proof costs the same whatever was proved before. What cannot be shown counts as false.
"""

from __future__ import annotations

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
    from collections.abc import Iterable

    from ..core import AssignStmt, ForStmt, Function, Program

BUDGET = 256
_INT64_MAX = (1 << 63) - 1
_BLOCK_IDENTITY = frozenset({"tile.get_block_idx", "tile.get_block_num"})

#: What an unprovable offset's error lists.
PROVABLE_FORMS = (
    "a constant; a loop variable with constant start and step; a parameter that every call passes "
    "so; tile.get_block_idx() or tile.get_block_num(); and sums, differences, products and "
    "quotients by a power of two of these"
)


@dataclass
class OffsetFacts:
    """What a program says about its scalar variables.

    Attributes:
        definitions: The expression assigned to a scalar; None where it is assigned twice.
        block_identities: Scalars taken straight from the block index or number.
        loops: Start and step of a loop variable, where both are constants.
        sources: What each call passes for a scalar parameter; None is an unknown value.
    """

    definitions: dict[Var, Expr | None] = field(default_factory=dict[Var, "Expr | None"])
    block_identities: set[Var] = field(default_factory=set[Var])
    loops: dict[Var, tuple[int, int]] = field(default_factory=dict[Var, tuple[int, int]])
    sources: dict[Var, list[Expr | None]] = field(default_factory=dict[Var, "list[Expr | None]"])

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

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        if isinstance(op.var.type, ScalarType):
            again = op.var in self.facts.definitions
            self.facts.definitions[op.var] = None if again else op.value
            identity = isinstance(op.value, Call) and op.value.op.name in _BLOCK_IDENTITY
            if identity and not again:
                self.facts.block_identities.add(op.var)
            else:
                self.facts.block_identities.discard(op.var)
        self.visit_children(op)

    def visit_for_stmt(self, op: ForStmt) -> None:
        if isinstance(op.start, ConstInt) and isinstance(op.step, ConstInt):
            self.facts.loops[op.loop_var] = (op.start.value, op.step.value)
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


class _OutOfBudget(Exception):  # noqa: N818 - control flow inside this file
    pass


class _Proof:
    """A proof under way: what is left of its budget, and the parameters that it leans on."""

    def __init__(self) -> None:
        self._left = BUDGET
        self.leans_on: list[tuple[Var, int]] = []

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _OutOfBudget

    def leaning(self, param: Var, divisor: int, *, holds: bool) -> bool:
        """Note that the proof leans on `param` being a multiple of `divisor`, if it holds."""
        if holds:
            self.leans_on.append((param, divisor))
        return holds


def is_multiple(facts: OffsetFacts, expr: Expr, divisor: int) -> bool:
    """Whether `expr` is proved to be a multiple of `divisor`, a power of two, within the budget."""
    try:
        return _divides(facts, expr, divisor, _Proof())
    except _OutOfBudget:
        return False


def is_non_negative(facts: OffsetFacts, expr: Expr) -> bool:
    """Whether `expr` is proved never to be negative, within a budget of its own."""
    try:
        return _positive(facts, expr, _Proof())
    except _OutOfBudget:
        return False


def params_of_multiple(facts: OffsetFacts, expr: Expr, divisor: int) -> list[tuple[Var, int]]:
    """Return the parameters, with divisors, that the proof of :func:`is_multiple` leans on."""
    proof = _Proof()
    try:
        return proof.leans_on if _divides(facts, expr, divisor, proof) else []
    except _OutOfBudget:
        return []


def params_of_sign(facts: OffsetFacts, expr: Expr) -> list[Var]:
    """Return the parameters that the proof of :func:`is_non_negative` leans on."""
    proof = _Proof()
    try:
        return [var for var, _ in proof.leans_on] if _positive(facts, expr, proof) else []
    except _OutOfBudget:
        return []


def _divides(facts: OffsetFacts, expr: Expr | None, divisor: int, proof: _Proof) -> bool:
    if expr is None:
        return False
    proof.spend()
    match expr:
        case ConstInt():
            return expr.value % divisor == 0
        case Mul():
            before = len(proof.leans_on)
            if _divides(facts, expr.left, divisor, proof):
                return True
            del proof.leans_on[before:]
            return _divides(facts, expr.right, divisor, proof)
        case Add() | Sub():
            return _divides(facts, expr.left, divisor, proof) and _divides(
                facts, expr.right, divisor, proof
            )
        case FloorDiv(right=ConstInt(value=by)):
            power = by > 0 and by & (by - 1) == 0
            if not power or by * divisor > _INT64_MAX:
                return False
            return _divides(facts, expr.left, by * divisor, proof)
        case IterArg():
            return False
        case Var():
            if expr in facts.loops:
                start, step = facts.loops[expr]
                if start % divisor == 0 and step % divisor == 0:
                    return True
            sources = facts.sources.get(expr, [])
            if sources:
                before = len(proof.leans_on)
                holds = all(_divides(facts, s, divisor, proof) for s in sources)
                if proof.leaning(expr, divisor, holds=holds):
                    return True
                del proof.leans_on[before:]
            definition = facts.definitions.get(expr)
            return definition is not None and _divides(facts, definition, divisor, proof)
        case _:
            return False


def _positive(facts: OffsetFacts, expr: Expr | None, proof: _Proof) -> bool:
    if expr is None:
        return False
    proof.spend()
    match expr:
        case ConstInt():
            return expr.value >= 0
        case Mul() | Add():
            return _positive(facts, expr.left, proof) and _positive(facts, expr.right, proof)
        case FloorDiv(right=ConstInt(value=by)) if by > 0:
            return _positive(facts, expr.left, proof)
        case FloorMod(right=ConstInt(value=by)) if by > 0:
            return _positive(facts, expr.left, proof)
        case IterArg():
            return False
        case Var():
            if expr in facts.block_identities:
                return True
            if expr in facts.loops and min(facts.loops[expr]) >= 0:
                return True
            sources = facts.sources.get(expr, [])
            if sources:
                before = len(proof.leans_on)
                holds = all(_positive(facts, s, proof) for s in sources)
                if proof.leaning(expr, 1, holds=holds):
                    return True
                del proof.leans_on[before:]
            definition = facts.definitions.get(expr)
            return definition is not None and _positive(facts, definition, proof)
        case _:
            return False
