"""Programs that are right give no report, however they are launched and whatever they hold."""

from pathlib import Path
from typing import Any

import pytest

import scalebox
from scalebox import pl
from scalebox.ir.core import Program
from scalebox.ir.errors import UserError
from scalebox.ir.language.text import load_file

from ...app.random_kernels import Writer as KernelWriter
from ...app.random_kernels import inputs_of
from ...app.random_launches import Writer as LaunchWriter
from .seeded import MACHINE, faults_of, overruns_of

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.py"))
#: Small buffers, in which tiles must share places.
TIGHT = {"l0a_bytes": "8192", "l0b_bytes": "16384", "l1_bytes": "65536", "l0c_bytes": "65536"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_give_no_report(path: Path) -> None:
    executable = scalebox.compile(load_file(path, params={}).program)
    for kernel in executable.kernels:
        assert faults_of(kernel) == []
        assert overruns_of(kernel) == []


def hold(seed: int, size: int) -> bool:
    """Hold one random kernel to it; return whether it can be compiled."""
    kernel = KernelWriter(seed, size).program()
    program: Any = pl.parse(kernel.text)
    target = MACHINE.with_settings(TIGHT, source="tight") if seed % 2 else MACHINE
    try:
        executable = scalebox.compile(program, machine=target)
    except UserError:
        return False
    for each in executable.kernels:
        scalars = [kernel.scalars.get(param.name, 0) for param in each.scalars]
        assert faults_of(each, scalars, target) == []
    given: dict[str, Any] = {**inputs_of(kernel, seed), **kernel.scalars}
    for timing in (True, False):
        run = scalebox.run(executable, given, machine=target, timing=timing)
        assert run.simulation is not None
        assert not run.simulation.warnings
    return True


def test_random_kernels_give_no_report() -> None:
    assert sum(hold(seed, 1) for seed in range(100, 116)) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_random_kernels_give_no_report(part: int) -> None:
    seeds = range(3000 + 40 * part, 3040 + 40 * part)
    assert sum(hold(seed, 1 + seed % 2) for seed in seeds) >= 20


def launch(seed: int) -> None:
    program = pl.parse(LaunchWriter(seed).program())
    assert isinstance(program, Program)
    executable = scalebox.compile(program)
    for scalar in (0, 3):
        run = scalebox.run(executable, {"n": scalar}, functional=False)
        assert run.simulation is not None
        assert run.simulation.warnings == ()


@pytest.mark.parametrize("seed", range(8))
def test_random_launches_give_no_report(seed: int) -> None:
    launch(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_random_launches_give_no_report(seed: int) -> None:
    launch(seed)
