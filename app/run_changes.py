"""What a run changed of its kernel file and of its machine, as its options say it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_LABEL = "with     "
_WIDTH = 79
_GLUE = "\N{NO-BREAK SPACE}"
"""Stands between an option and its value, so that no line ends there."""


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What was changed.

    Attributes:
        params: Sizes of the kernel file that were given, by parameter.
        settings: Fields of the machine.
        warm: Whether inputs lay in the second-level cache.
    """

    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    warm: bool = False

    @staticmethod
    def of_bundle(options: Mapping[str, Any]) -> Changes:
        """Return what a bundle says of itself.

        Bundles of older versions do not say which of their parameters were given; then all of them count.
        """
        return Changes(
            params=options.get("given", options.get("params")) or {},
            settings=options.get("settings") or {},
            warm=bool(options.get("warm", False)),
        )

    def lines(self) -> list[str]:
        """Return the changes as options that make them again, wrapped for a terminal; none for none."""
        options = [f"--param {name}={value}" for name, value in self.params.items()]
        options += [f"--set {name}={value}" for name, value in self.settings.items()]
        options += ["--warm"] * self.warm
        glued = " ".join(option.replace(" ", _GLUE) for option in options)
        wrapped = textwrap.wrap(
            glued,
            _WIDTH,
            initial_indent=_LABEL,
            subsequent_indent=" " * len(_LABEL),
            break_long_words=False,
            break_on_hyphens=False,
        )
        return [line.replace(_GLUE, " ") for line in wrapped]

    def as_json(self) -> dict[str, Any]:
        """Return the changes as plain values."""
        return {"params": dict(self.params), "settings": dict(self.settings), "warm": self.warm}
