"""What a rule finds, and the report that is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ..errors import Span

if TYPE_CHECKING:
    from collections.abc import Sequence


class Severity(Enum):
    """How bad a finding is."""

    ERROR = "Error"
    WARNING = "Warning"
    PERF_HINT = "PerfHint"


@dataclass(frozen=True)
class Diagnostic:
    """A finding: what rule, what is wrong, where.

    Attributes:
        severity: How bad it is.
        rule_name: The rule that found it.
        error_code: The number of the mistake within the verifier.
        message: What must be, and what was found.
        span: Where.
        hint_code: The number of a hint, 0 for none.
    """

    severity: Severity
    rule_name: str
    error_code: int
    message: str
    span: Span
    hint_code: int = 0

    def __str__(self) -> str:
        where = f" at {self.span}" if self.span.is_known else ""
        return f"[{self.severity.value.lower()}] [{self.rule_name}] {self.message}{where}"


class Findings:
    """Collects what one rule finds."""

    def __init__(self, rule_name: str) -> None:
        self._rule_name = rule_name
        self.diagnostics: list[Diagnostic] = []

    def error(self, code: int, message: str, span: Span | None = None) -> None:
        """Record an error."""
        where = span or Span.unknown()
        self.diagnostics.append(Diagnostic(Severity.ERROR, self._rule_name, code, message, where))


def generate_report(
    diagnostics: Sequence[Diagnostic], title: str = "IR Verification Report"
) -> str:
    """Return the findings as a text for people."""
    errors = sum(d.severity is Severity.ERROR for d in diagnostics)
    warnings = sum(d.severity is Severity.WARNING for d in diagnostics)
    lines = [title, "=" * len(title)]
    lines.append(f"Total diagnostics: {len(diagnostics)} ({errors} errors, {warnings} warnings)")
    for number, found in enumerate(diagnostics, start=1):
        lines += [
            "",
            f"[{number}] {found.severity.name.replace('_', ' ')} - {found.rule_name}",
            f"    Message: {found.message}",
            f"    Location: {found.span}",
            f"    Error Code: {found.error_code}",
        ]
    status = f"FAILED ({errors} error(s) found)" if errors else "PASSED"
    return "\n".join([*lines, "", f"Status: {status}"])
