"""CanonicalizeIOOrder: in a pipelined loop, every copy's loads come before the computing.

The loads of all copies then stand together at the top of the body, so that one flag can hand a whole
copy's operands on. Afterwards the loop is an ordinary one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from ..core import AssignStmt, ForKind, ForStmt, Function, Stmt, flatten_to_stmts, seq
from ..expr import Call, Node, ScalarType, frozen_mapping, replace
from ..properties import IRProperty
from ..types import TensorType
from ..visitor import IRMutator
from .base import FunctionPass
from .lower_pipeline_loops import STAGES


@dataclass(frozen=True)
class CanonicalizeIOOrder(FunctionPass):
    """Move scalars, then loads, to the front of each stretch of a pipelined body.

    A stretch ends at a store, a loop or a branch; within one, scalars depend on no tile and loads on
    scalars only, so nothing overtakes what it needs.
    """

    name = "CanonicalizeIOOrder"
    required = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})
    produced = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Reorder the pipelined loops of one function."""
        return _Reorder().visit_function(function)


class _Reorder(IRMutator):
    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        op = cast("ForStmt", self.visit_children(cast("Node", op)))
        if op.kind is not ForKind.Pipeline:
            return op
        body = seq(_ordered(flatten_to_stmts(op.body)), op.body.span)
        attrs = frozen_mapping({k: v for k, v in op.attrs.items() if k != STAGES})
        return replace(op, body=body, kind=ForKind.Sequential, attrs=attrs)


def _ordered(stmts: tuple[Stmt, ...]) -> list[Stmt]:
    done: list[Stmt] = []
    stretch: list[Stmt] = []
    for stmt in stmts:
        if _rank(stmt) is None:
            done += [*_sorted(stretch), stmt]
            stretch = []
        else:
            stretch.append(stmt)
    return done + _sorted(stretch)


def _sorted(stretch: list[Stmt]) -> list[Stmt]:
    return sorted(stretch, key=lambda stmt: cast("int", _rank(stmt)))


def _rank(stmt: Stmt) -> int | None:
    """Return 0 for scalars and views, 1 for loads, 2 for other tiles; None ends a stretch."""
    if not isinstance(stmt, AssignStmt):
        return None
    value = stmt.value
    if isinstance(stmt.var.type, ScalarType):
        return 0
    if not isinstance(value, Call):
        return 2
    match value.op.name:
        case "tensor.view":
            return 0
        case "tile.load":
            return 1
        case _:
            return None if isinstance(stmt.var.type, TensorType) else 2
