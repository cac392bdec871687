"""Where a mistake stands, and how it is told.

Every mistake of a user ends in one class, :class:`UserError`; its families also derive from
`ValueError` or `TypeError` where callers of the intermediate representation expect those.
A failure of our own is an `assert`, never a class of this file.
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

_CONTEXT_LINES = 2
_INLINE_REPEAT_LIMIT = 50


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source text; lines and columns count from 1, columns in characters.

    `end_line` and `end_column` are -1 where only the beginning is known.
    """

    filename: str
    begin_line: int
    begin_column: int
    end_line: int = -1
    end_column: int = -1

    @classmethod
    def unknown(cls) -> Span:
        """Return the span of a node that was made without source text."""
        return _UNKNOWN

    @property
    def is_known(self) -> bool:
        """Whether the span points into real source text."""
        return self.begin_line > 0

    @property
    def line(self) -> int:
        """First line, counted from 1."""
        return self.begin_line

    @property
    def column(self) -> int:
        """First column, counted from 1."""
        return self.begin_column

    def __str__(self) -> str:
        return f"{self.filename}:{self.begin_line}:{self.begin_column}"


_UNKNOWN = Span("<unknown>", -1, -1)


class UserError(Exception):
    """A mistake of the user's: the one root of everything that is not our own bug.

    Args:
        message: What must be, and what was found.
        span: Where, if there is source text.
        hint: What would be valid.
        note: A further fact, such as the place of the other party.
        source_lines: The text that `span` points into, where no file on disk holds it.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        hint: str | None = None,
        note: str | None = None,
        source_lines: Sequence[str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span if span is not None and span.is_known else None
        self.hint = hint
        self.note = note
        self.source_lines = list(source_lines) if source_lines is not None else None

    def __str__(self) -> str:
        where = f" [{self.span}]" if self.span is not None else ""
        return f"{self.message}{where}"

    def render(self) -> str:
        """Return the message with its source line, a caret, the hint and the note."""
        return render(self)


class ParserError(UserError):
    """A kernel's source text that the language does not accept."""


class ParserSyntaxError(ParserError):
    """Source text that is no statement or expression of the language."""


class ParserTypeError(ParserError):
    """A value of the wrong type or shape in a kernel's source text."""


class UndefinedVariableError(ParserError):
    """A name that nothing defines at the place of its use."""


class SSAViolationError(ParserError):
    """A second assignment where only one is allowed."""


class UnsupportedFeatureError(ParserError):
    """Python that the language leaves out on purpose."""


class InvalidOperationError(ParserError):
    """An operation whose rule refuses its operands; the rule's own error is the `__cause__`."""


class ScopeIsolationError(ParserError):
    """A name used outside the scope that owns it."""


class IRValueError(UserError, ValueError):
    """A value that an op, a pass or the code generator refuses."""


class IRTypeError(UserError, TypeError):
    """A type that an op, a pass or the code generator refuses."""


class VerificationError(UserError):
    """A program that breaks a rule of the intermediate representation."""


class InputError(UserError, ValueError):
    """Launch inputs that do not fit the parameters."""


class ExecutableError(UserError, ValueError):
    """An executable or a program in instruction form that cannot be read."""


class MachineError(UserError, ValueError):
    """A machine description with an unknown key or an impossible value."""


class SimulationFault(UserError):  # noqa: N818 - a fault of the simulated program, as hardware says
    """A fault of a running kernel: out of bounds, deadlock and the like."""


def render(error: UserError) -> str:
    """Return `error` for a terminal: message, place, source with a caret, hint, note."""
    lines = [f"Error: {error.message}"]
    span = error.span
    if span is not None:
        lines.append(f"  --> {span}")
        lines.extend(_excerpt(error, span))
    gutter = " " * 4 if span is not None else "  "
    if error.hint:
        lines.append(f"{gutter}= help: {error.hint}")
    if error.note:
        lines.append(f"{gutter}= note: {error.note}")
    return "\n".join(lines)


def _excerpt(error: UserError, span: Span) -> list[str]:
    source = error.source_lines
    if source is None:
        source = [line.rstrip("\n") for line in linecache.getlines(span.filename)]
    if not 1 <= span.begin_line <= len(source):
        return []
    first = max(1, span.begin_line - _CONTEXT_LINES)
    last = min(len(source), span.begin_line + _CONTEXT_LINES)
    width = len(str(last))
    out = [f"{' ' * width} |"]
    for number in range(first, last + 1):
        text = source[number - 1]
        out.append(f"{number:>{width}} | {text}".rstrip())
        if number == span.begin_line:
            out.append(_caret_line(error.message, text, span, width))
    out.append(f"{' ' * width} |")
    return out


def _caret_line(message: str, text: str, span: Span, width: int) -> str:
    end = span.end_column if span.end_line in (-1, span.begin_line) else len(text) + 1
    length = max(1, min(end, len(text) + 1) - span.begin_column) if span.end_column > 0 else 1
    sentence = message.split(". ")[0]
    repeat = f" {sentence}" if len(sentence) < _INLINE_REPEAT_LIMIT else ""
    return f"{' ' * width} | {' ' * (span.begin_column - 1)}{'^' * length}{repeat}"


def install_hook() -> None:
    """Make an uncaught :class:`UserError` print itself instead of a Python traceback."""
    previous = sys.excepthook

    def hook(
        kind: type[BaseException], value: BaseException, trace: TracebackType | None, /
    ) -> None:
        if isinstance(value, UserError):
            print(value.render(), file=sys.stderr)
        else:
            previous(kind, value, trace)

    sys.excepthook = hook
