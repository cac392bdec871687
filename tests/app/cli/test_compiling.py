"""The first run says that it compiles and how far it is, has help, and leaves the second one nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalebox.app.cli.compile_ahead import PARTS, Ahead
from scalebox.app.cli.first_run import MESSAGE

PROGRAM = """
import json, sys
from scalebox.app.cli import compiling
made = []
class Watched(compiling.Compilation):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        made.append(self)
compiling.Compilation = Watched
from scalebox.app.cli import main
status = main(["run", sys.argv[1], "--json"])
(seen,) = made
print()
print(json.dumps([sorted(names) for names in (seen._planned, seen._done, seen._ahead.compiled)]))
sys.exit(status)
"""


def run(folder: Path, kernel: Path) -> tuple[list[set[str]], str]:
    """Run a kernel in a fresh process; return what was planned, compiled here and there, and stderr."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(kernel)],
        cwd=folder,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "kept")},
        capture_output=True,
        text=True,
        check=True,
    )
    report, _, names = done.stdout.rstrip().rpartition("\n")
    assert json.loads(report)["cycles"] > 0, "nothing but JSON"
    return [set(each) for each in json.loads(names)], done.stderr


@pytest.mark.slow
def test_the_first_run_says_what_it_does_and_the_second_finds_it_done(
    root: Path, tmp_path: Path
) -> None:
    kernel = root / "examples" / "mx_matmul.py"
    (planned, here, there), said = run(tmp_path, kernel)
    assert said.strip() == MESSAGE
    ours = {name for name in here | there if name.startswith("scalebox.")}
    assert len(ours ^ planned) <= len(ours) // 10, ours ^ planned
    if there:  # a second core was free, so each compiled its part
        others = {name for name in there if name.startswith("scalebox.")}
        assert len({name for name in others if not name.startswith(PARTS)}) <= len(others) // 5
        assert not {name for name in here & others if name.startswith(PARTS)}
        assert "scalebox.sim.pipes.l2.warm_up" in others, "for a later run with --warm"
    (planned, here, there), said = run(tmp_path, kernel)
    assert (planned, here, there, said) == (set(), set(), set(), "")


def nothing() -> None:
    """Take note of nothing."""


def test_a_helper_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalebox.app.cli.compile_ahead.free_cores", lambda: 2)
    ahead = Ahead(nothing)
    ahead.begin()
    process = ahead._process  # pyright: ignore[reportPrivateUsage]
    assert process is not None
    assert process.poll() is None
    ahead.end()
    assert process.poll() is not None


@pytest.mark.parametrize("cores", [1, 2])
def test_who_can_have_no_helper_compiles_alone(
    cores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("scalebox.app.cli.compile_ahead.free_cores", lambda: cores)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    ahead = Ahead(nothing)
    ahead.begin()
    assert not ahead.wait_for(f"{PARTS[0]}walk", tmp_path / "code")
    ahead.end()


def test_what_a_helper_does_not_deliver_is_waited_for_until_it_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("scalebox.app.cli.compile_ahead.free_cores", lambda: 2)
    monkeypatch.setattr("scalebox.app.cli.compile_ahead._START", "print('a.b'); print('c.d')")
    ahead = Ahead(nothing)
    ahead.begin()
    assert not ahead.wait_for("scalebox.sim.datapaths.l1", tmp_path / "code")
    assert not ahead.wait_for(f"{PARTS[0]}walk", tmp_path / "code")
    ahead.listen()
    assert ahead.compiled == {"a.b", "c.d"}
    ahead.end()
