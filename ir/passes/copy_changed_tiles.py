"""CopyChangedTiles: a tile in Vec that is changed in part, but needed as it was, is copied before.

    u = pl.assemble(t, s, [0, 8])       where t is used again
    ->  t_copy = pl.move(t, pl.Mem.Vec)
        u = pl.assemble(t_copy, s, [0, 8])

What is changed in part stays where it is; the copy has a buffer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import AssignStmt
from ..expr import Call, Op, Var, replace
from ..ops import ROWS, create_op_call
from ..properties import IRProperty
from ..types import MemorySpace
from ..verification.structure import CORE_TYPES
from ..verification.walk import statements
from .base import FunctionPass
from .in_place import renamed
from .inserting import InsertingMutator
from .liveness import Live, walk_backwards
from .memrefs import tile_of
from .ties import Ties

if TYPE_CHECKING:
    from ..core import Function, Stmt


@dataclass(frozen=True)
class CopyChangedTiles(FunctionPass):
    """Copy the tiles that an op changes in place although their old value is needed later."""

    name = "CopyChangedTiles"
    required = frozenset(
        {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls}
    )
    produced = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Insert the copies of one function."""
        if function.func_type not in CORE_TYPES:
            return function
        if all(_changed(stmt) is None for stmt in statements(function.body)):
            return function
        found = _Finder(function).found
        return _Copier(found).rewrite(function) if found else function


def _changed(stmt: Stmt) -> Var | None:
    """Return the tile in Vec that a statement changes in place, or None."""
    if not isinstance(stmt, AssignStmt) or not isinstance(stmt.value, Call):
        return None
    row = ROWS.get(stmt.value.op.name) if isinstance(stmt.value.op, Op) else None
    if row is None or row.reuses is None or row.output_memory is not MemorySpace.Vec:
        return None
    target = stmt.value.args[row.reuses]
    assert isinstance(target, Var), "operands are variables after FlattenCallExpr"
    return target


class _Finder:
    """Finds the statements that change a tile of which another name is needed later."""

    def __init__(self, function: Function) -> None:
        self.found: set[Stmt] = set()
        self._names: Ties[Var] = Ties()
        for stmt in statements(function.body):
            source = renamed(stmt.value) if isinstance(stmt, AssignStmt) else None
            if isinstance(stmt, AssignStmt) and source is not None and tile_of(source) is not None:
                self._names.tie(source, stmt.var)
        walk_backwards(function.body, Live(), self._look)

    def _look(self, stmt: Stmt, live: Live) -> None:
        target = _changed(stmt)
        if target is None:
            return
        name = self._names.first(target)
        if any(self._names.first(var) is name for var in live if tile_of(var) is not None):
            self.found.add(stmt)


class _Copier(InsertingMutator):
    def __init__(self, found: set[Stmt]) -> None:
        super().__init__()
        self._found = found

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        target = _changed(op) if op in self._found else None
        if target is None:
            return self.visit_children(op)
        call, where = op.value, {"target_memory": MemorySpace.Vec}
        assert isinstance(call, Call), op
        copy = create_op_call("tile.move", [target], where, op.span)
        made = self.assign(f"{target.name_hint}_copy", copy, op.span)
        args = tuple(made if arg is target else arg for arg in call.args)
        return replace(op, value=replace(call, args=args))
