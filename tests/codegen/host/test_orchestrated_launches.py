"""Launches of an orchestration: grids, what waits for what, and control functions that call others."""

import pytest

import scalebox
from scalebox.codegen.host.tasks import expand
from scalebox.ir.dtypes import DType, Index
from scalebox.ir.errors import Span, UserError
from scalebox.ir.expr import Add, ScalarType, Submit, Var, index, set_fields
from scalebox.ir.types import TensorType
from scalebox.ir.verification.walk import all_calls

from ..gemm_text import parsed
from .orchestrations import OTHER, SCALARS, Compile, inputs, program, refused, tasks_of


def test_a_grid_is_a_launch_over_its_blocks(compiled: Compile):
    text = program(
        "with pl.spmd(n + 1):",
        "    c = self.tile(a, sa, b, sb, c, 16, 0)",
        "return c",
    )
    graph = tasks_of(compiled(text), inputs())
    assert [(task.block, task.blocks) for task in graph.tasks] == [(b, 4) for b in range(4)]
    assert {task.scalars for task in graph.tasks} == {(16, 0)}


def test_blocks_that_start_together_say_so_to_the_device(compiled: Compile):
    text = program(
        "with pl.spmd(n, sync_start=True):",
        "    c = self.tile(a, sa, b, sb, c, 16, 0)",
        "d, one = pl.spmd_submit(self.tile, a, sa, b, sb, d, 0, 0, core_num=2, sync_start=True)",
        "c = self.tile(a, sa, b, sb, c, 0, 0)",
        "return c, d",
    )
    graph = tasks_of(compiled(text), inputs())
    assert [(task.blocks, task.sync_start) for task in graph.tasks] == [
        (3, True), (3, True), (3, True), (2, True), (2, True), (1, False),
    ]  # fmt: skip


def test_a_submit_waits_for_the_launches_that_it_names(compiled: Compile):
    text = program(
        "c, one = pl.spmd_submit(self.tile, a, sa, b, sb, c, 0, 0, core_num=2)",
        "d, two = pl.submit(self.tile, a, sa, b, sb, d, 0, 0, deps=[one])",
        "both = pl.system.task_dummy(deps=[one, two])",
        "e = pl.create_tensor([32, 64], dtype=pl.FP32)",
        "e, three = pl.submit(self.tile, a, sa, b, sb, e, 0, 0, deps=[both, None])",
        "return c, d",
    )
    graph = tasks_of(compiled(text), inputs())
    assert [task.depends for task in graph.tasks] == [(), (), (0, 1), (0, 1, 2)]


def test_a_name_of_a_launch_is_carried_through_loops_and_branches(compiled: Compile):
    text = program(
        "prev = None",
        "for i in pl.range(n):",
        "    e = pl.create_tensor([32, 64], dtype=pl.FP32)",
        "    e, this = pl.submit(self.tile, a, sa, b, sb, e, 0, 0, deps=[prev])",
        "    if i == 1:",
        "        prev = None",
        "    else:",
        "        prev = this",
        "return c",
    )
    graph = tasks_of(compiled(text), inputs(n=5))
    assert [task.depends for task in graph.tasks] == [(), (0,), (), (2,), (3,)]


def test_a_named_grid_can_be_waited_for(compiled: Compile):
    text = program(
        "with pl.spmd(3) as grid:",
        "    c = self.tile(a, sa, b, sb, c, 0, 0)",
        "with pl.spmd(1, deps=[grid]) as last:",
        "    d = self.tile(a, sa, b, sb, d, 0, 0)",
        "return c, d",
    )
    graph = tasks_of(compiled(text), inputs())
    assert [task.depends for task in graph.tasks] == [(), (), (), (0, 1, 2)]


def test_an_output_that_a_submit_leaves_out_is_made_by_the_launch(compiled: Compile):
    text = program(
        "(p, q), task = pl.submit(self.both, a, sa, b, sb)",
        "return p, q",
    )
    executable = compiled(text)
    graph = tasks_of(executable, inputs())
    assert sum(buffer.allocated for buffer in graph.buffers) == 2
    golden = scalebox.interpret(parsed(text), inputs())
    found = scalebox.run(executable, inputs(), checks="off").outputs
    assert {"p", "q"} <= found.keys()
    assert all(scalebox.compare(found[name], golden[name]) for name in golden)


@pytest.mark.parametrize("n", [2, 3])
def test_a_submit_with_a_predicate_takes_place_if_that_holds(compiled: Compile, n: int):
    text = program(
        "c, one = pl.submit(self.tile, a, sa, b, sb, c, 0, 0, predicate=(n > 2))",
        "d, two = pl.submit(self.tile, a, sa, b, sb, d, 0, 0, deps=[one])",
        "return c, d",
    )
    executable = compiled(text)
    graph = tasks_of(executable, inputs(n=n))
    assert [task.depends for task in graph.tasks] == ([(), (0,)] if n > 2 else [()])
    golden = scalebox.interpret(parsed(text), inputs(n=n))
    found = scalebox.run(executable, inputs(n=n), checks="off").outputs
    assert all(scalebox.compare(found[name], golden[name]) for name in golden)


@pytest.mark.parametrize("n", [2, 9])
def test_what_does_not_take_place_returns_its_outputs_as_they_are(compiled: Compile, n: int):
    """The kernel returns its second output first; the next launch writes into that one."""
    text = program(
        "(p, q), one = pl.submit(self.both, a, sa, b, sb, c, d, predicate=(n > 5))",
        "r = self.tile(a, sa, b, sb, p, 16, 32)",
        "return r",
    )
    golden = scalebox.interpret(parsed(text), inputs(n=n))
    found = scalebox.run(compiled(text), inputs(n=n), checks="off").outputs
    assert all(scalebox.compare(found[name], golden[name]) for name in golden)


def test_control_functions_that_call_each_other_are_refused(compiled: Compile):
    text = """
import scalebox.ir.language as pl
X = pl.Tensor[[16, 16], pl.FP32]
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def one(self, x: X, n: pl.Scalar[pl.INDEX]) -> X:
        if n > 0:
            y = self.other(x, n - 1)
        return x
    @pl.function(type=pl.FunctionType.Orchestration)
    def other(self, x: X, n: pl.Scalar[pl.INDEX]) -> X:
        y = self.one(x, n)
        return y
"""
    message, line, _ = refused(compiled, text)
    assert message == (
        "Control functions that are compiled must not call themselves, as in one -> other -> one"
    )
    assert line == "y = self.one(x, n)"


def test_a_control_function_that_is_called_is_spliced_in(compiled: Compile):
    helper = OTHER.format(
        kind="Orchestration",
        name="twice",
        more=SCALARS,
        body="c = self.tile(a, sa, b, sb, c, n * 16, pl.cast(t, pl.INDEX))\n"
        "        c = self.tile(a, sa, b, sb, c, n * 16, 0)",
    )
    text = (
        program(
            "for i in pl.range(2):",
            "    c = self.twice(a, sa, b, sb, c, d, i, t)",
            "return c",
        )
        + helper
    )
    executable = compiled(text)
    assert executable.default_entry == ""
    host = executable.entry("main")
    graph = expand(host, executable.kernels, {"n": 3, "t": 100})
    assert [task.scalars for task in graph.tasks] == [(0, 100), (0, 0), (16, 100), (16, 0)]


def test_a_scalar_without_a_value_or_with_a_tensor_in_it_is_refused():
    """Raw IR can name a variable that nothing defines."""
    text = program(
        "c, tid = pl.spmd_submit(self.tile, a, sa, b, sb, c, 0, 0, core_num=n)", "return c"
    )
    for value, message in (
        (
            Var("free", ScalarType(Index), Span.unknown()),
            "'free' must have a value before it is used",
        ),
        (
            Add(index(1), Var("w", TensorType([4], DType.Float32), Span.unknown()), Index),
            "A scalar that is compiled must be one, not a tensor",
        ),
    ):
        made = parsed(text)
        main = made.get_function("main")
        assert main is not None
        launch = next(each for each in all_calls(main) if isinstance(each, Submit))
        set_fields(launch, core_num=value)
        with pytest.raises(UserError) as caught:
            scalebox.compile(made)
        assert caught.value.message.startswith(message)
