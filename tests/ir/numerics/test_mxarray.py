import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from scalebox.ir.dtypes import DType
from scalebox.ir.errors import IRTypeError, IRValueError
from scalebox.ir.numerics import MXArray, dequantize


def test_codes_of_ml_dtypes_and_a_negative_axis() -> None:
    elements: Any = np.ones((2, 40), ml_dtypes.float8_e4m3fn)
    scales: Any = np.full((2, 2), 2.0, ml_dtypes.float8_e8m0fnu)
    mx = MXArray(elements, scales, DType.MXFP8_E4M3, -1)
    assert (mx.elements.dtype, mx.scales.dtype, mx.axis) == (np.uint8, np.uint8, 1)
    assert mx.shape == (2, 40)
    assert (dequantize(mx) == 2).all()


def test_plain_numbers_of_scales_are_codes_never_linear() -> None:
    mx = MXArray(np.full(32, 0x38, np.uint8), np.array([1], np.uint8), DType.MXFP8_E4M3, 0)
    assert (dequantize(mx) == 2.0**-126).all()


@pytest.mark.parametrize(
    ("elements", "scales", "dtype", "axis", "tensor_scale", "sentence"),
    [
        ((2, 40), (2, 1), DType.MXFP4, 1, None,
         r"^Scales of MXFP4 elements \[2, 40\] grouped along axis 1 must be \[2, 2\], not \[2, 1\]$"),
        ((2, 40), (2, 2), DType.MXFP4, 2, None,
         r"^The axis must be in -2\.\.1 for an array of rank 2, not 2$"),
        ((16,), (1,), DType.NVFP4, 0, None,
         r"^An array of NVFP4 must have a float32 tensor scale, not None$"),
        ((32,), (1,), DType.MXFP4, 0, 1.0,
         r"^An array of MXFP4 must have no tensor scale, not 1\.0$"),
        ((16,), (1,), DType.NVFP4, 0, np.inf,
         r"^The tensor scale must be finite, not inf$"),
        ((16,), (1,), DType.NVFP4, 0, 1e39,
         r"^The tensor scale must be finite, not 1e\+39$"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together(
    elements: tuple[int, ...],
    scales: tuple[int, ...],
    dtype: Any,
    axis: int,
    tensor_scale: Any,
    sentence: str,
) -> None:
    with pytest.raises(IRValueError, match=sentence):
        MXArray(np.zeros(elements, np.uint8), np.zeros(scales, np.uint8), dtype, axis, tensor_scale)


def test_codes_and_numbers_of_the_wrong_kind() -> None:
    good = np.zeros(32, np.uint8)
    with pytest.raises(IRTypeError, match=r"^Scales of E8M0 must be an array of uint8 codes or of"):
        MXArray(good, np.ones(1), DType.MXFP8_E4M3, 0)  # pyright: ignore[reportArgumentType]
    other: Any = np.zeros(32, ml_dtypes.float8_e5m2)
    with pytest.raises(IRTypeError, match=r"^Elements of E4M3 must be .*, not of float8_e5m2$"):
        MXArray(other, good[:1], DType.MXFP8_E4M3, 0)
    with pytest.raises(
        IRValueError, match=r"^Elements of E2M1 must lie in 0\.\.15, not in 16\.\.16"
    ):
        MXArray(good + np.uint8(16), good[:1], DType.MXFP4, 0)
    wrong: Any = DType.E4M3
    with pytest.raises(IRTypeError, match=r"^The dtype must be a block-scaled format, not E4M3$"):
        MXArray(good, good[:1], wrong, 0)


def test_importing_and_small_arrays_load_no_compiler() -> None:
    script = (
        "import sys, numpy\n"
        "from scalebox.ir import numerics\n"
        "from scalebox.ir.dtypes import DType\n"
        "mx = numerics.quantize(numpy.ones((4, 64)), DType.MXFP8_E4M3)\n"
        "numerics.matmul(mx, numerics.quantize(numpy.ones((64, 4)), DType.MXFP4, axis=0))\n"
        "numerics.decode(mx.elements, DType.E4M3)\n"
        "print('numba' in sys.modules or 'ml_dtypes' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "False"
