"""The generated Verilog of the scale-decode unit under cocotb, on every simulator."""

from pathlib import Path

from scalebox.rtl.cosim.run import Model, run_tests

BENCHES = Path(__file__).resolve().parents[1] / "benches"
TESTS = 1 + 1 + 9 + 1


def test_the_unit_passes_its_bench(scale_decode_model: Model) -> None:
    report = run_tests(scale_decode_model, "cocotb_scale_decode", search=BENCHES, seed=1)
    assert len(report.passed) == TESTS
