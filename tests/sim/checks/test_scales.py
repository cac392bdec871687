"""Scales that a product finds must have been put there for its data."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalebox.codegen.executable import Kernel
from scalebox.codegen.lower import lower
from scalebox.ir.errors import SimulationFault
from scalebox.ir.language.text import load_file

from .seeded import (
    MACHINE,
    changed,
    faults_of,
    instructions,
    messages,
    places,
    with_fields,
    without,
)

EXAMPLES = Path(__file__).parents[3] / "examples"
STEP = """
gm_to_l1_nz v0, {row}, x0, l1[0], rows=16, cols=64, l1_rows=16
gm_to_l1_nz v1, {row}, x0, l1[0x4000], rows=16, cols=64, l1_rows=16
pipe_barrier pipe=all
l1_to_l0a l1[0], l0a[{a}], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1
{scales}
l1_to_l0b l1[0x8000], l0b[0], bits=b8, k=64, n=16, src_k=64
l1_to_scale_b l1[0x4000], scale_b[0], row_boxes=1, col_boxes=1, src_pitch=1
pipe_barrier pipe=all
mad_mx l0c[0], l0a[{a}], l0b[0], bias[0], m=16, k=64, n=16, a_type=e4m3, b_type=e4m3, init=zero
pipe_barrier pipe=all
"""
SCALES = "l1_to_scale_a l1[0x4000], scale_a[{at}], row_boxes=1, col_boxes=1, src_pitch=1"


def kernel_of(bench: Any, *steps: tuple[int, str, int]) -> Kernel:
    """Return a kernel of steps: the slot of data in L0A, what moves its scales, and a row of a."""
    params = [bench.tensor(name, "E4M3", (64, 64)) for name in "ab"]
    views = [bench.plain(number, 8, 64, 64) for number in range(2)]
    text = "".join(
        f"movi x1, {row}" + STEP.format(a=slot, scales=scales, row="x1")
        for slot, scales, row in steps
    )
    return bench.kernel(text, params, views)


def scales(at: int) -> str:
    return SCALES.format(at=at)


def told(bench: Any, *steps: tuple[int, str, int]) -> list[str]:
    return [each for each in messages(kernel_of(bench, *steps)) if "scales of a product" in each]


# --------------------------------------------------------------------------- written by hand


def test_scales_at_their_data_s_address_over_sixteen_are_right(bench: Any) -> None:
    steps = [(0x8000, scales(0x800), 0), (0, scales(0), 16), (0x8000, scales(0x800), 32)]
    assert faults_of(kernel_of(bench, *steps)) == []


@pytest.mark.parametrize("wrong", [0x80, 0xC00, 0], ids=["shifted twice", "another slot", "zero"])
def test_scales_that_went_elsewhere_are_told_with_the_place(bench: Any, wrong: int) -> None:
    kernel = kernel_of(bench, (0x8000, scales(wrong), 0))
    (fault,) = faults_of(kernel)
    assert (
        "has its left operand at byte 0x8000 of L0A and finds at byte 0x800 of SCALE_A nothing"
        in (fault.message)
    )
    (move,), (mad,) = places(kernel, "l1_to_scale_a"), places(kernel, "mad_mx")
    assert f"instruction {move} (l1_to_scale_a" in (fault.note or "")
    assert f"put scales at byte {wrong:#x}, for data at byte {wrong << 4:#x}" in (fault.note or "")
    assert str(fault.span) == f"kernel.py:{mad + 1}:1"
    assert f"[kernel.py:{move + 1}:1]" in (fault.note or "")


def test_scales_at_the_address_itself_are_not_shifted(bench: Any) -> None:
    (message,) = told(bench, (0x200, scales(0x200), 0))
    assert "at byte 0x200 of L0A and finds at byte 0x20 of SCALE_A nothing" in message


def test_scales_that_are_missing_for_new_data(bench: Any) -> None:
    kernel = kernel_of(bench, (0x8000, scales(0x800), 0), (0x8000, "nop", 16))
    (fault,) = faults_of(kernel)
    first, second = places(kernel, "mad_mx")
    assert f"instruction {second} (mad_mx" in fault.message
    assert "put there for the data before" in fault.message
    assert f"with which instruction {first} (mad_mx" in fault.message


def test_scales_that_went_to_the_other_slot(bench: Any) -> None:
    """The second step's scales go to the first slot; the third one's data is in the second slot."""
    right = [(0, scales(0), 0), (0x8000, scales(0x800), 16), (0x8000, scales(0x800), 32)]
    assert told(bench, *right) == []
    (message,) = told(bench, *right[:2], (0x8000, scales(0), 32))
    assert "put there for the data before" in message


def test_the_right_operand_is_held_to_the_same(bench: Any) -> None:
    kernel = kernel_of(bench, (0, scales(0), 0))
    (move,), (mad,) = places(kernel, "l1_to_scale_b"), places(kernel, "mad_mx")
    moved = with_fields(kernel, move, dst=0x40)
    (message,) = messages(moved)
    assert (
        "has its right operand at byte 0x0 of L0B and finds at byte 0x0 of SCALE_B nothing"
        in message
    )
    assert f"instruction {mad}" in message


def test_the_same_data_may_be_used_again_with_its_scales(bench: Any) -> None:
    kernel = kernel_of(bench, (0, scales(0), 0))
    (mad,) = places(kernel, "mad_mx")
    again = changed(kernel, {len(kernel.program) - 2: instructions(kernel)[mad]})
    assert faults_of(again) == []
    assert told(bench, (0, scales(0), 16), (0, "nop", 16)) == []  # moved anew, and the same


PANEL = """
movi x1, {row}
gm_to_l1_nz v0, x1, x0, l1[{at}], rows=16, cols=128, l1_rows=16
pipe_barrier pipe=all
l1_to_l0a l1[{part}], l0a[0], row_boxes=1, col_boxes=2, src_pitch=1, dst_pitch=1
pipe_barrier pipe=all
mad_mx l0c[0], l0a[0], l0b[0], bias[0], m=16, k=64, n=16, a_type=e4m3, b_type=e4m3, init=zero
"""


@pytest.mark.parametrize(
    ("then", "count"),
    [
        ((0, 0x8000, 0), 0),  # the same data over another place of L1
        ((0, 0x8800, 0), 0),
        ((16, 0x8000, 0), 1),  # other data over it
        ((16, 0, 0), 1),
        ((0, 0x8000, 0x400), 1),  # another part of the same data
        ((0, 0, 0x400), 1),
    ],
)
def test_data_is_known_by_its_place_in_global_memory_not_in_l1(
    bench: Any, then: tuple[int, int, int], count: int
) -> None:
    """A part of the first panel in L1 is touched by itself, which cuts it into smaller cells."""
    params = [bench.tensor("a", "E4M3", (64, 128))]
    scales_of_both = (
        "l1_to_bias l1[0x40], bias[0x40], bytes=64\n"
        "l1_to_scale_a l1[0x4000], scale_a[0], row_boxes=1, col_boxes=1, src_pitch=1\n"
        "l1_to_scale_b l1[0x4000], scale_b[0], row_boxes=1, col_boxes=1, src_pitch=1"
    )
    panels = [PANEL.format(row=row, at=at, part=at + skip) for row, at, skip in ((0, 0, 0), then)]
    text = f"{scales_of_both}\npipe_barrier pipe=all{panels[0]}pipe_barrier pipe=all{panels[1]}"
    found = messages(bench.kernel(text, params, [bench.plain(0, 8, 64, 128)]))
    assert len(found) == count
    assert all("other data stands there now" in each for each in found)


@pytest.mark.parametrize("options", [{}, {"timing": False}, {"functional": False}])
def test_it_is_a_fault_in_every_kind_of_run(bench: Any, options: dict[str, bool]) -> None:
    kernel = kernel_of(bench, (0x8000, scales(0x80), 0))
    buffers = dict.fromkeys("ab", np.zeros(4096, np.uint8))
    with pytest.raises(SimulationFault, match="scales of a product"):
        bench.run(kernel, buffers, **options)


# --------------------------------------------------------------------------- compiled


@cache
def compiled(name: str) -> Kernel:
    program = load_file(EXAMPLES / f"{name}.py", params={}).program
    (kernel,) = lower(program, MACHINE).executable.kernels
    return kernel


def scale_moves(kernel: Kernel) -> list[int]:
    found = instructions(kernel)
    return [n for n, each in enumerate(found) if each.mnemonic.startswith("l1_to_scale")]


@pytest.mark.parametrize("name", ["mx_matmul", "mx_fp4", "mx_tiled", "mx_mixed_fp8", "mx_gemv"])
def test_each_scale_move_of_a_compiled_kernel_that_goes_elsewhere_is_noticed(name: str) -> None:
    kernel = compiled(name)
    assert messages(kernel) == []
    for index in scale_moves(kernel):
        at = instructions(kernel)[index]["dst"]
        for wrong in {at >> 4 & ~31, (at << 4) % 0x1000, (at + 0x400) % 0x1000} - {at}:
            found = messages(with_fields(kernel, index, dst=wrong))
            assert any("scales of a product" in each for each in found), (index, at, wrong)


@pytest.mark.parametrize("name", ["mx_matmul", "mx_fp4", "mx_tiled", "mx_mixed_fp8", "mx_gemv"])
def test_each_scale_move_that_is_missing_is_noticed(name: str) -> None:
    kernel = compiled(name)
    for index in scale_moves(kernel):
        assert any("scales of a product" in each for each in messages(without(kernel, {index})))


def test_a_product_that_takes_its_data_from_elsewhere_finds_no_scales_of_its_own() -> None:
    kernel = compiled("mx_matmul")
    for index in places(kernel, "mad_mx"):
        wrong = instructions(kernel)[index]["a"] ^ 0x8000
        assert any("scales" in each for each in messages(with_fields(kernel, index, a=wrong)))


def test_scales_of_another_tile_are_named() -> None:
    """Two products in two slots; the scales of the second are put where those of the first stand."""
    kernel = compiled("mx_matmul")
    program = instructions(kernel)
    moves = places(kernel, "l1_to_scale_a")
    first, second = moves[:2]
    assert program[first]["dst"] != program[second]["dst"]
    mads = places(kernel, "mad_mx")
    wrong = with_fields(kernel, mads[1], a=program[mads[0]]["a"])
    assert any("not 'as_" in each or "not 'a" in each for each in messages(wrong))
