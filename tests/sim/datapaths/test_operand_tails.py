"""Operands that do not fill their boxes: fills of L1, moves of one row, and sums that may begin anew."""

from typing import Any

import numpy as np
import pytest

from scalebox.codegen.isa.vocabulary import Space
from scalebox.sim.costs import moved_bytes, occupancy
from scalebox.sim.faultcodes import FaultCode

FULL = np.arange(1, 4097, dtype=np.uint32).astype(np.uint8)


@pytest.mark.parametrize(
    ("fields", "starts", "size"),
    [
        ("l1[64], lines=1, units=1, pitch=1", (64,), 32),
        ("l1[32], lines=3, units=2, pitch=2", (32, 96, 160), 64),
        ("l1[512], lines=2, units=14, pitch=64", (512, 2560), 448),
    ],
)
def test_a_fill_sets_its_lines_to_zero_and_nothing_else(
    bench: Any, fields: str, starts: tuple[int, ...], size: int
) -> None:
    core, _, found = bench.apply(f"l1_fill {fields}", preset={Space.L1: FULL})
    expected = FULL.copy()
    for start in starts:
        expected[start : start + size] = 0
    assert not found
    np.testing.assert_array_equal(core.local.view(Space.L1)[: len(FULL)], expected)


def test_what_was_filled_counts_as_written(bench: Any) -> None:
    core, _, _ = bench.apply("l1_fill l1[32], lines=2, units=1, pitch=3")
    written = core.local.written_view(Space.L1)
    assert np.flatnonzero(written).tolist() == [*range(32, 64), *range(128, 160)]


def test_a_row_goes_to_the_first_line_of_each_box(bench: Any) -> None:
    core, _, found = bench.apply(
        "l1_to_l0a_row l1[64], l0a[1024], units=3", preset={Space.L1: FULL}
    )
    expected = np.zeros(4096, np.uint8)
    for unit in range(3):
        expected[1024 + unit * 512 :][:32] = FULL[64 + unit * 32 :][:32]
    assert not found
    np.testing.assert_array_equal(core.local.view(Space.L0A)[:4096], expected)


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_the_scales_of_a_row_go_to_the_first_row_of_each_box(bench: Any, groups: int) -> None:
    core, _, found = bench.apply(
        f"l1_to_scale_a_row l1[32], scale_a[64], groups={groups}", preset={Space.L1: FULL}
    )
    expected = np.zeros(4096, np.uint8)
    for group in range(groups):
        expected[64 + group // 2 * 32 + group % 2] = FULL[32 + group]
    assert not found
    np.testing.assert_array_equal(core.local.view(Space.SCALE_A), expected)
    assert np.count_nonzero(core.local.written_view(Space.SCALE_A)) == groups


@pytest.mark.parametrize(
    "text",
    [
        "l1_to_l0a_row{} l1[{}], l0a[0], units=2{}",
        "l1_to_scale_a_row{} l1[{}], scale_a[0], groups=4{}",
    ],
)
def test_a_register_moves_the_source_of_a_row(bench: Any, text: str) -> None:
    space = Space.L0A if "l0a" in text else Space.SCALE_A
    plain, _, _ = bench.apply(text.format("", 160, ""), preset={Space.L1: FULL})
    moved, _, found = bench.apply(
        "movi x3, 5\n" + text.format("_at", 0, ", x3"), preset={Space.L1: FULL}
    )
    assert not found
    np.testing.assert_array_equal(moved.local.view(space), plain.local.view(space))


@pytest.mark.parametrize(
    ("text", "space"),
    [
        ("l1_fill l1[524256], lines=1, units=2, pitch=2", Space.L1),
        ("l1_fill l1[524256], lines=2, units=1, pitch=1", Space.L1),
        ("l1_to_l0a_row l1[524256], l0a[0], units=2", Space.L1),
        ("l1_to_l0a_row l1[0], l0a[65024], units=2", Space.L0A),
        ("l1_to_scale_a_row l1[524256], scale_a[0], groups=33", Space.L1),
        ("l1_to_scale_a_row l1[0], scale_a[4064], groups=3", Space.SCALE_A),
    ],
)
def test_a_row_and_a_fill_stay_inside_their_memories(bench: Any, text: str, space: Space) -> None:
    _, _, found = bench.apply(text)
    assert [problem.fault[:2] for problem in found] == [(FaultCode.LOCAL_RANGE, space)]


def test_the_last_bytes_of_each_memory_are_there(bench: Any) -> None:
    _, _, found = bench.apply(
        "l1_fill l1[524256], lines=1, units=1, pitch=1\n"
        "l1_to_l0a_row l1[524224], l0a[64512], units=2\n"
        "l1_to_scale_a_row l1[524256], scale_a[4064], groups=2",
        track=False,
    )
    assert not found


@pytest.mark.parametrize("anew", [0, 1, -1])
def test_a_register_says_whether_a_sum_begins_anew(bench: Any, anew: int) -> None:
    ones = np.ones(256, np.float16).view(np.uint8)
    core, _, found = bench.apply(
        f"movi x5, {anew}\n"
        "mad_if l0c[0], l0a[0], l0b[0], x5, m=1, k=16, n=1, a_type=fp16, b_type=fp16",
        preset={
            Space.L0A: ones,
            Space.L0B: ones,
            Space.L0C: np.array([100], np.float32).view(np.uint8),
        },
    )
    assert not found
    assert core.local.view(Space.L0C)[:4].view(np.float32)[0] == (16 if anew else 116)


def test_an_accumulator_that_begins_anew_need_not_have_been_written(bench: Any) -> None:
    ones = np.ones(256, np.float16).view(np.uint8)
    text = "mad_if l0c[0], l0a[0], l0b[0], x5, m=1, k=16, n=1, a_type=fp16, b_type=fp16"
    preset = {Space.L0A: ones, Space.L0B: ones}
    _, _, fresh = bench.apply(f"movi x5, 1\n{text}", preset=preset)
    _, _, held = bench.apply(f"movi x5, 0\n{text}", preset=preset)
    assert not fresh
    assert [problem.fault[:2] for problem in held] == [(FaultCode.UNWRITTEN, Space.L0C)]


def test_costs_go_by_the_bytes_that_move(bench: Any) -> None:
    kernel = bench.kernel(
        "l1_fill l1[0], lines=3, units=5, pitch=5\n"
        "l1_to_l0a_row l1[0], l0a[0], units=128\n"
        "l1_to_scale_a_row l1[0], scale_a[0], groups=128\n"
        "mad_if l0c[0], l0a[0], l0b[0], x0, m=1, k=64, n=32, a_type=fp32, b_type=fp32"
    )
    assert moved_bytes(kernel).tolist()[:3] == [480, 4096, 128]
    # 480 / 32; 9 + 4096 / 206.3; 9 + 128 / 22; 25 + 8 passes of 1 x 2 x 8 steps.
    assert occupancy(kernel, bench.target).tolist()[:4] == [15, 29, 15, 153]
