"""Programs and functions: signatures first, then bodies."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..core import AssignStmt, Function, ParamDirection, Program, ReturnStmt
from ..errors import ParserSyntaxError, ParserTypeError, UnsupportedFeatureError
from ..expr import Call, Op, Var
from ..mx_uses import compound_faults
from ..ops import ROWS
from ..verification.walk import statements
from .capture import Capture
from .context import Context, Parameter, Signature
from .source import Source, find_class, find_function
from .statements import Block, BodyParser
from .variables import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FunctionType as PythonFunction

    from ..core import Stmt
    from ..errors import Span
    from ..expr import Type
    from .context import Options
    from .typecheck import Written

#: So deep may expressions nest that whoever walks them, a few calls a level, has room on the stack.
_DEEPEST = 160

#: Functions that a standalone function calls, which join any program that it joins.
_companions: WeakKeyDictionary[Function, list[Function]] = WeakKeyDictionary()


@dataclass(frozen=True)
class _Definition:
    """A function whose signature has been read."""

    node: ast.FunctionDef
    options: Options
    body: BodyParser
    results: tuple[Written, ...] | None
    signature: Signature


class _Functions:
    """The functions of a program while it is being read."""

    def __init__(self, source: Source, namespace: Mapping[str, object]) -> None:
        self._source = source
        self._namespace = namespace
        self._definitions: dict[str, _Definition] = {}
        self._open: set[str] = set()
        self.done: dict[str, Function] = {}
        self.adopted: list[Function] = []

    # ------------------------------------------------------------------------ what bodies ask

    def signature(self, name: str) -> Signature | None:
        """Return the signature of a function, or None."""
        if name in self._definitions:
            return self._definitions[name].signature
        function = self.done.get(name)
        if function is None:
            return None
        params = zip(function.params, function.param_directions, strict=True)
        return Signature(
            name,
            tuple(Parameter(var, direction) for var, direction in params),
            function.return_types,
            function.span,
        )

    def names(self) -> list[str]:
        """Return the names of all functions."""
        return [*self._definitions, *(f.name for f in self.adopted)]

    def results(self, name: str) -> tuple[Type, ...] | None:
        """Return the result types of a function; its body is read for them if need be."""
        signature = self.signature(name)
        assert signature is not None, name
        if signature.results is not None:
            return signature.results
        if name in self._open:
            return None
        return self.read(name).return_types

    def returned_at(self, name: str) -> Span | None:
        """Return where a function of this file that has been read returns; None for others."""
        function = self.done.get(name)
        if function is None or function in self.adopted:
            return None
        returns = (s.span for s in statements(function.body) if isinstance(s, ReturnStmt))
        return next(returns, None)

    def adopt(self, function: Function) -> bool:
        """Take a standalone function, and those that it calls, into the program."""
        known = self.done.get(function.name)
        if known is function:
            return True
        if known is not None or function.name in self._definitions:
            return False
        self.done[function.name] = function
        self.adopted.append(function)
        return all(self.adopt(companion) for companion in _companions.get(function, ()))

    # ------------------------------------------------------------------------ reading

    def declare(self, node: ast.FunctionDef, options: Options, *, strict_ssa: bool) -> None:
        """Read the signature of a function."""
        if node.name in self._definitions:
            message = (
                f"The functions of a program must have different names, not {node.name!r} twice"
            )
            raise self._source.error(ParserSyntaxError, message, self._source.head_span(node))
        scope = Scope()
        capture = Capture(self._source, self._namespace, scope, shapes=options.jit)
        strict = strict_ssa or options.strict_ssa
        context = Context(
            self._source, scope, capture, self, node.name, strict, options.type, options.jit
        )
        body = BodyParser(context, None)
        params = tuple(self._parameter(arg, body) for arg in self._arguments(node))
        written = body.annotations.results(node.returns) if node.returns is not None else None
        body = BodyParser(context, written)
        results = None if written is None else tuple(w.type for w in written)
        signature = Signature(node.name, params, results, self._source.head_span(node))
        self._definitions[node.name] = _Definition(node, options, body, written, signature)

    def _arguments(self, node: ast.FunctionDef) -> list[ast.arg]:
        given = node.args
        odd = given.vararg or given.kwarg or next(iter(given.kwonlyargs), None)
        if odd is not None or given.defaults or given.posonlyargs:
            where = odd or next(iter([*given.defaults, *given.posonlyargs]))
            message = "The parameters of a kernel must be plain names, without defaults and stars"
            raise self._source.error(UnsupportedFeatureError, message, where)
        named_self = given.args and given.args[0].arg == "self" and not given.args[0].annotation
        return given.args[1:] if named_self else given.args

    def _parameter(self, arg: ast.arg, body: BodyParser) -> Parameter:
        if arg.annotation is None:
            message = f"The parameter {arg.arg!r} must be annotated"
            hint = f"{arg.arg}: pl.Tensor[[64, 128], pl.FP32], or {arg.arg}: pl.Scalar[pl.INDEX]"
            raise self._source.error(ParserTypeError, message, arg, hint=hint)
        written, direction = body.annotations.parameter(arg.annotation)
        name_span = self._source.span(arg)
        var = Var(arg.arg, written.type, name_span)
        body.context.scope.bind(arg.arg, var)
        return Parameter(var, direction)

    def read(self, name: str) -> Function:
        """Return a function, its body read now if it was not yet."""
        if name in self.done:
            return self.done[name]
        definition = self._definitions[name]
        self._open.add(name)
        try:
            self.done[name] = self._read(definition)
        except RecursionError as error:
            raise self._nested_too_deeply(name, definition.signature.span) from error
        finally:
            self._open.discard(name)
        return self.done[name]

    def _nested_too_deeply(self, name: str, where: ast.AST | Span) -> ParserSyntaxError:
        message = f"Failed to parse function {name!r}: an expression is nested too deeply"
        hint = "give its parts names of their own"
        return self._source.error(ParserSyntaxError, message, where, hint=hint)

    def _read(self, definition: _Definition) -> Function:
        node, body = definition.node, definition.body
        deep = _deep_expression(node)
        if deep is not None:
            raise self._nested_too_deeply(node.name, deep)
        attrs, nodes = self._prologue(definition)
        stmt = body.block(nodes, Block(may_yield=False))
        written = definition.signature.results
        if written and body.returned is None:
            message = f"{node.name!r} must return what its -> promises, but has no return"
            raise self._source.error(ParserTypeError, message, definition.signature.span)
        self._check_outputs(definition, stmt)
        options = definition.options
        return Function(
            node.name,
            [(p.var, p.direction) for p in definition.signature.params],
            written if written is not None else body.returned or (),
            stmt,
            definition.signature.span,
            options.type,
            options.level,
            options.role,
            attrs,
        )

    def _check_outputs(self, definition: _Definition, body: Stmt) -> None:
        """Refuse an output whose name is given to a fresh tensor: the caller's stays unwritten."""
        outputs = {
            p.var for p in definition.signature.params if p.direction is not ParamDirection.In
        }
        for stmt in statements(body):
            match stmt:
                case AssignStmt(var, Call(op=Op(name))) if (
                    var in outputs and ROWS[name].reuses is None
                ):
                    message = (
                        f"{var.name_hint!r} must be written as the output that it is, not be the "
                        f"name of the fresh tensor that {name} makes"
                    )
                    hint = "give the result a name of its own and return it, without a pl.Out"
                    raise self._source.error(ParserTypeError, message, stmt.span, hint=hint)
                case _:
                    pass

    def _prologue(self, definition: _Definition) -> tuple[dict[str, object], list[ast.stmt]]:
        """Return the attributes of a function and the statements after `pl.func_attr`."""
        from .markers import Intrinsic

        attrs = dict(definition.options.attrs)
        nodes = list(definition.node.body)
        match nodes[:1]:
            case [ast.Expr(value=ast.Constant(value=str()))]:
                nodes = nodes[1:]
            case _:
                pass
        capture = definition.body.context.capture
        match nodes[:1]:
            case [
                ast.Expr(value=ast.Call(func=ast.Attribute() | ast.Name() as func, args=[given]))
            ]:
                if ast.unparse(func).startswith("self."):
                    return attrs, nodes
                word = capture.fold(func)
                if not isinstance(word, Intrinsic) or word.name != "func_attr":
                    return attrs, nodes
            case _:
                return attrs, nodes
        if not isinstance(given, ast.Dict):
            message = "pl.func_attr must have a dict, written {…}"
            raise self._source.error(ParserTypeError, message, given)
        keys = [capture.fold(key) if key is not None else None for key in given.keys]
        for position, key in enumerate(keys):
            if not isinstance(key, str) or key in keys[:position] or key in attrs:
                message = "The keys of pl.func_attr must be strings, each once"
                raise self._source.error(ParserTypeError, message, given.keys[position] or given)
        attrs.update(definition.body.expressions.calls.value(given))
        return attrs, nodes[1:]


def parse_program(
    name: str,
    methods: Mapping[str, tuple[PythonFunction, Options]],
    namespace: Mapping[str, object],
    *,
    strict_ssa: bool,
) -> Program:
    """Return the program that a class says.

    Args:
        name: The class's name.
        methods: Its decorated methods, at least one, and what each was decorated with.
        namespace: The names that its text can see.
        strict_ssa: Whether a name may be assigned only once.

    Raises:
        ParserError: When its text is none of the language.
    """
    first, _ = next(iter(methods.values()))
    source, node = find_class(name, first)
    functions = _Functions(source, namespace)
    for stmt in node.body:
        if isinstance(stmt, ast.FunctionDef) and stmt.name in methods:
            functions.declare(stmt, methods[stmt.name][1], strict_ssa=strict_ssa)
    for method in methods:
        functions.read(method)
    made = Program(list(functions.done.values()), name, source.head_span(node))
    _check_compounds(made, source)
    return made


def parse_function(
    function: PythonFunction, options: Options, namespace: Mapping[str, object]
) -> Function:
    """Return the standalone function that a `def` says.

    Raises:
        ParserError: When its text is none of the language.
    """
    source, node = find_function(function)
    functions = _Functions(source, namespace)
    functions.declare(node, options, strict_ssa=options.strict_ssa)
    made = functions.read(node.name)
    if functions.adopted:
        _companions[made] = functions.adopted
    _check_compounds(Program(list(functions.done.values())), source)
    return made


def companions(function: Function) -> list[Function]:
    """Return a standalone function and all that it calls, in the order of their discovery."""
    found: dict[Function, None] = {}
    waiting = [function]
    while waiting:
        current = waiting.pop(0)
        if current not in found:
            found.setdefault(current)
            waiting += _companions.get(current, ())
    return list(found)


def _check_compounds(program: Program, source: Source) -> None:
    """Refuse tensors of compound dtypes where none can be, and those of an ambiguous use."""
    for function in program.functions.values():
        for fault in compound_faults(function, program):
            # A use can stand in a function that was adopted from another file.
            lines = source.lines if fault.span.filename == source.filename else None
            raise ParserTypeError(
                fault.message, fault.span, hint=fault.hint, note=fault.note, source_lines=lines
            )


def _deep_expression(function: ast.FunctionDef) -> ast.expr | None:
    """Return an expression of a function that is nested too deeply, or None."""
    waiting: list[tuple[ast.AST, ast.expr | None, int]] = [(function, None, 0)]
    while waiting:
        node, outermost, depth = waiting.pop()
        if isinstance(node, ast.expr):
            outermost, depth = outermost or node, depth + 1
            if depth > _DEEPEST:
                return outermost
        waiting += [(child, outermost, depth) for child in ast.iter_child_nodes(node)]
    return None
