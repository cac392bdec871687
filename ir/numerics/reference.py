"""The meaning of every number in plain numpy; here the block-scaled matmul.

Written to be read beside the rules, and fast enough for the interpreter; the compiled twins in the
`fast_` files are held to it bit for bit.

A group sum is exact because it is formed from integers: an element is an integer in its format's
unit, a scale a power of two that a whole group shares, and a sum of 32 products fits two float64
halves even for E5M2 times E5M2 (69 bits). What a format with larger groups adds up beyond that is
summed in Python's own integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import DType
from ..dtypes.boxes import GROUP
from .arguments import MatmulOperands, matmul_operands
from .codec import decode, encode
from .elements import FLOAT32_NAN, Summation, block_exponent, element_of, unit_exponent
from .tables import integers, scale_table, significands, value_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

__all__ = [
    "blocks",
    "decode",
    "encode",
    "matmul_mx",
    "round_integers",
    "round_pair",
    "to_odd",
    "two_sum",
]

_LOW_BITS = 16
_FLOAT64_BITS = 53
_NARROW_BITS = 52
_BLOCK_COLUMNS = 128
_BLOCK_PRODUCTS = 1 << 18


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
    group: int = GROUP,
) -> npt.NDArray[np.float32]:
    """Multiply two block-scaled matrices, bit for bit as the machine's cube does.

    For each group along K the sum of products is exact, is scaled by both scales and rounded
    once to float32 (nearest even), and is added to the float32 accumulator, groups ascending. With
    `sum="sequential"` every element is a group of its own.

    Args:
        a: Element codes uint8 `[M, K]`, one element a byte.
        a_scales: E8M0 codes uint8 `[M, G]` in logical order; columns beyond the valid K's groups
            are never read.
        b: Element codes uint8 `[K, N]`.
        b_scales: E8M0 codes uint8 `[G, N]`.
        a_dtype: Element format of `a`, at most 8 bits wide; Int8 counts in units of 2^-6.
        b_dtype: Element format of `b`.
        acc: float32 `[M, N]` to start from; +0 without.
        bias: float32 `[1, N]` to start every row from.
        valid_k: Elements along K that take part, 1..K; all by default.
        sum: `"group"` or `"sequential"`.
        group: Elements along K that share one scale; the machine's cube has 32.

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
        group=group,
    )
    out = operands.start
    with np.errstate(over="ignore", invalid="ignore"):
        match order:
            case Summation.GROUP:
                _add_groups(out, operands, a_dtype, b_dtype, group)
            case Summation.SEQUENTIAL:
                _add_elements(out, operands, a_dtype, b_dtype, group)
    out.view(np.uint32)[np.isnan(out)] = FLOAT32_NAN
    return out


def round_pair(
    high: npt.NDArray[np.int64],
    low: npt.NDArray[np.int64],
    *,
    low_bits: int,
    exponent: npt.NDArray[np.int64],
) -> npt.NDArray[np.float32]:
    """Round `(high * 2^low_bits + low) * 2^exponent` once to float32, nearest even.

    Args:
        high: Upper parts, magnitude below 2^53 after the carry out of `low`.
        low: Lower parts, any int64.
        low_bits: Weight of `high`, at most 24.
        exponent: Power of two, -900..900.

    Returns:
        float32; subnormals are kept, overflow is infinity, an exact zero is +0 and a negative
        value that underflows is -0.
    """
    carry = low >> low_bits
    high = high + carry
    low = low - (carry << low_bits)
    fits = np.abs(high) < 1 << (_FLOAT64_BITS - 1 - low_bits)
    # Rounding to odd: a set last bit stands for "and a little more", which the one rounding
    # below, at least two bits coarser, cannot mistake for a tie.
    whole = np.where(fits, (high << low_bits) + low, high | (low != 0))
    shift = np.where(fits, exponent, exponent + low_bits)
    return np.ldexp(whole.astype(np.float64), shift).astype(np.float32)


def round_integers(
    values: npt.NDArray[np.object_], exponent: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Round `values * 2^exponent` once to float32, as :func:`round_pair` does.

    Args:
        values: Python integers of any size.
        exponent: Power of two of each, -900..900 once the bits beyond 52 of its value are added.
    """
    kept, excess = np.frompyfunc(_narrowed, 1, 2)(values)
    whole = np.asarray(kept, np.int64)
    more = np.asarray(excess, np.int64)
    return round_pair(whole, np.zeros_like(whole), low_bits=0, exponent=exponent + more)


def _narrowed(value: int) -> tuple[int, int]:
    """Return at most 52 bits of `value`, rounded to odd, and how many more it had."""
    magnitude = abs(value)
    excess = max(0, magnitude.bit_length() - _NARROW_BITS)
    rest = magnitude & ((1 << excess) - 1)
    kept = magnitude >> excess | (rest != 0)
    return -kept if value < 0 else kept, excess


def _add_groups(
    out: npt.NDArray[np.float32],
    operands: MatmulOperands,
    a_dtype: DType,
    b_dtype: DType,
    size: int,
) -> None:
    left = _Side(a_dtype, operands.a, operands.a_scales, size=size, axis=1)
    right = _Side(b_dtype, operands.b, operands.b_scales, size=size, axis=0)
    add_up = _group_sums(left, right, size)
    depth = operands.a.shape[1]
    for rows, columns in blocks(out.shape[0], out.shape[1], size):
        for first in range(0, depth, size):
            cut = slice(first, min(first + size, depth))
            term = add_up(rows, cut, columns)
            a, b = left.value[rows, cut], right.value[cut, columns]
            if left.has_special[first // size] or right.has_special[first // size]:
                _put_specials(term, a, b)
            out[rows, columns] += term


def _group_sums(
    left: _Side, right: _Side, size: int
) -> Callable[[slice, slice, slice], npt.NDArray[np.float32]]:
    """Return what rounds the exact scaled sum of some rows, cut along K and columns to float32."""
    if left.largest * right.largest * size < 1 << _FLOAT64_BITS:
        a, b = left.scaled(), right.scaled()

        def add_up(rows: slice, cut: slice, columns: slice) -> npt.NDArray[np.float32]:
            term = a[rows, cut] @ b[cut, columns]
            return (term + 0.0).astype(np.float32)  # an exact zero is +0, whatever the signs

        return add_up
    half = max(1 << _LOW_BITS, (right.largest >> _LOW_BITS) + 1)
    if left.largest * half * size >= 1 << _FLOAT64_BITS:
        return _wide_sums(left, right, size)
    a = left.scaled()
    upper, lower = right.scaled(right.table >> _LOW_BITS << _LOW_BITS), right.scaled(_low(right))

    def add_halves(rows: slice, cut: slice, columns: slice) -> npt.NDArray[np.float32]:
        part = a[rows, cut]
        total, rest = two_sum(part @ upper[cut, columns], part @ lower[cut, columns])
        lossy = rest != 0
        if lossy.any():
            total[lossy] = to_odd(total[lossy], rest[lossy])
        return (total + 0.0).astype(np.float32)

    return add_halves


def _low(side: _Side) -> npt.NDArray[np.int64]:
    return side.table & ((1 << _LOW_BITS) - 1)


def _wide_sums(
    left: _Side, right: _Side, size: int
) -> Callable[[slice, slice, slice], npt.NDArray[np.float32]]:
    _, exponents = significands(DType.E8M0)
    a, b = (side.table[side.codes].astype(object) for side in (left, right))
    unit = left.unit + right.unit

    def add_up(rows: slice, cut: slice, columns: slice) -> npt.NDArray[np.float32]:
        group = cut.start // size
        exponent = (
            exponents[left.scales[rows, group, None]] + exponents[right.scales[group, columns]]
        )
        return round_integers(a[rows, cut] @ b[cut, columns], exponent + unit)

    return add_up


def blocks(rows: int, columns: int, depth: int) -> Iterator[tuple[slice, slice]]:
    """Yield parts of the output for which a product of `depth` is too small for threads of BLAS.

    They would wait for each other longer than they multiply, above all on a machine with other work.
    """
    wide = max(1, min(columns, _BLOCK_COLUMNS))
    high = max(1, _BLOCK_PRODUCTS // (wide * depth))
    for row in range(0, rows, high):
        for column in range(0, columns, wide):
            yield slice(row, row + high), slice(column, column + wide)


def _add_elements(
    out: npt.NDArray[np.float32],
    operands: MatmulOperands,
    a_dtype: DType,
    b_dtype: DType,
    size: int,
) -> None:
    left = value_table(a_dtype)[operands.a]
    right = value_table(b_dtype)[operands.b]
    scale = scale_table()
    for k in range(operands.a.shape[1]):
        product = left[:, k, None] * right[k] + 0.0  # an exact zero is +0, whatever the signs
        both = scale[operands.a_scales[:, k // size, None]] * scale[operands.b_scales[k // size]]
        out += (product * both).astype(np.float32)


class _Side:
    """One operand in the forms that a group sum needs; scales go along `axis`, one for `size` codes."""

    def __init__(
        self,
        dtype: DType,
        codes: npt.NDArray[np.uint8],
        scales: npt.NDArray[np.uint8],
        *,
        size: int,
        axis: int,
    ) -> None:
        element = element_of(dtype)
        self.codes = codes
        self.scales = scales
        self.unit = unit_exponent(element) + block_exponent(element)
        self.table = integers(dtype)
        self.largest = int(np.abs(self.table).max())
        spread = np.repeat(scale_table()[scales], size, axis=axis)
        self._scale = spread[: codes.shape[0], : codes.shape[1]]
        self.value = value_table(dtype)[codes] * self._scale
        is_special = (~np.isfinite(self.value)).any(axis=1 - axis)
        starts: npt.NDArray[np.int64] = np.arange(0, codes.shape[axis], size, dtype=np.int64)
        self.has_special = np.logical_or.reduceat(is_special, starts)

    def scaled(self, table: npt.NDArray[np.int64] | None = None) -> npt.NDArray[np.float64]:
        """Return the finite values times their scales; `table` has integers in the place of all.

        A scale is a power of two that all products of a group have in common, so that their sum is
        as exact as one of integers. What is special counts as 0.
        """
        worth = np.ldexp((self.table if table is None else table).astype(np.float64), self.unit)
        return worth[self.codes] * self._scale


def two_sum(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return a sum rounded to float64, and exactly what the rounding left out (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def to_odd(
    total: npt.NDArray[np.float64], rest: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return what stands for `total + rest`, where `total` is that sum rounded to float64.

    Of the two float64 numbers around the sum it is the odd one: it tells the float32 rounding that
    the sum is no tie.
    """
    odd = (total.view(np.int64) & 1) != 0
    beside = np.nextafter(total, np.where(rest > 0, np.inf, -np.inf))
    return np.where((rest == 0) | odd, total, beside)


def _put_specials(
    term: npt.NDArray[np.float32], a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]
) -> None:
    """Overwrite the sums that a NaN or an infinity among their products decides, as IEEE does.

    How often a product is +inf, -inf or NaN is itself a matrix product of indicators.
    """
    positive = _count(a == np.inf, b > 0) + _count(a > 0, b == np.inf)
    positive += _count(a == -np.inf, b < 0) + _count(a < 0, b == -np.inf)
    negative = _count(a == np.inf, b < 0) + _count(a < 0, b == np.inf)
    negative += _count(a == -np.inf, b > 0) + _count(a > 0, b == -np.inf)
    invalid = _count(np.isinf(a), b == 0) + _count(a == 0, np.isinf(b))
    nan = np.isnan(a).any(axis=1, keepdims=True) | np.isnan(b).any(axis=0, keepdims=True)
    term[positive > 0] = np.inf
    term[negative > 0] = -np.inf
    term[nan | (invalid > 0) | ((positive > 0) & (negative > 0))] = np.nan


def _count(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return a.astype(np.float64) @ b.astype(np.float64)
