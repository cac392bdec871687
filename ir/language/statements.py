"""Statements: from the syntax tree to nodes of the IR."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..core import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    IfStmt,
    ReturnStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    seq,
)
from ..dtypes import DType
from ..errors import (
    ParserSyntaxError,
    ParserTypeError,
    Span,
    UnsupportedFeatureError,
)
from ..expr import Call, Expr, ScalarType, TupleGetItemExpr, UnknownType
from ..types import TupleType
from .annotations import AnnotationParser
from .assignments import AssignmentParser
from .capture import NOT_CONSTANT
from .context import plural
from .expressions import ExpressionParser, kind_of
from .loops import LoopParser
from .markers import Intrinsic, Unsupported
from .typecheck import Written, merge, mismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expr import Type, Var
    from .context import Context

_REFUSED: Final[dict[type[ast.stmt], tuple[str, str]]] = {
    ast.AugAssign: ("An assignment with an operator", "x = x + y"),
    ast.Try: ("try", "a condition that is tested before"),
    ast.Assert: ("assert", "pl.static_assert(condition, 'message') for what is known beforehand"),
    ast.Raise: ("raise", "pl.static_assert(condition, 'message') for what is known beforehand"),
    ast.FunctionDef: ("A function inside a function", "a method of the program with @pl.function"),
    ast.AsyncFunctionDef: ("async", "a method of the program with @pl.function"),
    ast.ClassDef: ("A class inside a function", "a program of its own with @pl.program"),
    ast.With: ("with", "plain statements in a @pl.function(type=pl.FunctionType.InCore)"),
    ast.Import: ("import", "an import at the top of the file"),
    ast.ImportFrom: ("import", "an import at the top of the file"),
    ast.Global: ("global", "an argument, or a constant made before the kernel"),
    ast.Nonlocal: ("nonlocal", "an argument, or a constant made before the kernel"),
    ast.Delete: ("del", "nothing: a tile's memory is free after its last use"),
    ast.Match: ("match", "if and elif"),
}


@dataclass
class Block:
    """A body that is being read: what its last yield hands on, and types declared beforehand."""

    may_yield: bool
    yields: list[tuple[str, Written | None, Span]] = field(
        default_factory=list[tuple[str, "Written | None", Span]]
    )
    values: tuple[Expr, ...] | None = None
    declared: dict[str, Written] = field(default_factory=dict[str, Written])


class BodyParser:
    """Reads the body of one function.

    Attributes:
        returned: The types of the first return statement; None before there is one.
    """

    def __init__(self, context: Context, results: tuple[Written, ...] | None) -> None:
        self.context = context
        self.expressions = ExpressionParser(context)
        self.annotations = AnnotationParser(context, self.expressions)
        self.assignments = AssignmentParser(context, self.expressions)
        self.loops = LoopParser(self)
        self.returned: tuple[Type, ...] | None = None
        self._results = results

    # ------------------------------------------------------------------------ blocks

    def block(self, nodes: Sequence[ast.stmt], block: Block, span: Span | None = None) -> Stmt:
        """Return the statements of a body as one; `block` then holds what it yields."""
        stmts: list[Stmt] = []
        for node in nodes:
            if block.values is not None:
                message = "pl.yield_ must be the last statement of its block"
                raise self.context.error(ParserSyntaxError, message, node)
            stmts.extend(self._statement(node, block))
        return seq(stmts, span)

    def _statement(self, node: ast.stmt, block: Block) -> list[Stmt]:
        span = self.context.span(node)
        match node:
            case ast.Assign(targets=[target], value=value):
                return self._assign(target, None, value, block, node)
            case ast.AnnAssign(target=target, annotation=annotation, value=None):
                name = self.assignments.name(target)
                block.declared[name] = self.annotations.local(annotation)
                return []
            case ast.AnnAssign(target=target, annotation=annotation, value=ast.expr() as value):
                return self._assign(target, annotation, value, block, node)
            case ast.Expr(value=value):
                return self._expression(value, block, node)
            case ast.For():
                return self.loops.for_loop(node)
            case ast.While():
                return [self._while(node)]
            case ast.If():
                return [self._if(node)]
            case ast.Return():
                return self._return(node)
            case ast.Break():
                return [BreakStmt(span)]
            case ast.Continue():
                return [ContinueStmt(span)]
            case ast.Pass():
                return []
            case _:
                raise self._refused(node)

    def _refused(self, node: ast.stmt) -> UnsupportedFeatureError:
        if isinstance(node, ast.With):
            for item in node.items:
                entered = item.context_expr
                callee = entered.func if isinstance(entered, ast.Call) else entered
                word = self.context.capture.fold(callee)
                if isinstance(word, Unsupported):
                    return self.context.capture.unsupported(word, entered)
        if isinstance(node, ast.Assign):
            message, instead = "A chained assignment", "one assignment a line"
        else:
            message, instead = _REFUSED.get(type(node), (ast.unparse(node), "something simpler"))
        message = f"{message} is not part of this language"
        hint = f"what works: {instead}"
        return self.context.error(UnsupportedFeatureError, message, node, hint=hint)

    # ------------------------------------------------------------------------ assignments

    def _assign(
        self,
        target: ast.expr,
        annotation: ast.expr | None,
        value: ast.expr,
        block: Block,
        node: ast.stmt,
    ) -> list[Stmt]:
        if self._is_call_of(value, "yield_"):
            assert isinstance(value, ast.Call)
            return [self._yield(target, annotation, value, block, node)]
        if isinstance(target, ast.Tuple):
            return self.assignments.unpack(target, value, node)
        written = self._written(target, annotation, block)
        return self.assignments.assign(target, written, value, node)

    def _written(
        self, target: ast.expr, annotation: ast.expr | None, block: Block
    ) -> Written | None:
        """Return what a name is annotated with, here or on a line before."""
        if annotation is not None:
            return self.annotations.local(annotation)
        return block.declared.get(self.assignments.name(target))

    # ------------------------------------------------------------------------ expressions

    def _is_call_of(self, node: ast.expr, name: str) -> bool:
        if not isinstance(node, ast.Call) or isinstance(node.func, ast.Call):
            return False
        match node.func:
            case ast.Name() | ast.Attribute():
                root: ast.expr = node.func
                while isinstance(root, ast.Attribute):
                    root = root.value
                if isinstance(root, ast.Name) and root.id == "self":
                    return False
                word = self.context.capture.fold(node.func)
                return isinstance(word, Intrinsic) and word.name == name
            case _:
                return False

    def _expression(self, value: ast.expr, block: Block, node: ast.stmt) -> list[Stmt]:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return []
        if self._is_call_of(value, "static_assert"):
            assert isinstance(value, ast.Call)
            self._static_assert(value)
            return []
        if self._is_call_of(value, "yield_"):
            assert isinstance(value, ast.Call)
            if value.args or not block.may_yield:
                message = "pl.yield_ must name what it hands on, as in y = pl.yield_(x)"
                raise self.context.error(ParserSyntaxError, message, value)
            block.values = ()
            return [YieldStmt((), self.context.span(node))]
        made = self.expressions.parse(value)
        if not isinstance(made, Call):
            message = f"{ast.unparse(value)} has no effect, so it must not be a statement"
            raise self.context.error(ParserSyntaxError, message, value, hint="assign it to a name")
        return [EvalStmt(made, self.context.span(node))]

    def _static_assert(self, node: ast.Call) -> None:
        condition = self.context.capture.fold(node.args[0]) if node.args else NOT_CONSTANT
        if condition is NOT_CONSTANT:
            message = (
                "pl.static_assert must have a condition that is known when the kernel is parsed"
            )
            raise self.context.error(ParserTypeError, message, node)
        if not condition:
            text = self.context.capture.fold(node.args[1]) if len(node.args) > 1 else None
            reason = text if isinstance(text, str) else ast.unparse(node.args[0])
            message = f"Static assertion failed: {reason}"
            names = {n.id: n for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
            values = {name: self.context.capture.fold(n) for name, n in names.items()}
            known = [f"{name} is {v}" for name, v in values.items() if isinstance(v, int | float)]
            hint = ", ".join(known) or None
            raise self.context.error(ParserSyntaxError, message, node.args[0], hint=hint)

    # ------------------------------------------------------------------------ control flow

    def condition(self, node: ast.expr, owner: str) -> Expr:
        """Return the condition of an `if` or a loop.

        Raises:
            ParserTypeError: When it is no BOOL.
        """
        made = self.expressions.parse(node)
        if not isinstance(made.type, ScalarType) or made.type.dtype is not DType.Bool:
            message = f"The condition of {owner} must be a comparison, not {kind_of(made.type)}"
            hint = f"{ast.unparse(node)} != 0"
            raise self.context.error(ParserTypeError, message, node, hint=hint)
        return made

    def _while(self, node: ast.While) -> Stmt:
        if node.orelse:
            message = "else after a loop is not part of this language"
            raise self.context.error(UnsupportedFeatureError, message, node.orelse[0])
        condition = self.condition(node.test, "a while")
        body = self.block(node.body, Block(may_yield=False))
        return WhileStmt(condition, (), body, (), self.context.span(node))

    def _if(self, node: ast.If) -> Stmt:
        condition = self.condition(node.test, "an if")
        then, other = Block(may_yield=True), Block(may_yield=True)
        with self.context.scope.branches() as branches:
            with branches.arm():
                then_body = self.block(node.body, then)
            with branches.arm():
                else_body = self.block(node.orelse, other) if node.orelse else None
        names, others = ([name for name, _, _ in b.yields] for b in (then, other))
        if names != others:
            message = (
                "Both branches of an if must yield under the same names, "
                f"not {', '.join(names) or 'nothing'} and {', '.join(others) or 'nothing'}"
            )
            raise self.context.error(ParserSyntaxError, message, node.test)
        results = self.yielded(then, [v.type for v in then.values or ()])
        if others and other.values is not None:
            for var, value in zip(results, other.values, strict=True):
                fault = mismatch(var.type, value.type)
                if fault is not None:
                    message = f"{var.name_hint!r} {fault} from the else branch"
                    raise self.context.error(ParserTypeError, message, value.span)
        for var in results:
            self.context.scope.bind(var.name_hint, var)
        return IfStmt(condition, then_body, else_body, results, self.context.span(node))

    def yielded(self, block: Block, implied: Sequence[Type]) -> tuple[Var, ...]:
        """Return the variables that the yield of `block` names; `implied` are their usual types."""
        from ..expr import Var

        variables: list[Var] = []
        for (name, written, span), type_ in zip(block.yields, implied, strict=True):
            final = type_ if written is None else merge(written, type_)
            variables.append(Var(name, final, span))
        return tuple(variables)

    def _yield(
        self,
        target: ast.expr,
        annotation: ast.expr | None,
        call: ast.Call,
        block: Block,
        node: ast.stmt,
    ) -> Stmt:
        if not block.may_yield:
            message = "pl.yield_ must end a branch of an if, or a loop with init_values"
            raise self.context.error(ParserSyntaxError, message, call)
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        if len(targets) != len(call.args) or call.keywords:
            message = (
                f"pl.yield_ must hand on {plural(len(targets), 'value')}, not {len(call.args)}"
            )
            raise self.context.error(ParserSyntaxError, message, call)
        values = tuple(self.expressions.parse(arg) for arg in call.args)
        for element, value in zip(targets, values, strict=True):
            name = self.assignments.name(element)
            written = self._written(element, annotation, block)
            self.assignments.checked_type(written, value.type, f"{name!r}", element)
            block.yields.append((name, written, self.context.span(element)))
        block.values = values
        return YieldStmt(values, self.context.span(node))

    # ------------------------------------------------------------------------ return

    def _return(self, node: ast.Return) -> list[Stmt]:
        span = self.context.span(node)
        parts = [] if node.value is None else [node.value]
        if isinstance(node.value, ast.Tuple):
            parts = node.value.elts
        values = [self.expressions.parse(part) for part in parts]
        stmts: list[Stmt] = []
        if len(values) == 1 and isinstance(values[0].type, TupleType):
            whole = self.assignments.temporary(values[0].type, span)
            stmts.append(AssignStmt(whole, values[0], span))
            count = len(values[0].type.types)
            values = list[Expr](TupleGetItemExpr(whole, i, span) for i in range(count))
            parts = parts * count
        for value, part in zip(values, parts, strict=True):
            if isinstance(value.type, UnknownType):
                raise self.assignments.no_result(value, part)
        self._check_results(values, parts, node)
        if self.returned is None:
            self.returned = tuple(value.type for value in values)
        return [*stmts, ReturnStmt(tuple(values), span)]

    def _check_results(
        self, values: list[Expr], parts: Sequence[ast.expr], node: ast.Return
    ) -> None:
        name = self.context.function
        wanted = self.returned
        if self._results is not None:
            wanted = tuple(written.type for written in self._results)
        if wanted is None:
            return
        if len(values) != len(wanted):
            message = f"{name!r} must return {plural(len(wanted), 'value')}, not {len(values)}"
            raise self.context.error(ParserTypeError, message, node)
        for position, (type_, value) in enumerate(zip(wanted, values, strict=True)):
            fault = mismatch(type_, value.type, check_layout=False)
            if fault is not None:
                message = f"Result {position} of {name!r} {fault}"
                raise self.context.error(ParserTypeError, message, parts[position])
