"""Kernels on both kinds of core: each program has its own steps, and core flags order the rest."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.emit.program import emit
from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.isa.table import ROWS
from scalebox.codegen.isa.vocabulary import ClusterCore, MadInit
from scalebox.codegen.pairs import split
from scalebox.codegen.sync import hazards, walk
from scalebox.codegen.sync.hazards import JOIN_ID
from scalebox.codegen.sync.insert import synchronise
from scalebox.codegen.tree import Block, Branch, Let, Loop, Step
from scalebox.ir.dtypes import Index
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Add, Expr, ScalarType, Var, index

from .emit.scalar_machine import ScalarFaultError, run_scalar_unit
from .emit.scalar_programs import PARAMS as SCALARS
from .emit.scalar_programs import programs, steps_run
from .sync.clocks import gets_through
from .sync.flag_checker import Verdict, issue, judge_cores
from .sync.random_trees import (
    ARGUMENTS,
    DEEP_PAIRED_TREES,
    PAIRED_TREES,
    PARAMS,
    SPAN,
    VIEWS,
    ZERO,
    bias,
    drain,
    fetch,
    give,
    hand,
    keep,
    mad,
    row,
    work,
)

Pair = tuple[list[Instruction], list[Instruction]]


def pair_of(tree: Block, params: Sequence[Var] = PARAMS) -> Pair:
    cube, vector = split(synchronise(tree))
    return emit(cube, params)[0], emit(vector, params)[0]


def judged(
    tree: Block, pair: Pair, arguments: Sequence[int] = (0, 0, 0, 0), removed: Sequence[int] = ()
) -> Verdict:
    ran = steps_run(tree, dict(zip(PARAMS, arguments, strict=True)))
    order = [int(step.core) for step, _ in ran]
    return judge_cores(pair, VIEWS, arguments, removed, order)


def assert_sound(tree: Block, pair: Pair, arguments: Sequence[int] = (0, 0, 0, 0)) -> None:
    verdict = judged(tree, pair, arguments)
    assert verdict.sound, verdict
    streams = issue(pair, arguments)
    assert all(gets_through(streams, depth) for depth in (1, 2, 32))


def loop(*items: Step | Loop | Branch | Let, trips: int | Expr = 4) -> Loop:
    stop = index(trips) if isinstance(trips, int) else trips
    return Loop(Var("i", ScalarType(Index)), ZERO, stop, 1, Block(list(items)), SPAN)


def counts(program: Sequence[Instruction]) -> Counter[str]:
    return Counter(instruction.mnemonic for instruction in program)


# --------------------------------------------------------------------------- any tree


@settings(max_examples=150, deadline=None)
@given(tree=PAIRED_TREES, arguments=ARGUMENTS)
def test_flags_order_every_hazard_of_any_tree(tree: Block, arguments: list[int]):
    assert_sound(tree, pair_of(tree), arguments)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(tree=DEEP_PAIRED_TREES, arguments=ARGUMENTS)
def test_flags_order_every_hazard_of_larger_trees(tree: Block, arguments: list[int]):
    assert_sound(tree, pair_of(tree), arguments)


@settings(max_examples=60, deadline=None)
@given(tree=PAIRED_TREES, arguments=ARGUMENTS)
def test_a_loop_that_never_settles_is_still_ordered(tree: Block, arguments: list[int]):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "STEADY_TRIPS", 0)
        assert_sound(tree, pair_of(tree), arguments)


@settings(max_examples=40, deadline=None)
@given(tree=PAIRED_TREES, arguments=ARGUMENTS, data=st.data())
def test_a_core_flag_that_is_taken_out_is_noticed(
    tree: Block, arguments: list[int], data: st.DataObject
):
    pair = pair_of(tree)
    ran = [event for stream in issue(pair, arguments) for event in stream]
    flags = sorted({event.index for event in ran if "core_flag" in event.mnemonic})
    if flags:
        removed = data.draw(st.sampled_from(flags))
        assert not judged(tree, pair, arguments, [removed]).sound


@settings(max_examples=60, deadline=None)
@given(tree=PAIRED_TREES)
def test_each_program_has_the_steps_of_its_core(tree: Block):
    for core, part in zip(ClusterCore, split(tree), strict=False):
        assert list(part.steps()) == [step for step in tree.steps() if step.core is core]


def test_every_row_that_touches_memory_is_of_one_core():
    assert all(row.core is not None for row in ROWS if row.reads or row.writes)


# --------------------------------------------------------------------------- flags by hand


def test_what_a_vector_core_hands_over_is_there_when_the_cube_core_takes_it():
    tree = Block([fetch(0), hand(0, 0), bias(0, 0)])
    pair = pair_of(tree)
    cube, vector = pair
    flags = [each for each in vector if each.mnemonic == "set_core_flag"]
    assert [(each["pipe"], each["to"]) for each in flags] == [(5, 0)]
    waits = [each for each in cube if each.mnemonic == "wait_core_flag"]
    assert [(each["pipe"], each["of"], each["id"]) for each in waits] == [(3, 1, flags[0]["id"])]
    assert counts(vector)["set_flag"] == 1  # from the load to the hand-over, within the core
    assert_sound(tree, pair)


def test_there_and_back_again():
    product = mad(0, 0, MadInit.BIAS)
    tree = Block([fetch(0), hand(0, 0), bias(0, 0), product, give(0, 0), work(0, 1), keep(1)])
    pair = pair_of(tree)
    assert counts(pair[0])["set_core_flag"] == 1
    assert counts(pair[1])["set_core_flag"] == 1
    assert_sound(tree, pair)


def test_lanes_of_two_cores_are_not_one_pipe():
    # MTE2 of either core writes its own memory from the same tensor; MTE3 then overwrites L1.
    tree = Block([row(0), fetch(0), hand(0, 0), row(0), bias(0, 0)])
    pair = pair_of(tree)
    assert counts(pair[0])["set_core_flag"] == counts(pair[1])["set_core_flag"] == 1
    assert_sound(tree, pair)


def test_a_store_of_one_core_is_done_before_the_other_loads_it():
    for tree in (Block([mad(0, 0), drain(0), fetch(0)]), Block([keep(0), row(0, view=2)])):
        pair = pair_of(tree)
        assert counts([*pair[0], *pair[1]])["set_core_flag"] == 1
        assert_sound(tree, pair)


def test_a_loop_hands_on_and_gives_back():
    tree = Block([loop(fetch(0), hand(0, 0), bias(0, 0), mad(0, 0), give(0, 1), keep(1))])
    pair = pair_of(tree)
    assert_sound(tree, pair)
    assert not counts([*pair[0], *pair[1]])["pipe_barrier"]
    for removed in sorted(judged(tree, pair).pairs):
        assert not judged(tree, pair, removed=removed).sound


def test_every_flag_of_a_double_buffered_loop_is_needed():
    trip = [each for n in (0, 1) for each in (fetch(n), hand(n, n), bias(n, n), mad(0, n))]
    tree = Block([loop(*trip, give(0, 0), give(1, 1), keep(0), keep(1))])
    pair = pair_of(tree)
    assert_sound(tree, pair)
    instructions = [*pair[0], *pair[1]]
    for number, each in enumerate(instructions):
        if each.mnemonic in ("set_core_flag", "wait_core_flag", "set_flag", "wait_flag"):
            assert not judged(tree, pair, removed=[number]).sound


@pytest.mark.parametrize("count", [15, 16, 40])
def test_more_orders_than_core_flags_are_still_kept(count: int):
    # Each is taken in turn, while all that follow are up.
    tree = Block([*(hand(n % 2, n) for n in range(count)), *(bias(n, n % 2) for n in range(count))])
    pair = pair_of(tree)
    assert counts(pair[1])["set_core_flag"] == min(count, JOIN_ID)
    assert_sound(tree, pair)


def test_flags_that_different_pipes_wait_for_are_not_mixed_up():
    # MTE1 and MTE2 take turns, far more often than there are flags.
    takers = [bias(n, 0) if n % 2 else row(n) for n in range(40)]
    tree = Block([*(hand(0, n) for n in range(40)), *takers])
    assert_sound(tree, pair_of(tree))


@pytest.mark.parametrize("ids", [0, 1, 2])
def test_few_core_flags_suffice_for_any_tree(ids: int):
    """In the end the cores join, which needs one flag a direction."""

    @settings(max_examples=40, deadline=None)
    @given(tree=PAIRED_TREES, arguments=ARGUMENTS)
    def sound(tree: Block, arguments: list[int]) -> None:
        assert_sound(tree, pair_of(tree), arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hazards, "JOIN_ID", ids)
        sound()
        tree = Block([fetch(0), hand(0, 0), bias(0, 0)])
        pair = pair_of(tree)
    joins = counts(pair[0])["pipe_barrier"]
    assert joins == counts(pair[1])["pipe_barrier"] == (1 if ids == 0 else 0)
    used = {each["id"] for each in pair[1] if each.mnemonic == "set_core_flag"}
    assert used == {15 if ids == 0 else 0}


# --------------------------------------------------------------------------- scalars and control flow


def test_a_loop_of_one_core_is_not_in_the_other_ones_program():
    tree = Block([loop(fetch(0), keep(0)), loop(row(0), bias(0, 0), trips=PARAMS[0])])
    cube, vector = split(synchronise(tree))
    assert [type(item) for item in cube.items if not isinstance(item, Step)] == [Loop]
    assert not any(each.core is ClusterCore.AIC for each in vector.steps())
    assert counts(emit(cube, PARAMS)[0])["blt"] == 2  # before the first trip and after each
    assert counts(emit(vector, PARAMS)[0])["ldparam"] == 0


def test_a_scalar_is_computed_where_it_is_used():
    mine, yours = Var("mine", ScalarType(Index)), Var("yours", ScalarType(Index))
    lets = [Let(mine, Add(PARAMS[0], index(1), Index), SPAN), Let(yours, PARAMS[1], SPAN)]
    take, load = row(0), fetch(0)
    take.fields["xr"], load.fields["xr"] = mine, yours
    cube, vector = split(Block([*lets, take, load]))
    assert cube.items == [lets[0], take]
    assert vector.items == [lets[1], load]


def test_a_scalar_that_nobody_uses_is_computed_once():
    unused = Let(Var("unused", ScalarType(Index)), PARAMS[0], SPAN)
    cube, vector = split(Block([unused, row(0), fetch(0)]))
    assert unused in cube.items
    assert unused not in vector.items


@settings(max_examples=150, deadline=None)
@given(
    block=programs(2),
    cores=st.lists(st.sampled_from((ClusterCore.AIC, ClusterCore.AIV0)), min_size=1, max_size=6),
    arguments=st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5), st.booleans()),
)
def test_each_core_computes_its_share_of_any_scalar_program(
    block: Block, cores: list[ClusterCore], arguments: tuple[int, int, int, bool]
):
    """One of them, at least, meets what cannot be computed."""
    for number, step in enumerate(block.steps()):
        step.on = cores[number % len(cores)]
    given = dict(zip(SCALARS, arguments, strict=True))
    pair = [emit(part, SCALARS)[0] for part in split(block)]
    integers = [int(each) for each in arguments]
    try:
        ran = steps_run(block, given)
    except IRValueError:
        assert any(is_refused(program, integers) for program in pair)
        return
    for core, program in zip(ClusterCore, pair, strict=False):
        expected = [fields for step, fields in ran if step.core is core]
        assert [each.registers for each in run_scalar_unit(program, integers)] == expected


def is_refused(program: Sequence[Instruction], arguments: Sequence[int]) -> bool:
    try:
        run_scalar_unit(program, arguments)
    except ScalarFaultError:
        return True
    return False
