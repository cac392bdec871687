"""LowerPipelineLoops: `pl.pipeline(stage=F)` becomes a loop over F copies of its body.

Each copy has variables, and so buffers, of its own: while one copy computes, the next one loads. What
is left when the trips do not divide by F follows behind the loop. The copies' loads, moves
and vector ops carry the attribute `pipeline_stage`, by which MemoryReuse keeps their buffers apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    ForKind,
    ForStmt,
    Function,
    SeqStmts,
    Stmt,
    YieldStmt,
    flatten_to_stmts,
)
from ..dtypes import Index
from ..errors import IRValueError
from ..expr import (
    Add,
    Call,
    ConstInt,
    Expr,
    FloorDiv,
    IterArg,
    Max,
    Mul,
    Sub,
    Var,
    frozen_mapping,
    index,
    replace,
)
from ..ops import ROWS
from ..properties import IRProperty
from ..slots import SLOT, slot_of
from ..types import TileType
from ..verification.structure import STAGES
from .base import FunctionPass
from .body_copy import BodyCopy
from .inserting import InsertingMutator

if TYPE_CHECKING:
    from collections.abc import Sequence

STAGE = "pipeline_stage"
_FETCHES = frozenset({"tile.load", "tile.move", "tile.extract"})


@dataclass(frozen=True)
class LowerPipelineLoops(FunctionPass):
    """Copy the bodies of pipelined loops; a lowered loop keeps kind Pipeline with one stage."""

    name = "LowerPipelineLoops"
    required = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})
    produced = frozenset({IRProperty.SSAForm, IRProperty.NormalizedStmtStructure})

    def transform_function(self, function: Function) -> Function:
        """Lower the pipelined loops of one function.

        Raises:
            IRValueError: For a pipelined loop without a constant step.
        """
        return _Lowering().rewrite(function)


class _Lowering(InsertingMutator):
    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        op = self.visit_children(op)
        stages = op.attrs.get(STAGES, 1)
        if op.kind is not ForKind.Pipeline or stages == 1:
            return op
        if not isinstance(op.step, ConstInt) or op.step.value == 0:
            message = "A pipelined loop must have a constant step other than 0"
            raise IRValueError(message, op.span)
        if isinstance(op.start, ConstInt) and isinstance(op.stop, ConstInt):
            return _with_known_trips(op, stages, op.start.value, op.stop.value, op.step.value)
        return _with_unknown_trips(op, stages, op.step.value)


def _with_known_trips(op: ForStmt, stages: int, start: int, stop: int, step: int) -> Stmt:
    """Return the loop over whole groups of trips, if there is one, and a copy for each other trip."""
    trips = max(0, -(-(stop - start) // step))
    middle = start + trips // stages * stages * step
    out: list[Stmt] = []
    carried: list[Expr] = [arg.init_value for arg in op.iter_args]
    if trips >= stages:
        main = _main_loop(op, stages, step, index(middle, op.span))
        out.append(main)
        carried = list(main.return_vars)
    for copy in range(trips % stages):
        at = index(middle + copy * step, op.span)
        stmts, carried = _copy(op, carried, at, copy, f"tail{copy}")
        out += stmts
    names = (AssignStmt(n, v, n.span) for n, v in zip(op.return_vars, carried, strict=True))
    return SeqStmts((*out, *names), op.span)


def _with_unknown_trips(op: ForStmt, stages: int, step: int) -> Stmt:
    """Return the loop over whole groups of trips and a second loop over the other trips."""
    # The trips are ceil((stop - start) / step); a loop that runs backwards from its start has none.
    to_ceil = index(step - (1 if step > 0 else -1))
    length = Add(Sub(op.stop, op.start, Index, op.span), to_ceil, Index, op.span)
    trips = Max(FloorDiv(length, index(step), Index, op.span), index(0), Index, op.span)
    groups = FloorDiv(trips, index(stages), Index, op.span)
    grouped = Mul(groups, index(stages * step), Index, op.span)
    middle = Var(f"{op.loop_var.name_hint}_middle", op.loop_var.type, op.span)
    found = AssignStmt(middle, Add(op.start, grouped, Index, op.span), op.span)
    main = _main_loop(op, stages, step, middle)
    rest = _remainder_loop(op, main.return_vars, middle)
    return SeqStmts((found, main, rest), op.span)


def _main_loop(op: ForStmt, stages: int, step: int, stop: Expr) -> ForStmt:
    loop_var = Var(op.loop_var.name_hint, op.loop_var.type, op.loop_var.span)
    args = tuple(IterArg(a.name_hint, a.type, a.init_value, a.span) for a in op.iter_args)
    carried: list[Expr] = list(args)
    body: list[Stmt] = []
    for copy in range(stages):
        at: Expr = loop_var
        if copy:
            at = Var(f"{loop_var.name_hint}_{copy}", loop_var.type, op.span)
            ahead = Add(loop_var, index(copy * step), Index, op.span)
            body.append(AssignStmt(at, ahead, op.span))
        stmts, carried = _copy(op, carried, at, copy, f"s{copy}")
        body += stmts
    if args:
        body.append(YieldStmt(tuple(carried), op.span))
    return replace(
        op,
        loop_var=loop_var,
        stop=stop,
        step=index(stages * step, op.span),
        iter_args=args,
        body=SeqStmts(tuple(body), op.body.span),
        return_vars=tuple(Var(v.name_hint, v.type, v.span) for v in op.return_vars),
        attrs=frozen_mapping({**op.attrs, STAGES: 1}),
    )


def _remainder_loop(op: ForStmt, carried: Sequence[Expr], start: Expr) -> ForStmt:
    args = tuple(
        IterArg(arg.name_hint, arg.type, value, arg.span)
        for arg, value in zip(op.iter_args, carried, strict=True)
    )
    loop_var = Var(op.loop_var.name_hint, op.loop_var.type, op.loop_var.span)
    stmts, after = _copy(op, args, loop_var, 0, "tail")
    if args:
        stmts.append(YieldStmt(tuple(after), op.span))
    return replace(
        op,
        loop_var=loop_var,
        start=start,
        iter_args=args,
        body=SeqStmts(tuple(stmts), op.body.span),
        attrs=frozen_mapping({**op.attrs, STAGES: 1}),
    )


def _copy(
    op: ForStmt, carried: Sequence[Expr], at: Expr, copy: int, suffix: str
) -> tuple[list[Stmt], list[Expr]]:
    """Return one trip of the body with variables of its own, and what it hands on."""
    cloner = _Cloner(op, carried, at, copy, suffix)
    stmts = [cloner.visit_stmt(s) for s in flatten_to_stmts(op.body)]
    if stmts and isinstance(stmts[-1], YieldStmt):
        return stmts[:-1], list(stmts[-1].value)
    return stmts, []


class _Cloner(BodyCopy):
    def __init__(
        self, op: ForStmt, carried: Sequence[Expr], at: Expr, copy: int, suffix: str
    ) -> None:
        values = {op.loop_var: at, **dict(zip(op.iter_args, carried, strict=True))}
        super().__init__(op.body, values, suffix=f"_{suffix}")
        self._stage = copy

    def visit_call(self, op: Call) -> Call:
        new = self.visit_children(op)
        slot = slot_of(new)
        if slot is not None and slot.index is None:
            settled = [slot.name, slot.count, index(self._stage, new.span)]
            new = replace(new, attrs=frozen_mapping({**new.attrs, SLOT: settled}))
        # A copy within a copy keeps its stage: it is the inner loop that goes round most often.
        if not _is_buffered(new) or STAGE in new.attrs:
            return new
        return replace(new, attrs=frozen_mapping({**new.attrs, STAGE: self._stage}))


def _is_buffered(call: Call) -> bool:
    """Whether a call makes a tile whose buffer another copy must not wait for."""
    row = ROWS.get(call.op.name)
    fetched = call.op.name in _FETCHES
    return fetched or (row is not None and row.vector and isinstance(call.type, TileType))
