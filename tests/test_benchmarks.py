"""Every benchmark speaks the same JSON, whose ratio means the same everywhere."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def rows(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("rows", root / "benchmarks" / "rows.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("less_is_better", "figure", "ratio", "met"),
    [
        (True, 1.5, 2.0, True),
        (True, 6.0, 0.5, False),
        (False, 6.0, 2.0, True),
        (False, 3.0, 1, True),
    ],
)
def test_a_ratio_of_one_or_more_is_met(
    rows: ModuleType, less_is_better: bool, figure: float, ratio: float, met: bool
) -> None:
    row = rows.Row(name="x", unit="s", target=3.0, figure=figure, less_is_better=less_is_better)
    assert (row.as_json()["ratio"], row.as_json()["met"]) == (ratio, met)
    assert ("MISSED" in row.as_text()) != met


def test_the_json_has_the_machine_and_the_rows(
    rows: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    row = rows.Row(name="x", unit="GMAC/s", target=1.0, figure=4.0, beside={"numpy_float64": 8.0})
    rows.report([row], as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document["machine"], str)
    assert document["rows"] == [
        {
            "name": "x",
            "unit": "GMAC/s",
            "target": 1.0,
            "figure": 4.0,
            "ratio": 4.0,
            "met": True,
            "disturbed": False,
            "numpy_float64": 8.0,
        }
    ]
    rows.report([row], as_json=False)
    assert "ratio 4" in capsys.readouterr().out


def test_every_script_offers_json(root: Path) -> None:
    texts = {path: path.read_text("utf-8") for path in (root / "benchmarks").glob("*.py")}
    scripts = {path: text for path, text in texts.items() if '__name__ == "__main__"' in text}
    assert scripts
    for path, text in scripts.items():
        assert "wants_json(" in text or "json_parser(" in text, path


def test_works_take_turns_and_their_first_run_does_not_count(rows: ModuleType) -> None:
    done: list[str] = []
    times = rows.interleaved(lambda: done.append("a"), lambda: done.append("b"), tries=2)
    assert done == ["a", "b"] * 3
    assert len(times) == 2
    assert all(0 <= each.best <= each.middle for each in times)
    rows.Times.of(lambda: done.append("c"), tries=4)
    assert done.count("c") == 5


def test_times_are_the_best_and_the_middle_of_the_tries(rows: ModuleType) -> None:
    times = rows.Times.from_tries([6.0, 2.0, 3.0], [5.0, 1.5, 4.0])
    assert times == rows.Times(best=2.0, middle=3.0, cpu=1.5)
    assert times.spread == 0.5


def test_a_rival_is_measured_by_the_best_tries(rows: ModuleType) -> None:
    ours, rival = rows.Times(2.0, 2.5, 2.0), rows.Times(6.0, 9.0, 6.0)
    row = ours.against(rival, "x", unit="x rival", target=4.0, rate=7.0)
    assert (row.figure, row.ratio, row.as_json()["met"]) == (3.0, 0.75, False)
    assert row.beside == {"spread": 0.5, "rate": 7.0}


def test_a_time_that_is_allowed_is_met_below_it(rows: ModuleType) -> None:
    row = rows.Times(2.0, 2.5, 2.0).within("x", seconds=3.0, tasks=4)
    assert (row.figure, row.ratio, row.unit) == (2.0, 1.5, "s")
    assert row.beside == {"spread": 0.25, "tasks": 4}


def test_a_row_without_a_target_only_informs(rows: ModuleType) -> None:
    row = rows.Times(2.0, 2.5, 2.0).alone("golden 64^3", size=64)
    told = row.as_json()
    assert [told[name] for name in ("target", "ratio", "met", "figure")] == [None, None, None, 2.0]
    assert row.beside == {"spread": 0.25, "size": 64}
    for word in ("ratio", "met", "MISSED", "None"):
        assert word not in row.as_text()


@pytest.mark.parametrize(
    ("beside", "disturbed"),
    [({}, False), ({"spread": 0.15}, False), ({"spread": 0.16}, True), ({"tries": 1}, False)],
)
def test_a_row_of_tries_that_differ_much_is_disturbed(
    rows: ModuleType, beside: dict[str, float], disturbed: bool
) -> None:
    row = rows.Row(name="x", unit="s", target=3.0, figure=2.0, beside=beside)
    assert row.as_json()["disturbed"] is disturbed
    assert ("DISTURBED" in row.as_text()) is disturbed


def test_what_is_warm_has_no_run_that_does_not_count(rows: ModuleType) -> None:
    done: list[str] = []
    rows.interleaved(lambda: done.append("a"), tries=2, warm=True)
    assert done == ["a"] * 2
