"""Regions, grids and submits through the passes that come before they are outlined."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalebox.ir import language as pl
from scalebox.ir import passes
from scalebox.ir.core import (
    AssignStmt,
    InCoreScopeStmt,
    Program,
    SpmdScopeStmt,
    Stmt,
    flatten_to_stmts,
)
from scalebox.ir.expr import Call, Var
from scalebox.ir.interp import interpret_program
from scalebox.ir.printer import python_print
from scalebox.ir.properties import STRUCTURAL, IRProperty
from scalebox.ir.structural import assert_structural_equal
from scalebox.ir.verification.walk import all_calls
from scalebox.ir.verifier import verify

CASES = Path(__file__).resolve().parents[2] / "cases" / "language"
PIPELINE = list(passes.default_pipeline())
FIRST = PIPELINE[: [each.name for each in PIPELINE].index("FlattenCallExpr") + 1]
AFTER = STRUCTURAL | {
    IRProperty.SSAForm, IRProperty.NormalizedStmtStructure, IRProperty.NoNestedCalls,
}  # fmt: skip


def program(name: str) -> Program:
    made = pl.loads(CASES / f"{name}.py")
    assert isinstance(made, Program)
    return made


def arguments(made: Program, entry: str) -> dict[str, Any]:
    """Inputs of the entry: counting floats, zeros for outputs, 3 for scalars."""
    function = made.get_function(entry)
    assert function is not None
    given: dict[str, Any] = {}
    for param in function.params:
        shape = [d.value for d in getattr(param.type, "shape", ())]
        zeros = np.zeros(shape, np.float32)
        given[param.name_hint] = zeros if shape else 3
        if param.name_hint == "x":
            given["x"] = zeros + np.arange(zeros.size, dtype=np.float32).reshape(shape)
    return given


def same_outputs(old: Program, new: Program, entry: str) -> None:
    before = interpret_program(old, arguments(old, entry), entry=entry)
    after = interpret_program(new, arguments(new, entry), entry=entry)
    assert len(before) == len(after)
    for one, other in zip(before.values(), after.values(), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "entry"),
    [("regions", "main"), ("submits", "main"), ("loops", "kinds"), ("tags", "main")],
)
def test_what_comes_before_outlining_changes_no_value(name: str, entry: str) -> None:
    made = program(name)
    for each in FIRST:
        new = each(made)
        assert verify(new, STRUCTURAL) == []
        assert_structural_equal(new, pl.parse(python_print(new)))
        assert each(new) is new
        same_outputs(made, new, entry)
        made = new
    assert verify(made, AFTER) == []


def parsed(body: str) -> Program:
    head = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        out = pl.store(t, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
"""
    made = pl.parse(head + "".join(f"        {line}\n" for line in body.strip().splitlines()))
    assert isinstance(made, Program)
    return made


def main_of(made: Program) -> tuple[Stmt, ...]:
    function = made.get_function("main")
    assert function is not None
    return flatten_to_stmts(function.body)


def test_what_a_region_writes_has_a_version_that_lives_on() -> None:
    made = parsed(
        """
for i in pl.spmd(4):
    t = pl.load(x, [i * 16, 0], [16, 64], target_memory=pl.Mem.Mat)
    out = pl.store(t, [i * 16, 0], out)
return out
"""
    )
    grid, last = main_of(passes.convert_to_ssa()(made))
    assert isinstance(grid, SpmdScopeStmt)
    assert isinstance(grid.body, InCoreScopeStmt)
    stored = flatten_to_stmts(grid.body.body)[-1]
    assert isinstance(stored, AssignStmt)
    assert stored.var.name_hint == "out__ssa_v1"
    assert last.value == (stored.var,)  # pyright: ignore


def test_a_task_that_is_bound_again_gets_another_version() -> None:
    made = parsed(
        """
tid = None
with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]) as tid:
    t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
    out = pl.store(t, [0, 0], out)
with pl.spmd(2, deps=[tid]) as tid:
    out = self.copy(x, out)
"""
    )
    seed, region, grid = main_of(passes.convert_to_ssa()(made))
    assert isinstance(seed, AssignStmt)
    assert isinstance(region, InCoreScopeStmt)
    assert isinstance(grid, SpmdScopeStmt)
    assert region.deps == (seed.var,)
    assert region.task_id is not seed.var
    assert grid.deps == (region.task_id,)
    assert grid.task_id is not region.task_id


def test_what_a_grids_call_is_made_of_moves_out_of_the_grid() -> None:
    made = parsed(
        """
with pl.spmd(4):
    out = self.copy(pl.tensor.view(x, [64, 64]), out)
"""
    )
    for each in FIRST:
        made = each(made)
    view, grid = main_of(made)
    assert isinstance(view, AssignStmt)
    assert isinstance(grid, SpmdScopeStmt)
    call = getattr(grid.body, "value", None)
    assert isinstance(call, Call)
    assert call.args[0] is view.var


def dumped(made: Program) -> list[tuple[str, list[Var], tuple[Any, ...]]]:
    """Every launch of the main function that names variables to dump, with its arguments."""
    function = made.get_function("main")
    assert function is not None
    return [
        (call.op.name, list(call.attrs["dump_vars"]), call.args)
        for call in all_calls(function)
        if "dump_vars" in call.attrs
    ]


def test_the_tags_of_a_call_follow_their_variables_through_every_pass() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, s: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ], x: pl.Tensor[[64, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        u = pl.load(s, [0, 0], [16, 2], target_memory=pl.Mem.Mat)
        t = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        out = pl.store(t, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, s: pl.Tensor[[64, 4], pl.FP8E8M0, pl.MX_A_ZZ], x: pl.Tensor[[64, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ):
        pl.dump_tag(s)
        out = self.k(s, x, out)
        pl.dump_tag(out)
        for i in pl.range(2):
            out = self.k(s, out, out)
        return out
"""
    made = pl.parse(text)
    assert isinstance(made, Program)
    assert [len(variables) for _, variables, _ in dumped(made)] == [1, 2]
    for each in passes.default_pipeline():
        made = each(made)
        found = dumped(made)
        assert [len(variables) for _, variables, _ in found] == [1, 2], type(each).__name__
        for _, variables, args in found:
            assert all(any(var is arg for arg in args) for var in variables), type(each).__name__
        assert_structural_equal(made, pl.parse(python_print(made)))
