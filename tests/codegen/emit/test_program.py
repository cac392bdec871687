"""Emission: what the scalar unit computes is what the interpreter computes."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.codegen.emit.program import THRIFT, emit
from scalebox.codegen.tree import Block, Branch, Let, Loop, Step, While
from scalebox.ir import scalar_ops
from scalebox.ir.dtypes import BFloat16, DType, Float16, Index, SimpleDType, UInt64
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.expr import (
    Add,
    And,
    BitShiftLeft,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    Lt,
    Op,
    Or,
    ScalarType,
    Sub,
    Var,
    index,
)

from .scalar_machine import ScalarFaultError, run_scalar_unit
from .scalar_programs import EDGES, PARAMS, SPAN, evaluate, in_range, programs, shown

ARGUMENTS = st.tuples(
    st.sampled_from(EDGES).map(lambda value: in_range(value, Index)),
    st.integers(-5, 5),
    st.integers(-128, 127),
    st.booleans(),
)
ZERO = index(0)


def variable(name: str) -> Var:
    return Var(name, ScalarType(Index))


def let(var: Var, value: Expr) -> Let:
    return Let(var, value, SPAN)


def count(var: Var, body: Sequence[Step | Let | Loop | Branch], stop: int | Expr, start: int = 0):
    last = index(stop) if isinstance(stop, int) else stop
    return Loop(var, index(start), last, 1, Block(list(body)), SPAN)


def run(block: Block, arguments: Sequence[int] = (), params: Sequence[Var] = ()):
    program, _ = emit(block, params)
    return program, [
        (each.registers["xr"], each.registers["xc"]) for each in run_scalar_unit(program, arguments)
    ]


def sums(*terms: Expr) -> Expr:
    """Return a sum that groups to the right, so that every term waits for those after it."""
    total = terms[-1]
    for term in reversed(terms[:-1]):
        total = Add(term, total, Index)
    return total


def test_registers_that_come_free_together_are_taken_again_last_one_first():
    """The same program gets the same registers each time it is compiled."""
    argument = variable("n")
    first, second = ([variable(f"{name}{n}") for n in range(8)] for name in "ab")
    block = Block(
        [
            *(let(each, Add(argument, index(n + 1), Index)) for n, each in enumerate(first)),
            shown(sums(*first), argument),
            *(let(each, Add(argument, index(n + 1), Index)) for n, each in enumerate(second)),
            shown(sums(*second), argument),
        ]
    )
    program, _ = emit(block, [argument])
    made = [each["xd"] for each in program if each.mnemonic == "addi"]
    assert len(made) == 16
    assert made[8:] == made[7::-1]


# --------------------------------------------------------------------------- against the interpreter


@settings(max_examples=60)
@given(block=programs(depth=2), arguments=ARGUMENTS)
def test_a_program_computes_what_the_interpreter_computes(
    block: Block, arguments: tuple[int, int, int, bool]
):
    assert_same(block, arguments)


@pytest.mark.slow
@settings(max_examples=150)
@given(block=programs(depth=3), arguments=ARGUMENTS)
def test_a_larger_program_computes_what_the_interpreter_computes(
    block: Block, arguments: tuple[int, int, int, bool]
):
    assert_same(block, arguments)


def assert_same(block: Block, arguments: tuple[int, int, int, bool]) -> None:
    program, _ = emit(block, PARAMS)
    try:
        expected = evaluate(block, dict(zip(PARAMS, arguments, strict=True)))
    except IRValueError:
        with pytest.raises(ScalarFaultError, match="division by zero"):
            run_scalar_unit(program, [int(value) for value in arguments])
        return
    shown_values = [
        (each.registers["xr"], each.registers["xc"])
        for each in run_scalar_unit(program, [int(value) for value in arguments])
    ]
    assert shown_values == expected


@settings(max_examples=30)
@given(block=programs(depth=2), arguments=ARGUMENTS, thrift=st.sampled_from(THRIFT))
def test_how_registers_are_spent_changes_nothing(
    block: Block, arguments: tuple[int, int, int, bool], thrift: object
):
    from scalebox.codegen.emit.program import _Emitter  # pyright: ignore[reportPrivateUsage]

    generous, _ = emit(block, PARAMS)
    frugal, _ = _Emitter(PARAMS, thrift).program(block)  # pyright: ignore[reportArgumentType]
    outcomes: list[object] = []
    for program in (generous, frugal):
        try:
            issued = run_scalar_unit(program, [int(value) for value in arguments])
            outcomes.append([each.registers for each in issued])
        except ScalarFaultError as fault:
            outcomes.append(str(fault))
    assert outcomes[0] == outcomes[1]


# --------------------------------------------------------------------------- loops


@pytest.mark.parametrize(
    ("start", "stop", "step", "trips"),
    [
        (0, 4, 1, [0, 1, 2, 3]),
        (0, 5, 2, [0, 2, 4]),
        (3, 3, 1, []),
        (4, 3, 1, []),
        (3, 0, -1, [3, 2, 1]),
        (3, -2, -2, [3, 1, -1]),
        (0, 1, -1, []),
        (-3, 0, 1 << 40, [-3]),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_a_loop_makes_the_trips_that_range_makes(
    start: int, stop: int, step: int, trips: list[int], known: bool
):
    number, last = variable("i"), variable("n")
    bound: Expr = index(stop) if known else last
    loop = Loop(number, index(start), bound, step, Block([shown(number, ZERO)]), SPAN)
    _, seen = run(Block([loop]), [stop], [last])
    assert seen == [(trip, 0) for trip in trips]


def test_a_carried_pair_changes_at_once():
    a, b, i = variable("a"), variable("b"), variable("i")
    after_a, after_b = variable("x"), variable("y")
    carried = ((a, index(0), b, after_a), (b, index(1), Add(a, b, Index), after_b))
    loop = Loop(i, ZERO, index(10), 1, Block(), SPAN, carried)
    _, seen = run(Block([loop, shown(after_a, after_b)]))
    assert seen == [(55, 89)]


def test_a_loop_that_does_not_run_hands_on_its_first_values():
    a, i, after = variable("a"), variable("i"), variable("x")
    loop = Loop(i, ZERO, variable("n"), 1, Block(), SPAN, ((a, index(7), ZERO, after),))
    stop = loop.stop
    assert isinstance(stop, Var)
    _, seen = run(Block([loop, shown(after, ZERO)]), [0], [stop])
    assert seen == [(7, 0)]


@pytest.mark.parametrize(
    ("limit", "sums"), [(0, (0, 0)), (1, (1, 1)), (20, (21, 6)), (21, (21, 6))]
)
def test_a_while_loop_goes_on_as_long_as_its_condition_holds(limit: int, sums: tuple[int, int]):
    """Triangular numbers up to the first one that is not below the limit."""
    total, number, limited = variable("t"), variable("n"), variable("limit")
    after, count = variable("x"), variable("y")
    following = Add(number, index(1), Index)
    carried = (
        (total, ZERO, Add(total, following, Index), after),
        (number, ZERO, following, count),
    )
    loop = While(scalar_ops.binary(Lt, total, limited), Block(), SPAN, carried)
    _, seen = run(Block([loop, shown(after, count)]), [limit], [limited])
    assert seen == [sums]


def test_what_a_block_asks_for_is_read_by_an_instruction_of_its_own():
    i, n = variable("i"), variable("n")
    place = [
        Call(Op(f"tile.get_{what}"), (), ScalarType(Index)) for what in ("block_idx", "block_num")
    ]
    program, _ = emit(Block([let(i, place[0]), let(n, place[1]), shown(i, n)]), [])
    assert [each.mnemonic for each in program] == ["block_idx", "block_num", "gm_to_l1_row", "halt"]
    issued = run_scalar_unit(program, block=2, blocks=5)
    assert [each.registers for each in issued] == [{"xr": 2, "xc": 5}]


def test_a_block_may_compute_with_its_number_at_once():
    place = Call(Op("tile.get_block_idx"), (), ScalarType(Index))
    alone = Call(Op("tile.get_subblock_idx"), (), ScalarType(Index))
    step = shown(scalar_ops.binary(Add, place, index(3)), alone)
    program, _ = emit(Block([step]), [])
    assert [each.registers for each in run_scalar_unit(program, block=4, blocks=5)] == [
        {"xr": 7, "xc": 0}
    ]


def test_a_constant_of_a_loop_is_loaded_before_it():
    i = variable("i")
    program, seen = run(Block([count(i, [shown(i, index(9))], 3)]))
    assert seen == [(0, 9), (1, 9), (2, 9)]
    names = [each.mnemonic for each in program]
    assert "movi" not in names[names.index("gm_to_l1_row") :]


def test_constants_made_in_an_arm_are_not_taken_for_granted_after_it():
    condition = variable("c")
    arm = Branch(condition, Block([shown(index(5), ZERO)]), Block(), SPAN)
    for taken in (0, 1):
        _, seen = run(Block([arm, shown(index(5), ZERO)]), [taken], [condition])
        assert seen == [(5, 0)] * (1 + taken)


def test_constants_survive_nested_loops():
    i, j = variable("i"), variable("j")
    inner = count(j, [shown(index(11), index(12)), shown(j, index(13))], 2)
    tree = Block([count(i, [inner, shown(index(12), i)], 2), shown(index(13), index(11))])
    _, seen = run(tree)
    trip = [(11, 12), (0, 13), (11, 12), (1, 13)]
    assert seen == [*trip, (12, 0), *trip, (12, 1), (13, 11)]


def test_an_arm_that_is_empty_costs_no_jump():
    condition = variable("c")
    tree = Block([Branch(condition, Block([shown(ZERO, ZERO)]), Block(), SPAN)])
    assert all(each.mnemonic != "jump" for each in run(tree, [1], [condition])[0])


# --------------------------------------------------------------------------- registers


def test_an_expression_needs_few_registers_whichever_way_it_leans():
    p = variable("p")
    right = sums(*[p] * 60)
    left: Expr = p
    for _ in range(59):
        left = Sub(left, p, Index)
    program, seen = run(Block([shown(right, left)]), [3], [p])
    assert seen == [(180, 3 - 59 * 3)]
    assert max(each["xd"] for each in program if each.row.has("xd")) < 6


def test_a_register_is_free_after_the_last_use_of_its_scalar():
    p = variable("p")
    items: list[Step | Let] = []
    for number in range(100):
        var = variable(f"v{number}")
        items += [let(var, Add(p, index(number), Index)), shown(var, ZERO)]
    _, seen = run(Block([*items]), [1], [p])
    assert seen == [(1 + number, 0) for number in range(100)]


@pytest.mark.parametrize("count_of", [1, 20, 31])
def test_thirty_one_scalars_may_wait_at_once(count_of: int):
    # 31, and the parameter that they are made of.
    p = variable("p")
    held = [variable(f"v{number}") for number in range(count_of)]
    lets = [let(var, Add(p, index(number), Index)) for number, var in enumerate(held)]
    _, seen = run(Block([*lets, *(shown(var, var) for var in held)]), [2], [p])
    assert seen == [(2 + number, 2 + number) for number in range(count_of)]


def test_more_scalars_than_registers_are_refused_with_the_place():
    p = variable("p")
    held = [variable(f"v{number}") for number in range(40)]
    lets = [let(var, Add(p, index(number), Index)) for number, var in enumerate(held)]
    with pytest.raises(IRValueError) as caught:
        emit(Block([*lets, *(shown(var, var) for var in held)]), [p])
    assert caught.value.message == (
        "At most 32 scalar values may be needed at one place of a kernel, and here are more"
    )
    assert caught.value.span == SPAN


def test_many_constants_and_many_parameters_take_turns():
    params = [variable(f"p{number}") for number in range(40)]
    items = [shown(params[n], index(1000 + n)) for n in range(40)]
    tree = Block([count(variable("i"), items, 2)])
    _, seen = run(tree, list(range(40)), params)
    assert seen == [(n, 1000 + n) for n in range(40)] * 2


def test_an_unused_parameter_is_not_read():
    used_one, other = variable("a"), variable("b")
    program, _ = run(Block([shown(other, other)]), [1, 2], [used_one, other])
    assert [each["index"] for each in program if each.mnemonic == "ldparam"] == [1]


# --------------------------------------------------------------------------- refusals and tags


@pytest.mark.parametrize(
    ("expr", "kind", "message"),
    [
        (
            ConstFloat(1.5, DType.E4M3),
            IRValueError,
            "A scalar that is compiled must be made of integer arithmetic, comparisons and logic, "
            "not of ConstFloat",
        ),
        (
            Call(Op("tensor.dim"), (), ScalarType(Index)),
            IRValueError,
            "A scalar that is compiled must be made of integer arithmetic, comparisons and logic, "
            "not of tensor.dim",
        ),
        (
            scalar_ops.binary(
                Lt, Var("f", ScalarType(DType.Float32)), Var("g", ScalarType(DType.Float32))
            ),
            IRTypeError,
            "A scalar that is compiled must be a Bool or an integer that fits a signed 64-bit word, "
            "not Float32",
        ),
        (
            ConstInt(5, UInt64),
            IRTypeError,
            "A scalar that is compiled must be a Bool or an integer that fits a signed 64-bit word, "
            "not UInt64",
        ),
        (
            scalar_ops.binary(BitShiftLeft, Var("p", ScalarType(Index)), ConstInt(-1, Index)),
            IRValueError,
            "The count of a shift must not be negative, but is -1",
        ),
    ],
)
def test_what_the_scalar_unit_cannot_compute_is_refused(
    expr: Expr, kind: type[Exception], message: str
):
    with pytest.raises(kind) as caught:
        emit(Block([let(variable("x"), expr)]), [])
    assert caught.value.message == message  # pyright: ignore
    assert caught.value.span == SPAN  # pyright: ignore


@pytest.mark.parametrize(
    ("number", "dtype", "code"),
    [(1.5, DType.Float32, 0x3FC00000), (-2.0, Float16, 0xC000), (1.0, BFloat16, 0x3F80)],
)
def test_a_float_is_handed_on_by_its_code(number: float, dtype: SimpleDType, code: int):
    program, _ = emit(Block([let(variable("x"), ConstFloat(number, dtype))]), [])
    assert [each["imm"] for each in program if each.mnemonic == "movi"] == [code]


def test_an_illegal_instruction_is_refused_with_its_place():
    step = shown(ZERO, ZERO)
    step.fields["cols"] = 1 << 16
    with pytest.raises(IRValueError, match="cols must be 1 to 65535, not 65536") as caught:
        emit(Block([step]), [])
    assert caught.value.span == SPAN


def test_every_instruction_has_a_tag_and_the_last_one_halts():
    step = shown(index(3), ZERO)
    step.note = "tile"
    program, tags = emit(Block([step]), [])
    assert len(program) == len(tags)
    assert program[-1].mnemonic == "halt"
    assert [tag.note for tag, each in zip(tags, program, strict=True) if each.row.has("view")] == [
        "tile"
    ]
    assert all(tag.span == SPAN for tag in tags[:-1])


def test_truth_values_are_one_and_zero():
    p = Var("p", ScalarType(DType.Bool))
    tests: list[tuple[Expr, int]] = [
        (scalar_ops.not_(p), 0),
        (scalar_ops.binary(And, p, ConstBool(True)), 1),
        (scalar_ops.binary(Or, scalar_ops.not_(p), ConstBool(False)), 0),
    ]
    for expr, expected in tests:
        _, seen = run(Block([shown(expr, ZERO)]), [1], [p])
        assert seen == [(expected, 0)]
