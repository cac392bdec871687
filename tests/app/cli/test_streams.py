"""Standard output that is full, closed or read by nobody: a sentence where that can be, and never a traceback."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scalebox.app.cli.commands import BROKEN_PIPE, main

Shown = pytest.CaptureFixture[str]

FULL = (
    "Error: The output must be written somewhere, but standard output is full: "
    "No space left on device\n"
)
CLOSED = "Error: The output must be written somewhere, but standard output is closed\n"

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
needs_shell = pytest.mark.skipif(sys.platform == "win32", reason="it is about the shells of POSIX")


def shell(
    redirected: str, *arguments: str, buffered: bool = True, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell with its streams redirected."""
    environment = {**os.environ, **more}
    environment.pop("PYTHONUNBUFFERED", None)
    if not buffered:
        environment["PYTHONUNBUFFERED"] = "1"
    words = ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "scalebox"]
    return subprocess.run([*words, *arguments], env=environment, capture_output=True, text=True)


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a small file that `show` knows."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.ones(3, np.float32))
    return "x.npy"


@needs_full
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("options", [[], ["--json"], ["--help"]])
def test_a_full_output_is_a_sentence(saved: str, options: list[str], buffered: bool) -> None:
    child = shell("> /dev/full", "show", saved, *options, buffered=buffered)
    assert (child.returncode, child.stderr) == (2, FULL)


@needs_full
@pytest.mark.parametrize(
    "command",
    [
        "run kernel.py",
        "run kernel.py --json",
        "compile kernel.py -o kernel.sbx",
        "compile kernel.py --print-after all --json",
        "disasm kernel.py",
        "compare x.npy x.npy",
        "compare x.npy x.npy --json",
        "report kernel.py",
        "report kernel.py --json",
        "sweep kernel.py",
        "sweep kernel.py --csv",
        "sweep kernel.py --json",
        "rtl -o rtl",
        "",
    ],
)
def test_a_full_output_is_a_sentence_in_every_command(
    command: str,
    saved: str,
    kernel: Callable[..., str],
    capsys: Shown,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (kernel(), saved) == ("kernel.py", "x.npy")
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(command.split() or ["--help"]) == 2
        assert sys.stdout is full
    assert capsys.readouterr().err.endswith(FULL)


@needs_full
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_another_mistake_is_told_rather_than_that_the_output_is_full(options: list[str]) -> None:
    child = shell("> /dev/full", "show", "nowhere", *options)
    assert child.returncode == 2
    assert child.stderr.count("Error: ") == 1
    assert "'nowhere'" in child.stderr


@needs_shell
def test_a_command_without_an_output_is_refused_before_it_begins(saved: str) -> None:
    for redirected in (">&-", ">&- <&-"):
        child = shell(redirected, "show", saved)
        assert (child.returncode, child.stderr) == (2, CLOSED)
    child = shell(">&- 2>&-", "rtl", "-o", "rtl")
    assert child.returncode == 2
    assert not Path("rtl").exists()


@needs_shell
@pytest.mark.parametrize("redirected", ["2>&-", "2>&- <&-", "2< /dev/null"])
def test_without_standard_error_the_answer_and_the_status_are_the_same(
    saved: str, redirected: str
) -> None:
    for arguments in (["show", saved, "--json"], ["show", "nowhere", "--json"], ["show"]):
        wanted, found = shell("", *arguments), shell(redirected, *arguments)
        assert (found.returncode, found.stdout) == (wanted.returncode, wanted.stdout)
    assert json.loads(shell(redirected, "show", saved, "--json").stdout)["ok"] is True


@needs_full
def test_a_full_standard_error_changes_no_status(saved: str) -> None:
    assert shell("2> /dev/full", "show", saved).returncode == 0
    assert shell("2> /dev/full", "show", "nowhere").returncode == 2


@needs_shell
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("options", [[], ["--json"], ["--help"]])
def test_a_reader_that_goes_away_hears_no_complaint(
    saved: str, options: list[str], buffered: bool
) -> None:
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with os.fdopen(write, "wb") as closed:
        child = subprocess.run(
            [sys.executable, "-m", "scalebox", "show", saved, *options],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
    assert (child.returncode, child.stderr) == (BROKEN_PIPE, "")


@needs_shell
def test_what_an_encoding_lacks_is_an_escape(saved: str) -> None:
    Path(saved).rename("ä-文.npy")
    child = shell("", "show", "ä-文.npy", PYTHONIOENCODING="ascii")
    assert (child.returncode, child.stderr) == (0, "")
    assert child.stdout.startswith("\\xe4-\\u6587")
    child = shell("", "show", "nowhere-文", PYTHONIOENCODING="ascii")
    assert child.returncode == 2
    assert "nowhere-\\u6587" in child.stderr
