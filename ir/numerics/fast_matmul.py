"""The block-scaled matmul of `reference`, compiled: the same bits, some tens of times sooner.

Group sums are float64. They are exact, hence free of any order of summation, while every partial
sum fits 53 bits; where a pair of formats can exceed that (E5M2 times E5M2 needs 69 bits), each
block of a group is measured first, and what does not fit is summed in two exact halves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numba
import numpy as np

from ..dtypes.boxes import GROUP
from .arguments import matmul_operands
from .elements import Summation
from .tables import integers, scale_table, value_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..dtypes import DType

_ROWS = 4
_FLOAT64_BITS = 53
_GROUP_BITS = 5
# Every element of at most 8 bits is a multiple of 2^-32 and at most 2^16, subnormals of E5M2 and
# its largest number included, so scaled by 2^32 it is an int64.
_FINEST = 2.0**32
_LARGEST = 2.0**16

assert 1 << _GROUP_BITS == GROUP
assert GROUP % 4 == 0, "the inner loop takes four elements at once"


def is_wide(a_dtype: DType, b_dtype: DType) -> bool:
    """Return whether a group sum of the two element formats can exceed float64's 53 bits."""
    largest = [int(np.abs(integers(dtype)).max()) for dtype in (a_dtype, b_dtype)]
    return largest[0] * largest[1] * GROUP >= 1 << _FLOAT64_BITS


def matmul_mx(
    a: npt.ArrayLike,
    a_scales: npt.ArrayLike,
    b: npt.ArrayLike,
    b_scales: npt.ArrayLike,
    *,
    a_dtype: DType,
    b_dtype: DType,
    acc: npt.ArrayLike | None = None,
    bias: npt.ArrayLike | None = None,
    valid_k: int | None = None,
    sum: Summation | str = Summation.GROUP,  # noqa: A002 - the public name of the choice
) -> npt.NDArray[np.float32]:
    """Multiply two block-scaled matrices; the arguments and the bits of `reference.matmul_mx`.

    Args:
        a: Element codes uint8 `[M, K]`, one element a byte.
        a_scales: E8M0 codes uint8 `[M, G]` in logical order.
        b: Element codes uint8 `[K, N]`.
        b_scales: E8M0 codes uint8 `[G, N]`.
        a_dtype: Element format of `a`, at most 8 bits wide.
        b_dtype: Element format of `b`.
        acc: float32 `[M, N]` to start from; +0 without.
        bias: float32 `[1, N]` to start every row from.
        valid_k: Elements along K that take part, 1..K; all by default.
        sum: `"group"` or `"sequential"`.

    Returns:
        float32 `[M, N]`; every NaN is 0x7FC00000.

    Raises:
        IRTypeError: Codes, scales, accumulator or bias of the wrong type.
        IRValueError: Shapes that do not fit together, a valid K outside 1..K, or an unknown `sum`.
    """
    order = Summation.of(sum)
    operands = matmul_operands(
        a,
        a_scales,
        b,
        b_scales,
        a_dtype=a_dtype,
        b_dtype=b_dtype,
        acc=acc,
        bias=bias,
        valid_k=valid_k,
    )
    matmul_mx_tile(
        operands.a,
        operands.a_scales,
        operands.b,
        operands.b_scales,
        operands.start,
        value_table(a_dtype),
        value_table(b_dtype),
        scale_table(),
        is_wide(a_dtype, b_dtype),
        order is Summation.SEQUENTIAL,
    )
    return operands.start


@numba.njit(cache=True)
def matmul_mx_tile(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    acc: npt.NDArray[np.float32],
    a_values: npt.NDArray[np.float64],
    b_values: npt.NDArray[np.float64],
    scale_values: npt.NDArray[np.float64],
    wide: bool,
    sequential: bool,
) -> None:
    """Add the product of two block-scaled tiles to `acc` in place; callable from compiled code.

    Args:
        a: Element codes `[M, K]`, one a byte, K being the valid K.
        a_scales: E8M0 codes `[M, G]`; at least ceil(K / 32) columns, the others are never read.
        b: Element codes `[K, N]`.
        b_scales: E8M0 codes `[G, N]`.
        acc: float32 `[M, N]`, what the accumulator starts from and where it ends; its NaNs leave
            as 0x7FC00000.
        a_values: `tables.value_table` of A's element format, `[256]`.
        b_values: `tables.value_table` of B's element format, `[256]`.
        scale_values: `tables.scale_table()`, `[256]`.
        wide: `is_wide` of the two formats.
        sequential: Round and add each product for itself, k ascending, instead of group by group.
    """
    if sequential:
        _sequential(a, a_scales, b, b_scales, acc, a_values, b_values, scale_values)
    else:
        _grouped(a, a_scales, b, b_scales, acc, a_values, b_values, scale_values, wide)
    rows, columns = acc.shape
    for m in range(rows):
        for n in range(columns):
            if np.isnan(acc[m, n]):
                acc[m, n] = np.float32(np.nan)


@numba.njit(cache=True)
def _sequential(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    acc: npt.NDArray[np.float32],
    a_values: npt.NDArray[np.float64],
    b_values: npt.NDArray[np.float64],
    scale_values: npt.NDArray[np.float64],
) -> None:
    rows, depth = a.shape
    columns = b.shape[1]
    for m in range(rows):
        for k in range(depth):
            value = a_values[a[m, k]]
            scale = scale_values[a_scales[m, k // GROUP]]
            for n in range(columns):
                product = value * b_values[b[k, n]] + 0.0  # an exact zero is +0
                both = scale * scale_values[b_scales[k // GROUP, n]]
                acc[m, n] += np.float32(product * both)


@numba.njit(cache=True)
def _grouped(
    a: npt.NDArray[np.uint8],
    a_scales: npt.NDArray[np.uint8],
    b: npt.NDArray[np.uint8],
    b_scales: npt.NDArray[np.uint8],
    acc: npt.NDArray[np.float32],
    a_values: npt.NDArray[np.float64],
    b_values: npt.NDArray[np.float64],
    scale_values: npt.NDArray[np.float64],
    wide: bool,
) -> None:
    rows, depth = a.shape
    columns = b.shape[1]
    groups = (depth + GROUP - 1) // GROUP
    # Zeros fill the last group and the last block of rows, so that the inner loop has no ends.
    left = np.zeros(((rows + _ROWS - 1) // _ROWS * _ROWS, GROUP))
    right = np.zeros((GROUP, columns))
    right_scale = np.empty(columns)
    total = np.empty((_ROWS, columns))
    small = np.empty((_ROWS, columns))
    for g in range(groups):
        first = g * GROUP
        count = min(GROUP, depth - first)
        if count < GROUP:
            left[:, count:] = 0.0
            right[count:] = 0.0
        for m in range(rows):
            for k in range(count):
                left[m, k] = a_values[a[m, first + k]]
        for k in range(count):
            for n in range(columns):
                right[k, n] = b_values[b[first + k, n]]
        for n in range(columns):
            right_scale[n] = scale_values[b_scales[g, n]]
        right_span = _span(right) if wide else 0
        for m in range(0, rows, _ROWS):
            block = left[m : m + _ROWS]
            if wide and _span(block) + right_span + _GROUP_BITS > _FLOAT64_BITS:
                _sum_halves(block, right, total, small)
            else:
                _sum_exact(block, right, total)
            for i in range(min(_ROWS, rows - m)):
                scale = scale_values[a_scales[m + i, g]]
                out = acc[m + i]
                term = total[i]
                for n in range(columns):
                    out[n] += np.float32(term[n] * (scale * right_scale[n]))


@numba.njit(cache=True)
def _sum_exact(
    left: npt.NDArray[np.float64], right: npt.NDArray[np.float64], total: npt.NDArray[np.float64]
) -> None:
    """Put the products of four rows with every column into `total`; each partial sum is exact."""
    columns = right.shape[1]
    t0, t1, t2, t3 = total[0], total[1], total[2], total[3]
    total[:] = 0.0
    for k in range(0, GROUP, 4):
        r0, r1, r2, r3 = right[k], right[k + 1], right[k + 2], right[k + 3]
        a00, a01, a02, a03 = left[0, k], left[0, k + 1], left[0, k + 2], left[0, k + 3]
        a10, a11, a12, a13 = left[1, k], left[1, k + 1], left[1, k + 2], left[1, k + 3]
        a20, a21, a22, a23 = left[2, k], left[2, k + 1], left[2, k + 2], left[2, k + 3]
        a30, a31, a32, a33 = left[3, k], left[3, k + 1], left[3, k + 2], left[3, k + 3]
        for n in range(columns):
            b0, b1, b2, b3 = r0[n], r1[n], r2[n], r3[n]
            t0[n] += a00 * b0 + a01 * b1 + (a02 * b2 + a03 * b3)
            t1[n] += a10 * b0 + a11 * b1 + (a12 * b2 + a13 * b3)
            t2[n] += a20 * b0 + a21 * b1 + (a22 * b2 + a23 * b3)
            t3[n] += a30 * b0 + a31 * b1 + (a32 * b2 + a33 * b3)


@numba.njit(cache=True)
def _sum_halves(
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    total: npt.NDArray[np.float64],
    small: npt.NDArray[np.float64],
) -> None:
    """Do the same where 53 bits are too few: products below 1 apart, then both rounded to odd.

    A product has at most 16 significant bits, so either half is exact. Rounding to odd keeps the
    one later rounding to float32 right: a set last bit stands for "and a little more".
    """
    columns = right.shape[1]
    bits = total.view(np.int64)
    total[:] = 0.0
    small[:] = 0.0
    for i in range(_ROWS):
        high, low, pattern = total[i], small[i], bits[i]
        for k in range(0, GROUP, 2):
            a0, a1 = left[i, k], left[i, k + 1]
            r0, r1 = right[k], right[k + 1]
            for n in range(columns):
                p0, p1 = a0 * r0[n], a1 * r1[n]
                big0, big1 = abs(p0) >= 1.0, abs(p1) >= 1.0
                high[n] += (p0 if big0 else 0.0) + (p1 if big1 else 0.0)
                low[n] += (0.0 if big0 else p0) + (0.0 if big1 else p1)
        for n in range(columns):
            upper, lower = high[n], low[n]
            whole = upper + lower
            part = whole - upper
            error = (upper - (whole - part)) + (lower - part)
            high[n] = whole
            if abs(error) > 0.0 and not pattern[n] & 1:
                pattern[n] += 1 if (error > 0.0) == (whole > 0.0) else -1


@numba.njit(cache=True)
def _span(values: npt.NDArray[np.float64]) -> int:
    """Return how many bits lie between the highest and the lowest set bit of all finite values."""
    used = np.int64(0)
    for value in values.reshape(-1):
        finite = value if abs(value) <= _LARGEST else 0.0
        used |= np.int64(abs(finite) * _FINEST)
    span = 0
    while used and not used & 1:
        used >>= 1
    while used:
        used >>= 1
        span += 1
    return span
