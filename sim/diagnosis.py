"""Who waits for whom when nothing moves any more, and which flags are left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..codegen.isa.vocabulary import Pipe
from ..ir.errors import SimulationFault
from .decode import PIPE_FLAG_SLOTS, PIPES, Role, core_flag_of, core_flag_slot, flag_of
from .faults import describe
from .pipes.tables import LAST_SET, OVERRUN, PENDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.errors import Span
    from .pipes.timing import Program, Timing


class Standing(Protocol):
    """Where a run stands: the queues of its pipes, and how far its scalar units have come."""

    @property
    def finished(self) -> bool:
        """Whether all is done."""
        ...

    def issued(self, core: int) -> int:
        """Return how many records of its stream a core has issued."""
        ...

    def held(self, core: int, pipe: int) -> int:
        """Return how many instructions stand in a queue."""
        ...

    def queue(self, core: int, pipe: int) -> list[int]:
        """Return the records in a queue, oldest first, by their numbers in the core's stream."""
        ...


def deadlock(
    programs: Sequence[Program], run: Standing, *, cluster: int | None = None
) -> SimulationFault:
    """Return the fault for a run that cannot go on: every waiting pipe, and what it waits for.

    Where some wait for each other in a circle, the note names it.

    Args:
        programs: What the cores run.
        run: Where they stand.
        cluster: Where that is, if the launch has work for several clusters.
    """
    assert not run.finished, "only a run that stands still has a deadlock"
    words = Words(programs, run)
    waits: list[tuple[Span, str]] = []
    holds: list[str] = []
    for core, program in enumerate(programs):
        for pipe in range(1, PIPES):
            count = run.held(core, pipe)
            if not count:
                continue
            record = run.queue(core, pipe)[0]
            who = words.agent(core, pipe)
            holds.append(f"{who} holds {_instructions(count)}")
            waits.append((words.span(core, record), words.flag_wait(who, core, record)))
        issued = run.issued(core)
        left = len(program.stream) - issued
        if left:
            who = words.agent(core, Pipe.S)
            waits.append((words.span(core, issued), words.scalar_wait(who, core, issued)))
            holds.append(f"{who} has {_instructions(left)} yet to issue")
    where = "" if cluster is None else f" on cluster {cluster}"
    message = (
        f"Every pipe of kernel {programs[0].decoded.kernel.name!r}{where} must be able to go on, not "
        "wait for ever: " + "; ".join(text for _, text in waits) + "."
    )
    note, circle = ", ".join(holds), words.circle()
    if circle:
        names = [words.agent(*each) for each in (*circle, circle[0])]
        note += "; each of these waits for the next one: " + ", ".join(names)
    return SimulationFault(message, waits[0][0], note=note)


def leftover_flags(programs: Sequence[Program], timing: Timing) -> list[SimulationFault]:
    """Return a fault per flag that is still set when the kernel has ended."""
    words, counters = Words(programs, timing), timing.counters
    return [
        words.leftover(
            *timing.place(int(counters[counter, LAST_SET])), int(counters[counter, PENDING])
        )
        for counter in np.flatnonzero(counters[:, PENDING]).tolist()
    ]


def overruns(programs: Sequence[Program], timing: Timing, *, limit: int) -> list[SimulationFault]:
    """Return a warning per flag counter that exceeded `limit`."""
    words, overrun = Words(programs, timing), timing.counters[:, OVERRUN]
    return [
        words.overrun(*timing.place(int(overrun[counter])), limit)
        for counter in np.flatnonzero(overrun >= 0).tolist()
    ]


class Words:
    """The words for what happens in a run; cores are named where there are several."""

    def __init__(self, programs: Sequence[Program], run: Standing) -> None:
        self.programs = programs
        self.run = run

    def leftover(self, core: int, record: int, count: int) -> SimulationFault:
        """Return the fault that a flag is still set `count` times, last by a record of a core."""
        times = "once" if count == 1 else f"{count} times"
        message = (
            f"Every flag that is set must be waited for, but {self.flag(core, record)} is still set "
            f"{times} at the end of kernel {self.programs[core].decoded.kernel.name!r}, last by "
            f"{self.instruction(core, record)}."
        )
        return SimulationFault(message, self.span(core, record))

    def overrun(self, core: int, record: int, limit: int, *, verb: str = "is") -> SimulationFault:
        """Return the warning that a record of a core sets a flag further ahead than `limit`.

        `verb` is "is" for what happened in a run, "can be" for what may happen in one.
        """
        message = (
            f"A flag must be set at most {limit} times ahead of its waits, but "
            f"{self.flag(core, record)} {verb} set once more by {self.instruction(core, record)}; a "
            "device would lose count."
        )
        return SimulationFault(message, self.span(core, record))

    def agent(self, core: int, pipe: int) -> str:
        """Name a pipe of a core, or its scalar unit."""
        return self.of(core, "the scalar unit" if pipe == Pipe.S else Pipe(pipe).name)

    def circle(self) -> list[tuple[int, int]]:
        """Return pipes that wait for one another in a circle, as core and pipe; empty for none."""
        waiting = [
            (core, pipe)
            for core, program in enumerate(self.programs)
            for pipe in range(PIPES)
            if self.run.held(core, pipe)
            or (pipe == Pipe.S and self.run.issued(core) < len(program.stream))
        ]
        for start in waiting:
            path: list[tuple[int, int]] = []
            each: tuple[int, int] | None = start
            while each is not None and each not in path:
                path.append(each)
                each = self._waits_for(*each)
            if each is not None:
                return path[path.index(each) :]
        return []

    def _waits_for(self, core: int, pipe: int) -> tuple[int, int] | None:
        """Return whom a waiting pipe waits for, if anybody."""
        program, run = self.programs[core], self.run
        record = run.queue(core, pipe)[0] if pipe != Pipe.S else run.issued(core)
        item = self._item(core, record)
        if program.decoded.role[item] == Role.WAIT and (
            pipe != Pipe.S or program.decoded.pipe[item] == Pipe.S
        ):
            source = self._setter(core, int(program.decoded.flags[item]))
            return None if source is None else self._next_set(*source)[0]
        if pipe != Pipe.S:
            return None
        full = int(program.decoded.pipe[item])
        if full != Pipe.S:
            return core, full
        busy = [(core, each) for each in range(1, PIPES) if run.held(core, each)]
        return busy[0] if busy else None

    def of(self, core: int, what: str) -> str:
        """Name what a core has, with the core where there are several."""
        return what if len(self.programs) == 1 else f"{what} of {self.programs[core].core.name}"

    def span(self, core: int, record: int) -> Span:
        """Return the source of a record."""
        return self.programs[core].decoded.kernel.span(self._item(core, record))

    def instruction(self, core: int, record: int) -> str:
        """Return the instruction of a record for a message."""
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
        source = self._setter(core, slot)
        if source is None:
            setter, _, _ = core_flag_of(slot, program.core)
            return begin + f"nothing sets, since nothing runs on {setter.name}"
        return begin + self._set_by(*source)

    def scalar_wait(self, who: str, core: int, record: int) -> str:
        """Say what the scalar unit of a core waits for at a record that it has not issued."""
        program, item = self.programs[core], self._item(core, record)
        pipe = Pipe(int(program.decoded.pipe[item]))
        begin = f"{who} waits at {self._at(core, record)} for "
        if pipe is not Pipe.S:
            room = self.run.held(core, pipe)
            return begin + f"room in the queue of {pipe.name}, whose {room} entries are taken"
        if program.decoded.role[item] == Role.WAIT:
            return self.flag_wait(who, core, record)
        busy = [Pipe(each).name for each in range(1, PIPES) if self.run.held(core, each)]
        return begin + f"the queues of {', '.join(busy)} to be empty"

    def _setter(self, core: int, slot: int) -> tuple[int, int] | None:
        """Return the core that sets a flag which a core waits for, and its slot there, if any."""
        if slot < PIPE_FLAG_SLOTS:
            return core, slot
        setter, waiter, number = core_flag_of(slot, self.programs[core].core)
        for other, each in enumerate(self.programs):
            if each.core is setter:
                return other, core_flag_slot(waiter, number)
        return None

    def _next_set(self, core: int, slot: int) -> tuple[tuple[int, int] | None, int]:
        """Return who has the next set of a flag of a core, which has not been done, and its record.

        It stands in the queue of a pipe, or the scalar unit has not issued it; None for no set.
        """
        decoded, stream = self.programs[core].decoded, self.programs[core].stream
        sets = (decoded.role == Role.SET) & (decoded.flags == slot)
        for pipe in range(1, PIPES):
            for record in self.run.queue(core, pipe):
                if sets[stream.static[record]]:
                    return (core, pipe), record
        ahead = sets[stream.static[self.run.issued(core) :]]
        if ahead.any():
            return (core, int(Pipe.S)), self.run.issued(core) + int(np.argmax(ahead))
        return None, -1

    def _set_by(self, core: int, slot: int) -> str:
        """Say where the next set of a flag of a core stands, which has not been done."""
        owner, record = self._next_set(core, slot)
        if owner is None:
            return "nothing sets any more"
        if owner[1] == Pipe.S:
            return f"{self.instruction(core, record)} would set, but it is not yet issued"
        where = self.of(core, f"the queue of {Pipe(owner[1]).name}")
        return f"{self._at(core, record)} would set, but it stands in {where}"

    def _at(self, core: int, record: int) -> str:
        return describe(self.programs[core].decoded.kernel, self._item(core, record))

    def _item(self, core: int, record: int) -> int:
        return int(self.programs[core].stream.static[record])


def _instructions(count: int) -> str:
    return "1 instruction" if count == 1 else f"{count} instructions"
