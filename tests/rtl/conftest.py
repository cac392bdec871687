"""The simulators by turns."""

import pytest

from scalebox.rtl.cosim.toolchain import Simulator


@pytest.fixture(scope="session", params=list(Simulator), ids=lambda simulator: simulator.value)
def simulator(request: pytest.FixtureRequest) -> Simulator:
    """Every simulator by turns."""
    if request.param is Simulator.ICARUS:
        request.getfixturevalue("icarus")
    return request.param
