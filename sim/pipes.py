"""The loop that advances the pipes of all cores; `timing` says what it is about.

An agent is a pipe of a core, the scalar unit being its pipe `S`: agent = core * PIPES + pipe. When an
agent does its next instruction depends on a few things only: when the scalar unit issued it, when
its queue had room, which set its wait takes. So an agent goes on by itself, through all instructions
for which these are known, and then sleeps until another one wakes it. Only what the order of time
decides is done in that order, when all agents sleep: transfers, which share the L2, and waits for
flags between cores, of which several pipes may take the same.

State stands in a few tables of plain integers, which compiled code hands on at little cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ..codegen.isa.vocabulary import Pipe
from .decode import PIPES, Role
from .jit import compiled, inner
from .l2 import latency_of
from .pipe_flags import NEVER, NONE, after_flag, overrun, put_set, take_set, wake
from .pipe_tables import (
    AT_BARRIER,
    AWAITED,
    AWAKE,
    BARRIER,
    BUSY,
    CAME,
    CLOCK,
    CURSOR,
    DONE,
    DRAINED,
    END,
    ENTERED,
    FLAG,
    FREE,
    HEAD,
    HELD,
    IDLE,
    OCCUPANCY,
    OLDEST,
    OVERRUN,
    PARTNER,
    PIPE,
    QUEUE,
    REACHED,
    ROLE,
    SLOT,
    START,
    STOP,
    TAIL,
    TRANSFER,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from .pipe_tables import Feed, Setting, State

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_EXECUTE, _SET, _WAIT, _BARRIER, _BARRIER_ALL = (int(role) for role in Role)
_S: Final = int(Pipe.S)


@compiled
def simulate_pipes(feed: Feed, setting: Setting, stamps: Line, cache: Line, state: State) -> int:
    """Run all streams to their ends; return the cycles, or -1 if everybody waits."""
    code, transfers, starts, static, gap, registers = feed
    cores, agents, places, counters, records, accounts = state
    due = np.full(len(agents), NEVER, np.int64)
    awake = np.zeros(len(agents) + 1, np.int64)
    for core in range(len(cores)):
        wake(core * PIPES, agents, awake)
    while True:
        in_time = awake[0] == 0
        if in_time:
            agent = _earliest(due)
            if due[agent] == NEVER:
                break
            due[agent] = NEVER
        else:
            agent = int(awake[awake[0]])
            awake[0] -= 1
            agents[agent, AWAKE] = 0
        agents[agent, AWAITED] = NONE
        if agent % PIPES == _S:
            _run_scalar(
                agent,
                in_time,
                code,
                static,
                gap,
                setting,
                cores,
                agents,
                places,
                counters,
                records,
                accounts,
                due,
                awake,
            )
        else:
            _run_pipe(
                agent,
                in_time,
                code,
                transfers,
                starts,
                static,
                registers,
                setting,
                stamps,
                cache,
                cores,
                agents,
                places,
                counters,
                records,
                accounts,
                due,
                awake,
            )
    return _close(setting, cores, agents, counters, records, accounts)


@inner
def _run_scalar(
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
    due: Line,
    awake: Line,
) -> None:
    """Let a scalar unit issue until it must sleep; `in_time`, if it is the first of all to act."""
    core = agent // PIPES
    record, clock, stop = cores[core, CURSOR], cores[core, CLOCK], cores[core, STOP]
    cores[core, AT_BARRIER] = 0
    while record < stop:
        item = int(static[record])
        pipe, role, slot = code[item, PIPE], code[item, ROLE], int(code[item, SLOT])
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
            if role == _WAIT:
                if slot >= setting.core_flags and not in_time:
                    agents[agent, AWAITED], agents[agent, CAME] = slot, began
                    due[agent] = after_flag(began, slot, setting, counters, records)
                    break
                issued = after_flag(began, slot, setting, counters, records)
                if issued == NEVER:
                    agents[agent, AWAITED] = slot
                    break
                accounts[agent, FLAG] += issued - began
            elif role == _BARRIER_ALL:
                held = 0
                for other in range(agent + 1, agent + PIPES):
                    held += agents[other, HELD]
                    issued = max(issued, agents[other, DRAINED], agents[other, FREE])
                if held:
                    cores[core, AT_BARRIER] = 1
                    break
                accounts[agent, BARRIER] += issued - began
            records[record, START], records[record, END] = began, issued
            records[record, DONE] = issued
            if role == _WAIT:
                take_set(agent, record, slot, setting, agents, counters, records, due)
            elif role == _SET:
                reached = int(code[item, REACHED])
                put_set(reached, record, slot, setting, agents, counters, records, due, awake)
        in_time = False
        accounts[agent, BUSY] += gap[record]
        clock = issued
        record += 1
    cores[core, CURSOR], cores[core, CLOCK] = record, clock


@inner
def _run_pipe(
    agent: int,
    in_time: bool,
    code: Table,
    transfers: Table,
    starts: Line,
    static: Line,
    registers: Table,
    setting: Setting,
    stamps: Line,
    cache: Line,
    cores: Table,
    agents: Table,
    places: Table,
    counters: Table,
    records: Table,
    accounts: Table,
    due: Line,
    awake: Line,
) -> None:
    """Let a pipe take instructions until it must sleep; `in_time`, if it is the first of all to act."""
    core = agent // PIPES
    place, held = agents[agent, HEAD], agents[agent, HELD]
    free, drained = agents[agent, FREE], agents[agent, DRAINED]
    while held:
        record = int(places[agent, place])
        item = int(static[record])
        role, slot = code[item, ROLE], int(code[item, SLOT])
        began = max(records[record, ENTERED], free)
        first, done = began, drained
        if role == _EXECUTE:
            latency = 0
            if code[item, TRANSFER]:
                if not in_time:
                    due[agent] = began
                    break
                latency = latency_of(
                    item,
                    record,
                    code[item, PIPE],
                    transfers,
                    starts,
                    registers,
                    setting,
                    stamps,
                    cache,
                )
            busy = code[item, OCCUPANCY]
            free = began + busy
            done = max(began + latency, drained) + busy
            drained = done
            accounts[agent, BUSY] += busy
        elif role == _WAIT:
            if slot >= setting.core_flags and not in_time:
                agents[agent, AWAITED], agents[agent, CAME] = slot, began
                due[agent] = after_flag(began, slot, setting, counters, records)
                break
            first = after_flag(began, slot, setting, counters, records)
            if first == NEVER:
                agents[agent, AWAITED] = slot
                break
            accounts[agent, FLAG] += first - began
            free, done = first, first
        elif role == _BARRIER:
            free = max(began, drained)
            accounts[agent, BARRIER] += free - began
        else:
            free = began
        in_time = False
        records[record, START], records[record, END] = began, free
        records[record, DONE] = max(free, done)
        places[agent, place] = first
        place = 0 if place + 1 == setting.queue_entries else place + 1
        if held == setting.queue_entries:
            wake(core * PIPES, agents, awake)
        held -= 1
        if role == _WAIT:
            take_set(agent, record, slot, setting, agents, counters, records, due)
        elif role == _SET:
            reached = int(code[item, REACHED])
            put_set(reached, record, slot, setting, agents, counters, records, due, awake)
    agents[agent, HEAD], agents[agent, HELD] = place, held
    agents[agent, FREE], agents[agent, DRAINED] = free, drained
    if not held and cores[core, AT_BARRIER]:
        wake(core * PIPES, agents, awake)


@inner
def _earliest(due: Line) -> int:
    """Return the agent that is due first, the one of the lowest number among equals."""
    agent = 0
    for other in range(1, len(due)):
        if due[other] < due[agent]:
            agent = other
    return agent


@inner
def _close(
    setting: Setting, cores: Table, agents: Table, counters: Table, records: Table, accounts: Table
) -> int:
    """Return the cycles of the run and complete its accounts, or -1 if somebody still waits."""
    cycles = 0
    for core in range(len(cores)):
        if cores[core, CURSOR] < cores[core, STOP]:
            return -1
        cycles = max(cycles, cores[core, CLOCK] + cores[core, TAIL])
        accounts[core * PIPES, BUSY] += cores[core, TAIL]
    for agent in range(len(agents)):
        if agents[agent, HELD]:
            return -1
        cycles = max(cycles, agents[agent, DRAINED], agents[agent, FREE])
    for agent in range(len(agents)):
        accounts[agent, IDLE] = cycles
        for cause in range(IDLE):
            accounts[agent, IDLE] -= accounts[agent, cause]
    for slot in range(len(counters)):
        counters[slot, OVERRUN] = overrun(counters[slot, OLDEST], setting.flag_limit, records)
    return cycles
