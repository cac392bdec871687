"""Flags: whatever the tree, no hazard is left open, no flag is set twice, nothing hangs."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings

from scalebox.codegen.emit import emit
from scalebox.codegen.isa.program import Instruction
from scalebox.codegen.sync import synchronise
from scalebox.codegen.tree import Block

from .flag_checker import gets_through, judge
from .random_trees import ARGUMENTS, PARAMS, TREES, VIEWS
from .scalar_machine import run_scalar_unit


def program_of(tree: Block) -> list[Instruction]:
    return emit(synchronise(tree), PARAMS)[0]


def assert_sound(program: Sequence[Instruction], arguments: Sequence[int]) -> None:
    verdict = judge(program, VIEWS, arguments)
    assert verdict.sound, verdict
    assert all(gets_through(run_scalar_unit(program, arguments), depth) for depth in (1, 2, 32))


@settings(max_examples=300)
@given(tree=TREES, arguments=ARGUMENTS)
def test_flags_order_every_hazard_of_any_tree(tree: Block, arguments: list[int]):
    assert_sound(program_of(tree), arguments)
