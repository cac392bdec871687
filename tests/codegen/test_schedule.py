"""Issue order: loads stand together, nothing overtakes what it depends on."""

from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.isa.vocabulary import Pipe
from scalebox.codegen.schedule import schedule
from scalebox.codegen.tree import Block, Branch, Let, Loop, Step
from scalebox.ir.dtypes import Index
from scalebox.ir.expr import Add, ScalarType, Var, index

from .sync.random_trees import PAIRED_TREES, SPAN, TREES, ZERO, bias, drain, mad, row, step
from .sync.test_hazards import in_conflict


def variable(name: str) -> Var:
    return Var(name, ScalarType(Index))


def at(slot: int, where: Var) -> Step:
    """A load whose column is a scalar."""
    return step("gm_to_l1_row", view=0, xr=ZERO, xc=where, l1=slot * 32, cols=32)


@settings(max_examples=200)
@given(tree=st.one_of(TREES, PAIRED_TREES))
def test_steps_of_one_pipe_and_steps_that_share_bytes_keep_their_order(tree: Block):
    before = list(tree.steps())
    after = list(schedule(tree).steps())
    assert set(before) == set(after)
    place = {each: number for number, each in enumerate(after)}
    for i, one in enumerate(before):
        for other in before[i + 1 :]:
            if one.lane == other.lane or in_conflict(one, other):
                assert place[one] < place[other]


def test_the_loads_of_a_product_stand_before_its_moves():
    loads, moves = [row(slot) for slot in range(3)], [bias(slot, 0) for slot in range(3)]
    mixed = [step for pair in zip(loads, moves, strict=True) for step in pair]
    product = mad(0, 0)
    assert schedule(Block([*mixed, product])).items == [*loads, *moves, product]


def test_a_load_does_not_overtake_a_product_a_store_or_a_loop():
    first, second = row(0), row(1)
    for between in (mad(0, 0), drain(0), Loop(variable("i"), ZERO, index(2), 1, Block(), SPAN)):
        out = schedule(Block([first, bias(0, 0), between, second])).items
        assert [item.mnemonic if isinstance(item, Step) else "loop" for item in out][-1] == (
            "gm_to_l1_row"
        )


def test_a_load_does_not_overtake_a_move_out_of_its_bytes():
    load, move, again = row(0), bias(0, 0), row(0)
    assert schedule(Block([load, move, again])).items == [load, move, again]


def test_the_inside_of_loops_and_arms_is_ordered_too():
    def pair() -> list[Step]:
        return [row(0), bias(0, 0), row(1), bias(1, 0)]

    loop = Loop(variable("i"), ZERO, index(2), 1, Block([*pair()]), SPAN)
    branch = Branch(variable("c"), Block([*pair()]), Block([*pair()]), SPAN)
    out = list(schedule(Block([loop, branch])).steps())
    pipes = [each.pipe for each in out]
    assert pipes == [Pipe.MTE2, Pipe.MTE2, Pipe.MTE1, Pipe.MTE1] * 3


def test_a_scalar_is_computed_just_before_its_first_use():
    a, b, c = variable("a"), variable("b"), variable("c")
    lets = [
        Let(a, index(1), SPAN),
        Let(b, Add(a, index(1), Index), SPAN),
        Let(c, index(3), SPAN),
    ]
    loads = [at(0, c), at(1, b)]
    out = schedule(Block([*lets, *loads])).items
    assert out == [lets[2], loads[0], lets[0], lets[1], loads[1]]


def test_a_scalar_for_a_loop_is_computed_before_it_and_one_for_the_end_at_the_end():
    a, b = variable("a"), variable("b")
    lets = [Let(a, index(1), SPAN), Let(b, index(2), SPAN)]
    load = at(0, a)
    loop = Loop(variable("i"), ZERO, index(2), 1, Block([load]), SPAN)
    out = schedule(Block([*lets, loop])).items
    assert out[0] is lets[0]
    assert isinstance(out[1], Loop)
    assert out[2] is lets[1]
