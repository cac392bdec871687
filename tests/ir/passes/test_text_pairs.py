"""Kernels, and the program as it is printed after a pass: one folder a pass.

A case goes through the default pipeline up to and including the pass of its folder. After every pass on
the way the printed program must read back as the same program.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from scalebox.ir import language as pl
from scalebox.ir import passes
from scalebox.ir.core import Function, Program
from scalebox.ir.passes import default_pipeline
from scalebox.ir.passes.base import Pass
from scalebox.ir.printer import python_print
from scalebox.ir.structural import first_difference

CASES = Path(__file__).resolve().parents[2] / "cases" / "passes"
KERNELS = sorted(CASES.glob("*/*.py"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def as_program(parsed: Program | Function) -> Program:
    if isinstance(parsed, Program):
        return parsed
    return Program([parsed], parsed.name)


def pass_class(folder: str) -> type[Pass]:
    """The pass of a folder: its factory has the folder's name."""
    found = getattr(passes, folder)
    assert isinstance(found, type)
    assert issubclass(found, Pass)
    return found


def test_every_folder_is_a_pass_of_the_pipeline_and_every_pass_has_one() -> None:
    folders = {pass_class(path.name) for path in CASES.iterdir() if path.is_dir()}
    assert folders == {type(each) for each in default_pipeline()}


def test_no_case_is_without_its_other_half() -> None:
    kernels = {path.with_suffix("") for path in CASES.rglob("*.py")}
    expected = {path.with_suffix("") for path in CASES.rglob("*.expect")}
    assert kernels == expected


@pytest.mark.parametrize("path", KERNELS, ids=name_of)
def test_the_program_after_the_pass(path: Path, golden: Callable[[Path, str], None]) -> None:
    assert path.read_text(encoding="utf-8").startswith("# "), "a case says what it shows"
    last = pass_class(path.parent.name)
    made, text = as_program(pl.loads(path)), ""
    for each in default_pipeline():
        made = each(made)
        text = python_print(made)
        difference = first_difference(made, as_program(pl.parse(text)))
        assert difference is None, f"after {each.name}: {difference}"
        if isinstance(each, last):
            break
    golden(path, text)
