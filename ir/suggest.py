"""A hint for a word that is none of the known ones."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def near(word: object, known: Iterable[str]) -> str:
    """Return a hint that lists what of `known` resembles `word`, or else all of it."""
    words = list(known)
    close = get_close_matches(word, words, n=3) if isinstance(word, str) else []
    close = close or words
    return f"valid here: {', '.join(close)}"
