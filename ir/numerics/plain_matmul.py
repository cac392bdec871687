"""The matmul without scales, bit for bit as the machine's cube does it.

The products of one K step of the cube are added exactly and rounded once to float32; the steps are added
to a float32 accumulator in ascending order. Integers are added in 32 bits and wrap.

A step is multiplied in float64 with a bound of its error. Where all that lies within the bound rounds to one
float32, that is the result; the few other sums are formed exactly, product by product.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dtypes import BFloat16, DType, Float16
from ..errors import IRTypeError, IRValueError
from .codec import decode
from .convert import canonical_float32
from .elements import Summation
from .reference import blocks, round_integers, to_odd, two_sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..dtypes import SimpleDType

    Codes = npt.NDArray[np.unsignedinteger[Any]]
    Doubles = npt.NDArray[np.float64]
    Floats = npt.NDArray[np.float32]

K_STEP: Mapping[DType, int] = {
    Float16: 16,
    BFloat16: 16,
    DType.Float32: 8,
    DType.E4M3: 32,
    DType.E5M2: 32,
    DType.Int8: 32,
}
"""How many elements along K the cube takes in a step: 32 bytes of each dtype that it multiplies."""

PAIRS: tuple[tuple[DType, ...], ...] = (
    (Float16,),
    (BFloat16,),
    (DType.Float32,),
    (DType.E4M3, DType.E5M2),
    (DType.Int8,),
)
"""The dtypes that the cube multiplies with each other; a pair takes both from one set."""

_INTEGER_STEP = 32
_SEQUENTIAL_BLOCK = 16
"""The depth of product for which blocks are cut that have no product, so that they stay in the caches."""
_FLOAT32_BITS, _FLOAT64_BITS = 24, 53
_ERROR = 2.0 ** (1 - _FLOAT64_BITS)
_EXACT_SUMS = 2.0 ** (_FLOAT64_BITS - 1)
"""So many units a sum of their multiples may reach, and still be exact in float64 in any order."""


def check_pair(lhs: DType, rhs: DType) -> None:
    """Refuse two dtypes that the cube does not multiply with each other.

    Raises:
        IRTypeError: With the sets that there are.
    """
    if any(lhs in each and rhs in each for each in PAIRS):
        return
    sets = ", ".join(f"{{{', '.join(dtype.name for dtype in each)}}}" for each in PAIRS)
    message = f"lhs and rhs must be both from one of {sets}, not {lhs.name} and {rhs.name}"
    raise IRTypeError(message)


def result_dtype(dtype: DType) -> SimpleDType:
    """Return the dtype of the accumulator for operands of `dtype`."""
    return DType.Int32 if dtype is DType.Int8 else DType.Float32


def matmul_plain(
    a: Codes,
    b: Codes,
    *,
    a_dtype: SimpleDType,
    b_dtype: SimpleDType,
    start: Codes | None = None,
    sum: Summation | str = Summation.GROUP,  # noqa: A002 - the public name of the choice
) -> npt.NDArray[np.uint32]:
    """Multiply two matrices.

    Args:
        a: Codes `[M, K]` of `a_dtype`.
        b: Codes `[K, N]` of `b_dtype`.
        a_dtype: One of a pair that the cube multiplies.
        b_dtype: The other one.
        start: uint32 codes of the accumulator that it begins from, broadcast to `[M, N]`; +0 without.
        sum: `"group"` for steps of the cube, `"sequential"` for one product after the other.

    Returns:
        uint32 `[M, N]`, codes of Float32, or of Int32 for Int8; every NaN is 0x7FC00000.

    Raises:
        IRTypeError: For two dtypes that the cube does not multiply with each other.
        IRValueError: For matrices of different K, or an unknown `sum`.
    """
    check_pair(a_dtype, b_dtype)
    order = Summation.of(sum)
    if a.shape[1] != b.shape[0]:
        message = f"K must be the same on both sides, but a has {a.shape[1]} and b has {b.shape[0]}"
        raise IRValueError(message)
    shape = (a.shape[0], b.shape[1])
    begin = np.zeros(shape, np.uint32) if start is None else np.broadcast_to(start, shape).copy()
    if a_dtype is DType.Int8:
        return begin + _integer_product(a, b)
    x, y = (
        decode(codes, dtype).astype(np.float32, copy=False)
        for codes, dtype in ((a, a_dtype), (b, b_dtype))
    )
    acc = begin.view(np.float32)
    with np.errstate(all="ignore"):
        if order is Summation.GROUP:
            _add_steps(acc, x, y, K_STEP[a_dtype])
        else:
            _add_products(acc, x, y)
    return canonical_float32(acc).view(np.uint32)


def _integer_product(a: Codes, b: Codes) -> npt.NDArray[np.uint32]:
    """Multiply integers; float32 holds any sum of a step, which has 19 bits."""
    x, y = (codes.view(np.int8).astype(np.float32) for codes in (a, b))
    total = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for rows, columns in blocks(a.shape[0], b.shape[1], _INTEGER_STEP):
        for first in range(0, x.shape[1], _INTEGER_STEP):
            cut = slice(first, first + _INTEGER_STEP)
            total[rows, columns] += (x[rows, cut] @ y[cut, columns]).astype(np.int32)
    return total.view(np.uint32)


def _add_products(acc: Floats, x: Floats, y: Floats) -> None:
    """Add the products one after the other; each is exact in float64, and rounded once."""
    for rows, columns in blocks(acc.shape[0], acc.shape[1], _SEQUENTIAL_BLOCK):
        a, b = x[rows].astype(np.float64), y[:, columns].astype(np.float64)
        for k in range(x.shape[1]):
            product = a[:, k, None] * b[k] + 0.0  # an exact zero is +0
            acc[rows, columns] += product.astype(np.float32)


def _add_steps(acc: Floats, x: Floats, y: Floats, step: int) -> None:
    """Add the sums of the products of each step, of `step` elements along K."""
    cuts = [slice(first, first + step) for first in range(0, x.shape[1], step)]
    is_finite = [np.isfinite(x[:, cut]).all() and np.isfinite(y[cut]).all() for cut in cuts]
    units = [(_unit(x[:, cut], 1), _unit(y[cut], 0)) for cut in cuts]
    for rows, columns in blocks(acc.shape[0], acc.shape[1], step):
        for cut, finite, (row_units, column_units) in zip(cuts, is_finite, units, strict=True):
            a, b = x[rows, cut].astype(np.float64), y[cut, columns].astype(np.float64)
            if finite:
                term = _step_sums(a, b, row_units[rows], column_units[columns])
            else:
                term = exact_sums(a.T[:, :, None], b[:, None, :])
            acc[rows, columns] += term


def _step_sums(a: Doubles, b: Doubles, row_units: Doubles, column_units: Doubles) -> Floats:
    """Return the sums of the products of a step, each rounded once to float32.

    Args:
        a: Finite float64 `[M, S]`.
        b: Finite float64 `[S, N]`.
        row_units: What all values of each row are multiples of, `[M]`.
        column_units: The same of each column, `[N]`.
    """
    total = a @ b + 0.0  # an exact zero is +0, whatever the signs
    most = np.abs(a) @ np.abs(b)
    # Twice what a sum and its bound can be wrong by, in whatever order BLAS adds.
    error = most * ((a.shape[1] + 2) * _ERROR)
    low, high = (total - error).astype(np.float32), (total + error).astype(np.float32)
    differs = low.view(np.uint32) != high.view(np.uint32)
    if differs.any():
        rows, columns = np.nonzero(differs)
        low[rows, columns] = total[rows, columns].astype(np.float32)
        is_exact = most[rows, columns] <= _EXACT_SUMS * row_units[rows] * column_units[columns]
        rows, columns = rows[~is_exact], columns[~is_exact]
        low[rows, columns] = exact_sums(a[rows].T, b[:, columns])
    return low


def _unit(values: Floats, axis: int) -> Doubles:
    """Return the largest power of two that all values along an axis are multiples of.

    What is 0 or not finite counts as 1.
    """
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0).astype(np.float64))
    whole = np.ldexp(mantissa, _FLOAT32_BITS).astype(np.int64)
    units = np.ldexp((whole & -whole).astype(np.float64), exponent - _FLOAT32_BITS)
    return np.where(whole == 0, 1.0, units).min(axis=axis)


def exact_sums(x: Doubles, y: Doubles) -> Floats:
    """Return sums of products along the first axis, each exact and rounded once to float32.

    Args:
        x: float64 of values that float32 holds, so that a product is exact.
        y: float64 of such values, in a shape that broadcasts with that of `x`.

    Returns:
        float32 of the shape of a product; an exact zero is +0, a NaN or an infinity among the products
        decides as IEEE says.
    """
    total = np.zeros(np.broadcast_shapes(x.shape[1:], y.shape[1:]), np.float64)
    errors, lost = total.copy(), total.copy()
    for one, other in zip(x, y, strict=True):
        total, error = two_sum(total, one * other)
        errors, less = two_sum(errors, error)
        lost += np.abs(less)
    special = ~np.isfinite(total)
    plain = total[special].astype(np.float32)
    out = to_odd(*two_sum(total, errors)).astype(np.float32)
    out[special] = plain
    for place in np.argwhere((lost != 0) & ~special):
        pairs = (np.broadcast_to(each, (len(x), *out.shape))[:, *place] for each in (x, y))
        out[*place] = _by_fractions(*pairs)
    return out


def _by_fractions(x: Doubles, y: Doubles) -> np.float32:
    """Return a sum of products whose exponents lie too far apart for two float64 numbers."""
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    total = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    exponent = 1 - total.denominator.bit_length()
    return round_integers(np.array([total.numerator], object), np.array([exponent]))[0]
