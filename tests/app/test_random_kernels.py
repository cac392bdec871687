"""Whatever the kernel: it is refused in a sentence, or the machine's answer is Python's, bit for bit."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.codegen.lower import lower
from scalebox.ir import assert_structural_equal, passes, python_print
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.errors import UserError
from scalebox.ir.target import load_target

from ..codegen.sync.flag_checker import judge
from .oracle import Array
from .python_kernels import Tensor, UsedTwiceError, run_by_python, view
from .random_kernels import Kernel, Writer, inputs_of

KINDS = {"FP32": np.float32, "BF16": ml_dtypes.bfloat16, "FP16": np.float16}
#: Small buffers, in which tiles must share places.
TIGHT = {"l0a_bytes": "8192", "l0b_bytes": "16384", "l1_bytes": "65536", "l0c_bytes": "65536"}


def by_python(kernel: Kernel, given: dict[str, Array]) -> dict[str, Array]:
    """The outputs when Python runs the kernel's text."""
    m, k, n = kernel.sizes
    a, b = kernel.dtypes
    scales = {name: Tensor(given[name]) for name in ("sa", "sb")}
    if not kernel.is_viewed:
        scales = {
            "sa": view(scales["sa"], [m, k // 32], "A"),
            "sb": view(scales["sb"], [k // 32, n], "B"),
        }
    bias = {"bias": Tensor(given["bias"])} if kernel.has_bias else {}
    outputs = {c: Tensor(np.zeros((m, n), KINDS[kind])) for c, kind in kernel.outputs.items()}
    operands = {"a": Tensor(given["a"], a), "b": Tensor(given["b"], b)}
    arguments = {**operands, **scales, **bias, **outputs, **kernel.scalars}
    run_by_python(kernel.text, kernel.entry, arguments)
    return {name: tensor.data for name, tensor in outputs.items()}


def assert_equal(actual: dict[str, Any], expected: dict[str, Any], what: str) -> None:
    verdict = scalebox.compare(actual, expected)
    assert verdict, f"{what}: {verdict}"


def is_refused(seed: int, size: int, *, every_pass: bool) -> bool:
    """Hold one kernel against the promises; return whether it was refused, and rightly."""
    kernel = Writer(seed, size).program()
    given: dict[str, Any] = {**inputs_of(kernel, seed), **kernel.scalars}
    program = pl.parse(kernel.text)
    assert isinstance(program, Program)
    assert_structural_equal(pl.parse(python_print(program)), program)
    after: list[tuple[str, Program]] = []
    look = passes.CallbackInstrument(after_pass=lambda each, made: after.append((each.name, made)))
    target = load_target("a5")
    if seed % 2:
        target = target.with_settings(TIGHT, source="tight")
    try:
        verify = passes.VerificationInstrument()
        executable = lower(program, target, instruments=[verify, look]).executable
    except UserError as error:
        if error.span is None:
            pytest.fail(f"a refusal without a place: {error}")
        return True
    try:
        expected = by_python(kernel, given)
    except UsedTwiceError:
        pytest.fail("an accumulator is used after it was overwritten")
    assert_equal(scalebox.interpret(program, given), expected, "interpreted")
    if every_pass:
        for name, made in after:
            assert_equal(scalebox.interpret(made, given), expected, f"after {name}")
            assert_structural_equal(pl.parse(python_print(made)), made)
    executable = scalebox.Executable.from_bytes(executable.to_bytes())
    for each in executable.kernels:
        verdict = judge(
            each.program, each.views, [kernel.scalars.get(p.name, 0) for p in each.scalars]
        )
        assert verdict.sound, verdict
    timed = scalebox.run(executable, given, machine=target)
    assert_equal(timed.outputs, expected, "run")
    assert not timed.simulation.warnings
    untimed = scalebox.run(executable, given, machine=target, timing=False)
    assert_equal(untimed.outputs, expected, "run without timing")
    alone = scalebox.run(executable, kernel.scalars, machine=target, functional=False)
    assert (alone.cycles, alone.pipes) == (timed.cycles, timed.pipes)
    return False


def test_random_kernels_run_as_python_runs_them() -> None:
    refused = sum(is_refused(seed, 1, every_pass=seed % 4 == 0) for seed in range(24))
    assert refused <= 12


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("size", [1, 2])
def test_many_random_kernels_run_as_python_runs_them(part: int, size: int) -> None:
    seeds = range(1000 * size + 20 * part, 1000 * size + 20 * part + 20)
    refused = sum(is_refused(seed, size, every_pass=True) for seed in seeds)
    assert refused < len(seeds)
