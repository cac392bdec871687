"""Checks of what a task does in whatever time: races, flags, scales and tiles.

They look at the resolved instructions of a task before it runs, not at its times, and at no data; what
they say holds for every machine with such queues and counters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..diagnosis import Words, deadlock
from .bytes import Holders
from .footprints import footprints_of
from .launches import LaunchCheck
from .order import order_of
from .races import races

__all__ = ["LaunchCheck", "TaskCheck", "task_faults"]

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...ir.errors import SimulationFault
    from ...ir.target import Target
    from ..pipes.timing import Program


class TaskCheck:
    """What is doubtful about one task.

    Args:
        programs: What the cores of a cluster run of it, their bounds checked.
        target: The machine.

    Raises:
        SimulationFault: If everybody waits for ever, which nobody can let pass.
    """

    def __init__(self, programs: Sequence[Program], target: Target) -> None:
        self._programs = programs
        self._limit = target.flag_counter_max
        self._prints = footprints_of(programs)
        self._order = order_of(programs, self._prints, target)
        if not self._order.finished:
            raise deadlock(programs, self._order)
        self._words = Words(programs, self._order)

    def faults(self) -> Iterator[SimulationFault]:
        """Yield what must not be: flags left over, tiles and scales of others, then races."""
        for record, count in self._order.left_up:
            yield self._words.leftover(*self._order.place(record), count)
        yield from Holders(self._programs, self._order, self._prints).faults()
        yield from races(self._programs, self._order)

    def overruns(self) -> Iterator[SimulationFault]:
        """Yield a warning per flag that nothing keeps from being set too far ahead of its waits."""
        for record in self._order.overruns:
            place = self._order.place(record)
            yield self._words.overrun(*place, self._limit, verb="can be")


def task_faults(programs: Sequence[Program], target: Target) -> Iterator[SimulationFault]:
    """Yield what must not be in a task; see :class:`TaskCheck`, whose arguments these are.

    Raises:
        SimulationFault: If everybody waits for ever.
    """
    yield from TaskCheck(programs, target).faults()
