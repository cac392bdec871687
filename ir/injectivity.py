"""Whether a strided map is one to one, decided without enumerating its coordinates."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Mode: TypeAlias = "tuple[int, int]"
"""An extent, 1 or more, and a stride, 0 or more."""


def is_injective(modes: Iterable[Mode]) -> bool:
    """Return whether no two coordinates of some modes have the same sum of coordinate times stride.

    Exact. Nested and padded modes are decided by comparing strides; only strides that interleave
    are searched, by congruences, for differences that cancel out.
    """
    rising = _coalesced(modes)
    return all(step > 0 for _, step in rising) and not _collides(rising)


def _coalesced(modes: Iterable[Mode]) -> list[Mode]:
    """Return the modes by rising stride, extents of 1 dropped, contiguous ones merged."""
    merged: list[Mode] = []
    for extent, step in sorted((mode for mode in modes if mode[0] > 1), key=operator.itemgetter(1)):
        if merged and merged[-1][0] * merged[-1][1] == step:
            extent, step = merged[-1][0] * extent, merged[-1][1]
            merged.pop()
        merged.append((extent, step))
    return merged


def _collides(modes: list[Mode]) -> bool:
    """Return whether two coordinates of modes with positive strides, rising, meet.

    They do if some differences d, not all zero, |d_i| < extent_i, have a sum d_i * stride_i of 0.
    """
    while modes:
        *rest, (extent, step) = modes
        reach = _reach(rest)
        if step <= reach:
            differences = _solutions(step, 0, rest, 1, min(extent - 1, reach // step))
            if any(_reaches(rest, difference * step) for difference in differences):
                return True
        modes = rest
    return False


def _reaches(modes: list[Mode], wanted: int) -> bool:
    """Return whether some differences within the extents sum to `wanted`."""
    *rest, (extent, step) = modes
    if not rest:
        return wanted % step == 0 and abs(wanted) <= (extent - 1) * step
    reach = _reach(rest)
    lowest = max(1 - extent, -((reach - wanted) // step))
    highest = min(extent - 1, (wanted + reach) // step)
    differences = _solutions(step, wanted, rest, lowest, highest)
    return any(_reaches(rest, wanted - difference * step) for difference in differences)


def _reach(modes: list[Mode]) -> int:
    return sum((extent - 1) * step for extent, step in modes)


def _solutions(step: int, wanted: int, rest: list[Mode], lowest: int, highest: int) -> range:
    """Return the d in lowest..highest for which the other modes' gcd divides wanted - d * step."""
    modulus = math.gcd(*(other for _, other in rest))
    common = math.gcd(step, modulus)
    if wanted % common:
        return range(0)
    period = modulus // common
    residue = wanted // common * pow(step // common, -1, period) % period
    return range(lowest + (residue - lowest) % period, highest + 1, period)
