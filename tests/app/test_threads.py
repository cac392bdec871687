"""How many threads compute outputs is the caller's choice, and changes nothing that is found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.app.kernel_file import load_kernel_file, target_of_kernel
from scalebox.app.signature import entry_function
from scalebox.codegen.executable import Executable
from scalebox.ir.errors import InputError
from scalebox.ir.target import Target

SIZE = {"M": "200", "K": "300", "N": "400"}


@pytest.fixture(scope="module", params=["mxfp8", "mxfp4"])
def kernel(request: pytest.FixtureRequest, root: Path) -> tuple[Executable, Target, dict[str, Any]]:
    """A performance kernel of 32 blocks, some of them with tiles at an edge, and inputs for it."""
    found = load_kernel_file(root / "examples" / f"{request.param}_performance.py", SIZE)
    target = target_of_kernel(found, None, {})
    made = scalebox.compile(found.program, machine=target)
    return made, target, draw_inputs(entry_function(made.entry(None)), 3)


@pytest.mark.parametrize("checks", ["error", "off"])
def test_outputs_and_cycles_are_the_same_on_any_number_of_threads(
    kernel: tuple[Executable, Target, dict[str, Any]], checks: str
) -> None:
    made, target, inputs = kernel
    runs = [
        scalebox.run(made, inputs, machine=target, threads=threads, checks=checks)
        for threads in (1, 2, 5)
    ]
    for other in runs[1:]:
        assert other.cycles == runs[0].cycles
        assert other.simulation.warnings == runs[0].simulation.warnings
        for name, output in runs[0].outputs.items():
            np.testing.assert_array_equal(
                other.outputs[name].view(np.uint8), output.view(np.uint8), strict=True
            )


def test_inputs_stay_what_they_are(kernel: tuple[Executable, Target, dict[str, Any]]) -> None:
    made, target, inputs = kernel
    kept = {name: np.array(given) for name, given in inputs.items()}
    found = scalebox.run(made, inputs, machine=target, threads=2)
    for output in found.outputs.values():
        assert output.flags.writeable
        output[...] = 0
    for name, given in inputs.items():
        np.testing.assert_array_equal(given.view(np.uint8), kept[name].view(np.uint8))


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_the_number_of_threads_must_be_a_number_of_threads(
    kernel: tuple[Executable, Target, dict[str, Any]], threads: Any
) -> None:
    made, target, inputs = kernel
    with pytest.raises(InputError, match="threads must be a whole number from 1 on, not"):
        scalebox.run(made, inputs, machine=target, threads=threads)
