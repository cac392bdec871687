"""What the documents say can be typed, opened or run is there."""

import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from scalebox.ir.language.names import DTYPES

DOCUMENTS = ("README.md", "CONTRIBUTING.md")


def code_of(text: str) -> str:
    """Return the fenced blocks and the inline code of a Markdown text."""
    blocks = re.findall(r"```[a-z]*\n(.*?)```", text, flags=re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return "\n".join([*blocks, *inline])


def test_the_examples_in_docstrings_hold(module_name: str) -> None:
    assert doctest.testmod(import_module(module_name)).failed == 0


def test_the_readme_shows_the_two_commands(root: Path) -> None:
    code = code_of((root / "README.md").read_text())
    assert {"demo", "test"} <= set(re.findall(r"^\s*(?:\$ )?make (\w+)", code, flags=re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_make_target_of_a_document_exists(root: Path, document: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)", code_of((root / document).read_text())))
    assert named <= targets


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_in_a_document_exists(root: Path, document: str) -> None:
    code = code_of((root / document).read_text())
    paths = set(re.findall(r"(?<![\w./<-])(?:[\w.-]+/)+(?:[\w.-]+\.(?:py|toml|md))?(?!\w)", code))
    ours = {path for path in paths if (root / path.split("/")[0]).exists()}
    assert sorted(path for path in ours if not (root / path).exists()) == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_subcommand_of_a_document_explains_itself(root: Path, document: str) -> None:
    code = code_of((root / document).read_text())
    for command in sorted(set(re.findall(r"\bscalebox ([a-z]+)\b", code))):
        child = subprocess.run(
            [sys.executable, "-m", "scalebox", command, "--help"], capture_output=True, text=True
        )
        assert child.returncode == 0, f"scalebox {command} --help: {child.stdout}{child.stderr}"


def test_the_language_page_names_every_dtype(root: Path) -> None:
    page = (root / "docs" / "language.md").read_text()
    section = page[page.index("## Dtypes") : page.index("## Whole tensors")]
    assert set(re.findall(r"pl\.([A-Z]\w+)", section)) - {"Tensor", "MX_A_ZZ", "MX_B_NN"} == set(
        DTYPES
    )
