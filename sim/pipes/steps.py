"""What the scalar unit and a pipe do until they must sleep; jitted, for `pipes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...codegen.isa.vocabulary import Pipe
from ...ir.jit import lean
from ..decode import PIPES, Role
from .agenda import NEVER, set_due
from .dispatch import leave
from .flags import NONE, await_set, put_set, take_set, wake
from .flows import begin
from .l2 import access
from .tables import (
    AT_BARRIER,
    BARRIER,
    BETWEEN,
    BUSY,
    BYTES,
    CLOCK,
    CODE,
    COUNTERS,
    CURSOR,
    DONE,
    DRAINED,
    END,
    ENTERED,
    FLAG,
    FLOWING,
    FREE,
    HEAD,
    HELD,
    IS_BETWEEN,
    LATENCY,
    MEMORY,
    OCCUPANCY,
    PARTNER,
    PIPE,
    QUEUE,
    REACHED,
    ROLE,
    SCALES,
    SLOT,
    START,
    STARTS,
    STARVED,
    STOP,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .tables import Setting

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Bits = npt.NDArray[np.uint8]

_EXECUTE, _SET, _WAIT, _BARRIER, _BARRIER_ALL = (int(role) for role in Role)
_S: Final = int(Pipe.S)


@lean
def run_scalar(
    agent: int,
    in_time: bool,
    code: Table,
    static: Line,
    gap: Line,
    setting: Setting,
    cores: Table,
    agents: Table,
    places: Table,
    counters: Table,
    records: Table,
    accounts: Table,
    clusters: Table,
    due: Line,
    awake: Line,
) -> None:
    """Let a scalar unit issue until it must sleep; `in_time`, if it is the first of all to act."""
    core = agent // PIPES
    record, clock, stop = cores[core, CURSOR], cores[core, CLOCK], cores[core, STOP]
    program, own, between = cores[core, CODE], cores[core, COUNTERS], cores[core, BETWEEN]
    cores[core, AT_BARRIER] = 0
    finished = 0
    while record < stop:
        item = int(program + static[record])
        pipe, role = code[item, PIPE], code[item, ROLE]
        began = int(clock + gap[record])
        issued = began
        records[record, PARTNER] = NONE
        if pipe != _S:
            queue = agent + pipe
            held = agents[queue, HELD]
            if held == setting.queue_entries:
                break
            place = agents[queue, HEAD] + held
            if place >= setting.queue_entries:
                place -= setting.queue_entries
            issued = max(began, places[queue, place])
            accounts[agent, QUEUE] += issued - began
            records[record, ENTERED] = issued
            places[queue, place] = record
            agents[queue, HELD] = held + 1
            if held == 0:
                wake(queue, agents, awake)
        else:
            is_between = code[item, IS_BETWEEN]
            slot = int(code[item, SLOT] + (between if is_between else own))
            if role == _WAIT:
                issued = await_set(
                    agent, began, slot, is_between, in_time, setting, agents, counters, records, due
                )
                if issued == NEVER:
                    break
                accounts[agent, FLAG] += issued - began
            elif role == _BARRIER_ALL:
                held = 0
                for other in range(agent + 1, agent + PIPES):
                    held += agents[other, HELD] + (agents[other, FLOWING] != NONE)
                    issued = max(issued, agents[other, DRAINED], agents[other, FREE])
                if held:
                    cores[core, AT_BARRIER] = 1
                    break
                accounts[agent, BARRIER] += issued - began
            records[record, START], records[record, END] = began, issued
            records[record, DONE] = issued
            finished += 1
            if role == _WAIT:
                take_set(agent, record, slot, is_between, setting, agents, counters, records, due)
            elif role == _SET:
                reached = int(agent + code[item, REACHED])
                put_set(
                    reached, record, slot, is_between, setting, agents, counters, records, due,
                    awake,
                )  # fmt: skip
        in_time = False
        accounts[agent, BUSY] += gap[record]
        clock = issued
        record += 1
    cores[core, CURSOR], cores[core, CLOCK] = record, clock
    if finished:
        leave(core, finished, cores, agents, clusters, due)


@lean
def run_pipe(
    agent: int,
    in_time: bool,
    code: Table,
    static: Line,
    setting: Setting,
    cores: Table,
    agents: Table,
    places: Table,
    counters: Table,
    records: Table,
    accounts: Table,
    clusters: Table,
    due: Line,
    awake: Line,
) -> None:
    """Let a pipe take instructions until it must sleep; `in_time`, if it is the first of all to act."""
    if agents[agent, FLOWING] != NONE:
        return
    core = agent // PIPES
    program, own, between = cores[core, CODE], cores[core, COUNTERS], cores[core, BETWEEN]
    place, held = agents[agent, HEAD], agents[agent, HELD]
    free, drained = agents[agent, FREE], agents[agent, DRAINED]
    finished = 0
    while held:
        record = int(places[agent, place])
        item = int(program + static[record])
        role, is_between, slot = code[item, ROLE], code[item, IS_BETWEEN], 0
        began = max(records[record, ENTERED], free)
        first, done = began, drained
        if role == _EXECUTE:
            if code[item, BYTES]:
                set_due(agent, began, due)
                break
            busy, starved = code[item, OCCUPANCY], code[item, STARVED]
            free = began + busy
            done = max(began, drained) + busy
            drained = done
            accounts[agent, BUSY] += busy - starved
            accounts[agent, SCALES] += starved
        elif role == _WAIT:
            slot = int(code[item, SLOT] + (between if is_between else own))
            first = await_set(
                agent, began, slot, is_between, in_time, setting, agents, counters, records, due
            )
            if first == NEVER:
                break
            accounts[agent, FLAG] += first - began
            free, done = first, first
        elif role == _BARRIER:
            free = max(began, drained)
            accounts[agent, BARRIER] += free - began
        else:
            free = began
        in_time = False
        records[record, START] = began
        places[agent, place] = first
        place = 0 if place + 1 == setting.queue_entries else place + 1
        if held == setting.queue_entries:
            wake(core * PIPES, agents, awake)
        held -= 1
        records[record, END], records[record, DONE] = free, max(free, done)
        finished += 1
        if role == _WAIT:
            take_set(agent, record, slot, is_between, setting, agents, counters, records, due)
        elif role == _SET:
            slot = int(code[item, SLOT] + (between if is_between else own))
            reached = int(core * PIPES + code[item, REACHED])
            put_set(
                reached, record, slot, is_between, setting, agents, counters, records, due, awake
            )
    agents[agent, HEAD], agents[agent, HELD] = place, held
    agents[agent, FREE], agents[agent, DRAINED] = free, drained
    if not held and cores[core, AT_BARRIER]:
        wake(core * PIPES, agents, awake)
    if finished:
        leave(core, finished, cores, agents, clusters, due)


@lean
def begin_transfer(
    agent: int,
    now: int,
    code: Table,
    transfers: Table,
    starts: Line,
    static: Line,
    registers: Table,
    setting: Setting,
    links: Table,
    lines: Line,
    stored: Bits,
    whole: Line,
    flows: Table,
    rates: Floats,
    common: Line,
    cores: Table,
    agents: Table,
    places: Table,
    records: Table,
    awake: Line,
) -> None:
    """Let a pipe take the transfer that heads its queue."""
    core, place = agent // PIPES, agents[agent, HEAD]
    record = int(places[agent, place])
    line = int(static[record])
    item = int(cores[core, CODE] + line)
    size = code[item, BYTES]
    latency, missed = access(
        item,
        int(starts[int(cores[core, STARTS]) + line]),
        registers[record, 0],
        registers[record, 1],
        size,
        code[item, PIPE],
        now,
        transfers,
        setting,
        links,
        lines,
        stored,
        whole,
    )
    begin(now, agent, core, code[item, OCCUPANCY], size, missed, flows, rates, common)
    agents[agent, FLOWING], agents[agent, LATENCY] = record, latency
    records[record, START] = now
    places[agent, place] = now
    if agents[agent, HELD] == setting.queue_entries:
        wake(core * PIPES, agents, awake)
    agents[agent, HELD] -= 1
    agents[agent, HEAD] = 0 if place + 1 == setting.queue_entries else place + 1


@lean
def end_transfer(
    agent: int,
    now: int,
    code: Table,
    static: Line,
    cores: Table,
    agents: Table,
    records: Table,
    accounts: Table,
    clusters: Table,
    due: Line,
    awake: Line,
) -> None:
    """Free a pipe whose transfer has moved its bytes; it is done its latency later."""
    core, record = agent // PIPES, agents[agent, FLOWING]
    busy = code[cores[core, CODE] + static[record], OCCUPANCY]
    began = records[record, START]
    done = max(began + agents[agent, LATENCY], agents[agent, DRAINED]) + now - began
    accounts[agent, BUSY] += busy
    accounts[agent, MEMORY] += now - began - busy
    records[record, END], records[record, DONE] = now, max(now, done)
    agents[agent, FREE], agents[agent, DRAINED] = now, done
    agents[agent, FLOWING] = NONE
    wake(agent, agents, awake)
    leave(core, 1, cores, agents, clusters, due)
