"""Random small programs: what the machine makes of tiles is what the interpreter says, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .random_programs import drawn
from .vector_kernels import agreed, kernel


def _check(seed: int) -> None:
    lines, rows = drawn(seed)
    program = kernel({"x": "[[40, 64], pl.FP32]"}, lines, f"[[{rows}, 64], pl.FP32]")
    x = np.random.default_rng(seed).standard_normal((40, 64)).astype(np.float32)
    agreed(program, {"x": x})


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1 << 40))
def test_the_machine_and_the_interpreter_agree(seed: int) -> None:
    _check(seed)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 40))
def test_many_programs_agree(seed: int) -> None:
    _check(seed)
