"""How much one launch may do before it is taken for a mistake: on the host, on a core, and in golden."""

from __future__ import annotations

from typing import Final

MAX_TASKS: Final = 1 << 20
"""Blocks of all grids of one launch; a kernel that is launched without a grid counts as one."""

MAX_STEPS: Final = 1 << 22
"""Host statements and loop rounds of one launch; a launch beyond this is a mistake."""

MAX_INSTRUCTIONS: Final = 1 << 24
"""Instructions that a kernel may execute in one block, scalar ones included."""


def too_many_steps(entry: str) -> str:
    """Return the message for a launch whose control flow does not end."""
    return f"A launch of {entry!r} must take at most {MAX_STEPS} host steps."


def too_many_tasks(entry: str) -> str:
    """Return the message for a launch of too many blocks."""
    return f"A launch of {entry!r} must have at most {MAX_TASKS} tasks."
