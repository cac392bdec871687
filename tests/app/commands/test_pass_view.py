"""`scalebox compile` as a window on the passes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.ir.core import Program
from scalebox.ir.passes import default_pipeline
from scalebox.ir.structural import assert_structural_equal

from ..shown import answer

Shown = pytest.CaptureFixture[str]

PASSES = default_pipeline().get_pass_names()
BLOCK = "BlockMxScaleTensorViews"


def source() -> Program:
    made = scalebox.pl.parse(Path("kernel.py").read_text())
    assert isinstance(made, Program)
    return made


def after(last: str) -> Program:
    made = source()
    for each in default_pipeline():
        made = each(made)
        if each.name == last:
            break
    return made


def read(text: str) -> Program:
    made = scalebox.pl.parse(text)
    assert isinstance(made, Program)
    return made


@pytest.mark.parametrize("name", PASSES)
def test_what_is_printed_after_a_pass_is_the_program_after_it(
    kernel: Callable[..., str], capsys: Shown, name: str
) -> None:
    assert main(["compile", kernel(), "--stop-after", name]) == 0
    shown = capsys.readouterr().out
    assert_structural_equal(read(shown), after(name))
    assert main(["compile", "kernel.py", "--print-after", name]) == 0
    assert capsys.readouterr().out == shown


def test_what_a_pass_has_made_runs_like_the_kernel(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["run", kernel(), "--json", "--out", "whole"]) == 0
    cycles = answer(capsys)["cycles"]
    for name in PASSES:
        assert main(["compile", "kernel.py", "--stop-after", name]) == 0
        Path("staged.py").write_text(capsys.readouterr().out)
        assert main(["run", "staged.py", "--json", "--out", f"after_{name}"]) == 0, name
        assert answer(capsys)["cycles"] == cycles, name
        assert main(["compare", "whole", f"after_{name}"]) == 0, name
        capsys.readouterr()


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """The headings of several printed programs, and the program under each."""
    for part in text.removeprefix("# after ").split("\n# after "):
        name, _, body = part.partition("\n")
        yield name, body


def test_all_prints_every_stage_under_its_heading(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["compile", kernel(), "--print-after", "all"]) == 0
    found = dict(pieces(capsys.readouterr().out))
    assert list(found) == PASSES
    for name, text in found.items():
        assert_structural_equal(read(text), after(name))


def test_a_pass_goes_by_either_of_its_names(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["compile", kernel(), "--print-after", BLOCK]) == 0
    shown = capsys.readouterr().out
    assert main(["compile", "kernel.py", "--print-after", "block_mx_scale_tensor_views"]) == 0
    assert capsys.readouterr().out == shown


def test_the_source_is_a_stage_too(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["compile", kernel(), "--print-after", "source"]) == 0
    assert_structural_equal(read(capsys.readouterr().out), source())


def test_the_diff_of_a_pass_is_what_it_changes(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["compile", kernel(), "--diff", BLOCK]) == 0
    lines = capsys.readouterr().out.splitlines()
    before = PASSES[PASSES.index(BLOCK) - 1]
    assert lines[:2] == [f"--- {before}", f"+++ {BLOCK}"]
    changed = [line for line in lines[2:] if line[0] in "+-"]
    assert any("[1, 2, 2, 16, 2]" in line for line in changed if line[0] == "+")
    assert not any("[1, 2, 2, 16, 2]" in line for line in changed if line[0] == "-")
    assert main(["compile", "kernel.py", "--diff", f"source..{BLOCK}"]) == 0
    assert capsys.readouterr().out.startswith(f"--- source\n+++ {BLOCK}\n")
    assert main(["compile", "kernel.py", "--diff", "source..source"]) == 0
    assert capsys.readouterr().out == "# source and source print alike\n"


def test_passes_are_timed_in_their_order(kernel: Callable[..., str], capsys: Shown) -> None:
    assert main(["compile", kernel(), "--time-passes"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == PASSES


def test_json_has_all_that_was_asked_for(kernel: Callable[..., str], capsys: Shown) -> None:
    asked = ["--print-after", BLOCK, "--diff", BLOCK, "--time-passes", "--verify-each", "--json"]
    assert main(["compile", kernel(), "-o", "kernel.sbx", *asked]) == 0
    found = answer(capsys)
    assert found["ok"]
    assert [stage["after"] for stage in found["stages"]] == [BLOCK]
    assert [each["to"] for each in found["diffs"]] == [BLOCK]
    assert [each["name"] for each in found["passes"]] == PASSES
    assert json.dumps(found)
    assert Path("kernel.sbx").is_file()


def test_stages_before_an_error_are_shown_with_it(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    text = Path(kernel()).read_text()
    unaligned = "        extra = pl.load(sa, [8, 0], [16, 4], target_memory=pl.Mem.Mat)\n"
    Path("bad.py").write_text(text.replace("        al =", unaligned + "        al ="))
    assert main(["compile", "bad.py", "--print-after", "all"]) == 1
    shown = capsys.readouterr()
    assert [name for name, _ in pieces(shown.out)] == PASSES[: PASSES.index(BLOCK)]
    assert shown.err.startswith("Error: ")
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--print-after", "Blok"], "--print-after must name a pass that runs, not 'Blok'"),
        (["--diff", "source..Blok"], "--diff must name a pass that runs, not 'Blok'"),
        (["--diff", "source"], "--diff must name a pass that runs, not 'source'"),
        (
            ["--stop-after", "ConvertToSSA", "--print-after", BLOCK],
            f"--print-after must name a pass that runs, not {BLOCK!r}",
        ),
    ],
)
def test_a_question_without_answer_says_why(
    kernel: Callable[..., str], capsys: Shown, arguments: list[str], sentence: str
) -> None:
    assert main(["compile", kernel(), *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.err.splitlines()[0] == f"Error: {sentence}"
    assert not Path("x.sbx").exists()


def test_an_executable_goes_somewhere_or_is_not_made(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    assert main(["compile", kernel()]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "-o must say where the executable goes, for example -o kernel.sbx" in shown
    assert main(["compile", "kernel.py", "--stop-after", BLOCK, "-o", "x.sbx"]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "-o must not go with --stop-after, which makes no executable" in shown
    assert not Path("x.sbx").exists()
