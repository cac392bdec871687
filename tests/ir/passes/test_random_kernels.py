"""Random kernels: what the passes accept computes the same after each, and no tile hits another."""

import dataclasses
import itertools

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import scalebox
from scalebox.ir.core import Program
from scalebox.ir.errors import UserError
from scalebox.ir.passes import PassContext, VerificationInstrument, default_pipeline
from scalebox.ir.target import Target, load_target

from .corpus import assert_same_bits, entry_and_inputs, interpret
from .memories import Walk
from .random_kernels import parsed, random_kernels

A5 = load_target("a5")
#: Memories in which a handful of these tiles fills everything.
TINY = dataclasses.replace(
    A5, l1_bytes=16 * 1024, l0a_bytes=3 * 1024, l0b_bytes=6 * 1024, l0c_bytes=8 * 1024
)
#: What a kernel may be refused for: it says so, and where.
REASONS = ("must not be needed after", "must not be carried", "buffer usage must be")


def through_all_passes(made: Program, target: Target) -> list[Program] | None:
    """The program after each pass, or None when one refuses it."""
    stages = [made]
    try:
        with PassContext([VerificationInstrument()], target):
            for each in default_pipeline():
                stages.append(each(stages[-1]))
    except UserError as error:
        refusal = error
    else:
        event("accepted")
        return stages
    event("refused")
    assert any(reason in refusal.message for reason in REASONS), refusal
    assert refusal.span is not None
    return None


@settings(max_examples=15)
@given(random_kernels(), st.integers(0, 5))
def test_an_accepted_kernel_computes_the_same_after_every_pass(lines: list[str], n: int) -> None:
    stages = through_all_passes(parsed(lines), A5)
    assume(stages is not None)
    assert stages is not None
    entry, inputs = entry_and_inputs(stages[0], {"n": n})
    try:
        golden = interpret(stages[0], entry, inputs)
    except UserError:
        assume(False)  # a loop over n has left the tensors
        raise
    for before, after in itertools.pairwise(stages):
        if after is not before:
            assert_same_bits(interpret(after, entry, inputs), golden)


@settings(max_examples=20)
@given(random_kernels(), st.integers(0, 3), st.booleans())
def test_an_accepted_kernel_finds_every_tile_where_it_was_put(
    lines: list[str], n: int, tiny: bool
) -> None:
    target = TINY if tiny else A5
    stages = through_all_passes(parsed(lines), target)
    if stages is not None:
        Walk(stages[-1], {"n": n}, target)


@settings(max_examples=20)
@given(random_kernels(), st.integers(0, 3))
def test_an_accepted_kernel_runs_as_it_is_interpreted(lines: list[str], n: int) -> None:
    made = parsed(lines)
    try:
        executable = scalebox.compile(made)
        entry, inputs = entry_and_inputs(made, {"n": n})
        golden = interpret(made, entry, inputs)
    except UserError:
        assume(False)
        raise
    found = scalebox.run(executable, inputs, timing=False).outputs
    assert_same_bits(found, golden)
