"""One activation of a function: its variables, and the statements that change them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from ..core import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..errors import IRTypeError, IRValueError, UserError
from ..expr import (
    BinaryExpr,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    GlobalVar,
    IterArg,
    MakeTuple,
    Submit,
    TupleGetItemExpr,
    UnaryExpr,
    Var,
)
from ..ops import get_op
from ..ops.row import CallSite
from ..ops.values import Evaluation
from .scalars import evaluate_binary, evaluate_unary, in_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..ops.values import Progress
    from ..types import Dims
    from .budget import Budget

Value = Any
"""A TensorValue, an MXArray, a TileValue, a Python scalar, a tuple of values, or None."""


class Jump(Enum):
    """A statement that leaves a loop or goes on with its next trip."""

    BREAK = "break"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Returned:
    """The function returned `values`."""

    values: tuple[Value, ...]
    exprs: tuple[Expr, ...]


@dataclass(frozen=True)
class Yielded:
    """A loop's trip or a branch hands on `values`."""

    values: tuple[Value, ...]


Signal = Jump | Returned | Yielded | None


class Runner(Protocol):
    """What an activation asks of the program around it."""

    @property
    def progress(self) -> Progress:
        """Where the program stands."""
        ...

    @property
    def budget(self) -> Budget:
        """How much it has done of what it may do."""
        ...

    def call(self, call: Call | Submit, values: list[Value]) -> tuple[Value, ...]:
        """Run the function that a call names on argument values and return its results."""
        ...

    def leave_out(self, submit: Submit, values: list[Value]) -> tuple[Value, ...]:
        """Return the results of a launch that does not take place: its outputs as they are."""
        ...


class Frame:
    """The variables of one activation.

    Args:
        arguments: Parameter to value.
        runner: Runs the functions of the program.
        sum_order: The order of summation in matmuls.
    """

    def __init__(self, arguments: dict[Var, Value], runner: Runner, sum_order: str) -> None:
        self._values = arguments
        self._runner = runner
        self._sum = sum_order

    # ------------------------------------------------------------------- statements

    def run(self, stmt: Stmt) -> Signal:
        """Run a statement.

        Returns:
            What it asks of the statements around it, or None to go on.

        Raises:
            IRValueError: For a value that the program must not have, such as a step of zero.
        """
        match stmt:
            case AssignStmt(var, value):
                self._values[var] = self.evaluate(value)
            case EvalStmt(expr):
                self.evaluate(expr)
            case SeqStmts(stmts):
                for inner in stmts:
                    signal = self.run(inner)
                    if signal is not None:
                        return signal
            case ForStmt():
                return self._run_for(stmt)
            case WhileStmt():
                return self._run_while(stmt)
            case IfStmt():
                return self._run_if(stmt)
            case ScopeStmt():
                self._run_scope(stmt)
            case YieldStmt(value):
                return Yielded(tuple(self.evaluate(e) for e in value))
            case ReturnStmt(value):
                return Returned(tuple(self.evaluate(e) for e in value), value)
            case BreakStmt():
                return Jump.BREAK
            case ContinueStmt():
                return Jump.CONTINUE
            case _:
                message = f"A {type(stmt).__name__} cannot be run"
                raise IRTypeError(message, stmt.span)
        return None

    def _run_for(self, stmt: ForStmt) -> Signal:
        start, stop, step = (int(self.evaluate(e)) for e in (stmt.start, stmt.stop, stmt.step))
        if step == 0:
            message = "The step of a loop must not be zero"
            raise IRValueError(message, stmt.span)
        self._enter(stmt.iter_args)
        budget = self._runner.budget
        for index in range(start, stop, step):
            budget.round(stmt.span)
            self._values[stmt.loop_var] = index
            signal = self._trip(stmt.body, stmt.iter_args)
            if isinstance(signal, Returned):
                return signal
            if signal is Jump.BREAK:
                break
        self._leave(stmt.iter_args, stmt.return_vars)
        return None

    def _run_while(self, stmt: WhileStmt) -> Signal:
        self._enter(stmt.iter_args)
        budget = self._runner.budget
        while self.evaluate(stmt.condition):
            budget.round(stmt.span, asks=True)
            signal = self._trip(stmt.body, stmt.iter_args)
            if isinstance(signal, Returned):
                return signal
            if signal is Jump.BREAK:
                break
        self._leave(stmt.iter_args, stmt.return_vars)
        return None

    def _enter(self, iter_args: Sequence[IterArg]) -> None:
        initial = [self.evaluate(arg.init_value) for arg in iter_args]
        self._values.update(zip(iter_args, initial, strict=True))

    def _trip(self, body: Stmt, iter_args: Sequence[IterArg]) -> Signal:
        signal = self.run(body)
        if isinstance(signal, Yielded):
            assert len(signal.values) == len(iter_args), (len(signal.values), len(iter_args))
            self._values.update(zip(iter_args, signal.values, strict=True))
        return signal

    def _leave(self, iter_args: Sequence[IterArg], return_vars: Sequence[Var]) -> None:
        for arg, var in zip(iter_args, return_vars, strict=True):
            self._values[var] = self._values[arg]

    def _run_if(self, stmt: IfStmt) -> Signal:
        taken = stmt.then_body if self.evaluate(stmt.condition) else stmt.else_body
        signal = None if taken is None else self.run(taken)
        if not stmt.return_vars or not isinstance(signal, Yielded):
            return signal
        assert len(signal.values) == len(stmt.return_vars), stmt
        self._values.update(zip(stmt.return_vars, signal.values, strict=True))
        return None

    # ------------------------------------------------------------------- launches

    def _run_scope(self, stmt: ScopeStmt) -> None:
        """Run a region at its place: what it depends on has been done before."""
        for dep in stmt.deps:
            self.evaluate(dep)
        if isinstance(stmt, SpmdScopeStmt):
            before = dict(self._values)
            for _ in self._blocks(stmt.core_num):
                self._values.update(before)
                self._run_region(stmt)
        else:
            self._run_region(stmt)
        if stmt.task_id is not None:
            self._values[stmt.task_id] = self._runner.progress.new_task()

    def _run_region(self, stmt: ScopeStmt) -> None:
        if isinstance(stmt, InCoreScopeStmt):
            with self._runner.budget.kernel(stmt.name_hint or "region", stmt.span):
                signal = self.run(stmt.body)
        else:
            signal = self.run(stmt.body)
        if signal is not None:
            message = "A region that is launched must not be left by return, break or continue"
            raise IRValueError(message, stmt.span)

    def _blocks(self, count: Expr | None) -> Iterator[None]:
        """Stand in each block of a grid, one after another."""
        blocks = 1 if count is None else int(self.evaluate(count))
        if count is not None and blocks < 1:
            message = f"A grid must have 1 block or more, not {blocks}"
            raise IRValueError(message, count.span)
        if count is not None:
            self._runner.budget.grid(blocks, count.span)
        progress = self._runner.progress
        outer = progress.block, progress.blocks
        for block in range(blocks):
            progress.block, progress.blocks = block, blocks
            yield
        progress.block, progress.blocks = outer

    def _submit(self, submit: Submit) -> Value:
        values = [self.evaluate(arg) for arg in submit.args]
        for dep in submit.deps:
            self.evaluate(dep)
        results: tuple[Value, ...] = ()
        if submit.predicate is not None and not self.evaluate(submit.predicate):
            results = self._runner.leave_out(submit, values)
        else:
            for _ in self._blocks(submit.core_num):
                results = self._runner.call(submit, list(values))
        return (*results, self._runner.progress.new_task())

    # ------------------------------------------------------------------- expressions

    def evaluate(self, expr: Expr) -> Value:
        """Return the value of an expression.

        Raises:
            IRValueError: For a variable without a value, or an operation that refuses its values.
        """
        match expr:
            case ConstInt(value, dtype) | ConstFloat(value, dtype):
                return in_range(value, dtype)
            case ConstBool(value):
                return value
            case Var():
                if expr not in self._values:
                    message = f"{expr.name_hint!r} must have a value before it is used"
                    raise IRValueError(message, expr.span)
                return self._values[expr]
            case BinaryExpr():
                return evaluate_binary(expr, self.evaluate(expr.left), self.evaluate(expr.right))
            case UnaryExpr():
                return evaluate_unary(expr, self.evaluate(expr.operand))
            case MakeTuple(elements):
                return tuple(self.evaluate(e) for e in elements)
            case TupleGetItemExpr():
                return self.evaluate(expr.tuple)[expr.index]
            case Call(op=GlobalVar()):
                results = self._runner.call(expr, [self.evaluate(arg) for arg in expr.args])
                return results[0] if len(results) == 1 else results or None
            case Call():
                return self._run_op(expr)
            case Submit():
                return self._submit(expr)
            case _:
                message = f"A {type(expr).__name__} cannot be run"
                raise IRTypeError(message, expr.span)

    def _run_op(self, call: Call) -> Value:
        row = get_op(call.name, call.span)
        values = [self.evaluate(arg) for arg in call.args]
        site = CallSite(row, call.args, call.kwargs, call.span)
        run = Evaluation(site, call, self._extents, self._sum, self._runner.progress)
        try:
            return row.meaning(run, *values)
        except UserError as error:
            error.span = error.span or (call.span if call.span.is_known else None)
            raise

    def _extents(self, dims: Dims) -> tuple[int, ...]:
        return tuple(int(self.evaluate(dim)) for dim in dims)
