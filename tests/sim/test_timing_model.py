"""The event loop of the pipes against a model that steps through every single cycle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.executable import Layout, View
from scalebox.codegen.isa.vocabulary import ClusterCore, CoreKind, Pipe
from scalebox.sim import costs, decode, timing
from scalebox.sim import pipe_tables as tables
from scalebox.sim.decode import Role
from scalebox.sim.l2 import L2
from scalebox.sim.scalar import resolve
from scalebox.sim.timing import Program

QUIET = 400
"""Cycles without any event after which nothing will ever happen; longer than all work at once."""

BLOCK = 512
"""Bytes of a block of the L2; every view of the kernels lies in one of its own."""

INPUTS = 3
CUBE_WORK = (
    "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=32, n=48, a_type=e4m3, b_type=e4m3, init=zero",
    "l1_to_bias l1[0], bias[0], bytes=32",
    *(f"gm_to_l1_row v{view}, x0, x0, l1[0], cols=64" for view in range(INPUTS)),
    f"l0c_to_gm v{INPUTS}, x0, x0, l0c[0], rows=1, cols=8, src_rows=16, convert=fp32",
)
VECTOR_WORK = (
    "v_unary ub[0], ub[0], op=exp, type=fp32, rows=1, cols=8, dst_pitch=1, src_pitch=1",
    "v_unary ub[0], ub[0], op=neg, type=fp32, rows=9, cols=8, dst_pitch=1, src_pitch=1",
    *(f"gm_to_ub v{view}, x0, x0, ub[0], rows=1, cols=64, pitch=2" for view in range(INPUTS)),
    f"ub_to_gm v{INPUTS}, x0, x0, ub[0], rows=1, cols=8, pitch=1",
    "ub_to_l1 ub[0], l1[0], lines=1, units=1, ub_pitch=1, l1_pitch=1",
)
WORK = {CoreKind.AIC: CUBE_WORK, CoreKind.AIV: VECTOR_WORK}
PIPES = {
    CoreKind.AIC: st.sampled_from(["s", "m", "mte1", "mte2", "fix"]),
    CoreKind.AIV: st.sampled_from(["s", "v", "mte2", "mte3"]),
}


@dataclass
class Stepped:
    """One pipe of the stepping model."""

    queue: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    free: int = 0
    drained: int = 0


Counter = tuple[object, ...]


@dataclass
class Shared:
    """What the cores of the stepping model share: core flags, the cache, the time."""

    target: Any
    flags: dict[Counter, list[int]] = field(default_factory=dict[Counter, list[int]])
    blocks: set[int] = field(default_factory=set[int])
    now: int = 0


class Core:
    """Pipes, queues and flags of one core, one cycle after another."""

    def __init__(self, program: Program, blocks: Mapping[int, int], shared: Shared) -> None:
        self.program, self.decoded, self.stream = program, program.decoded, program.stream
        self.blocks, self.shared = blocks, shared
        self.pipes = {pipe: Stepped() for pipe in range(1, decode.PIPES)}
        self.times = np.zeros((len(self.stream), 3), np.int64)
        self.next, self.scalar_free = 0, 0

    @property
    def has_ended(self) -> bool:
        return self.next == len(self.stream) and not any(p.queue for p in self.pipes.values())

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
        self.shared.flags.setdefault(self.counter(item), []).append(done)

    def take_flag(self, item: int) -> bool:
        counter, target = self.counter(item), self.shared.target
        fired = self.shared.flags.get(counter, [])
        cycles = target.core_flag_cycles if counter[0] == "between" else target.flag_cycles
        if not fired or min(fired) + cycles > self.shared.now:
            return False
        fired.remove(min(fired))
        return True

    def acts(self, *, timed: bool) -> bool:
        """Let the first agent act that can, of those that do something timed or of the others."""
        return self.scalar_acts(timed) or any(self.pipe_acts(pipe, timed) for pipe in self.pipes)

    def scalar_acts(self, timed: bool) -> bool:
        if self.next == len(self.stream):
            return False
        now = self.shared.now
        began = self.scalar_free + int(self.stream.gap[self.next])
        item = int(self.stream.static[self.next])
        pipe, role = int(self.decoded.pipe[item]), int(self.decoded.role[item])
        if now < began or timed != (pipe == Pipe.S and self.is_timed(item)):
            return False
        if pipe != Pipe.S:
            queue = self.pipes[pipe].queue
            if len(queue) == self.shared.target.queue_entries:
                return False
            queue.append((self.next, now))
        else:
            idle = all(not p.queue and p.drained <= now for p in self.pipes.values())
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
        pipe, now = self.pipes[number], self.shared.now
        if not pipe.queue or now < pipe.free:
            return False
        record, entered = pipe.queue[0]
        item = int(self.stream.static[record])
        role = int(self.decoded.role[item])
        if timed != self.is_timed(item) or (role == Role.WAIT and not self.take_flag(item)):
            return False
        began, end = max(entered, pipe.free), now
        if role == Role.EXECUTE:
            busy, latency = int(self.program.code[item, tables.OCCUPANCY]), 0
            if number == Pipe.MTE2:
                missed = self.blocks[item] not in self.shared.blocks
                latency = self.shared.target.l2_hit_cycles
                latency += self.shared.target.l2_miss_cycles if missed else 0
            if item in self.blocks:
                self.shared.blocks.add(self.blocks[item])
            end = now + busy
            pipe.drained = max(now + latency, pipe.drained) + busy
        elif role == Role.BARRIER:
            end = max(now, pipe.drained)
        done = now if role == Role.WAIT else max(end, pipe.drained)
        if role == Role.SET:
            self.set_flag(item, done)
        pipe.free = end
        pipe.queue.pop(0)
        self.times[record] = began, end, done
        return True


def step(cores: Sequence[Core], shared: Shared) -> bool:
    """Go through the cycles; return whether all programs came to their ends."""
    last = 0
    while shared.now - last < QUIET:
        while any(core.acts(timed=False) for core in cores) or any(
            core.acts(timed=True) for core in cores
        ):
            last = shared.now
        shared.now += 1
    return all(core.has_ended for core in cores)


def own_line(kind: CoreKind) -> st.SearchStrategy[str]:
    """Return a line, or two, that concern one core."""
    pairs = st.tuples(PIPES[kind], PIPES[kind]).filter(lambda pair: pair[0] != pair[1])
    flags = st.builds("src={0[0]}, dst={0[1]}, id={1}".format, pairs, st.integers(0, 1))
    return st.one_of(
        st.sampled_from([*WORK[kind], "nop"]),
        flags.map("set_flag {}".format),
        flags.map("wait_flag {}".format),
        flags.map("set_flag {0}\nwait_flag {0}".format),
        st.one_of(PIPES[kind], st.just("all")).map("pipe_barrier pipe={}".format),
    )


@st.composite
def programs(draw: st.DrawFn, cores: Sequence[ClusterCore]) -> list[str]:
    """Return the text of a program for each core; what waits for another core mostly comes later."""
    texts: list[list[str]] = [[] for _ in cores]
    for _ in range(draw(st.integers(0, 24))):
        setter, waiter = (draw(st.integers(0, len(cores) - 1)) for _ in range(2))
        if len(cores) == 1 or draw(st.booleans()):
            texts[setter].append(draw(own_line(cores[setter].kind)))
            continue
        number = draw(st.integers(0, 1))
        what = draw(st.sampled_from(["both", "both", "both", "set", "wait"]))
        if what != "wait":
            pipe = draw(PIPES[cores[setter].kind])
            to = cores[waiter].name.lower()
            texts[setter].append(f"set_core_flag pipe={pipe}, to={to}, id={number}")
        if what != "set":
            pipe = draw(PIPES[cores[waiter].kind])
            of = cores[setter].name.lower()
            texts[waiter].append(f"wait_core_flag pipe={pipe}, of={of}, id={number}")
    return ["\n".join(lines) for lines in texts]


def program(bench: Any, text: str, core: ClusterCore, target: Any) -> Program:
    """Return what `core` runs; view v lies in block v of GM, the last one is the output."""
    views = [View(0, Layout.ND, 8, (1, 64), (64, 1), BLOCK * view) for view in range(INPUTS)]
    kernel = bench.kernel(
        text,
        [bench.tensor("a", "E4M3", (INPUTS, BLOCK)), bench.tensor("c", "FP32", (1, 8), "out")],
        [*views, bench.plain(1, 32, 1, 8)],
        core=core.kind,
    )
    decoded = decode.decode(kernel)
    bound = decode.bind_views(kernel, [0, INPUTS * BLOCK])
    transfers = decode.transfers(decoded)
    return Program(
        core,
        decoded,
        resolve(decoded, ()),
        bound,
        timing.code_of(decoded, core, target, transfers),
        transfers,
        decode.transfer_starts(transfers, decoded, bound),
    )


def blocks_of(program: Program) -> dict[int, int]:
    """Return instruction to the block of GM that it touches."""
    lines = program.decoded.kernel.program
    return {at: each["view"] for at, each in enumerate(lines) if each.row.has("view")}


@pytest.mark.parametrize("count", [1, 2, 3])
@settings(max_examples=70)
@given(
    data=st.data(),
    queue_entries=st.integers(1, 5),
    flag_cycles=st.integers(0, 12),
    core_flag_cycles=st.integers(0, 30),
    hit_cycles=st.sampled_from([0, 3, 40]),
    miss_cycles=st.sampled_from([0, 50]),
    head=st.integers(0, 9),
)
def test_the_event_loop_is_the_cycle_by_cycle_model(
    bench: Any, count: int, data: Any, queue_entries: int, flag_cycles: int, core_flag_cycles: int,
    hit_cycles: int, miss_cycles: int, head: int,
) -> None:  # fmt: skip
    cores = list(ClusterCore)[:count]
    target = bench.target.with_settings(
        {
            "queue_entries": queue_entries,
            "flag_cycles": flag_cycles,
            "core_flag_cycles": core_flag_cycles,
            "l2_hit_cycles": hit_cycles,
            "l2_miss_cycles": miss_cycles,
            "l2_block_bytes": BLOCK,
            "mad_head_cycles": head,
            "gm_port_bytes_per_cycle": 10.0,
            "drain_fixed_cycles": 11.0,
        }
    )
    texts = data.draw(programs(cores))
    running = [program(bench, text, core, target) for text, core in zip(texts, cores, strict=True)]
    timed = timing.run(running, target=target, l2=L2((INPUTS + 1) * BLOCK, BLOCK))

    shared = Shared(target)
    models = [Core(each, blocks_of(each), shared) for each in running]
    assert step(models, shared) == timed.finished
    for number, model in enumerate(models):
        np.testing.assert_array_equal(np.stack(timed.times(number), axis=1), model.times)
        assert timed.issued(number) == model.next
        for pipe, stepped in model.pipes.items():
            assert timed.queue(number, pipe) == [record for record, _ in stepped.queue]
    left = {counter: len(fired) for counter, fired in shared.flags.items() if fired}
    assert left_over(timed, models) == left
    if timed.finished:
        assert timed.cycles == max(model.end for model in models)
        assert (timed.accounts.sum(axis=2) == timed.cycles).all()
        assert (timed.accounts >= 0).all()


def left_over(timed: timing.Timing, models: Sequence[Core]) -> dict[Counter, int]:
    found: dict[Counter, int] = {}
    for line in timed.state.counters[timed.state.counters[:, tables.PENDING] > 0]:
        core, record = timed.place(int(line[tables.LAST_SET]))
        counter = models[core].counter(int(models[core].stream.static[record]))
        found[counter] = int(line[tables.PENDING])
    return found


@pytest.mark.parametrize("limit", [1, 2, 5])
@settings(max_examples=50)
@given(lines=st.lists(st.sampled_from(["set", "set", "wait", "mte1", "m"]), max_size=24))
def test_a_counter_overruns_at_the_first_set_that_it_cannot_hold(
    bench: Any, limit: int, lines: list[str]
) -> None:
    flag = "src=mte1, dst=m, id=0"
    texts = {"set": f"set_flag {flag}", "wait": f"wait_flag {flag}"}
    texts |= {"mte1": CUBE_WORK[1], "m": CUBE_WORK[0]}
    lines += ["wait"] * (lines.count("set") - lines.count("wait"))
    target = bench.target.with_settings({"flag_counter_max": limit})
    running = program(bench, "\n".join(texts[each] for each in lines), ClusterCore.AIC, target)
    timed = timing.run([running], target=target, l2=L2(0, BLOCK))
    if not timed.finished:
        return
    ends = timed.times(0).end
    sets = [at for at, each in enumerate(lines) if each == "set"]
    waits = [int(ends[at]) for at, each in enumerate(lines) if each == "wait"]
    expected = [
        at
        for number, at in enumerate(sets, start=1)
        if number - sum(end <= ends[at] for end in waits) > limit
    ]
    overruns = timed.state.counters[:, tables.OVERRUN]
    assert overruns[overruns >= 0].tolist() == expected[:1]
