"""Grids, submits and regions the whole way: compiled, saved, loaded, run, and compared with golden."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.app.result import Result
from scalebox.ir import language as pl
from scalebox.ir.core import Function, Program
from scalebox.ir.errors import InputError, IRValueError, SimulationFault
from scalebox.ir.expr import ScalarType
from scalebox.ir.interp import select_entry

Through = Callable[..., Result]
HEAD = """
from scalebox.ir import language as pl
M, K, N, G = 64, 128, 32, 4
@pl.program
class Grid:
    @pl.function(type=pl.FunctionType.{kind})
    def main(self, a: pl.Tensor[[M, K], pl.FP8E4M3FN], sa: pl.Tensor[[M, G], pl.FP8E8M0, pl.MX_A_ZZ],
             b: pl.Tensor[[K, N], pl.FP8E4M3FN], sb: pl.Tensor[[G, N], pl.FP8E8M0, pl.MX_B_NN],
             c: pl.Out[pl.Tensor[[M, N], pl.FP32]], n: pl.Scalar[pl.INDEX]):
{head}
{pad}a_tile = pl.load(a, [{row}, 0], [16, K])
{pad}sa_tile = pl.load(sa, [{row}, 0], [16, G])
{pad}acc = pl.matmul_mx(a_tile, sa_tile, pl.load(b, [0, 0], [K, N]), pl.load(sb, [0, 0], [G, N]))
{pad}c = pl.store(acc, [{row}, 0], c)
        return c
"""


def grid(row: str, head: str = "for i in pl.spmd(n):", kind: str = "Orchestration") -> Program:
    pad = " " * 12 if head else " " * 8
    made = pl.parse(
        HEAD.format(row=row, head=f"        {head}" if head else "", pad=pad, kind=kind)
    )
    assert isinstance(made, Program)
    return made


def inputs(program: Program, **scalars: int) -> dict[str, Any]:
    entry = select_entry(program)
    pairs = zip(entry.params, entry.param_directions, strict=True)
    tensors = [(p, direction) for p, direction in pairs if not isinstance(p.type, ScalarType)]
    shown = Function(entry.name, tensors, [], entry.body, type=entry.func_type)
    return {**draw_inputs(shown, 3), **scalars}


def test_a_grid_over_blocks_of_rows_runs_bit_for_bit(through: Through) -> None:
    program = grid("i * 16")
    result = through(program, inputs(program, n=4))
    assert [(run.block, run.blocks) for run in result.simulation.tasks] == [
        (0, 4), (1, 4), (2, 4), (3, 4),
    ]  # fmt: skip
    assert [run.cluster for run in result.simulation.tasks] == [0, 1, 2, 3]
    assert {run.start for run in result.simulation.tasks} == {result.simulation.launch_cycles}
    assert result.cycles == result.simulation.launch_cycles + max(
        run.cycles for run in result.simulation.tasks
    )


def test_what_the_blocks_do_is_one_kernel_with_the_names_of_the_source() -> None:
    executable = scalebox.compile(grid("i * 16", "for i in pl.spmd(n, name_hint='rows'):"))
    (kernel,) = executable.kernels
    assert kernel.name == "rows"
    assert [param.name for param in kernel.params] == ["a", "sa", "b", "sb", "c"]
    assert "block_idx" in executable.disassemble()
    assert {entry.name for entry in executable.entries} == {"rows", "rows_spmd", "main"}
    assert executable.default_entry == "main"


def test_the_wrapper_of_a_grid_is_an_entry_too(through: Through) -> None:
    program = grid("i * 16", "for i in pl.spmd(n, name_hint='rows'):")
    given = inputs(program, n=4)
    executable = scalebox.compile(program)
    golden = scalebox.interpret(program, given)
    assert scalebox.compare(scalebox.run(executable, given, entry="rows_spmd").outputs, golden)


@pytest.mark.parametrize("row", ["i * 8", "i * 16 + n", "i"])
def test_a_block_of_rows_that_is_not_aligned_is_refused(row: str) -> None:
    with pytest.raises(IRValueError, match=r"must be a multiple of 16, which cannot be proven"):
        scalebox.compile(grid(row))


@pytest.mark.parametrize("n", [0, -3])
def test_a_grid_without_blocks_is_refused_before_it_runs(n: int) -> None:
    program = grid("i * 16")
    given = inputs(program, n=n)
    with pytest.raises(InputError, match=f"must have at least 1 block, not {n}"):
        scalebox.run(program, given)
    with pytest.raises(IRValueError, match=f"1 block or more, not {n}"):
        scalebox.interpret(program, given)


def test_a_block_beyond_the_tensor_is_a_fault_of_the_machine() -> None:
    program = grid("i * 16")
    with pytest.raises(SimulationFault, match="must stay inside its view of 'a'") as caught:
        scalebox.run(program, inputs(program, n=5))
    assert str(caught.value.note).endswith("; it happens in block 4 of 5")


def test_a_region_of_an_undecided_function_makes_it_the_entry(through: Through) -> None:
    program = grid("16", "with pl.at(level=pl.Level.CORE_GROUP):", kind="Opaque")
    assert through(program, inputs(program, n=1), checks="off").entry == "main"


def test_an_undecided_function_that_launches_nothing_is_refused() -> None:
    with pytest.raises(IRValueError) as caught:
        scalebox.compile(grid("16", "", kind="Opaque"))
    assert caught.value.message == (
        "The function 'main' must be InCore or Orchestration to be compiled, not Opaque"
    )


PROGRAMS: Mapping[str, Mapping[str, int]] = {
    "spmd_blocks": {},
    "spmd_kernel": {},
    "regions": {},
    "submits": {},
    "while_loops": {"end": 192},
    "unrolled": {},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_saved_executable_launches_the_same(through: Through, root: Path, name: str) -> None:
    program = pl.load_file(root / "tests" / "cases" / "programs" / f"{name}.py").program
    through(program, inputs(program, **PROGRAMS[name]), checks="off")
