"""A hint for a word that is none of the known ones."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST = 3
_LEAST_PART = 3
"""A part of a name is at least so long; shorter ones are in too many."""


def near(
    word: object, known: Iterable[str], *, listed_in: str | None = None, all_of_them: bool = False
) -> str:
    """Return a hint that lists what of `known` resembles `word`, or else all of it.

    Args:
        word: What was given.
        known: What is valid.
        all_of_them: Whether all of it is listed in any case, the nearest first.
        listed_in: The page that lists all of a `known` that is too long to be told; the hint then says
            that it names the nearest only.
    """
    words = list(known)
    close = _nearest(word, words) if isinstance(word, str) else []
    if listed_in is not None:
        are = "are" if len(close) > 1 else "is"
        nearest = f"the nearest {are} {', '.join(close)}" if close else "no name is near"
        return f"{nearest}; {listed_in} lists all"
    if close and all_of_them and len(words) > 1:
        ordered = [*close, *(each for each in words if each not in close)]
        return f"did you mean {close[0]}? valid here: {', '.join(ordered)}"
    close = close or words
    return f"valid here: {', '.join(close)}"


def _nearest(word: str, words: list[str]) -> list[str]:
    """Return a few words that resemble one, the nearest first: those that begin with it come before."""
    begun = [each for each in words if each.startswith(word)]
    held = [each for each in words if word in each]
    if len(word) < _LEAST_PART:
        begun = held = []
    alike = get_close_matches(word, words, n=_MOST)
    return list(dict.fromkeys([*sorted(begun, key=len), *alike, *held]))[:_MOST]
