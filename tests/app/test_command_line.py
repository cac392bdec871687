"""The commands as a user types them: every example of every help, options, JSON, early ends."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app import cli
from scalebox.app.cli import BROKEN_PIPE, main
from scalebox.ir.core import Program
from scalebox.ir.target import load_target
from scalebox.rtl.emit import UNITS

Text = Callable[..., str]
Shown = pytest.CaptureFixture[str]

COMMANDS = ("run", "compile", "disasm", "compare", "rtl")
EXAMPLES = tuple(
    sorted(path.name for path in (Path(__file__).parents[2] / "examples").glob("*.py"))
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> Path:
    """The current folder, with a copy of the examples, as in a clone."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(root / "examples", "examples")
    return tmp_path


@pytest.fixture
def kernel(
    kernel_text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Writes `kernel.py` into the current folder, which is empty at first."""
    monkeypatch.chdir(tmp_path)

    def write(*sizes: int, end: str = "") -> str:
        Path("kernel.py").write_text(kernel_text(*(sizes or (32, 128, 64))) + end)
        return "kernel.py"

    return write


def answer(shown: Shown) -> dict[str, Any]:
    captured = shown.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)


# --------------------------------------------------------------------------- help


def help_of(command: str) -> str:
    child = subprocess.run(
        [sys.executable, "-m", "scalebox", *command.split(), "--help"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert (child.returncode, child.stderr) == (0, "")
    return child.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_example_of_a_help_works_as_it_is_written(
    command: str, folder: Path, capsys: Shown
) -> None:
    text = help_of(command)
    assert max(map(len, text.splitlines())) <= 80
    examples = [line.strip() for line in text.partition("Example:")[2].splitlines() if line.strip()]
    assert examples
    assert any(example.startswith(f"scalebox {command}".rstrip()) for example in examples)
    for example in examples:
        program, *arguments = example.split()
        assert program == "scalebox"
        assert main(arguments) == 0, capsys.readouterr()
    assert folder.exists()


def test_the_help_lists_every_command_in_a_whole_sentence() -> None:
    listed = dict(re.findall(r"^  (\w+) {2,}(.*)$", help_of("").partition("Commands:")[2], re.M))
    assert tuple(listed) == COMMANDS
    assert all(sentence.endswith(".") and "..." not in sentence for sentence in listed.values())


def test_the_help_names_every_choice() -> None:
    assert "error, warn or off" in " ".join(help_of("run").split())
    assert "group or sequential" in " ".join(help_of("run").split())
    assert " or ".join(UNITS) in " ".join(help_of("rtl").split())


# --------------------------------------------------------------------------- run


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.usefixtures("folder")
def test_every_example_equals_golden(example: str, capsys: Shown) -> None:
    assert main(["run", f"examples/{example}", "--json"]) == 0
    found = answer(capsys)
    assert found["ok"] is True
    assert found["warnings"] == []
    assert found["outputs"]
    assert all(output["equal"] is True for output in found["outputs"].values())
    assert main(["run", f"examples/{example}", "--seed", "1"]) == 0
    assert "golden   equal bit for bit" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
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


def test_param_replaces_a_number_of_the_kernel(folder: Path, capsys: Shown) -> None:
    def macs(*arguments: str) -> int:
        assert main(["run", "examples/mx_matmul.py", "--json", *arguments]) == 0
        return answer(capsys)["macs"]

    assert macs() == 64 * 1024 * 128
    assert macs("--param", "K=2048") == 64 * 2048 * 128
    assert macs("--param", "K=0x200", "--param", "N=64") == 64 * 512 * 64
    assert folder.exists()


def test_an_unknown_param_is_refused_and_the_known_ones_are_listed(
    folder: Path, capsys: Shown
) -> None:
    assert main(["run", "examples/mx_matmul.py", "--param", "Q=1"]) == 2
    assert capsys.readouterr().err == (
        "Error: The kernel file has no parameter 'Q'\n  = help: valid here: M, N, K, STEP\n"
    )
    assert not (folder / "scalebox-runs").exists()


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


def test_a_scalar_of_the_entry_must_be_given(folder: Path, capsys: Shown) -> None:
    command = ["run", "examples/mx_tiled.py", "--entry", "tile"]
    assert main(command) == 2
    assert capsys.readouterr().err == (
        "Error: The scalar 'row' of 'tile' must be given by --inputs: only tensors are drawn\n"
    )
    np.savez("place.npz", row=64, col=128)
    assert main([*command, "--timing-only", "--inputs", "place.npz", "--json"]) == 0
    assert answer(capsys)["macs"] == 64 * 512 * 128
    assert folder.exists()


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


# --------------------------------------------------------------------------- compile, disasm, compare


def test_an_executable_runs_like_its_kernel(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["run", kernel(), "--json", "--out", "a"]) == 0
    whole = answer(capsys)
    assert main(["compile", "kernel.py", "-o", "kernel.sbx", "--json"]) == 0
    compiled = answer(capsys)
    assert (compiled["ok"], compiled["executable"]) == (True, "kernel.sbx")
    assert main(["run", "kernel.sbx", "--json", "--out", "b"]) == 0
    again = answer(capsys)
    assert again["cycles"] == whole["cycles"]
    assert main(["compare", "a", "b"]) == 0
    assert capsys.readouterr().out == "c: equal, 2048 elements (rule exact)\n"
    assert main(["run", "kernel.sbx"]) == 0
    shown = capsys.readouterr().out
    assert "golden   not compared: an executable holds no kernel to compute golden from" in shown


def test_disasm_shows_an_executable_as_it_shows_its_kernel(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["compile", kernel(), "-o", "kernel.sbx"]) == 0
    assert capsys.readouterr().out.startswith("kernel.sbx: Gemm for a5: gemm (")
    texts: list[str] = []
    for file in ("kernel.py", "kernel.sbx"):
        assert main(["disasm", file]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert "mad_mx " in texts[0]
    program = scalebox.pl.parse(Path("kernel.py").read_text())
    assert isinstance(program, Program)
    assert "mad_mx " in scalebox.compile(program).disassemble()


def test_compare_tells_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.chdir(tmp_path)
    golden = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    actual = golden.copy()
    actual[1, 0] = np.nextafter(np.float32(3), np.float32(4))
    np.savez("golden.npz", c=golden)
    np.savez("actual.npz", c=actual)
    np.save("golden.npy", golden)
    assert main(["compare", "golden.npy", "golden.npy"]) == 0
    assert capsys.readouterr().out == "out: equal, 4 elements (rule exact)\n"
    assert main(["compare", "actual.npz", "golden.npz"]) == 1
    assert capsys.readouterr().out == (
        "c: 1 of 4 elements differs (rule exact)\n"
        "  first at [1, 0]\n"
        "    actual  3.0000002  0x40400001\n"
        "    golden  3.0        0x40400000\n"
        "    1 ulp apart\n"
    )
    assert main(["compare", "actual.npz", "golden.npz", "--rule", "ulp:1", "--json"]) == 0
    assert answer(capsys) == {
        "ok": True,
        "rule": "ulp:1",
        "elements": 4,
        "differing": 0,
        "outputs": {"c": {"elements": 4, "differing": 0, "equal": True}},
        "first_difference": None,
        "warnings": [],
    }
    actual[0, 0] = np.nan
    np.savez("actual.npz", c=actual)
    assert main(["compare", "actual.npz", "golden.npz", "--json"]) == 1
    first = answer(capsys)["first_difference"]
    assert (first["index"], first["actual"], first["golden"]) == ([0, 0], "nan", 1.0)
    assert (first["actual_bits"], first["golden_bits"]) == ("0x7fc00000", "0x3f800000")


@pytest.mark.parametrize("unit", UNITS)
def test_rtl_writes_verilog(
    unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["rtl", "-o", "out", "--unit", unit]) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path == Path("out") / f"{unit}.v"
    assert f"module {unit}(" in path.read_text()


# --------------------------------------------------------------------------- early ends


def test_an_interrupt_ends_with_130_and_leaves_nothing_behind(
    kernel: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("scalebox.traces.bundle._manifest", interrupted)
    assert main(["run", "kernel.py", "--out", "run"]) == 130
    assert [path.name for path in Path().iterdir()] == ["kernel.py"]


def test_a_reader_that_goes_away_causes_no_traceback(kernel: Callable[..., str]) -> None:
    kernel()
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        child = subprocess.run(
            [sys.executable, "-m", "scalebox", "disasm", "kernel.py"],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (child.returncode, child.stderr) == (BROKEN_PIPE, "")


def test_a_run_replaces_its_own_bundle_and_nothing_else(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    kernel()
    assert main(["run", "kernel.py", "--out", "run", "--seed", "1"]) == 0
    assert main(["run", "kernel.py", "--out", "run", "--seed", "2"]) == 0
    assert json.loads(Path("run/options.json").read_text())["seed"] == 2
    Path("run/notes.txt").write_text("mine")
    assert main(["run", "kernel.py", "--out", "run"]) == 2
    assert "'notes.txt'" in capsys.readouterr().err
    assert json.loads(Path("run/options.json").read_text())["seed"] == 2


def test_no_command_imports_what_it_does_not_need() -> None:
    code = (
        "import sys, scalebox, scalebox.app.cli; "
        "print(sorted({'numpy', 'numba', 'amaranth', 'rich.console'} & set(sys.modules)))"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "[]\n"
    assert cli.app.info.name == "scalebox"
