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
from ..errors import ParserSyntaxError, ParserTypeError, Span, UnsupportedFeatureError
from ..expr import Call, Expr, ScalarType, TupleGetItemExpr, UnknownType, Var
from ..types import TupleType
from .annotations import AnnotationParser
from .assignments import AssignmentParser
from .context import plural
from .expressions import ExpressionParser, kind_of
from .launches import LaunchParser, no_task
from .loops import LoopParser
from .markers import Intrinsic, Unsupported
from .regions import RegionParser
from .statics import static_assert, static_print
from .templates import TemplateParser
from .typecheck import Written, merge, mismatch
from .windows import WindowParser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expr import Type
    from .context import Context
    from .jitted import JITFunction

_REFUSED: Final[dict[type[ast.stmt], tuple[str, str]]] = {
    ast.AugAssign: ("An assignment with an operator", "x = x + y"),
    ast.Try: ("try", "a condition that is tested before"),
    ast.Assert: ("assert", "pl.static_assert(condition, 'message') for what is known beforehand"),
    ast.Raise: ("raise", "pl.static_assert(condition, 'message') for what is known beforehand"),
    ast.FunctionDef: ("A function inside a function", "a method of the program with @pl.function"),
    ast.AsyncFunctionDef: ("async", "a method of the program with @pl.function"),
    ast.ClassDef: ("A class inside a function", "a program of its own with @pl.program"),
    ast.With: ("with", "with pl.at(level=pl.Level.CORE_GROUP): and with pl.spmd(n):"),
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
        region: `at` or `spmd` inside of such a region, else None.
        templates_around: The templates whose calls this body is read for, outermost first.
    """

    def __init__(self, context: Context, results: tuple[Written, ...] | None) -> None:
        self.context = context
        self.expressions = ExpressionParser(context)
        self.annotations = AnnotationParser(context, self.expressions)
        self.assignments = AssignmentParser(context, self.expressions)
        self.loops = LoopParser(self)
        self.launches = LaunchParser(self)
        self.regions = RegionParser(self)
        self.templates = TemplateParser(self)
        self.templates_around: tuple[JITFunction, ...] = ()
        self.region: str | None = None
        self.returned: tuple[Type, ...] | None = None
        self._results = results

    # ------------------------------------------------------------------------ blocks

    def block(self, nodes: Sequence[ast.stmt], block: Block, span: Span | None = None) -> Stmt:
        """Return the statements of a body as one; `block` then holds what it yields."""
        return seq(self.statements(nodes, block), span)

    def statements(self, nodes: Sequence[ast.stmt], block: Block) -> list[Stmt]:
        """Return the statements of a body; `block` then holds what it yields."""
        stmts: list[Stmt] = []
        self.context.scope.blocks.append(block)
        for node in nodes:
            if block.values is not None:
                message = "pl.yield_ must be the last statement of its block"
                raise self.context.error(ParserSyntaxError, message, node)
            stmts.extend(self._statement(node, block))
        self.context.scope.blocks.pop()
        return stmts

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
                decided = self.templates.decided(node)
                if not isinstance(decided, ast.If):
                    return self.statements(decided, Block(may_yield=False))
                return [self._if(decided)]
            case ast.Return():
                return self._return(node)
            case ast.With() if self.regions.word(node):
                return self.regions.region(node)
            case ast.Break():
                self.loops.check_jump(node)
                return [BreakStmt(span)]
            case ast.Continue():
                self.loops.check_jump(node)
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
        if isinstance(value, ast.Call) and self.is_call_of(value, "yield_"):
            return [self._yield(target, annotation, value, block, node)]
        if annotation is None and self.assignments.define_shape(target, value):
            return []
        if isinstance(value, ast.Call) and annotation is None and self.templates.called(value):
            return self.templates.assign(target, value, node)
        submit = value if isinstance(value, ast.Call) and self.launches.word(value) else None
        if isinstance(target, ast.Tuple):
            if submit is not None:
                return self.launches.unpack(target, submit, node)
            return self.assignments.unpack(target, value, node)
        if isinstance(target, ast.Subscript) and annotation is None:
            made = WindowParser(self.context, self.expressions).write(target, value)
            return self.assignments.bound(target.value, None, made, value, node)
        written = self._written(target, annotation, block)
        if submit is not None:
            before, made = self.launches.submit(submit)
            return [*before, *self.assignments.bound(target, written, made, value, node)]
        if isinstance(value, ast.Constant) and value.value is None:
            nothing = no_task(value, self)
            return self.assignments.bound(target, written, nothing, value, node)
        return self.assignments.assign(target, written, value, node)

    def _written(
        self, target: ast.expr, annotation: ast.expr | None, block: Block
    ) -> Written | None:
        """Return what a name is annotated with, here or on a line before."""
        if annotation is not None:
            return self.annotations.local(annotation)
        return block.declared.get(self.assignments.name(target))

    # ------------------------------------------------------------------------ expressions

    def is_call_of(self, node: ast.expr, name: str) -> bool:
        """Return whether `node` calls the word `name` of the language."""
        if not isinstance(node, ast.Call) or isinstance(node.func, ast.Call):
            return False
        match node.func:
            case ast.Name() | ast.Attribute():
                if self.is_method(node.func):
                    return False
                word = self.context.capture.fold(node.func)
                return isinstance(word, Intrinsic) and word.name == name
            case _:
                return False

    def is_method(self, func: ast.expr) -> bool:
        """Return whether a callee is a function of the program, written `self.name`."""
        while isinstance(func, ast.Attribute):
            func = func.value
        return isinstance(func, ast.Name) and func.id == "self"

    def _expression(self, value: ast.expr, block: Block, node: ast.stmt) -> list[Stmt]:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return []
        if isinstance(value, ast.Call):
            done = self._call(value, block, node)
            if done is not None:
                return done
        made = self.expressions.parse(value)
        if not isinstance(made, Call):
            message = f"{ast.unparse(value)} has no effect, so it must not be a statement"
            raise self.context.error(ParserSyntaxError, message, value, hint="assign it to a name")
        return [EvalStmt(self.assignments.kept(made, value), self.context.span(node))]

    def _call(self, value: ast.Call, block: Block, node: ast.stmt) -> list[Stmt] | None:
        """Return what a call that is a statement says, or None if it is an ordinary one."""
        if self.is_call_of(value, "static_assert"):
            static_assert(self.context, value)
            return []
        if self.is_call_of(value, "static_print"):
            static_print(self.context, self.expressions, value)
            return []
        if self.is_call_of(value, "dump_tag"):
            self.launches.dump_tag(value)
            return []
        if self.launches.word(value) is not None:
            before, submit = self.launches.submit(value)
            return [*before, EvalStmt(submit, self.context.span(node))]
        if self.is_call_of(value, "yield_"):
            if value.args or not block.may_yield:
                message = "pl.yield_ must name what it hands on, as in y = pl.yield_(x)"
                raise self.context.error(ParserSyntaxError, message, value)
            block.values = ()
            return [YieldStmt((), self.context.span(node))]
        if self.templates.called(value) is not None:
            return self.templates.assign(None, value, node)
        return None

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
        with self.loops.enter("while"):
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
        if self.region is not None:
            message = f"The region of a pl.{self.region} must not be left by return"
            raise self.context.error(
                ParserSyntaxError, message, node, hint="put the return behind the region"
            )
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
