"""What values the scalars of a function can take: bounds and steps, as far as constants tell them."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, TypeAlias

from .core import AssignStmt, ForStmt
from .expr import Add, ConstInt, FloorDiv, FloorMod, Max, Min, Mul, ScalarType, Sub, Var
from .verification.walk import statements

if TYPE_CHECKING:
    from .core import Stmt
    from .expr import BinaryExpr, Expr

#: Beyond it, machine words might wrap and bounds would be wrong.
_LARGEST = 1 << 62


@dataclass(frozen=True)
class Range:
    """The numbers low, low + step, … up to high; a single number has step 0."""

    low: int
    high: int
    step: int

    def is_multiple_of(self, unit: int) -> bool:
        """Whether every number of the range is a multiple of `unit`."""
        return self.low % unit == 0 and self.step % unit == 0


_Facts: TypeAlias = "dict[Var, Expr | ForStmt]"


class Ranges:
    """The ranges of scalar expressions in a function in SSA form.

    Args:
        body: The function's body: its loops and scalar definitions are what is known.
    """

    def __init__(self, body: Stmt) -> None:
        self._facts: _Facts = {}
        self._found: dict[Var, Range | None] = {}
        for stmt in statements(body):
            match stmt:
                case ForStmt():
                    self._facts[stmt.loop_var] = stmt
                case AssignStmt(var=Var(type=ScalarType()) as var):
                    self._facts[var] = stmt.value
                case _:
                    continue

    def of(self, expr: Expr) -> Range | None:
        """Return the range of an expression, or None where nothing bounds it."""
        match expr:
            case ConstInt():
                return Range(expr.value, expr.value, 0)
            case Var():
                if expr not in self._found:
                    self._found[expr] = None  # what is defined by itself has no bounds
                    self._found[expr] = self._of_var(expr)
                return self._found[expr]
            case Add() | Sub() | Mul() | FloorDiv() | FloorMod() | Min() | Max():
                left, right = self.of(expr.left), self.of(expr.right)
                if left is None or right is None:
                    return None
                found = _combined(expr, left, right)
                small = found is not None and -_LARGEST < found.low <= found.high < _LARGEST
                return found if small else None
            case _:
                return None

    def _of_var(self, var: Var) -> Range | None:
        fact = self._facts.get(var)
        if fact is None or not isinstance(fact, ForStmt):
            return None if fact is None else self.of(fact)
        start, stop = self.of(fact.start), self.of(fact.stop)
        if start is None or stop is None or not isinstance(fact.step, ConstInt):
            return None
        step = fact.step.value
        if step > 0:
            return _tidy(start.low, max(start.low, stop.high - 1), gcd(start.step, step))
        low = _tidy(-start.high, max(-start.high, -stop.low - 1), gcd(start.step, step))
        return Range(-low.high, -low.low, low.step)


def _tidy(low: int, high: int, step: int) -> Range:
    """Return the range whose last number is the last that its steps reach."""
    last = low + (high - low) // step * step if step else low
    return Range(low, last, 0 if last == low else step)


def _combined(expr: BinaryExpr, a: Range, b: Range) -> Range | None:
    both = gcd(a.step, b.step)
    match expr:
        case Add():
            return _tidy(a.low + b.low, a.high + b.high, both)
        case Sub():
            return _tidy(a.low - b.high, a.high - b.low, both)
        case Mul():
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            step = gcd(a.low * b.step, b.low * a.step, a.step * b.step)
            return _tidy(min(corners), max(corners), step)
        case Min() | Max():
            pick = min if isinstance(expr, Min) else max
            step = gcd(both, a.low - b.low)
            return _tidy(pick(a.low, b.low), pick(a.high, b.high), step)
        case _:
            return _divided(expr, a, b.low) if b.low == b.high and b.low > 0 else None


def _divided(expr: BinaryExpr, a: Range, by: int) -> Range:
    """Return the range of a quotient or a remainder, rounded towards minus infinity."""
    if isinstance(expr, FloorDiv):
        step = a.step // by if a.is_multiple_of(by) else 1
        return _tidy(a.low // by, a.high // by, step)
    if a.low // by == a.high // by:
        return _tidy(a.low % by, a.high % by, a.step)
    step = gcd(a.step, by)
    return _tidy(a.low % step, by - 1, step)
