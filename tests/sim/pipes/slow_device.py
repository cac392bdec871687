"""A device that steps through every single cycle, in plain Python and exact fractions."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.sim import decode
from scalebox.sim.decode import Role
from scalebox.sim.pipes import tables
from scalebox.sim.pipes.timing import Job, Program

QUIET = 400
"""Cycles without any event after which nothing will ever happen; longer than all work at once."""

Counter = tuple[object, ...]


@dataclass
class Flow:
    """A transfer under way: cycles that it still takes on its own, and what it needs of whom."""

    core: "Core"
    pipe: int
    record: int
    began: int
    latency: int
    remaining: Fraction
    cap: Fraction
    missed: Fraction


def fair_rates(
    caps: Sequence[Fraction],
    missed: Sequence[Fraction],
    ports: Sequence[object],
    *,
    port: Fraction,
    l2: Fraction,
    hbm: Fraction,
) -> list[Fraction]:
    """Return max-min fair rates: again and again, settle whoever the scarcest thing leaves the least."""
    limits: list[tuple[Fraction, dict[int, Fraction]]] = [
        (l2, {flow: Fraction(1) for flow in range(len(caps))}),
        (hbm, {flow: each for flow, each in enumerate(missed) if each}),
        *((cap, {flow: Fraction(1)}) for flow, cap in enumerate(caps)),
    ]
    for name in set(ports):
        users = {flow: Fraction(1) for flow, each in enumerate(ports) if each == name}
        limits.append((port, users))
    rates: dict[int, Fraction] = {}
    while len(rates) < len(caps):
        scarce: list[tuple[Fraction, dict[int, Fraction]]] = []
        for total, users in limits:
            left = total - sum(rates[flow] * use for flow, use in users.items() if flow in rates)
            open_ = {flow: use for flow, use in users.items() if flow not in rates}
            if open_:
                scarce.append((left / sum(open_.values()), open_))
        level, users = min(scarce, key=lambda each: each[0])
        rates |= dict.fromkeys(users, level)
    return [rates[flow] for flow in range(len(caps))]


class Memory:
    """The L2 and what is under way; a line a block, which is what `blocks` of a core names."""

    def __init__(self, target: Any, capacity: int) -> None:
        self.target, self.capacity = target, capacity
        self.held: OrderedDict[int, tuple[int, bool]] = OrderedDict()
        self.flows: list[Flow] = []
        self._rates: list[Fraction] | None = None

    def access(self, block: int, now: int, size: int, *, is_store: bool) -> tuple[int, Fraction]:
        """Return latency, and bytes of memory for each byte."""
        hit, miss = self.target.l2_hit_cycles, self.target.l2_miss_cycles
        if not self.capacity:
            return (0 if is_store else hit + miss), Fraction(1)
        lines = 0
        there = self.held.pop(block, None)
        if there is None and len(self.held) == self.capacity:
            lines += self.held.popitem(last=False)[1][1]
        latency = 0
        if is_store:
            self.held[block] = (0 if there is None else there[0], True)
        elif there is None:
            lines, latency = lines + 1, hit + miss
            self.held[block] = now + latency, False
        else:
            latency = max(hit, there[0] - now)
            self.held[block] = there
        return latency, Fraction(lines * self.target.l2_block_bytes, size)

    def begin(self, flow: Flow) -> None:
        self.flows.append(flow)
        self._rates = None

    def pass_cycle(self) -> None:
        if self._rates is None:
            self._rates = fair_rates(
                [flow.cap for flow in self.flows],
                [flow.missed for flow in self.flows],
                [id(flow.core) for flow in self.flows],
                port=Fraction(self.target.gm_port_bytes_per_cycle),
                l2=Fraction(self.target.l2_bytes_per_cycle),
                hbm=Fraction(self.target.hbm_bytes_per_cycle),
            )
        for flow, rate in zip(self.flows, self._rates, strict=True):
            flow.remaining -= rate / flow.cap

    def end_flows(self, now: int) -> None:
        for flow in [flow for flow in self.flows if flow.remaining <= 0]:
            self.flows.remove(flow)
            self._rates = None
            flow.core.end_flow(flow, now)


@dataclass
class Stepped:
    """One pipe."""

    queue: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    free: int = 0
    drained: int = 0
    is_flowing: bool = False


class Core:
    """Pipes, queues and flags of one core at one task, one cycle after another."""

    def __init__(
        self, program: Program, blocks: Mapping[int, int], device: "Device",
        flags: dict[Counter, list[int]], begin: int,
    ) -> None:  # fmt: skip
        self.program, self.decoded, self.stream = program, program.decoded, program.stream
        self.blocks, self.device, self.flags = blocks, device, flags
        self.pipes = {pipe: Stepped() for pipe in range(1, decode.PIPES)}
        self.times = np.zeros((len(self.stream), 3), np.int64)
        self.memory_cycles = np.zeros(decode.PIPES, np.int64)
        self.next, self.scalar_free = 0, begin

    @property
    def has_ended(self) -> bool:
        idle = not any(p.queue or p.is_flowing for p in self.pipes.values())
        return self.next == len(self.stream) and idle

    @property
    def end(self) -> int:
        ends = [p.drained for p in self.pipes.values()] + [p.free for p in self.pipes.values()]
        return max(self.scalar_free + self.stream.tail, *ends)

    def counter(self, item: int) -> Counter:
        slot = int(self.decoded.flags[item])
        if slot < decode.PIPE_FLAG_SLOTS:
            return (self.program.core, slot)
        return ("between", *decode.core_flag_of(slot, self.program.core))

    def is_timed(self, item: int) -> bool:
        """Whether an instruction comes after all else of its cycle, since others may compete."""
        is_between = int(self.decoded.flags[item]) >= decode.PIPE_FLAG_SLOTS
        return item in self.blocks or (is_between and self.decoded.role[item] == Role.WAIT)

    def set_flag(self, item: int, done: int) -> None:
        self.flags.setdefault(self.counter(item), []).append(done)

    def take_flag(self, item: int) -> bool:
        counter, target = self.counter(item), self.device.target
        fired = self.flags.get(counter, [])
        cycles = target.core_flag_cycles if counter[0] == "between" else target.flag_cycles
        if not fired or min(fired) + cycles > self.device.now:
            return False
        fired.remove(min(fired))
        return True

    def acts(self, *, timed: bool) -> bool:
        """Let the first agent act that can, of those that do something timed or of the others."""
        return self.scalar_acts(timed) or any(self.pipe_acts(pipe, timed) for pipe in self.pipes)

    def scalar_acts(self, timed: bool) -> bool:
        if self.next == len(self.stream):
            return False
        now = self.device.now
        began = self.scalar_free + int(self.stream.gap[self.next])
        item = int(self.stream.static[self.next])
        pipe, role = int(self.decoded.pipe[item]), int(self.decoded.role[item])
        if now < began or timed != (pipe == Pipe.S and self.is_timed(item)):
            return False
        if pipe != Pipe.S:
            queue = self.pipes[pipe].queue
            if len(queue) == self.device.target.queue_entries:
                return False
            queue.append((self.next, now))
        else:
            idle = all(
                not p.queue and not p.is_flowing and p.drained <= now for p in self.pipes.values()
            )
            if role == Role.BARRIER_ALL and not idle:
                return False
            if role == Role.WAIT and not self.take_flag(item):
                return False
            if role == Role.SET:
                self.set_flag(item, now)
            self.times[self.next] = began, now, now
        self.next += 1
        self.scalar_free = now
        return True

    def pipe_acts(self, number: int, timed: bool) -> bool:
        pipe, now = self.pipes[number], self.device.now
        if not pipe.queue or pipe.is_flowing or now < pipe.free:
            return False
        record, entered = pipe.queue[0]
        item = int(self.stream.static[record])
        role = int(self.decoded.role[item])
        if timed != self.is_timed(item) or (role == Role.WAIT and not self.take_flag(item)):
            return False
        began, end = max(entered, pipe.free), now
        if item in self.blocks:
            assert began == now
            self.begin_flow(number, record, item)
            pipe.queue.pop(0)
            return True
        if role == Role.EXECUTE:
            busy = int(self.program.code[item, tables.OCCUPANCY])
            end = now + busy
            pipe.drained = max(now, pipe.drained) + busy
        elif role == Role.BARRIER:
            end = max(now, pipe.drained)
        done = now if role == Role.WAIT else max(end, pipe.drained)
        if role == Role.SET:
            self.set_flag(item, done)
        pipe.free = end
        pipe.queue.pop(0)
        self.times[record] = began, end, done
        return True

    def begin_flow(self, number: int, record: int, item: int) -> None:
        memory, now = self.device.memory, self.device.now
        cycles, size = (
            int(self.program.code[item, word]) for word in (tables.OCCUPANCY, tables.BYTES)
        )
        is_store = number != Pipe.MTE2
        latency, missed = memory.access(self.blocks[item], now, size, is_store=is_store)
        cap = Fraction(size, cycles)
        memory.begin(Flow(self, number, record, now, latency, Fraction(cycles), cap, missed))
        self.pipes[number].is_flowing = True

    def end_flow(self, flow: Flow, now: int) -> None:
        pipe, took = self.pipes[flow.pipe], now - flow.began
        pipe.is_flowing = False
        pipe.free = now
        pipe.drained = max(flow.began + flow.latency, pipe.drained) + took
        self.times[flow.record] = flow.began, now, max(now, pipe.drained)
        item = int(self.stream.static[flow.record])
        busy = int(self.program.code[item, tables.OCCUPANCY])
        self.memory_cycles[flow.pipe] += took - busy


@dataclass
class Run:
    """A task that has begun."""

    cluster: int
    begin: int
    cores: list[Core]
    flags: dict[Counter, list[int]]
    end: int = -1


class Device:
    """Clusters, the tasks of a launch, the time."""

    def __init__(
        self, target: Any, jobs: Sequence[Job], blocks: Mapping[int, Mapping[int, int]],
        capacity: int,
    ) -> None:  # fmt: skip
        self.target, self.jobs, self.blocks = target, jobs, blocks
        self.memory = Memory(target, capacity)
        self.now = 0
        self.runs: dict[int, Run] = {}

    @property
    def running(self) -> dict[int, Run]:
        """Those that have not ended, by cluster."""
        unsorted = {run.cluster: run for run in self.runs.values() if run.end < 0}
        return dict(sorted(unsorted.items()))

    def step(self) -> bool:
        """Go through the cycles; return whether all tasks came to their ends."""
        last = 0
        while self.now - last < QUIET:
            self.memory.end_flows(self.now)
            while self.acts():
                last = self.now
            for run in self.running.values():
                is_done = all(core.has_ended for core in run.cores)
                if is_done and max(core.end for core in run.cores) == self.now:
                    run.end = last = self.now
            self.dispatch()
            if self.memory.flows:
                last = self.now
            self.memory.pass_cycle()
            self.now += 1
        return all(run.end >= 0 for run in self.runs.values()) and len(self.runs) == len(self.jobs)

    def acts(self) -> bool:
        cores = [core for run in self.running.values() for core in run.cores]
        return any(core.acts(timed=False) for core in cores) or any(
            core.acts(timed=True) for core in cores
        )

    def dispatch(self) -> None:
        ended = {number for number, run in self.runs.items() if run.end >= 0}
        waiting = [n for n in range(len(self.jobs)) if n not in self.runs]
        ready = [n for n in waiting if ended.issuperset(self.jobs[n].depends)]
        idle = [n for n in range(self.target.cores) if n not in self.running]
        while ready and len(idle) >= self.jobs[ready[0]].in_step:
            for _ in range(self.jobs[ready[0]].in_step):
                self.begin(ready.pop(0), idle.pop(0))

    def begin(self, number: int, cluster: int) -> None:
        flags: dict[Counter, list[int]] = {}
        cores = [
            Core(program, self.blocks[id(program)], self, flags, self.now)
            for program in self.jobs[number].programs
        ]
        self.runs[number] = Run(cluster, self.now, cores, flags)
