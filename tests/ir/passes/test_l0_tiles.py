"""The L0 tile chooser: published numbers, one formula with the machine model, and no better tiling missed."""

from dataclasses import replace
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa import table
from scalebox.codegen.isa.vocabulary import Space
from scalebox.ir.passes.l0_tiles import (
    MAD_LIMIT,
    Problem,
    Stays,
    Tiling,
    choose,
    cost,
    drain_cycles,
    fits,
    load_cycles,
    mad_cycles,
    overlapped,
)
from scalebox.ir.target import Target, load_target
from scalebox.sim import costs

A5 = load_target("a5")


# --------------------------------------------------------------------------- published numbers


def test_the_worked_example_of_the_cost_model() -> None:
    """64 x 128 x 128 in FP8: 153 cycles of the cube, 39.7 and 73.2 of the moves, 1436 of the store."""
    assert mad_cycles(A5, m=64, k=128, n=128, bits=8) == 25 + 4 * 4 * 8 == 153
    bytes_only = A5.with_settings(
        {"mte1_instruction_cycles": 0, "l1_to_scale_bytes_per_cycle": 1e9}
    )
    moved = load_cycles(bytes_only, m=64, k=128, n=128, bits=8)
    assert float(moved) == pytest.approx(8192 / 206.3 + 16384 / 223.8, abs=1e-4)
    assert float(moved) == pytest.approx(39.7 + 73.2, abs=0.05)
    published = A5.with_settings({"drain_bytes_per_cycle": 30})
    assert float(drain_cycles(published, m=64, n=128)) == pytest.approx(1436, abs=0.5)
    assert float(drain_cycles(A5, m=64, n=128)) == pytest.approx(640, abs=4)


@pytest.mark.parametrize(
    ("m", "k", "n", "bits", "measured"), [(128, 128, 256, 8, 332), (256, 256, 256, 4, 527)]
)
def test_the_moves_of_a_step_of_the_published_kernels(
    m: int, k: int, n: int, bits: int, measured: int
) -> None:
    assert float(load_cycles(A5, m=m, k=k, n=n, bits=bits)) == pytest.approx(measured, abs=1)


@pytest.mark.parametrize(("rows", "n", "cycles"), [(128, 256, 931), (256, 256, 1518)])
def test_the_store_of_a_tile_is_as_the_published_constants_say(
    rows: int, n: int, cycles: int
) -> None:
    """343.4 + 4.59 a row, where bytes do not bind."""
    fast = A5.with_settings({"drain_bytes_per_cycle": 1e6})
    assert float(drain_cycles(fast, m=rows, n=n)) == pytest.approx(cycles, abs=1)


def test_rows_that_are_no_power_of_two_of_32_bytes_take_longer() -> None:
    aligned, odd = drain_cycles(A5, m=16, n=64), drain_cycles(A5, m=16, n=96)
    units = Fraction(96 * 4, 32)  # 12 = 4 * 3
    row = max(Fraction("4.59"), Fraction(4 * 96, 195)) + Fraction("0.26") * (3 - 1)
    assert (units, odd) == (12, Fraction("343.4") + 16 * row)
    assert aligned == Fraction("343.4") + 16 * Fraction("4.59")


def test_the_walls_are_those_of_the_model() -> None:
    """A store after each tile, or behind the next one: the longest pipe, and one piece of the other."""
    problem = Problem(256, 512, 256, 8)
    one, two = Tiling(128, 128, 128), Tiling(128, 128, 128, accumulators=2)
    price = cost(problem, one, A5)
    compute = max(price.load, price.mad) + min(price.load, price.mad) / 16
    assert price.wall == compute + price.drain
    wall = cost(problem, two, A5).wall
    assert wall == max(compute, price.drain) + min(compute, price.drain) / 4
    assert overlapped(Fraction(7), Fraction(3), 1) == 10


def test_the_first_tile_waits_for_the_loads_and_they_for_one_piece_of_it() -> None:
    """Two steps of K: half of the shorter one of loads and first tile is beside the longer one."""
    problem, tiling = Problem(256, 256, 256, 8), Tiling(128, 128, 256)
    price = cost(problem, tiling, A5)
    first = (max(price.load, price.mad) + min(price.load, price.mad) / 4) / 2
    for loads in (Fraction(10), Fraction(10_000)):
        later = cost(replace(problem, loads=loads), tiling, A5)
        wait = max(loads, first) + min(loads, first) / 2 - first
        assert later == replace(price, wall=price.wall + wait)


def test_a_row_is_moved_as_it_is() -> None:
    """1 x 2048 in FP8: 2048 bytes and 64 scales, not 16 rows of them; two instructions."""
    row, tiling = Problem(1, 2048, 32, 8, of_a_row=True), Tiling(16, 2048, 32)
    only_right = cost(row, tiling, A5).load - Fraction(2048) / Fraction("206.3")
    both = cost(replace(row, of_a_row=False), tiling, A5).load
    left_rows = 16 * Fraction(2048) / Fraction("206.3") + Fraction(16 * 64, 22)
    assert both - left_rows == only_right - Fraction(64, 22)


# --------------------------------------------------------------------------- the machine model


@given(st.integers(1, 300), st.integers(1, 600), st.integers(1, 300), st.sampled_from((4, 8)))
def test_busy_cycles_are_those_of_the_machine_model(m: int, k: int, n: int, bits: int) -> None:
    assert mad_cycles(A5, m=m, k=k, n=n, bits=bits) == costs.mad_cycles(
        A5, m=m, k=k, n=n, bits=bits
    )
    assert ceil(drain_cycles(A5, m=m, n=n)) == pytest.approx(
        costs.drain_cycles(A5, rows=m, cols=n), abs=1
    )
    boxes_m, boxes_n, depth, pairs = -(-m // 16), -(-n // 16), -(-k * bits // 256), -(-k // 64)
    moves = (
        (boxes_m * depth * 512, Space.L0A),
        (boxes_m * pairs * 32, Space.SCALE_A),
        (boxes_n * depth * 512, Space.L0B),
        (boxes_n * pairs * 32, Space.SCALE_B),
    )
    machine = sum(costs.l1_load_cycles(A5, size_bytes=size, to=to) for size, to in moves)
    exact = load_cycles(A5, m=m, k=k, n=n, bits=bits)
    assert exact <= machine < exact + len(moves)


@given(st.integers(1, 300), st.integers(1, 600), st.integers(1, 300), st.sampled_from((8, 16, 32)))
def test_busy_cycles_without_scales_are_those_of_the_machine_model(
    m: int, k: int, n: int, bits: int
) -> None:
    plain = mad_cycles(A5, m=m, k=k, n=n, bits=bits, scaled=False)
    assert plain == costs.plain_mad_cycles(A5, m=m, k=k, n=n, bits=bits)
    depth = -(-k * bits // 256)
    moves = ((-(-m // 16) * depth * 512, Space.L0A), (-(-n // 16) * depth * 512, Space.L0B))
    machine = sum(costs.l1_load_cycles(A5, size_bytes=size, to=to) for size, to in moves)
    exact = load_cycles(A5, m=m, k=k, n=n, bits=bits, scaled=False)
    assert exact <= machine < exact + len(moves)


@pytest.mark.parametrize(("bits", "k_unit", "n_unit"), [(8, 32, 32), (16, 16, 16), (32, 16, 16)])
def test_operands_without_scales_are_cut_between_boxes(bits: int, k_unit: int, n_unit: int) -> None:
    """Windows of a right operand begin at multiples of 16 rows and of 32 bytes of columns."""
    problem = Problem(60, 100, 40, bits, scaled=False)
    assert (problem.k_unit, problem.n_unit, problem.n_tail) == (k_unit, n_unit, 16)
    assert problem.extents == (64, -(-100 // k_unit) * k_unit, 48)


def test_scale_buffers_do_not_limit_operands_without_scales() -> None:
    none = replace(A5, scale_a_bytes=32, scale_b_bytes=32)
    assert not fits(Problem(64, 256, 64, 8), Tiling(64, 128, 64), none)
    assert fits(Problem(64, 256, 64, 8, scaled=False), Tiling(64, 128, 64), none)


def test_a_multiplication_is_no_larger_than_an_instruction_can_say() -> None:
    assert MAD_LIMIT == table.MAD_LIMIT
    roomy = A5.with_settings({"l0b_bytes": 1 << 18, "scale_b_bytes": 1 << 14})
    assert not fits(Problem(16, 8192, 32, 4), Tiling(16, 4096, 32), roomy)
    assert fits(Problem(16, 8192, 32, 4), Tiling(16, 4032, 32), roomy)


# --------------------------------------------------------------------------- what fits


@pytest.mark.parametrize(
    ("field", "least"),
    [
        ("l0a_bytes", 2 * 32 * 128),
        ("l0b_bytes", 2 * 128 * 64),
        ("l0c_bytes", 2 * 32 * 64 * 4),
        ("bias_bytes", 64 * 4),
        ("scale_a_bytes", (32 * 128 >> 4) + 32 * 4),
        ("scale_b_bytes", (64 * 128 >> 4) + 64 * 4),
    ],
)
def test_every_buffer_counts(field: str, least: int) -> None:
    """Two buffers of 32 x 128 and 128 x 64, two accumulators, a row of biases, and their scales."""
    problem = Problem(64, 256, 128, 8, bias=True)
    tiling = Tiling(32, 128, 64, accumulators=2)
    step = 512 if field.startswith("l0") else 32
    assert fits(problem, tiling, replace(A5, **{field: least}))
    assert not fits(problem, tiling, replace(A5, **{field: least - step}))


def test_what_others_need_is_not_there() -> None:
    tight = A5.with_settings({"l0c_bytes": 2 * 32 * 64 * 4})
    tiling = Tiling(32, 128, 64, accumulators=2)
    assert fits(Problem(64, 256, 128, 8), tiling, tight)
    assert not fits(Problem(64, 256, 128, 8, taken=(0, 0, 32, 0)), tiling, tight)


def test_an_operand_that_stays_needs_one_buffer() -> None:
    small = A5.with_settings({"l0a_bytes": 32 * 64, "l0b_bytes": 2 * 64 * 32})
    problem = Problem(64, 64, 128, 8)
    assert fits(problem, Tiling(32, 64, 32, Stays.LEFT), small)
    assert not fits(problem, Tiling(32, 64, 32, Stays.RIGHT), small)
    narrow = A5.with_settings({"l0b_bytes": 32 * 64})  # as much for one right operand
    assert fits(problem, Tiling(32, 64, 32, Stays.RIGHT), narrow)
    assert not fits(problem, Tiling(32, 64, 32, Stays.LEFT), narrow)


# --------------------------------------------------------------------------- the choice


SMALL = st.fixed_dictionaries(
    {
        "l0a_bytes": st.sampled_from((1024, 2048, 3072, 8192)),
        "l0b_bytes": st.sampled_from((2048, 4096, 8192)),
        "l0c_bytes": st.sampled_from((2048, 4096, 16384)),
        "bias_bytes": st.sampled_from((128, 256, 4096)),
    }
).map(A5.with_settings)
PROBLEMS = st.builds(
    Problem,
    st.integers(1, 80),
    st.integers(1, 300),
    st.integers(1, 200),
    st.sampled_from((4, 8)),
    bias=st.booleans(),
    products=st.integers(1, 2),
)


def all_tilings(problem: Problem) -> list[Tiling]:
    """Every tiling there is, by its definition."""
    rows, depth, columns = problem.extents
    unit = problem.n_unit
    found: list[Tiling] = []
    for m in range(16, rows + 1, 16):
        for n in sorted({*range(unit, columns + 1, unit), columns}):
            for k in range(64, depth + 1, 64):
                single = k == depth and problem.products == 1
                several = m < rows or n < columns
                for stays in Stays:
                    if (stays is not Stays.NEITHER) == (single and several):
                        found += [Tiling(m, k, n, stays, turns) for turns in (1, 1 + several)]
    return found


@settings(max_examples=40, deadline=None)
@given(PROBLEMS, SMALL)
def test_no_tiling_that_fits_is_faster_than_the_one_chosen(
    problem: Problem, target: Target
) -> None:
    for buffers in (2, 1):
        every = [
            Tiling(t.m, t.k, t.n, t.stays, t.accumulators, buffers) for t in all_tilings(problem)
        ]
        fitting = [t for t in every if fits(problem, t, target) and t.accumulators <= buffers]
        if fitting:
            break
    chosen = choose(problem, target)
    if chosen is None:
        assert not fitting
        return
    tiling, price = chosen
    assert fits(problem, tiling, target)
    assert price == cost(problem, tiling, target)
    assert price.wall == min(cost(problem, t, target).wall for t in fitting)


@given(PROBLEMS, SMALL)
def test_tiles_are_cut_where_bits_do_not_change_and_boxes_end(
    problem: Problem, target: Target
) -> None:
    chosen = choose(problem, target)
    if chosen is None:
        return
    tiling, _ = chosen
    rows, depth, columns = problem.extents
    assert tiling.m % 16 == 0
    assert tiling.k % 64 == 0
    assert tiling.n in (columns, *range(problem.n_unit, columns, problem.n_unit))
    assert (tiling.m <= rows, tiling.k <= depth, tiling.n <= columns) == (True, True, True)


def test_an_accumulator_that_is_needed_as_a_whole_is_cut_along_k_only() -> None:
    problem = Problem(100, 1024, 250, 8, whole=True, rows=128, columns=256)
    chosen = choose(problem, A5)
    assert chosen is not None
    assert (chosen[0].m, chosen[0].n) == (128, 256)
    assert chosen[0].k < 1024
    assert choose(Problem(512, 64, 512, 8, whole=True, rows=512, columns=512), A5) is None


def test_one_buffer_is_used_only_where_two_fit_nowhere() -> None:
    problem = Problem(32, 256, 32, 8, whole=True, rows=32, columns=32)
    one, two = (A5.with_settings({"l0a_bytes": n * 32 * 64}) for n in (1, 2))
    assert [choose(problem, target)[0].buffers for target in (one, two)] == [1, 2]  # type: ignore[index]


def test_the_choice_for_the_tile_of_the_published_kernel_is_one_of_full_buffers() -> None:
    """256 x 1024 x 256 in FP8: whole rows of C, K in steps of 128, as the published kernel has them."""
    chosen = choose(Problem(256, 1024, 256, 8), A5)
    assert chosen is not None
    tiling, price = chosen
    assert (tiling.k, tiling.n, tiling.accumulators) == (128, 256, 2)
    assert price.wall < price.mad * Fraction(6, 5)
