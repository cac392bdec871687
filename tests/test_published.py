"""The promise of the timing model: the published kernels take the published times."""

import importlib
import json
import re
import sys
from argparse import ArgumentTypeError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from scalebox.ir.target import load_target
from scalebox.ir.target_spec import Status


@pytest.fixture(scope="module")
def published(root: Path) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(root / "benchmarks"), *sys.path])
        for name in ("rows", "published"):
            patch.delitem(sys.modules, name, raising=False)
        return importlib.import_module("published")


@pytest.fixture(scope="module")
def rows(published: ModuleType) -> dict[str, Any]:
    """The published rows beside ours, by name."""
    return {row.name: published.timed(row) for row in published.ROWS}


NAMES = (
    ("mxfp8 4096 x 4096 x 4096", 0.05),
    ("mxfp8 6144 x 6144 x 6144", 0.05),
    ("mxfp4 4096 x 1024 x 8192", 0.10),
    ("mxfp4 2048 x 8192 x 8192", 0.10),
)


@pytest.mark.parametrize(("name", "within"), NAMES)
def test_a_published_kernel_takes_the_published_time(
    rows: dict[str, Any], name: str, within: float
) -> None:
    row = rows[name]
    assert row.ms / row.row.ms == pytest.approx(1, abs=within)


@pytest.mark.parametrize("name", [name for name, _ in NAMES if name.startswith("mxfp8")])
def test_its_pipes_are_busy_for_the_published_shares(rows: dict[str, Any], name: str) -> None:
    row = rows[name]
    assert list(row.shares) == ["cube", "textract", "tload", "tstore"]
    assert list(row.shares.values()) == pytest.approx(list(row.row.shares.values()), abs=5)


def test_every_row_is_held(published: ModuleType, rows: dict[str, Any]) -> None:
    assert [(row.name, row.within) for row in published.ROWS] == list(NAMES)
    assert all(row.met for row in rows.values())


@pytest.mark.parametrize(
    ("kernel", "size", "within"),
    [
        ("mxfp8", 2048, 0.10),
        ("mxfp8", 3072, 0.05),
        ("mxfp8", 8192, 0.05),
        ("mxfp4", 2048, 0.25),
        ("mxfp4", 4096, 0.10),
    ],
)
def test_small_sizes_may_be_farther_off(
    published: ModuleType, kernel: str, size: int, within: float
) -> None:
    assert published.Published(kernel, size, size, size, 1.0, 0, 0, 0, 0).within == within


def made(published: ModuleType, kernel: str, ms: float, cube: float = 90.0) -> Any:
    row = published.Published(kernel, 4096, 4096, 4096, 1.0, 90.0, 50.0, 95.0, 5.0)
    shares = {"cube": cube, "textract": 50.0, "tload": 95.0, "tstore": 5.0}
    return published.Compared(row, ms, shares, row)


@pytest.mark.parametrize(
    ("kernel", "ms", "cube", "ratio", "met"),
    [
        ("mxfp8", 1.025, 90.0, 2.0, True),
        ("mxfp8", 0.96, 90.0, 1.25, True),
        ("mxfp8", 1.1, 90.0, 0.5, False),
        ("mxfp8", 1.025, 94.0, 1.25, True),
        ("mxfp8", 1.0, 80.0, 0.5, False),
        ("mxfp4", 0.92, 80.0, 1.25, True),
        ("mxfp4", 1.2, 90.0, 0.5, False),
    ],
)
def test_a_row_is_met_when_time_and_demanded_shares_are_near(
    published: ModuleType, kernel: str, ms: float, cube: float, ratio: float, met: bool
) -> None:
    row = made(published, kernel, ms, cube)
    assert row.ratio == pytest.approx(ratio)
    assert row.met is met
    assert ("MISSED" in row.as_text()) is not met


def test_mean_and_worst_are_of_factors(published: ModuleType) -> None:
    rows = [made(published, "mxfp8", ms) for ms in (1.21, 1.0)]
    assert published.summary(rows) == {
        "geometric_mean": pytest.approx(1.1),
        "worst": "mxfp8 4096 x 4096 x 4096",
        "worst_error": pytest.approx(0.21),
    }
    assert published.table(rows)[-1] == (
        "geometric mean: a factor of 1.1000; worst: mxfp8 4096 x 4096 x 4096, +21.0%"
    )


def test_any_size_has_a_figure_of_ours(
    published: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["published.py", "--row", "mxfp8:512,1024,2048", "--json"])
    published.main()
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"machine", "rows"}
    (row,) = document["rows"]
    assert (row["name"], row["kernel"]) == ("mxfp8 512 x 1024 x 2048", "mxfp8")
    assert (row["m"], row["k"], row["n"]) == (512, 1024, 2048)
    assert row["ours_ms"] > 0
    assert 0 < row["ours_cube"] < 100
    assert row["published_ms"] is row["error"] is row["met"] is row["published_cube"] is None
    monkeypatch.setattr(sys, "argv", ["published.py", "--row", "mxfp4:1024,512,2048"])
    published.main()
    assert "mxfp4 1024 x 512 x 2048" in capsys.readouterr().out


def test_a_published_size_is_compared(published: ModuleType) -> None:
    assert published.work_of("mxfp8:4096,4096,4096") is published.ROWS[0]
    assert published.work_of("mxfp4:4096,4096,4096") not in published.ROWS


@pytest.mark.parametrize(
    "text", ["mxfp6:1,2,3", "mxfp8:1,2", "mxfp8:0,1,2", "mxfp8", "mxfp8:a,b,c"]
)
def test_a_row_that_is_none_is_refused(published: ModuleType, text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="a row must be KERNEL:M,K,N"):
        published.work_of(text)


def test_every_number_that_is_not_published_has_a_reading_and_a_range() -> None:
    target = load_target("a5")
    for name, origin in target.provenance.items():
        if origin.status is not Status.PUBLISHED and name != "l2_block_bytes":  # ours alone
            assert re.search(r"\d to \d", origin.source), name
            assert len(origin.source.removeprefix("no public figure; ").split()) > 5, name


def test_the_readme_shows_what_comes_out(rows: dict[str, Any], root: Path) -> None:
    shown = re.findall(
        r"^\| (mxfp\d .*) \|$", (root / "README.md").read_text("utf-8"), re.MULTILINE
    )
    assert shown == [
        f"{row.row.name} | {row.row.ms:.4f} | {row.ms:.4f} | {row.error:+.1%}"
        for row in rows.values()
    ]
