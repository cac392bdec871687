"""Grids of blocks, numbers of launches and what waits for what, and host loops with a condition."""

import pytest

from scalebox.codegen.host.check import check_host
from scalebox.codegen.host.program import (
    Assign,
    For,
    HostProgram,
    If,
    Join,
    Launch,
    Output,
    Statement,
    While,
)
from scalebox.codegen.host.tasks import TaskGraph, expand
from scalebox.codegen.isa.program import make
from scalebox.codegen.kernel import Kernel
from scalebox.codegen.scalars.exprs import Binary, BinaryOp, Const, Scalar, Variable
from scalebox.codegen.tensors import Direction, Param, ParamKind
from scalebox.ir.errors import InputError, IRValueError

ONE, TWO = Const(1), Const(2)
N = Variable("n")


def tensor(name: str, direction: Direction = Direction.IN) -> Param:
    return Param(name, ParamKind.TENSOR, "FP32", 32, direction, (16, 16))


COPY = Kernel.assemble(
    "copy",
    params=[tensor("src"), tensor("dst", Direction.OUT)],
    views=[],
    program=[make("halt")],
)
PARAMS = (
    *(tensor(name) for name in "ab"),
    *(tensor(name, Direction.OUT) for name in "cd"),
    Param("n", ParamKind.SCALAR, "INDEX", 64),
)


def copy(
    source: str, target: str, blocks: Scalar = ONE, name: str = "", deps: tuple[Scalar, ...] = ()
) -> Launch:
    return Launch(0, (source, target), (), blocks, deps, name)


def run(*body: Statement, n: int = 0) -> TaskGraph:
    host = HostProgram("main", PARAMS, body, (Output("c", "c"),))
    check_host(host, (COPY,))
    return expand(host, (COPY,), {"n": n})


def depends(*body: Statement, n: int = 0) -> list[tuple[int, ...]]:
    return [task.depends for task in run(*body, n=n).tasks]


# --------------------------------------------------------------------------- blocks


def test_a_launch_is_a_task_a_block_and_its_blocks_do_not_wait_for_each_other():
    graph = run(copy("a", "c", N), n=3)
    assert [(task.block, task.blocks) for task in graph.tasks] == [(0, 3), (1, 3), (2, 3)]
    assert [task.depends for task in graph.tasks] == [(), (), ()]
    assert {task.buffers for task in graph.tasks} == {("a", "c")}


def test_whoever_uses_what_a_grid_wrote_waits_for_all_of_its_blocks():
    assert depends(copy("a", "c", TWO), copy("c", "d", TWO), copy("b", "c")) == [
        (), (), (0, 1), (0, 1), (0, 1, 2, 3),
    ]  # fmt: skip


@pytest.mark.parametrize("blocks", [0, -1])
def test_a_grid_without_blocks_is_refused(blocks: int):
    with pytest.raises(InputError) as caught:
        run(copy("a", "c", N), n=blocks)
    assert caught.value.message == (f"A launch of 'copy' must have at least 1 block, not {blocks}.")


def test_blocks_count_as_tasks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scalebox.ir.limits.MAX_TASKS", 10)
    assert len(run(copy("a", "c", N), n=10).tasks) == 10
    with pytest.raises(InputError, match="A launch of 'main' must have at most 10 tasks"):
        run(copy("a", "c", N), n=11)
    with pytest.raises(InputError, match="must have at most 10 tasks"):
        run(copy("a", "c", N), n=1 << 62)


def test_dependences_are_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scalebox.codegen.host.tasks.MAX_DEPENDENCES", 10)
    many = For("i", Const(0), N, ONE, (copy("c", "d"),))
    assert len(run(copy("a", "c", TWO), many, n=3).tasks) == 5
    with pytest.raises(InputError, match="must wait for each other at most 10 times"):
        run(copy("a", "c", TWO), many, n=5)


# --------------------------------------------------------------------------- numbers of launches


def test_a_launch_waits_for_those_that_it_names_besides_those_whose_data_it_uses():
    assert depends(
        copy("a", "c", TWO, "first"),
        copy("b", "d", ONE, "second"),
        copy("b", "d", ONE, deps=(Variable("first"),)),
    ) == [(), (), (), (0, 1, 2)]


def test_number_0_is_no_launch():
    assert depends(copy("a", "c"), copy("b", "d", deps=(Const(0),))) == [(), ()]


def test_a_number_is_carried_through_loops_and_branches():
    chain = (
        Assign("last", Const(0)),
        For(
            "i",
            Const(0),
            Const(3),
            ONE,
            (
                If(
                    Binary(BinaryOp.EQ, Variable("i"), ONE),
                    (Assign("prev", Const(0)),),
                    (Assign("prev", Variable("last")),),
                ),
                copy("a", "c", ONE, "one", deps=(Variable("prev"),)),
                copy("b", "d", ONE, "last", deps=(Variable("one"),)),
            ),
        ),
    )
    assert depends(*chain) == [(), (0,), (0,), (1, 2), (2, 3), (3, 4)]


def test_a_join_stands_for_all_that_it_waits_for():
    joined = (
        copy("a", "c", TWO, "x"),
        copy("b", "d", ONE, "y"),
        Join("all", (Variable("x"), Variable("y"), Const(0))),
        Join("again", (Variable("all"),)),
        Join("nothing", ()),
        copy("a", "c", deps=(Variable("again"), Variable("nothing"))),
    )
    assert depends(*joined) == [(), (), (), (0, 1, 2)]


@pytest.mark.parametrize("number", [-1, 2, 1 << 40])
def test_a_number_that_no_launch_has_had_yet_is_refused(number: int):
    with pytest.raises(InputError) as caught:
        run(copy("a", "c"), copy("a", "c", deps=(N,)), n=number)
    assert caught.value.message == (
        f"A launch of 'main' must depend on earlier ones, 0 to 1, not on {number}."
    )


@pytest.mark.parametrize(
    "body",
    [
        (copy("a", "c", Variable("x")),),
        (copy("a", "c", deps=(Variable("x"),)),),
        (Join("y", (Variable("x"),)),),
        (While(Variable("x"), ()),),
        (While(N, (copy("a", "c", name="x"),)), copy("a", "c", deps=(Variable("x"),))),
    ],
)
def test_scalars_of_launches_must_be_defined(body: tuple[Statement, ...]):
    with pytest.raises(IRValueError, match=r"use scalars that are defined \(n\), not 'x'"):
        run(*body)


# --------------------------------------------------------------------------- while


def test_a_loop_with_a_condition_goes_on_as_long_as_it_holds():
    half = Assign("x", Binary(BinaryOp.FLOORDIV, Variable("x"), TWO))
    loop = While(Binary(BinaryOp.GT, Variable("x"), Const(0)), (copy("a", "c"), half))
    for n, trips in ((0, 0), (1, 1), (9, 4)):
        assert len(run(Assign("x", N), loop, n=n).tasks) == trips


def test_a_loop_without_end_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("scalebox.ir.limits.MAX_STEPS", 1000)
    with pytest.raises(InputError) as caught:
        run(While(ONE, ()))
    assert caught.value.message == "A launch of 'main' must take at most 1000 host steps."
