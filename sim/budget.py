"""A run that takes more cycles than it may: where it stood when they were used up.

Cycles are counted once all instructions are known. A stream that is too long for them is not known to its end:
it is cut off where it can no longer fit, which is a fault of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ..ir.errors import SimulationFault
from . import costs
from .faults import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..codegen.executable import Kernel
    from ..codegen.isa.vocabulary import ClusterCore
    from ..ir.target import Target
    from .pipes.timing import DeviceTiming, Program, Timing

LEAST_INSTRUCTIONS: Final = 1 << 16
"""What a core may always execute: so few instructions are counted in no time, and then it is known where
the run stood in its last cycle."""

_HINT = "a larger max_cycles (--max-cycles), or a kernel that does less"
_LOOP_HINT = "a larger max_cycles (--max-cycles), a kernel that does less, or a loop whose condition turns false"


def instructions_within(max_cycles: int, target: Target) -> int:
    """Return more instructions than a core can execute in a launch of so many cycles, but few more.

    A scalar unit takes one instruction after the other, from the cycle on in which its task begins, and the
    task does not end before the unit has come to its end. Each instruction keeps the unit for
    `scalar_cycles`, or for `branch_taken_cycles` if it is a branch that is taken; a full queue, a flag or a
    barrier only make it longer. So a task in which a core executes n instructions takes n times the
    lesser of the two at least, wherever and beside whatever it runs.
    """
    unit = min(target.scalar_cycles, target.branch_taken_cycles)
    left = max_cycles - costs.launch_cycles(target)
    return max(LEAST_INSTRUCTIONS, left // unit + 1)


def stream_over_budget(
    kernel: Kernel, index: int, executed: int, *, limit: int, core: ClusterCore
) -> SimulationFault:
    """Return the fault for a stream that was cut off since its run cannot end in time.

    Args:
        kernel: The kernel.
        index: The instruction that is next.
        executed: Instructions before it, as many as `instructions_within` or more.
        limit: The cycles that the run may take.
        core: Where the kernel runs.
    """
    message = (
        f"The run must end within {limit} cycles, not still be at {describe(kernel, index)} on "
        f"{core.name} after {executed} instructions, which take longer."
    )
    note = f"in kernel {kernel.name!r}"
    return SimulationFault(message, kernel.span(index), hint=_LOOP_HINT, note=note)


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
