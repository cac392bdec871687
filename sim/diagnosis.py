"""Who waits for whom when nothing moves any more, and which flags are left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..codegen.isa.vocabulary import Pipe
from ..ir.errors import SimulationFault
from .decode import PIPE_FLAG_SLOTS, PIPES, Role, flag_of, flag_text
from .faults import describe

if TYPE_CHECKING:
    from .decode import Decoded
    from .scalar import Stream
    from .timing import Timing


def deadlock(decoded: Decoded, stream: Stream, timing: Timing) -> SimulationFault:
    """Return the fault for a run that cannot go on: every waiting pipe, and what it waits for."""
    assert not timing.finished, "only a run that stands still has a deadlock"
    waits: list[tuple[int, str]] = []
    holds: list[str] = []
    for pipe in range(1, PIPES):
        count = int(timing.queues.held[pipe])
        if not count:
            continue
        record = _queue(timing, pipe)[0]
        holds.append(f"{Pipe(pipe).name} holds {_instructions(count)}")
        waits.append((record, _flag_wait(Pipe(pipe).name, record, decoded, stream, timing)))
    cursor = int(timing.queues.cursor[0])
    left = len(stream) - cursor
    if left:
        waits.append((cursor, _scalar_wait(cursor, decoded, stream, timing)))
        holds.append(f"the scalar unit has {_instructions(left)} yet to issue")
    message = (
        f"Every pipe of kernel {decoded.kernel.name!r} must be able to go on, not wait for ever: "
        + "; ".join(text for _, text in waits)
        + "."
    )
    span = decoded.kernel.span(int(stream.static[waits[0][0]]))
    return SimulationFault(message, span, note=", ".join(holds))


def leftover_flags(decoded: Decoded, stream: Stream, timing: Timing) -> list[SimulationFault]:
    """Return a fault per flag that is still set when the kernel has ended."""
    found: list[SimulationFault] = []
    for slot in np.flatnonzero(timing.queues.pending).tolist():
        count, record = int(timing.queues.pending[slot]), int(timing.queues.last_set[slot])
        index = int(stream.static[record])
        times = "once" if count == 1 else f"{count} times"
        message = (
            f"Every flag that is set must be waited for, but {_flag(slot)} is still set {times} "
            f"at the end of kernel {decoded.kernel.name!r}, last by "
            f"{describe(decoded.kernel, index)}."
        )
        found.append(SimulationFault(message, decoded.kernel.span(index)))
    return found


def overruns(
    decoded: Decoded, stream: Stream, timing: Timing, *, limit: int
) -> list[SimulationFault]:
    """Return a warning per flag counter that exceeded `limit`."""
    found: list[SimulationFault] = []
    for slot in np.flatnonzero(timing.queues.overrun >= 0).tolist():
        index = int(stream.static[int(timing.queues.overrun[slot])])
        message = (
            f"A flag must be set at most {limit} times ahead of its waits, but {_flag(slot)} is "
            f"set once more by {describe(decoded.kernel, index)}; a device would lose count."
        )
        found.append(SimulationFault(message, decoded.kernel.span(index)))
    return found


def _flag_wait(who: str, record: int, decoded: Decoded, stream: Stream, timing: Timing) -> str:
    """Say what the wait_flag at the head of a pipe waits for, and where the set is."""
    index = int(stream.static[record])
    slot = int(decoded.flags[index])
    begin = f"{who} waits at {describe(decoded.kernel, index)} for {_flag(slot)}, which "
    if slot >= PIPE_FLAG_SLOTS:
        return begin + "nothing sets: the kernel runs without the other cores of its cluster"
    source, _, _ = flag_of(slot)
    queued = [] if source is Pipe.S else _queue(timing, source)
    for each in queued:
        item = int(stream.static[each])
        if decoded.role[item] == Role.SET and decoded.flags[item] == slot:
            return begin + (
                f"{describe(decoded.kernel, item)} would set, but it stands in the queue of "
                f"{source.name}"
            )
    ahead = stream.static[int(timing.queues.cursor[0]) :]
    setters = (decoded.role[ahead] == Role.SET) & (decoded.flags[ahead] == slot)
    if setters.any():
        item = int(ahead[int(np.argmax(setters))])
        return begin + f"{describe(decoded.kernel, item)} would set, but it is not yet issued"
    return begin + "nothing sets any more"


def _scalar_wait(record: int, decoded: Decoded, stream: Stream, timing: Timing) -> str:
    index = int(stream.static[record])
    pipe = Pipe(int(decoded.pipe[index]))
    if pipe is not Pipe.S:
        room = int(timing.queues.items.shape[1])
        return (
            f"the scalar unit waits at {describe(decoded.kernel, index)} for room in the queue of "
            f"{pipe.name}, whose {room} entries are taken"
        )
    if decoded.role[index] == Role.WAIT:
        return _flag_wait("the scalar unit", record, decoded, stream, timing)
    busy = [Pipe(each).name for each in range(1, PIPES) if timing.queues.held[each]]
    return (
        f"the scalar unit waits at {describe(decoded.kernel, index)} for the queues of "
        f"{', '.join(busy)} to be empty"
    )


def _queue(timing: Timing, pipe: int) -> list[int]:
    """Return the records in a queue, oldest first."""
    ring = timing.queues.items[pipe]
    head, count = int(timing.queues.head[pipe]), int(timing.queues.held[pipe])
    return [int(ring[(head + place) % len(ring)]) for place in range(count)]


def _flag(slot: int) -> str:
    if slot >= PIPE_FLAG_SLOTS:
        return f"the core flag {flag_text(slot)}"
    source, destination, number = flag_of(slot)
    return f"flag {number} from {source.name} to {destination.name}"


def _instructions(count: int) -> str:
    return "1 instruction" if count == 1 else f"{count} instructions"
