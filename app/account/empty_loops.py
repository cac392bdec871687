"""Loops of a run that had no iteration: what is fast because it does nothing must not look fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...ir.errors import IRValueError
from ...ir.expr import BinaryExpr, Var
from ...ir.interp import select_entry
from ...ir.interp.scalars import evaluate_binary
from ...ir.node import ConstInt
from ...ir.visitor import IRVisitor
from ...sim.account.loops import loops_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...ir.core import AssignStmt, ForStmt, Function, IfStmt
    from ...ir.errors import Span
    from ...ir.node import Expr
    from ..result import Result

_CONSTANT = "its bounds are constants or parameters of the kernel file"
_ARGUMENT = "{} of the inputs"


@dataclass(frozen=True, slots=True)
class EmptyLoop:
    """A loop without an iteration.

    Attributes:
        source: Its line of source.
        reason: Where its bounds come from, or an empty string where that is not known.
    """

    source: str
    reason: str

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"the loop at {self.source} runs 0 iterations{why}"

    def as_json(self) -> dict[str, Any]:
        """Return the loop as plain values."""
        return {"source": self.source, "iterations": 0, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class EmptyLoops:
    """The empty loops of a run.

    Attributes:
        loops: Those that were come to and had no iteration.
        others: Whether any other loop had one.
    """

    loops: tuple[EmptyLoop, ...]
    others: bool

    @property
    def are_all(self) -> bool:
        """Whether the run came to loops and none of them did anything."""
        return bool(self.loops) and not self.others


def empty_loops(result: Result) -> EmptyLoops:
    """Return the empty loops of a run: of the machine code, and of the program where it is known."""
    found: dict[tuple[str, int], EmptyLoop] = {}
    machine = loops_of(result.simulation)
    others = machine.running > 0
    program = result.program
    if program is not None:
        entry = select_entry(program, result.entry)
        for function in program.functions.values():
            given = _constants_of(function, result.inputs) if function is entry else {}
            looker = _Looker(given)
            looker.visit_function(function)
            for span, reason in looker.empty:
                found.setdefault(_line(span), EmptyLoop(_place(span), reason))
            others = others or looker.has_others
    for span in machine.empty:
        if span.is_known:
            found.setdefault(_line(span), EmptyLoop(_place(span), ""))
    return EmptyLoops(tuple(found.values()), others)


def _constants_of(function: Function, inputs: Mapping[str, Any]) -> dict[str, int]:
    """Return the integers among the inputs of a function that it assigns nothing else to."""
    finder = _Assigned()
    finder.visit_function(function)
    return {
        name: int(value)
        for name, value in inputs.items()
        if isinstance(value, int) and name not in finder.names
    }


class _Assigned(IRVisitor):
    """Finds the names that are assigned."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_assign_stmt(self, op: AssignStmt) -> None:
        self.names.add(op.var.name_hint)

    def visit_for_stmt(self, op: ForStmt) -> None:
        self.names.add(op.loop_var.name_hint)
        self.visit_children(op)


class _Looker(IRVisitor):
    """Finds loops of which the bounds are known, but for those behind a condition that does not hold."""

    def __init__(self, known: Mapping[str, int]) -> None:
        self.known = known
        self.empty: list[tuple[Span, str]] = []
        self.has_others = False

    def visit_if_stmt(self, op: IfStmt) -> None:
        holds = self._value(op.condition, set())
        for body, is_certain in ((op.then_body, holds != 0), (op.else_body, not holds)):
            if body is not None and (holds is None or is_certain):
                self.visit_stmt(body)

    def visit_for_stmt(self, op: ForStmt) -> None:
        used: set[str] = set()
        bounds = [self._value(each, used) for each in (op.start, op.stop, op.step)]
        start, stop, step = bounds
        if start is None or stop is None or not step:
            self.visit_children(op)
        elif len(range(start, stop, step)):
            self.has_others = True
            self.visit_children(op)
        else:
            values = ", ".join(f"{name} = {self.known[name]}" for name in sorted(used))
            self.empty.append((op.span, _ARGUMENT.format(values) if used else _CONSTANT))

    def _value(self, expr: Expr, used: set[str]) -> int | None:
        """Return a number if it is known, and add the names that it follows from to `used`."""
        match expr:
            case ConstInt(value=value):
                return value
            case Var(name_hint=name) if name in self.known:
                used.add(name)
                return self.known[name]
            case BinaryExpr(left=left, right=right):
                a, b = self._value(left, used), self._value(right, used)
                try:
                    return None if a is None or b is None else int(evaluate_binary(expr, a, b))
                except IRValueError:
                    return None  # a division by zero that the run did not come to
            case _:
                return None


def _place(span: Span) -> str:
    return f"{span.filename}:{span.begin_line}"


def _line(span: Span) -> tuple[str, int]:
    return span.filename, span.begin_line
