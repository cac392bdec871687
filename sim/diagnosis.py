"""Who waits for whom when nothing moves any more, and which flags are left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..codegen.isa.vocabulary import Pipe
from ..ir.errors import SimulationFault
from .decode import PIPE_FLAG_SLOTS, PIPES, Role, core_flag_of, core_flag_slot, flag_of
from .faults import describe
from .pipe_tables import LAST_SET, OVERRUN, PENDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.errors import Span
    from .timing import Program, Timing


def deadlock(
    programs: Sequence[Program], timing: Timing, *, cluster: int | None = None
) -> SimulationFault:
    """Return the fault for a task that cannot go on: every waiting pipe, and what it waits for.

    Args:
        programs: What the cores run.
        timing: How the task went.
        cluster: The cluster, if the launch has work for several.
    """
    assert not timing.finished, "only a run that stands still has a deadlock"
    run = _Run(programs, timing)
    waits: list[tuple[Span, str]] = []
    holds: list[str] = []
    for core, program in enumerate(programs):
        for pipe in range(1, PIPES):
            count = timing.held(core, pipe)
            if not count:
                continue
            record = timing.queue(core, pipe)[0]
            who = run.of(core, Pipe(pipe).name)
            holds.append(f"{who} holds {_instructions(count)}")
            waits.append((run.span(core, record), run.flag_wait(who, core, record)))
        issued = timing.issued(core)
        left = len(program.stream) - issued
        if left:
            who = run.of(core, "the scalar unit")
            waits.append((run.span(core, issued), run.scalar_wait(who, core, issued)))
            holds.append(f"{who} has {_instructions(left)} yet to issue")
    where = "" if cluster is None else f" on cluster {cluster}"
    message = (
        f"Every pipe of kernel {programs[0].decoded.kernel.name!r}{where} must be able to go on, not "
        "wait for ever: " + "; ".join(text for _, text in waits) + "."
    )
    return SimulationFault(message, waits[0][0], note=", ".join(holds))


def leftover_flags(programs: Sequence[Program], timing: Timing) -> list[SimulationFault]:
    """Return a fault per flag that is still set when the kernel has ended."""
    run, counters = _Run(programs, timing), timing.counters
    found: list[SimulationFault] = []
    for counter in np.flatnonzero(counters[:, PENDING]).tolist():
        count = int(counters[counter, PENDING])
        core, record = timing.place(int(counters[counter, LAST_SET]))
        times = "once" if count == 1 else f"{count} times"
        message = (
            f"Every flag that is set must be waited for, but {run.flag(core, record)} is still set "
            f"{times} at the end of kernel {programs[core].decoded.kernel.name!r}, last by "
            f"{run.instruction(core, record)}."
        )
        found.append(SimulationFault(message, run.span(core, record)))
    return found


def overruns(programs: Sequence[Program], timing: Timing, *, limit: int) -> list[SimulationFault]:
    """Return a warning per flag counter that exceeded `limit`."""
    run, overrun = _Run(programs, timing), timing.counters[:, OVERRUN]
    found: list[SimulationFault] = []
    for counter in np.flatnonzero(overrun >= 0).tolist():
        core, record = timing.place(int(overrun[counter]))
        message = (
            f"A flag must be set at most {limit} times ahead of its waits, but "
            f"{run.flag(core, record)} is set once more by {run.instruction(core, record)}; a "
            "device would lose count."
        )
        found.append(SimulationFault(message, run.span(core, record)))
    return found


class _Run:
    """The words for what happens in a run; cores are named where there are several."""

    def __init__(self, programs: Sequence[Program], timing: Timing) -> None:
        self.programs = programs
        self.timing = timing

    def of(self, core: int, what: str) -> str:
        return what if len(self.programs) == 1 else f"{what} of {self.programs[core].core.name}"

    def span(self, core: int, record: int) -> Span:
        return self.programs[core].decoded.kernel.span(self._item(core, record))

    def instruction(self, core: int, record: int) -> str:
        kernel = self.programs[core].decoded.kernel
        return self.of(core, describe(kernel, self._item(core, record)))

    def flag(self, core: int, record: int) -> str:
        """Name the flag that a record of a core sets or waits for."""
        program = self.programs[core]
        slot = int(program.decoded.flags[self._item(core, record)])
        if slot < PIPE_FLAG_SLOTS:
            source, destination, number = flag_of(slot)
            return self.of(core, f"flag {number} from {source.name} to {destination.name}")
        setter, waiter, number = core_flag_of(slot, program.core)
        return f"core flag {number} from {setter.name} to {waiter.name}"

    def flag_wait(self, who: str, core: int, record: int) -> str:
        """Say what a wait at the head of a pipe waits for, and where the set is."""
        program = self.programs[core]
        slot = int(program.decoded.flags[self._item(core, record)])
        begin = f"{who} waits at {self._at(core, record)} for {self.flag(core, record)}, which "
        if slot < PIPE_FLAG_SLOTS:
            return begin + self._set_by(core, slot)
        setter, waiter, number = core_flag_of(slot, program.core)
        for other, each in enumerate(self.programs):
            if each.core is setter:
                return begin + self._set_by(other, core_flag_slot(waiter, number))
        return begin + f"nothing sets, since nothing runs on {setter.name}"

    def scalar_wait(self, who: str, core: int, record: int) -> str:
        """Say what the scalar unit of a core waits for at a record that it has not issued."""
        program, item = self.programs[core], self._item(core, record)
        pipe = Pipe(int(program.decoded.pipe[item]))
        begin = f"{who} waits at {self._at(core, record)} for "
        if pipe is not Pipe.S:
            room = self.timing.held(core, pipe)
            return begin + f"room in the queue of {pipe.name}, whose {room} entries are taken"
        if program.decoded.role[item] == Role.WAIT:
            return self.flag_wait(who, core, record)
        busy = [Pipe(each).name for each in range(1, PIPES) if self.timing.held(core, each)]
        return begin + f"the queues of {', '.join(busy)} to be empty"

    def _set_by(self, core: int, slot: int) -> str:
        """Say where the next set of a flag of a core stands, which has not been done."""
        decoded, stream = self.programs[core].decoded, self.programs[core].stream
        sets = (decoded.role == Role.SET) & (decoded.flags == slot)
        for pipe in range(1, PIPES):
            for record in self.timing.queue(core, pipe):
                if sets[stream.static[record]]:
                    where = self.of(core, f"the queue of {Pipe(pipe).name}")
                    return f"{self._at(core, record)} would set, but it stands in {where}"
        ahead = sets[stream.static[self.timing.issued(core) :]]
        if ahead.any():
            record = self.timing.issued(core) + int(np.argmax(ahead))
            return f"{self.instruction(core, record)} would set, but it is not yet issued"
        return "nothing sets any more"

    def _at(self, core: int, record: int) -> str:
        return describe(self.programs[core].decoded.kernel, self._item(core, record))

    def _item(self, core: int, record: int) -> int:
        return int(self.programs[core].stream.static[record])


def _instructions(count: int) -> str:
    return "1 instruction" if count == 1 else f"{count} instructions"
