"""CanonicalizeIOOrder: in a pipelined loop, every copy's loads come before the computing.

The loads of all copies then stand together at the top of the body, so that one flag can hand a whole
copy's operands on. Afterwards the loop is an ordinary one.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING

from ..core import AssignStmt, ForKind, ForStmt, Function, SeqStmts, Stmt, flatten_to_stmts, seq
from ..expr import Call, Op, ScalarType, Var, frozen_mapping, replace
from ..properties import IRProperty
from ..types import TensorType, TileType
from ..verification.structure import STAGES
from ..visitor import IRMutator
from .base import FunctionPass
from .ties import yielded

if TYPE_CHECKING:
    from ..expr import Expr


@dataclass(frozen=True)
class CanonicalizeIOOrder(FunctionPass):
    """Move scalars, then loads, to the front of each stretch of a pipelined body.

    A stretch ends at a store, a loop or a branch; within one, scalars depend on no tile and loads on
    scalars only, so nothing overtakes what it needs. A load for the next trip stays where it is: it
    goes into the buffer from which this trip still reads.
    """

    name = "CanonicalizeIOOrder"
    required = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})
    produced = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Reorder the pipelined loops of one function."""
        return _Reorder().visit_function(function)


class _Reorder(IRMutator):
    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        op = self.visit_children(op)
        if op.kind is not ForKind.Pipeline:
            return op
        body = seq(_ordered(flatten_to_stmts(op.body)), op.body.span)
        attrs = frozen_mapping({k: v for k, v in op.attrs.items() if k != STAGES})
        return replace(op, body=body, kind=ForKind.Sequential, attrs=attrs)


def _ordered(stmts: tuple[Stmt, ...]) -> list[Stmt]:
    handed_on = set(yielded(SeqStmts(stmts)))
    for stmt in reversed(stmts):
        if isinstance(stmt, AssignStmt) and stmt.var in handed_on:
            handed_on.add(stmt.value)
    done: list[Stmt] = []
    stretch: list[tuple[int, Stmt]] = []
    for stmt in stmts:
        rank = _rank(stmt, handed_on)
        if rank is None:
            done += [*_sorted(stretch), stmt]
            stretch = []
        else:
            stretch.append((rank, stmt))
    return done + _sorted(stretch)


def _sorted(stretch: list[tuple[int, Stmt]]) -> list[Stmt]:
    return [stmt for _, stmt in sorted(stretch, key=itemgetter(0))]


def _rank(stmt: Stmt, handed_on: set[Expr]) -> int | None:
    """Return 0 for scalars, views and names of tensors, 1 for loads, 2 for tiles; None ends a stretch."""
    if not isinstance(stmt, AssignStmt):
        return None
    match stmt.var.type, stmt.value:
        case ScalarType(), Call() as call if any(isinstance(a.type, TileType) for a in call.args):
            return None
        case ScalarType(), _:
            return 0
        case TensorType(), (Var() | Call(op=Op(name="tensor.view"))):
            return 0
        case TileType(), Call(op=Op(name="tile.load")) if stmt.var not in handed_on:
            return 1
        case TileType(), _:
            return 2
        case _:
            return None
