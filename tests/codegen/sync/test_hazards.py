"""Conflicts and orders, against a comparison of every two steps."""

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.vocabulary import Pipe, Space
from scalebox.codegen.sync.hazards import Gaps, Hazards
from scalebox.codegen.tree import Block, Branch, Loop, Region, Step

from .random_trees import PAIRED_TREES, PARAMS, SPAN, TREES, ZERO, bias, drain, mad, row


def shares(mine: tuple[Region, ...], theirs: tuple[Region, ...]) -> bool:
    return any(a.overlaps(b) for a in mine for b in theirs)


def in_conflict(a: Step, b: Step) -> bool:
    return a.lane != b.lane and (
        shares(a.writes, b.writes) or shares(a.writes, b.reads) or shares(a.reads, b.writes)
    )


@settings(max_examples=200)
@given(tree=st.one_of(TREES, PAIRED_TREES))
def test_clashes_are_what_a_comparison_of_every_two_steps_finds(tree: Block):
    hazards = Hazards(tree)
    assert hazards.steps == list(tree.steps())
    for i, j in combinations(range(len(hazards.steps)), 2):
        expected = in_conflict(hazards.steps[i], hazards.steps[j])
        assert bool(hazards.clashes[i] >> j & 1) is expected
        assert bool(hazards.clashes[j] >> i & 1) is expected


def test_regions_overlap_only_within_a_memory_and_a_tensor():
    here = Region(Space.L1, 0, 64)
    assert here.overlaps(Region(Space.L1, 63, 65))
    assert not here.overlaps(Region(Space.L1, 64, 65))
    assert not here.overlaps(Region(Space.L0A, 0, 64))
    assert not Region(Space.GM, 0, 1, 0).overlaps(Region(Space.GM, 0, 1, 1))


def test_an_order_stands_in_the_innermost_block_of_both_steps():
    load, move, product = row(0), bias(0, 0), mad(0, 0)
    inner = Block([load, move])
    loop = Loop(PARAMS[0], ZERO, PARAMS[1], 1, inner, SPAN)
    tree = Block([product, loop, drain(0)])
    hazards = Hazards(tree)
    same = hazards.edge(hazards.number[load], hazards.number[move])
    assert (same.block, same.x, same.y, same.around) == (inner, 0, 1, None)
    again = hazards.edge(hazards.number[move], hazards.number[load])
    assert (again.block, again.x, again.y) == (inner, 1, 0)
    assert again.around is not None
    assert (again.around.block, again.around.index) == (tree, 1)
    over = hazards.edge(hazards.number[product], hazards.number[move])
    assert (over.block, over.x, over.y, over.around) == (tree, 0, 1, None)
    assert [lane.pipe for lane in over.pair] == [Pipe.M, Pipe.MTE1]


def test_a_carried_order_reaches_to_the_outermost_loop():
    load, move = row(0), bias(0, 0)
    inner = Loop(PARAMS[0], ZERO, PARAMS[1], 1, Block([load, move]), SPAN)
    arm = Block([inner])
    branch = Branch(PARAMS[2], arm, Block(), SPAN)
    outer = Loop(PARAMS[0], ZERO, PARAMS[1], 1, Block([branch]), SPAN)
    tree = Block([outer])
    hazards = Hazards(tree)
    edge = hazards.edge(hazards.number[move], hazards.number[load])
    assert edge.block is inner.body
    assert edge.around is not None
    assert (edge.around.block, edge.around.index) == (tree, 0)


def test_a_carried_flag_stands_four_times_any_other_one_twice():
    load, move = row(0), bias(0, 0)
    body = Block([load, move])
    tree = Block([Loop(PARAMS[0], ZERO, PARAMS[1], 1, body, SPAN)])
    hazards = Hazards(tree)
    there = hazards.edge(0, 1)
    back = hazards.edge(1, 0)
    gaps = Gaps.of([there, back], [])
    assert gaps.sets == {(body, 1): [there], (body, 2): [back], (tree, 0): [back]}
    assert gaps.waits == {(body, 1): [there], (body, 0): [back], (tree, 1): [back]}
