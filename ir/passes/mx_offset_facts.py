"""What a program says about its scalars: the facts that proofs about offsets rest on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from ..core import AssignStmt, ForStmt, Function, IfStmt, Stmt, WhileStmt
from ..expr import Call, ConstInt, Expr, GlobalVar, ScalarType, Submit, Var
from ..node_check import checked_parts
from ..types import CommCtxType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core import Program
    from ..expr import Node, Type

_BLOCK_IDENTITY = frozenset({"tile.get_block_idx", "tile.get_block_num"})

_SAYING = (Stmt, Call, Submit, Function)


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
    """Walks over every node of a program once, in order and without recursion, and checks each."""

    def __init__(self, program: Program) -> None:
        self.facts = OffsetFacts()
        self._functions = {g.name: f for g, f in program.functions.items()}
        self._bindings: dict[Var, _Binding] = {}
        self._seen: set[int] = set()
        for function in program.functions.values():
            checked_parts(function, function)
        for function in program.functions.values():
            self._walk(function)

    def _walk(self, function: Function) -> None:
        seen = self._seen
        left: list[Node | Type] = [function]
        while left:
            node = left.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            inner = checked_parts(node, function)
            if isinstance(node, _SAYING):
                self._note(node)
            inner.reverse()
            left += inner

    def _note(self, node: Stmt | Call | Submit | Function) -> None:
        """Keep what a node says about scalars."""
        match node:
            case AssignStmt(var, value):
                if isinstance(var.type, ScalarType):
                    self._definition(var, value)
            case Call(op=GlobalVar(name)) if name in self._functions:
                callee = self._functions[name]
                known = len(node.args) == len(callee.params)
                pairs = zip(callee.params, node.args, strict=True) if known else None
                self._record(callee, pairs)
            case Submit(op=GlobalVar(name)) if name in self._functions:
                callee = self._functions[name]
                self._record(callee, _submit_pairs(callee, node))
            case ForStmt(loop_var, start, _, step):
                self._bind(loop_var, _Binding.LOOP)
                fact = None
                if isinstance(start, ConstInt) and isinstance(step, ConstInt):
                    fact = start.value, step.value
                self.facts.loops.setdefault(loop_var, []).append(fact)
            case Function(params=params):
                for param in params:
                    self._bind_once(param, _Binding.PARAMETER)
            case _:
                pass
        if isinstance(node, ForStmt | WhileStmt | IfStmt):
            for var in node.return_vars:
                self._bind(var, _Binding.RESULT)

    def _bind(self, var: Var, how: _Binding) -> None:
        """Note a way in which `var` gets a value; another way spoils what is known of it."""
        if self._bindings.setdefault(var, how) is not how:
            self.facts.rebound.add(var)

    def _bind_once(self, var: Var, how: _Binding) -> None:
        """Note a way of which one at most is known: an assignment, or being a parameter.

        A variable that is a parameter of two functions has callers that say nothing of the other.
        """
        if var in self._bindings:
            self.facts.rebound.add(var)
        self._bindings[var] = how

    def _definition(self, var: Var, value: Expr) -> None:
        self._bind_once(var, _Binding.VALUE)
        self.facts.definitions.setdefault(var, value)
        if isinstance(value, Call) and value.op.name in _BLOCK_IDENTITY:
            self.facts.block_identities.add(var)

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
