"""Transfers that share their ways, by hand arithmetic; fair shares against their definition."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.executable import Executable, HostProgram, Kernel, Output
from scalebox.codegen.host.program import Launch
from scalebox.codegen.isa.vocabulary import CoreKind, Pipe
from scalebox.codegen.scalars.exprs import Const
from scalebox.ir.jit import compiled
from scalebox.sim.device import simulate
from scalebox.sim.pipes import flows, tables
from scalebox.sim.pipes.tables import BUSY, MEMORY, Setting
from scalebox.sim.report import SimResult

ROWS = 2048
PORT = 128  # bytes a cycle, as on the machine a5
LATENCY = 500  # of a miss
# Everything begins at cycle 0 of the launch; a scalar instruction takes a cycle.
QUIET = {
    "launch_seconds": 0.0,
    "gm_row_cycles": 0.0,
    "l2_bytes_per_cycle": 1e6,
    "hbm_bytes_per_cycle": 1e6,
}


def load(row: int, rows: int = 32, space: int = 0) -> str:
    """Return a load of rows of 128 bytes: `rows` cycles on its own."""
    return f"movi x1, {row}\ngm_to_l1_nz v0, x1, x0, l1[{space}], rows={rows}, cols=128, l1_rows={rows}"


def kernel(bench: Any, text: str, name: str = "k", core: CoreKind = CoreKind.AIC) -> Kernel:
    params = [bench.tensor("a", "E4M3", (ROWS, 128)), bench.tensor("c", "FP32", (ROWS, 32), "out")]
    views = [bench.plain(0, 8, ROWS, 128), bench.plain(1, 32, ROWS, 32)]
    return bench.kernel(text, params, views, name, core)


def run(bench: Any, *texts: str, **options: Any) -> SimResult:
    """Run kernels at once, one a cluster."""
    made = [kernel(bench, text, f"k{number}") for number, text in enumerate(texts)]
    return run_kernels(bench, made, **options)


def run_kernels(bench: Any, made: list[Kernel], *, warm: bool = False, **fields: Any) -> SimResult:
    body = tuple(Launch(number, ("a", f"c{number}")) for number in range(len(made)))
    tensor = made[0].tensors[1]
    outs = [dataclasses.replace(tensor, name=f"c{number}") for number in range(len(made))]
    host = HostProgram("main", (made[0].tensors[0], *outs), body, (Output("c", "c0"),))
    executable = Executable("p", "a5", "", tuple(made), (host,), "main")
    target = bench.target.with_settings(QUIET | fields)
    return simulate(executable, {}, target=target, functional=False, warm=warm, checks="off")


def spans(result: SimResult, pipe: str = "MTE2") -> list[tuple[int, int, int]]:
    """Return core, start and end of all that a pipe did."""
    return [(each.core, each.start, each.end) for each in result.timeline if each.pipe == pipe]


def test_two_equal_loads_have_half_of_the_l2_each(bench: Any) -> None:
    result = run(bench, load(0), load(1024), l2_bytes_per_cycle=128.0)
    # From cycle 2 on; 4096 bytes at 64 a cycle.
    assert spans(result) == [(0, 2, 66), (1, 2, 66)]
    for core in (0, 1):
        assert result.accounts[core, Pipe.MTE2, [BUSY, MEMORY]].tolist() == [32, 32]
    # The latency overlaps the bytes: done 64 cycles after it.
    assert result.cycles == 2 + LATENCY + 64


def test_who_comes_later_shares_only_what_is_left(bench: Any) -> None:
    result = run(bench, load(0), "nop\n" * 16 + load(1024), l2_bytes_per_cycle=128.0)
    # Alone up to 18: 16 of 32 done. Together: 32 more cycles for 16. Then the second one alone.
    assert spans(result) == [(0, 2, 50), (1, 18, 66)]


def test_a_slower_flow_leaves_the_others_what_it_cannot_use(bench: Any) -> None:
    # A drain of 32 rows of 128 bytes: 4096 bytes in 64 + 32 · 2 = 128 cycles, 32 a cycle.
    drain = "l0c_to_gm v1, x0, x0, l0c[0], rows=32, cols=32, src_rows=32, convert=fp32"
    fields = {"drain_fixed_cycles": 64.0, "drain_row_cycles": 2.0, "drain_bytes_per_cycle": 1e6}
    result = run(
        bench, f"nop\n{drain}", load(0, 64), load(1024, 64), l2_bytes_per_cycle=160.0, **fields
    )
    # 32 for the drain, 64 for each load: 8192 bytes in 128 cycles.
    assert spans(result, "FIX") == [(0, 2, 130)]
    assert spans(result) == [(1, 2, 130), (2, 2, 130)]
    assert result.accounts[0, Pipe.FIX, MEMORY] == 0


def test_loads_and_stores_of_a_core_share_its_port(bench: Any) -> None:
    drain = "l0c_to_gm v1, x0, x0, l0c[0], rows=32, cols=32, src_rows=32, convert=fp32"
    fields = {"drain_fixed_cycles": 0.0, "drain_row_cycles": 1.0, "drain_bytes_per_cycle": 1e6}
    result = run(bench, f"nop\n{drain}\n{load(0)}", **fields)
    # The drain is alone for two cycles (one for movi), then each has half of the port until the drain
    # has its 30 other cycles of work; then the load is alone with two of its 32 left.
    assert spans(result, "FIX") == [(0, 2, 64)]
    assert spans(result) == [(0, 4, 66)]
    # Other cores have ports of their own.
    apart = run(bench, f"nop\n{drain}", load(0), **fields)
    assert spans(apart, "FIX") == [(0, 2, 34)]
    assert spans(apart) == [(1, 2, 34)]


def test_only_what_misses_is_bound_by_memory(bench: Any) -> None:
    fields = {"hbm_bytes_per_cycle": 32.0}
    result = run(bench, load(0), **fields)
    assert spans(result) == [(0, 2, 2 + 4096 // 32)]
    assert result.traffic == (4096, 4096, 0)
    # Half of it is there already: each byte of the transfer needs half a byte of memory.
    text = f"{load(0, 16)}\npipe_barrier pipe=all\n{load(0, 32)}"
    half = run(bench, text, **fields)
    loads = [each for each in half.timeline if each.pipe == "MTE2"]
    assert [each.end - each.start for each in loads] == [2048 // 32, 4096 // 64]
    assert half.traffic == (2048 + 4096, 4096, 0)


def test_a_hit_goes_on_while_misses_wait_for_memory(bench: Any) -> None:
    wait = "nop\n" * 3000
    hit = f"{load(1024)}\n{wait}{load(1024)}"
    miss = f"{wait}nop\n{load(0)}"
    result = run(bench, hit, miss, hbm_bytes_per_cycle=8.0)
    (_, first), (_, last) = [(s, e) for core, s, e in spans(result) if core == 0]
    assert first == 2 + 4096 // 8
    again = [each for each in spans(result) if each[0] == 0][1]
    assert again[2] - again[1] == 32
    assert [e - s for core, s, e in spans(result) if core == 1] == [4096 // 8]
    assert last == again[2]


def test_two_cores_that_want_one_block_fetch_it_once(bench: Any) -> None:
    result = run(bench, load(0), "nop\n" * 100 + load(0))
    assert result.traffic is not None
    assert result.traffic.fetched_bytes == 4096
    done = [each.args["done_cycle"] - each.end for each in result.timeline if each.pipe == "MTE2"]
    # The second one waits until the miss of the first has passed.
    assert done == [LATENCY, LATENCY - 100]


def test_inputs_may_lie_in_the_cache_before_the_launch(bench: Any) -> None:
    cold, warm = run(bench, load(0)), run(bench, load(0), warm=True)
    assert cold.cycles - warm.cycles == 300
    assert not cold.warm
    assert warm.warm
    assert warm.traffic == (4096, 0, 0)
    # What does not fit is not there: the tensor has 256 KiB, from GM's first line on, 512 bytes in.
    small = run(bench, load(0), load(ROWS - 32), warm=True, l2_bytes=65536)
    done = [each.args["done_cycle"] - each.end for each in small.timeline if each.pipe == "MTE2"]
    assert done == [200, 500]


def test_what_is_stored_goes_to_memory_when_its_block_does(bench: Any) -> None:
    drain = "l0c_to_gm v1, x0, x0, l0c[0], rows=32, cols=32, src_rows=32, convert=fp32"
    text = f"{drain}\npipe_barrier pipe=all\n{load(0)}\npipe_barrier pipe=all\n{load(1024)}"
    kept = run(bench, text)
    assert kept.traffic == (3 * 4096, 2 * 4096, 0)
    pushed = run(bench, text, l2_bytes=65536)
    assert pushed.traffic == (3 * 4096, 2 * 4096, 4096)
    none = run(bench, text, l2_bytes=0)
    assert none.traffic == (3 * 4096, 2 * 4096, 4096)


def test_vector_cores_have_ports_of_their_own(bench: Any) -> None:
    copy = "nop\ngm_to_ub v0, x0, x0, ub[0], rows=32, cols=128, pitch=4"
    cube = kernel(bench, load(0))
    vector = bench.kernel(copy, cube.params, cube.views, "k", CoreKind.AIV, "mate.py")
    mixed = dataclasses.replace(cube, mate=vector)
    result = run_kernels(bench, [mixed])
    assert spans(result) == [(0, 2, 34), (1, 2, 34)]
    narrow = run_kernels(bench, [mixed], l2_bytes_per_cycle=128.0)
    assert spans(narrow) == [(0, 2, 66), (1, 2, 66)]


@pytest.mark.parametrize("blocks", [1, 5, 40])
def test_no_way_carries_more_than_it_can(bench: Any, blocks: int) -> None:
    text = "block_idx x2\nmuli x2, x2, 32\n" + "\n".join(
        f"addi x1, x2, {step}\ngm_to_l1_nz v0, x1, x0, l1[0], rows=32, cols=128, l1_rows=32"
        for step in (0, 64, 128, 0)
    )
    made = kernel(bench, text)
    host = HostProgram(
        "main", made.tensors, (Launch(0, ("a", "c"), (), Const(blocks)),), (Output("c", "c"),)
    )
    executable = Executable("p", "a5", "", (made,), (host,), "main")
    fields = {"launch_seconds": 0.0, "l2_bytes_per_cycle": 700.0, "hbm_bytes_per_cycle": 90.0}
    target = bench.target.with_settings(fields)
    result = simulate(executable, {}, target=target, functional=False)
    traffic = result.traffic
    assert traffic is not None
    assert traffic.l2_bytes == blocks * 4 * 4096 == result.moved["GM->L1"]
    assert traffic.fetched_bytes <= (blocks + 4) * 4096
    assert result.cycles >= traffic.l2_bytes / 700
    assert result.cycles >= traffic.fetched_bytes / 90
    # A transfer cannot be faster than its port.
    for each in result.timeline:
        if each.pipe == "MTE2":
            assert each.end - each.start >= 4096 / PORT


@compiled
def speeds(setting: Setting, table: Any, rates: Any, ports: Any, open_: Any) -> None:
    flows.share(setting, table, rates, ports, open_, len(table))


@settings(max_examples=300, deadline=None)
@given(
    drawn=st.lists(
        st.tuples(
            st.integers(0, 4),
            st.floats(0.5, 200),
            st.sampled_from([0.0, 0.25, 1.0, 8.0]),
        ),
        min_size=1,
        max_size=14,
    ),
    port=st.sampled_from([3.0, 128.0, 1e9]),
    l2=st.sampled_from([2.0, 300.0, 1e9]),
    hbm=st.sampled_from([1.0, 97.0, 1e9]),
)
def test_shares_are_max_min_fair(
    drawn: list[tuple[int, float, float]], port: float, l2: float, hbm: float
) -> None:
    setting = Setting(1, 0, 0, 1, 0, 0, 512, 512, 1, port, l2, hbm)
    table = np.zeros((len(drawn), flows.FLOW_WORDS), np.int64)
    rates = np.zeros((len(drawn), flows.RATE_WORDS))
    table[:, flows.PORT] = [core for core, _, _ in drawn]
    cap = rates[:, flows.CAP] = np.array([each for _, each, _ in drawn])
    missed = rates[:, flows.MISSED] = np.array([each for _, _, each in drawn])
    speeds(setting, table, rates, np.zeros((5, 2)), np.zeros(len(drawn), np.int64))
    rate = rates[:, flows.SPEED] * cap
    assert (rates[:, flows.SPEED] > 0).all()
    assert (rates[:, flows.SPEED] <= 1).all()
    cores = table[:, flows.PORT]
    ways = [(np.ones(len(drawn)), l2), (missed, hbm)]
    ways += [((cores == core).astype(float), port) for core in set(cores.tolist())]
    for use, total in ways:
        assert (use * rate).sum() <= total * (1 + 1e-9)
    # Who could go faster is held by a full way, on which nobody gets more.
    for flow in np.flatnonzero(rates[:, flows.SPEED] < 1 - 1e-9):
        assert any(
            use[flow] > 0
            and (use * rate).sum() >= total * (1 - 1e-9)
            and rate[flow] >= rate[use > 0].max() * (1 - 1e-9)
            for use, total in ways
        )


def test_the_parts_of_every_account_add_up(bench: Any) -> None:
    result = run(bench, load(0), load(1024), f"nop\n{load(64)}", l2_bytes_per_cycle=100.0)
    assert (result.accounts.sum(axis=2) == result.cycles).all()
    assert (result.accounts >= 0).all()
    assert result.accounts.shape[2] == tables.ACCOUNT_WORDS
