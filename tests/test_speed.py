"""The benchmark of speed: its arithmetic, and that nothing is half as fast as it must be.

The slow tests hold ratios of times that were measured together, never times; each may be half of
what the benchmark demands, so that only a real loss of speed fails them.
"""

import importlib
import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scalebox.ir import numerics
from scalebox.ir.dtypes import DType

HALF = 0.5
"""The ratio of a row that reaches half of its target."""
IMPORT = "numpy, numba"
"""What any run has to import, a quarter of a second on the host that the targets were set for.

It is the yardstick of times that are compared with nothing else: they may be twice as many imports as
their targets are.
"""


@pytest.fixture(scope="module")
def speed(root: Path) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(root / "benchmarks"), *sys.path])
        for path in (root / "benchmarks").glob("*.py"):
            patch.delitem(sys.modules, path.stem, raising=False)
        yield importlib.import_module("speed")


@pytest.fixture
def growth(speed: ModuleType) -> Any:
    return speed.speed_growth.Growth


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ([0.0, 1.0], [5.0, 8.0], 3.0),
        ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 1.0),
        ([0.0, 1.0, 2.0], [0.0, 3.0, 0.0], 0.0),
        ([1.0, 2.0, 4.0], [1.0, 1.0, 2.0], 5 / 14),
    ],
)
def test_a_line_leaves_the_least_squares(
    speed: ModuleType, x: list[float], y: list[float], expected: float
) -> None:
    assert speed.speed_growth.slope(x, y) == pytest.approx(expected)


def test_a_constant_part_does_not_count_as_growth(growth: Any) -> None:
    counts = (1, 5, 9, 13)
    linear = growth("x", "steps", counts, tuple(2 + 0.75 * each for each in counts))
    assert linear.exponent == pytest.approx(1)
    square = growth("x", "steps", counts, tuple(7 + (each - 1) ** 2 for each in counts))
    assert square.exponent == pytest.approx(2)
    row = square.row()
    assert row.ratio == pytest.approx(1.1 / 2)
    assert row.beside == {"s_at_512": 7, "s_at_1024": 23, "s_at_2048": 71, "s_at_4096": 151}


def test_what_is_no_longer_than_noise_does_not_count_as_growth(growth: Any) -> None:
    noisy = growth("x", "steps", (1, 2, 3, 11, 101), (10.0, 9.0, 19.0, 20.0, 110.0))
    assert noisy.exponent == pytest.approx(1)
    with pytest.raises(AssertionError, match="two sizes must take twice as long"):
        _ = growth("x", "steps", (1, 2, 3), (1.0, 1.0, 2.0)).exponent


def test_an_axis_has_whole_decades(speed: ModuleType) -> None:
    axis = speed.speed_plot.Axis.around([20, 3000], 100, 400)
    assert list(axis.decades) == [1, 2, 3, 4]
    assert [axis.place(value) for value in (10, 100, 10_000)] == pytest.approx([100, 200, 400])
    assert list(speed.speed_plot.Axis.around([10], 0, 1).decades) == [1, 2]


def test_the_picture_has_a_point_for_every_size(speed: ModuleType, growth: Any) -> None:
    growths = [
        growth("matmul", "MACs", (2000, 16_000, 128_000), (0.5, 4.0, 32.0)),
        growth("timing", "instructions", (100, 800, 6400), (0.1, 0.2, 0.9)),
    ]
    drawn = speed.speed_plot.picture(growths, (512, 1024, 2048))
    assert drawn == speed.speed_plot.picture(growths, (512, 1024, 2048))
    panels = ET.fromstring(drawn).findall("{*}g")
    assert len(panels) == 2
    # 8 times the time for 9 times the work: ln 8 / ln 9.
    for panel, power in zip(panels, ("1.00", "0.95"), strict=True):
        texts = [each.text or "" for each in panel.findall("{*}text")]
        assert [text for text in texts if text in ("512³", "1024³", "2048³")] == [
            "512³",
            "1024³",
            "2048³",
        ]
        assert len(panel.findall("{*}circle")) == 3
        assert any(text.endswith(f"to the power {power}") for text in texts)


def test_the_naive_simulator_multiplies_and_scales_each_product(speed: ModuleType) -> None:
    one, two = 0x38, 0x40  # E4M3
    a = numerics.MXArray(
        np.full((1, 64), one, np.uint8), np.array([[127, 128]], np.uint8), DType.MXFP8_E4M3, 1
    )
    b = numerics.MXArray(
        np.full((64, 1), two, np.uint8), np.array([[127], [124]], np.uint8), DType.MXFP8_E4M3, 0
    )
    product = speed.speed_matmul.naive_work((a, b))()
    assert product.tolist() == [[32 * 1 * 2 + 32 * (1 * 2) * (2 / 8)]]


def test_random_operands_have_every_finite_code(speed: ModuleType) -> None:
    a, b = speed.speed_matmul.random_e5m2(128)
    values = numerics.decode(np.arange(256, dtype=np.uint8), DType.MXFP8_E5M2.element)
    finite = np.flatnonzero(np.isfinite(values))
    assert len(finite) == 248
    assert np.array_equal(np.unique(a.elements), finite)
    assert np.array_equal(np.unique(b.elements), finite)
    assert a.scales.shape == (128, 4)
    assert b.scales.shape == (4, 128)


def called(speed: ModuleType, patch: pytest.MonkeyPatch, *arguments: str) -> None:
    patch.setattr(sys, "argv", ["speed.py", *arguments])
    speed.main()


def give_kinds(speed: ModuleType, patch: pytest.MonkeyPatch, kinds: dict[str, Any]) -> None:
    def given(session: object) -> dict[str, Any]:
        return kinds

    patch.setattr(speed.Session, "kinds", given)


@pytest.fixture
def few(speed: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Puts two kinds of rows in the place of all, one of which fails, and returns a page."""
    row = importlib.import_module("rows").Row

    def broken() -> None:
        message = "no row"
        raise ZeroDivisionError(message)

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- speed -->\nold\n<!-- end of speed -->\nafter\n")
    monkeypatch.setattr(speed, "PAGE", page)
    monkeypatch.setattr(speed, "machine", lambda: "some host")
    kinds: dict[str, Any] = {
        "good": lambda: [
            row(name="g", unit="x", target=2.0, figure=3.0, beside={"spread": 0.25, "n": 1234.0}),
            row(name="h", unit="s", target=2.0, figure=4.0, less_is_better=True),
        ],
        "growth": broken,
    }
    give_kinds(speed, monkeypatch, kinds)
    return page


def test_rows_can_be_chosen(
    few: Path, speed: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    called(speed, monkeypatch, "--only", "good", "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["machine"] == "some host"
    assert [row["name"] for row in document["rows"]] == ["g", "h"]
    assert [row["ratio"] for row in document["rows"]] == [1.5, 0.5]
    called(speed, monkeypatch, "--only", "good")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["some", "g", "h"]
    assert "old" in few.read_text()


def test_a_row_that_fails_ends_the_run(
    few: Path, speed: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ZeroDivisionError, match="no row"):
        called(speed, monkeypatch, "--table")
    assert "old" in few.read_text()


def test_the_table_goes_into_the_page(
    few: Path, speed: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_kinds(speed, monkeypatch, {"good": speed.Session().kinds()["good"]})
    called(speed, monkeypatch, "--table")
    assert few.read_text() == (
        "before\n<!-- speed -->\n"
        "Measured on: some host.\n"
        "\n"
        "| what | must be | is | unit | ratio | |\n"
        "|---|---|---|---|---|---|\n"
        "| g | ≥ 2 | 3 | x | 1.50 disturbed | spread 0.25, n 1,234 |\n"
        "| h | ≤ 2 | 4 | s | **0.50** |  |\n"
        "<!-- end of speed -->\nafter\n"
    )


def wait(speed: ModuleType, what: str, size: int, best: float, middle: float) -> Any:
    times = importlib.import_module("rows").Times(best, middle, best)
    return speed.speed_waits.Wait(what, size, times)


def test_how_long_a_run_takes_is_a_table_of_its_own(
    few: Path, speed: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        wait(speed, "`scalebox run`", 64, 1.5, 1.52),
        wait(speed, "golden", 64, 0.0123, 0.0124),
        wait(speed, "`scalebox run`", 128, 12.34, 15.0),
        wait(speed, "golden", 128, 101.6, 101.7),
    ]
    before = few.read_text()
    few.write_text(before + "<!-- waits -->\nold\n<!-- end of waits -->\n")
    monkeypatch.undo()
    monkeypatch.setattr(speed, "PAGE", few)
    monkeypatch.setattr(speed, "machine", lambda: "some host")
    monkeypatch.setattr(speed.speed_waits, "waits", lambda: found)
    called(speed, monkeypatch, "--only", "waits", "--table")
    assert few.read_text() == before + (
        "<!-- waits -->\n"
        "Measured on: some host.\n"
        "\n"
        "| seconds for | 64³ | 128³ |\n"
        "|---|---|---|\n"
        "| `scalebox run` | 1.5 | 12, disturbed |\n"
        "| golden | 0.012 | 102 |\n"
        "<!-- end of waits -->\n"
    )


@pytest.mark.slow
def test_all_that_a_run_waits_for_is_measured(speed: ModuleType) -> None:
    found = speed.speed_waits.waits({256: 1, 512: 1})
    names = [each.row().name for each in found]
    assert names[: len(names) // 2] == [
        name.replace("512", "256") for name in names[len(names) // 2 :]
    ]
    assert {"scalebox run, 512^3", "golden, 512^3", "compiling, 256^3"} <= set(names)
    assert all(each.row().met is None and each.row().figure > 0 for each in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "fast"], "invalid choice: 'fast'"),
        (["--only", "good", "--plot", "x.svg"], "--plot must go with the rows of growth"),
        (["--only", "good", "--table"], "--table must go with all rows, or with --only waits"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(
    few: Path,
    speed: ModuleType,
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    with pytest.raises(SystemExit):
        called(speed, monkeypatch, *arguments)
    assert message in capsys.readouterr().err


def test_openblas_must_choose_its_own_kernel(
    few: Path, speed: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    with pytest.raises(SystemExit):
        called(speed, monkeypatch, "--only", "good")
    assert "unset OPENBLAS_CORETYPE" in capsys.readouterr().err


def test_the_page_has_one_place_for_the_table_and_shows_the_picture(
    speed: ModuleType, root: Path
) -> None:
    text = speed.PAGE.read_text(encoding="utf-8")
    for name in ("speed", "waits"):
        (table,) = speed.block(name).findall(text)
        assert speed.block(name).sub("", text).count(f"{name} -->") == 2
        assert table.startswith("Measured on: ")
    assert "](speed-growth.svg)" in text
    assert ET.parse(root / "docs" / "speed-growth.svg").getroot().tag.endswith("svg")


@pytest.mark.slow
def test_a_matmul_reaches_half_of_what_it_must(speed: ModuleType) -> None:
    rows = speed.speed_matmul.matmul_rows(size=1024, tries=3)
    assert len(rows) == 8
    slow = [row.as_text() for row in rows if row.ratio < HALF]
    assert not slow, "\n".join(slow)


@pytest.mark.slow
def test_a_matmul_is_much_faster_than_the_naive_one(speed: ModuleType) -> None:
    row = speed.speed_matmul.naive_row(size=1024, naive_size=256, tries=3)
    assert row.beside["agrees"] == "true"
    assert row.ratio >= HALF, row.as_text()


@pytest.mark.slow
def test_the_machine_costs_at_most_what_the_matmul_does(speed: ModuleType) -> None:
    share, checks = speed.speed_machine.simulate_rows(size=2048, tries=2)
    assert share.beside["equal"] == "true"
    assert share.ratio >= HALF, share.as_text()
    # By the clock it is a small difference of two times that other programs lengthen.
    assert checks.beside["by_cpu"] <= checks.target / HALF, checks.as_text()


@pytest.mark.slow
def test_memory_stays_below_twice_the_allowance(speed: ModuleType) -> None:
    row = speed.speed_machine.memory_row(size=2048)
    assert row.beside["inputs_and_outputs"] == pytest.approx(16.25)  # 4 + 4, scales 1/8 each, 8
    assert row.ratio >= HALF, row.as_text()


@pytest.mark.slow
def test_compiling_takes_less_than_four_imports(speed: ModuleType) -> None:
    imports = speed.speed_start.import_times(IMPORT, tries=2)
    row = speed.speed_machine.compile_row(size=1024, tries=2)
    assert row.figure <= 4 * imports.best, row.as_text()


@pytest.mark.slow
def test_timing_an_instruction_takes_less_than_five_hundred_naive_products(
    speed: ModuleType,
) -> None:
    # Of one thread both. A naive product takes 0.8 ns where an instruction may take 200.
    times, instructions = speed.speed_machine.timing_work(4096, GRID_M=1, GRID_N=1)
    naive = speed.speed_matmul.naive_times(256, tries=3)
    assert times.cpu / instructions <= 500 * naive.cpu / 256**3, (times, naive)


@pytest.mark.slow
def test_time_grows_with_the_work(speed: ModuleType) -> None:
    matmul = speed.speed_growth.matmul_growth((256, 512, 1024, 2048))
    assert matmul.exponent <= 1.4, matmul
    timing = speed.speed_growth.timing_growth((512, 4096, 6144))
    assert timing.exponent <= 1.4, timing


@pytest.mark.slow
def test_the_import_and_a_warm_run_wait_for_little_beside_other_imports(
    speed: ModuleType,
) -> None:
    others = speed.speed_start.import_times(IMPORT, tries=3).best
    assert speed.speed_start.import_times("scalebox", tries=3).best <= others
    assert speed.speed_start.warm_times(tries=2).best <= 12 * others


def test_a_sweep_is_of_as_many_runs_as_its_rows_say(speed: ModuleType) -> None:
    settings = speed.speed_sweep.SETTINGS.values()
    assert np.prod([len(values) for values in settings]) == speed.speed_sweep.RUNS == 64


@pytest.mark.slow
def test_a_sweep_by_two_processes_is_not_slower_than_by_one(speed: ModuleType) -> None:
    row = speed.speed_sweep.sweep_row(1024, functional=False, tries=1)
    assert row.ratio >= HALF, row.as_text()
