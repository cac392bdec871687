"""The matmul without scales, bit for bit as the machine's cube does it.

The products of one K step of the cube are added exactly and rounded once to float32; the steps are added
to a float32 accumulator in ascending order. Integers are added in 32 bits and wrap.
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
from .reference import exact_product, round_integers, to_odd, two_sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from ..dtypes import SimpleDType

    Codes = npt.NDArray[np.unsignedinteger[Any]]
    Doubles = npt.NDArray[np.float64]

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
        decode(codes, dtype).astype(np.float64) for codes, dtype in ((a, a_dtype), (b, b_dtype))
    )
    step = K_STEP[a_dtype] if order is Summation.GROUP else 1
    acc = begin.view(np.float32)
    with np.errstate(all="ignore"):
        for first in range(0, x.shape[1], step):
            acc = acc + exact_step(x[:, first : first + step], y[first : first + step])
    return canonical_float32(acc).view(np.uint32)


def _integer_product(a: Codes, b: Codes) -> npt.NDArray[np.uint32]:
    x, y = (codes.view(np.int8).astype(np.int64) for codes in (a, b))
    return (exact_product(x, y) & 0xFFFFFFFF).astype(np.uint32)


def exact_step(x: Doubles, y: Doubles) -> npt.NDArray[np.float32]:
    """Return the sums of products along K, each exact and rounded once to float32.

    Args:
        x: float64 `[M, S]` of values that float32 holds, so that a product is exact.
        y: float64 `[S, N]` of such values.

    Returns:
        float32 `[M, N]`; an exact zero is +0, a NaN or an infinity among the products decides as IEEE
        says.
    """
    total = np.zeros((x.shape[0], y.shape[1]), np.float64)
    errors, lost = total.copy(), total.copy()
    for k in range(x.shape[1]):
        product = x[:, k, None] * y[k]
        total, error = two_sum(total, product)
        errors, less = two_sum(errors, error)
        lost += np.abs(less)
    special = ~np.isfinite(total)
    plain = total[special].astype(np.float32)
    out = to_odd(*two_sum(total, errors)).astype(np.float32)
    out[special] = plain
    for m, n in np.argwhere((lost != 0) & ~special):
        out[m, n] = _by_fractions(x[m], y[:, n])
    return out


def _by_fractions(x: Doubles, y: Doubles) -> np.float32:
    """Return a sum of products whose exponents lie too far apart for two float64 numbers."""
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    total = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    exponent = 1 - total.denominator.bit_length()
    return round_integers(np.array([total.numerator], object), np.array([exponent]))[0]
