"""Compiled models, one a simulator and session."""

import pytest

from scalebox.rtl.cosim.run import Model, build_model
from scalebox.rtl.cosim.toolchain import Simulator
from scalebox.rtl.emit import verilog


@pytest.fixture(scope="session", params=list(Simulator), ids=lambda simulator: simulator.value)
def simulator(request: pytest.FixtureRequest) -> Simulator:
    """Every simulator by turns."""
    if request.param is Simulator.ICARUS:
        request.getfixturevalue("icarus")
    return request.param


@pytest.fixture(scope="session")
def scale_decode_model(simulator: Simulator) -> Model:
    """The scale-decode unit, compiled for cocotb."""
    return build_model(simulator, verilog("scale_decode"), top="scale_decode")
