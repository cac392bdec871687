"""What the Python calls promise, and what their results offer."""

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import scalebox
from scalebox import ir
from scalebox.app.kernel_file import load_kernel_file
from scalebox.app.replay import replay
from scalebox.ir import passes
from scalebox.ir.core import Program
from scalebox.ir.target import load_target

Array = npt.NDArray[Any]
Gemm = Callable[..., Program]
Inputs = Callable[..., dict[str, Array]]

E4M3 = ml_dtypes.float8_e4m3fn


@pytest.fixture
def inputs(mx_inputs: Inputs) -> dict[str, Array]:
    """Launch inputs of a gemm of 32, 256, 64."""
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((32, 256)).astype(E4M3), rng.standard_normal((256, 64)).astype(E4M3)
    return mx_inputs(a, rng.integers(120, 134, (32, 8)), b, rng.integers(120, 134, (8, 64)))


def test_every_public_name_is_there() -> None:
    for name in scalebox.__all__:
        assert getattr(scalebox, name) is not None
    assert scalebox.ir is ir
    assert scalebox.pl is ir.language
    with pytest.raises(AttributeError):
        _ = scalebox.nothing


def test_importing_the_package_loads_no_library() -> None:
    code = (
        "import sys, scalebox; print({'numpy', 'numba', 'ml_dtypes', 'typer'} & set(sys.modules))"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "set()\n"


def test_an_executable_has_kernels_and_a_disassembly(gemm: Gemm) -> None:
    executable = scalebox.compile(gemm(32, 256, 64, step=128))
    assert isinstance(executable, scalebox.Executable)
    assert [kernel.name for kernel in executable.kernels] == ["gemm"]
    assert "mad_mx" in executable.disassemble()


def test_a_result_has_outputs_cycles_pipes_and_a_timeline(
    gemm: Gemm, inputs: dict[str, Array]
) -> None:
    result = scalebox.run(gemm(32, 256, 64, step=128), inputs)
    assert isinstance(result, scalebox.Result)
    assert list(result.outputs) == ["c"]
    assert result.outputs["c"].shape == (32, 64)
    assert result.cycles > 4950
    assert result.microseconds == pytest.approx(result.cycles / 1.65e3)
    assert [set(core) for core in result.pipes] == [{"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"}]
    assert result.pipes[0]["M"] == 2 * (25 + 2 * 4 * 4)
    assert (result.timeline[0].core, result.timeline[0].task) == (0, 0)
    assert {each.name for each in result.timeline} >= {"mad_mx", "l0c_to_gm", "wait_flag"}


def test_what_the_calls_return_is_shown_in_one_line(gemm: Gemm, inputs: dict[str, Array]) -> None:
    program = gemm(32, 256, 64)
    result = scalebox.run(program, inputs)
    outputs = "{c: float32 [32, 64]}"
    assert repr(result) == f"<run of 'gemm': {result.cycles} cycles; outputs {outputs}>"
    untimed = scalebox.run(program, inputs, timing=False)
    assert repr(untimed) == f"<run of 'gemm': no cycles; outputs {outputs}>"
    unknown = scalebox.run(program, inputs, functional=False)
    assert repr(unknown) == f"<run of 'gemm': {unknown.cycles} cycles; outputs {{}}>"
    assert repr(result.outputs) == outputs
    assert repr(scalebox.interpret(program, inputs)) == outputs
    assert "gemm" in repr(scalebox.compile(program))
    assert "\n" not in repr(scalebox.compile(program))


def test_a_program_runs_as_its_executable_does(gemm: Gemm, inputs: dict[str, Array]) -> None:
    program = gemm(32, 256, 64)
    one = scalebox.run(program, inputs)
    two = scalebox.run(scalebox.compile(program), inputs)
    assert scalebox.compare(one.outputs, two.outputs)
    assert one.cycles == two.cycles


def test_a_machine_is_a_name_a_file_or_a_record(
    gemm: Gemm, inputs: dict[str, Array], tmp_path: Path
) -> None:
    program = gemm(32, 256, 64)
    path = tmp_path / "slow.toml"
    path.write_text('inherit = "a5"\nmad_head_cycles = 125\n')
    base = scalebox.run(program, inputs, machine="a5").cycles
    record = load_target("a5").with_settings({"mad_head_cycles": 125})
    for machine in (path, str(path), record):
        assert scalebox.run(program, inputs, machine=machine).cycles == base + 100
        executable = scalebox.compile(program, machine=machine)
        assert scalebox.run(executable, inputs, machine=machine).cycles == base + 100
    assert scalebox.run(scalebox.compile(program), inputs, machine=path).cycles == base + 100


def test_timing_and_function_can_be_had_apart(gemm: Gemm, inputs: dict[str, Array]) -> None:
    program = gemm(32, 256, 64)
    both = scalebox.run(program, inputs)
    timed = scalebox.run(program, functional=False)
    computed = scalebox.run(program, inputs, timing=False)
    assert (timed.cycles, timed.pipes, dict(timed.outputs)) == (both.cycles, both.pipes, {})
    assert computed.cycles == 0
    assert scalebox.compare(computed.outputs, both.outputs)


def test_inputs_may_lie_in_the_cache_before_the_launch(
    gemm: Gemm, inputs: dict[str, Array], tmp_path: Path
) -> None:
    cold, warm = (scalebox.run(gemm(32, 256, 64), inputs, warm=warm) for warm in (False, True))
    assert warm.cycles < cold.cycles
    assert (cold.simulation.warm, warm.simulation.warm) == (False, True)
    assert cold.simulation.traffic is not None
    assert cold.simulation.traffic.fetched_bytes > 0
    assert warm.simulation.traffic is not None
    assert warm.simulation.traffic.fetched_bytes == 0
    np.testing.assert_array_equal(warm.outputs["c"], cold.outputs["c"])
    warm.save(tmp_path / "run")
    assert replay(tmp_path / "run").result.cycles == warm.cycles


def test_two_runs_do_not_share_arrays(gemm: Gemm, inputs: dict[str, Array]) -> None:
    executable = scalebox.compile(gemm(32, 256, 64))
    kept = {name: array.copy() for name, array in inputs.items()}
    first = scalebox.run(executable, inputs)
    before = first.outputs["c"].copy()
    first.outputs["c"][:] = 0
    second = scalebox.run(executable, inputs)
    assert np.array_equal(second.outputs["c"], before)
    assert all(np.array_equal(inputs[name], array) for name, array in kept.items())


def test_golden_is_the_same_after_every_pass(gemm: Gemm, inputs: dict[str, Array]) -> None:
    program = gemm(32, 256, 64, step=64)
    golden = scalebox.interpret(program, inputs)
    for each in passes.default_pipeline():
        program = each(program)
        assert scalebox.compare(scalebox.interpret(program, inputs), golden), each.name
    with_own_passes = scalebox.run(scalebox.compile(gemm(32, 256, 64, step=64)), inputs)
    assert scalebox.compare(with_own_passes.outputs, golden)


def test_an_output_may_be_given_and_keeps_what_is_not_stored(
    gemm: Gemm, inputs: dict[str, Array]
) -> None:
    program = gemm(32, 256, 64, valid=(16, 256, 32))
    before = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    found = scalebox.run(program, {**inputs, "c": before}).outputs["c"]
    assert np.array_equal(found[16:], before[16:])
    assert np.array_equal(found[:, 32:], before[:, 32:])
    assert not np.array_equal(found[:16, :32], before[:16, :32])


def test_a_fresh_result_is_named_after_what_was_returned(inputs: dict[str, Array]) -> None:
    program = scalebox.pl.parse("""
@pl.program
class Fresh:
    @pl.function(type=pl.FunctionType.InCore)
    def gemm(
        self,
        a: pl.Tensor[[32, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[32, 8], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[256, 64], pl.FP8E4M3FN],
        sb: pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ):
        at = pl.move(pl.load(a, [0, 0], [32, 256], target_memory=pl.Mem.Mat), pl.Mem.Left)
        pt = pl.move(pl.load(sa, [0, 0], [32, 8]), pl.Mem.LeftScale)
        bt = pl.move(pl.load(b, [0, 0], [256, 64], target_memory=pl.Mem.Mat), pl.Mem.Right)
        qt = pl.move(pl.load(sb, [0, 0], [8, 64]), pl.Mem.RightScale)
        c = pl.store(pl.matmul_mx(at, pt, bt, qt), [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[32, 256], pl.FP8E4M3FN],
        sa: pl.Tensor[[32, 8], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[256, 64], pl.FP8E4M3FN],
        sb: pl.Tensor[[8, 64], pl.FP8E8M0, pl.MX_B_NN],
    ):
        product = pl.create_tensor([32, 64], pl.FP32)
        product = self.gemm(a, sa, b, sb, product)
        return product
""")
    assert isinstance(program, Program)
    result = scalebox.run(program, inputs)
    golden = scalebox.interpret(program, inputs)
    assert list(result.outputs) == list(golden) == ["product"]
    assert scalebox.compare(result.outputs, golden)


def test_a_function_of_jit_is_taken_for_its_program(tmp_path: Path) -> None:
    text = (
        "from scalebox.ir import language as pl\n\n"
        "@pl.jit\n"
        "def main(x: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):\n"
        "    out = copy(x, out)\n"
        "    return out\n\n"
        "@pl.jit.incore\n"
        "def copy(x: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):\n"
        "    t = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Mat)\n"
        "    out = pl.store(t, [0, 0], out)\n"
        "    return out\n"
    )
    file = tmp_path / "kernel.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("kernel", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    given = {"x": x, "out": 0 * x}
    assert np.array_equal(scalebox.interpret(module.main, given)["out"], x)
    assert isinstance(load_kernel_file(file).program, Program)
