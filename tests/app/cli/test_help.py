"""Every help is whole, fits a terminal, and its example works as it is written."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from scalebox.app.cli.commands import app, main
from scalebox.rtl.emit import UNITS

Shown = pytest.CaptureFixture[str]

COMMANDS = ("run", "compile", "disasm", "compare", "show", "report", "sweep", "cosim", "rtl")


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
    command: str, examples: Path, capsys: Shown
) -> None:
    text = help_of(command)
    assert max(map(len, text.splitlines())) <= 80
    lines = [line.strip() for line in text.partition("Example:")[2].splitlines() if line.strip()]
    assert any(line.startswith(f"scalebox {command}".rstrip()) for line in lines)
    for example in lines:
        program, *arguments = example.split()
        assert program == "scalebox"
        assert main(arguments) == 0, capsys.readouterr()
    assert examples.exists()


def test_the_help_lists_every_command_in_a_whole_sentence() -> None:
    listed = dict(re.findall(r"^  (\w+) {2,}(.*)$", help_of("").partition("Commands:")[2], re.M))
    assert tuple(listed) == COMMANDS
    assert all(sentence.endswith(".") and "..." not in sentence for sentence in listed.values())


def options_by_command() -> dict[str, list[Any]]:
    group: Any = get_command(app)
    return {name: command.params for name, command in group.commands.items()}


def test_an_option_says_the_same_in_every_command_that_has_it() -> None:
    """Options come from one table, but for where an output goes, and rules, which compare tells at length."""
    own = {"--output", "--rule", "--help"}
    said: dict[str, set[tuple[object, ...]]] = {}
    for options in options_by_command().values():
        for each in options:
            if each.param_type_name == "option" and not own & {*each.opts}:
                told = each.help, each.metavar, each.multiple, each.default
                said.setdefault(each.opts[0], set()).add(told)
    assert {"--warm", "--max-cycles", "--set", "--json"} <= said.keys()
    assert all(len(told) == 1 for told in said.values()), said


def test_a_report_has_all_options_of_a_run_that_cycles_depend_on() -> None:
    options = options_by_command()
    run, report = ({n for each in options[name] for n in each.opts} for name in ("run", "report"))
    of_outputs = {
        "--golden", "--no-golden", "--rule", "--timing-only", "--sum", "--cube", "--no-timeline", "--out", "kernel",
    }  # fmt: skip
    assert run - of_outputs == report - {"place"}


def test_the_help_names_every_choice() -> None:
    assert "error, warn or off" in " ".join(help_of("run").split())
    assert "group or sequential" in " ".join(help_of("run").split())
    assert " or ".join(UNITS) in " ".join(help_of("rtl").split())
