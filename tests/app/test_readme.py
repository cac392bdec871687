"""The README and other pages show what really comes out; `--update-golden` writes it anew."""

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.interp import select_entry
from scalebox.ir.mx_uses import CompoundUses

CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
COMPILED_ONCE = re.compile(r"^Compiling .*\bonce\..*\n", re.MULTILINE)
"""What the first run after a change says besides, and no page shows."""


@pytest.fixture
def shell(examples: Path) -> Callable[[str], str]:
    """Runs a line of a console block as a newcomer would, and returns what they would see."""
    scripts = examples / "bin"
    scripts.mkdir()
    command = scripts / "scalebox"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m scalebox "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "PYTHONIOENCODING": "utf-8",
    }

    def run(line: str) -> str:
        child = subprocess.run(
            ["/bin/sh", "-c", f"{line} 2>&1"],
            cwd=examples,
            env=environment,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            check=False,
        )
        return COMPILED_ONCE.sub("", child.stdout)

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "least"), [("README.md", 6), ("docs/vector.md", 5), ("docs/sweep.md", 1)]
)
def test_the_console_blocks_show_what_comes_out(
    page: str, least: int, root: Path, shell: Callable[[str], str], request: pytest.FixtureRequest
) -> None:
    path = root / page
    text = path.read_text(encoding="utf-8")

    def replayed(block: re.Match[str]) -> str:
        lines = [line for line in block.group().splitlines() if line.startswith("$ ")]
        return "".join(f"{line}\n{shell(line[2:])}" for line in lines)

    found = CONSOLE.sub(replayed, text)
    assert found.count("$ scalebox ") >= least
    if request.config.getoption("--update-golden"):
        path.write_text(found, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == found, "see what changed with --update-golden"


@pytest.mark.usefixtures("examples")
def test_the_python_blocks_run(root: Path) -> None:
    outcome = doctest.testfile(str(root / "README.md"), module_relative=False, encoding="utf-8")
    assert outcome.failed == 0
    assert outcome.attempted > 10


@pytest.mark.parametrize(
    "page", ["README.md", "docs/language.md", "docs/sweep.md", "docs/timing.md", "docs/vector.md"]
)
def test_every_link_leads_to_a_file(page: str, root: Path) -> None:
    path = root / page
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_the_table_of_rooms_is_complete(root: Path, rooms: tuple[str, ...]) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    assert {room for room in rooms if f"| `{room}/` |" not in text} == set()


def test_the_table_of_commands_is_complete(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| `scalebox (\w+)", text, re.MULTILINE))
    child = subprocess.run(
        [sys.executable, "-m", "scalebox", "--help"], capture_output=True, text=True, check=True
    )
    listed = set(re.findall(r"^  (\w+)  ", child.stdout.partition("Commands:")[2], re.MULTILINE))
    assert shown == listed


def test_the_kernel_in_the_readme_runs_bit_for_bit(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    (kernel,) = re.findall(r"^```python\n(from scalebox.*?)^```$", text, re.DOTALL | re.MULTILINE)
    program = pl.parse(kernel)
    assert isinstance(program, Program)
    entry = select_entry(program)
    inputs = draw_inputs(entry, 0, grouped_axes=CompoundUses(program).grouped_axes(entry))
    outputs = scalebox.run(program, inputs).outputs
    assert scalebox.compare(outputs, scalebox.interpret(program, inputs))
