"""A flag that several loops share: found where loops fill the same buffers, sound, and no other."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import scalebox
from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.codegen.kernel import Kernel
from scalebox.codegen.sync.hazards import Hazards
from scalebox.codegen.sync.insert import needed
from scalebox.codegen.sync.turns import turns_of
from scalebox.codegen.sync.walk import is_safe
from scalebox.codegen.tree import Block, Loop
from scalebox.ir.dtypes import Index
from scalebox.ir.expr import ScalarType, Var, index
from scalebox.ir.language.text import load_file

from .flag_checker import judge
from .random_trees import SPAN, TREES, ZERO, bias, row

#: Loops in a loop, both of which fill the same two slots, and a rest that fills one of them again.
FILLED = {"GRID_M": 1, "GRID_N": 1, "M": 512, "N": 32}


def kernel(root: Path, **params: int) -> Kernel:
    file = root / "examples" / "mxfp8_performance.py"
    program = load_file(file, params=FILLED | params).program
    (made,) = scalebox.compile(program).kernels
    return made


def flags(program: tuple[Instruction, ...], mnemonic: str) -> Counter[tuple[Any, ...]]:
    """How often each flag is named by a kind of instruction."""
    return Counter(
        (Pipe(each["src"]).name, Pipe(each["dst"]).name, each["id"])
        for each in program
        if each.mnemonic == mnemonic
    )


def loop(*items: Any, trips: int = 4) -> Loop:
    return Loop(Var("i", ScalarType(Index)), ZERO, index(trips), 1, Block(list(items)), SPAN)


def test_two_loops_that_fill_one_buffer_take_turns():
    first, then = loop(row(0), bias(0, 0)), loop(row(0), bias(0, 64))
    tree = Block([loop(first, then)])
    hazards = Hazards(tree)
    (edge,) = turns_of(hazards, needed(hazards))
    assert [lane.pipe for lane in edge.pair] == [Pipe.MTE1, Pipe.MTE2]
    assert [(turn.block, turn.x, turn.y) for turn in edge.turns] == [
        (first.body, 1, 0),
        (then.body, 1, 0),
    ]
    assert edge.around is not None
    assert edge.around.block is tree
    kept = [*needed(hazards, [edge])]
    assert not any(each.pair == edge.pair for each in kept if each is not edge)
    assert is_safe(hazards, kept)


def test_what_is_emptied_only_after_another_fill_takes_no_turn():
    inner = loop(row(0))
    hazards = Hazards(Block([loop(row(0), inner, bias(0, 0))]))
    assert not turns_of(hazards, needed(hazards))


@settings(max_examples=60, deadline=None)
@given(tree=TREES)
def test_turns_take_and_set_their_flag_in_one_run_of_a_block(tree: Block):
    hazards = Hazards(tree)
    for edge in turns_of(hazards, needed(hazards)):
        for turn in edge.turns:
            assert turn.y <= turn.x < len(turn.block.items)
        spans = sorted((id(t.block), t.y, t.x) for t in edge.turns)
        for (block, _, x), (other, y, _) in pairwise(spans):
            assert block != other or x < y


def test_every_loop_of_a_performance_kernel_uses_the_flags_of_the_slots(root: Path):
    """As published: two flags for the panels in L1, two for the operands beside the cube, both ways."""
    program = kernel(root, K=4096).program
    back = {("MTE1", "MTE2"), ("M", "MTE1")}
    found = {flag: n for flag, n in flags(program, "set_flag").items() if flag[:2] in back}
    assert set(found) == {(*pair, slot) for pair in back for slot in (0, 1)}
    # Besides the first set: panels in two copies of the loop over tiles, steps in two copies of each.
    assert set(found.values()) == {1 + 2, 1 + 4}


@pytest.mark.parametrize(
    "k",
    [200, 512, 1000, 1160, *(pytest.param(k, marks=pytest.mark.slow) for k in (2560, 4648, 9000))],
)
def test_flags_of_turns_are_sound_and_cost_no_barrier(root: Path, k: int):
    made = kernel(root, K=k, M=272)
    assert judge(made.program, made.views).sound
    assert all(each.mnemonic != "pipe_barrier" for each in made.program)


@pytest.mark.parametrize("sizes", [{"M": 272, "N": 40}, {"M": 144, "N": 264}])
def test_flags_of_arms_for_tiles_at_an_edge_are_sound(root: Path, sizes: dict[str, int]):
    made = kernel(root, K=1160, **sizes)
    assert judge(made.program, made.views).sound
    assert all(each.mnemonic != "pipe_barrier" for each in made.program)


@pytest.mark.slow
def test_without_any_one_set_or_wait_a_flag_is_left_over(root: Path):
    made = kernel(root, K=640, M=384)
    words = [
        number
        for number, each in enumerate(made.program)
        if each.mnemonic in ("set_flag", "wait_flag")
    ]
    for number in words:
        verdict = judge(made.program, made.views, removed=[number])
        assert not verdict.sound, f"{made.program[number]} at {number} is not needed"
