"""Rules on how statements are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForKind,
    ForStmt,
    Function,
    FunctionType,
    InCoreScopeStmt,
    Program,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from ..expr import Call, ConstInt, GlobalVar, Op, Submit
from .walk import all_calls, bodies, calls, own_exprs, statements

if TYPE_CHECKING:
    from .diagnostics import Findings

NESTED_SEQUENCE = 201
ONE_ELEMENT_SEQUENCE = 202
NESTED_CALL = 203
MISPLACED_JUMP = 204
PIPELINE_STAGES = 205
PIPELINE_STEP = 206
WRONG_PLANE = 207
NESTED_REGION = 208
REGION_BODY = 209
REGION_LEFT = 210

#: Where the ops of tiles may stand, and where tensors may be created.
CORE_TYPES = (FunctionType.InCore, FunctionType.AIC, FunctionType.AIV)
_CONTROL_TYPES = (FunctionType.Orchestration, FunctionType.Graph)
_CONTROL_OPS = ("tensor.create",)
#: Ops on tensors that move no data; all others are of whole tensors, before they are cut into tiles.
_ALIASING_OPS = ("tensor.view",)
STAGES = "pipeline_stages"


def check_normalized(function: Function, program: Program, findings: Findings) -> None:
    """No sequence stands directly in a sequence."""
    del program
    for stmt in statements(function.body):
        if isinstance(stmt, SeqStmts) and any(isinstance(s, SeqStmts) for s in stmt.stmts):
            message = "A sequence of statements must be flat, not hold another sequence"
            findings.error(NESTED_SEQUENCE, message, stmt.span)


def check_no_redundant_blocks(function: Function, program: Program, findings: Findings) -> None:
    """No sequence holds a single statement."""
    del program
    for stmt in statements(function.body):
        if isinstance(stmt, SeqStmts) and len(stmt.stmts) == 1:
            message = "A sequence must hold several statements, not one, which can stand alone"
            findings.error(ONE_ELEMENT_SEQUENCE, message, stmt.stmts[0].span)


def check_no_nested_calls(function: Function, program: Program, findings: Findings) -> None:
    """A call stands alone on the right of an assignment or as a statement."""
    del program
    for stmt in statements(function.body):
        exprs = own_exprs(stmt)
        if isinstance(stmt, WhileStmt):
            exprs = (*exprs, stmt.condition)
        for call in calls(exprs):
            alone = isinstance(stmt, AssignStmt | EvalStmt) and call is exprs[0]
            if not alone:
                message = f"The call of {call.op.name} must have a variable of its own"
                findings.error(NESTED_CALL, message, call.span)


def check_jumps(function: Function, program: Program, findings: Findings) -> None:
    """Break and continue stand inside a loop whose trips run one after another."""
    del program
    _check_jumps(function.body, None, findings)


def _check_jumps(stmt: Stmt, loop: Stmt | None, findings: Findings) -> None:
    if isinstance(stmt, BreakStmt | ContinueStmt):
        word = "break" if isinstance(stmt, BreakStmt) else "continue"
        if loop is None:
            message = f"{word} must stand inside a loop"
            findings.error(MISPLACED_JUMP, message, stmt.span)
        elif isinstance(loop, ForStmt) and loop.kind is not ForKind.Sequential:
            message = f"{word} must not stand inside a loop of kind {loop.kind.name}"
            findings.error(MISPLACED_JUMP, message, stmt.span)
    inner = loop
    if isinstance(stmt, ForStmt | WhileStmt):
        inner = stmt
    elif isinstance(stmt, ScopeStmt):
        inner = None
    for body in bodies(stmt):
        _check_jumps(body, inner, findings)


def check_pipeline_loops(function: Function, program: Program, findings: Findings) -> None:
    """A Pipeline loop says its stages and has a constant step; no other loop says stages."""
    del program
    for stmt in statements(function.body):
        if not isinstance(stmt, ForStmt):
            continue
        stages = stmt.attrs.get(STAGES)
        if stmt.kind is not ForKind.Pipeline:
            if stages is not None:
                message = f"Only a Pipeline loop may have stages, not one of kind {stmt.kind.name}"
                findings.error(PIPELINE_STAGES, message, stmt.span)
            continue
        if isinstance(stages, bool) or not isinstance(stages, int) or stages < 1:
            message = f"The stages of a Pipeline loop must be a positive integer, not {stages!r}"
            findings.error(PIPELINE_STAGES, message, stmt.span)
        if not isinstance(stmt.step, ConstInt) or stmt.step.value == 0:
            message = "The step of a Pipeline loop must be a constant other than zero"
            findings.error(PIPELINE_STEP, message, stmt.span)


def check_regions(function: Function, program: Program, findings: Findings) -> None:
    """Regions stand in control functions, one beside the other, and are left at their end."""
    del program
    for stmt in statements(function.body):
        if isinstance(stmt, ScopeStmt) and function.func_type in CORE_TYPES:
            message = f"{function.name} runs on a core and must not launch a region"
            findings.error(NESTED_REGION, message, stmt.span)
    _check_regions(function.body, None, findings)


def _check_regions(stmt: Stmt, region: ScopeStmt | None, findings: Findings) -> None:
    inner = region
    if isinstance(stmt, ScopeStmt):
        inner = stmt
        own = isinstance(stmt, InCoreScopeStmt) and isinstance(region, SpmdScopeStmt)
        if region is not None and not own:
            message = "A region that is launched must not stand inside another one"
            findings.error(NESTED_REGION, message, stmt.span)
        if isinstance(stmt, SpmdScopeStmt) and not _is_grid_body(stmt.body):
            message = (
                "A grid must hold one call of a kernel, or one InCore region, and nothing else"
            )
            findings.error(REGION_BODY, message, stmt.span)
    elif isinstance(stmt, ReturnStmt) and region is not None:
        message = "A region that is launched must not be left by a return"
        findings.error(REGION_LEFT, message, stmt.span)
    for body in bodies(stmt):
        _check_regions(body, inner, findings)


def _is_grid_body(body: Stmt) -> bool:
    match flatten_to_stmts(body):
        case (InCoreScopeStmt(),):
            return True
        case (AssignStmt(value=Call(op=GlobalVar())) | EvalStmt(expr=Call(op=GlobalVar())),):
            return True
        case _:
            return False


def check_split(function: Function, program: Program, findings: Findings) -> None:
    """Ops on tiles stand in InCore functions; launches stand in the others."""
    del program
    on_core = function.func_type in CORE_TYPES
    for call in all_calls(function):
        if isinstance(call, Call) and isinstance(call.op, Op):
            if call.name.startswith("tile.") and not on_core:
                message = (
                    f"{call.name} must stand in an InCore function, "
                    f"but {function.name} is of type {function.func_type.name}"
                )
                findings.error(WRONG_PLANE, message, call.span)
        elif on_core:
            what = "submit" if isinstance(call, Submit) else "call"
            message = f"{function.name} runs on a core and must not {what} {call.op.name}"
            findings.error(WRONG_PLANE, message, call.span)


def check_incore_ops(function: Function, program: Program, findings: Findings) -> None:
    """An InCore function works on tiles; it neither creates nor multiplies whole tensors."""
    del program
    if function.func_type not in CORE_TYPES:
        return
    for call in all_calls(function):
        if call.op.name in _CONTROL_OPS:
            message = (
                f"{call.op.name} must stand in an Orchestration function, "
                f"but {function.name} is of type {function.func_type.name}"
            )
            findings.error(WRONG_PLANE, message, call.span)
        elif call.op.name.startswith("tensor.") and call.op.name not in _ALIASING_OPS:
            message = f"{function.name} must work on tiles, not on whole tensors by {call.op.name}"
            findings.error(WRONG_PLANE, message, call.span)
