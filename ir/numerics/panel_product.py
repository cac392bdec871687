"""The block-scaled product of packed panels, added to a float32 accumulator.

The accumulator is an array of float32 patterns in which element (row, column) of the output stands
at `place + column // 16 * panel_step + row * row_step + column % 16`: a dense matrix `[M, N]` has
`row_step` N and `panel_step` 16, boxes of 16 by 16 as in L0C have 16 and 16 times their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..dtypes.boxes import GROUP
from ..jit import compiled, lean
from .panels import GROUP_LINES, LEFT_LANES, RIGHT_LANES
from .tile_kernels import (
    COLUMNS,
    DEPTH,
    LINES,
    ROWS,
    STEP,
    add_scaled_tile,
    add_tile,
    add_wide_tile,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Reals = npt.NDArray[np.floating[Any]]
    Words = npt.NDArray[np.uint32]

assert (ROWS, COLUMNS, DEPTH, LINES) == (LEFT_LANES, RIGHT_LANES, GROUP, GROUP_LINES)

EDGE_WORDS: Final = LEFT_LANES * RIGHT_LANES
"""Words that a product needs to work in."""

_STRIP = 32
"""Left panels that are taken together, so that they stay near while the right ones pass."""


@compiled
def multiply_panels(
    left: Reals,
    right: Reals,
    acc: Words,
    place: int,
    row_step: int,
    panel_step: int,
    rows: int,
    columns: int,
    groups: int,
    wide: bool,
    scratch: Words,
) -> None:
    """Add the product of packed operands to an accumulator, groups ascending.

    Only the given rows and columns of `acc` are read and written. Every NaN there becomes
    0x7FC00000.

    Args:
        left: Left panels, `[ceil(rows / 8)][groups][GROUP_LINES][8]`.
        right: Right panels of the same type, `[ceil(columns / 16)][groups][GROUP_LINES][16]`.
        acc: float32 patterns, laid out as this file says.
        place: Where the output begins in `acc`.
        row_step: Words from a row to the next.
        panel_step: Words from 16 columns to the next 16.
        rows: Rows of the output.
        columns: Columns of the output.
        groups: Groups along K.
        wide: Whether a group sum can exceed 53 bits, `panels.is_wide`; for float64 panels alone.
        scratch: At least `EDGE_WORDS`.
    """
    left_size = groups * GROUP_LINES * LEFT_LANES
    right_size = groups * GROUP_LINES * RIGHT_LANES
    tiles = (rows + LEFT_LANES - 1) // LEFT_LANES
    for first in range(0, tiles, _STRIP):
        for panel in range((columns + RIGHT_LANES - 1) // RIGHT_LANES):
            across = min(RIGHT_LANES, columns - panel * RIGHT_LANES)
            for tile in range(first, min(first + _STRIP, tiles)):
                down = min(LEFT_LANES, rows - tile * LEFT_LANES)
                at = place + panel * panel_step + tile * LEFT_LANES * row_step
                target, target_at, step = acc, at, row_step
                is_edge = down < LEFT_LANES or across < RIGHT_LANES
                if is_edge:
                    target, target_at, step = scratch, 0, RIGHT_LANES
                    _copy_tile(acc, at, row_step, scratch, 0, RIGHT_LANES, down, across)
                if wide:
                    add_wide_tile(
                        left, tile * left_size, right, panel * right_size,
                        target, target_at, step, groups,
                    )  # fmt: skip
                else:
                    add_tile(
                        left, tile * left_size, right, panel * right_size,
                        target, target_at, step, groups,
                    )  # fmt: skip
                if is_edge:
                    _copy_tile(scratch, 0, RIGHT_LANES, acc, at, row_step, down, across)


@compiled
def multiply_scaled_panels(
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    acc: Words,
    place: int,
    row_step: int,
    panel_step: int,
    rows: int,
    columns: int,
    groups: int,
    span: int,
    upper: float,
    lower: float,
    scratch: Words,
) -> None:
    """Add the product of packed operands, each group's sum times one scale; else as above.

    Args:
        left: Left panels.
        right: Right panels.
        acc: float32 patterns, laid out as this file says.
        place: Where the output begins in `acc`.
        row_step: Words from a row to the next.
        panel_step: Words from 16 columns to the next 16.
        rows: Rows of the output.
        columns: Columns of the output.
        groups: Groups along K.
        span: Elements of a group, at most 32.
        upper: One part of the scale; its product with any group's sum is exact in float64.
        lower: The other part, of which the same is true.
        scratch: At least `EDGE_WORDS`.
    """
    left_size = groups * GROUP_LINES * LEFT_LANES
    right_size = groups * GROUP_LINES * RIGHT_LANES
    steps = (span + STEP - 1) // STEP
    for panel in range((columns + RIGHT_LANES - 1) // RIGHT_LANES):
        across = min(RIGHT_LANES, columns - panel * RIGHT_LANES)
        for tile in range((rows + LEFT_LANES - 1) // LEFT_LANES):
            down = min(LEFT_LANES, rows - tile * LEFT_LANES)
            at = place + panel * panel_step + tile * LEFT_LANES * row_step
            target, target_at, step = acc, at, row_step
            is_edge = down < LEFT_LANES or across < RIGHT_LANES
            if is_edge:
                target, target_at, step = scratch, 0, RIGHT_LANES
                _copy_tile(acc, at, row_step, scratch, 0, RIGHT_LANES, down, across)
            add_scaled_tile(
                left, tile * left_size, right, panel * right_size,
                target, target_at, step, groups, steps, upper, lower,
            )  # fmt: skip
            if is_edge:
                _copy_tile(scratch, 0, RIGHT_LANES, acc, at, row_step, down, across)


@lean
def _copy_tile(
    source: Words,
    source_at: int,
    source_step: int,
    target: Words,
    target_at: int,
    target_step: int,
    rows: int,
    columns: int,
) -> None:
    for row in range(rows):
        for column in range(columns):
            word = source[source_at + row * source_step + column]
            target[target_at + row * target_step + column] = word


@compiled
def multiply_in_order(
    left: npt.NDArray[np.float64],
    right: npt.NDArray[np.float64],
    acc: Words,
    place: int,
    row_step: int,
    panel_step: int,
    rows: int,
    columns: int,
    depth: int,
) -> None:
    """Add each product for itself, rounded to float32, k ascending; else as `multiply_panels`.

    Args:
        left: Left panels.
        right: Right panels.
        acc: float32 patterns, laid out as this file says.
        place: Where the output begins in `acc`.
        row_step: Words from a row to the next.
        panel_step: Words from 16 columns to the next 16.
        rows: Rows of the output.
        columns: Columns of the output.
        depth: Elements along K.
    """
    values = acc.view(np.float32)
    groups = (depth + GROUP - 1) // GROUP
    for panel in range((columns + RIGHT_LANES - 1) // RIGHT_LANES):
        across = min(RIGHT_LANES, columns - panel * RIGHT_LANES)
        for row in range(rows):
            tile, lane = row // LEFT_LANES, row % LEFT_LANES
            at = place + panel * panel_step + row * row_step
            out = values[at : at + across]
            for k in range(depth):
                line = k // GROUP * GROUP_LINES + k % GROUP
                number = left[(tile * groups * GROUP_LINES + line) * LEFT_LANES + lane]
                first = (panel * groups * GROUP_LINES + line) * RIGHT_LANES
                numbers = right[first : first + across]
                for column in range(across):
                    exact = number * numbers[column] + 0.0  # an exact zero is +0
                    out[column] += np.float32(exact)
            for column in range(across):
                if np.isnan(out[column]):
                    out[column] = np.float32(np.nan)
