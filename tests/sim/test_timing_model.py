"""The event loop of the pipes against a model that steps through every single cycle."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.sim import costs, decode, timing
from scalebox.sim.decode import Role
from scalebox.sim.pipes import Setting
from scalebox.sim.scalar import Stream, resolve

QUIET = 400
"""Cycles without any event after which nothing will ever happen; longer than all work at once."""

WORK = (
    "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=32, n=48, a_type=e4m3, b_type=e4m3, init=zero",
    "l1_to_bias l1[0], bias[0], bytes=32",
    "gm_to_l1_row v0, x0, x0, l1[0], cols=64",
    "l0c_to_gm v1, x0, x0, l0c[0], rows=1, cols=8, src_rows=16, convert=fp32",
)
SOME_PIPES = st.sampled_from(["s", "v", "m", "mte1", "mte2", "fix"])
PAIRS = st.tuples(SOME_PIPES, SOME_PIPES).filter(lambda pair: pair[0] != pair[1])
FLAGS = st.builds("src={0[0]}, dst={0[1]}, id={1}".format, PAIRS, st.integers(0, 1))
LINES = st.one_of(
    st.sampled_from([*WORK, "nop"]),
    FLAGS.map("set_flag {}".format),
    FLAGS.map("wait_flag {}".format),
    FLAGS.map("set_flag {0}\nwait_flag {0}".format),
    st.sampled_from(["s", "m", "mte1", "mte2", "fix", "all"]).map("pipe_barrier pipe={}".format),
)


@dataclass
class Stepped:
    """One pipe of the stepping model."""

    queue: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    free: int = 0
    drained: int = 0


class Model:
    """Pipes, queues and flags, one cycle after another."""

    def __init__(
        self, decoded: decode.Decoded, stream: Stream, occupancy: Any, setting: Setting
    ) -> None:
        self.decoded, self.stream, self.setting = decoded, stream, setting
        self.occupancy = occupancy
        self.pipes = {pipe: Stepped() for pipe in range(1, decode.PIPES)}
        self.flags: dict[int, list[int]] = {}
        self.times = np.zeros((len(stream), 3), np.int64)
        self.next, self.scalar_free = 0, 0
        self.now = 0

    def run(self) -> bool:
        """Return whether the program came to its end."""
        last = 0
        while self.now - last < QUIET:
            while self.scalar_acts() or any(self.pipe_acts(pipe) for pipe in self.pipes):
                last = self.now
            self.now += 1
        return self.next == len(self.stream) and not any(p.queue for p in self.pipes.values())

    def take_flag(self, slot: int) -> bool:
        fired = self.flags.get(slot, [])
        if not fired or fired[0] + self.setting.flag_cycles > self.now:
            return False
        fired.pop(0)
        return True

    def scalar_acts(self) -> bool:
        if self.next == len(self.stream):
            return False
        began = self.scalar_free + int(self.stream.gap[self.next])
        if self.now < began:
            return False
        item = int(self.stream.static[self.next])
        pipe, role = int(self.decoded.pipe[item]), int(self.decoded.role[item])
        slot = int(self.decoded.flags[item])
        if pipe != Pipe.S:
            queue = self.pipes[pipe].queue
            if len(queue) == self.setting.queue_entries:
                return False
            queue.append((self.next, self.now))
        else:
            idle = all(not p.queue and p.drained <= self.now for p in self.pipes.values())
            if role == Role.BARRIER_ALL and not idle:
                return False
            if role == Role.WAIT and not self.take_flag(slot):
                return False
            if role == Role.SET:
                self.flags.setdefault(slot, []).append(self.now)
            self.times[self.next] = began, self.now, self.now
        self.next += 1
        self.scalar_free = self.now
        return True

    def pipe_acts(self, number: int) -> bool:
        pipe, now = self.pipes[number], self.now
        if not pipe.queue or now < pipe.free:
            return False
        record, entered = pipe.queue[0]
        item = int(self.stream.static[record])
        role, slot = int(self.decoded.role[item]), int(self.decoded.flags[item])
        if role == Role.WAIT and not self.take_flag(slot):
            return False
        began, end = max(entered, pipe.free), now
        if role == Role.EXECUTE:
            busy = int(self.occupancy[item])
            latency = self.setting.hit_cycles if number == Pipe.MTE2 else 0
            end = now + busy
            pipe.drained = max(now + latency, pipe.drained) + busy
        elif role == Role.BARRIER:
            end = max(now, pipe.drained)
        done = now if role == Role.WAIT else max(end, pipe.drained)
        if role == Role.SET:
            self.flags.setdefault(slot, []).append(done)
        pipe.free = end
        pipe.queue.pop(0)
        self.times[record] = began, end, done
        return True


@settings(max_examples=100)
@given(
    lines=st.lists(LINES, max_size=24),
    queue_entries=st.integers(1, 5),
    flag_cycles=st.integers(0, 12),
    hit_cycles=st.sampled_from([0, 3, 40]),
    head=st.integers(0, 9),
)
def test_the_event_loop_is_the_cycle_by_cycle_model(
    bench: Any, lines: list[str], queue_entries: int, flag_cycles: int, hit_cycles: int, head: int
) -> None:
    kernel = bench.kernel(
        "\n".join(lines),
        [bench.tensor("a", "E4M3", (1, 64)), bench.tensor("c", "FP32", (1, 8), "out")],
        [bench.plain(0, 8, 1, 64), bench.plain(1, 32, 1, 8)],
    )
    target = bench.target.with_settings(
        {
            "queue_entries": queue_entries,
            "flag_cycles": flag_cycles,
            "l2_hit_cycles": hit_cycles,
            "l2_miss_cycles": 0,
            "mad_head_cycles": head,
            "gm_port_bytes_per_cycle": 10.0,
            "drain_fixed_cycles": 11.0,
        }
    )
    decoded = decode.decode(kernel)
    stream = resolve(decoded, ())
    occupancy, setting = costs.occupancy(kernel, target), timing.setting_of(target)
    transfers = decode.bind_transfers(
        decode.transfers(decoded), decoded, decode.bind_views(kernel, [512, 1536])
    )
    timed = timing.run(
        decoded,
        stream,
        occupancy=occupancy,
        transfers=transfers,
        setting=setting,
        l2=timing.L2(2048, target.l2_block_bytes),
    )
    model = Model(decoded, stream, occupancy, setting)
    assert model.run() == timed.finished
    np.testing.assert_array_equal(np.stack(timed.times, axis=1), model.times)
    left = {slot: len(fired) for slot, fired in model.flags.items() if fired}
    pending = timed.queues.pending
    assert {int(slot): int(pending[slot]) for slot in np.flatnonzero(pending)} == left
    if timed.finished:
        ends = [p.drained for p in model.pipes.values()] + [p.free for p in model.pipes.values()]
        assert timed.cycles == max(model.scalar_free + stream.tail, *ends)
