"""Flags: whatever the tree, no hazard is left open, no flag is set twice, nothing hangs."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from scalebox.codegen.emit.program import emit
from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.isa.vocabulary import MadInit
from scalebox.codegen.sync import walk
from scalebox.codegen.sync.hazards import Hazards
from scalebox.codegen.sync.insert import needed, synchronise
from scalebox.codegen.sync.walk import is_safe
from scalebox.codegen.tree import Block, Branch, Loop, Step
from scalebox.ir.dtypes import Index
from scalebox.ir.expr import ConstBool, Expr, ScalarType, Var, index

from ..emit.scalar_machine import run_scalar_unit
from .flag_checker import gets_through, judge
from .random_trees import (
    ARGUMENTS,
    DEEP_TREES,
    PARAMS,
    SPAN,
    TREES,
    VIEWS,
    ZERO,
    bias,
    drain,
    left,
    mad,
    row,
)


def program_of(tree: Block) -> list[Instruction]:
    return emit(synchronise(tree), PARAMS)[0]


def loop(*items: Step | Loop | Branch, trips: int | Expr = 4) -> Loop:
    stop = index(trips) if isinstance(trips, int) else trips
    return Loop(Var("i", ScalarType(Index)), ZERO, stop, 1, Block(list(items)), SPAN)


def branch(then: Sequence[Step], otherwise: Sequence[Step] = ()) -> Branch:
    return Branch(PARAMS[3], Block(list(then)), Block(list(otherwise)), SPAN)


def counts(program: Sequence[Instruction]) -> Counter[str]:
    return Counter(instruction.mnemonic for instruction in program)


def assert_sound(program: Sequence[Instruction], arguments: Sequence[int] = (0, 0, 0, 0)) -> None:
    verdict = judge(program, VIEWS, arguments)
    assert verdict.sound, verdict
    assert all(gets_through(run_scalar_unit(program, arguments), depth) for depth in (1, 2, 32))


@settings(max_examples=200)
@given(tree=TREES, arguments=ARGUMENTS)
def test_flags_order_every_hazard_of_any_tree(tree: Block, arguments: list[int]):
    assert_sound(program_of(tree), arguments)


@pytest.mark.slow
@settings(max_examples=40)
@given(tree=DEEP_TREES, arguments=ARGUMENTS)
def test_flags_order_every_hazard_of_larger_trees(tree: Block, arguments: list[int]):
    assert_sound(program_of(tree), arguments)


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(tree=TREES, arguments=ARGUMENTS)
def test_a_loop_that_never_settles_is_still_ordered(
    monkeypatch: pytest.MonkeyPatch, tree: Block, arguments: list[int]
):
    # As if every loop still changed what is known after the trips that are walked one by one.
    monkeypatch.setattr(walk, "STEADY_TRIPS", 0)
    assert_sound(program_of(tree), arguments)


@settings(max_examples=100)
@given(tree=TREES)
def test_the_tree_that_is_given_stays_as_it_is(tree: Block):
    before = list(tree.steps())
    after = [step for step in synchronise(tree).steps() if "flag" not in step.mnemonic]
    assert list(tree.steps()) == before
    assert [step for step in after if step.mnemonic != "pipe_barrier"] == before


@settings(max_examples=100)
@given(tree=TREES)
def test_orders_are_found_in_one_go(tree: Block):
    hazards = Hazards(tree)
    assert is_safe(hazards, needed(hazards))


# --------------------------------------------------------------------------- by hand


def test_steps_of_one_pipe_need_no_flag():
    assert not counts(program_of(Block([row(0), row(0), row(0)])))["set_flag"]


def test_steps_that_share_no_byte_need_no_flag():
    assert not counts(program_of(Block([row(0), bias(1, 0), mad(0, 0), drain(1)])))["set_flag"]


def test_two_reads_need_no_flag():
    # Both pipes read GM and L1 only where nobody writes.
    assert not counts(program_of(Block([bias(0, 0), bias(0, 1), row(1)])))["set_flag"]


def test_a_chain_of_pipes_gets_one_flag_a_link():
    # load -> move -> product -> store, and nothing from load to product or store.
    tree = Block([row(0), bias(0, 0), mad(0, 0, MadInit.BIAS), drain(0)])
    assert counts(program_of(tree))["set_flag"] == 3


def test_an_order_that_a_chain_implies_gets_no_flag():
    # The second load overwrites what the move read; the product waits for both moves by one flag.
    tree = Block([row(0), bias(0, 0), bias(0, 1), mad(0, 0, MadInit.BIAS)])
    assert counts(program_of(tree))["set_flag"] == 2


def test_an_accumulator_is_read_before_the_next_product_overwrites_it():
    tree = Block([mad(0, 0), drain(0), mad(0, 0, MadInit.ACC), drain(0)])
    program = program_of(tree)
    flags = [(each["src"], each["dst"]) for each in program if each.mnemonic == "set_flag"]
    assert flags == [(2, 6), (6, 2), (2, 6)]
    assert_sound(program)


def test_a_store_is_done_before_its_tensor_is_loaded_again():
    program = program_of(Block([mad(0, 0), drain(0), row(0, view=2), bias(0, 0)]))
    flags = [(each["src"], each["dst"]) for each in program if each.mnemonic == "set_flag"]
    assert (6, 4) in flags
    assert_sound(program)


def test_a_loop_gets_its_buffer_back_by_a_flag_that_is_up_at_first():
    program = program_of(Block([loop(row(0), bias(0, 0))]))
    names = [each.mnemonic for each in program if "flag" in each.mnemonic]
    # Up before the loop; in it: buffer free, loaded, loaded, free; taken behind it.
    assert names == ["set_flag", "wait_flag", "set_flag", "wait_flag", "set_flag", "wait_flag"]
    assert_sound(program)


def test_a_loop_of_one_trip_gives_nothing_back():
    program = program_of(Block([loop(row(0), bias(0, 0), trips=1)]))
    assert counts(program)["set_flag"] == 1


def test_a_loop_without_trips_needs_nothing():
    program = program_of(Block([loop(row(0), bias(0, 0), trips=0)]))
    assert not counts(program)["set_flag"]
    assert_sound(program)


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
def test_a_loop_whose_trips_are_an_argument_is_sound_for_any(trips: int):
    tree = Block(
        [row(0), loop(row(0), bias(0, 0), left(0, 0), mad(0, 0), trips=PARAMS[0]), drain(0)]
    )
    assert_sound(program_of(tree), [trips, 0, 0, 0])


def test_a_nested_loop_hands_its_buffer_on_without_being_emptied_between():
    inner = loop(row(0), bias(0, 0))
    program = program_of(Block([loop(inner, trips=3)]))
    # One flag forward; one back that stays up from the outermost loop's start to its end.
    assert counts(program)["set_flag"] == 3
    assert not counts(program)["pipe_barrier"]
    assert_sound(program)


def test_a_carried_flag_inside_an_arm_is_set_and_taken_there():
    tree = Block([loop(branch([row(0), bias(0, 0)]))])
    for taken in (0, 1):
        program = program_of(tree)
        assert_sound(program, [0, 0, 0, taken])
    assert not counts(program)["pipe_barrier"]


def test_arms_of_different_pipes_in_a_loop_are_kept_apart():
    # Which arm runs alternates at will; a barrier takes the place of flags that nobody could take.
    number = Var("i", ScalarType(Index))
    arms = Branch(number, Block([row(0)]), Block([bias(0, 0)]), SPAN)
    tree = Block([Loop(number, ZERO, index(5), 1, Block([arms]), SPAN)])
    program = program_of(tree)
    assert_sound(program)


def test_what_both_arms_make_sure_of_needs_no_second_flag():
    sure = [bias(0, 0), mad(0, 0, MadInit.BIAS)]
    again = [bias(0, 0), mad(0, 1, MadInit.BIAS)]
    tree = Block([row(0), branch(sure, again), drain(0)])
    program = program_of(tree)
    # Load to moves, each arm's move to its product, product to store.
    assert counts(program)["set_flag"] == 4
    assert_sound(program)


def test_a_condition_that_is_constant_is_no_special_case():
    arms = Branch(ConstBool(True), Block([row(0)]), Block(), SPAN)
    assert_sound(program_of(Block([arms, bias(0, 0)])))


# --------------------------------------------------------------------------- more than eight flags


@pytest.mark.parametrize("together", [9, 12, 16, 40])
def test_loads_that_stand_together_share_flags_when_eight_are_short(together: int):
    slots = range(together)
    tree = Block([loop(*(row(slot) for slot in slots), *(bias(slot, 0) for slot in slots))])
    program = program_of(tree)
    assert not counts(program)["pipe_barrier"]
    assert_sound(program)


def test_products_share_flags_within_themselves_first():
    """Six products of two loads each: of twelve flags eight are left, none across two products."""
    loads = [row(2 * p + half) for p in range(6) for half in (0, 1)]
    uses = [
        step
        for p in range(6)
        for step in (bias(2 * p, 0), bias(2 * p + 1, 1), mad(0, 0, MadInit.BIAS))
    ]
    program = program_of(Block([loop(*loads, *uses)]))
    assert not counts(program)["pipe_barrier"]
    groups: list[set[int]] = [set()]
    for each in program:
        if each.mnemonic == "gm_to_l1_row":
            groups[-1].add(each["l1"] // 64)  # the product that the load is for
        if each.mnemonic == "set_flag" and (each["src"], each["dst"]) == (4, 3):
            groups.append(set())
    assert all(len(products) <= 1 for products in groups)
    assert_sound(program)


@pytest.mark.parametrize("steps", [12, 40])
def test_a_long_chain_of_loads_and_moves_waits_for_old_flags_only(steps: int):
    """Interleaved, the loads cannot share flags; eight may be up, so the loader must wait at times."""
    tree = Block([step for slot in range(steps) for step in (row(slot), bias(slot, 0))])
    program = program_of(tree)
    assert not counts(program)["pipe_barrier"]
    back = sum(each.mnemonic == "set_flag" and each["src"] == 3 for each in program)
    assert back <= steps // 4
    assert_sound(program)


def test_flags_of_two_loops_do_not_get_in_each_others_way():
    first = [row(slot) for slot in range(8)] + [bias(slot, 0) for slot in range(8)]
    second = [row(slot + 8) for slot in range(8)] + [bias(slot + 8, 0) for slot in range(8)]
    program = program_of(Block([loop(*first), loop(*second)]))
    assert not counts(program)["pipe_barrier"]
    assert_sound(program)


# --------------------------------------------------------------------------- cost


@pytest.mark.parametrize("products", [64, 256])
def test_a_straight_line_is_walked_a_few_times_only(products: int, monkeypatch: pytest.MonkeyPatch):
    """The cost of a long kernel: walks, each of which looks at every step once."""
    from scalebox.codegen.sync import flags, insert

    walked = 0
    real = walk.walk, walk.is_safe

    def count(which: int):
        def counted(*args: object, **kwargs: object):
            nonlocal walked
            walked += 1
            return real[which](*args, **kwargs)  # pyright: ignore

        return counted

    for module in (insert, flags):
        monkeypatch.setattr(module, "walk", count(0))
        monkeypatch.setattr(module, "is_safe", count(1))
    steps: list[Step] = []
    for number in range(products):
        slot = number % 10 * 2
        steps += [row(slot), row(slot + 1), bias(slot, 0), bias(slot + 1, 1)]
        steps.append(mad(0, 0, MadInit.BIAS))
    program = emit(synchronise(Block([*steps])), PARAMS)[0]
    assert walked < 40
    assert_sound(program)
