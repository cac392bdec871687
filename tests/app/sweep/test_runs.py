"""Sweeps: rows in the order of the grid, whoever makes them; what is refused is a row that says why."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

import scalebox
from scalebox.app.cli import main
from scalebox.app.sweep import workshop
from scalebox.app.sweep.grid import make_grid
from scalebox.app.sweep.report import SweepReport
from scalebox.app.sweep.rows import RowStatus, unfinished
from scalebox.app.sweep.runs import Sweep
from scalebox.app.sweep.workshop import RunSettings, Workshop
from scalebox.app.worker_pool import can_fork
from scalebox.ir.core import Program
from scalebox.ir.errors import InputError, ParserError
from scalebox.traces.bundle import load_bundle

Shown = pytest.CaptureFixture[str]


def test_a_row_says_what_a_run_says(sized: str) -> None:
    rows = scalebox.sweep(sized, params={"K": [128, 256]}, settings={"l2_hit_cycles": "100,300"})
    assert [(r.index, dict(r.params), dict(r.settings)) for r in rows] == [
        (0, {"K": 128}, {"l2_hit_cycles": 100}),
        (1, {"K": 128}, {"l2_hit_cycles": 300}),
        (2, {"K": 256}, {"l2_hit_cycles": 100}),
        (3, {"K": 256}, {"l2_hit_cycles": 300}),
    ]
    for row in rows:
        args = ["run", sized, "--timing-only", "--json", "--param", f"K={row.params['K']}"]
        args += ["--set", f"l2_hit_cycles={row.settings['l2_hit_cycles']}"]
        child = subprocess.run(
            [sys.executable, "-m", "scalebox", *args], capture_output=True, text=True, check=True
        )
        one = json.loads(child.stdout)
        assert (row.cycles, row.microseconds) == (one["cycles"], one["microseconds"])
        assert (row.macs, row.bottleneck) == (one["macs"], one["bottleneck"])
        assert row.peak_share == one["macs_per_cycle"] / one["peak_macs_per_cycle"]
        assert row.ok
        assert row.work_cycles == one["cycles"] - one["launch_cycles"]
    with pytest.raises(FrozenInstanceError):
        rows[0].cycles = 1  # type: ignore[misc]


def test_the_speed_up_is_against_the_first_row_that_multiplies_as_much(sized: str) -> None:
    rows = scalebox.sweep(
        sized, params={"K": [128, 256]}, settings={"clock_hz": [1_650_000_000, 3_300_000_000]}
    )
    base = {128: rows[0], 256: rows[2]}
    for row in rows:
        first = base[row.params["K"]]
        assert first.microseconds is not None
        assert row.microseconds is not None
        assert row.speedup == first.microseconds / row.microseconds
    assert (rows[0].speedup, rows[2].speedup) == (1, 1)
    assert rows[1].speedup is not None
    assert rows[1].speedup > 1


def test_the_inputs_are_those_of_a_run(sized: str, root: Path) -> None:
    for path in (Path(sized), root / "examples/mx_compound.py", root / "examples/softmax.py"):
        assert main(["run", str(path), "--seed", "3", "--out", "bundle"]) == 0
        workshop = Workshop(RunSettings(kernel=path, functional=True, seed=3))
        data = workshop._data_of(0, {}, None)  # type: ignore[attr-defined]
        assert data.golden is not None
        assert scalebox.compare(dict(data.golden), load_bundle(Path("bundle")).golden)


def test_what_differs_from_golden_is_a_row_that_says_where(
    sized: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpret = workshop.interpret

    def other(*args: Any, **options: Any) -> Any:
        return {name: array + 1 for name, array in interpret(*args, **options).items()}

    monkeypatch.setattr(workshop, "interpret", other)
    fields = {"l2_hit_cycles": "100,200,300"}
    rows = scalebox.sweep(sized, settings=fields, functional=True, jobs=1)
    for row in rows:
        assert (row.status.value, row.golden) == ("differs", "differs")
        assert row.cycles
        assert row.problem is not None
        assert row.problem.startswith("c: ")
    if can_fork():
        assert rows == scalebox.sweep(sized, settings=fields, functional=True, jobs=2)


def test_programs_and_executables_may_be_swept(
    gemm: Callable[..., Program], tmp_path: Path
) -> None:
    program = gemm(32, 128, 64)
    executable = scalebox.compile(program)
    executable.save(tmp_path / "kernel.sbx")
    grid: dict[str, Any] = {"settings": {"l2_hit_cycles": [100, 300]}, "jobs": 1}
    rows = scalebox.sweep(program, functional=True, **grid)
    assert all(row.ok for row in rows)
    assert [row.golden for row in rows] == ["equal", "equal"]
    rows = [replace(row, golden=None) for row in rows]
    assert rows == scalebox.sweep(executable, **grid)
    assert rows == scalebox.sweep(tmp_path / "kernel.sbx", **grid)


def test_an_executable_has_no_golden_to_be_compared_with(
    gemm: Callable[..., Program], tmp_path: Path, capsys: Shown
) -> None:
    path = tmp_path / "kernel.sbx"
    scalebox.compile(gemm(32, 128, 64)).save(path)
    assert main(["sweep", str(path), "--functional", "--set", "l2_hit_cycles=100,300"]) == 0
    told = capsys.readouterr().out
    assert "golden" not in told
    assert "equal" not in told


def test_a_row_that_is_refused_tells_its_machine(kernel: Callable[..., str], sized: str) -> None:
    refused, made = scalebox.sweep(sized, params={"M": [8, 32]}, jobs=1)
    assert (refused.ok, made.ok) == (False, True)
    assert (refused.machine, made.machine) == ("a5", "a5")
    small, large = scalebox.sweep(sized, settings={"l1_bytes": [4096, 524288]}, jobs=1)
    assert (small.ok, large.ok) == (False, True)
    assert small.machine == "a5"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"params": {"ZZ": 1}}, "no parameter 'ZZ'"),
        ({"entry": "nope"}, "entry must name"),
        ({"jobs": 0}, "jobs must be"),
        ({"jobs": True}, "jobs must be"),
        ({"jobs": 10_000}, "jobs must be"),
    ],
)
def test_a_sweep_of_which_no_run_could_be_made_is_refused(
    sized: str, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        scalebox.sweep(sized, **options)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"checks": "bad"}, "checks must be 'error', 'warn' or 'off', not 'bad'"),
        ({"max_cycles": 0}, "max_cycles must be a whole number of cycles from 1 on, not 0"),
        ({"functional": "yes"}, "functional must be True or False"),
        ({"warm": 3}, "warm must be True or False"),
        ({"inputs": 5}, "inputs must map parameter names to arrays"),
        ({"seed": -1}, "seed must be a whole number from 0 on, not -1"),
        ({"seed": "x"}, "seed must be a whole number from 0 on"),
    ],
)
def test_an_option_that_no_run_could_have_is_refused(
    sized: str, option: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        scalebox.sweep(sized, **option)


def test_a_kernel_that_is_none_is_refused_with_its_place() -> None:
    with pytest.raises(InputError, match="there is none"):
        scalebox.sweep("nowhere.py")


def test_a_broken_kernel_is_told_as_a_run_tells_it(
    kernel: Callable[..., str], capsys: Shown
) -> None:
    kernel(8, 128, 64)
    with pytest.raises(ParserError):
        scalebox.sweep("kernel.py")
    assert main(["sweep", "kernel.py"]) == 1
    assert "multiple of 16, not 8" in capsys.readouterr().err


def test_the_table_shows_what_changes_and_each_problem_once(sized: str, capsys: Shown) -> None:
    args = ["sweep", sized, "--param", "M=8,32", "--set", "l2_hit_cycles=100..300:100"]
    assert main([*args, "--set", "cores=1", "--warm"]) == 1
    told = capsys.readouterr().out
    head, with_, blank, *table = told.splitlines()
    assert head == f"{sized}: 6 runs on machine a5, for cycles only"
    assert with_ == "with     --set cores=1 --warm"
    assert blank == ""
    rows = [line.split() for line in table[: table.index("")][-6:]]
    assert [row[:2] for row in rows] == [[m, h] for m in ("8", "32") for h in ("100", "200", "300")]
    assert [row[2] for row in rows[:3]] == ["refused"] * 3
    assert " ".join(told.split()).count("must be a multiple of 16, not 8") == 1


def test_json_and_csv_parse_back(sized: str, capsys: Shown) -> None:
    args = ["sweep", sized, "--param", "M=8,32", "--set", "gm_port_bytes_per_cycle=64,1.5"]
    assert main([*args, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    rows = scalebox.sweep(
        sized, params={"M": [8, 32]}, settings={"gm_port_bytes_per_cycle": [64.0, 1.5]}
    )
    assert found["rows"] == [row.as_json() for row in rows]
    assert (found["ok"], found["runs"], found["interrupted"]) == (False, 4, False)
    assert main([*args, "--csv"]) == 1
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["cycles"] for line in table] == [str(row.cycles or "") for row in rows]
    assert [line["set.gm_port_bytes_per_cycle"] for line in table] == ["64", "1.5"] * 2
    assert [line["param.M"] for line in table] == ["8", "8", "32", "32"]
    assert [line["status"] for line in table] == ["refused", "refused", "ok", "ok"]
    assert "multiple of 16" in table[0]["problem"]
    for line, row in zip(table, found["rows"], strict=True):
        assert set(line) <= set(row), "columns of CSV are keys of JSON"
        assert (line["machine"], row["machine"]) == ("a5", "a5")
        assert line["work_cycles"] == str(row["work_cycles"] or "")
        assert (line["golden"], row["golden"]) == ("", None)


def test_golden_is_a_column_where_outputs_are_compared(sized: str, capsys: Shown) -> None:
    assert main(["sweep", sized, "--param", "M=8,32", "--functional", "--csv"]) == 1
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["golden"] for line in table] == ["", "equal"]


def test_the_table_counts_the_runs_that_were_not_made() -> None:
    grid = make_grid({"M": [8, 16, 32]})
    settings = RunSettings(kernel=Path("kernel.py"))
    refused, *others = [unfinished(point) for point in grid.points()]
    refused = replace(refused, status=RowStatus.REFUSED, problem="It is too small")
    report = SweepReport(Sweep(settings, grid, (refused, *others), interrupted=True))
    *_, row, count, blank, problem = report.lines()
    assert (row.split(), count) == (["8", "refused"], "2 runs were not run")
    assert (blank, problem) == ("", "refused  It is too small (M=8)")
    assert len(report.csv().splitlines()) == 1 + 3
    assert len(report.as_json()["rows"]) == 3


@pytest.mark.parametrize(
    "args",
    [
        ["--set", "nosuch=1"],
        ["--set", "cores="],
        ["--set", "cores=1,"],
        ["--set", "cores=1", "--set", "cores=2"],
        ["--param", "M=1..99999999999"],
        ["--param", "M=x"],
        ["--param", "ZZ=1"],
        ["--machine", "a5,nope"],
        ["--csv", "--json"],
        ["--jobs", "0"],
    ],
)
def test_wrong_usage_is_a_sentence_and_no_row(sized: str, args: list[str], capsys: Shown) -> None:
    assert main(["sweep", sized, *args]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "Error: " in told.err
    assert "Traceback" not in told.err
