"""The reductions of the vector core, against numpy a step at a time and Python's own integers."""

import math

import numpy as np
import pytest

from scalebox.ir.dtypes import Float16, SimpleDType
from scalebox.ir.errors import IRValueError
from scalebox.ir.numerics.functions import FLOATS, SIGNED, UNSIGNED
from scalebox.ir.numerics.reductions import Reduction, reduce

from .vector_oracle import FP32, codes, pairs, rounded, same, values


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_round_to_float32_at_each_step(dtype: SimpleDType, axis: int) -> None:
    rng = np.random.default_rng(5)
    x = codes(rng.standard_normal((7, 300)) * 100, dtype)
    numbers = values(x, dtype).astype(np.float32)
    lines = numbers.T if axis == 0 else numbers
    for function, of in ((Reduction.SUM, np.add), (Reduction.PROD, np.multiply)):
        wanted: list[float] = []
        with np.errstate(all="ignore"):
            for line in lines:
                total = line[0]
                for each in line[1:]:
                    total = of(total, each)  # one float32 operation
                wanted.append(rounded(float(total), dtype))
        found = reduce(function, x, dtype, axis)
        assert found.shape == ((1, 300) if axis == 0 else (7, 1))
        same(found, wanted, dtype)


def test_a_sum_of_16_bits_keeps_what_16_bits_would_lose() -> None:
    x = codes([[2048.0] + [1.0] * 100], Float16)
    assert values(reduce(Reduction.SUM, x, Float16, 1), Float16).tolist() == [[2148.0]]


def test_order_matters_and_is_ascending() -> None:
    up = codes([[2.0**24, 1.0, 1.0]], FP32)
    assert values(reduce(Reduction.SUM, up, FP32, 1), FP32).tolist() == [[2.0**24]]
    down = codes([[1.0, 1.0, 2.0**24]], FP32)
    assert values(reduce(Reduction.SUM, down, FP32, 1), FP32).tolist() == [[2.0**24 + 2]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_extremes_order_zeros_and_hand_nan_on(dtype: SimpleDType) -> None:
    nan = math.nan
    x = codes([[-0.0, 0.0, -0.0], [1.0, nan, 3.0], [-5.0, -7.0, -math.inf]], dtype)
    same(reduce(Reduction.MAX, x, dtype, 1), [0.0, nan, -5.0], dtype)
    same(reduce(Reduction.MIN, x, dtype, 1), [-0.0, nan, -math.inf], dtype)
    same(reduce(Reduction.SUM, x[:1, ::2].copy(), dtype, 1), [-0.0], dtype)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_integers_wrap_in_their_own_width(dtype: SimpleDType) -> None:
    x, _ = pairs(dtype, 60)
    x = x.reshape(6, 10)
    low = -(1 << (dtype.bits - 1)) if dtype in SIGNED else 0
    numbers = values(x, dtype).tolist()
    for function, of in {
        Reduction.SUM: sum, Reduction.PROD: math.prod, Reduction.MAX: max, Reduction.MIN: min,
    }.items():  # fmt: skip
        found = values(reduce(function, x, dtype, 1), dtype).reshape(-1).tolist()
        assert found == [(of(line) - low) % (1 << dtype.bits) + low for line in numbers]


def test_nothing_cannot_be_reduced() -> None:
    with pytest.raises(IRValueError, match="must have at least one valid element"):
        reduce(Reduction.MAX, np.zeros((3, 0), np.uint32), FP32, 1)
