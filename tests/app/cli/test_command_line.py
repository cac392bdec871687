"""The other commands, and how a command ends early."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import scalebox
from scalebox.app.cli import commands
from scalebox.app.cli.commands import BROKEN_PIPE, main
from scalebox.ir.core import Program

from ..shown import answer

Shown = pytest.CaptureFixture[str]


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


@pytest.mark.parametrize("command", ["run", "report"])
def test_json_is_there_for_a_kernel_at_fault(
    command: str, kernel: Callable[..., str], capsys: Shown
) -> None:
    """The sentence and its place, for a program to read; a reader has them on standard error."""
    text = Path(kernel()).read_text()
    broken = text.replace("pl.matmul_mx(at, pt, bt, qt)", "pl.matmul_mx(at, qt, bt, pt)")
    assert broken != text
    Path("kernel.py").write_text(broken)
    assert main([command, "kernel.py", "--json"]) == 1
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert told["ok"] is False
    assert shown.err.startswith(f"Error: {told['error']}\n")
    line = broken.splitlines()[int(told["place"]["line"]) - 1]
    assert "matmul_mx" in line
    assert told["place"]["file"] == "kernel.py"
    assert line[told["place"]["column"] - 1 :].startswith("pl.matmul_mx")


def test_json_is_there_for_wrong_input(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["run", kernel(), "--json", "--set", "coers=3"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["place"], told["note"]) == (False, None, None)
    assert "coers" in told["error"]
    assert "cores" in told["hint"]
    assert main(["run", "kernel.py", "--set", "coers=3"]) == 2
    assert capsys.readouterr().out == ""


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


@pytest.mark.parametrize("bundle", ["run1", "run1.hrry"])
def test_disasm_shows_the_executable_inside_of_a_bundle(
    bundle: str, kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(), "--out", bundle]) == 0
    capsys.readouterr()
    assert main(["disasm", "kernel.py"]) == 0
    wanted = capsys.readouterr().out
    assert main(["disasm", bundle]) == 0
    assert capsys.readouterr().out == wanted


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
        "hints": [],
        "plot": None,
    }
    actual[0, 0] = np.nan
    np.savez("actual.npz", c=actual)
    assert main(["compare", "actual.npz", "golden.npz", "--json"]) == 1
    first = answer(capsys)["first_difference"]
    assert (first["index"], first["actual"], first["golden"]) == ([0, 0], "nan", 1.0)
    assert (first["actual_bits"], first["golden_bits"]) == ("0x7fc00000", "0x3f800000")


def test_an_interrupt_ends_with_130_and_leaves_nothing_behind(
    kernel: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("scalebox.traces.bundle_folder._fingerprint", interrupted)
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
    assert commands.app.info.name == "scalebox"


def test_an_option_of_one_value_may_be_given_once_in_every_command(capsys: Shown) -> None:
    """Of two values nobody would see which holds; what lists things may come again, and a flag, too."""
    group: Any = get_command(commands.app)
    tried = 0
    for name, command in group.commands.items():
        for option in command.params:
            if option.param_type_name != "option" or option.multiple or option.is_flag:
                continue
            for again in option.opts:
                assert main([name, "x.py", option.opts[0], "1", f"{again}", "2"]) == 2
                told = capsys.readouterr()
                assert told.out == ""
                assert f"{max(option.opts, key=len)} must be given once, not several" in told.err
                tried += 1
    assert tried > 30
    assert main(["show", "--json", "--json", "nowhere"]) == 2
    assert "given once" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "report", "disasm", "cosim", "sweep"])
@pytest.mark.parametrize("option", ["--param", "--set"])
def test_a_name_may_be_given_one_value_once(
    command: str, option: str, kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main([command, kernel(), option, "a=1", option, "b=1", option, "a=2"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{option} must name a once" in told.err


@pytest.mark.slow
def test_nothing_hangs_on_assertions(kernel: Callable[..., str]) -> None:
    """They look for our own mistakes, and a Python that leaves them out finds the same."""
    told = [
        subprocess.run(
            [
                sys.executable,
                *options,
                "-m",
                "scalebox",
                "sweep",
                kernel(),
                "--functional",
                "--json",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for options in ([], ["-O"])
    ]
    assert told[0] == told[1]
