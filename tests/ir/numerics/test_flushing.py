"""No number depends on whether the processor flushes subnormals, as some libraries leave it."""

import ctypes
import platform
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np
import pytest

from scalebox.ir import numerics
from scalebox.ir.dtypes import BFloat16, BlockScaledDType, DType, Float16, SimpleDType
from scalebox.ir.numerics import codec, fast_codec, quantization

from . import block_oracle, oracles

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the processor's mode is set through the x86-64 layout of fenv_t",
)


@contextmanager
def flushing_subnormals() -> Generator[None]:
    """Let the processor read and write subnormals as zero."""
    libm = ctypes.CDLL("libm.so.6")
    saved, changed = (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
    assert libm.fegetenv(saved) == 0
    changed[:] = saved[:]
    changed[7] |= 0x8040  # MXCSR: flush to zero, denormals are zero
    smallest = np.full(8, 1e-44, np.float32)
    assert libm.fesetenv(changed) == 0
    try:
        assert not (smallest * np.float32(1)).any()
        yield
    finally:
        assert libm.fesetenv(saved) == 0


@pytest.fixture(params=["numpy", "compiled"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of every routine, whatever the size."""
    compiled_from = 0 if request.param == "compiled" else 1 << 60
    monkeypatch.setattr(quantization, "COMPILED_FROM", compiled_from)
    return request.param


def small_numbers() -> np.ndarray:
    """Return rows of 32 whose largest is subnormal, or has a subnormal scale or quotient."""
    rng = np.random.default_rng(40)
    subnormal = rng.integers(0, 1 << 23, (24, 32)) >> rng.integers(0, 23, (24, 1))
    near_normal = (1 << 23) - rng.integers(1, 1 << 16, (8, 32))
    tiny = rng.integers(0, 24 << 23, (24, 32))
    patterns = np.concatenate([subnormal, near_normal, tiny]).astype(np.uint32)
    signs = rng.integers(0, 2, patterns.shape).astype(np.uint32) << np.uint32(31)
    return (patterns | signs).view(np.float32)


@pytest.mark.parametrize("routine", [codec.decode, fast_codec.decode])
def test_e8m0_zero_is_two_to_the_minus_127(
    routine: Callable[[np.ndarray, DType], np.ndarray],
) -> None:
    code = np.zeros(64, np.uint8)
    routine(code, DType.E8M0)
    with flushing_subnormals():
        decoded = routine(code, DType.E8M0)
        from_bits = numerics.encode(decoded, DType.E8M0)
    assert (decoded.view(np.uint32) == 0x00400000).all()
    assert (from_bits == 0).all()


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("rule", block_oracle.RULES)
@pytest.mark.parametrize("dtype", block_oracle.MX_FORMATS, ids=lambda dtype: dtype.name)
def test_quantising_by_every_rule(dtype: BlockScaledDType, rule: str) -> None:
    x = small_numbers()
    codes, scales = block_oracle.quantize_rows(x, dtype, rule)
    numerics.quantize(x, dtype, rule=rule)
    with flushing_subnormals():
        mx = numerics.quantize(x, dtype, rule=rule)
    np.testing.assert_array_equal(mx.scales, scales)
    np.testing.assert_array_equal(mx.elements, codes)


def test_quantising_with_two_levels_of_scales() -> None:
    x = small_numbers()
    x[:24] *= np.float32(0.5)
    for source in (x, x[:24]):
        expected = numerics.quantize(source.astype(np.float64), DType.NVFP4)
        with flushing_subnormals():
            mx = numerics.quantize(source, DType.NVFP4)
            out = numerics.dequantize(mx)
        assert mx.tensor_scale is not None
        assert expected.tensor_scale is not None
        assert mx.tensor_scale.view(np.uint32) == expected.tensor_scale.view(np.uint32)
        np.testing.assert_array_equal(mx.scales, expected.scales)
        np.testing.assert_array_equal(mx.elements, expected.elements)
        np.testing.assert_array_equal(
            out.view(np.uint32), numerics.dequantize(expected).view(np.uint32)
        )


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("dtype", [DType.MXFP8_E4M3, DType.MXFP8_E5M2], ids=lambda d: d.name)
def test_dequantising_keeps_subnormals(dtype: BlockScaledDType) -> None:
    elements = np.tile(np.arange(256, dtype=np.uint8), (24, 1))
    scales = np.repeat(np.arange(24, dtype=np.uint8)[:, None], 8, axis=1)
    values = oracles.values(dtype.element).astype(np.float64)
    with np.errstate(under="ignore"):
        products = np.ldexp(values, np.arange(24)[:, None] - 127).astype(np.float32)
    expected = products.view(np.uint32)
    expected[np.isnan(products)] = 0x7FC00000
    mx = numerics.MXArray(elements, scales, dtype, 1)
    numerics.dequantize(mx)
    with flushing_subnormals():
        out = numerics.dequantize(mx).view(np.uint32)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", [BFloat16, Float16, DType.Float32], ids=lambda d: d.name)
def test_encoding_and_decoding_subnormals(dtype: SimpleDType) -> None:
    codes = np.arange(1, 1 << 15, 7, dtype=np.uint32 if dtype.bits == 32 else np.uint16)
    kind = np.float32 if dtype is DType.Float32 else oracles.NUMPY_TYPES[dtype]
    expected = codes.view(kind).astype(np.float32).view(np.uint32)
    is_number = expected & 0x7FFFFFFF <= 0x7F800000
    with flushing_subnormals():
        decoded = numerics.decode(codes, dtype)
        again = numerics.encode(decoded, dtype)
    np.testing.assert_array_equal(decoded.view(np.uint32)[is_number], expected[is_number])
    np.testing.assert_array_equal(again[is_number], codes[is_number])
