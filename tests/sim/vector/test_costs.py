"""Steps of the vector core: what a step loads, computes and stores, over ports and issue width."""

from typing import Any

import pytest

from scalebox.codegen.isa.row import Step
from scalebox.codegen.isa.table import ROWS
from scalebox.codegen.isa.vocabulary import CoreKind
from scalebox.sim.costs import occupancy
from scalebox.sim.vector.costs import step_cycles

EXP = "v_unary ub[0], ub[0], op=exp, type=fp32, rows=16, cols=64, dst_pitch=8, src_pitch=8"
ADD = (
    "v_binary ub[0], ub[0], ub[0], op=add, type=fp32, rows=16, cols=64, dst_pitch=8, a_pitch=8, "
    "b_pitch=8"
)
QUANTISE = (
    "v_quant_mx ub[0], ub[4096], ub[0], type=fp32, element=e4m3, rule=floor, rows=16, cols=64, "
    "dst_pitch=2, src_pitch=8, scale_pitch=1"
)


@pytest.mark.parametrize(
    ("step", "cycles"),
    [
        (Step(loads=0, operations=0, stores=1), 1),
        (Step(loads=1, operations=1, stores=1), 1),
        (Step(loads=2, operations=2, stores=1), 1),
        (Step(loads=3, operations=1, stores=1), 2),
        (Step(loads=1, operations=1, stores=2), 2),
        (Step(loads=1, operations=5, stores=2), 3),
    ],
)
def test_a_step_takes_as_long_as_the_busiest_of_two_load_ports_one_store_port_and_issue(
    bench: Any, step: Step, cycles: int
) -> None:
    assert step_cycles(bench.target, step) == cycles


@pytest.mark.parametrize(
    ("settings", "step"),
    [
        ({"vector_load_ports": 1}, 2),
        ({"vector_issue_width": 1}, 1),
        ({"vector_store_ports": 2}, 1),
    ],
)
def test_a_sum_needs_both_load_ports(bench: Any, settings: dict[str, int], step: int) -> None:
    kernel = bench.kernel(ADD, core=CoreKind.AIV)
    target = bench.target.with_settings(settings)
    assert occupancy(kernel, target)[0] == 23 + 16 * step + 7 + 12


def test_exp_of_16_x_64_takes_16_steps_of_a_register(bench: Any) -> None:
    """4096 bytes are 16 registers of 256 bytes: 23 + 16 + 16 + 12."""
    assert occupancy(bench.kernel(EXP, core=CoreKind.AIV), bench.target)[0] == 67


def test_quantising_issues_six_operations_a_step(bench: Any) -> None:
    """16 steps of 3 cycles, 2 operations a cycle: 23 + 48 + 7 + 12."""
    kernel = bench.kernel(QUANTISE, core=CoreKind.AIV)
    assert occupancy(kernel, bench.target)[0] == 90
    narrow = bench.target.with_settings({"vector_issue_width": 1})
    assert occupancy(kernel, narrow)[0] == 23 + 16 * 6 + 7 + 12
    wide = bench.target.with_settings({"vector_issue_width": 8})
    assert occupancy(kernel, wide)[0] == 23 + 16 * 2 + 7 + 12


def test_a_step_says_what_it_takes() -> None:
    assert str(Step(loads=2, operations=1, stores=1)) == "2 loads, 1 operation, 1 store"
    assert str(Step(loads=0, operations=0, stores=1)) == "1 store"


def test_a_step_loads_a_register_for_each_tile_that_it_reads() -> None:
    """But for those that are read and written, and what only fills."""
    operands = {"src", "a", "b", "mask"}
    for row in ROWS:
        if row.step is not None:
            assert row.step.loads == len(operands & {each.name for each in row.fields})
            assert row.step.stores == (2 if row.has("scales") else 1)
