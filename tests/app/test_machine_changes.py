"""The examples on other machines: cycles behave, outputs do not change; and the host has no say."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import scalebox
from scalebox.app.account.analysis import Analysis
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.app.kernel_file import machine_of_kernel
from scalebox.app.result import Result
from scalebox.codegen.executable import Executable
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import UserError
from scalebox.ir.interp import select_entry
from scalebox.ir.language.text import load_file
from scalebox.ir.mx_uses import CompoundUses
from scalebox.ir.target import Target, load_target, specs
from scalebox.ir.target_spec import FieldType, Unit

from .random_kernels import Writer, inputs_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LARGE = ("mxfp4_performance", "mxfp8_performance")
SMALL = tuple(path.stem for path in sorted(EXAMPLES.glob("*.py")) if path.stem not in LARGE)
ALL = (*SMALL, *LARGE)

LARGER: tuple[tuple[str, dict[str, int]], ...] = (
    ("mxfp8_performance", {}),
    ("mxfp4_performance", {}),
    ("mxfp8_performance", {"M": 4096, "K": 2048, "N": 4096}),
    ("mxfp4_performance", {"M": 4096, "K": 1024, "N": 8192}),
    ("mx_gemv", {"BLOCKS": 32, "N": 2048}),
    ("mx_spmd", {"BLOCKS": 32, "M": 1024, "K": 1024}),
    ("mx_tiled", {"M": 1024, "K": 1024}),
    ("softmax", {"ROWS": 128, "KEYS": 128}),
)

#: How much longer a run may take on a better machine: where transfers share a port, one that comes
#: earlier may hold back another that matters more.
ANOMALY = 1.02

#: As unlike a5 as a machine can be that the same program runs on.
STRANGE: Mapping[str, float] = {
    "clock_hz": 1_000_000,
    "cores": 1,
    "launch_seconds": 0.0,
    "queue_entries": 1,
    "flag_cycles": 999,
    "gm_port_bytes_per_cycle": 0.7,
    "gm_row_cycles": 0.0,
    "l2_bytes": 0,
    "l2_hit_cycles": 0,
    "l2_miss_cycles": 5000,
    "hbm_bytes_per_cycle": 1e6,
    "l1_to_l0a_bytes_per_cycle": 1.0,
    "mad_head_cycles": 4000,
    "mad_8bit_k_elements": 128,
    "scale_beat_bytes": 1,
    "drain_fixed_cycles": 0.0,
    "vector_step_bytes": 32,
}


class Example:
    """An example, compiled once.

    Attributes:
        program: As written.
        target: Its machine.
        executable: Compiled for that.
        inputs: Drawn ones.
    """

    program: Program
    target: Target
    executable: Executable
    inputs: dict[str, Any]

    def __init__(self, name: str, params: Mapping[str, int]) -> None:
        kernel = load_file(EXAMPLES / f"{name}.py", params=params)
        self.program = kernel.program
        self.target = load_target(machine_of_kernel(kernel))
        self.executable = scalebox.compile(self.program, machine=self.target)

    def drawn(self) -> dict[str, Any]:
        """The inputs that `scalebox run` draws."""
        entry = select_entry(self.program)
        return draw_inputs(entry, 0, grouped_axes=CompoundUses(self.program).grouped_axes(entry))

    def timed(self, **changes: float) -> Result:
        """Return the run, timing only, with fields of the machine changed."""
        target = self.target.with_settings(changes)
        return scalebox.run(self.executable, {}, machine=target, functional=False)


@cache
def example(name: str, **params: int) -> Example:
    return Example(name, params)


def better(target: Target) -> Iterator[tuple[str, float]]:
    """Yield every bandwidth doubled and every latency halved, but for those that are as good as can be."""
    for name, rule in specs().items():
        value = getattr(target, name)
        match rule.unit:
            case Unit.BYTES_PER_CYCLE:
                yield name, 2 * value
            case Unit.CYCLES | Unit.SECONDS:
                half = value / 2 if rule.type is FieldType.NUMBER else value // 2
                if rule.least <= half != value:
                    yield name, half
            case _:
                pass


def hold_better_machines(made: Example) -> None:
    before = made.timed().simulation
    work = before.cycles - before.launch_cycles
    changes = dict(better(made.target))
    assert {"gm_port_bytes_per_cycle", "l2_miss_cycles", "launch_seconds"} <= set(changes)
    for name, value in changes.items():
        after = made.timed(**{name: value}).simulation
        assert after.cycles - after.launch_cycles <= ANOMALY * work, name
        assert after.cycles <= ANOMALY * before.cycles, name


@pytest.mark.parametrize("name", SMALL)
def test_an_example_is_not_slower_on_a_better_machine(name: str) -> None:
    hold_better_machines(example(name))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), LARGER)
def test_a_larger_example_is_not_slower_on_a_better_machine(
    name: str, params: dict[str, int]
) -> None:
    hold_better_machines(example(name, **params))


@pytest.mark.parametrize("name", ALL)
def test_an_example_is_not_faster_than_its_roofline(name: str) -> None:
    analysis = Analysis(example(name).timed())
    assert 0 < analysis.roofline.cycles <= analysis.work_cycles


@pytest.mark.slow
@pytest.mark.parametrize(("name", "params"), LARGER)
def test_a_larger_example_is_not_faster_than_its_roofline(
    name: str, params: dict[str, int]
) -> None:
    analysis = Analysis(example(name, **params).timed())
    assert 0 < analysis.roofline.cycles <= analysis.work_cycles


@pytest.mark.parametrize("name", ALL)
def test_an_example_takes_the_same_cycles_with_and_without_data(name: str) -> None:
    made = example(name)
    with_data = scalebox.run(made.executable, made.drawn(), machine=made.target)
    without = made.timed()
    assert without.cycles == with_data.cycles
    assert (without.simulation.events == with_data.simulation.events).all()
    assert (without.simulation.accounts == with_data.simulation.accounts).all()
    assert without.simulation.traffic == with_data.simulation.traffic


@pytest.mark.parametrize("name", SMALL)
def test_outputs_of_an_example_do_not_depend_on_the_machine(name: str) -> None:
    made = example(name)
    strange = made.target.with_settings(STRANGE)
    usual, other = (
        scalebox.run(made.executable, made.drawn(), machine=target)
        for target in (made.target, strange)
    )
    assert other.cycles != usual.cycles
    assert scalebox.compare(other.outputs, usual.outputs)
    # Nor when it is compiled for that machine.
    compiled = scalebox.run(made.program, made.drawn(), machine=strange)
    assert scalebox.compare(compiled.outputs, usual.outputs)


def hold_outputs(seeds: range) -> int:
    """Run random kernels on both machines; return how many were not refused."""
    usual = load_target("a5")
    strange = usual.with_settings(STRANGE)
    count = 0
    for seed in seeds:
        kernel = Writer(seed, 1).program()
        program = pl.parse(kernel.text)
        assert isinstance(program, Program)
        given: dict[str, Any] = {**inputs_of(kernel, seed), **kernel.scalars}
        try:
            executable = scalebox.compile(program)
        except UserError:
            continue
        first, second = (scalebox.run(executable, given, machine=each) for each in (usual, strange))
        assert first.cycles != second.cycles
        assert scalebox.compare(second.outputs, first.outputs), seed
        count += 1
    return count


def test_outputs_of_random_kernels_do_not_depend_on_the_machine() -> None:
    assert hold_outputs(range(500, 508)) >= 4


@pytest.mark.slow
def test_outputs_of_many_random_kernels_do_not_depend_on_the_machine() -> None:
    assert hold_outputs(range(520, 560)) >= 20


SCRIPT = """
import hashlib, sys
from pathlib import Path
import scalebox
from scalebox.app.drawn_inputs import draw_inputs
from scalebox.ir.interp import select_entry
from scalebox.ir.language.text import load_file

program = load_file(Path(sys.argv[1])).program
result = scalebox.run(program, draw_inputs(select_entry(program), 0))
digest = hashlib.sha256()
for part in (result.simulation.events, result.simulation.accounts, *result.outputs.values()):
    digest.update(part.tobytes())
print(result.cycles, digest.hexdigest())
"""


@pytest.mark.slow
def test_neither_cycles_nor_outputs_depend_on_the_threads_of_the_host() -> None:
    found: set[str] = set()
    for threads in ("1", "2", "5"):
        names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        child = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(EXAMPLES / "mx_spmd.py")],
            env={**os.environ, **dict.fromkeys(names, threads)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found.add(child.stdout)
    assert len(found) == 1
    cycles, digest = found.pop().split()
    made = example("mx_spmd")
    here = scalebox.run(made.executable, made.drawn())
    parts = (here.simulation.events, here.simulation.accounts, *here.outputs.values())
    assert int(cycles) == here.cycles
    assert digest == hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
