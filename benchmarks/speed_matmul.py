"""The block-scaled matmul beside OpenBLAS, and beside a simulator that does one product at a time.

Every figure is a ratio of two times from this one run, whose tries take turns. OpenBLAS multiplies
plain matrices of the same size: float64 where a group's sum of exact products needs more than
float32 has, float32 for formats whose sums fit. Both sides take as many threads as they like.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from rows import Row, Times, interleaved

from scalebox.ir import numerics
from scalebox.ir.dtypes import E1M2, BlockScaledDType, DType, Level

SIZE = 2048
TRIES = 5
REST_SECONDS = 0.1
GROUP = 32

E4M3_TARGET, E4M3_STRETCH = 0.75, 0.9
FLOAT32_TARGET = 0.7
E5M2_TARGET = 0.3
NAIVE_TARGET = 20.0
NAIVE_SIZE = 512
PUBLIC_SIMULATOR = "0.1 to 0.18 GMAC/s"

# The machine multiplies E1M2 with scales, but no block-scaled dtype of that name is built in.
MXFP4_E1M2 = BlockScaledDType("MXFP4_E1M2", element=E1M2, levels=(Level(DType.E8M0, GROUP),))
IN_FLOAT32: dict[str, BlockScaledDType] = {
    "E2M1": DType.MXFP4,
    "E1M2": MXFP4_E1M2,
    "E3M2": DType.MXFP6_E3M2,
    "E2M3": DType.MXFP6_E2M3,
    "INT8": DType.MXINT8,
}

Operands = tuple[numerics.MXArray, numerics.MXArray]
Float = type[np.float32] | type[np.float64]


def normal_operands(dtype: BlockScaledDType, size: int) -> Operands:
    """Return two square matrices of normal numbers, quantised along K."""
    left, right = np.random.default_rng(0).standard_normal((2, size, size), dtype=np.float32)
    return numerics.quantize(left, dtype, axis=1), numerics.quantize(right, dtype, axis=0)


def random_e5m2(size: int) -> Operands:
    """Return two square matrices of E5M2 whose finite codes are equally likely.

    Exponents of a group then spread over the whole format, which normal numbers never do.
    """
    rng = np.random.default_rng(1)
    finite = np.array([code for code in range(256) if code & 0x7C != 0x7C], np.uint8)
    codes = finite[rng.integers(0, len(finite), (2, size, size))]
    scales = rng.integers(120, 135, (2, size, size // GROUP), dtype=np.uint8)
    return (
        numerics.MXArray(codes[0], scales[0], DType.MXFP8_E5M2, 1),
        numerics.MXArray(codes[1], scales[1].T.copy(), DType.MXFP8_E5M2, 0),
    )


def openblas(size: int, dtype: Float) -> Callable[[], object]:
    """Return the work of numpy's matmul of two square matrices of normal numbers."""
    left, right = np.random.default_rng(0).standard_normal((2, size, size)).astype(dtype)
    product = np.empty((size, size), dtype)
    return lambda: np.matmul(left, right, out=product)


def share_row(
    name: str,
    operands: Operands,
    dtype: Float,
    *,
    target: float,
    tries: int = TRIES,
    **beside: float,
) -> Row:
    """Return the row of a matmul's rate as a share of that of OpenBLAS."""
    a, b = operands
    size = a.shape[0]
    ours, theirs = interleaved(
        lambda: numerics.matmul(a, b), openblas(size, dtype), tries=tries, rest=REST_SECONDS
    )
    width = np.dtype(dtype).name
    return ours.against(
        theirs,
        f"matmul {name}, {size}^3",
        unit=f"x {width}",
        target=target,
        gmac_per_s=size**3 / ours.best / 1e9,
        openblas=size**3 / theirs.best / 1e9,
        **beside,
    )


def matmul_rows(*, size: int = SIZE, tries: int = TRIES) -> list[Row]:
    """Measure every kind of operand against OpenBLAS."""
    e4m3 = normal_operands(DType.MXFP8_E4M3, size)
    e5m2 = normal_operands(DType.MXFP8_E5M2, size)
    return [
        share_row("E4M3", e4m3, np.float64, target=E4M3_TARGET, tries=tries, stretch=E4M3_STRETCH),
        *(
            share_row(
                name, normal_operands(dtype, size), np.float32, target=FLOAT32_TARGET, tries=tries
            )
            for name, dtype in IN_FLOAT32.items()
        ),
        share_row("E5M2", e5m2, np.float64, target=E5M2_TARGET, tries=tries),
        share_row("E5M2 random", random_e5m2(size), np.float64, target=E5M2_TARGET, tries=tries),
    ]


@numba.njit(cache=True)
def naive_matmul(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    element: npt.NDArray[np.float64],
    scale: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Multiply as one would write it down: decode two elements, scale both, multiply and add.

    Args:
        a: Element codes `[M, K]`.
        a_scales: Scale codes `[M, K / 32]`.
        b: Element codes `[K, N]`.
        b_scales: Scale codes `[K / 32, N]`.
        element: What each element code is worth, `[256]`.
        scale: What each scale code is worth, `[256]`.

    Returns:
        The product, `[M, N]`, summed in float64 with k ascending.
    """
    rows, depth = a.shape
    columns = b.shape[1]
    product = np.empty((rows, columns))
    for m in range(rows):
        for n in range(columns):
            total = 0.0
            for k in range(depth):
                left = element[a[m, k]] * scale[a_scales[m, k // 32]]
                right = element[b[k, n]] * scale[b_scales[k // 32, n]]
                total += left * right
            product[m, n] = total
    return product


def naive_work(operands: Operands) -> Callable[[], npt.NDArray[np.float64]]:
    """Return the work of the naive matmul of two operands of one dtype."""
    a, b = operands
    codes = np.arange(256, dtype=np.uint8)
    element: Any = numerics.decode(codes, a.dtype.element).astype(np.float64)
    scale: Any = numerics.decode(codes, DType.E8M0).astype(np.float64)
    return lambda: naive_matmul(a.elements, a.scales, b.elements, b.scales, element, scale)


def naive_times(size: int, *, tries: int = TRIES) -> Times:
    """Return the times of the naive matmul of `size` cubed."""
    return Times.of(naive_work(normal_operands(DType.MXFP8_E4M3, size)), tries=tries)


def naive_row(*, size: int = SIZE, naive_size: int = NAIVE_SIZE, tries: int = TRIES) -> Row:
    """Measure the matmul against the naive one, which does a smaller size, as it takes so long."""
    operands, small = (normal_operands(DType.MXFP8_E4M3, each) for each in (size, naive_size))
    naive = naive_work(small)
    agrees = np.allclose(naive(), numerics.matmul(*small), rtol=1e-3, atol=1e-2)
    ours, theirs = interleaved(lambda: numerics.matmul(*operands), naive, tries=tries)
    return Row(
        name=f"E4M3 {size}^3, naive {naive_size}^3",
        unit="x naive",
        target=NAIVE_TARGET,
        figure=mac_rate(size, ours) / mac_rate(naive_size, theirs),
        beside={
            "spread": max(ours.spread, theirs.spread),
            "gmac_per_s": mac_rate(size, ours),
            "naive": mac_rate(naive_size, theirs),
            "public": PUBLIC_SIMULATOR,
            "agrees": str(agrees).lower(),
        },
    )


def mac_rate(size: int, taken: Times) -> float:
    """Return the GMAC/s of a matmul of `size` cubed."""
    return size**3 / taken.best / 1e9
