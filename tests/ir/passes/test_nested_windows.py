"""Windows of windows of a tensor, the last of which may reach beyond: what numpy cuts, on the machine."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scalebox
from scalebox.ir import language as pl
from scalebox.ir.core import Program

ROWS, COLS = 24, 50


def _cut(seed: int) -> tuple[Program, tuple[slice, slice], tuple[int, int]]:
    """Return a kernel, the part of `x` that is in its result, and the extents of the result."""
    random = Random(seed)
    begin, size = [0, 0], [ROWS, COLS]
    lines, source = list[str](), "x"
    for number in range(random.randint(1, 3)):
        at = [random.randrange(extent) for extent in size]
        size = [random.randint(1, extent - start) for extent, start in zip(size, at, strict=True)]
        begin = [one + other for one, other in zip(begin, at, strict=True)]
        ends = [start + extent for start, extent in zip(at, size, strict=True)]
        lines.append(f"w{number} = {source}[{at[0]}:{ends[0]}, {at[1]}:{ends[1]}]")
        source = f"w{number}"
    shape = random.randint(1, 30), random.randint(1, 60)
    at = [random.randint(0, extent) for extent in size]
    lines += [
        f"y = pl.slice({source}, {list(shape)}, {at}, clamp=True, pad_value=pl.PadValue.max)",
        "return y",
    ]
    body = "\n".join(f"        {line}" for line in lines)
    made = pl.parse(
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, x: pl.Tensor[[{ROWS}, {COLS}], pl.FP32]):\n{body}\n"
    )
    assert isinstance(made, Program)
    rows, cols = (
        slice(first + start, first + min(start + most, extent))
        for first, start, most, extent in zip(begin, at, shape, size, strict=True)
    )
    return made, (rows, cols), shape


def _check(seed: int) -> None:
    made, part, shape = _cut(seed)
    x = np.random.default_rng(seed).standard_normal((ROWS, COLS)).astype(np.float32)
    wanted = np.full(shape, np.inf, np.float32)
    there = x[part]
    wanted[: there.shape[0], : there.shape[1]] = there
    assert scalebox.run(made, {"x": x}, timing=False).outputs["y"].tobytes() == wanted.tobytes()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1 << 40))
def test_a_window_ends_where_the_window_around_it_does(seed: int) -> None:
    _check(seed)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 40))
def test_many_windows_end_where_those_around_them_do(seed: int) -> None:
    _check(seed)
