"""InlineFunctions: the statements of a function of type Inline take the place of each call of it.

    y = self.twice(x)      ->      u_1 = add(x, x)
                                   twice_result = u_1
                                   y = twice_result

Each copy has variables of its own. An argument stands for its parameter where the body does not assign
that again. The functions are gone from the program, unless nothing else is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core import (
    AssignStmt,
    EvalStmt,
    Function,
    FunctionType,
    Program,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    flatten_to_stmts,
)
from ..errors import IRValueError
from ..expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var, replace
from ..properties import IRProperty
from ..verification.walk import all_calls, calls, statements
from ..visitor import collect_def_vars
from .base import Pass
from .body_copy import BodyCopy
from .inserting import InsertingMutator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class InlineFunctions(Pass):
    """Expand the calls of functions of type Inline."""

    name = "InlineFunctions"
    invalidated = frozenset({IRProperty.SSAForm, IRProperty.NoNestedCalls})

    def transform(self, program: Program) -> Program:
        """Expand the calls, innermost functions first.

        Raises:
            IRValueError: For a function that calls itself, that returns before its end, that is
                launched, or that the condition of a loop calls.
        """
        inline = {
            name.name: function
            for name, function in program.functions.items()
            if function.func_type is FunctionType.Inline
        }
        if not inline:
            return program
        done: dict[str, Function] = {}
        for name in inline:
            _expanded(name, inline, done, ())
        others = [f for f in program.functions.values() if f.name not in inline]
        if not others:
            return program
        kept = [_Expander(done).rewrite(function) for function in others]
        return Program(kept, program.name, program.span)


def _expanded(
    name: str, inline: Mapping[str, Function], done: dict[str, Function], outer: tuple[str, ...]
) -> None:
    """Put the function called `name` into `done`, the calls of others in it expanded."""
    function = inline[name]
    if name in outer:
        message = f"{name!r} must not call itself, neither here nor through others, to be expanded"
        raise IRValueError(message, function.span, hint="a loop repeats statements")
    if name in done:
        return
    for call in all_calls(function):
        if isinstance(call.op, GlobalVar) and call.op.name in inline:
            _expanded(call.op.name, inline, done, (*outer, name))
    last = flatten_to_stmts(function.body)[-1:]
    for stmt in statements(function.body):
        if isinstance(stmt, ReturnStmt) and stmt is not last[0]:
            message = f"{name!r} must return once, at its end, to be expanded where it is called"
            raise IRValueError(message, stmt.span)
    done[name] = _Expander(done).rewrite(function)


class _Expander(InsertingMutator):
    """Expands the calls in one function.

    Args:
        inline: The functions to expand, with no such calls in them, by name.
    """

    def __init__(self, inline: Mapping[str, Function]) -> None:
        super().__init__()
        self._inline = inline
        self._tuples: dict[Expr, Sequence[Expr]] = {}

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        for call in calls([op.condition]):
            if call.op.name in self._inline:
                message = (
                    f"{call.op.name!r} must not be called in the condition of a loop, which runs "
                    "again before every trip"
                )
                raise IRValueError(message, call.span, hint="assign its result in the loop")
        return self.visit_children(op)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = op.value
        if isinstance(value, Call) and self._is_inline(value):
            results = self._results(value)
            if len(results) != 1:
                self._tuples[op.var] = results
                return SeqStmts((), op.span)
            return replace(op, value=results[0])
        return self.visit_children(op)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        if isinstance(op.expr, Call) and self._is_inline(op.expr):
            self._results(op.expr)
            return SeqStmts((), op.span)
        return self.visit_children(op)

    def visit_tuple_get_item_expr(self, op: TupleGetItemExpr) -> Expr:
        if op.tuple in self._tuples:
            return self._tuples[op.tuple][op.index]
        return self.visit_children(op)

    def visit_call(self, op: Call) -> Expr:
        if not self._is_inline(op):
            return self.visit_children(op)
        results = self._results(op)
        if len(results) != 1:
            message = f"The call of {op.op.name!r} must give one value here, not {len(results)}"
            raise IRValueError(message, op.span)
        return results[0]

    def visit_submit(self, op: Submit) -> Submit:
        if op.op.name in self._inline:
            message = (
                f"{op.op.name!r} must be called, not launched: its statements stand at the call"
            )
            raise IRValueError(message, op.span)
        return self.visit_children(op)

    def _is_inline(self, call: Call) -> bool:
        return isinstance(call.op, GlobalVar) and call.op.name in self._inline

    def _results(self, call: Call) -> list[Expr]:
        """Insert the statements of a function, and return what it returns there."""
        function = self._inline[call.op.name]
        if len(call.args) != len(function.params):
            message = (
                f"{function.name!r} must be called with {len(function.params)} arguments, not "
                f"{len(call.args)}"
            )
            raise IRValueError(message, call.span)
        own = set(collect_def_vars(function.body))
        values: dict[Var, Expr] = {}
        for param, arg in zip(function.params, call.args, strict=True):
            given = self.visit_expr(arg)
            if param in own or isinstance(given, Call):
                given = self.assign(param.name_hint, given, call.span)
            values[param] = given
        stmts = flatten_to_stmts(BodyCopy(function.body, values).visit_stmt(function.body))
        returned: Sequence[Expr] = ()
        if stmts and isinstance(stmts[-1], ReturnStmt):
            returned = stmts[-1].value
            stmts = stmts[:-1]
        for stmt in stmts:
            self.insert(stmt)
        # An argument may be assigned again before this result is used.
        return [self.assign(f"{function.name}_result", value, call.span) for value in returned]
