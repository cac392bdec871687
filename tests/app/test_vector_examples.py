"""The examples for the vector core: the machine, the interpreter and an oracle agree bit for bit."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import scalebox
from scalebox.app.result import Result
from scalebox.ir import numerics
from scalebox.ir.core import Program
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import InvalidOperationError
from scalebox.ir.language.text import load_file

from .oracle import (
    E2M1_VALUES,
    E4M3,
    PLAIN_NAN,
    Array,
    assert_bits,
    group_by_group,
    in_float64,
    near_one,
)
from .vector_oracle import (
    TARGETS,
    boxes_of_rows,
    decoded,
    quantised,
    rounded_once,
    row_sums,
)

Through = Callable[..., Result]
Example = Callable[..., Program]

SOURCES: tuple[Any, ...] = (np.float32, ml_dtypes.bfloat16, np.float16)
DTYPES = {"FP8E4M3FN": DType.MXFP8_E4M3, "FP4": DType.MXFP4}
RULES = ("floor", "nv")
BF16 = ml_dtypes.bfloat16


@pytest.fixture
def example(root: Path) -> Example:
    """An example by its name, with other values of its parameters."""

    def load(name: str, params: Mapping[str, int] | None = None) -> Program:
        return load_file(root / "examples" / f"{name}.py", params=params).program

    return load


def spread(rng: np.random.Generator, rows: int, depth: int, binades: int) -> Array:
    """Numbers whose size differs from row to row and from group to group."""
    row, group = np.indices((rows, depth // 32))
    exponents = (13 * (row // 16) + 7 * (row % 16) + 3 * group) % binades - binades // 2
    return rng.standard_normal((rows, depth)) * np.repeat(np.exp2(exponents), 32, axis=1)


def exp_of_difference(x: float, top: float) -> float:
    return math.exp(x - top)


def reciprocal_root(x: float) -> float:
    return 1 / math.sqrt(x)


def with_specials(x: Array) -> Array:
    """Groups with a NaN, with an infinity, and of zeros."""
    made = x.copy()
    made[3, 40], made[17, 255], made[5, 64:96] = np.nan, -np.inf, 0
    made[6, 0:32] = -0.0
    return made


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("source", "target"),
    [(0, "FP8E4M3FN"), (1, "FP8E4M3FN"), (2, "FP8E4M3FN"), (1, "FP4"), (2, "FP4")],
)
def test_quantised_matrices_and_their_product(
    source: int, target: str, rule: str, example: Example, through: Through
) -> None:
    params = {"SOURCE": source, "TARGET": [*TARGETS].index(target), "RULE": RULES.index(rule)}
    rng = np.random.default_rng(source)
    binades = 20 if source == 2 else 64
    x, y = (spread(rng, 64, 256, binades).astype(SOURCES[source]) for _ in range(2))
    x = with_specials(x)
    found = through(example("quantise", params), {"x": x, "y": y}).outputs

    kind = TARGETS[target]
    (a, a_scale), (b, b_scale) = (quantised(each, kind, rule) for each in (x, y))
    assert np.unique(a_scale).size > 16
    assert np.array_equal(found["a"].view(np.uint8), a)
    assert np.array_equal(found["b"].view(np.uint8), b.T)
    assert np.array_equal(found["a_bytes"].view(np.uint8)[0], boxes_of_rows(a_scale))
    assert np.array_equal(found["b_bytes"].view(np.uint8)[0], boxes_of_rows(b_scale))
    for given, codes, scales in ((x, a, a_scale), (y, b, b_scale)):
        numbers = numerics.quantize(given, DTYPES[target], axis=1, rule=rule)
        assert np.array_equal(numbers.elements.view(np.uint8), codes)
        assert np.array_equal(numbers.scales.view(np.uint8), scales)

    unknown = (a_scale == 255).any(axis=1)
    left = np.where(unknown[:, None], 0, decoded(a, kind))
    units = (kind.unit, kind.unit)
    product = group_by_group(left, a_scale, decoded(b, kind).T, b_scale.T, unit=units)
    product.view(np.uint32)[unknown] = PLAIN_NAN
    assert unknown.sum() == {"floor": 2, "nv": 1}[rule]
    assert_bits(found["c"], product)


def test_scales_that_are_not_in_their_boxes_would_change_the_product(
    example: Example, through: Through
) -> None:
    """What makes the test above one of the order of scales."""
    rng = np.random.default_rng(5)
    x, y = (spread(rng, 64, 256, 64).astype(np.float32) for _ in range(2))
    found = through(example("quantise"), {"x": x, "y": y}).outputs
    kind = TARGETS["FP8E4M3FN"]
    (a, a_scale), (b, b_scale) = (quantised(each, kind, "floor") for each in (x, y))
    wrong = boxes_of_rows(a_scale).reshape(64, 8)
    numbers = (decoded(a, kind), decoded(b, kind).T)
    units = (kind.unit, kind.unit)
    product = group_by_group(numbers[0], wrong, numbers[1], b_scale.T, unit=units)
    assert np.mean(found["c"] != product) > 0.9


def test_fp4_is_not_made_of_fp32(example: Example) -> None:
    with pytest.raises(InvalidOperationError) as caught:
        example("quantise", {"TARGET": 1})
    assert caught.value.message == (
        "pl operation 'quant_mx': src must be one of BFloat16, Float16 to become E2M1, not Float32"
    )


@pytest.mark.parametrize(("rows", "portion"), [(64, 32), (64, 16), (64, 64), (192, 32)])
@pytest.mark.parametrize("fixpipe", [False, True])
def test_a_layer_in_one_kernel(
    rows: int, portion: int, fixpipe: bool, example: Example, through: Through
) -> None:
    rng = np.random.default_rng(rows)
    x = spread(rng, rows, 256, 64).astype(np.float32)
    w = spread(rng, 64, 256, 40).astype(BF16)
    bias = (rng.standard_normal((1, 64)) * np.exp2(rng.integers(0, 30, (1, 64)))).astype(np.float32)
    made = example("mx_epilogue", {"M": rows, "ROWS": portion, "FIXPIPE": int(fixpipe)})
    (found,) = through(made, {"x": x, "w": w, "bias": bias}).outputs.values()

    kind = TARGETS["FP8E4M3FN"]
    (a, a_scale), (b, b_scale) = (quantised(each, kind, "floor") for each in (x, w))
    start = bias[0] if fixpipe else None
    operands = (decoded(a, kind), a_scale, decoded(b, kind).T, b_scale.T)
    sums = group_by_group(*operands, unit=(kind.unit, kind.unit), start=start)
    sums = sums if fixpipe else sums + bias
    expected = np.maximum(sums, np.float32(0)).astype(BF16)
    assert 0.2 < np.mean(expected == 0) < 0.8
    assert_bits(found, expected)


def test_the_fixpipe_lets_the_vector_core_run_ahead(example: Example) -> None:
    rng = np.random.default_rng(256)
    x, w, bias = (rng.standard_normal((size, 256)) for size in (256, 64, 1))
    inputs = {
        "x": x.astype(np.float32),
        "w": w.astype(BF16),
        "bias": bias[:, :64].astype(np.float32),
    }
    cycles = [
        scalebox.run(example("mx_epilogue", {"M": 256, "FIXPIPE": way}), inputs).cycles
        for way in (0, 1)
    ]
    assert cycles[1] < 0.7 * cycles[0]


def test_fp4_meets_fp8_after_a_cast(example: Example, through: Through) -> None:
    """The data of the published test: all 16 codes of FP4, small integers, scales near 1."""
    rng = np.random.default_rng(30)
    codes = rng.integers(0, 16, (64, 128))
    codes.reshape(-1)[:16] = range(16)
    a = E2M1_VALUES[codes]
    b = rng.integers(-2, 3, (128, 128)).astype(np.float64)
    sa, sb = near_one(rng, 64, 4), near_one(rng, 4, 128)
    inputs = {
        "a": a.astype(ml_dtypes.float4_e2m1fn),
        "a_scale": boxes_of_rows(sa).reshape(64, 4).astype(np.uint8),
        "b": b.astype(E4M3),
        "b_scale": boxes_of_rows(sb.T).reshape(4, 128).astype(np.uint8),
    }
    found = through(example("fp4_cast"), inputs).outputs
    exact = in_float64(a, sa, b, sb)
    assert_bits(found["once"], exact.astype(np.float32))
    assert_bits(found["twice"], (2 * exact).astype(np.float32))


@pytest.mark.parametrize(
    ("rows", "keys", "depth"), [(64, 64, 64), (64, 128, 64), (47, 33, 50), (1, 16, 16)]
)
def test_attention_weights(
    rows: int, keys: int, depth: int, example: Example, through: Through
) -> None:
    """Multiples of 1/32 up to 4: scores are exact in float32."""
    rng = np.random.default_rng(keys)
    q, k = (rng.integers(-127, 128, (size, depth)) / 32 for size in (rows, keys))
    made = example("softmax", {"ROWS": rows, "KEYS": keys, "D": depth})
    (found,) = through(made, {"q": q.astype(BF16), "k": k.astype(BF16)}).outputs.values()

    scores = (q @ k.T).astype(np.float32) * np.float32(depth**-0.5)
    tops = scores.max(axis=1, keepdims=True)
    e = rounded_once(exp_of_difference, scores, tops)
    assert_bits(found, e / row_sums(e))
    assert np.allclose(found.sum(axis=1), 1, rtol=1e-5)


def test_attention_weights_of_scores_that_exp_alone_could_not_take(
    example: Example, through: Through
) -> None:
    rng = np.random.default_rng(7)
    q, k = (100 * rng.standard_normal((64, 64)) for _ in range(2))
    (found,) = through(
        example("softmax"), {"q": q.astype(BF16), "k": k.astype(BF16)}
    ).outputs.values()
    assert np.isfinite(found).all()
    assert (found.max(axis=1) > 0.5).any()


@pytest.mark.parametrize("portion", [16, 32])
def test_layer_norm(portion: int, example: Example, through: Through) -> None:
    rng = np.random.default_rng(512)
    means, sizes = 100 * rng.standard_normal((64, 1)), np.exp2(rng.integers(-20, 20, (64, 1)))
    x = (rng.standard_normal((64, 512)) * sizes + means).astype(np.float32)
    x[9] = 3.0  # no deviation at all
    gain, bias = rng.standard_normal((2, 1, 512)).astype(np.float32)
    made = example("layer_norm", {"ROWS": portion})
    (found,) = through(made, {"x": x, "gain": gain, "bias": bias}).outputs.values()

    share = np.float32(1 / 512)
    centred = x - row_sums(x) * share
    variance = row_sums(centred * centred) * share + np.float32(1e-5)
    factor = rounded_once(reciprocal_root, variance)
    assert_bits(found, centred * factor * gain + bias)
    assert_bits(found[9], bias[0])

    wide = (sizes[:, 0] >= 1) & (np.arange(64) != 9)  # where no sum cancels the numbers away
    near = x[wide].astype(np.float64) - x[wide].mean(1, dtype=np.float64, keepdims=True)
    near /= np.sqrt((near**2).mean(1, keepdims=True) + 1e-5)
    assert np.allclose(found[wide], near * gain + bias, atol=1e-3)
