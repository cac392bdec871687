"""Whatever the orchestration: machine, interpreter and every pass in between agree bit for bit."""

from typing import Any

import numpy as np
import pytest

import scalebox
from scalebox.codegen.lower import lower
from scalebox.ir import assert_structural_equal, passes, python_print
from scalebox.ir import language as pl
from scalebox.ir.core import Program
from scalebox.ir.target import load_target

from .random_launches import COLS, ROWS, Writer


def inputs(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "a": rng.integers(0, 0x60, (ROWS, 64), dtype=np.uint8),
        "sa": rng.integers(120, 130, (ROWS, 2), dtype=np.uint8),
        "b": rng.integers(0, 0x60, (64, COLS), dtype=np.uint8),
        "sb": rng.integers(120, 130, (2, COLS), dtype=np.uint8),
        "c": rng.standard_normal((ROWS, COLS), dtype=np.float32),
        "d": rng.standard_normal((ROWS, COLS), dtype=np.float32),
        "n": int(rng.integers(0, 5)),
    }


def hold(seed: int) -> int:
    """Hold one orchestration against the promises; return how many tasks it had."""
    program = pl.parse(Writer(seed).program())
    assert isinstance(program, Program)
    assert_structural_equal(pl.parse(python_print(program)), program)
    after: list[tuple[str, Program]] = []
    look = passes.CallbackInstrument(after_pass=lambda each, made: after.append((each.name, made)))
    made = lower(program, load_target("a5"), instruments=[passes.VerificationInstrument(), look])
    given = inputs(seed)
    golden = scalebox.interpret(program, given)
    seen = program
    for name, each in after:
        if each is not seen:
            assert_structural_equal(pl.parse(python_print(each)), each)
            if name in ("UnrollLoops", "ConvertToSSA", "OutlineScopes", "AllocateMemoryAddr"):
                verdict = scalebox.compare(scalebox.interpret(each, given, entry="main"), golden)
                assert verdict, f"after {name}: {verdict}"
        seen = each
    executable = scalebox.Executable.from_bytes(made.executable.to_bytes())
    result = scalebox.run(executable, given, entry="main", timing=False)
    verdict = scalebox.compare(result.outputs, golden)
    assert verdict, str(verdict)
    return len(result.simulation.tasks)


@pytest.mark.parametrize("seed", range(6))
def test_an_orchestration_launches_what_it_says(seed: int) -> None:
    hold(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 60))
def test_more_orchestrations_launch_what_they_say(seed: int) -> None:
    hold(seed)
