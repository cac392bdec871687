"""Chains of conversions that a machine has, in place of one that it has not.

The shortest chain is found breadth first. A step between may lose nothing that the last one would
have kept, so that the chain gives the very value that one direct conversion gives:

* it holds every value of the step before; or
* it is a float wide enough to keep two bits more than the end can tell, and rounds in a way that the
  last rounding does not notice (to odd, or as the last one where that is directed); or
* it and the end are integers, and it reaches as far as the end does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ..cast_mode import CastMode
from ..dtypes.formats import FloatFormat, IntegerFormat
from ..numerics.cast import cast_format

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..dtypes import SimpleDType

    Format = FloatFormat | IntegerFormat
    Casts = Mapping[SimpleDType, Sequence[SimpleDType]]

_SPARE_BITS = 2
_SATURATING_BITS = 8
_DIRECTED = (CastMode.floor, CastMode.ceil, CastMode.trunc, CastMode.odd)


@dataclass(frozen=True)
class Step:
    """A conversion of a chain: what it makes, and how it rounds."""

    target: SimpleDType
    mode: CastMode


def cast_chain(
    casts: Casts, source: SimpleDType, target: SimpleDType, mode: CastMode
) -> tuple[Step, ...] | None:
    """Return the shortest chain from `source` to `target` that loses nothing on the way.

    Of two of one length the one is taken whose first different step keeps the source's width, else
    goes to a float, else stands first in the machine's list.

    Args:
        casts: What the machine converts each dtype to.
        source: The dtype that is there.
        target: The dtype that is wanted, another one.
        mode: How the values are to be rounded.

    Returns:
        The steps, the last one to `target`; None when there is no such chain.
    """
    path = _search(casts, source, target, lambda a, b: _keeps(source, a, b, target))
    if path is None:
        return None
    modes = [_mode_between(a, b, mode) for a, b in pairwise(path[:-1])]
    return tuple(Step(*each) for each in zip(path[1:], [*modes, mode], strict=True))


def any_chain(
    casts: Casts, source: SimpleDType, target: SimpleDType
) -> tuple[SimpleDType, ...] | None:
    """Return the shortest chain of dtypes, both ends included, whatever is lost on the way."""
    return _search(casts, source, target, lambda _a, _b: True)


def lossy_step(chain: Sequence[SimpleDType]) -> SimpleDType | None:
    """Return the first step of a chain that may lose what its end could hold, or None."""
    source, *_, target = chain
    for before, between in pairwise(chain[:-1]):
        if not _keeps(source, before, between, target):
            return between
    return None


def _search(
    casts: Casts,
    source: SimpleDType,
    target: SimpleDType,
    allowed: Callable[[SimpleDType, SimpleDType], bool],
) -> tuple[SimpleDType, ...] | None:
    def order(dtype: SimpleDType) -> tuple[bool, bool]:
        return dtype.bits != source.bits, not isinstance(cast_format(dtype), FloatFormat)

    paths: list[tuple[SimpleDType, ...]] = [(source,)]
    seen = {source}
    for path in paths:
        following = casts.get(path[-1], ())
        if target in following:
            return (*path, target)
        for dtype in sorted(following, key=order):
            if dtype not in seen and allowed(path[-1], dtype):
                seen.add(dtype)
                paths.append((*path, dtype))
    return None


def _mode_between(before: SimpleDType, between: SimpleDType, mode: CastMode) -> CastMode:
    """Return how a step before the last one rounds."""
    one, other = _format(before), _format(between)
    if _holds(other, one) or isinstance(other, IntegerFormat) or mode in _DIRECTED:
        return mode
    return CastMode.odd


def _format(dtype: SimpleDType) -> Format:
    found = cast_format(dtype)
    assert found is not None, dtype
    return found


def _keeps(
    source: SimpleDType, before: SimpleDType, between: SimpleDType, target: SimpleDType
) -> bool:
    """Return whether a step from `before` to `between` keeps what `target` can hold of it."""
    middle, end = _format(between), _format(target)
    if _holds(middle, _format(before)):
        return True
    match middle, end:
        case FloatFormat(), FloatFormat():
            finer = middle.precision >= end.precision + _SPARE_BITS
            deeper = (
                middle.emin - middle.mantissa_bits <= end.emin - end.mantissa_bits - _SPARE_BITS
            )
            wider = middle.emax > end.emax or (
                end.bits <= _SATURATING_BITS and middle.max > end.max
            )
            first = _format(source)
            if isinstance(
                first, IntegerFormat
            ):  # neither so small nor so large that it would matter
                deeper, wider = deeper or middle.emin <= 0, wider or middle.max > first.max
            return finer and deeper and wider
        case FloatFormat(), IntegerFormat():
            finer = middle.precision >= end.bits + _SPARE_BITS
            return finer and middle.max > end.max
        case IntegerFormat(), IntegerFormat():
            least, most = end.min, end.max
            first = _format(source)
            if isinstance(first, IntegerFormat):
                least, most = max(least, first.min), min(most, first.max)
            return middle.min <= least and middle.max >= most
        case _:
            return False


def _holds(wide: Format, narrow: Format) -> bool:
    """Return whether every value of `narrow`, its infinities and NaNs too, is one of `wide`."""
    match wide, narrow:
        case FloatFormat(), FloatFormat():
            return (
                wide.precision >= narrow.precision
                and wide.emax >= narrow.emax
                and wide.emin - wide.mantissa_bits <= narrow.emin - narrow.mantissa_bits
                and wide.max >= narrow.max
                and (wide.has_nan or not narrow.has_nan)
                and (wide.has_infinity or not narrow.has_infinity)
            )
        case FloatFormat(), IntegerFormat():
            return wide.precision >= narrow.bits - narrow.signed and wide.max >= narrow.max
        case IntegerFormat(), IntegerFormat():
            return wide.min <= narrow.min and wide.max >= narrow.max
        case _:
            return False
