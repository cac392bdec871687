"""The loop that advances the pipes of all cores; `timing` says what it is about.

An agent is a pipe of a core, the scalar unit being its pipe `S`. When an agent does its next instruction
depends on a few things only: when the scalar unit issued it, when its queue had room, which set its
wait takes. So an agent goes on by itself, through all instructions for which these are known, and then
sleeps until another one wakes it (`steps`). Only what the order of time decides is done in that
order, when all agents sleep: transfers, which share their ways and the L2, waits for flags between
cores, of which several pipes may take the same, and the ends and beginnings of tasks. In a cycle,
transfers end before others begin, and tasks begin after all else.

State stands in a few tables of plain integers, which compiled code hands on at little cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...codegen.isa.vocabulary import Pipe
from ...ir.jit import compiled, lean
from ..decode import PIPES
from .agenda import FIRST, NEVER, first_due, new_agenda, set_due
from .dispatch import dispatch, finish, make_idle, make_ready
from .flags import NONE, overrun
from .flows import (
    COMMON_WORDS,
    COUNT,
    FLOW_WORDS,
    IS_STALE,
    PORT_WORDS,
    RATE_WORDS,
    SINCE,
    next_finish,
    take_finished,
)
from .steps import begin_transfer, end_transfer, run_pipe, run_scalar
from .tables import (
    ACCOUNT_WORDS,
    AWAITED,
    AWAKE,
    ENDED,
    IDLE,
    OLDEST,
    OVERRUN,
    WAITS,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from .l2 import Cache
    from .tables import Feed, Plan, Setting, State

    Table = npt.NDArray[np.int64]

_S: Final = int(Pipe.S)
_FLOWS_OF_CORE: Final = PIPES


@compiled
def simulate_pipes(feed: Feed, plan: Plan, setting: Setting, cache: Cache, state: State) -> int:
    """Run all tasks to their ends; return the cycles, or -1 if everybody waits."""
    code, transfers, starts, static, gap, registers = feed
    parts, tasks, groups, edges_of, edges = plan
    links, lines, stored, whole = cache
    cores, agents, places, counters, records, accounts, clusters = state
    flows = np.zeros((len(cores) * _FLOWS_OF_CORE, FLOW_WORDS), np.int64)
    rates = np.zeros((len(flows), RATE_WORDS), np.float64)
    ports = np.zeros((len(cores), PORT_WORDS), np.float64)
    open_, common = np.zeros(len(flows), np.int64), np.zeros(COMMON_WORDS, np.int64)
    dispatcher = len(agents) + len(clusters)
    due = new_agenda(dispatcher + 1)
    ready, idle = new_agenda(len(tasks)), new_agenda(len(clusters))
    awake = np.zeros(len(agents) + 1, np.int64)
    idle_count = len(clusters)
    for cluster in range(len(clusters)):
        make_idle(cluster, idle)
    for group in range(len(groups)):
        if groups[group, WAITS] == 0:
            make_ready(group, groups, ready)
    set_due(dispatcher, 0, due)
    while True:
        now = NEVER
        if awake[0]:
            agent = int(awake[awake[0]])
            awake[0] -= 1
            agents[agent, AWAKE] = 0
        else:
            now = int(due[FIRST])
            if common[COUNT] and not (common[IS_STALE] and now == common[SINCE]):
                end = next_finish(setting, flows, rates, ports, open_, common)
                if end <= now:
                    agent = take_finished(end, flows, rates, common)
                    while agent != NONE:
                        end_transfer(
                            agent, end, code, static, cores, agents, records, accounts, clusters,
                            due, awake,
                        )  # fmt: skip
                        agent = take_finished(end, flows, rates, common)
                    continue
            if now == NEVER:
                break
            agent = first_due(due)
            set_due(agent, NEVER, due)
            if agent == dispatcher:
                idle_count = dispatch(
                    now, idle_count, parts, tasks, cores, agents, accounts, clusters, due, awake,
                    ready, idle,
                )  # fmt: skip
                continue
            if agent >= len(agents):
                cluster = agent - len(agents)
                finish(cluster, now, tasks, groups, edges_of, edges, clusters, ready, idle)
                idle_count += 1
                set_due(dispatcher, now, due)
                continue
        if now != NEVER and agents[agent, AWAITED] == NONE:
            begin_transfer(
                agent, now, code, transfers, starts, static, registers, setting, links, lines, stored,
                whole, flows, rates, common, cores, agents, places, records, awake,
            )  # fmt: skip
            continue
        agents[agent, AWAITED] = NONE
        if agent % PIPES == _S:
            run_scalar(
                agent, now != NEVER, code, static, gap, setting, cores, agents, places, counters,
                records, accounts, clusters, due, awake,
            )  # fmt: skip
        else:
            run_pipe(
                agent, now != NEVER, code, static, setting, cores, agents, places, counters,
                records, accounts, clusters, due, awake,
            )  # fmt: skip
    return _close(setting, tasks, counters, records, accounts)


@lean
def _close(setting: Setting, tasks: Table, counters: Table, records: Table, accounts: Table) -> int:
    """Return the cycles of the run and complete its accounts, or -1 if somebody still waits."""
    cycles = 0
    for task in range(len(tasks)):
        if tasks[task, ENDED] == NONE:
            return -1
        cycles = max(cycles, tasks[task, ENDED])
    for agent in range(len(accounts)):
        accounts[agent, IDLE] = cycles
        for cause in range(ACCOUNT_WORDS):
            if cause != IDLE:
                accounts[agent, IDLE] -= accounts[agent, cause]
    for slot in range(len(counters)):
        counters[slot, OVERRUN] = overrun(counters[slot, OLDEST], setting.flag_limit, records)
    return cycles
