"""Compiled code is kept between processes wherever that is possible, and only while it is right."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scalebox.ir.jit import UNKEPT, compiled, inner, name_of, needs

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from scalebox.ir import jit
jit.MACHINE = ({folder!r},)
import outer
for value in {values}:
    print(outer.twice(value))
print(sum(outer.twice.stats.cache_hits.values()))
"""
OUTER = """
from scalebox.ir.jit import compiled
from part import factor

@compiled
def twice(value):
    return factor(value)
"""
PART = """
from scalebox.ir.jit import inner

@inner
def factor(value):
    return value * {factor}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two modules, one of which calls the other."""
    place = tmp_path / "modules"
    place.mkdir()
    (place / "outer.py").write_text(OUTER)
    (place / "part.py").write_text(PART.format(factor=2))
    return place


def start(
    folder: Path, *, values: tuple[float, ...] = (3,), **environment: Path
) -> subprocess.Popen[str]:
    """Call `twice` with each of some values in a fresh process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return subprocess.Popen(
        [sys.executable, "-B", "-c", PROGRAM.format(folder=str(folder), values=values)],
        env=kept | {name: str(value) for name, value in environment.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> list[str]:
    """Return what it prints: the results, and how often compiled code was found."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert err == ""
    return out.split()


def no_folder(folder: Path) -> Path:
    """Return a path at which not even the superuser can make a folder."""
    file = folder / "__pycache__"
    file.touch()
    return file / "nowhere"


@pytest.mark.slow
def test_a_change_of_a_file_that_was_compiled_in_is_noticed(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert answer(start(folder, NUMBA_CACHE_DIR=kept)) == ["6", "0"]
    assert answer(start(folder, NUMBA_CACHE_DIR=kept)) == ["6", "1"]
    files = len(list(kept.rglob("*.code")))
    (folder / "part.py").write_text(PART.format(factor=5))
    assert answer(start(folder, NUMBA_CACHE_DIR=kept)) == ["15", "0"]
    assert answer(start(folder, NUMBA_CACHE_DIR=kept)) == ["15", "1"]
    assert len(list(kept.rglob("*.code"))) == files, "what older sources left is gone"


@pytest.mark.slow
def test_two_processes_may_begin_with_nothing_at_the_same_time(
    folder: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    both = [start(folder, values=values, NUMBA_CACHE_DIR=kept) for values in ((3, 0.5), (0.25, 4))]
    assert [answer(each)[:2] for each in both] == [["6", "1.0"], ["0.5", "8"]]
    assert answer(start(folder, values=(3, 0.5), NUMBA_CACHE_DIR=kept)) == ["6", "1.0", "2"]
    assert not [path for path in kept.rglob("*") if path.is_file() and path.suffix != ".code"]


@pytest.mark.slow
def test_what_was_compiled_moves_along_with_its_sources(folder: Path, tmp_path: Path) -> None:
    assert answer(start(folder)) == ["6", "0"]
    moved = tmp_path / "elsewhere"
    shutil.move(folder, moved)
    for path in moved.glob("*.py"):
        os.utime(path, (0, 0))
    assert answer(start(moved)) == ["6", "1"]


@pytest.mark.slow
def test_a_damaged_file_is_compiled_anew(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    answer(start(folder, NUMBA_CACHE_DIR=kept))
    for path in kept.rglob("*.code"):
        path.write_bytes(path.read_bytes()[:-100])
    assert answer(start(folder, NUMBA_CACHE_DIR=kept)) == ["6", "0"]
    assert answer(start(folder, NUMBA_CACHE_DIR=kept)) == ["6", "1"]


@pytest.mark.slow
def test_code_of_a_folder_that_cannot_be_written_is_kept_for_the_user(
    folder: Path, tmp_path: Path
) -> None:
    no_folder(folder)
    home = tmp_path / "home"
    assert answer(start(folder, XDG_CACHE_HOME=home)) == ["6", "0"]
    assert list(home.rglob("*.code"))
    assert answer(start(folder, XDG_CACHE_HOME=home)) == ["6", "1"]


@pytest.mark.slow
def test_where_nothing_can_be_kept_it_works_and_says_what_to_do(folder: Path) -> None:
    nowhere = no_folder(folder)
    process = start(folder, values=(3, 0.5), HOME=nowhere, XDG_CACHE_HOME=nowhere)
    out, err = process.communicate()
    assert out.split() == ["6", "1.0", "0"]
    assert err.count(UNKEPT) == 1
    assert "Traceback" not in err


def test_a_literal_argument_makes_no_function_of_its_own() -> None:
    @inner
    def plus(value: int, more: int) -> int:
        return value + more

    @compiled
    def both(value: int) -> int:
        return plus(value, 1) * plus(value, 2)

    assert both(3) == 20
    dispatcher: Any = plus
    assert [str(each) for each in dispatcher.signatures] == ["(int64, int64)"]


@compiled
def leaf(value: int) -> int:
    return value + 1


@compiled
def branch(value: int) -> int:
    return leaf(value) * 2


def test_what_a_function_needs_is_itself_and_all_that_it_calls() -> None:
    assert {name_of(each).rpartition(".")[2] for each in needs([branch])} == {"leaf", "branch"}


def test_without_a_compiler_there_is_a_sentence(root: Path) -> None:
    example = str(root / "examples" / "mx_matmul.py")
    child = subprocess.run(
        [sys.executable, "-m", "scalebox", "run", example],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        check=False,
    )
    assert child.returncode == 2
    assert "NUMBA_DISABLE_JIT must not be set" in child.stderr
    assert "Traceback" not in child.stderr
