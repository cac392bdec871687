"""The generated Verilog of the scale-decode unit under cocotb, on every simulator and width."""

from pathlib import Path

import pytest

from scalebox.rtl.cosim.coverage import Coverage
from scalebox.rtl.cosim.run import build_model, run_tests
from scalebox.rtl.cosim.toolchain import Simulator
from scalebox.rtl.emit import verilog

BENCHES = Path(__file__).resolve().parents[1] / "benches"
TESTS = 1 + 2 + 9 + 6 + 1 + 1 + 3


@pytest.mark.parametrize("beat_bytes", [8, 16, 32])
def test_the_unit_keeps_the_protocol_and_every_class_of_it_is_exercised(
    simulator: Simulator, beat_bytes: int, tmp_path: Path
) -> None:
    text = verilog("scale_decode", beat_bytes=beat_bytes)
    model = build_model(simulator, text, top="scale_decode")
    counts = tmp_path / "coverage.json"
    report = run_tests(
        model,
        "cocotb_scale_decode",
        search=BENCHES,
        seed=1,
        variables={"SCALEBOX_COVERAGE": str(counts)},
    )
    assert len(report.passed) == TESTS
    coverage = Coverage.load(counts)
    assert coverage.missing == []
    assert coverage.percent == 100
