"""The geometry of the scale box, told once.

Along K, every :data:`GROUP` elements of an operand share one E8M0 scale. In memory the scales stand
in boxes of :data:`BOX_ROWS` rows by :data:`BOX_GROUPS` groups, one byte a scale, row by row: byte
`i` of a box belongs to row `i // BOX_GROUPS` and group `i % BOX_GROUPS`. For the right operand of a
matmul the rows of a box are columns of the matrix; the order of the bytes is the same.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = 32
"""Elements along K that share one scale (OCP MX v1.0)."""

BOX_ROWS: Final = 16
"""Rows of a scale box; rows of the left operand, columns of the right one."""

BOX_GROUPS: Final = 2
"""Groups of a scale box, side by side along K."""

BOX_BYTES: Final = BOX_ROWS * BOX_GROUPS
"""Bytes of a scale box, one a scale."""


def box_byte(row: int, group: int) -> int:
    """Return the byte offset of the scale of `row` and `group` inside its box."""
    return row * BOX_GROUPS + group
