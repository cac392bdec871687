"""A second opinion for whole tensors of block-scaled dtypes: their product in exact fractions."""

import itertools
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from scalebox.ir import numerics
from scalebox.ir.dtypes import DType

from .conftest import to_float32

VALUES: dict[Any, Any] = {
    DType.E4M3: ml_dtypes.float8_e4m3fn,
    DType.E5M2: ml_dtypes.float8_e5m2,
    DType.E3M2: ml_dtypes.float6_e3m2fn,
    DType.E2M3: ml_dtypes.float6_e2m3fn,
    DType.E2M1: ml_dtypes.float4_e2m1fn,
}
Floats = npt.NDArray[np.float32]
Exact = list[list[tuple[Fraction, Fraction | None]]]


def exact(mx: numerics.MXArray) -> Exact:
    """Return every element and its scale as fractions; a scale of None is NaN."""
    block = 16 if mx.dtype is DType.NVFP4 else 32
    result: Exact = []
    for i in range(mx.shape[0]):
        row: list[tuple[Fraction, Fraction | None]] = []
        for j in range(mx.shape[1]):
            code = mx.elements[i, j : j + 1]
            if mx.dtype is DType.MXINT8:
                element = Fraction(int(code.view(np.int8)[0]), 64)
            else:
                element = Fraction(float(code.view(VALUES[mx.dtype.element])[0]))
            at = (i // block, j) if mx.axis == 0 else (i, j // block)
            stored = int(mx.scales[at])
            if mx.tensor_scale is None:
                scale = None if stored == 255 else Fraction(2) ** (stored - 127)
            else:
                value = float(np.uint8(stored).view(ml_dtypes.float8_e4m3fn))
                factor = Fraction(float(mx.tensor_scale))
                scale = None if np.isnan(value) else Fraction(value) * factor
            row.append((element, scale))
        result.append(row)
    return result


def in_fractions(
    a: numerics.MXArray, b: numerics.MXArray, *, step: int = 0, start: Floats | None = None
) -> Floats:
    """Return the product in fractions, each block rounded once and added in float32 to `start`."""
    step = step or (16 if a.dtype is DType.NVFP4 else 32)
    left: Exact = exact(a)
    right: Exact = exact(b)
    out = np.zeros((a.shape[0], b.shape[1]), np.float32) if start is None else start.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for m, n in itertools.product(*map(range, out.shape)):
            for first in range(0, a.shape[1], step):
                total = Fraction(0)
                for k in range(first, first + step):
                    total += left[m][k][0] * right[k][n][0]
                scales = left[m][first][1], right[first][n][1]
                if scales[0] is None or scales[1] is None:
                    out[m, n] += np.float32(np.nan)
                else:
                    out[m, n] += to_float32(total * scales[0] * scales[1])
    return out
