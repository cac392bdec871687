"""Kernels that load a tile of counted codes as `t`, do something with it and store it."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from scalebox.ir.core import Program

from .vector_kernels import agreed, kernel

Array = npt.NDArray[Any]

KINDS: dict[str, Any] = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT16": np.int16,
    "INT32": np.int32,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FP4": ml_dtypes.float4_e2m1fn,
}


def counted(kind: str, rows: int, cols: int) -> Array:
    """Return codes that differ from one another as far as there are enough."""
    dtype = np.dtype(KINDS[kind])
    codes = np.arange(rows * cols).reshape(rows, cols)
    if kind == "FP4":
        return ((codes * 7 + codes // 16) % 16).astype(np.uint8).view(dtype)
    return (codes * 5 % 251).astype(f"u{dtype.itemsize}").view(dtype)


def program(lines: list[str], shape: list[int], *, kind: str = "FP32") -> Program:
    """Return a kernel of x and y [32, 64] that has x as the tile `t`, and stores into `out`."""
    return kernel(
        {"x": f"[[32, 64], pl.{kind}]", "y": f"[[32, 64], pl.{kind}]"},
        ["t = pl.load(x, [0, 0], [32, 64], target_memory=pl.Mem.Vec)", *lines],
        f"[{shape}, pl.{kind}]",
    )


def run(made: Program, kind: str = "FP32") -> tuple[Array, Array]:
    """Return what comes out, and x; y is x with its rows in the other order."""
    x = counted(kind, 32, 64)
    y = np.ascontiguousarray(x[::-1])
    return agreed(made, {"x": x, "y": y}), x


def assert_same_codes(found: Array, wanted: Array) -> None:
    """Compare element by element by the codes, so that NaNs and zeros must be the same too."""
    codes = np.dtype(f"u{wanted.dtype.itemsize}")
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.view(codes), np.ascontiguousarray(wanted).view(codes))
