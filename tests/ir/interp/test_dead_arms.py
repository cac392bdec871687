"""An arm of an if that the size of a launch rules out need not be legal for it."""

from __future__ import annotations

import numpy as np
import pytest

import scalebox
from scalebox.ir.core import Program

TAILS = """
M = pl.dynamic("M")

@pl.program
class Tails:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[M, 128], pl.FP32], y: pl.Out[pl.Tensor[[M, 128], pl.FP32]]):
        for i in pl.range(0, M // 16):
            y = pl.store(pl.relu(pl.load(x, [i * 16, 0], [16, 128])), [i * 16, 0], y)
        if {condition}:
            last = pl.load(x, [M // 16 * 16, 0], [16, 128], valid_shape=[M % 16, 128])
            y = pl.store(pl.relu(last), [M // 16 * 16, 0], y)
        return y
"""
CONDITIONS = [
    "M % 16 != 0",
    "not M % 16 == 0",
    "M > 16 and M % 16 > 0",
    "M % 16 != 0 and M > 0",
]


@pytest.mark.parametrize("rows", [16, 48, 67])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_branch_for_what_a_last_trip_has_less_serves_all_sizes(condition: str, rows: int) -> None:
    program = scalebox.pl.parse(TAILS.format(condition=condition))
    assert isinstance(program, Program)
    x = np.random.default_rng(rows).standard_normal((rows, 128)).astype(np.float32)
    result = scalebox.run(program, {"x": x})
    assert np.array_equal(result.outputs["y"], np.maximum(x, 0))
    golden = scalebox.interpret(program, {"x": x})
    assert np.array_equal(golden["y"], np.maximum(x, 0))


def test_the_extent_of_an_axis_decides_as_well() -> None:
    condition = "pl.tensor.dim(x, 0) % 16 != 0"
    program = scalebox.pl.parse(TAILS.format(condition=condition))
    assert isinstance(program, Program)
    x = np.full((32, 128), -1, np.float32)
    assert not scalebox.run(program, {"x": x}).outputs["y"].any()
