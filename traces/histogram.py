"""How far apart elements are, counted by powers of ten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .examine import Pair

_EDGES = (1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
_BAR_CELLS = 20


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many elements are how far apart.

    Attributes:
        bins: (least, most, elements) in units in the last place, ascending and none empty; `most` is
            None in the last one, which has no end.
        special: How many stand beside a NaN or an infinity, where no distance can be told.
    """

    bins: tuple[tuple[int, int | None, int], ...]
    special: int

    def lines(self) -> list[str]:
        """Return the histogram as text, a line a bin."""
        rows = [(_label(least, most), count) for least, most, count in self.bins]
        if self.special:
            rows.append(("beside NaN or infinity", self.special))
        whole = sum(count for _, count in rows)
        wide = max((len(label) for label, _ in rows), default=0)
        digits = max((len(str(count)) for _, count in rows), default=0)
        return [
            f"{label:<{wide}}  {count:>{digits}}  {'#' * max(1, round(_BAR_CELLS * count / whole))}"
            for label, count in rows
        ]


def histogram(pair: Pair) -> Histogram:
    """Count the elements of an output that differ by how far apart they are."""
    finite = pair.ulps[pair.finite]
    bins: list[tuple[int, int | None, int]] = []
    for at, least in enumerate(_EDGES):
        most = _EDGES[at + 1] - 1 if at + 1 < len(_EDGES) else None
        inside = finite >= least
        if most is not None:
            inside &= finite <= most
        if count := int(np.count_nonzero(inside)):
            bins.append((least, most, count))
    return Histogram(tuple(bins), pair.count - finite.size)


def _label(least: int, most: int | None) -> str:
    if most is None:
        return f"{least:,} ulps or more"
    if least == most:
        return f"{least:,} ulp" if least == 1 else f"{least:,} ulps"
    return f"{least:,} to {most:,} ulps"
