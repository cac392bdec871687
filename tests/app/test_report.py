"""The text of a run: what it says, that its figures are the run's, and that it fits a terminal."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from scalebox.app.account.pipe_work import PIPE_WORK
from scalebox.app.commands.run import RunOptions, run_kernel
from scalebox.app.report import RunReport
from scalebox.codegen.isa.vocabulary import Pipe

Text = Callable[..., str]


@pytest.fixture
def report(kernel_text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunReport:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(kernel_text(64, 512, 64, step=128))
    return run_kernel(RunOptions(kernel=Path("kernel.py")))


def test_the_report_reads_as_it_should(report: RunReport) -> None:
    result = report.result
    work = result.cycles - 4950
    lines = report.lines()
    assert lines[:4] == [
        "kernel.py: gemm on machine a5, inputs drawn with seed 0",
        "",
        "golden   equal bit for bit, all 4,096 elements of c",
        "         (golden is what numpy computes from the kernel as it is written)",
    ]
    assert lines[4] == (
        f"cycles   {result.cycles:,} = 4,950 launch + {work:,} work; "
        f"{result.microseconds:.3f} microseconds at 1.65 GHz"
    )
    rate = 64 * 512 * 64 / work
    assert lines[5] == f"MACs     {rate:,.0f} a work cycle, {rate / 8192:.1%} of the peak of 8,192"
    assert lines[-3:] == [
        f"bundle   {Path('scalebox-runs') / 'kernel'}",
        "         its timeline.json opens in https://ui.perfetto.dev",
        "         (1 us on its ruler is 1 cycle)",
    ]


def test_the_table_has_a_line_for_every_pipe_that_worked(report: RunReport) -> None:
    (pipes,) = report.result.pipes
    lines = report.lines()
    table = lines[lines.index("", 2) + 2 :][: len(report.pipes)]
    assert [line.split()[0] for line in table] == ["MTE2", "MTE1", "M", "FIX", "S"]
    for line, share in zip(table, report.pipes, strict=True):
        assert share.work in line
        assert f" {pipes[share.name]:,} " in line
        assert share.busy == pytest.approx(pipes[share.name] / report.work_cycles)
        assert share.busy + share.waiting + share.idle == pytest.approx(1)
        assert line.count("█") == round(share.busy * 10)


def test_the_report_tells_the_bound_and_the_critical_path(report: RunReport) -> None:
    lines, analysis = report.lines(), report.analysis
    roofline = next(line for line in lines if line.startswith("roofline "))
    assert f"{analysis.roofline.cycles:,} work cycles" in roofline
    bound = lines.index(next(line for line in lines if line.startswith("bound    ")))
    assert (
        " ".join(" ".join(lines[bound : lines.index("", bound)]).split()[1:]) == analysis.sentence
    )
    head = lines.index(next(line for line in lines if line.startswith("critical path")))
    path = lines[head + 1 : lines.index("", head)]
    assert len(path) <= 11
    for line, share in zip(path, analysis.shares[:10], strict=False):
        assert f" {share.cycles:,} " in line
        assert share.cycles / report.work_cycles == pytest.approx(
            float(line.split("%")[0].split()[-1]) / 100, abs=6e-4
        )
    assert sum(share.cycles for share in analysis.shares) == report.work_cycles
    assert all("  kernel.py:" in line for line in path if line.startswith(("MTE2", "M ")))


def test_every_pipe_is_explained() -> None:
    assert set(PIPE_WORK) == set(Pipe) - {Pipe.ALL}
    assert all(len(work) <= 30 for work in PIPE_WORK.values())


def test_the_report_fits_80_columns(report: RunReport) -> None:
    assert max(map(len, report.lines())) <= 80


@pytest.mark.parametrize("width", [20, 80, 200])
def test_a_pipe_or_a_file_gets_the_lines_unbroken_and_without_colour(
    width: int, report: RunReport
) -> None:
    out = io.StringIO()
    report.show(Console(file=out, width=width))
    assert out.getvalue().splitlines() == report.lines()


def test_a_terminal_gets_colour(report: RunReport) -> None:
    out = io.StringIO()
    report.show(Console(file=out, width=80, force_terminal=True, color_system="standard"))
    assert "\x1b[32mgolden   equal bit for bit\x1b[0m" in out.getvalue()


def test_a_name_with_brackets_is_shown_as_it_is(report: RunReport) -> None:
    out = io.StringIO()
    strange = RunReport(
        title="[red]k[/red].py",
        result=report.result,
        comparison=None,
        bundle=Path("[x]"),
        seed=None,
    )
    strange.show(Console(file=out))
    assert out.getvalue().startswith("[red]k[/red].py: gemm on machine a5\n")
    assert "bundle   [x]\n" in out.getvalue()
