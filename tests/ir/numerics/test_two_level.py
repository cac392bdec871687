"""NVFP4: E2M1 elements, one E4M3 scale over 16, one float32 over the tensor."""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalebox.ir import numerics
from scalebox.ir.dtypes import DType
from scalebox.ir.errors import IRValueError
from scalebox.ir.numerics import quantization

from . import oracles

NV = DType.NVFP4


def oracle(x: np.ndarray, saturate: bool = False) -> tuple[np.ndarray, np.ndarray, np.float32]:
    finite = [abs(Fraction(v)) for v in x.reshape(-1).tolist() if math.isfinite(v)]
    amax = max(finite, default=Fraction(0))
    tensor = oracles.float32(amax / (6 * 448)) if amax else np.float32(1)
    tensor = min(max(tensor, np.float32(2.0**-149)), np.finfo(np.float32).max)
    codes = np.zeros(x.shape, np.uint8)
    scales = np.zeros((x.shape[0], -(-x.shape[1] // 16)), np.uint8)
    for row in range(x.shape[0]):
        for group in range(scales.shape[1]):
            cut = slice(16 * group, 16 * group + 16)
            values = x[row, cut].tolist()
            block = [abs(Fraction(v)) for v in values if math.isfinite(v)]
            scale = oracles.nearest(
                max(block, default=Fraction(0)) / (6 * Fraction(float(tensor))), DType.E4M3
            )
            if any(math.isinf(v) for v in values):
                scale = 0x7E if saturate else 0x7F
            if any(math.isnan(v) for v in values):
                scale = 0x7F
            scales[row, group] = scale
            if scale == 0x7F:
                continue
            unit = Fraction(float(oracles.values(DType.E4M3)[scale])) * Fraction(float(tensor))
            for k, value in enumerate(values):
                code = 7
                if unit == 0:
                    code = 0
                elif math.isfinite(value):
                    code = oracles.nearest(abs(Fraction(value)) / unit, DType.E2M1)
                codes[row, 16 * group + k] = code | (8 if math.copysign(1, value) < 0 else 0)
    return codes, scales, tensor


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.integers(1, 50),
    spread=st.sampled_from([0, 5, 40]),
    scale=st.sampled_from([1.0, 1e-40, 1e30, 0.0]),
    kind=st.sampled_from([np.float32, np.float64]),
    saturate=st.booleans(),
    specials=st.booleans(),
)
def test_quantising_agrees_with_the_definition_in_fractions(
    seed: int,
    depth: int,
    spread: int,
    scale: float,
    kind: npt.DTypeLike,
    saturate: bool,
    specials: bool,
) -> None:
    rng = np.random.default_rng(seed)
    spreads = np.exp2(rng.integers(-spread, spread + 1, (3, 1)))
    with np.errstate(over="ignore"):  # what is beyond float32 is drawn as an infinity
        x = np.asarray(rng.standard_normal((3, depth)) * spreads * scale, kind)
    if specials:
        x[0, 0], x[1, -1] = np.inf, np.nan
    codes, scales, tensor = oracle(x, saturate)
    mx = numerics.quantize(x, NV, infinity="saturate" if saturate else "nan")
    assert mx.tensor_scale == tensor
    np.testing.assert_array_equal(mx.scales, scales)
    np.testing.assert_array_equal(mx.elements, codes)
    turned = numerics.quantize(x.T, NV, axis=0, infinity="saturate" if saturate else "nan")
    np.testing.assert_array_equal(turned.elements, codes.T)
    np.testing.assert_array_equal(turned.scales, scales.T)


def test_a_large_tensor_has_one_scale_and_is_quantised_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quantization, "_SMALL_PIECE", 64)
    x = np.random.default_rng(31).standard_normal((7, 90)).astype(np.float32)
    x[6, 89] = -1e6
    codes, scales, tensor = oracle(x)
    for axis, source in ((1, x), (0, x.T), (0, np.ascontiguousarray(x.T))):
        mx = numerics.quantize(source, NV, axis=axis)
        assert mx.tensor_scale == tensor
        np.testing.assert_array_equal(mx.elements, codes if axis else codes.T)
        np.testing.assert_array_equal(mx.scales, scales if axis else scales.T)


def test_the_largest_element_gets_the_largest_codes() -> None:
    x = np.zeros((1, 32), np.float32)
    x[0, 0], x[0, 16] = 2688.0, -6.0
    mx = numerics.quantize(x, NV)
    assert mx.tensor_scale == 1.0
    assert mx.scales.tolist() == [[0x7E, 0x38]]
    assert mx.elements[0, [0, 16]].tolist() == [7, 15]
    np.testing.assert_array_equal(numerics.dequantize(mx), x)


def test_ties_go_to_the_even_code_of_element_and_scale() -> None:
    x = np.zeros((2, 32), np.float32)
    x[0, 0] = 2688.0  # so that the tensor scale is 1
    x[0, 16:24] = [6, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]
    x[0, 24:32] = -x[0, 16:24]
    x[1, 0], x[1, 16] = 6 * 1.0625, 6 * 1.1875  # between 1, 1.125 and 1.25 times 6
    mx = numerics.quantize(x, NV)
    assert mx.tensor_scale == 1.0
    assert mx.scales.tolist() == [[0x7E, 0x38], [0x38, 0x3A]]
    codes = [7, 0, 2, 2, 4, 4, 6, 6]
    assert mx.elements[0, 16:].tolist() == codes + [code | 8 for code in codes]


def test_a_tensor_of_zeros() -> None:
    mx = numerics.quantize(np.zeros((2, 16), np.float32), NV)
    assert mx.tensor_scale == 1.0
    assert not mx.elements.any()
    assert (numerics.dequantize(mx) == 0).all()


def test_dequantising_rounds_the_triple_product_once() -> None:
    rng = np.random.default_rng(30)
    codes = rng.integers(0, 16, (4, 48), dtype=np.uint8)
    scales = rng.integers(0, 127, (4, 3), dtype=np.uint8)
    for tensor in (np.float32(1.1), np.float32(-3e-41), np.float32(3e38)):
        out = numerics.dequantize(numerics.MXArray(codes, scales, NV, 1, tensor))
        expected = [
            [
                Fraction(float(oracles.values(DType.E2M1)[codes[m, k]]))
                * Fraction(float(oracles.values(DType.E4M3)[scales[m, k // 16]]))
                * Fraction(float(tensor))
                for k in range(48)
            ]
            for m in range(4)
        ]
        bits = np.array([[oracles.float32_bits(v) for v in row] for row in expected], np.uint32)
        np.testing.assert_array_equal(np.where(out == 0, 0, out).view(np.uint32), bits)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    depth=st.integers(1, 50),
    tensors=st.tuples(*[st.sampled_from([1.0, 1.1, -0.7, 3e-41, 1e30, 1e-30, 3e38, 0.0])] * 2),
    last_scale=st.sampled_from([127, 128]),
)
def test_the_product_rounds_each_block_once(
    seed: int, depth: int, tensors: tuple[float, float], last_scale: int
) -> None:
    rng = np.random.default_rng(seed)
    groups = -(-depth // 16)
    left, right = np.float32(tensors[0]), np.float32(tensors[1])
    a = numerics.MXArray(
        rng.integers(0, 16, (2, depth), dtype=np.uint8),
        rng.integers(0, last_scale, (2, groups), dtype=np.uint8),
        NV,
        1,
        left,
    )
    b = numerics.MXArray(
        rng.integers(0, 16, (depth, 3), dtype=np.uint8),
        rng.integers(0, last_scale, (groups, 3), dtype=np.uint8),
        NV,
        0,
        right,
    )
    values, scale_values = oracles.values(DType.E2M1), oracles.values(DType.E4M3)
    expected = np.zeros((2, 3), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for m in range(2):
            for n in range(3):
                for g in range(groups):
                    cut = slice(16 * g, 16 * g + 16)
                    pair = (scale_values[a.scales[m, g]], scale_values[b.scales[g, n]])
                    scale = None
                    if not np.isnan(pair).any():
                        scale = Fraction(1)
                        for factor in (*pair, left, right):
                            scale *= Fraction(float(factor))
                    expected[m, n] += oracles.group_term(
                        values[a.elements[m, cut]], values[b.elements[cut, n]], scale
                    )
    bits = expected.view(np.uint32)
    bits[np.isnan(expected)] = 0x7FC00000
    np.testing.assert_array_equal(numerics.matmul(a, b).view(np.uint32), bits)


def test_rules_of_powers_of_two_are_refused() -> None:
    sentence = r"^rule must be left out for NVFP4, whose scales are no powers of two, not 'ceil'$"
    with pytest.raises(IRValueError, match=sentence):
        numerics.quantize(np.zeros(16, np.float32), NV, rule="ceil")
