"""What `scalebox rtl` leaves: Verilog, vectors that others can trust, and a bench that needs no Scalebox."""

import ast
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.app.cli import main
from scalebox.app.commands import rtl as rtl_command
from scalebox.app.commands.rtl import rtl_files
from scalebox.codegen.isa.vocabulary import ElementType, MadInit
from scalebox.rtl.cosim.cube import RtlCube
from scalebox.rtl.cosim.toolchain import Simulator, require
from scalebox.rtl.emit import UNITS, Choice
from scalebox.rtl.emit.folder import OutputFolderError
from scalebox.sim.matmul import MadTile

Shown = pytest.CaptureFixture[str]

NAMES = ("{}.v", "{}_vectors.json", "{}_bench.py")
BEATS = [Choice(beat_bytes=beat) for beat in (8, 16, 32)]
DECODED = {
    0: ml_dtypes.float8_e4m3fn,
    1: ml_dtypes.float8_e5m2,
    2: ml_dtypes.float4_e2m1fn,
}


def vectors_of(unit: str, choice: Choice = BEATS[-1]) -> dict[str, Any]:
    return json.loads(rtl_files(unit, choice)[f"{unit}_vectors.json"])


def run_bench(
    folder: Path, unit: str, simulator: str = "icarus"
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / f"{unit}_bench.py"), "--simulator", simulator]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_bench_imports_cocotb_and_nothing_of_ours() -> None:
    tree = ast.parse(rtl_files("scale_pair", Choice())["scale_pair_bench.py"])
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    roots = {str(module).split(".")[0] for module in modules}
    assert roots - sys.stdlib_module_names == {"cocotb", "cocotb_tools"}


@pytest.mark.parametrize(
    ("simulator", "absent"), [("icarus", "iverilog, vvp"), ("verilator", "perl, make, g++")]
)
def test_the_bench_names_the_tools_that_it_lacks(
    simulator: str, absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["rtl", "-o", str(tmp_path), "--unit", "scale_pair"]) == 0
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = run_bench(tmp_path, "scale_pair", simulator)
    assert ran.returncode == 1
    assert ran.stderr == f"To run on {simulator}, these must be installed: {absent}\n"


def test_the_bench_without_cocotb_says_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["rtl", "-o", str(tmp_path), "--unit", "scale_pair"]) == 0
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "cocotb.py").write_text("raise ModuleNotFoundError(\"No module named 'cocotb'\")\n")
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    ran = run_bench(tmp_path, "scale_pair")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("This bench needs cocotb 2, which must be installed: pip install")


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_comes_with_vectors_and_a_bench_and_all_three_are_always_the_same(
    unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["rtl", "-o", "out", "--unit", unit]) == 0
    paths = [Path("out") / name.format(unit) for name in NAMES]
    assert [Path(line) for line in capsys.readouterr().out.splitlines()] == paths
    before = [path.read_bytes() for path in paths]
    assert all(b"Written by Scalebox" in text[:200] for text in before)
    assert main(["rtl", "-o", "out", "--unit", unit]) == 0
    assert [path.read_bytes() for path in paths] == before
    assert sorted(Path("out").iterdir()) == sorted(paths)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--unit alu", "--unit must be one of scale_decode, dot, cube, scale_pair, not 'alu'"),
        ("--beat 4", "The bytes of a beat must be one of 8, 16, 32, not 4"),
        (
            "--unit dot --beat 8",
            "A width of beats must go with a unit that reads scale boxes, not with dot",
        ),
        ("--unit cube --combined", "Combined exponents must go with scale_decode, not with cube"),
    ],
)
def test_what_there_is_not_is_refused_in_a_sentence_and_nothing_is_written(
    arguments: str, message: str, tmp_path: Path, capsys: Shown
) -> None:
    assert main(["rtl", "-o", str(tmp_path / "out"), *arguments.split()]) in (1, 2)
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_foreign_file_is_kept_and_only_force_writes_beside_it(
    tmp_path: Path, capsys: Shown
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["rtl", "-o", str(tmp_path)]) == 2
    assert "must hold only files of ours, not mine.txt" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert main(["rtl", "-o", str(tmp_path), "--force"]) == 0
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("file/out", "must be one that can be written"),
        ("null\0/out", "must be one that can be written"),
        ("full", "must hold only files of ours, not mine.txt"),
        ("taken", "must be a place for a file, not a folder"),
    ],
)
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_generated(
    folder: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(unit: str, choice: Choice) -> None:
        raise AssertionError(f"{unit} {choice}")

    monkeypatch.setattr(rtl_command, "rtl_files", never)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    (tmp_path / "taken/dot.v").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputFolderError, match=says):
        rtl_command.write_rtl(tmp_path / folder, "dot")
    assert sorted(tmp_path.rglob("*")) == before


def test_what_was_made_to_look_is_gone_where_generating_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(unit: str, choice: Choice) -> None:
        assert not list(tmp_path.iterdir()), f"{unit} {choice}"
        raise KeyboardInterrupt

    monkeypatch.setattr(rtl_command, "rtl_files", stopped)
    with pytest.raises(KeyboardInterrupt):
        rtl_command.write_rtl(tmp_path / "new" / "out", "dot")
    assert not list(tmp_path.iterdir())


def test_a_write_that_fails_halfway_leaves_every_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["rtl", "-o", str(tmp_path), "--beat", "8"]) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    replace = Path.replace

    def full(source: Path, target: Path) -> Path:
        if str(target).endswith(".json"):
            raise OSError(28, "No space left on device")
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", full)
    assert main(["rtl", "-o", str(tmp_path)]) == 2
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("unit", "arguments"),
    [
        ("scale_decode", "--beat 8"),
        ("scale_decode", "--beat 32 --combined"),
        ("scale_pair", ""),
        pytest.param("dot", "", marks=pytest.mark.slow),
    ],
)
def test_the_bench_passes_on_icarus_and_leaves_nothing(
    unit: str, arguments: str, tmp_path: Path, icarus: str
) -> None:
    assert main(["rtl", "-o", str(tmp_path), "--unit", unit, *arguments.split()]) == 0
    child = run_bench(tmp_path, unit)
    assert child.returncode == 0, child.stdout[-2000:] + child.stderr[-2000:]
    assert f"{unit} on icarus: 2 of 2 tests passed" in child.stdout
    assert len(list(tmp_path.iterdir())) == len(NAMES)
    assert icarus


@pytest.mark.slow
def test_the_bench_drives_the_cube_on_icarus(tmp_path: Path, icarus: str) -> None:
    """One mad only: a cycle of 256 dot units takes Icarus seconds."""
    assert main(["rtl", "-o", str(tmp_path), "--unit", "cube"]) == 0, icarus
    path = tmp_path / "cube_vectors.json"
    told = json.loads(path.read_text())
    told["cases"] = [case for case in told["cases"] if "1 x 1 x 1" in case["name"]]
    path.write_text(json.dumps(told))
    child = run_bench(tmp_path, "cube")
    assert "cube on icarus: 2 of 2 tests passed" in child.stdout, child.stdout[-2000:]


@pytest.mark.slow
def test_the_verilated_cube_gives_the_results_of_the_vectors() -> None:
    cube = RtlCube()
    for case in vectors_of("cube")["cases"]:
        [mad], given = case["words"]["mad"], case["matrices"]
        codes = {
            name: np.array([list(bytes.fromhex(row)) for row in given[name]], np.uint8)
            for name in ("a", "b", "a_scales", "b_scales")
        }
        start, result = (
            np.array([[int(bits, 16) for bits in row] for row in given[name]], np.uint32)
            for name in ("start", "result")
        )
        types = ElementType(mad["a_type"]), ElementType(mad["b_type"])
        tile = MadTile(
            codes["a"], codes["a_scales"], codes["b"], codes["b_scales"], *types,
            start.view(np.float32), MadInit(mad["init"]),
        )  # fmt: skip
        found = cube.multiply(tile).view(np.uint32)
        np.testing.assert_array_equal(found, result, err_msg=case["name"])


@pytest.mark.slow
def test_the_bench_passes_on_verilator(tmp_path: Path) -> None:
    require(Simulator.VERILATOR)
    assert main(["rtl", "-o", str(tmp_path), "--beat", "16"]) == 0
    child = run_bench(tmp_path, "scale_decode", "verilator")
    assert child.returncode == 0, child.stdout[-2000:] + child.stderr[-2000:]


def test_the_bench_finds_a_wrong_unit(tmp_path: Path, icarus: str) -> None:
    assert main(["rtl", "-o", str(tmp_path)]) == 0
    path = tmp_path / "scale_decode.v"
    wrong = path.read_text().replace("- 7'h7f", "- 7'h7e", 1)
    assert wrong != path.read_text()
    path.write_text(wrong)
    child = run_bench(tmp_path, "scale_decode")
    assert child.returncode == 1, icarus
    assert "must be" in child.stdout


def exponents(codes: np.ndarray[Any, Any]) -> tuple[list[int], list[bool]]:
    """Decode E8M0 codes by ml_dtypes; the exponent of a NaN is left to the unit's own rule."""
    values = codes.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    nan = np.isnan(values)
    return [128 if n else int(e) - 1 for n, e in zip(nan, np.frexp(values)[1], strict=True)], [*nan]


@pytest.mark.parametrize("choice", BEATS, ids=lambda choice: str(choice.beat_bytes))
def test_records_hold_what_the_published_layout_and_format_say(choice: Choice) -> None:
    seen: set[int] = set()
    for case in vectors_of("scale_decode", choice)["cases"]:
        words = case["words"]
        boxes = {side: np.array(words[side], np.uint8).reshape(-1, 16, 2) for side in ("a", "b")}
        records = iter(words["o"])
        at = 0
        requests: list[Any] = list(zip(words["a_request"], words["b_request"], strict=True))
        for index, start in enumerate(words["start"]):
            m, n, groups = start["row_tiles"], start["column_tiles"], start["groups"]
            width = 1 + start["paired"]
            for tile in range(m * n):
                for group in range(0, groups, width):
                    here = at + tile * -(-groups // 2) + group // 2
                    a_request, b_request = requests[here]
                    assert a_request == {"tile": tile // n, "block": group // 2}
                    assert b_request == {"tile": tile % n, "block": group // 2}
                    record = next(records)
                    present = min(width, groups - group)
                    last = group + width >= groups
                    assert record["group"] == group
                    assert record["second"] == present - 1
                    assert record["last"] == last
                    assert record["end"] == (last and tile == m * n - 1)
                    for half in range(2):
                        for side, found in boxes.items():
                            codes = found[here][:, (group + half) % 2]
                            seen |= set(codes.tolist())
                            expected = (
                                exponents(codes) if half < present else ([0] * 16, [False] * 16)
                            )
                            assert record[f"halves.{side}_exponent"][half] == expected[0]
                            assert record[f"halves.{side}_nan"][half] == expected[1]
            at += m * n * -(-groups // 2)
            assert index < len(words["start"])
        assert next(records, None) is None
    assert seen == set(range(256))


def test_the_first_record_stands_four_cycles_after_its_start_and_one_follows_each_cycle() -> None:
    case = vectors_of("scale_decode")["cases"][0]
    assert case["cycles"]["start"] == [0]
    assert case["cycles"]["a_request"] == list(range(1, 9))
    assert case["cycles"]["a"][0] == 2
    assert case["cycles"]["o"] == list(range(4, 20))


def test_pairs_hold_the_sum_of_exponents() -> None:
    for case in vectors_of("scale_pair")["cases"]:
        words = case["words"]
        for a, b, nan, exponent in zip(
            *(words[name] for name in ("a", "b", "is_nan", "exponent")), strict=True
        ):
            assert nan == (255 in (a, b))
            assert exponent == (None if nan else a + b - 254)


def decoded(code: int, kind: int) -> float:
    if kind == 3:  # E1M2: a sign, and quarters
        return (code & 7) / 4 * (-1 if code & 8 else 1)
    return float(np.array([code], np.uint8).view(DECODED[kind])[0])


def to_fp32(value: Fraction) -> np.float32:
    """Round an exact number once, to nearest even."""
    if value == 0:
        return np.float32(0)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(size / unit) * unit
    magnitude = np.float32(np.inf) if rounded >= 2**128 else np.float32(float(rounded))
    return np.copysign(magnitude, np.float32(1 if value > 0 else -1))


def term(pairs: list[tuple[float, float]], a_code: int, b_code: int) -> np.float32:
    products = [np.float64(a) * b if np.isfinite([a, b]).all() else a * b for a, b in pairs]
    with np.errstate(invalid="ignore"):
        total = np.sum([p for p in products if not np.isfinite(p)] or [0.0])
    if 255 in (a_code, b_code) or np.isnan(total):
        return np.float32(np.nan)
    if np.isinf(total):
        return np.float32(total)
    exact = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    return to_fp32(exact * Fraction(2) ** (a_code + b_code - 254))


def same(value: np.float32, bits: int) -> bool:
    return bits == 0x7FC00000 if np.isnan(value) else int(value.view(np.uint32)) == bits


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
def test_sums_of_the_dot_unit_are_those_of_fractions() -> None:
    for case in vectors_of("dot")["cases"]:
        sums = iter(case["words"]["o"])
        total = np.float32(0)
        for step in case["words"]["i"]:
            bits = 8 if step["a_type"] < 2 else 4
            lines = {
                side: [
                    decoded(
                        int(step[side], 16) >> (bits * place) & ((1 << bits) - 1),
                        step[f"{side}_type"],
                    )
                    for place in range(256 // bits)
                ]
                for side in "ab"
            }
            if step["first"]:
                total = np.array([step["start"]], np.uint32).view(np.float32)[0]
            for group in range(1 + step["second"]):
                codes = [
                    255
                    if step[f"{side}_scales.is_nan"] >> group & 1
                    else step[f"{side}_scales.exponent"][group] + 127
                    for side in "ab"
                ]
                at = slice(32 * group, 32 * group + 32)
                total = total + term([*zip(lines["a"][at], lines["b"][at], strict=True)], *codes)
            if step["last"]:
                assert same(total, next(sums)), case["name"]
        assert next(sums, None) is None


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
def test_results_of_the_cube_are_those_of_fractions() -> None:
    for case in vectors_of("cube")["cases"]:
        [mad], given = case["words"]["mad"], case["matrices"]
        a, b, a_scales, b_scales = (
            [bytes.fromhex(row) for row in given[name]]
            for name in ("a", "b", "a_scales", "b_scales")
        )
        for row in range(0, mad["m"], 3):
            for column in range(0, mad["n"], 5):
                start = np.array([int(given["start"][row][column], 16)], np.uint32)
                total = start.view(np.float32)[0]
                for group in range(len(a_scales[0])):
                    places = range(32 * group, min(32 * group + 32, mad["k"]))
                    pairs = [
                        (decoded(a[row][k], mad["a_type"]), decoded(b[k][column], mad["b_type"]))
                        for k in places
                    ]
                    total = total + term(pairs, a_scales[row][group], b_scales[group][column])
                assert same(total, int(given["result"][row][column], 16)), case["name"]
