"""What is done while a kernel is parsed: `pl.static_assert` and `pl.static_print`."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from ..errors import ParserSyntaxError, ParserTypeError
from ..printer_text import type_text
from .capture import NOT_CONSTANT

if TYPE_CHECKING:
    from .context import Context
    from .expressions import ExpressionParser


def static_assert(context: Context, node: ast.Call) -> None:
    """Check what `pl.static_assert(condition, "message")` says.

    Raises:
        ParserSyntaxError: When the condition is false.
        ParserTypeError: When it is not known.
    """
    condition = context.capture.fold(node.args[0]) if node.args else NOT_CONSTANT
    if condition is NOT_CONSTANT:
        message = "pl.static_assert must have a condition that is known when the kernel is parsed"
        raise context.error(ParserTypeError, message, node)
    if not condition:
        text = context.capture.fold(node.args[1]) if len(node.args) > 1 else None
        reason = text if isinstance(text, str) else ast.unparse(node.args[0])
        message = f"Static assertion failed: {reason}"
        names = {n.id: n for n in ast.walk(node.args[0]) if isinstance(n, ast.Name)}
        values = {name: context.capture.fold(n) for name, n in names.items()}
        known = [f"{name} is {v}" for name, v in values.items() if isinstance(v, int | float)]
        hint = ", ".join(known) or None
        raise context.error(ParserSyntaxError, message, node.args[0], hint=hint)


def static_print(context: Context, expressions: ExpressionParser, node: ast.Call) -> None:
    """Tell on standard error what is known of the arguments, and where."""
    parts: list[str] = []
    for arg in node.args:
        value = context.capture.fold(arg)
        if value is NOT_CONSTANT:
            parts.append(f"{ast.unparse(arg)}: {type_text(expressions.parse(arg).type)}")
        else:
            parts.append(str(value))
    print(f"{context.span(node)}: {' '.join(parts)}", file=sys.stderr)
