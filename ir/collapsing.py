"""Axes of a tensor folded into one: where a window of several axes lies along the single one.

Rows of a tensor [B, R, C] that is looked at as [B * R, C] are counted through all batches, so that an
offset beyond R would fall into the next batch unseen. Where it is not plain from constants and loop
bounds that it stays within, the folded offset gets a term that is 0 within and huge beyond, so that
whoever checks the window against the folded tensor sees it leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .expr import Add, Expr, FloorDiv, Max, Min, Mul, index
from .types import constant_dim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .ranges import Ranges

#: More rows than any tensor has.
_BEYOND = 1 << 44


def is_contiguous(window: Sequence[int], extents: Sequence[int]) -> bool:
    """Return whether a window lies in one piece along its axes folded into one.

    Once an axis is taken in part, only one of each axis before it may be taken.
    """
    in_part = False
    for size, extent in zip(reversed(window), reversed(extents), strict=True):
        if in_part and size != 1:
            return False
        in_part = in_part or size != extent
    return True


def folded_offset(
    offsets: Sequence[Expr], window: Sequence[int], extents: Sequence[int], ranges: Ranges
) -> Expr:
    """Return where a window begins along its axes folded into one, with guards where they are needed.

    Args:
        offsets: Where it begins along each axis.
        window: How much of each axis it takes.
        extents: The axes.
        ranges: What is known of the scalars in the offsets.
    """
    total: Expr = index(0)
    guards: list[Expr] = []
    step = 1
    for axis in reversed(range(len(offsets))):
        total = plus(times(offsets[axis], step), total)
        room = extents[axis] - window[axis]
        known = ranges.of(offsets[axis])
        if axis and not (known is not None and known.low >= 0 and known.high <= room):
            guards.append(times(_side(offsets[axis], room), _BEYOND * 3 ** len(guards)))
        step *= extents[axis]
    for guard in guards:
        total = plus(total, guard)
    return total


def _side(offset: Expr, room: int) -> Expr:
    """Return 0 for an offset from 0 to `room`, -1 for one below, 1 for one beyond.

    Weighted by powers of 3, several of these cannot cancel each other.
    """
    word = index(0).dtype
    steps = FloorDiv(offset, index(room + 1), word, offset.span)
    return Max(Min(steps, index(1), word, offset.span), index(-1), word, offset.span)


def times(left: Expr, right: int) -> Expr:
    """Return a product; one by 1 or of constants is no operation."""
    value = constant_dim(left)
    if value is not None:
        return index(value * right, left.span)
    return left if right == 1 else Mul(left, index(right), index(0).dtype, left.span)


def plus(left: Expr, right: Expr) -> Expr:
    """Return a sum; one with 0 or of constants is no operation."""
    one, other = constant_dim(left), constant_dim(right)
    if one is not None and other is not None:
        return index(one + other, left.span)
    if other == 0:
        return left
    return right if one == 0 else Add(left, right, index(0).dtype, left.span)
