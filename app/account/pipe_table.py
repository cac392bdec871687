"""The table of a report: what the pipes did, in a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .pipe_work import CORE_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .pipe_shares import PipeShare

BAR_CELLS = 10
"""How long the bar of a pipe is that is busy all the time."""


def table_lines(pipes: Sequence[PipeShare], full: str) -> Iterator[str]:
    """Yield the table, for a terminal of 80 columns.

    Where several clusters have a core, shares are means over them, and the least and the largest busy
    share stand in the place of the bar if they differ.

    Args:
        pipes: What the pipes did.
        full: The character that the bars are made of.
    """
    yield f"pipe  {'what it does':<30}{'busy cycles':>12}{'busy':>7}{'waits':>7}{'idle':>7}"
    several, last = len({share.core for share in pipes}) > 1, None
    clusters = max((share.clusters for share in pipes), default=1)
    for share in pipes:
        if (several or clusters > 1) and share.core is not last:
            yield _heading(share)
        last = share.core
        bar = full * round(share.busy * BAR_CELLS)
        if share.least[0] != share.most[0]:
            bar = f"{share.least[0]:.0%}-{share.most[0]:.0%}"
        yield (
            f"{share.name:<5} {share.work:<30}{share.busy_cycles:>12,}{share.busy:>7.1%}"
            f"{share.waiting:>7.1%}{share.idle:>7.1%} {bar}"
        ).rstrip()
    yield "Shares are of the work cycles. Pipes work side by side; a pipe waits for flags,"
    yield "for bandwidth that is shared, for scales or for room in a queue, or it is idle."
    if clusters > 1:
        yield from _extremes(pipes)


def _heading(share: PipeShare) -> str:
    name = f"{share.core.name}, {CORE_NAMES[share.core]}"
    return name if share.clusters == 1 else f"{name} of {share.clusters} clusters, means"


def _extremes(pipes: Sequence[PipeShare]) -> Iterator[str]:
    """Yield which clusters do the most and the least, by the pipe that is busiest."""
    share = max((each for each in pipes if each.clusters > 1), key=lambda each: each.busy)
    if share.least[0] == share.most[0]:
        yield f"All {share.clusters} clusters keep {share.name} as busy."
        return
    yield (
        f"{share.name} is busiest in cluster {share.most[1]}, {share.most[0]:.1%}, and least busy "
        f"in cluster {share.least[1]}, {share.least[0]:.1%}."
    )
