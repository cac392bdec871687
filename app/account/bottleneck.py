"""One sentence on what bounds a run: what most of its critical path is, and how busy that is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...sim.account.records import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...codegen.isa.vocabulary import Pipe
    from ...sim.account.critical import PathShare
    from .pipe_shares import PipeShare

FULL = 0.75
"""A pipe that is busy for so much of a run has no time left that overlap could win."""
MOST = 0.4
"""What has so much of the critical path is named alone."""

MUCH = 0.6
"""A second pipe that is busy for so much of a run leaves little to win at the first."""

_NAMED = 3


def bottleneck(path: Iterable[PathShare], pipes: Sequence[PipeShare], work_cycles: int) -> str:
    """Return the sentence.

    Args:
        path: The critical path; the launch does not count.
        pipes: What the pipes did.
        work_cycles: The cycles after the launch, at least one.
    """
    sums = _sums(path)
    if not sums:
        return "Nothing bounds this run, which does no work."
    (cause, pipe), cycles = sums.most_common(1)[0]
    part = cycles / work_cycles
    busy = max((each.busy for each in pipes if each.pipe is pipe), default=0.0)
    is_full = cause is Cause.BUSY and busy >= FULL
    if part < MOST and not is_full:
        return _mixed(sums, pipes, work_cycles)
    name = "" if pipe is None else pipe.name
    match cause:
        case Cause.BUSY if is_full:
            work = next((each.work for each in pipes if each.pipe is pipe), "")
            return (
                f"{name} bounds this run ({work}): it is busy for {busy:.0%} of the work cycles and "
                f"makes up {part:.0%} of the critical path.{_next(pipe, pipes)}"
            )
        case Cause.MEMORY:
            return (
                f"Bandwidth that is shared bounds this run: {part:.0%} of the critical path are "
                f"transfers of {name} that wait for the L2, for device memory or for their port, "
                "which others use too."
            )
        case Cause.LATENCY:
            return (
                f"The latency of global memory bounds this run: {part:.0%} of the critical path "
                "waits for it; transfers that start earlier would hide it."
            )
        case Cause.SCALES:
            return (
                f"The scale buffers bound this run: {part:.0%} of the critical path the cube waits "
                "for scales."
            )
        case Cause.FLAG:
            return (
                f"Flags bound this run: {part:.0%} of the critical path they are on their way to "
                f"{name}; larger steps need fewer of them."
            )
        case Cause.ISSUE:
            return (
                f"The scalar unit bounds this run: {part:.0%} of the critical path it issues "
                "instructions; larger tiles need fewer of them."
            )
        case Cause.TASK:
            return (
                f"The tasks bound this run: {part:.0%} of the critical path lies between the end of "
                "one and the start of the next."
            )
        case _:
            return _mixed(sums, pipes, work_cycles)


def largest_part(path: Iterable[PathShare], work_cycles: int) -> str | None:
    """Return what most of a critical path is, in a few words; None for a run that does no work.

    Args:
        path: The critical path; the launch does not count.
        work_cycles: The cycles after the launch, at least one.
    """
    sums = _sums(path)
    if not sums:
        return None
    (cause, pipe), cycles = sums.most_common(1)[0]
    return f"{_words(cause, pipe)} {cycles / work_cycles:.0%}"


def _sums(path: Iterable[PathShare]) -> Counter[tuple[Cause, Pipe | None]]:
    """Return the cycles of a critical path after the launch by cause and pipe."""
    sums: Counter[tuple[Cause, Pipe | None]] = Counter()
    for share in path:
        if share.cause is not Cause.LAUNCH:
            sums[share.cause, share.pipe] += share.cycles
    return sums


def _next(pipe: Pipe | None, pipes: Sequence[PipeShare]) -> str:
    """Return what a run would still take however fast its busiest pipe were, if that is much."""
    others = [each for each in pipes if each.pipe is not pipe]
    second = max(others, key=lambda each: each.busy, default=None)
    if second is None or second.busy < MUCH:
        return ""
    return f" However fast it were, {second.name} alone would take {second.busy:.0%} of the cycles."


def _mixed(
    sums: Counter[tuple[Cause, Pipe | None]], pipes: Sequence[PipeShare], work_cycles: int
) -> str:
    parts = [
        f"{_words(cause, pipe)} {cycles / work_cycles:.0%}"
        for (cause, pipe), cycles in sums.most_common(_NAMED)
    ]
    busiest = max(pipes, key=lambda each: each.busy, default=None)
    how = "" if busiest is None else f" ({busiest.name} is the busiest, {busiest.busy:.0%})"
    return (
        f"No pipe alone bounds this run{how}: on the critical path are {', '.join(parts)}, one "
        "after the other; what lets them overlap shortens it."
    )


def _words(cause: Cause, pipe: Pipe | None) -> str:
    name = "" if pipe is None else pipe.name
    match cause:
        case Cause.BUSY:
            return f"{name} at work"
        case Cause.LATENCY:
            return "latency of global memory"
        case Cause.MEMORY:
            return f"{name} short of bandwidth"
        case Cause.SCALES:
            return "the cube short of scales"
        case Cause.FLAG:
            return f"flags on their way to {name}"
        case Cause.ISSUE:
            return "the scalar unit issuing"
        case Cause.TASK:
            return "time between tasks"
        case _:
            return f"{name} at a {cause.value}"
