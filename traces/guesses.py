"""What the differences of an output have in common, and what such a pattern hints at.

Each guess is a fact of the two arrays, followed by where to look. None of them is a proof of a cause.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS, GROUP
from ..ir.numerics.scales import pack_scales_a, pack_scales_b, unpack_scales_a, unpack_scales_b
from .bits import codes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from .bits import Array
    from .examine import Pair

_FEW = 4
_MATRIX = 2


def guesses(pair: Pair) -> tuple[str, ...]:
    """Return what an output that differs suggests, a sentence a guess; none where nothing shows."""
    if not pair.count:
        return ()
    with np.errstate(all="ignore"):
        found = [*_specials(pair), *_zeros(pair)]
        order = _order(pair)
        if order is not None:
            return (*found, order)
        hints = (_offset(pair), _factor(pair), _lines(pair))
    return (*found, *(hint for hint in hints if hint is not None))


def _specials(pair: Pair) -> Iterator[str]:
    """Tell of NaN and infinity on one side only."""
    if not pair.kind.is_float:
        return
    actual, golden = pair.values
    for one, other, side in ((actual, golden, "actual"), (golden, actual, "golden")):
        nans = int(np.count_nonzero(np.isnan(one) & ~np.isnan(other)))
        if nans:
            hint = "a scale code of 255 or a NaN element makes one"
            yield f"NaN in {_elements(nans)} of {side} only: {hint}"
        infinite = int(np.count_nonzero(np.isinf(one) & np.isfinite(other)))
        if infinite:
            yield f"infinite in {_elements(infinite)} of {side} only: a sum or a store overflows there"


def _zeros(pair: Pair) -> Iterator[str]:
    """Tell of elements that were perhaps never written, and of signs."""
    actual, golden = (each.astype(np.float64) for each in pair.values)
    if not (actual.any() or golden.any()):
        yield "only the sign of zeros differs"
    elif not actual.any():
        yield "actual is zero wherever it differs: perhaps it was never computed or stored there"
    elif not golden.any():
        yield "golden is zero wherever it differs: perhaps it was never computed there"
    elif pair.kind.is_signed and np.array_equal(actual, -golden):
        yield "actual is golden with its sign turned wherever it differs"


def _order(pair: Pair) -> str | None:
    """Tell whether a matrix holds the golden elements in another order."""
    if pair.golden.ndim != _MATRIX:
        return None
    actual, golden = (
        codes(each, pair.kind).reshape(each.shape) for each in (pair.actual, pair.golden)
    )
    if actual.sum(dtype=np.uint64) != golden.sum(dtype=np.uint64):
        return None  # the elements are others, whatever their order
    for text, other in _orders(golden):
        if np.array_equal(actual.reshape(-1), other.reshape(-1)):
            return f"actual is golden {text}"
    for axis, lines in enumerate(("rows", "columns")):
        if golden.shape[axis] > 1 and _same_lines(actual, golden, axis):
            operand = ("left", "right")[axis]
            return (
                f"the {lines} of actual are those of golden in another order: perhaps the "
                f"elements or scales of the {operand} operand are"
            )
    return None


def _orders(golden: Array) -> Iterator[tuple[str, Array]]:
    """Yield orders in which scales are mistaken for one another."""
    yield "transposed", golden.T
    if golden.dtype.itemsize != 1:
        return
    rows, cols = golden.shape
    scales: Any = golden.view(np.uint8)
    if rows % BOX_ROWS == 0 and cols % BOX_GROUPS == 0:
        yield "packed into boxes (ZZ), where rows were wanted", pack_scales_a(scales)
        yield (
            "unpacked from boxes (ZZ), where boxes were wanted",
            unpack_scales_a(scales, golden.shape),
        )
    if cols % BOX_ROWS == 0 and rows % BOX_GROUPS == 0:
        yield "packed into boxes (NN), where rows were wanted", pack_scales_b(scales)
        yield (
            "unpacked from boxes (NN), where boxes were wanted",
            unpack_scales_b(scales, golden.shape),
        )


def _same_lines(actual: Array, golden: Array, axis: int) -> bool:
    """Return whether two matrices have the same rows, or columns, in some order."""

    def ordered(matrix: Array) -> list[bytes]:
        lines = np.ascontiguousarray(matrix if axis == 0 else matrix.T)
        return sorted(hashlib.blake2b(line.tobytes(), digest_size=16).digest() for line in lines)

    return ordered(actual) == ordered(golden)


def _offset(pair: Pair) -> str | None:
    """Tell whether all codes of a byte are off by the same number."""
    if pair.kind.is_float or pair.golden.dtype.itemsize != 1 or pair.count < 2:
        return None
    actual, golden = (each.astype(np.int64) for each in pair.values)
    apart = actual - golden
    if apart.min() != apart.max():
        return None
    return (
        f"actual is golden {int(apart[0]):+d} wherever they differ: if these are scale codes, each is "
        f"off by a factor of 2^{apart[0]}"
    )


def _factor(pair: Pair) -> str | None:
    """Tell whether actual is golden times a power of two: as a whole, by line or by group."""
    powers = _powers(pair)
    if powers is None:
        return None
    exponents, is_known = powers
    rows, cols = exponents.shape
    if (low := int(exponents[is_known].min())) == int(exponents[is_known].max()):
        return (
            f"actual is 2^{low} times golden wherever they differ: perhaps a scale is off by {low}"
        )
    row, col = (int(axis[0]) for axis in np.nonzero(is_known))
    left, right = "a scale of the left operand", "a scale of the right operand"
    # fmt: off
    cells = (
        ((1, cols),  "row",                               f"row {row}",         left),
        ((rows, 1),  "column",                            f"column {col}",      right),
        ((1, GROUP), f"group of {GROUP} along a row",     f"[{row}, {col}]'s",  "its scale"),
        ((GROUP, 1), f"group of {GROUP} along a column",  f"[{row}, {col}]'s",  "its scale"),
    )
    # fmt: on
    for (height, width), what, first, scale in cells:
        if height * width > 1 and _is_constant(exponents, is_known, height, width):
            return (
                f"in every {what} actual is golden times one power of two (2^{exponents[row, col]} "
                f"in {first}): perhaps {scale} is off"
            )
    return None


def _powers(pair: Pair) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]] | None:
    """Return n where actual is 2^n times golden, as a matrix, and where it is known.

    None if a finite element that differs is no such multiple, or fewer than two are.
    """
    if not pair.kind.is_float:
        return None
    actual, golden = (each[pair.finite].astype(np.float64) for each in pair.values)
    if actual.size < 2 or not (actual.all() and golden.all()):
        return None
    exponent = np.frexp(actual)[1].astype(np.int64) - np.frexp(golden)[1]
    if not np.array_equal(np.ldexp(golden, exponent), actual):
        return None
    shape = (-1, pair.golden.shape[-1]) if pair.golden.ndim else (1, 1)
    exponents, is_known = np.zeros(pair.golden.size, np.int64), np.zeros(pair.golden.size, np.bool_)
    places = pair.places[pair.finite]
    exponents[places], is_known[places] = exponent, True
    return exponents.reshape(shape), is_known.reshape(shape)


def _is_constant(
    exponents: npt.NDArray[np.int64], is_known: npt.NDArray[np.bool_], height: int, width: int
) -> bool:
    """Return whether all known numbers of a cell of that size are equal, in every cell."""
    far = np.iinfo(np.int64).max // 2
    least, most = np.where(is_known, exponents, far), np.where(is_known, exponents, -far)
    for axis, extent in enumerate((height, width)):
        starts = range(0, exponents.shape[axis], extent)
        least = np.minimum.reduceat(least, starts, axis=axis)
        most = np.maximum.reduceat(most, starts, axis=axis)
    return bool(np.all(most <= least))


def _lines(pair: Pair) -> str | None:
    """Tell whether all differences lie in a few rows or columns of a matrix."""
    if pair.golden.ndim != _MATRIX:
        return None
    for axis, (line, operand) in enumerate((("row", "left"), ("column", "right"))):
        counts = np.count_nonzero(pair.differs, axis=1 - axis)
        hit = np.flatnonzero(counts)
        extent, across = pair.golden.shape[axis], pair.golden.shape[1 - axis]
        is_few, is_full = 4 * hit.size <= extent, bool(np.all(2 * counts[hit] > across))
        if is_few and is_full and across > 1:
            return (
                f"all differences lie in {_listed(line, hit.tolist())}: "
                f"look at the elements and scales of the {operand} operand there"
            )
    return None


def _listed(line: str, places: list[int]) -> str:
    if len(places) == 1:
        return f"{line} {places[0]}"
    if len(places) > 2 and places[-1] - places[0] == len(places) - 1:
        return f"{line}s {places[0]} to {places[-1]}"
    shown = ", ".join(str(place) for place in places[:_FEW])
    rest = len(places) - _FEW
    return f"{line}s {shown}" + (f" and {rest} more" if rest > 0 else "")


def _elements(count: int) -> str:
    return f"{count} element" if count == 1 else f"{count} elements"
