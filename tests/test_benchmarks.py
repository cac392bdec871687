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
            "numpy_float64": 8.0,
        }
    ]
    rows.report([row], as_json=False)
    assert "ratio 4" in capsys.readouterr().out


def test_every_script_offers_json(root: Path) -> None:
    scripts = [path for path in (root / "benchmarks").glob("*.py") if path.name != "rows.py"]
    assert scripts
    for path in scripts:
        text = path.read_text(encoding="utf-8")
        assert "wants_json(" in text or "json_parser(" in text, path
