"""CopyCarriedTiles: tiles in Vec that cannot share a buffer over time are copied where they meet.

What a loop or a branch hands on lies in one buffer. Where a statement would write there while another
value that lies there is still needed, one of the two gets a buffer of its own, and a copy:

    for i, (m,) in pl.range(n, init_values=(m0,)):      for i, (m,) in pl.range(n, init_values=(m0,)):
        k = pl.maximum(m, x)                                k = pl.maximum(m, x)
        s = pl.add(s, pl.sub(m, k))            ->           s = pl.add(s, pl.sub(m, k))
        r = pl.yield_(k)                                    k_copy = pl.move(k, pl.Mem.Vec)
                                                            r = pl.yield_(k_copy)

The same holds for an op that cannot write its result where an operand lies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    ForStmt,
    Function,
    IfStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..expr import Call, Expr, IterArg, Op, Var, replace
from ..ops import ROWS, create_op_call
from ..properties import IRProperty
from ..types import MemorySpace
from ..verification.structure import CORE_TYPES
from ..verification.walk import statements
from .base import FunctionPass
from .in_place import overwritable, renamed
from .inserting import InsertingMutator
from .liveness import Live, used_vars, walk_backwards
from .memrefs import tile_of
from .ties import Ties

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOVE = "tile.move"


@dataclass(frozen=True)
class CopyCarriedTiles(FunctionPass):
    """Copy tiles in Vec where what is handed on would overwrite what is still needed."""

    name = "CopyCarriedTiles"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )
    produced = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Insert the copies of one function."""
        if function.func_type not in CORE_TYPES:
            return function
        copies: set[Var] = set()
        while True:
            found = _Meetings(function, copies).to_part()
            if found is None:
                return function
            copier = _Copier(found)
            function = copier.rewrite(function)
            copies |= copier.made


class _Kind(IntEnum):
    """Where two names of one buffer meet; what costs the least copies comes first."""

    BEFORE_A_LOOP = 0
    AFTER_AN_ARM = 1
    AFTER_A_TRIP = 2


@dataclass(frozen=True)
class _Meeting:
    """A place where a value gets another name.

    Attributes:
        kind: What place it is.
        value: The value, which can be copied there.
        name: What it is called from there on.
        at: The loop's argument, or the yield.
        index: Which value of the yield; 0 for an argument.
    """

    kind: _Kind
    value: Var
    name: Var
    at: IterArg | YieldStmt
    index: int = 0


@dataclass(frozen=True)
class _Rescue:
    """A value that a copy at the end of a trip or an arm overwrites before it is handed on.

    Attributes:
        before: The copy.
        value: The value.
    """

    before: Var
    value: Var


def _in_vec(value: Expr) -> bool:
    tile = tile_of(value)
    return tile is not None and tile.memory_space is MemorySpace.Vec


@dataclass
class _Meetings:
    """The meetings of a function's tiles in Vec, and what they put into one buffer."""

    function: Function
    copies: set[Var]
    _ties: Ties[Var] = field(default_factory=Ties[Var])
    _ways: dict[Var, list[tuple[Var, _Meeting | None]]] = field(
        default_factory=dict[Var, "list[tuple[Var, _Meeting | None]]"]
    )
    _found: _Meeting | _Rescue | None = None

    def to_part(self) -> _Meeting | _Rescue | None:
        """Return where a copy is needed next, or None."""
        for stmt in statements(self.function.body):
            self._look_at(stmt)
        if any(meeting is not None for ways in self._ways.values() for _, meeting in ways):
            walk_backwards(self.function.body, Live(), self._check)
        return self._found

    # ----------------------------------------------------------------- names of one buffer

    def _look_at(self, stmt: Stmt) -> None:
        match stmt:
            case AssignStmt(var, Var() as value):
                self._tie(value, var, None)
            case AssignStmt(var, Call(op=Op(name)) as call) if name in ROWS:
                reuses = ROWS[name].reuses
                if reuses is not None:
                    self._tie(call.args[reuses], var, None)
            case ForStmt() | WhileStmt():
                for arg, result in zip(stmt.iter_args, stmt.return_vars, strict=True):
                    first = arg.init_value
                    if isinstance(first, Var):
                        self._tie(first, arg, _Meeting(_Kind.BEFORE_A_LOOP, first, arg, arg))
                    self._tie(arg, result, None)
                self._yield(stmt.body, stmt.iter_args, _Kind.AFTER_A_TRIP)
            case IfStmt():
                for arm in (stmt.then_body, stmt.else_body):
                    self._yield(arm, stmt.return_vars, _Kind.AFTER_AN_ARM)
            case _:
                pass

    def _yield(self, body: Stmt | None, names: Sequence[Var], kind: _Kind) -> None:
        last = flatten_to_stmts(body)[-1:]
        if not last or not isinstance(last[0], YieldStmt):
            return
        for index, (value, name) in enumerate(zip(last[0].value, names, strict=True)):
            if isinstance(value, Var):
                self._tie(value, name, _Meeting(kind, value, name, last[0], index))

    def _tie(self, one: Expr, other: Var, meeting: _Meeting | None) -> None:
        if not isinstance(one, Var) or not _in_vec(one) or not _in_vec(other):
            return
        self._ties.tie(one, other)
        self._ways.setdefault(one, []).append((other, meeting))
        self._ways.setdefault(other, []).append((one, meeting))

    # ----------------------------------------------------------------- what hits what

    def _check(self, stmt: Stmt, live: Live) -> None:
        if self._found is not None or not isinstance(stmt, AssignStmt) or not _in_vec(stmt.var):
            return
        call = stmt.value
        if not isinstance(call, Call) or renamed(call) is not None:
            return
        kept = set(used_vars(call)) - set(overwritable(call, stmt.var))
        for other in (*live, *kept):
            if other is stmt.var or not _in_vec(other):
                continue
            if self._ties.first(other) is self._ties.first(stmt.var):
                self._found = self._cheapest(stmt.var, other)
                if self._found is not None:
                    return

    def _cheapest(self, one: Var, other: Var) -> _Meeting | _Rescue | None:
        """Return what keeps the write of one name from hitting another one, if anything does."""
        way = [each for each in self._way(one, other) if each is not None]
        able = [each for each in way if each.value not in self.copies]
        if able:
            return min(able, key=lambda each: each.kind)
        handed_on = any(each.value is one and each.kind is not _Kind.BEFORE_A_LOOP for each in way)
        return _Rescue(one, other) if handed_on and other not in self.copies else None

    def _way(self, one: Var, other: Var) -> Iterable[_Meeting | None]:
        came: dict[Var, tuple[Var, _Meeting | None] | None] = {one: None}
        queue = [one]
        for here in queue:
            for there, meeting in self._ways.get(here, ()):
                if there not in came:
                    came[there] = (here, meeting)
                    queue.append(there)
        step = came[other]
        while step is not None:
            here, meeting = step
            yield meeting
            step = came[here]


class _Copier(InsertingMutator):
    def __init__(self, found: _Meeting | _Rescue) -> None:
        super().__init__()
        self._meeting = found if isinstance(found, _Meeting) else None
        self._rescue = found if isinstance(found, _Rescue) else None
        self._rescued: dict[Var, Var] = {}
        self.made: set[Var] = set()

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if self._rescue is not None and op.var is self._rescue.before:
            value = self._rescue.value
            self._rescued = {value: self._copy(self.visit_expr(value))}
        return self.visit_children(op)

    def visit_var(self, op: Var) -> Var:
        return self._rescued[op] if op in self._rescued else super().visit_var(op)

    def visit_iter_arg(self, op: IterArg) -> Var:
        if op in self._rescued:
            return self._rescued[op]
        if op not in self.variables and self._meeting is not None and op is self._meeting.at:
            first = self._copy(op.init_value)
            self.variables[op] = replace(op, init_value=first)
        return super().visit_iter_arg(op)

    def visit_yield_stmt(self, op: YieldStmt) -> YieldStmt:
        if self._meeting is None or op is not self._meeting.at:
            done = self.visit_children(op)
            self._rescued = {}
            return done
        values = list(op.value)
        values[self._meeting.index] = self._copy(values[self._meeting.index])
        return replace(op, value=tuple(values))

    def _copy(self, value: Expr) -> Var:
        assert isinstance(value, Var), value
        call = create_op_call(_MOVE, [value], {"target_memory": MemorySpace.Vec}, value.span)
        made = self.assign(f"{value.name_hint}_copy", call, value.span)
        self.made.add(made)
        return made
