"""Random small programs: what the machine makes of tiles is what the interpreter says, bit for bit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .random_programs import DTYPES, drawn, numbers
from .vector_kernels import agreed, kernel

SEEDS = st.integers(0, 1 << 40)


def _check(seed: int, dtype: str) -> None:
    lines, rows = drawn(seed, dtype)
    program = kernel({"x": f"[[40, 64], pl.{dtype}]"}, lines, f"[[{rows}, 64], pl.{dtype}]")
    agreed(program, {"x": numbers(seed, dtype)})


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=4, deadline=None)
@given(SEEDS)
def test_the_machine_and_the_interpreter_agree(dtype: str, seed: int) -> None:
    _check(seed, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_many_programs_agree(dtype: str, seed: int) -> None:
    _check(seed, dtype)
