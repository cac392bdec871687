"""LowerPipelineLoops: every trip once and in order, whatever trips and stages are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    ForKind,
    ForStmt,
    Function,
    Program,
    SeqStmts,
    Stmt,
    YieldStmt,
    flatten_to_stmts,
)
from scalebox.ir.errors import IRValueError
from scalebox.ir.expr import Call, ConstInt, Expr, IterArg, index, replace
from scalebox.ir.interp import interpret_program
from scalebox.ir.passes import (
    canonicalize_io_order,
    convert_to_ssa,
    lower_pipeline_loops,
    normalize_stmt_structure,
)
from scalebox.ir.properties import STRUCTURAL, IRProperty
from scalebox.ir.verifier import verify
from scalebox.ir.visitor import IRVisitor

from .parts import assign, at, function, load, loop, only, program, scalar, scales

BASE = 1009


def trips_of(made: Program, *scalars: int) -> int:
    """What the function returns: its trips' indices as digits to the base 1009."""
    names = [param.name_hint for param in only(made).params]
    (found,) = interpret_program(made, dict(zip(names, scalars, strict=True))).values()
    return int(found)


def digits(indices: range) -> int:
    total = 0
    for value in indices:
        total = (total * BASE + value) % (1 << 64)
    return total if total < 1 << 63 else total - (1 << 64)


def pipelined(start: str, stop: str, step: int, stage: int) -> Program:
    parsed = pl.parse(
        "@pl.function(type=pl.FunctionType.InCore)\n"
        "def k(lo: pl.Scalar[pl.INDEX], hi: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:\n"
        "    x = 0\n"
        f"    for i in pl.pipeline({start}, {stop}, {step}, stage={stage}):\n"
        f"        x = x * {BASE} + i\n"
        "    return x\n"
    )
    assert isinstance(parsed, Function)
    return normalize_stmt_structure()(convert_to_ssa()(Program([parsed], "k")))


def lowered(made: Program) -> Program:
    new = lower_pipeline_loops()(made)
    wanted = {IRProperty.SSAForm, IRProperty.NormalizedStmtStructure}
    assert not verify(new, STRUCTURAL | wanted)
    assert lower_pipeline_loops()(new) is new
    return new


def loops_in(made: Program) -> list[ForStmt]:
    found: list[ForStmt] = []

    class Loops(IRVisitor):
        def visit_for_stmt(self, op: ForStmt) -> None:
            found.append(op)
            self.visit_children(op)

    Loops().visit_program(made)
    return found


@pytest.mark.parametrize("stage", [1, 2, 3, 4])
@pytest.mark.parametrize("trips", range(8))
@pytest.mark.parametrize("step", [1, 64, 3, -1, -64])
@pytest.mark.parametrize("short", [0, 1])
def test_known_trips_run_once_each_and_in_order(
    trips: int, stage: int, step: int, short: int
) -> None:
    # `short` takes one from the end, which then is no multiple of the step away.
    start = 5
    stop = start + trips * step - (short if step > 0 else -short) * (abs(step) > 1)
    made = lowered(pipelined(str(start), str(stop), step, stage))
    assert trips_of(made, 0, 0) == digits(range(start, stop, step))
    whole = [loop for loop in loops_in(made) if loop.kind is ForKind.Pipeline]
    count = len(range(start, stop, step))
    assert len(whole) == (1 if stage == 1 or count >= stage else 0)


@pytest.mark.parametrize("stage", [2, 3, 4])
@pytest.mark.parametrize("start", ["lo", "5"])
@pytest.mark.parametrize("step", [1, 3, -1, -3])
def test_unknown_trips_run_once_each_and_in_order(stage: int, start: str, step: int) -> None:
    made = lowered(pipelined(start, "hi", step, stage))
    assert len(loops_in(made)) == 2
    for distance in range(-9, 10):
        assert trips_of(made, 5, 5 + distance) == digits(range(5, 5 + distance, step))


@given(st.integers(-40, 40), st.integers(-40, 40), st.integers(1, 5), st.booleans())
def test_unknown_and_known_trips_agree(start: int, stop: int, stage: int, down: bool) -> None:
    step = -7 if down else 7
    known = lowered(pipelined(str(start), str(stop), step, stage))
    unknown = lowered(pipelined("lo", "hi", step, stage))
    wanted = digits(range(start, stop, step))
    assert trips_of(known, 0, 0) == wanted
    assert trips_of(unknown, start, stop) == wanted


def test_the_second_loop_has_less_than_a_group_left() -> None:
    made = lowered(pipelined("0", "hi", 1, 3))
    first, second = loops_in(made)
    assert isinstance(first.step, ConstInt)
    assert first.step.value == 3
    assert second.start is first.stop


def test_the_lowered_loop_has_one_stage_until_the_loads_are_ordered() -> None:
    made = lowered(pipelined("0", "8", 1, 2))
    (found,) = loops_in(made)
    assert found.kind is ForKind.Pipeline
    assert found.attrs == {"pipeline_stages": 1}
    (after,) = loops_in(canonicalize_io_order()(made))
    assert after.kind is ForKind.Sequential
    assert after.attrs == {}


def test_a_loop_of_one_stage_and_a_plain_loop_stay_the_same_object() -> None:
    for text in (pipelined("0", "8", 1, 1), program(function("k", [], loop(scalar("i"), 0, 8, 1)))):
        assert lower_pipeline_loops()(text) is text


def nest_of_pipelines(inner: Stmt, stages: int) -> ForStmt:
    stmt = inner
    for name in "ji":
        found = loop(scalar(name), 0, 4, 1, stmt)
        stmt = replace(found, kind=ForKind.Pipeline, attrs={"pipeline_stages": stages})
    assert isinstance(stmt, ForStmt)
    return stmt


def test_copies_of_copies_carry_the_stage_of_the_inner_loop() -> None:
    s = scales()
    made = program(function("k", [s], nest_of_pipelines(assign("t", load(s, [0, 0])), 2)))
    found: list[int] = []

    class Loads(IRVisitor):
        def visit_call(self, op: Call) -> None:
            found.append(op.attrs["pipeline_stage"])

    Loads().visit_program(lowered(made))
    assert found == [0, 1, 0, 1]


def test_what_a_copy_only_reads_of_an_outer_loop_stays_the_same() -> None:
    # The argument of the outer loop is read in the inner one, which is copied: it must not be.
    outer = IterArg("x", index(0).type, index(0))
    inner = replace(
        loop(scalar("j"), 0, 4, 1, assign("y", outer)),
        kind=ForKind.Pipeline,
        attrs={"pipeline_stages": 2},
    )
    stmt = ForStmt(
        scalar("i"),
        index(0),
        index(2),
        index(1),
        (outer,),
        SeqStmts((inner, YieldStmt((outer,)))),
        (scalar("z"),),
    )
    new = lowered(program(function("k", [], stmt)))
    body = only(new).body
    assert isinstance(body, ForStmt)
    copied = flatten_to_stmts(body.body)[0]
    assert isinstance(copied, ForStmt)
    reads = [s for s in flatten_to_stmts(copied.body) if isinstance(s, AssignStmt)]
    assert sum(s.value is outer for s in reads) == 2


@pytest.mark.parametrize("step", [scalar("n"), index(0)])
def test_a_step_that_is_no_constant_is_refused(step: Expr) -> None:
    stmt = ForStmt(
        scalar("i"), index(0), index(4), step, (), assign("y", index(1)), (), at(3),
        ForKind.Pipeline, {"pipeline_stages": 2},
    )  # fmt: skip
    with pytest.raises(IRValueError) as caught:
        lower_pipeline_loops()(program(function("k", [], stmt)))
    assert caught.value.message == "A pipelined loop must have a constant step other than 0"
    assert caught.value.span == at(3)
