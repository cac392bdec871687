"""A run that takes more cycles than it may: where it stood when they were used up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..ir.errors import SimulationFault
from .faults import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pipes.timing import DeviceTiming, Program, Timing

_HINT = "a larger max_cycles (--max-cycles), or a kernel that does less"


def launch_over_budget(launch_cycles: int, limit: int) -> SimulationFault:
    """Return the fault for a budget that is used up before the first instruction."""
    message = f"The run must end within {limit} cycles, but the launch alone takes {launch_cycles} of them."
    return SimulationFault(message, hint=_HINT)


def running_at(timed: DeviceTiming, cycle: int) -> int:
    """Return the task that began first of those that have not ended at a cycle."""
    late = [number for number, task in enumerate(timed.tasks) if task.ended > cycle]
    return min(late, key=lambda number: timed.tasks[number].began)


def over_budget(
    programs: Sequence[Program],
    timed: Timing,
    *,
    launch_cycles: int,
    limit: int,
    cluster: int | None = None,
) -> SimulationFault:
    """Return the fault for a run that goes on when its cycles are used up.

    It names the instruction that had begun last by then, of those that were not done.

    Args:
        programs: What the cores ran of the task that goes on.
        timed: When they did.
        launch_cycles: The cycles of the run before the first instruction.
        limit: The cycles that the run may take.
        cluster: Where that is, if the launch has work for several clusters.
    """
    began = f"which began in cycle {launch_cycles + timed.began}"
    standing = _standing_at(timed, len(programs), limit - launch_cycles)
    if standing is None:
        kernel = programs[0].decoded.kernel
        message = (
            f"The run must end within {limit} cycles, not still be at the scalar instructions of "
            f"kernel {kernel.name!r} then, which has no others."
        )
        return SimulationFault(
            message, kernel.span(0), hint=_HINT, note=f"in kernel {kernel.name!r}, {began}"
        )
    core, record = standing
    decoded, stream = programs[core].decoded, programs[core].stream
    index = int(stream.static[record])
    where = programs[core].core.name + ("" if cluster is None else f" of cluster {cluster}")
    message = (
        f"The run must end within {limit} cycles, not still be at "
        f"{describe(decoded.kernel, index)} on {where} then."
    )
    note = f"in kernel {decoded.kernel.name!r}, {began}"
    return SimulationFault(message, decoded.kernel.span(index), hint=_HINT, note=note)


def _standing_at(timed: Timing, cores: int, cycle: int) -> tuple[int, int] | None:
    """Return core and record of what had begun last at a cycle; what is not done yet goes first.

    None stands for no record at all: there are scalar instructions only.
    """
    found: list[tuple[bool, int, int, int]] = []
    for core in range(cores):
        times = timed.times(core)
        begun = np.flatnonzero(times.start <= cycle)
        if len(begun):
            goes_on, start = times.done[begun] > cycle, times.start[begun]
            last = np.lexsort((begun, start, goes_on))[-1]
            found.append((bool(goes_on[last]), int(start[last]), -core, int(begun[last])))
    if not found:  # scalar instructions only, up to then
        return next(((core, 0) for core in range(cores) if len(timed.times(core).start)), None)
    _, _, core, record = max(found)
    return -core, record
