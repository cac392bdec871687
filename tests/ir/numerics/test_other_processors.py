"""The compiled product has the same bits on processors with narrower registers than this one."""

import os
import subprocess
import sys

import pytest

from scalebox.ir.numerics import vectors

PRODUCTS = """
import numba
import numpy as np
from scalebox.ir.dtypes import DType
from scalebox.ir.numerics import fast_matmul, reference, tiled_product, vectors

rng = np.random.default_rng(60)
pairs = [("E4M3", "E4M3"), ("E2M1", "Int8"), ("E5M2", "E5M2"), ("E5M2", "E4M3")]
for left, right in pairs:
    formats = {"a_dtype": getattr(DType, left), "b_dtype": getattr(DType, right)}
    a, b = (
        rng.integers(0, 1 << dtype.bits, shape, dtype=np.uint8)
        for dtype, shape in zip(formats.values(), ((37, 300), (300, 53)))
    )
    if left == "E5M2":
        a, b = (np.where((codes & 0x7F) >= 0x7C, 0, codes).astype(np.uint8) for codes in (a, b))
        a[:, 8:16] = a[:, :8] ^ 0x80
        b[8:16] = b[:8]
    scales = rng.integers(100, 150, (37, 10)).astype(np.uint8)
    b_scales = rng.integers(100, 150, (10, 53)).astype(np.uint8)
    found, expected = (
        matmul(a, scales, b, b_scales, **formats).view(np.uint32)
        for matmul in (fast_matmul.matmul_mx, reference.matmul_mx)
    )
    np.testing.assert_array_equal(found, expected)
counts = [tiled_product._thread_count()]
numba.set_num_threads(2)
print(vectors.register_bits(), vectors.has_fma(), *counts, tiled_product._thread_count())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "features", "expected"),
    [("generic", None, "128 False 3 2"), ("haswell", "+avx,+avx2,+fma,+bmi2", "256 True 3 2")],
)
def test_bits_and_threads_on_another_processor(
    name: str, features: str | None, expected: str
) -> None:
    if features is not None and not {"avx2", "fma", "bmi2"} <= vectors.host_features():
        pytest.skip("this processor cannot run the other's code")
    environment = os.environ | {"NUMBA_CPU_NAME": name, "NUMBA_NUM_THREADS": "3"}
    if features is not None:
        environment["NUMBA_CPU_FEATURES"] = features
    done = subprocess.run(
        [sys.executable, "-c", PRODUCTS],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == expected, done.stderr
