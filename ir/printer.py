"""Programs as the text of the language: what is printed parses back to an equal program.

Every target carries its type, so that a program can be read back after any pass, also where an op's
own rule would no longer give the type that a pass has decided on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .core import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForKind,
    ForStmt,
    Function,
    FunctionType,
    IfStmt,
    InCoreScopeStmt,
    Level,
    ParamDirection,
    Program,
    ReturnStmt,
    ScopeStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    flatten_to_stmts,
)
from .dtypes import Index
from .dynamic_dims import dynamic_dims
from .expr import Call, ConstInt, Expr, GlobalVar, Submit, Type, UnknownType, Var
from .node_check import check_nodes
from .printer_text import Names, Writer
from .visitor import IRVisitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from .expr import IterArg

_INDENT = "    "
_LOOP_WORDS = {
    ForKind.Sequential: "range",
    ForKind.Parallel: "parallel",
    ForKind.Unroll: "unroll",
    ForKind.Pipeline: "pipeline",
}
_PIPELINE_STAGES = "pipeline_stages"


def python_print(
    node: Program | Function | Stmt | Expr | Type, prefix: str = "pl", concise: bool = False
) -> str:
    """Return `node` as text of the language.

    Args:
        node: A program, a function, a statement, an expression or a type.
        prefix: The name of the language in the text.
        concise: Whether to leave out the types of assigned names; a program may then not parse
            back, since some types follow from passes only.

    Raises:
        IRTypeError: If a dtype has no name in the language.
        IRValueError: For a program that is not made of nodes.
    """
    match node:
        case Program():
            check_nodes(node, launches=False)
            return _program_text(node, prefix, concise=concise)
        case Function():
            dims = _dims(Program([node], node.name, node.span), prefix)
            printer = _FunctionPrinter(prefix, concise=concise, reserved=dims)
            return "\n".join(
                [_import_line(prefix), *dims.values(), "", *printer.function(node), ""]
            )
        case Stmt():
            printer = _FunctionPrinter(prefix, concise=concise, mark_free=False)
            return "\n".join(printer.block(node, ()))
        case Expr():
            return Writer(prefix, Names((prefix,), mark_free=False)).expr(node)
        case Type():
            return Writer(prefix, Names((prefix,), mark_free=False)).type(node)


def _import_line(prefix: str) -> str:
    alias = "language" if prefix == "language" else f"language as {prefix}"
    return f"from scalebox.ir import {alias}"


def _program_text(program: Program, prefix: str, *, concise: bool) -> str:
    name = program.name if program.name.isidentifier() else "Program"
    dims = _dims(program, prefix)
    lines = [f"# scalebox.program: {name}", _import_line(prefix), "", *dims.values()]
    lines += [""] * (2 if dims else 1)
    lines += [f"@{prefix}.program", f"class {name}:"]
    for position, function in enumerate(callees_first(program)):
        printer = _FunctionPrinter(prefix, concise=concise, reserved=dims)
        body = printer.function(function)
        lines += [""] * (position > 0) + _indented(body)
    return "\n".join(lines) + "\n"


def _dims(program: Program, prefix: str) -> dict[str, str]:
    """Return the line that makes each dynamic dimension of a program, by its name."""
    names = [var.name_hint for var in dynamic_dims(program)]
    return {name: f'{name} = {prefix}.dynamic("{name}")' for name in names}


def callees_first(program: Program) -> list[Function]:
    """Return the functions of a program, each after those that it calls, else by name."""
    done: dict[str, Function] = {}
    open_names: set[str] = set()

    def add(function: Function) -> None:
        if function.name in done or function.name in open_names:
            return
        open_names.add(function.name)
        for name in sorted(_callees(function)):
            callee = program.get_function(name)
            if callee is not None:
                add(callee)
        done[function.name] = function

    for function in program.functions.values():
        add(function)
    return list(done.values())


def _callees(function: Function) -> set[str]:
    found: set[str] = set()

    class Calls(IRVisitor):
        def visit_call(self, op: Call) -> None:
            if isinstance(op.op, GlobalVar):
                found.add(op.op.name)
            self.visit_children(op)

        def visit_submit(self, op: Submit) -> None:
            found.add(op.op.name)
            self.visit_children(op)

    Calls().visit_function(function)
    return found


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"{_INDENT}{line}" if line else line for line in lines]


class _FunctionPrinter:
    """Prints one function, or statements of one."""

    def __init__(
        self, prefix: str, *, concise: bool, mark_free: bool = True, reserved: Iterable[str] = ()
    ) -> None:
        self._prefix = prefix
        self._concise = concise
        self._names = Names((prefix, "self", "float", *reserved), mark_free=mark_free)
        self._write = Writer(prefix, self._names)

    # ------------------------------------------------------------------------ functions

    def function(self, function: Function) -> list[str]:
        """Return the lines of a function, decorator first."""
        header = [self._parameter(v, d) for v, d in self._parameters(function)]
        if function.level is None and function.role is None:
            header.insert(0, "self")
        returns = self._returns(function.return_types)
        lines = [
            self._decorator(function),
            f"def {function.name}({', '.join(header)}){returns}:",
        ]
        if function.attrs:
            attrs = self._write.value(function.attrs)
            lines.append(f"{_INDENT}{self._prefix}.func_attr({attrs})")
        body = self.block(function.body, ())
        if body == ["pass"] and function.attrs:
            body = []
        return lines + _indented(body)

    def _parameters(self, function: Function) -> list[tuple[Var, ParamDirection]]:
        return list(zip(function.params, function.param_directions, strict=True))

    def _decorator(self, function: Function) -> str:
        parts: list[str] = []
        if function.func_type is not FunctionType.Opaque:
            parts.append(f"type={self._write.value(function.func_type)}")
        for name, value in (("level", function.level), ("role", function.role)):
            if value is not None:
                parts.append(f"{name}={self._write.value(value)}")
        arguments = f"({', '.join(parts)})" if parts else ""
        return f"@{self._prefix}.function{arguments}"

    def _parameter(self, var: Var, direction: ParamDirection) -> str:
        annotation = self._write.type(var.type)
        if direction is not ParamDirection.In:
            annotation = f"{self._prefix}.{direction.value}[{annotation}]"
        return f"{self._names.define(var)}: {annotation}"

    def _returns(self, types: Sequence[Type]) -> str:
        match len(types):
            case 0:
                return ""
            case 1:
                return f" -> {self._write.type(types[0])}"
            case _:
                inner = ", ".join(self._write.type(t) for t in types)
                return f" -> {self._prefix}.Tuple[{inner}]"

    # ------------------------------------------------------------------------ statements

    def block(self, body: Stmt | None, results: Sequence[Var]) -> list[str]:
        """Return the lines of a body; `results` name what its last yield hands on."""
        stmts = flatten_to_stmts(body)
        lines: list[str] = []
        for position, stmt in enumerate(stmts):
            if isinstance(stmt, YieldStmt):
                is_last = position == len(stmts) - 1
                lines += self._yield(stmt, results if is_last else ())
            else:
                lines += self._statement(stmt)
        return lines or ["pass"]

    def _statement(self, stmt: Stmt) -> list[str]:
        match stmt:
            case AssignStmt(var, value):
                text = self._write.expr(value)
                return [f"{self._target(var)} = {text}"]
            case EvalStmt(expr):
                return [self._write.expr(expr)]
            case ReturnStmt(values):
                return [f"return {', '.join(self._write.expr(v) for v in values)}".rstrip()]
            case ForStmt():
                return self._for(stmt)
            case WhileStmt():
                return self._while(stmt)
            case IfStmt():
                return self._if(stmt, "if")
            case ScopeStmt():
                return self._scope(stmt)
            case BreakStmt():
                return ["break"]
            case ContinueStmt():
                return ["continue"]
            case _:
                message = f"the printer does not know {type(stmt).__name__}"
                raise AssertionError(message)

    def _target(self, var: Var) -> str:
        name = self._names.define(var)
        if self._concise or isinstance(var.type, UnknownType):
            return name
        return f"{name}: {self._write.type(var.type)}"

    def _yield(self, stmt: YieldStmt, results: Sequence[Var]) -> list[str]:
        call = f"{self._prefix}.yield_({', '.join(self._write.expr(v) for v in stmt.value)})"
        if not results or len(results) != len(stmt.value):
            return [call]
        if len(results) == 1:
            return [f"{self._target(results[0])} = {call}"]
        declared = self._declarations(results, [v.type for v in stmt.value])
        return [*declared, f"{', '.join(self._names.define(v) for v in results)} = {call}"]

    def _declarations(self, variables: Sequence[Var], implied: Sequence[Type]) -> list[str]:
        """Return a line for each variable whose type is not the one that its value implies."""
        if self._concise:
            return []
        pairs = zip(variables, implied, strict=True)
        return [self._target(var) for var, type_ in pairs if var.type != type_]

    def _for(self, stmt: ForStmt) -> list[str]:
        keywords: list[str] = []
        attrs = dict(stmt.attrs)
        if stmt.kind is ForKind.Pipeline and _PIPELINE_STAGES in attrs:
            keywords.append(f"stage={self._write.value(attrs.pop(_PIPELINE_STAGES))}")
        bounds = self._bounds(stmt)
        inits = self._inits(stmt.iter_args)
        keywords += [inits] if inits else []
        if attrs:
            keywords.append(f"attrs={self._write.value(attrs)}")
        loop_var = self._names.define(stmt.loop_var)
        target = f"{loop_var}, {self._carried(stmt.iter_args)}" if inits else loop_var
        word = f"{self._prefix}.{_LOOP_WORDS[stmt.kind]}"
        return [
            f"for {target} in {word}({', '.join([*bounds, *keywords])}):",
            *self._loop_body(stmt, list),
        ]

    def _bounds(self, stmt: ForStmt) -> list[str]:
        parts = [stmt.start, stmt.stop, stmt.step]
        if _is_index(stmt.step, 1):
            parts = parts[:2]
            if _is_index(stmt.start, 0):
                parts = parts[1:]
        return [self._write.expr(part) for part in parts]

    def _inits(self, iter_args: Sequence[IterArg]) -> str:
        if not iter_args:
            return ""
        values = ", ".join(self._write.expr(arg.init_value) for arg in iter_args)
        return f"init_values=({values}{',' if len(iter_args) == 1 else ''})"

    def _carried(self, iter_args: Sequence[IterArg]) -> str:
        names = ", ".join(self._names.define(arg) for arg in iter_args)
        return f"({names}{',' if len(iter_args) == 1 else ''})"

    def _loop_body(self, stmt: ForStmt | WhileStmt, first: Callable[[], list[str]]) -> list[str]:
        carried = self._declarations(stmt.iter_args, [a.init_value.type for a in stmt.iter_args])
        head = [*carried, *first()]
        body = self.block(stmt.body, stmt.return_vars)
        return _indented([*head, *([] if head and body == ["pass"] else body)])

    def _scope(self, stmt: ScopeStmt) -> list[str]:
        parts = [f"level={self._write.value(Level.CORE_GROUP)}"]
        body = stmt.body
        if isinstance(stmt, SpmdScopeStmt):
            parts = [self._write.expr(stmt.core_num)]
            if isinstance(body, InCoreScopeStmt):
                body = body.body  # the text tells the two kinds of bodies apart by themselves
            if stmt.sync_start:
                parts.append("sync_start=True")
        if stmt.name_hint:
            parts.append(f"name_hint={self._write.value(stmt.name_hint)}")
        for name, values in (("deps", stmt.deps), ("dumps", stmt.dumps)):
            if values:
                parts.append(f"{name}={self._write.value(list(values))}")
        if stmt.allow_early_resolve:
            parts.append("allow_early_resolve=True")
        word = "spmd" if isinstance(stmt, SpmdScopeStmt) else "at"
        lines = _indented(self.block(body, ()))
        end = f" as {self._names.define(stmt.task_id)}" if stmt.task_id is not None else ""
        return [f"with {self._prefix}.{word}({', '.join(parts)}){end}:", *lines]

    def _while(self, stmt: WhileStmt) -> list[str]:
        if not stmt.iter_args:
            head = f"while {self._write.expr(stmt.condition)}:"
            return [head, *_indented(self.block(stmt.body, stmt.return_vars))]
        inits = self._inits(stmt.iter_args)
        target = self._carried(stmt.iter_args)

        def condition() -> list[str]:
            return [f"{self._prefix}.cond({self._write.expr(stmt.condition)})"]

        return [
            f"for {target} in {self._prefix}.while_({inits}):",
            *self._loop_body(stmt, condition),
        ]

    def _if(self, stmt: IfStmt, word: str) -> list[str]:
        results = stmt.return_vars
        lines = [f"{word} {self._write.expr(stmt.condition)}:"]
        lines += _indented(self.block(stmt.then_body, results))
        match stmt.else_body:
            case None:
                return lines
            case IfStmt() as inner if not results:
                return lines + self._if(inner, "elif")
            case body:
                return [*lines, "else:", *_indented(self.block(body, results))]


def _is_index(expr: Expr, value: int) -> bool:
    return isinstance(expr, ConstInt) and expr.dtype is Index and expr.value == value
