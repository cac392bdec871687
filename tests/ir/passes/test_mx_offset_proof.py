"""The proof engine for offsets: its rules, its budget, and that what it accepts is true."""

from collections.abc import Callable

import pytest

from scalebox.ir.core import AssignStmt, ForStmt, IfStmt, Program, SeqStmts, Stmt, YieldStmt
from scalebox.ir.dtypes import DType, Int64
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import (
    Add,
    BinaryExpr,
    Call,
    Cast,
    Expr,
    FloorDiv,
    FloorMod,
    Gt,
    IterArg,
    Max,
    Min,
    Mul,
    Neg,
    Op,
    Sub,
    Submit,
    UnknownType,
    Var,
    index,
)
from scalebox.ir.passes import block_mx_scale_tensor_views
from scalebox.ir.passes.mx_offset_facts import OffsetFacts
from scalebox.ir.passes.mx_offset_proof import prove_multiple, prove_non_negative
from scalebox.ir.types import CommCtxType

from .parts import INDEX, assign, call, function, load, loop, program, scalar, scales, submit

LARGEST = (1 << 63) - 1


def op(kind: type[BinaryExpr], left: Expr | int, right: Expr | int) -> BinaryExpr:
    sides = [index(side) if isinstance(side, int) else side for side in (left, right)]
    return kind(sides[0], sides[1], INDEX.dtype)


def facts_of(*body: Stmt) -> OffsetFacts:
    return OffsetFacts.of(program(function("k", [], *body)))


def accepts(made: Program) -> bool:
    """Whether the pass accepts the program; it may refuse offsets only."""
    try:
        block_mx_scale_tensor_views()(made)
    except IRValueError as error:
        refusal = error.message
    else:
        return True
    assert "cannot be proven" in refusal
    return False


def kernel_with(offset: Expr, *definitions: Stmt, variables: list[Var]) -> Program:
    """A load at `offset` below aligned loops over `variables`."""
    s = scales("s", (1 << 20, 4))
    body: Stmt = SeqStmts((*definitions, assign("t", load(s, [offset, 0]))))
    for var in variables:
        body = loop(var, 0, 64, 16, body)
    return program(function("k", [s], body))


# --------------------------------------------------------------------------- divisibility


LOOP = scalar("i")
ALIGNED = loop(LOOP, 16, 128, 32, assign("unused", index(0)))
N = scalar("n")
MULTIPLES = [
    (index(32), 16, True),
    (index(-16), 16, True),
    (index(0), 16, True),
    (index(8), 16, False),
    (LOOP, 16, True),
    (LOOP, 32, False),
    (op(Mul, N, 16), 16, True),
    (op(Mul, 16, N), 16, True),
    (op(Mul, N, 8), 16, False),
    # A product is a multiple by one factor; two halves do not add up to one.
    (op(Mul, op(Mul, N, 4), 4), 16, False),
    (op(Add, LOOP, 48), 16, True),
    (op(Add, LOOP, 8), 16, False),
    (op(Sub, 16, LOOP), 16, True),
    (op(Sub, N, N), 16, False),
    (op(FloorDiv, op(Mul, N, 64), 4), 16, True),
    (op(FloorDiv, op(Mul, N, 64), 8), 16, False),
    (op(FloorDiv, op(Mul, N, 48), 3), 16, False),
    (op(FloorDiv, op(Mul, N, 64), -4), 16, False),
    (op(FloorDiv, op(Mul, N, 64), 0), 16, False),
    (op(FloorDiv, op(Mul, N, 64), N), 16, False),
    (op(FloorDiv, index(LARGEST - 15), 1 << 60), 16, False),
    (op(FloorMod, LOOP, 16), 16, False),
    (op(Max, LOOP, 16), 16, False),
    (op(Min, LOOP, 16), 16, False),
    (Neg(LOOP, INDEX.dtype), 16, False),
    (Cast(LOOP, Int64), 16, False),
    (Call(Op("tile.get_block_idx"), [], INDEX), 16, False),
    (op(Mul, Call(Op("tile.get_block_idx"), [], INDEX), 16), 16, True),
    (IterArg("x", INDEX, index(16)), 16, False),
    (N, 16, False),
]


@pytest.mark.parametrize(("offset", "divisor", "holds"), MULTIPLES)
def test_what_is_proved_a_multiple(offset: Expr, divisor: int, holds: bool) -> None:
    assert (prove_multiple(facts_of(ALIGNED), offset, divisor) is not None) is holds


def test_a_divisor_may_reach_the_limit_of_64_bits_but_not_leave_it() -> None:
    facts = facts_of(ALIGNED)
    for power, holds in ((58, True), (59, False), (62, False)):
        offset = op(FloorDiv, 0, 1 << power)
        assert (prove_multiple(facts, offset, 16) is not None) is holds


@pytest.mark.parametrize(
    ("start", "step", "holds"),
    [(0, 16, True), (16, 16, True), (8, 16, False), (0, 8, False), (48, -16, True), (0, 0, True)],
)
def test_a_loop_variable_is_a_multiple_by_its_start_and_step(
    start: int, step: int, holds: bool
) -> None:
    i = scalar("i")
    facts = facts_of(loop(i, start, 1000, step, assign("x", i)))
    assert (prove_multiple(facts, i, 16) is not None) is holds


def test_a_loop_over_symbolic_bounds_proves_nothing() -> None:
    i, n = scalar("i"), scalar("n")
    for start, step in ((n, index(16)), (index(0), n)):
        stmt = ForStmt(i, start, index(64), step, (), assign("x", i), ())
        assert prove_multiple(facts_of(stmt), i, 16) is None
    # Where the loop ends plays no part.
    stmt = ForStmt(i, index(0), n, index(16), (), assign("x", i), ())
    assert prove_multiple(facts_of(stmt), i, 16) is not None


# --------------------------------------------------------------------------- signs


SIGNS = [
    (index(0), True),
    (index(-1), False),
    (LOOP, True),
    (op(Add, LOOP, 1), True),
    (op(Add, LOOP, -1), False),
    (op(Mul, LOOP, LOOP), True),
    (op(Mul, LOOP, -1), False),
    (op(Mul, index(-1), index(-1)), False),
    (op(Sub, LOOP, LOOP), False),
    (op(Sub, 5, 3), False),
    (op(FloorDiv, LOOP, 3), True),
    (op(FloorDiv, LOOP, -3), False),
    (op(FloorDiv, LOOP, 0), False),
    (op(FloorDiv, LOOP, LOOP), False),
    (op(FloorMod, LOOP, 3), True),
    (op(FloorMod, LOOP, 0), False),
    # The remainder of a negative number is negative where division truncates.
    (op(FloorMod, op(Sub, LOOP, 99), 16), False),
    (op(FloorMod, N, 16), False),
    (op(Max, LOOP, 0), False),
    (op(Min, LOOP, 0), False),
    (Neg(LOOP, INDEX.dtype), False),
    (Cast(LOOP, Int64), False),
    (IterArg("x", INDEX, index(0)), False),
    (N, False),
    (Call(Op("tile.get_block_idx"), [], INDEX), False),
]


@pytest.mark.parametrize(("offset", "holds"), SIGNS)
def test_what_is_proved_non_negative(offset: Expr, holds: bool) -> None:
    assert (prove_non_negative(facts_of(ALIGNED), offset) is not None) is holds


@pytest.mark.parametrize(
    ("start", "step", "holds"),
    [(0, 16, True), (16, 0, True), (-16, 16, False), (64, -16, False), (0, -16, False)],
)
def test_a_loop_variable_is_non_negative_by_its_start_and_step(
    start: int, step: int, holds: bool
) -> None:
    i = scalar("i")
    facts = facts_of(loop(i, start, 1000, step, assign("x", i)))
    assert (prove_non_negative(facts, i) is not None) is holds


@pytest.mark.parametrize("name", ["tile.get_block_idx", "tile.get_block_num"])
def test_the_identity_of_a_block_is_non_negative(name: str) -> None:
    stmt = assign("b", Call(Op(name), [], INDEX))
    assert prove_non_negative(facts_of(stmt), stmt.var) is not None
    assert prove_multiple(facts_of(stmt), op(Mul, stmt.var, 16), 16) is not None


@pytest.mark.parametrize("name", ["tensor.get_block_idx", "tile.get_subblock_idx", "f"])
def test_no_other_call_is_non_negative(name: str) -> None:
    stmt = assign("b", Call(Op(name), [], INDEX))
    assert prove_non_negative(facts_of(stmt), stmt.var) is None


# --------------------------------------------------------------------------- definitions


def test_a_scalar_is_what_it_was_defined_as() -> None:
    i = scalar("i")
    x = assign("x", op(Mul, i, 4))
    y = assign("y", op(FloorDiv, x.var, 2))
    facts = facts_of(loop(i, 0, 64, 16, x, y))
    # Of i * 4 only the factor i counts: a multiple of 16, and its half of 8.
    assert prove_multiple(facts, y.var, 8) is not None
    assert prove_multiple(facts, y.var, 16) is None
    assert prove_non_negative(facts, y.var) is not None


@pytest.mark.parametrize("second", [index(16), index(32), index(3)])
def test_a_scalar_that_is_assigned_twice_proves_nothing(second: Expr) -> None:
    x = scalar("x")
    facts = facts_of(AssignStmt(x, index(16)), AssignStmt(x, second))
    assert prove_multiple(facts, x, 16) is None
    assert prove_non_negative(facts, x) is None


def test_a_scalar_that_is_assigned_the_same_expression_twice_proves_nothing_either() -> None:
    x, value = scalar("x"), index(16)
    assert prove_multiple(facts_of(AssignStmt(x, value), AssignStmt(x, value)), x, 16) is None


def test_a_parameter_of_two_functions_proves_nothing() -> None:
    s, row = scales(), scalar("row")
    body = assign("t", load(s, [row, 0]))
    main = function("main", [T], assign("r", call("f", T, 16)))
    assert accepts(program(function("f", [s, row], body), main))
    # Nothing is known of what g gets, and it is the same variable.
    assert not accepts(program(function("f", [s, row], body), function("g", [row]), main))


def test_a_loop_carried_offset_proves_nothing_though_its_definition_is_known() -> None:
    arg = IterArg("x", INDEX, index(16))
    facts = facts_of(AssignStmt(arg, index(16)))
    assert prove_multiple(facts, arg, 16) is None
    assert prove_non_negative(facts, arg) is None


def test_sources_are_tried_in_the_order_of_the_calls() -> None:
    # p gets a long sum that holds and a number that does not. As left factor it leaves 254 - 253
    # visits when the sum comes first, and 252 when the number does: enough for three more.
    i, p = scalar("i"), scalar("p")
    total: Expr = i
    for _ in range(125):
        total = op(Add, total, i)
    callee = function("k", [p])
    for sources, holds in (((total, index(3)), False), ((index(3), total), True)):
        launches = [assign(f"r{n}", call("k", each)) for n, each in enumerate(sources)]
        main = function("main", [], loop(i, 0, 64, 16, *launches))
        facts = OffsetFacts.of(program(callee, main))
        proof = prove_multiple(facts, op(Mul, p, op(Add, 16, 16)), 16)
        assert (proof is not None) is holds


def test_a_block_identity_that_is_assigned_again_proves_nothing() -> None:
    x = scalar("x")
    identity = AssignStmt(x, Call(Op("tile.get_block_idx"), [], INDEX))
    for again in (AssignStmt(x, index(-1)), loop(x, -16, 0, 16, assign("y", x))):
        assert prove_non_negative(facts_of(identity, again), x) is None
        assert prove_non_negative(facts_of(again, identity), x) is None


def test_a_variable_that_a_loop_and_an_assignment_give_values_proves_nothing() -> None:
    x = scalar("x")
    bodies = [loop(x, 0, 64, 16, assign("y", x)), AssignStmt(x, index(16))]
    for order in (bodies, bodies[::-1]):
        assert prove_multiple(facts_of(*order), x, 16) is None


def test_a_variable_of_two_loops_must_hold_in_both() -> None:
    i = scalar("i")
    good, bad = loop(i, 0, 64, 16, assign("y", i)), loop(i, 8, 64, 16, assign("z", i))
    assert prove_multiple(facts_of(good, good), i, 16) is not None
    assert prove_multiple(facts_of(good, bad), i, 16) is None
    assert prove_multiple(facts_of(bad, good), i, 16) is None


def test_a_parameter_that_is_assigned_proves_nothing() -> None:
    row = scalar("row")
    callee = function("k", [row], AssignStmt(row, op(Add, row, 8)))
    facts = OffsetFacts.of(program(callee, function("main", [], assign("r", call("k", 16)))))
    assert prove_multiple(facts, row, 16) is None


def test_the_result_of_a_branch_proves_nothing() -> None:
    n, merged = scalar("n"), scalar("merged")
    stmt = IfStmt(
        Gt(n, index(0), DType.Bool), YieldStmt((index(16),)), YieldStmt((index(32),)), (merged,)
    )
    assert prove_multiple(facts_of(stmt), merged, 16) is None
    assert prove_multiple(facts_of(stmt, AssignStmt(merged, index(16))), merged, 16) is None


# --------------------------------------------------------------------------- the budget


def inline_sum(leaves: int) -> Program:
    variables = [scalar(f"i{k}") for k in range(leaves)]
    total: Expr = variables[0]
    for var in variables[1:]:
        total = op(Add, total, var)
    return sum_below_loops(total, variables)


def sum_below_loops(offset: Expr, variables: list[Var]) -> Program:
    """Loops beside each other tell as much about their variables as loops in each other."""
    s = scales("s", (1 << 20, 4))
    loops = [loop(var, 0, 64, 16, assign("x", var)) for var in variables]
    return program(function("k", [s], *loops, assign("t", load(s, [offset, 0]))))


def ssa_chain(additions: int) -> Program:
    i = scalar("i")
    definitions: list[AssignStmt] = []
    last = i
    for number in range(additions):
        definitions.append(assign(f"x{number}", op(Add, last, 16)))
        last = definitions[-1].var
    return kernel_with(last, *definitions, variables=[i])


def doubling_chain(additions: int) -> Program:
    i = scalar("i")
    definitions: list[AssignStmt] = []
    last = i
    for number in range(additions):
        definitions.append(assign(f"x{number}", op(Add, last, last)))
        last = definitions[-1].var
    return kernel_with(last, *definitions, variables=[i])


@pytest.mark.parametrize(
    ("build", "most"), [(inline_sum, 128), (ssa_chain, 85), (doubling_chain, 6)]
)
def test_the_budget_ends_where_it_should(build: Callable[[int], Program], most: int) -> None:
    assert accepts(build(most))
    assert not accepts(build(most + 1))


def test_each_axis_and_each_proof_has_a_budget_of_its_own() -> None:
    # 255 visits for each of four proofs.
    i, j = scalar("i"), scalar("j")
    block: Expr = i
    group: Expr = j
    for _ in range(127):
        block, group = op(Add, block, i), op(Add, group, j)
    s = scales("s", (1 << 20, 4))
    body = assign("t", load(s, [block, group]))
    made = program(function("k", [s], loop(i, 0, 64, 16, loop(j, 0, 8, 2, body))))
    assert accepts(made)


def test_a_factor_that_failed_stays_charged() -> None:
    # The left factor fails after 255 visits at its last leaf: one is left for the right one, which
    # wants one if it is a constant and three if it is a sum.
    i, n = scalar("i"), scalar("n")
    left: Expr = i
    for _ in range(125):
        left = op(Add, left, i)
    left = op(Add, left, n)
    facts = facts_of(loop(i, 0, 64, 16, assign("x", i)))
    assert prove_multiple(facts, op(Mul, left, index(16)), 16) is not None
    assert prove_multiple(facts, op(Mul, left, op(Add, 16, 16)), 16) is None


def test_a_factor_that_held_is_not_tried_the_other_way_when_its_neighbour_fails() -> None:
    # (i * i + n) * R: five visits until n fails, and 251 for R. Trying i * i again would cost two more.
    i, n = scalar("i"), scalar("n")
    facts = facts_of(loop(i, 0, 64, 16, assign("x", i)))
    rest: Expr = i
    for _ in range(125):
        rest = op(Add, rest, i)
    left = op(Add, op(Mul, i, i), n)
    assert prove_multiple(facts, op(Mul, left, rest), 16) is not None
    assert prove_multiple(facts, op(Mul, left, op(Add, rest, i)), 16) is None


def test_an_unknown_source_costs_nothing() -> None:
    # One visit for the product, one for p, none for what is not known of it, and 254 for the rest.
    i, p = scalar("i"), scalar("p")
    total: Expr = i
    for _ in range(125):
        total = op(Add, total, i)
    x = assign("x", total)
    facts = facts_of(loop(i, 0, 64, 16, x))
    facts.sources[p] = [None]
    right = op(Add, x.var, i)
    assert prove_multiple(facts, op(Mul, p, right), 16) is not None
    assert prove_multiple(facts, op(Mul, p, op(Add, right, index(0))), 16) is None


def test_recursion_ends_in_rejection() -> None:
    row, s = scalar("row"), scales()
    again = assign("r", call("k", s, row))
    k = function("k", [s, row], assign("t", load(s, [row, 0])), again)
    assert not accepts(program(k))
    main = function("main", [s], assign("r", call("k", s, 16)))
    assert not accepts(program(k, main))


# --------------------------------------------------------------------------- arguments


def launched(*launches: Call | Submit, extra: tuple[Var, ...] = ()) -> Program:
    s, row = scales(), scalar("row")
    callee = function("k", [s, row, *extra], assign("t", load(s, [row, 0])))
    t = scales("t")
    body = [assign(f"r{number}", launch) for number, launch in enumerate(launches)]
    return program(callee, function("main", [t, scalar("n")], *body))


T = scales("t")


def test_a_parameter_is_what_every_call_passes() -> None:
    assert accepts(launched(call("k", T, 16)))
    assert accepts(launched(call("k", T, 16), call("k", T, 48), submit("k", T, 0)))
    assert not accepts(launched(call("k", T, 16), call("k", T, 8)))
    assert not accepts(launched(call("k", T, 16), submit("k", T, -16)))
    assert not accepts(launched())


def test_a_parameter_is_followed_through_several_functions() -> None:
    s, row = scales(), scalar("row")
    u, outer = scales(), scalar("outer")
    k = function("k", [s, row], assign("t", load(s, [row, 0])))
    middle = function("middle", [u, outer], assign("r", call("k", u, op(Mul, outer, 16))))
    i = scalar("i")
    main = function("main", [T], loop(i, 0, 4, 1, assign("r", call("middle", T, i))))
    assert accepts(program(k, middle, main))
    assert not accepts(program(k, middle))


def test_a_call_with_the_wrong_number_of_arguments_poisons() -> None:
    assert not accepts(launched(call("k", T, 16), call("k", T)))
    assert not accepts(launched(call("k", T, 16), call("k", T, 16, 16)))


def test_a_call_of_a_function_that_is_not_there_is_no_matter() -> None:
    assert accepts(launched(call("k", T, 16), call("elsewhere", T, 3), submit("elsewhere", 3)))


def test_a_submit_may_leave_out_outputs_before_its_contexts() -> None:
    out, ctx = Var("out", UnknownType()), Var("ctx", CommCtxType())
    context = Var("c", CommCtxType())
    # row, out, ctx: the context given last goes to ctx, and out is the runtime's.
    assert accepts(launched(submit("k", T, 16, context), extra=(out, ctx)))
    assert accepts(launched(submit("k", T, 16, T, context), extra=(out, ctx)))
    # Too many arguments, or not even the contexts: nothing is known.
    assert not accepts(launched(submit("k", T, 16, T, T, context), extra=(out, ctx)))
    assert not accepts(launched(submit("k"), extra=(out, ctx)))


def test_a_parameter_that_a_submit_leaves_out_gets_no_value_from_it() -> None:
    ctx = Var("ctx", CommCtxType())
    context = Var("c", CommCtxType())
    # With one argument and the context, row falls into the gap: this submit says nothing of it.
    assert not accepts(launched(submit("k", T, context), extra=(ctx,)))
    assert accepts(launched(submit("k", T, context), submit("k", T, 16, context), extra=(ctx,)))


def test_calls_below_loops_and_branches_count() -> None:
    n = scalar("n")
    bad = assign("r", call("k", T, 8))
    branch = IfStmt(Gt(n, index(0), DType.Bool), bad, None, ())
    s, row = scales(), scalar("row")
    callee = function("k", [s, row], assign("t", load(s, [row, 0])))
    good = assign("r", call("k", T, 16))
    assert accepts(program(callee, function("main", [T], good)))
    assert not accepts(program(callee, function("main", [T], good, loop(n, 0, 4, 1, branch))))
