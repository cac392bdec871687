"""The proof engine of BlockMxScaleTensorViews: is an offset aligned, and is it never negative?

A proof is a bounded search through the facts of the whole program. Every visited expression costs one
step of a budget of 256, and nothing is remembered between visits, so that a proof costs the same whatever
was proved before. What cannot be shown counts as false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..expr import Add, ConstInt, Expr, FloorDiv, FloorMod, IterArg, Mul, Sub, Var

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .mx_offset_facts import OffsetFacts

BUDGET = 256
_INT64_MAX = (1 << 63) - 1

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

#: What is to be shown: of an expression, that it is a multiple of the number; None is never shown.
Goal = tuple["Expr | None", int]
#: Ways to show something: each is a list of goals that together suffice.
Ways = tuple[tuple[Goal, ...], ...]
_SHOWN: Ways = ((),)
_NEVER: Ways = ()


def prove_multiple(
    facts: OffsetFacts, expr: Expr, divisor: int
) -> tuple[tuple[Var, int], ...] | None:
    """Prove `expr` a multiple of `divisor`, a power of two, within the budget.

    Returns:
        The parameters that the proof leans on, each with what it must be a multiple of; None when
        there is no proof.
    """
    return _Proof(facts, _ways_to_divide).leaning(expr, divisor)


def prove_non_negative(facts: OffsetFacts, expr: Expr) -> tuple[Var, ...] | None:
    """Prove `expr` never negative, within a budget of its own.

    Returns:
        The parameters that must not be negative for it; None when there is no proof.
    """
    leaning = _Proof(facts, _ways_to_be_non_negative).leaning(expr, 1)
    return None if leaning is None else tuple(var for var, _ in leaning)


class _Proof:
    """A search for a proof, depth first: the goals that are left, and the ways not yet tried.

    Goals are a linked list, so that a way that fails can be left behind at once. A number among them
    says that one of two ways has led to its end: the other one is forgotten then.
    """

    def __init__(self, facts: OffsetFacts, ways: Callable[[OffsetFacts, Expr, int], Ways]) -> None:
        self._facts = facts
        self._ways = ways
        self._left = BUDGET
        self._leans_on: list[tuple[Var, int]] = []

    def leaning(self, expr: Expr, divisor: int) -> tuple[tuple[Var, int], ...] | None:
        """Return the parameters that the proof leans on, or None without a proof."""
        goals: Any = ((expr, divisor), None)
        untried: list[tuple[Any, int]] = []
        while goals is not None:
            goal, goals = goals
            if isinstance(goal, int):
                del untried[goal:]
                continue
            if goal[0] is not None:
                self._left -= 1
                if self._left < 0:
                    return None
            ways = _NEVER if goal[0] is None else self._expanded(*goal)
            if len(ways) > 1:
                untried.append((_before(ways[1], goals), len(self._leans_on)))
                goals = (len(untried) - 1, goals)
            if ways:
                goals = _before(ways[0], goals)
            elif untried:
                goals, known = untried.pop()
                del self._leans_on[known:]
            else:
                return None
        return tuple(self._leans_on)

    def _expanded(self, expr: Expr, divisor: int) -> Ways:
        facts = self._facts
        if not isinstance(expr, Var):
            return self._ways(facts, expr, divisor)
        if isinstance(expr, IterArg) or expr in facts.rebound:
            return _NEVER
        if expr in facts.loops or expr in facts.block_identities:
            return self._ways(facts, expr, divisor)
        if expr in facts.sources:
            self._leans_on.append((expr, divisor))
            # Each source costs a step: those beyond the budget play no part.
            return (tuple((s, divisor) for s in facts.sources[expr][: self._left + 1]),)
        return (((facts.definitions.get(expr), divisor),),)


def _before(goals: Sequence[Goal], rest: Any) -> Any:
    for goal in reversed(goals):
        rest = (goal, rest)
    return rest


def _ways_to_divide(facts: OffsetFacts, expr: Expr, divisor: int) -> Ways:
    """Return the ways to show that `expr` is a multiple of `divisor`."""
    match expr:
        case ConstInt():
            return _shown_if(expr.value % divisor == 0)
        case Mul():
            return (((expr.left, divisor),), ((expr.right, divisor),))
        case Add() | Sub():
            return (((expr.left, divisor), (expr.right, divisor)),)
        case FloorDiv(right=ConstInt(value=by)):
            power_of_two = by > 0 and by & (by - 1) == 0
            if not power_of_two or by * divisor > _INT64_MAX:
                return _NEVER
            return (((expr.left, by * divisor),),)
        case Var() if expr in facts.loops:
            return _shown_if(
                all(
                    fact is not None and fact[0] % divisor == 0 and fact[1] % divisor == 0
                    for fact in facts.loops[expr]
                )
            )
        case Var():
            return (((facts.definitions.get(expr), divisor),),)
        case _:
            return _NEVER


def _ways_to_be_non_negative(facts: OffsetFacts, expr: Expr, divisor: int) -> Ways:
    """Return the ways to show that `expr` is never negative."""
    match expr:
        case ConstInt():
            return _shown_if(expr.value >= 0)
        case Mul() | Add():
            return (((expr.left, divisor), (expr.right, divisor)),)
        case FloorDiv(right=ConstInt(value=by)) | FloorMod(right=ConstInt(value=by)):
            return (((expr.left, divisor),),) if by > 0 else _NEVER
        case Var() if expr in facts.loops:
            return _shown_if(all(fact is not None and min(fact) >= 0 for fact in facts.loops[expr]))
        case Var():
            return _shown_if(expr in facts.block_identities)
        case _:
            return _NEVER


def _shown_if(holds: bool) -> Ways:
    return _SHOWN if holds else _NEVER
