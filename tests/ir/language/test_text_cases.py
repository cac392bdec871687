"""Kernel files and what becomes of them: the printed program, or the whole rendered error."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scalebox.ir import language as pl
from scalebox.ir.errors import ParserError, UserError
from scalebox.ir.printer import python_print

CASES = Path(__file__).resolve().parents[2] / "cases"
ERRORS = sorted((CASES / "errors").glob("*.py"))
PROGRAMS = sorted((CASES / "language").glob("*.py"))
# What is wrong with the file as a whole, not with a line of a kernel.
NO_PLACE = {"jit_two_entries", "no_program", "two_programs"}


def stem(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("folder", ["errors", "language"])
def test_every_case_has_its_other_half(folder: str) -> None:
    kernels = {path.stem for path in (CASES / folder).glob("*.py")}
    expected = {path.stem for path in (CASES / folder).glob("*.expect")}
    assert kernels == expected


@pytest.mark.parametrize("path", ERRORS, ids=stem)
def test_a_wrong_kernel_gets_its_error(
    path: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    with pytest.raises(UserError) as caught:
        pl.loads(path.name)
    error = caught.value
    golden(path, f"{type(error).__name__}\n{error.render()}\n")
    assert (error.span is None) == (path.stem in NO_PLACE)
    assert isinstance(error, ParserError | ValueError)


@pytest.mark.parametrize("path", PROGRAMS, ids=stem)
def test_a_right_kernel_prints_as_expected(path: Path, golden: Callable[[Path, str], None]) -> None:
    golden(path, python_print(pl.loads(path)))
