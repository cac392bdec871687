"""What a transfer touches of a buffer in GM: a window of its view, told as rows of bytes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..codegen.executable import View
    from ..codegen.isa.program import Instruction

_RANK = 2
"""Dimensions of a view whose elements are in no boxes."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window of a view: `rows` rows of `cols` units, both counted along the view's axes.

    Attributes:
        view: The view.
        rows: Units along the first of the two axes.
        cols: Units along the second one.
        axis: The first of the two axes of the view.
    """

    view: View
    rows: int
    cols: int
    axis: int

    @property
    def unit_bits(self) -> int:
        """What one step along either axis stands for: an element, or a box."""
        return self.view.bits * (prod(self.view.dims[self.axis + 2 :]) if self.axis else 1)

    @property
    def step_bits(self) -> tuple[int, int]:
        """Bits from unit to unit along the first and along the second axis."""
        outer, inner = self.view.strides[self.axis : self.axis + 2]
        return outer * self.view.bits, inner * self.view.bits

    @property
    def size_bytes(self) -> int:
        """Bytes that are moved, rounded up."""
        return -(-self.rows * self.cols * self.unit_bits // 8)

    @property
    def by_rows(self) -> tuple[int, int, int]:
        """Rows, bytes from row to row, and bytes from a row's begin to its end.

        The axis of the larger stride counts the rows.
        """
        rows, cols, outer, inner = self._sorted
        return rows, outer // 8, -(-((cols - 1) * inner + self.unit_bits) // 8)

    @property
    def runs(self) -> int:
        """Stretches of bytes that follow one another; rows without a gap between them are one."""
        rows, cols, outer, inner = self._sorted
        if cols > 1 and inner != self.unit_bits:
            return rows * cols
        return 1 if outer == cols * self.unit_bits else rows

    @property
    def _sorted(self) -> tuple[int, int, int, int]:
        """Units outside and inside, and the bits from one to the next of either."""
        outer, inner = self.step_bits
        if outer < inner:
            return self.cols, self.rows, inner, outer
        return self.rows, self.cols, outer, inner


def window_of(instruction: Instruction, view: View) -> Window:
    """Return the window of `view` that an instruction with a view moves.

    Args:
        instruction: It names rows and cols, cols of a single row, or boxes along either axis; rows
            and cols of a view of boxes are elements.
        view: The view that it names.
    """
    if instruction.row.has("nj"):
        axis = 2 if instruction.row.has("layout") else 1
        return Window(view, instruction["ni"], instruction["nj"], axis)
    if instruction.row.has("row_boxes"):
        return Window(view, instruction["col_boxes"], instruction["row_boxes"], 1)
    rows = instruction["rows"] if instruction.row.has("rows") else 1
    if view.rank > _RANK:
        tall, wide = view.dims[3:]
        return Window(view, -(-instruction["cols"] // wide), -(-rows // tall), 1)
    return Window(view, rows, instruction["cols"], 0)
