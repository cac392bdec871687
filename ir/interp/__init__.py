"""Running programs by the meanings of their operations, in plain numpy: the golden answer."""

from __future__ import annotations

from .launch import interpret_program, select_entry

__all__ = ["interpret_program", "select_entry"]
