"""Launches in the interpreter: blocks in the order of their numbers, submits at their places."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    Function,
    FunctionType,
    InCoreScopeStmt,
    Program,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
)
from scalebox.ir.dtypes import Index
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.expr import Add, Call, GlobalVar, ScalarType, Var, index
from scalebox.ir.interp import interpret_program

X = np.arange(64 * 32, dtype=np.float32).reshape(64, 32) + 1
HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def block(self, x: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        i = pl.tile.get_block_idx()
        n = pl.tile.get_block_num()
        t = pl.load(x, [i * 16, 0], [16, 32], target_memory=pl.Mem.Mat)
        out = pl.store(t, [(n - 1 - i) * 16, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def shift(self, x: pl.Tensor[[64, 32], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        t = pl.load(x, [0, 0], [48, 32], target_memory=pl.Mem.Mat)
        out = pl.store(t, [16, 0], out)
        return out

    @pl.function
    def main(
        self, x: pl.Tensor[[64, 32], pl.FP32], n: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[64, 32], pl.FP32]],
    ):
"""


def run(body: str, n: int = 4) -> npt.NDArray[Any]:
    indented = "".join(f"        {line}\n" for line in body.strip().splitlines())
    made = pl.parse(f"{HEAD}{indented}        return out\n")
    assert isinstance(made, Program)
    given = {"x": X, "n": n, "out": np.zeros_like(X)}
    return interpret_program(made, given, entry="main")["out"]


def upside_down(blocks: int) -> npt.NDArray[Any]:
    """What `block` writes with so many blocks: blocks of 16 rows in the opposite order."""
    expected = np.zeros_like(X)
    for i in range(blocks):
        expected[(blocks - 1 - i) * 16 :][:16] = X[i * 16 :][:16]
    return expected


@pytest.mark.parametrize("blocks", [1, 3, 4])
@pytest.mark.parametrize(
    "body",
    [
        "with pl.spmd(n):\n    out = self.block(x, out)",
        "with pl.spmd(n, sync_start=True) as tid:\n    out = self.block(x, out)",
        "out, tid = pl.spmd_submit(self.block, x, out, core_num=n)",
        (
            "for i in pl.spmd(n):\n"
            "    t = pl.load(x, [i * 16, 0], [16, 32], target_memory=pl.Mem.Mat)\n"
            "    out = pl.store(t, [(pl.tile.get_block_num() - 1 - i) * 16, 0], out)"
        ),
    ],
)
def test_every_block_runs_once_and_knows_its_number(body: str, blocks: int) -> None:
    assert np.array_equal(run(body, blocks), upside_down(blocks))


def test_outside_of_a_grid_there_is_one_block() -> None:
    assert np.array_equal(run("out = self.block(x, out)"), upside_down(1))
    assert np.array_equal(run("out, tid = pl.submit(self.block, x, out)"), upside_down(1))
    after = "with pl.spmd(n):\n    y = self.block(x, out)\nout = self.block(x, out)"
    expected = upside_down(4)
    expected[:16] = X[:16]
    assert np.array_equal(run(after), expected)


def test_blocks_run_in_the_order_of_their_numbers() -> None:
    body = """
for i in pl.spmd(n):
    t = pl.load(x, [i * 16, 0], [16, 32], target_memory=pl.Mem.Mat)
    out = pl.store(t, [0, 0], out)
"""
    assert np.array_equal(run(body)[:16], X[48:])


def test_a_region_runs_at_its_place_and_hands_out_its_tensors() -> None:
    body = """
out = self.shift(x, out)
with pl.at(level=pl.Level.CORE_GROUP) as tid:
    t = pl.load(out, [16, 0], [16, 32], target_memory=pl.Mem.Mat)
    out = pl.store(t, [0, 0], out)
    u = pl.load(out, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
    u = pl.load(out, [0, 0], [16, 32], target_memory=pl.Mem.Mat)
    out = pl.store(u, [48, 0], out)
"""
    assert np.array_equal(run(body), np.concatenate([X[:16], X[:16], X[16:32], X[:16]]))


def test_a_submit_runs_at_its_place_and_its_left_out_output_is_fresh() -> None:
    body = """
y, first = pl.submit(self.shift, x)
z, second = pl.submit(self.shift, y, deps=[first])
out, third = pl.submit(self.shift, z, out, deps=[second, pl.system.task_dummy([first])])
"""
    expected = np.zeros_like(X)
    expected[48:] = X[:16]
    assert np.array_equal(run(body), expected)


@pytest.mark.parametrize(("n", "rows"), [(4, 48), (2, 0)])
def test_a_predicate_decides_whether_a_launch_takes_place(n: int, rows: int) -> None:
    found = run("out, tid = pl.submit(self.shift, x, out, predicate=(n > 2))", n)
    assert np.array_equal(found[16 : 16 + rows], X[:rows])
    assert not found[16 + rows :].any()


def test_trips_of_a_parallel_loop_run_in_ascending_order() -> None:
    body = """
prev = None
for i in pl.parallel(n):
    out, prev = pl.submit(self.shift, x, out, deps=[prev])
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [i * 16, 0], [16, 32], target_memory=pl.Mem.Mat)
        out = pl.store(t, [0, 0], out)
"""
    assert np.array_equal(run(body)[:16], X[48:])


def test_tasks_are_numbered_from_1_and_no_task_is_0() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def nothing(self, n: pl.Scalar[pl.INDEX]):
        pass

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX]):
        none = None
        (one,) = pl.submit(self.nothing, n)
        two = pl.system.task_dummy([none, one])
        (three,) = pl.spmd_submit(self.nothing, n, core_num=5)
        return none, one, two, three
"""
    made = pl.parse(text)
    assert isinstance(made, Program)
    assert [int(v) for v in interpret_program(made, {"n": 0}).values()] == [0, 1, 2, 3]


def test_a_grid_without_blocks_is_refused() -> None:
    with pytest.raises(IRValueError, match=r"^A grid must have 1 block or more, not 0"):
        run("with pl.spmd(n):\n    out = self.block(x, out)", 0)


def test_a_predicate_needs_a_kernel_that_returns_its_outputs() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, n: pl.Scalar[pl.INDEX]):
        return n

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX]):
        m, tid = pl.submit(self.k, n, predicate=(n > 3))
        return m
"""
    made = pl.parse(text)
    assert isinstance(made, Program)
    assert interpret_program(made, {"n": 4})["m"] == 4
    with pytest.raises(IRTypeError, match="must be of a function that returns its outputs"):
        interpret_program(made, {"n": 3})


def test_blocks_do_not_see_each_others_scalars() -> None:
    n, m = Var("n", ScalarType(Index)), Var("m", ScalarType(Index))
    count = AssignStmt(m, Add(m, index(1), Index))
    body = SeqStmts(
        (
            AssignStmt(m, n),
            SpmdScopeStmt(core_num=index(4), body=InCoreScopeStmt(body=count)),
            ReturnStmt((m,)),
        )
    )
    made = Program([Function("f", [n], [n.type], body, type=FunctionType.Orchestration)])
    assert interpret_program(made, {"n": 5})["m"] == 6


def test_a_region_that_is_left_is_refused() -> None:
    n = Var("n", ScalarType(Index))
    region = InCoreScopeStmt(body=ReturnStmt((n,)))
    made = Program([Function("f", [n], [n.type], region, type=FunctionType.Orchestration)])
    with pytest.raises(IRValueError, match="must not be left by return"):
        interpret_program(made, {"n": 5})


def test_a_launch_of_an_unknown_function_is_refused() -> None:
    call = EvalStmt(Call(GlobalVar("g"), []))
    made = Program([Function("f", [], [], SpmdScopeStmt(core_num=index(2), body=call))])
    with pytest.raises(IRValueError, match=r"^'g' must name a function of the program"):
        interpret_program(made, {})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "for i in pl.range(n):\n    k = i",
            "A launch of 'main' must take at most 100 host steps.",
        ),
        (
            "k = n\nwhile k > 0:\n    k = k + 1",
            "A launch of 'main' must take at most 100 host steps.",
        ),
        (
            "for i in pl.range(n):\n    out = self.block(x, out)",
            "A launch of 'main' must have at most 10 tasks.",
        ),
        (
            "for i in pl.spmd(n):\n    out = pl.store(pl.load(x, [i * 16, 0], [16, 32]), [0, 0], out)",
            "A launch of 'main' must have at most 10 tasks.",
        ),
        (
            "out, tid = pl.spmd_submit(self.block, x, out, core_num=n)",
            "A launch of 'main' must have at most 10 tasks.",
        ),
        (
            (
                "with pl.at(level=pl.Level.CORE_GROUP, name_hint='count'):\n"
                "    k = n\n"
                "    while k > 0:\n"
                "        k = k + 1\n"
                "    out = pl.store(pl.load(x, [0, 0], [16, 32]), [0, 0], out)"
            ),
            "Kernel 'count' must end within 40 instructions, not still be in this loop.",
        ),
    ],
)
def test_what_the_machine_would_not_finish_is_refused_with_its_place(
    monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    monkeypatch.setattr("scalebox.ir.limits.MAX_STEPS", 100)
    monkeypatch.setattr("scalebox.ir.limits.MAX_TASKS", 10)
    monkeypatch.setattr("scalebox.ir.limits.MAX_INSTRUCTIONS", 40)
    with pytest.raises(IRValueError) as caught:
        run(body, 1 << 40)
    assert caught.value.message == message
    assert caught.value.span is not None
    assert caught.value.span.is_known


def test_every_block_and_every_kernel_has_rounds_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scalebox.ir.limits.MAX_INSTRUCTIONS", 40)
    monkeypatch.setattr("scalebox.ir.limits.MAX_STEPS", 4)
    body = """
for i in pl.spmd(n):
    t = pl.load(x, [i * 16, 0], [16, 32], target_memory=pl.Mem.Mat)
    for j in pl.range(20):
        out = pl.store(t, [i * 16, 0], out)
for i in pl.range(4):
    with pl.at(level=pl.Level.CORE_GROUP):
        for j in pl.range(20):
            out = pl.store(pl.load(out, [0, 0], [16, 32]), [0, 0], out)
"""
    assert np.array_equal(run(body), X)
