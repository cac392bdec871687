"""What a program says about its scalars: the facts that proofs about offsets rest on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ..core import AssignStmt, ForStmt, IfStmt, WhileStmt
from ..expr import Call, ConstInt, Expr, GlobalVar, ScalarType, Submit, Var
from ..types import CommCtxType
from ..verification.walk import own_exprs, statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core import Function, Program, Stmt

_BLOCK_IDENTITY = frozenset({"tile.get_block_idx", "tile.get_block_num"})


class _Binding(Enum):
    PARAMETER = "parameter"
    LOOP = "loop"
    VALUE = "value"
    RESULT = "result"


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
        return _Collector(program).facts


class _Collector:
    """Walks over all statements, and over expressions only as far as they may hold calls."""

    def __init__(self, program: Program) -> None:
        self.facts = OffsetFacts()
        self._functions = {g.name: f for g, f in program.functions.items()}
        self._bindings: dict[Var, _Binding] = {}
        for function in program.functions.values():
            for param in function.params:
                self._bind(param, _Binding.PARAMETER)
            for stmt in statements(function.body):
                self._statement(stmt)

    def _bind(self, var: Var, how: _Binding) -> None:
        """Note a way in which `var` gets a value; another way spoils what is known of it."""
        known = self._bindings.setdefault(var, how)
        if known is not how:
            self.facts.rebound.add(var)

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case AssignStmt(var, value):
                if isinstance(var.type, ScalarType):
                    self._definition(var, value)
            case ForStmt():
                self._bind(stmt.loop_var, _Binding.LOOP)
                fact = None
                if isinstance(stmt.start, ConstInt) and isinstance(stmt.step, ConstInt):
                    fact = stmt.start.value, stmt.step.value
                self.facts.loops.setdefault(stmt.loop_var, []).append(fact)
            case _:
                pass
        if isinstance(stmt, ForStmt | WhileStmt | IfStmt):
            for var in stmt.return_vars:
                self._bind(var, _Binding.RESULT)
        exprs = own_exprs(stmt)
        self._calls(exprs if not isinstance(stmt, WhileStmt) else (*exprs, stmt.condition))

    def _definition(self, var: Var, value: Expr) -> None:
        self._bind(var, _Binding.VALUE)
        if self.facts.definitions.setdefault(var, value) is not value:
            self.facts.rebound.add(var)
        if isinstance(value, Call) and value.op.name in _BLOCK_IDENTITY:
            self.facts.block_identities.add(var)

    def _calls(self, exprs: Iterable[Expr]) -> None:
        left = list(exprs)
        while left:
            expr = left.pop()
            match expr:
                case Var() | ConstInt():
                    continue
                case Call(op=GlobalVar(name)) if name in self._functions:
                    callee = self._functions[name]
                    known = len(expr.args) == len(callee.params)
                    pairs = zip(callee.params, expr.args, strict=True) if known else None
                    self._record(callee, pairs)
                case Submit(op=GlobalVar(name)) if name in self._functions:
                    callee = self._functions[name]
                    self._record(callee, _submit_pairs(callee, expr))
                case _:
                    pass
            left += _operands(expr)

    def _record(self, callee: Function, pairs: Iterable[tuple[Var, Expr]] | None) -> None:
        given = dict.fromkeys(callee.params) if pairs is None else dict(pairs)
        for param, source in given.items():
            if isinstance(param.type, ScalarType):
                self.facts.sources.setdefault(param, []).append(source)


def _operands(expr: Expr) -> list[Expr]:
    found: list[Expr] = []
    for name in expr.children:
        value: Expr | tuple[Expr, ...] | None = getattr(expr, name)
        if isinstance(value, tuple):
            found += value
        elif value is not None:
            found.append(value)
    return found


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
