"""Bounds by hand arithmetic, and no run that beats one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.vocabulary import CoreKind, Pipe
from scalebox.ir.target import Target
from scalebox.sim.pipes.tables import BUSY
from scalebox.sim.report import SimResult
from scalebox.sim.roofline import Column, Roofline, executed_work, instruction_work, roofline

WAY = """
    gm_to_l1_nz v0, x0, x0, l1[0], rows=64, cols=128, l1_rows=64
    l1_to_l0a l1[0], l0a[0], row_boxes=4, col_boxes=4, src_pitch=4, dst_pitch=4
    l1_to_l0b l1[0], l0b[0], bits=b8, k=128, n=128, src_k=128
    l1_to_scale_a l1[0], scale_a[0], row_boxes=4, col_boxes=2, src_pitch=2
    mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=64, k=128, n=128, a_type=e4m3, b_type=e4m3, init=zero
    mad l0c[0], l0a[0], l0b[0], bias[0], m=16, k=16, n=16, a_type=fp32, b_type=fp32, init=zero
    l0c_to_gm v1, x0, x0, l0c[0], rows=64, cols=128, src_rows=64, convert=bf16
"""
CUBE, VECTOR = CoreKind.AIC, CoreKind.AIV
EXP = "v_unary ub[0], ub[0], op=exp, type=fp32, rows=16, cols=64, dst_pitch=8, src_pitch=8"


def kernel(bench: Any, text: str) -> Any:
    params = [bench.tensor("a", "E4M3", (64, 128)), bench.tensor("c", "BF16", (64, 128), "out")]
    return bench.kernel(text, params, [bench.plain(0, 8, 64, 128), bench.plain(1, 16, 64, 128)])


def work(rows: Sequence[Mapping[Column, float]]) -> Any:
    return np.array([[row.get(column, 0.0) for column in Column] for row in rows])


def test_the_work_of_an_instruction_is_what_it_takes_at_its_best(bench: Any) -> None:
    table = instruction_work(kernel(bench, WAY), bench.target)
    wanted = work(
        [
            {Column.GM_BYTES: 8192, Column.LOAD_CYCLES: 8192 / 128 + 1.7},
            {Column.MTE1_CYCLES: 8192 / 206.3},
            {Column.MTE1_CYCLES: 16384 / 223.8},
            {Column.MTE1_CYCLES: 256 / 22},
            {Column.CUBE_CYCLES: 4 * 4 * 8},
            {Column.CUBE_CYCLES: 8 * 2},
            {Column.DRAIN_CYCLES: 64 * 4.59, Column.GM_BYTES: 16384},
            {},
        ]
    )
    np.testing.assert_allclose(table, wanted, rtol=1e-15)
    vector = bench.kernel(EXP, core=CoreKind.AIV)
    assert instruction_work(vector, bench.target)[0, Column.VECTOR_CYCLES] == 16


def test_the_rows_of_a_transfer_are_work_beside_its_bytes(bench: Any) -> None:
    """Half of the columns of a matrix are rows apart; from and to UB as into L1."""
    load = "gm_to_l1_nz v0, x0, x0, l1[0], rows=64, cols=64, l1_rows=64"
    made = bench.kernel(load, [bench.tensor("a", "E4M3", (64, 128))], [bench.plain(0, 8, 64, 128)])
    line, *_ = instruction_work(made, bench.target)
    assert line[Column.LOAD_CYCLES] == pytest.approx(64 * 64 / 128 + 64 * 1.7)
    store = "ub_to_gm v0, x0, x0, ub[0], rows=16, cols=64, pitch=8"
    params = [bench.tensor("y", "FP32", (16, 128), "out")]
    made = bench.kernel(store, params, [bench.plain(0, 32, 16, 128)], core=CoreKind.AIV)
    line, *_ = instruction_work(made, bench.target)
    assert line[Column.STORE_CYCLES] == pytest.approx(16 * 256 / 128 + 16 * 1.7)
    assert line[Column.LOAD_CYCLES] == 0


def test_the_work_of_a_core_is_that_of_all_it_executes(bench: Any) -> None:
    made = kernel(bench, WAY)
    parts = [(1, made, np.array([0, 4, 4])), (2, made, np.array([4])), (1, made, np.array([0]))]
    found = executed_work(parts, bench.target, cores=3)
    wanted = work(
        [
            {},
            {
                Column.GM_BYTES: 2 * 8192,
                Column.LOAD_CYCLES: 2 * (64 + 1.7),
                Column.CUBE_CYCLES: 256,
            },
            {Column.CUBE_CYCLES: 128},
        ]
    )
    np.testing.assert_array_equal(found, wanted)


def test_what_cores_have_for_themselves_is_shared_out_and_what_they_share_is_added(
    bench: Any,
) -> None:
    """Of four cube cores two have mads, and three move bytes; L2 and HBM see the bytes of all."""
    rows = [
        {Column.CUBE_CYCLES: 1000, Column.GM_BYTES: 128_000},
        {Column.CUBE_CYCLES: 501, Column.GM_BYTES: 64_000},
        {Column.DRAIN_CYCLES: 40, Column.GM_BYTES: 98_000},
        {},
    ]
    found = roofline(work(rows), [CUBE] * 4, bench.target, hbm_bytes=97_001)
    assert found.bounds == {
        "cube": 751,  # 1501 / 2
        "drain": 40,
        "GM port": 756,  # 290000 / 3 / 128 = 755.2
        "L2": 71,  # 290000 / 4096 = 70.8
        "HBM": 101,  # 97001 / 970 = 100.001
    }
    assert (found.binding, found.cycles) == ("GM port", 756)


def test_what_one_kind_of_core_must_do_is_not_shared_out_among_the_other(bench: Any) -> None:
    """Two clusters: loads bind the cube cores, the port and the stores the vector cores.

    Over all four cores it would be 650 cycles of loads and 64,000 bytes of the port.
    """
    rows = [
        {Column.LOAD_CYCLES: 1000, Column.GM_BYTES: 64_000},
        {Column.LOAD_CYCLES: 300, Column.STORE_CYCLES: 70, Column.GM_BYTES: 96_000},
        {Column.LOAD_CYCLES: 1201, Column.GM_BYTES: 32_000},
        {Column.LOAD_CYCLES: 99, Column.GM_BYTES: 64_000},
    ]
    found = roofline(work(rows), [CUBE, VECTOR] * 2, bench.target)
    assert found.bounds == {
        "GM loads": 1101,  # 2201 / 2
        "UB stores": 70,
        "GM port": 625,  # 160000 / 2 / 128
        "L2": 63,  # 256000 / 4096 = 62.5
    }
    assert found.binding == "GM loads"
    mirrored = roofline(work(rows), [VECTOR, CUBE] * 2, bench.target)
    assert mirrored == found


def test_the_bounds_of_a_mixed_kernel_are_those_of_its_busier_core(bench: Any) -> None:
    """The cube core loads 16 times 8192 bytes, its vector core 2048: the little does not halve it."""
    load = "gm_to_l1_nz v0, x0, x0, l1[0], rows=64, cols=128, l1_rows=64"
    params = [bench.tensor("a", "E4M3", (64, 128)), bench.tensor("y", "E4M3", (64, 128), "out")]
    views = [bench.plain(0, 8, 64, 128), bench.plain(1, 8, 64, 128)]
    text = "\n".join([load] * 16)
    mate = "gm_to_ub v0, x0, x0, ub[0], rows=16, cols=128, pitch=4"
    store = "ub_to_gm v1, x0, x0, ub[0], rows=16, cols=128, pitch=4"
    loads = 1052  # 16 * (8192 / 128 + 1.7) = 1051.2
    port = 1024  # 16 * 8192 / 128
    options: dict[str, Any] = {"functional": False, "checks": "off"}
    target = bench.target.with_settings({"launch_seconds": 0.0})
    alone = bench.run(bench.kernel(text, params, views), target=target, **options)
    bounds = bounds_of(alone, target).bounds
    assert (bounds["GM loads"], bounds["GM port"]) == (loads, port)
    made = bench.mixed(text, f"{mate}\n{store}", params, views)
    both = bench.run(made, target=target, **options)
    assert len(both.cores) == 2
    bounds = bounds_of(both, target).bounds
    assert (bounds["GM loads"], bounds["GM port"]) == (loads, port)
    assert bounds["UB stores"] == 18  # 2048 / 128 + 1.7
    assert bounds["L2"] == 33  # (16 * 8192 + 2 * 2048) / 4096
    assert both.accounts[0, Pipe.MTE2, BUSY] == 16 * 66
    turned = bench.mixed(load, "\n".join([mate] * 64), params, views)
    found = bounds_of(bench.run(turned, target=target, **options), target).bounds
    assert (found["GM loads"], found["GM port"]) == (1133, 1024)  # 64 * (2048 / 128 + 1.7) = 1132.8


def test_a_run_that_moves_nothing_is_bound_by_nothing(bench: Any) -> None:
    found = roofline(np.zeros((2, len(Column))), [CUBE, VECTOR], bench.target)
    assert found == Roofline({})
    assert (found.binding, found.cycles) == (None, 0)


def test_of_equal_bounds_the_first_is_named(bench: Any) -> None:
    rows = [{Column.CUBE_CYCLES: 10, Column.MTE1_CYCLES: 10}]
    assert roofline(work(rows), [CUBE], bench.target).binding == "cube"


def test_a_bound_is_a_whole_number_of_cycles_and_no_noise_makes_it_one_more(bench: Any) -> None:
    for cycles, bound in ((10, 10), (10 + 1e-9, 10), (10.1, 11), (0.1, 1), (1e6, 1_000_000)):
        assert roofline(work([{Column.CUBE_CYCLES: cycles}]), [CUBE], bench.target).cycles == bound
        moved = {Column.GM_BYTES: cycles * 128}
        shared = roofline(work([moved]), [CUBE], bench.target).bounds["GM port"]
        assert shared == (bound if cycles < 1e6 else 999_998)


INSTRUCTIONS = (
    "gm_to_l1_nz v0, x0, x0, l1[0], rows={m}, cols=128, l1_rows=64",
    "gm_to_l1_nz v0, x0, x0, l1[0], rows={m}, cols={h}, l1_rows=64",
    "l1_to_l0a l1[0], l0a[0], row_boxes=4, col_boxes={c}, src_pitch=4, dst_pitch=4",
    "l1_to_l0b l1[0], l0b[0], bits=b8, k=128, n={n}, src_k=128",
    "l1_to_scale_b l1[0], scale_b[0], row_boxes=4, col_boxes={c}, src_pitch=4",
    "l1_to_bias l1[0], bias[0], bytes=64",
    "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m={m}, k=128, n={n}, a_type=e4m3, b_type=e5m2, init=zero",
    "mad l0c[0], l0a[0], l0b[0], bias[0], m={m}, k=17, n={n}, a_type=fp32, b_type=fp32, init=zero",
    "l0c_to_gm v1, x0, x0, l0c[0], rows={m}, cols={n}, src_rows=64, convert=bf16",
)


def rates() -> st.SearchStrategy[float]:
    return st.one_of(st.floats(0.5, 5000.0), st.sampled_from([1.0, 2.0, 128.0, 0.7, 206.3]))


@st.composite
def machines(draw: st.DrawFn, base: Target) -> Target:
    return base.with_settings(
        {
            "launch_seconds": 0.0,
            "l2_bytes": draw(st.sampled_from([0, 1024, 1 << 27])),
            "l2_block_bytes": draw(st.sampled_from([512, 1024])),
            "gm_row_cycles": draw(st.floats(0.0, 3.0)),
            "l2_hit_cycles": draw(st.integers(0, 50)),
            "l2_miss_cycles": draw(st.integers(0, 50)),
            "flag_cycles": draw(st.integers(0, 3)),
            "mte1_instruction_cycles": draw(st.integers(0, 2)),
            "mad_head_cycles": draw(st.integers(0, 2)),
            "mad_8bit_k_elements": draw(st.integers(1, 64)),
            "mad_32bit_passes": draw(st.integers(1, 3)),
            "drain_fixed_cycles": draw(st.floats(0.0, 2.0)),
            "drain_row_cycles": draw(st.floats(0.0, 3.0)),
            "drain_misalignment_cycles": draw(st.floats(0.0, 0.5)),
            **{
                name: draw(rates())
                for name in (
                    "gm_port_bytes_per_cycle",
                    "l2_bytes_per_cycle",
                    "hbm_bytes_per_cycle",
                    "l1_to_l0a_bytes_per_cycle",
                    "l1_to_l0b_bytes_per_cycle",
                    "l1_to_scale_bytes_per_cycle",
                    "l1_to_bias_bytes_per_cycle",
                    "drain_bytes_per_cycle",
                )
            },
        }
    )


def bounds_of(result: SimResult, target: Target) -> Roofline:
    parts = [
        (part.number, part.decoded.kernel, part.stream.static)
        for task in result.tasks
        for part in task.cores
    ]
    assert result.traffic is not None
    work_of_all = executed_work(parts, target, cores=len(result.cores))
    kinds = [name.core.kind for name in result.cores]
    moved = result.traffic.fetched_bytes + result.traffic.written_bytes
    return roofline(work_of_all, kinds, target, hbm_bytes=moved)


@settings(max_examples=60)
@given(data=st.data())
def test_no_run_beats_a_bound(bench: Any, data: st.DataObject) -> None:
    target = data.draw(machines(bench.target))
    line = st.sampled_from(INSTRUCTIONS)
    sizes = st.fixed_dictionaries(
        {
            "m": st.integers(1, 64),
            "n": st.integers(1, 128),
            "c": st.integers(1, 4),
            "h": st.integers(1, 127),
        }
    )
    drawn = data.draw(st.lists(st.tuples(line, sizes), min_size=1, max_size=12))
    text = "\n".join(line.format(**size) for line, size in drawn)
    result = bench.run(kernel(bench, text), target=target, functional=False, checks="off")
    found = bounds_of(result, target)
    assert found.cycles <= result.cycles
