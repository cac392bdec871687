"""Regions, grids, submits and tags: the nodes that their text becomes."""

from typing import Any

import pytest

from scalebox.ir import language as pl
from scalebox.ir.core import (
    AssignStmt,
    EvalStmt,
    ForKind,
    ForStmt,
    Function,
    InCoreScopeStmt,
    Program,
    SpmdScopeStmt,
    Stmt,
    flatten_to_stmts,
)
from scalebox.ir.dtypes import Index, TaskId
from scalebox.ir.expr import Call, ConstInt, Expr, Gt, ScalarType, Submit, Var
from scalebox.ir.printer import python_print
from scalebox.ir.structural import assert_structural_equal
from scalebox.ir.types import TensorType, TupleType
from scalebox.ir.verifier import STRUCTURAL, verify

TASK = ScalarType(TaskId)
HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        i = pl.tile.get_block_idx()
        t = pl.load(x, [i * 16, 0], [16, 64], target_memory=pl.Mem.Mat)
        out = pl.store(t, [i * 16, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def two(
        self, x: pl.Tensor[[64, 64], pl.FP32],
        p: pl.Out[pl.Tensor[[64, 64], pl.FP32]], q: pl.Out[pl.Tensor[[16, 32], pl.BF16]],
    ):
        return p, q

    @pl.function(type=pl.FunctionType.InCore)
    def nothing(self, x: pl.Tensor[[64, 64], pl.FP32]):
        pass

    @pl.function
    def main(
        self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
"""


def parsed(body: str) -> Function:
    """The main function of a program, after a check that it reads back as it is printed."""
    indented = "".join(f"        {line}\n" for line in body.strip().splitlines())
    made = pl.parse(HEAD + indented)
    assert isinstance(made, Program)
    assert verify(made, STRUCTURAL) == []
    assert_structural_equal(made, pl.parse(python_print(made)))
    main = made.get_function("main")
    assert main is not None
    return main


def body_of(body: str) -> tuple[Stmt, ...]:
    return flatten_to_stmts(parsed(body).body)


def value_of(stmt: Stmt) -> Any:
    assert isinstance(stmt, AssignStmt), stmt
    return stmt.value


class TestRegions:
    def test_at_is_one_region_of_a_core(self) -> None:
        (region,) = body_of(
            """
with pl.at(level=pl.Level.CORE_GROUP, name_hint="mine", allow_early_resolve=True) as tid:
    t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
    out = pl.store(t, [0, 0], out)
"""
        )
        assert isinstance(region, InCoreScopeStmt)
        assert region.name_hint == "mine"
        assert region.allow_early_resolve
        assert region.task_id is not None
        assert (region.task_id.name_hint, region.task_id.type) == ("tid", TASK)
        assert len(flatten_to_stmts(region.body)) == 2

    def test_a_loop_over_spmd_is_a_grid_whose_region_first_asks_for_its_block(self) -> None:
        (grid,) = body_of(
            """
for i in pl.spmd(n * 2, name_hint="rows", sync_start=True):
    t = pl.load(x, [i * 16, 0], [16, 64], target_memory=pl.Mem.Mat)
    out = pl.store(t, [i * 16, 0], out)
"""
        )
        assert isinstance(grid, SpmdScopeStmt)
        assert (grid.name_hint, grid.sync_start, grid.task_id) == ("rows", True, None)
        assert isinstance(grid.body, InCoreScopeStmt)
        first = flatten_to_stmts(grid.body.body)[0]
        assert isinstance(first, AssignStmt)
        assert (first.var.name_hint, first.var.type) == ("i", ScalarType(Index))
        assert value_of(first).name == "tile.get_block_idx"

    @pytest.mark.parametrize("word", ["get_block_idx", "tile.get_block_idx", "get_block_num"])
    def test_a_grid_that_asks_for_its_block_is_inline(self, word: str) -> None:
        (grid,) = body_of(
            f"""
with pl.spmd(4):
    i = pl.{word}() % 4
    t = pl.load(x, [i * 16, 0], [16, 64], target_memory=pl.Mem.Mat)
    out = pl.store(t, [i * 16, 0], out)
"""
        )
        assert isinstance(grid, SpmdScopeStmt)
        assert isinstance(grid.body, InCoreScopeStmt)

    def test_a_grid_of_a_kernel_holds_its_call_and_nothing_else(self) -> None:
        view, grid, one, other = body_of(
            """
with pl.spmd(4) as tid:
    y = pl.tensor.view(x, [64, 64])
    p, q = self.two(y, out, pl.create_tensor([16, 32], pl.BF16))
"""
        )
        assert value_of(view).name == "tensor.view"
        assert isinstance(grid, SpmdScopeStmt)
        assert isinstance(value_of(grid.body), Call)
        assert [stmt.var.name_hint for stmt in (one, other) if isinstance(stmt, AssignStmt)] == [
            "p", "q",
        ]  # fmt: skip

    def test_names_of_tiles_and_scalars_can_be_used_again_in_the_next_region(self) -> None:
        first, second = body_of(
            """
for i in pl.spmd(4):
    t = pl.load(x, [i * 16, 0], [16, 64], target_memory=pl.Mem.Mat)
    out = pl.store(t, [i * 16, 0], out)
with pl.at(level=pl.Level.CORE_GROUP):
    i = 0
    t = pl.load(x, [i, 0], [8, 32], target_memory=pl.Mem.Mat)
    out = pl.store(t, [i, 0], out)
"""
        )
        assert isinstance(first, SpmdScopeStmt)
        assert isinstance(second, InCoreScopeStmt)
        assert isinstance(first.body, InCoreScopeStmt)
        tiles = [flatten_to_stmts(region.body)[1] for region in (first.body, second)]
        one, other = (stmt.var for stmt in tiles if isinstance(stmt, AssignStmt))
        assert one is not other

    def test_a_region_inherits_from_the_variables_around_it(self) -> None:
        *_, region = body_of(
            """
row = n * 16
with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.load(x, [row, 0], [16, 64], target_memory=pl.Mem.Mat)
    out = pl.store(t, [row, 0], out)
"""
        )
        assert isinstance(region, InCoreScopeStmt)


class TestSubmits:
    def submit(self, body: str) -> Submit:
        found = [
            value
            for stmt in body_of(body)
            if isinstance(value := getattr(stmt, "value", getattr(stmt, "expr", None)), Submit)
        ]
        assert len(found) == 1
        return found[0]

    def test_results_and_task_are_the_elements_of_one_tuple(self) -> None:
        whole, result, task = body_of("y, tid = pl.submit(self.copy, x, out)")
        assert isinstance(whole, AssignStmt)
        assert isinstance(whole.value, Submit)
        assert isinstance(whole.value.type, TupleType)
        tensor, last = whole.value.type.types
        assert isinstance(tensor, TensorType)
        assert last == TASK
        assert value_of(result).index == 0
        assert value_of(task).index == 1

    def test_several_results_come_as_a_tuple_of_their_own(self) -> None:
        stmts = body_of(
            "(p, q), tid = pl.submit(self.two, x, out, pl.create_tensor([16, 32], pl.BF16))"
        )
        assert [s.var.name_hint for s in stmts[1:] if isinstance(s, AssignStmt)] == [
            "p",
            "q",
            "tid",
        ]

    def test_a_kernel_without_results_gives_its_task_only(self) -> None:
        _, task = body_of("(tid,) = pl.submit(self.nothing, x)")
        assert isinstance(task, AssignStmt)
        assert task.var.type == TASK

    def test_the_whole_tuple_can_have_a_name(self) -> None:
        whole, last = body_of("r = pl.submit(self.copy, x, out)\ntid = r[1]")
        assert isinstance(whole, AssignStmt)
        assert whole.var.name_hint == "r"
        assert value_of(last).type == TASK

    def test_outputs_that_are_left_out_are_made(self) -> None:
        p, q, whole, *_ = body_of("(p, q), tid = pl.submit(self.two, x)")
        assert isinstance(p, AssignStmt)
        assert isinstance(q, AssignStmt)
        assert [value_of(s).name for s in (p, q)] == ["tensor.create"] * 2
        assert value_of(whole).args[1:] == (p.var, q.var)
        q, whole, *_ = body_of("(p, q), tid = pl.submit(self.two, x, out)")
        assert isinstance(q, AssignStmt)
        assert value_of(whole).args[2] is q.var
        assert value_of(whole).args[1].name_hint == "out"

    def test_keywords(self) -> None:
        made = self.submit(
            "prev = None\n"
            "y, tid = pl.submit(self.copy, x, out, deps=[prev, None], dumps=[x], "
            "allow_early_resolve=True, predicate=(n > 2), attrs={'note': 1})"
        )
        assert [getattr(d, "name_hint", None) for d in made.deps] == ["prev"]
        assert made.attrs["dump_vars"] == [made.args[0]]
        assert made.attrs["note"] == 1
        assert made.allow_early_resolve
        assert isinstance(made.predicate, Gt)
        assert made.core_num is None

    def test_a_submit_of_a_grid(self) -> None:
        made = self.submit(
            "y, tid = pl.spmd_submit(self.copy, x, out, core_num=4, sync_start=True)"
        )
        assert isinstance(made.core_num, ConstInt)
        assert made.core_num.value == 4
        assert made.sync_start

    def test_a_submit_can_be_a_statement(self) -> None:
        (stmt,) = body_of("pl.submit(self.nothing, x)")
        assert isinstance(stmt, EvalStmt)
        assert isinstance(stmt.expr, Submit)

    def test_none_seeds_a_carry_of_tasks(self) -> None:
        seed, loop = body_of(
            """
prev = None
for i in pl.parallel(4):
    out, prev = pl.submit(self.copy, x, out, deps=[prev])
"""
        )
        assert isinstance(seed, AssignStmt)
        assert value_of(seed).name == "system.task_invalid"
        assert isinstance(loop, ForStmt)
        assert loop.kind is ForKind.Parallel
        assert flatten_to_stmts(loop.body)[-1].var is seed.var  # pyright: ignore

    def test_a_dummy_joins_tasks(self) -> None:
        *_, dummy = body_of(
            "(a,) = pl.submit(self.nothing, x)\n"
            "(b,) = pl.submit(self.nothing, x)\n"
            "both = pl.system.task_dummy(deps=[a, b])"
        )
        assert value_of(dummy).name == "system.task_dummy"
        assert value_of(dummy).type == TASK


class TestTags:
    def dumps(self, stmt: Stmt) -> Any:
        call = getattr(stmt, "value", None)
        assert isinstance(call, Call | Submit)
        return call.attrs.get("dump_vars")

    def test_calls_behind_a_tag_name_the_variable_that_they_consume(self) -> None:
        before, after, other = body_of(
            """
y = self.copy(x, out)
pl.dump_tag(x)
z = self.copy(x, y)
w = self.copy(y, z)
""".replace("w = self.copy(y, z)", "w = self.copy(z, z)")
        )[:3]
        x = value_of(before).args[0]
        assert self.dumps(before) is None
        assert self.dumps(after) == [x]
        assert self.dumps(other) is None

    def test_submits_and_regions_name_it_too(self) -> None:
        stmts = body_of(
            """
pl.dump_tag(x)
with pl.at(level=pl.Level.CORE_GROUP):
    t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
    out = pl.store(t, [0, 0], out)
with pl.spmd(4):
    y = self.copy(x, out)
z, tid = pl.submit(self.copy, x, y, dumps=[y])
"""
        )
        region, grid, submit = stmts[:3]
        assert isinstance(region, InCoreScopeStmt)
        (x,) = region.dumps
        assert isinstance(x, Var)
        assert isinstance(grid, SpmdScopeStmt)
        assert grid.dumps == ()
        assert self.dumps(grid.body) == [x]
        assert [v.name_hint for v in self.dumps(submit)] == ["y", "x"]


def test_what_is_known_is_printed_while_a_kernel_is_parsed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parsed("m = n + 1\npl.static_print('the size', 4 * 16, m, x)")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "the size 64 m: pl.Scalar[pl.INDEX] x: pl.Tensor[[64, 64], pl.FP32]" in shown.err


def test_loops_have_the_kinds_of_their_words() -> None:
    loops = body_of(
        """
s = n
for i in pl.parallel(n):
    s = s + i
for i in pl.unroll(4, 0, -1):
    s = s + i
"""
    )[1:]
    assert [loop.kind for loop in loops if isinstance(loop, ForStmt)] == [
        ForKind.Parallel, ForKind.Unroll,
    ]  # fmt: skip


@pytest.mark.parametrize("alias", ["pl", "language", "anything"])
def test_only_the_object_behind_an_alias_counts(alias: str) -> None:
    text = HEAD.replace("pl.", f"{alias}.") + (
        f"        with {alias}.spmd(4):\n            out = self.copy(x, out)\n        return out\n"
    )
    made = pl.parse(f"import scalebox.ir.language as {alias}\n{text}")
    assert isinstance(made, Program)
    main = made.get_function("main")
    assert main is not None
    assert isinstance(flatten_to_stmts(main.body)[0], SpmdScopeStmt)


def test_expressions_of_a_grid_may_be_calls_of_scalars() -> None:
    (grid, *_) = body_of(
        """
with pl.spmd(pl.min(n, 4)):
    out = self.copy(x, out)
"""
    )
    assert isinstance(grid, SpmdScopeStmt)
    assert isinstance(grid.core_num, Expr)
