"""A run of a bench that fails, breaks down or does nothing is never taken for a success."""

from pathlib import Path

import pytest

from scalebox.rtl.cosim.cache import CacheError
from scalebox.rtl.cosim.run import CosimError, Model, build_model, run_tests
from scalebox.rtl.cosim.toolchain import Simulator
from scalebox.rtl.emit import verilog

BENCHES = Path(__file__).resolve().parents[1] / "benches"


@pytest.fixture(scope="module")
def pair(icarus: str) -> Model:
    assert icarus
    return build_model(Simulator.ICARUS, verilog("scale_pair"), top="scale_pair")


def test_the_report_names_the_tests_that_passed(pair: Model) -> None:
    report = run_tests(pair, "cocotb_failing", search=BENCHES, test_filter=r"\.passes$")
    assert report.passed == ("passes",)
    assert "passes" in report.log


def test_the_folder_of_a_bench_may_be_relative(
    pair: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(BENCHES.parent)
    run_tests(pair, "cocotb_failing", search=Path(BENCHES.name), test_filter=r"\.passes$")


def test_a_failing_test_fails_the_run_and_is_named(pair: Model) -> None:
    with pytest.raises(CosimError) as caught:
        run_tests(pair, "cocotb_failing", search=BENCHES)
    assert str(caught.value) == "Every test of cocotb_failing on Icarus must pass, not 1 of 2"
    assert caught.value.hint == "Failed: fails"
    assert "zero is not NaN" in (caught.value.note or "")


def test_a_filter_that_selects_no_test_fails_the_run(pair: Model) -> None:
    with pytest.raises(CosimError) as caught:
        run_tests(pair, "cocotb_failing", search=BENCHES, test_filter="nothing_of_the_kind")
    assert str(caught.value) == (
        "At least one test of cocotb_failing on Icarus matching 'nothing_of_the_kind' must run, "
        "not none"
    )


def test_a_module_that_is_not_there_fails_the_run(pair: Model) -> None:
    with pytest.raises(CosimError, match="no_such_bench on Icarus"):
        run_tests(pair, "no_such_bench", search=BENCHES)


def test_verilog_that_does_not_compile_is_an_error_with_the_compilers_words(icarus: str) -> None:
    assert icarus
    with pytest.raises(CosimError, match=r"^Icarus must compile broken, but") as caught:
        build_model(Simulator.ICARUS, "module broken(; endmodule\n", top="broken")
    assert "syntax error" in (caught.value.note or "")


def test_a_model_that_is_not_there_any_more_is_told_with_a_way_out(tmp_path: Path) -> None:
    gone = Model(Simulator.VERILATOR, "scale_pair", tmp_path)
    with pytest.raises(CacheError, match="must be whole") as caught:
        run_tests(gone, "cocotb_failing", search=BENCHES)
    assert "Remove that folder" in (caught.value.hint or "")
