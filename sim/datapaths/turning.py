"""Squares of elements, turned by shuffling vectors: rows become columns.

A copy of single bytes that lie apart costs a step for each of them; this costs one for some tens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from numba import types as numba_types
from numba.extending import intrinsic

from ...ir.numerics.vectors import I8, Emitter, constant, pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Turn = Callable[[Bytes, int, int, Bytes, int], None]

types: Any = numba_types

SIDE: Final = 16
"""Rows of a square of bytes, and bytes of a row; a square of 4-bit elements has twice as many rows."""

_LINE: Final = 32
"""Bytes from row to row of what is made."""


def _turned(emit: Emitter, rows: list[Any]) -> list[Any]:
    """Return the columns of rows of as many bytes.

    Bytes are addressed by (row, column). To shuffle the rows of the upper half into those of the lower
    one moves the highest bit of the row to the end; doing so once for each leaves (column, row).
    """
    for _ in range(SIDE.bit_length() - 1):
        mixed: list[Any] = []
        for upper, lower in pairs(rows):
            for half in (0, SIDE // 2):
                order = [i + half + side for i in range(SIDE // 2) for side in (0, SIDE)]
                mixed.append(emit.shuffle(upper, lower, order))
        rows = mixed
    return rows


def _emit(emit: Emitter, *, narrow: bool) -> None:
    source, target = emit.pointer(0, 1), emit.pointer(3, 4)
    count = 2 * SIDE if narrow else SIDE
    rows = [emit.load(emit.at(source, emit.times(emit.args[2], i)), I8, SIDE) for i in range(count)]
    lines = [rows]
    if narrow:
        build, low, four = emit.builder, constant(0xF, I8, SIDE), constant(4, I8, SIDE)
        high = constant(-16, I8, SIDE)
        both = list(zip(rows[::2], rows[1::2], strict=True))
        lines = [
            [build.or_(build.and_(one, low), build.shl(other, four)) for one, other in both],
            [build.or_(build.lshr(one, four), build.and_(other, high)) for one, other in both],
        ]
    for first, each in enumerate(lines):
        for number, line in enumerate(_turned(emit, each)):
            emit.store(line, emit.at(target, (number * len(lines) + first) * _LINE))


def _turn(*, narrow: bool) -> Turn:
    def turn(_typing: Any, source: Any, at: Any, step: Any, target: Any, target_at: Any) -> Any:
        def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
            wide = [
                context.cast(builder, value, kind, types.intp)
                if kind in types.integer_domain
                else value
                for value, kind in zip(args, called.args, strict=True)
            ]
            _emit(Emitter(context, builder, called, wide), narrow=narrow)
            return context.get_dummy_value()

        return types.void(source, at, step, target, target_at), generate

    return cast("Turn", intrinsic(turn))


turn_bytes = _turn(narrow=False)
"""(source, at, step, target, target_at): write 16 columns of 16 rows, `step` bytes apart, as lines.

Called by compiled code. A line of 16 bytes begins every 32 bytes of the target.
"""
turn_nibbles = _turn(narrow=True)
"""The same for 32 rows of 32 elements of 4 bits, which become 32 lines of as many."""
