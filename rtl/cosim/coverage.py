"""Counting what a bench has exercised, against a list of all that it should."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping
    from pathlib import Path

__all__ = ["Coverage"]


class Coverage:
    """How often each of the classes that were named beforehand came up.

    Args:
        groups: The classes of each group. To count any other is an error: it means that the list
            is wrong, or the unit.
    """

    def __init__(self, groups: Mapping[str, Iterable[Hashable]]) -> None:
        self._counts: dict[str, Counter[str]] = {
            group: Counter(dict.fromkeys(map(str, classes), 0)) for group, classes in groups.items()
        }

    def hit(self, group: str, which: Hashable) -> None:
        """Count a class of a group once more."""
        counts, name = self._counts[group], str(which)
        assert name in counts, f"{group} must be one of the classes that were named, not {name}"
        counts[name] += 1

    @property
    def missing(self) -> list[str]:
        """Every class that never came up, with its group."""
        return [
            f"{group}: {name}"
            for group, counts in self._counts.items()
            for name, count in counts.items()
            if not count
        ]

    @property
    def percent(self) -> float:
        """The share of classes that came up."""
        total = sum(map(len, self._counts.values()))
        return 100.0 * (total - len(self.missing)) / total if total else 100.0

    def save(self, path: Path) -> None:
        """Write all counts to a file, from which `load` makes them again."""
        path.write_text(json.dumps(self._counts), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Return the counts that `save` wrote."""
        counts: dict[str, dict[str, int]] = json.loads(path.read_text(encoding="utf-8"))
        coverage = cls(counts)
        for group, classes in counts.items():
            coverage._counts[group].update(classes)
        return coverage
