"""The closed forms against the published cost model's worked numbers and hand arithmetic."""

from typing import Any

import pytest

from scalebox.codegen.executable import Layout, View
from scalebox.codegen.isa.vocabulary import Space
from scalebox.ir.errors import ExecutableError
from scalebox.ir.target import load_target
from scalebox.sim import costs


@pytest.mark.parametrize(
    ("m", "k", "n", "bits", "cycles"),
    [
        (64, 128, 128, 8, 25 + 4 * 4 * 8),
        (128, 128, 256, 8, 25 + 8 * 4 * 16),
        (256, 256, 256, 4, 25 + 16 * 4 * 16),
        (1, 1, 1, 8, 26),
        (17, 33, 17, 8, 25 + 2 * 2 * 2),
        (17, 65, 17, 4, 25 + 2 * 2 * 2),
    ],
)
def test_a_mad_takes_its_head_and_a_cycle_a_step(
    bench: Any, m: int, k: int, n: int, bits: int, cycles: int
) -> None:
    assert costs.mad_cycles(bench.target, m=m, k=k, n=n, bits=bits) == cycles


@pytest.mark.parametrize(
    ("space", "size", "cycles"),
    [
        (Space.L0A, 8192, 49),  # 9 + 39.7
        (Space.L0B, 16384, 83),  # 9 + 73.2
        (Space.SCALE_A, 22, 10),
        (Space.SCALE_B, 1024, 56),  # 9 + 46.5
        (Space.BIAS, 512, 25),
    ],
)
def test_a_transfer_from_l1_takes_a_fixed_time_and_its_bytes(
    bench: Any, space: Space, size: int, cycles: int
) -> None:
    assert costs.l1_load_cycles(bench.target, size_bytes=size, to=space) == cycles


@pytest.mark.parametrize(
    ("size", "rows", "cycles"),
    [
        (1, 1, 2),  # 0.01 + 1.7
        (128, 1, 3),  # 1 + 1.7
        (166, 1, 3),  # 1.297 + 1.7
        (167, 1, 4),  # 1.305 + 1.7
        (8192, 1, 66),  # 64 + 1.7
        (65536, 128, 730),  # 512 + 217.6: 128 rows of 512 bytes, 90 bytes a cycle
        (65536, 256, 948),  # 512 + 435.2: 256 rows of 256 bytes, 69 bytes a cycle
    ],
)
def test_a_load_takes_its_bytes_and_its_rows(bench: Any, size: int, rows: int, cycles: int) -> None:
    assert costs.gm_load_cycles(bench.target, size_bytes=size, rows=rows) == cycles


@pytest.mark.parametrize(
    ("rows", "cols", "cycles"),
    [
        (64, 128, 638),  # 343.4 + 64 * 4.59
        (128, 256, 1016),  # a row takes 4 * 256 / 195 = 5.25
        (1, 24, 349),  # three eighths: 0.26 * 2 more a row
        (16, 33, 434),  # five eighths: 343.4 + 16 * (4.59 + 0.26 * 4)
    ],
)
def test_a_store_from_the_accumulator_takes_a_fixed_time_and_its_rows(
    bench: Any, rows: int, cols: int, cycles: int
) -> None:
    assert costs.drain_cycles(bench.target, rows=rows, cols=cols) == cycles


def test_the_constants_fitted_to_the_vendors_simulator_give_its_worked_example() -> None:
    """A tile of 64 x 128 x 128 in FP8."""
    machine = load_target("a5-vendor-sim")
    assert costs.mad_cycles(machine, m=64, k=128, n=128, bits=8) == 153
    assert costs.l1_load_cycles(machine, size_bytes=64 * 128, to=Space.L0A) == 40  # 39.7
    assert costs.l1_load_cycles(machine, size_bytes=128 * 128, to=Space.L0B) == 74  # 73.2
    assert costs.drain_cycles(machine, rows=64, cols=128) == 1436  # 343.4 + 64 * 512 / 30
    assert costs.drain_cycles(machine, rows=64, cols=32) == 638  # 343.4 + 64 * 4.59
    assert costs.drain_cycles(machine, rows=16, cols=24) == 426  # 343.4 + 16 * (4.59 + 0.26 * 2)


def test_a_launch_takes_three_microseconds(bench: Any) -> None:
    assert costs.launch_cycles(bench.target) == 4950


def test_bytes_of_every_kind_of_transfer(bench: Any) -> None:
    kernel = bench.kernel(
        """
        gm_to_l1_nz v0, x0, x0, l1[0], rows=3, cols=10, l1_rows=16
        gm_to_l1_row v3, x0, x0, l1[0], cols=10
        gm_to_l1_boxes v1, x0, x0, l1[0], ni=2, nj=1, l1_nj=1
        gm_to_l1_nz_boxes v4, x0, x0, l1[0], col_boxes=2, row_boxes=3, dst_pitch=4
        l1_to_l0a l1[0], l0a[0], row_boxes=2, col_boxes=3, src_pitch=2, dst_pitch=2
        l1_to_l0b l1[0], l0b[0], bits=b4, k=65, n=17, src_k=80
        l1_to_scale_b l1[0], scale_b[0], row_boxes=2, col_boxes=3, src_pitch=3
        l1_to_bias l1[0], bias[0], bytes=40
        l0c_to_gm v2, x0, x0, l0c[0], rows=3, cols=10, src_rows=16, convert=bf16
        """,
        [
            bench.tensor("a", "E2M1", (32, 32)),
            bench.tensor("s", "E8M0", (32, 2)),
            bench.tensor("c", "BF16", (32, 32), "out"),
            bench.tensor("bias", "FP32", (1, 32)),
            bench.tensor("z", "E4M3", (64, 64)),
        ],
        [
            bench.plain(0, 4, 32, 32),
            bench.boxes(1, 32, 2),
            bench.plain(2, 16, 32, 32),
            bench.plain(3, 32, 1, 32),
            View(4, Layout.NZ, 8, (1, 2, 4, 16, 32), (4096, 2048, 512, 32, 1)),
        ],
    )
    assert costs.moved_bytes(kernel).tolist() == [15, 40, 64, 3072, 3072, 2048, 192, 40, 60, 0]
    assert [costs.path_of(each) for each in kernel.program] == [
        "GM->L1",
        "GM->L1",
        "GM->L1",
        "GM->L1",
        "L1->L0A",
        "L1->L0B",
        "L1->SCALE_B",
        "L1->BIAS",
        "L0C->GM",
        None,
    ]
    assert costs.macs(kernel).sum() == 0


def test_a_pair_of_types_that_the_machine_lacks_is_refused(bench: Any) -> None:
    kernel = bench.kernel(
        "mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=64, n=16, a_type=e5m2, b_type=e4m3, "
        "init=zero"
    )
    target = bench.target.with_settings({"mad_pairs": [["E4M3", "E4M3"]]})
    with pytest.raises(ExecutableError) as caught:
        costs.occupancy(kernel, target)
    assert str(caught.value) == (
        "Instruction 0 (mad_mx) of kernel 'k' must multiply a pair of types that the machine 'a5' "
        "has, not E5M2 x E4M3. [kernel.py:1:1]"
    )
