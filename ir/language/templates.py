"""Calls of templates, `@pl.inline`: the statements of the template take the place of the call."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..core import AssignStmt, FunctionType, Stmt
from ..errors import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ..expr import Expr, Var
from ..verification.walk import uses
from .capture import NOT_CONSTANT, Capture
from .context import Context, plural
from .jitted import JITFunction
from .source import find_function
from .typecheck import mismatch
from .variables import Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .source import Source
    from .statements import BodyParser


class TemplateParser:
    """Reads the calls of templates in one function."""

    def __init__(self, body: BodyParser) -> None:
        self._body = body
        self._context = body.context

    def called(self, node: ast.expr) -> JITFunction | None:
        """Return the template that `node` calls, or None if it is something else."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
            return None
        if self._body.is_method(node.func):
            return None
        found = self._context.capture.fold(node.func)
        if not isinstance(found, JITFunction) or found.kind is not FunctionType.Inline:
            return None
        return found

    def decided(self, node: ast.If) -> ast.If | Sequence[ast.stmt]:
        """Return the arm of an if that the constants of a template choose, or what is left to decide.

        A template is for many arguments: what its constants rule out need not be legal for them.
        Outside of a template, and where the arms name results, an if stays as it is.
        """
        if not self._body.templates_around or any(map(_is_yield, ast.walk(node))):
            return node
        test = self._undecided(node.test)
        if isinstance(test, bool):
            return node.body if test else node.orelse
        return ast.copy_location(ast.If(test, node.body, node.orelse), node)

    def _undecided(self, test: ast.expr) -> bool | ast.expr:
        """Return a condition without what constants decide of it, or its value."""
        if isinstance(test, ast.BoolOp):
            every = isinstance(test.op, ast.And)
            parts = [self._undecided(part) for part in test.values]
            if any(part is not every for part in parts if isinstance(part, bool)):
                return not every
            left = [part for part in parts if not isinstance(part, bool)]
            if len(left) < 2:
                return left[0] if left else every
            return ast.copy_location(ast.BoolOp(test.op, left), test)
        value = self._context.capture.fold(test)
        return value if isinstance(value, bool) else test

    def assign(self, target: ast.expr | None, call: ast.Call, node: ast.stmt) -> list[Stmt]:
        """Return the statements of `target = template(…)`, or of the call alone."""
        template = self.called(call)
        assert template is not None, ast.unparse(call)
        stmts, values = self._expand(template, call)
        targets: list[ast.expr] = []
        if target is not None:
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            if len(targets) != len(values):
                wanted = plural(len(values), "result")
                message = f"The template {template.name!r} returns {wanted}, not {len(targets)}"
                raise self._context.error(ParserTypeError, message, target)
        span = self._context.span(node)
        assignments = self._body.assignments
        names = [assignments.name(element) for element in targets]
        if len(names) > 1 and any(var.name_hint in names for var in uses(values)):
            # One result may be the old value of another one's name.
            kept = [Var(f"{name}_new", v.type, span) for name, v in zip(names, values, strict=True)]
            stmts += [AssignStmt(k, v, span) for k, v in zip(kept, values, strict=True)]
            values = list[Expr](kept)
        for name, element, value in zip(names, targets, values, strict=False):
            var = assignments.assigned(name, value.type, element)
            if var is not value:
                stmts.append(AssignStmt(var, value, span))
        return stmts

    def _expand(self, template: JITFunction, call: ast.Call) -> tuple[list[Stmt], list[Expr]]:
        """Return the statements of a template for the arguments of a call, and its results."""
        from .statements import Block, BodyParser

        if template in self._body.templates_around:
            message = f"The template {template.name!r} must not call itself"
            raise self._context.error(UnsupportedFeatureError, message, call)
        source, node = find_function(template.python)
        scope = Scope()
        outer = self._context
        context = Context(
            source,
            scope,
            Capture(source, template.namespace, scope, shapes=True),
            outer.callees,
            template.name,
            outer.strict_ssa,
            outer.kind,
            jit=True,
            tagged=outer.tagged,
        )
        inner = BodyParser(context, None)
        inner.region = self._body.region
        inner.templates_around = (*self._body.templates_around, template)
        stmts = self._bind(inner, template, node, call)
        nodes, returned = _split(node, source)
        stmts += inner.statements(nodes, Block(may_yield=False))
        return stmts, [inner.expressions.parse(part) for part in returned]

    def _bind(
        self, inner: BodyParser, template: JITFunction, node: ast.FunctionDef, call: ast.Call
    ) -> list[Stmt]:
        """Give the parameters of a template their arguments."""
        params = node.args.args
        plain = not (node.args.vararg or node.args.kwarg or node.args.kwonlyargs)
        if not plain or node.args.defaults or call.keywords or len(call.args) != len(params):
            wanted = plural(len(params), "argument")
            message = f"The template {template.name!r} must be called with {wanted} by position"
            hint = f"{template.name}({', '.join(p.arg for p in params)})"
            raise self._context.error(ParserTypeError, message, call, hint=hint)
        assigned = {n.id for n in ast.walk(node) if _is_store(n) and isinstance(n, ast.Name)}
        stmts: list[Stmt] = []
        for param, arg in zip(params, call.args, strict=True):
            name = param.arg
            value = self._context.capture.fold(arg)
            if value is not NOT_CONSTANT and name not in assigned and param.annotation is None:
                inner.context.capture.define(name, value)
                continue
            given = self._body.expressions.parse(arg)
            if param.annotation is not None:
                written, _ = inner.annotations.parameter(param.annotation)
                fault = mismatch(written.type, given.type)
                if fault is not None:
                    message = f"The argument {name!r} of {template.name!r} {fault}"
                    raise self._context.error(ParserTypeError, message, arg)
            if isinstance(given, Var) and name not in assigned:
                inner.context.scope.bind(name, given)
                continue
            span = self._context.span(arg)
            var = inner.context.scope.define(name, given.type, span)
            stmts.append(AssignStmt(var, given, span))
        return stmts


def _is_yield(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "yield_"


def _is_store(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _split(node: ast.FunctionDef, source: Source) -> tuple[Sequence[ast.stmt], list[ast.expr]]:
    """Return the statements of a template without its return, and what that returns."""
    nodes = list(node.body)
    last = nodes[-1]
    returns = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
    if any(found is not last for found in returns):
        message = "A template must return once, at its end"
        first = next(found for found in returns if found is not last)
        raise source.error(ParserSyntaxError, message, first)
    if not isinstance(last, ast.Return):
        return nodes, []
    if last.value is None:
        return nodes[:-1], []
    parts = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    return nodes[:-1], parts
