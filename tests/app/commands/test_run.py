"""`scalebox run` as a user types it: examples, options, JSON."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scalebox.app.cli import main
from scalebox.app.commands import run as run_command
from scalebox.ir.target import load_target
from scalebox.traces.bundle import load_bundle

from ..shown import answer

Text = Callable[..., str]
Shown = pytest.CaptureFixture[str]

EXAMPLES = tuple(
    sorted(path.name for path in (Path(__file__).parents[3] / "examples").glob("*.py"))
)


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.usefixtures("examples")
def test_every_example_equals_golden(example: str, capsys: Shown) -> None:
    assert main(["run", f"examples/{example}", "--json"]) == 0
    found = answer(capsys)
    assert found["ok"] is True
    assert found["warnings"] == []
    assert found["outputs"]
    assert all(output["equal"] is True for output in found["outputs"].values())
    assert main(["run", f"examples/{example}", "--seed", "1"]) == 0
    assert "golden   equal bit for bit" in capsys.readouterr().out


@pytest.mark.usefixtures("examples")
def test_warm_inputs_come_sooner(capsys: Shown) -> None:
    cycles: list[int] = []
    for options in ([], ["--warm"]):
        assert main(["run", "examples/mx_gemv.py", "--timing-only", "--json", *options]) == 0
        cycles.append(answer(capsys)["cycles"])
    assert cycles[1] < cycles[0]


@pytest.mark.usefixtures("examples")
def test_a_shell_sees_the_same() -> None:
    child = subprocess.run(
        [sys.executable, "-m", "scalebox", "run", "examples/mx_matmul.py"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (child.returncode, child.stderr) == (0, "")
    lines = child.stdout.splitlines()
    assert lines[0] == "examples/mx_matmul.py: main on machine a5, inputs drawn with seed 0"
    assert max(map(len, lines)) <= 80
    assert child.stdout.isascii()
    assert "\x1b" not in child.stdout


def test_the_json_of_a_run(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["run", kernel(32, 128, 64), "--json"]) == 0
    found = answer(capsys)
    assert found["ok"] is True
    assert found["kernel"] == "kernel.py"
    assert (found["machine"], found["entry"], found["seed"]) == ("a5", "gemm", 0)
    clock = load_target("a5").clock_hz
    cycles, launch = found["cycles"], found["launch_cycles"]
    assert found["microseconds"] == pytest.approx(cycles / clock * 1e6)
    assert found["macs"] == 32 * 128 * 64
    assert found["macs_per_cycle"] == pytest.approx(32 * 128 * 64 / (cycles - launch))
    assert found["peak_macs_per_cycle"] == 16 * 16 * 32
    (pipes,) = found["pipes"]
    assert {"S", "MTE2", "MTE1", "M", "FIX"} <= set(pipes)
    assert all(0 <= busy <= cycles - launch for busy in pipes.values())
    assert pipes["M"] == 25 + 2 * 4 * 4
    assert found["outputs"] == {
        "c": {"shape": [32, 64], "dtype": "float32", "equal": True, "differing": 0}
    }
    assert found["first_difference"] is None
    assert found["warnings"] == []
    assert found["bundle"] == str(Path("scalebox-runs") / "kernel")


def test_param_replaces_a_number_of_the_kernel(examples: Path, capsys: Shown) -> None:
    def macs(*arguments: str) -> int:
        assert main(["run", "examples/mx_matmul.py", "--json", *arguments]) == 0
        return answer(capsys)["macs"]

    assert macs() == 64 * 1024 * 128
    assert macs("--param", "K=2048") == 64 * 2048 * 128
    assert macs("--param", "K=0x200", "--param", "N=64") == 64 * 512 * 64
    assert examples.exists()


def test_an_unknown_param_is_refused_and_the_known_ones_are_listed(
    examples: Path, capsys: Shown
) -> None:
    assert main(["run", "examples/mx_matmul.py", "--param", "Q=1"]) == 2
    assert capsys.readouterr().err == (
        "Error: The kernel file has no parameter 'Q'\n  = help: valid here: M, N, K, STEP\n"
    )
    assert not (examples / "scalebox-runs").exists()


@pytest.mark.parametrize("form", ["run", "run.hrry"])
def test_a_run_says_that_it_replaced_one_before(
    form: str, kernel: Callable[..., str], capsys: Shown
) -> None:
    call = ["run", kernel(), "--timing-only", "--out", form]
    for end in ("", " (replaced the one before)", " (replaced the one before)"):
        assert main(call) == 0
        assert f"bundle   {form}{end}" in capsys.readouterr().out.splitlines()
    assert main([*call, "--json"]) == 0
    assert answer(capsys)["replaced"] is True
    assert main(["run", form, "--out", "again"]) == 0
    assert "bundle   again" in capsys.readouterr().out.splitlines()


def test_set_changes_the_machine(kernel: Callable[..., str], capsys: Shown) -> None:
    def cycles(*arguments: str) -> int:
        assert main(["run", kernel(), "--json", *arguments]) == 0
        return answer(capsys)["cycles"]

    before = cycles()
    assert cycles("--set", "launch_seconds=0") == before - 4950
    assert cycles("--set", "mad_head_cycles=125") == before + 100
    options = json.loads((Path("scalebox-runs") / "kernel" / "options.json").read_text())
    assert options["settings"] == {"mad_head_cycles": "125"}
    machine = (Path("scalebox-runs") / "kernel" / "machine.toml").read_text()
    assert 'value = 125\nsource = "set on the command line"' in machine


def test_a_machine_may_be_named_by_the_option_or_by_the_kernel(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    Path("machines").mkdir()
    Path("machines/base.toml").write_text('name = "base"\ninherit = "a5"\nmad_head_cycles = 125\n')
    Path("machines/slow.toml").write_text('name = "slow"\ninherit = "base.toml"\n')

    def ran(*arguments: str) -> tuple[str, int]:
        assert main(["run", "kernel.py", "--json", *arguments]) == 0
        found = answer(capsys)
        return found["machine"], found["cycles"]

    kernel()
    name, cycles = ran()
    assert name == "a5"
    assert ran("--machine", "machines/slow.toml") == ("slow", cycles + 100)
    kernel(end='\nMACHINE = "machines/slow.toml"\n')
    assert ran() == ("slow", cycles + 100)
    assert ran("--machine", "a5") == ("a5", cycles)
    kernel(end='\nMACHINE = "a5"\n')
    assert ran() == ("a5", cycles)


def test_a_machine_of_the_kernel_lies_beside_it(
    kernel: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    kernel(end='\nMACHINE = "own.toml"\n')
    Path("own.toml").write_text('inherit = "a5"\n')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["run", "../kernel.py", "--json"]) == 0
    assert answer(capsys)["machine"] == "own"
    (tmp_path / "own.toml").unlink()
    assert main(["run", "../kernel.py"]) == 2
    assert str(Path("..") / "own.toml") in capsys.readouterr().err


def test_inputs_come_from_a_file(kernel: Callable[..., str], capsys: Shown) -> None:
    ones = np.full((32, 128), 0x38, np.uint8)  # 1.0 in E4M3
    np.savez(
        "ones.npz",
        a=ones,
        b=np.full((128, 64), 0x38, np.uint8),
        sa=np.full((32, 4), 127, np.uint8),
        sb=np.full((4, 64), 128, np.uint8),
    )
    assert main(["run", kernel(), "--inputs", "ones.npz", "--out", "run", "--json"]) == 0
    found = answer(capsys)
    assert found["seed"] is None
    # One value everywhere could hide a mis-packed scale: the comparison says so.
    assert found["warnings"] == ["golden 'c' is one value everywhere, 256.0, which proves little"]
    outputs = np.load("run/outputs.npz")
    assert np.array_equal(outputs["c"], np.full((32, 64), 256, np.float32))


def test_seeds_give_other_inputs_and_the_same_seed_the_same(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    def inputs(*seed: str) -> dict[str, bytes]:
        assert main(["run", kernel(), "--out", "run", *seed]) == 0
        capsys.readouterr()
        with np.load("run/inputs.npz") as arrays:
            return {name: arrays[name].tobytes() for name in arrays.files}

    assert inputs() == inputs("--seed", "0")
    assert inputs("--seed", "1") == inputs("--seed", "1")
    assert inputs("--seed", "1")["a"] != inputs("--seed", "2")["a"]
    assert inputs("--seed", "1")["sa"] != inputs("--seed", "2")["sa"]


def test_timing_only_needs_no_inputs_and_finds_the_same_cycles(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(), "--json"]) == 0
    whole = answer(capsys)
    assert main(["run", kernel(), "--timing-only", "--json", "--out", "timed"]) == 0
    timed = answer(capsys)
    assert timed["cycles"] == whole["cycles"]
    assert timed["pipes"] == whole["pipes"]
    assert (timed["outputs"], timed["seed"]) == ({}, None)
    assert sorted(path.name for path in Path("timed").iterdir()) == [
        "bundle.json",
        "executable.bin",
        "inputs.npz",
        "machine.toml",
        "options.json",
        "program.py",
        "timeline.json",
    ]
    assert main(["run", "kernel.py", "--timing-only"]) == 0
    assert "golden   not compared: only cycles were computed" in capsys.readouterr().out


def test_the_order_of_summation_is_chosen_and_recorded(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    for order in ("group", "sequential"):
        assert main(["run", kernel(), "--sum", order, "--out", "run", "--json"]) == 0
        assert answer(capsys)["ok"] is True
        assert json.loads(Path("run/options.json").read_text())["sum"] == order


def test_a_scalar_of_the_entry_must_be_given(examples: Path, capsys: Shown) -> None:
    command = ["run", "examples/mx_tiled.py", "--entry", "tile"]
    assert main(command) == 2
    assert capsys.readouterr().err == (
        "Error: The scalar 'row' of 'tile' must be given by --inputs: only tensors are drawn\n"
    )
    np.savez("place.npz", row=64, col=128)
    assert main([*command, "--timing-only", "--inputs", "place.npz", "--json"]) == 0
    assert answer(capsys)["macs"] == 64 * 512 * 128
    assert examples.exists()


def test_a_fault_of_the_running_kernel_is_shown_with_its_line(
    examples: Path, capsys: Shown
) -> None:
    np.savez("place.npz", row=256, col=0)
    command = "run examples/mx_tiled.py --entry tile --timing-only --inputs place.npz"
    assert main(command.split()) == 1
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert lines[0].startswith("Error: Instruction ")
    assert "must stay inside its view of 'a' (256 x 512), not use indices 256 to 319" in lines[0]
    assert lines[1].startswith("  --> examples/mx_tiled.py:")
    assert any("pl.load(a, [row, 0]" in line for line in lines)
    assert shown.out == ""
    assert not (examples / "scalebox-runs").exists()


def test_what_a_kernel_file_prints_does_not_disturb_the_json(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(end="\nprint('hello')\n"), "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["ok"] is True
    assert shown.err == "hello\n"


def test_a_kernel_file_may_import_its_neighbours(
    kernel: Callable[..., str], kernel_text: Text, capsys: Shown
) -> None:
    kernel()
    Path("sizes_beside.py").write_text("M, K, N = 16, 64, 32\n")
    text = kernel_text(16, 64, 32).replace("M, K, N = 16, 64, 32", "from sizes_beside import *")
    Path("kernel.py").write_text(text)
    before = list(sys.path)
    try:
        assert main(["run", "kernel.py", "--json"]) == 0
    finally:
        sys.modules.pop("sizes_beside", None)
    assert answer(capsys)["macs"] == 16 * 64 * 32
    assert sys.path == before


def test_a_kernel_file_that_exits_is_at_fault(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["run", kernel(end="\nimport sys\nsys.exit(0)\n")]) == 1
    assert capsys.readouterr().err == (
        "Error: kernel.py must run to its end, but it exits with 0\n"
    )


def test_without_golden_outputs_are_computed_and_kept_but_not_compared(
    kernel: Callable[..., str], capsys: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["run", kernel(), "--out", "compared"]) == 0
    monkeypatch.setattr(run_command, "interpret", None)  # nobody may compute golden
    assert main(["run", kernel(), "--no-golden", "--out", "alone"]) == 0
    assert "golden   not compared: golden is not asked for" in capsys.readouterr().out
    outputs = [load_bundle(Path(name)).outputs or {} for name in ("compared", "alone")]
    assert outputs[0].keys() == outputs[1].keys() == {"c"}
    np.testing.assert_array_equal(outputs[0]["c"], outputs[1]["c"])
    assert load_bundle(Path("alone")).golden is None


@pytest.mark.parametrize("other", ["--golden", "--rule"])
def test_what_compares_does_not_go_with_no_golden(
    kernel: Callable[..., str], capsys: Shown, other: str
) -> None:
    value = "exact" if other == "--rule" else "golden.npz"
    assert main(["run", kernel(), "--no-golden", other, value]) == 2
    told = capsys.readouterr().err
    assert f"{other} must go with a run that is compared, not with --no-golden" in told
