import ml_dtypes
import numpy as np

from scalebox.ir.numerics.convert import (
    canonical_float32,
    float32_to_bfloat16,
    float32_to_float16,
)


def sources() -> np.ndarray:
    rng = np.random.default_rng(50)
    patterns = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32)
    near_half = (rng.integers(0, 1 << 16, 50_000) << 13).astype(np.uint32)  # Float16 and its ties
    near_half = near_half + np.uint32(0x38000000 >> 1) + (near_half & 1)
    return np.concatenate([patterns, near_half]).view(np.float32)


def test_float16_rounds_to_even_and_overflows_to_infinity() -> None:
    x = sources()
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16).view(np.uint16)
    expected[np.isnan(x)] = 0x7E00
    np.testing.assert_array_equal(float32_to_float16(x), expected)
    by_hand = np.array([65519.0, 65520.0, -65520.0, 2.0**-25, 1 + 2.0**-11], np.float32)
    np.testing.assert_array_equal(
        float32_to_float16(by_hand), [0x7BFF, 0x7C00, 0xFC00, 0x0000, 0x3C00]
    )


def test_bfloat16_rounds_to_even_and_overflows_to_infinity() -> None:
    x = sources()
    with np.errstate(invalid="ignore"):
        expected = x.astype(ml_dtypes.bfloat16).view(np.uint16)
    expected[np.isnan(x)] = 0x7FC0
    np.testing.assert_array_equal(float32_to_bfloat16(x), expected)
    by_hand = np.array([0x7F7FFFFF, 0xFF7FFFFF, 0x3F808000, 0x3F818000, 0x3F808001], np.uint32)
    np.testing.assert_array_equal(
        float32_to_bfloat16(by_hand.view(np.float32)), [0x7F80, 0xFF80, 0x3F80, 0x3F82, 0x3F81]
    )


def test_the_shape_is_kept() -> None:
    x = np.ones((3, 4), np.float32)
    assert float32_to_float16(x.T).shape == float32_to_bfloat16(x.T).shape == (4, 3)


def test_one_nan() -> None:
    x = np.array([0x7F800001, 0xFFFFFFFF, 0x80000000], np.uint32).view(np.float32)
    bits = canonical_float32(x).view(np.uint32)
    np.testing.assert_array_equal(bits, [0x7FC00000, 0x7FC00000, 0x80000000])
