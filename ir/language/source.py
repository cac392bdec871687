"""The text of a kernel: its file, its syntax tree, and where a node of the tree stands.

A kernel is found in the tree of its whole file, so lines and columns are those that an editor shows,
however deep the kernel is nested.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import linecache
import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from ..errors import ParserError, ParserSyntaxError, Span, UserError

if TYPE_CHECKING:
    from types import CodeType, FrameType, FunctionType, TracebackType

E = TypeVar("E", bound=UserError)


@dataclass(frozen=True)
class Source:
    """A file: its name as Python knows it, its lines, and its syntax tree."""

    filename: str
    lines: tuple[str, ...]
    tree: ast.Module

    def span(self, node: ast.AST) -> Span:
        """Return where `node` stands; the end is exclusive."""
        line: int = getattr(node, "lineno", -1)
        if line < 1:
            return Span.unknown()
        end_line: int = getattr(node, "end_lineno", None) or line
        begin: int = getattr(node, "col_offset", 0)
        end: int = getattr(node, "end_col_offset", None) or begin + 1
        return Span(
            self.filename,
            line,
            _column(self.lines[line - 1], begin),
            end_line,
            _column(self.lines[end_line - 1], end),
        )

    def head_span(self, node: ast.FunctionDef | ast.ClassDef) -> Span:
        """Return where the first line of a definition stands, decorators left out."""
        begin = node.col_offset + 1
        word = "class" if isinstance(node, ast.ClassDef) else "def"
        end = begin + len(f"{word} {node.name}")
        return Span(self.filename, node.lineno, begin, node.lineno, end)

    def error(
        self,
        kind: type[E],
        message: str,
        where: ast.AST | Span | None,
        *,
        hint: str | None = None,
        note: str | None = None,
    ) -> E:
        """Return an error of class `kind` that shows the line of `where`."""
        span = where if isinstance(where, Span) or where is None else self.span(where)
        return kind(message, span, hint=hint, note=note, source_lines=self.lines)


def _column(line: str, offset: int) -> int:
    """Return the column, counted from 1 in characters, of a byte offset."""
    return len(line.encode()[:offset].decode(errors="replace")) + 1


@lru_cache(maxsize=16)
def _parse(filename: str, text: str) -> Source:
    lines = tuple(
        text.removesuffix("\n").split("\n")
    )  # as Python counts them: a form feed ends no line
    try:
        return Source(filename, lines, ast.parse(text, filename))
    except SyntaxError as error:
        raise syntax_error(error, filename, lines) from error
    except ValueError as error:  # a null byte, or half of a surrogate pair
        message = f"{filename} must be text that Python can read: {error}"
        raise ParserSyntaxError(message) from error
    except (RecursionError, MemoryError) as error:
        raise nested_too_deeply(filename) from error


def nested_too_deeply(filename: str) -> ParserSyntaxError:
    """Return the error for text that is too much for Python's own parser."""
    message = f"{filename} must be readable for Python, but an expression is nested too deeply"
    return ParserSyntaxError(message, hint="give its parts names of their own")


def syntax_error(error: SyntaxError, filename: str, lines: tuple[str, ...]) -> ParserSyntaxError:
    """Return Python's own syntax error as one of the language."""
    line, column = error.lineno or 1, error.offset or 1
    last = (error.end_offset or column + 1) if error.end_lineno in (None, line) else column + 1
    span = Span(filename, line, max(1, column), line, max(last, column + 1))
    message = f"This is not Python: {error.msg}"
    return ParserSyntaxError(message, span, source_lines=lines)


def open_source(filename: str, module_globals: dict[str, object] | None = None) -> Source:
    """Return the file that Python calls `filename`.

    Raises:
        ParserSyntaxError: If its text cannot be had, or is no Python.
    """
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, module_globals)
    if not lines:
        message = f"The source text of a kernel must be readable, but {filename!r} is not"
        raise ParserSyntaxError(message, hint="put the kernel into a file, or use pl.parse(text)")
    return _parse(filename, "".join(lines))


def register_text(text: str) -> str:
    """Make `text` readable under a name of its own, and return that name."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    name = f"<text {digest[:8]}>"
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = [f"{line}\n" for line in plain.removesuffix("\n").split("\n")]
    linecache.cache[name] = (len(text), None, lines, name)
    return name


def find_function(function: FunctionType) -> tuple[Source, ast.FunctionDef]:
    """Return the source of a function and its node there.

    Raises:
        ParserError: If the function was not written with `def` in a readable file.
    """
    code = function.__code__
    source = open_source(code.co_filename, function.__globals__)
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == code.co_name
            and _first_line(node) <= code.co_firstlineno <= node.lineno
        ):
            return source, node
    message = f"A kernel must be written with def, which {code.co_name!r} is not"
    raise ParserError(message, Span(code.co_filename, code.co_firstlineno, 1))


def find_class(name: str, function: FunctionType) -> tuple[Source, ast.ClassDef]:
    """Return the source of the class `name` that holds `function`, and its node there."""
    source, inner = find_function(function)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef) and node.name == name and inner in node.body:
            return source, node
    message = f"The functions of a program must be written in its class, {name!r}"
    raise ParserError(message, source.head_span(inner), source_lines=source.lines)


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def calling_frame(depth: int = 1) -> FrameType:
    """Return a frame of the running code; 1 is the caller of the function that asks."""
    # There is no public way to the names and the line of a caller.
    return sys._getframe(depth + 1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def caller_span(depth: int = 1) -> Span:
    """Return where the running code calls; 1 is the caller of the function that asks."""
    frame = calling_frame(depth + 1)
    return _code_span(frame.f_code, frame.f_lasti, frame.f_lineno)


def _code_span(code: CodeType, last: int, line: int) -> Span:
    filename = code.co_filename
    found = next(itertools.islice(code.co_positions(), last // 2, None), None)
    if found is None or None in found or not (text := linecache.getline(filename, found[0] or 1)):
        return Span(filename, line, 1)
    begin_line, end_line, begin, end = (int(part or 0) for part in found)
    end_text = linecache.getline(filename, end_line) or text
    return Span(filename, begin_line, _column(text, begin), end_line, _column(end_text, end))


def traceback_span(trace: TracebackType | None, filename: str) -> Span | None:
    """Return the innermost place of a traceback that lies in the file called `filename`."""
    found: Span | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == filename:
            found = _code_span(code, trace.tb_lasti, trace.tb_lineno)
        trace = trace.tb_next
    return found


def raised_in_package(trace: TracebackType | None) -> bool:
    """Return whether a traceback ends in code of this package, which is then at fault itself."""
    name = ""
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__"))
        trace = trace.tb_next
    return name.partition(".")[0] == __name__.partition(".")[0]
