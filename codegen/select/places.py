"""Where the tiles of a compiled kernel lie, and what static extents they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from ...ir.errors import IRTypeError
from ...ir.printer_text import dims_text
from ...ir.tile_bytes import FRACTAL_ROWS, round_up
from ...ir.types import CompactMode, MemorySpace, TileType, constant_dims
from ..isa.vocabulary import Space

if TYPE_CHECKING:
    from ...ir.dtypes import SimpleDType
    from ...ir.errors import Span
    from ...ir.expr import Expr
    from ...ir.types import Dims

SPACES = {
    MemorySpace.Mat: Space.L1,
    MemorySpace.Left: Space.L0A,
    MemorySpace.Right: Space.L0B,
    MemorySpace.Acc: Space.L0C,
    MemorySpace.Bias: Space.BIAS,
    MemorySpace.LeftScale: Space.SCALE_A,
    MemorySpace.RightScale: Space.SCALE_B,
    MemorySpace.Vec: Space.UB,
}
"""The machine's name of each memory that tiles lie in."""

_TAIL = (
    "pl.unroll in place of pl.range makes a number of a loop's variable; or give the last, shorter "
    "window a branch of its own, with constants"
)


@dataclass(frozen=True)
class Place:
    """A placed tile: byte address in a memory, physical and valid extents in elements.

    A product writes an accumulator compactly: its boxes stand as close as its own rows go, whatever
    the physical rows of the tile are.
    """

    space: Space
    address: int
    rows: int
    cols: int
    valid_rows: int
    valid_cols: int
    dtype: SimpleDType
    is_compact: bool

    @property
    def box_rows(self) -> int:
        """Rows of whole boxes from one column of boxes of an accumulator to the next."""
        return round_up(self.valid_rows if self.is_compact else self.rows, FRACTAL_ROWS)


def place_of(value: Expr, span: Span) -> Place:
    """Return where a tile lies, after AllocateMemoryAddr.

    Args:
        value: A tile variable.
        span: Where it is used, for an error.

    Raises:
        IRTypeError: For a tile whose shape or valid shape is not constant.
    """
    tile = value.type
    assert isinstance(tile, TileType)
    assert tile.memory_space is not None
    assert tile.memref is not None, "tiles have memory references after InitMemRef"
    rows, cols = constant(tile.shape, "The shape of a tile that is compiled", span)
    what = "The valid shape of a tile that is compiled"
    known = constant_dims(tile.valid_shape) is not None
    hint = None if known else f"it is {dims_text(tile.valid_shape)}: {_TAIL}"
    valid = constant(tile.valid_shape, what, span, hint=hint)
    return Place(
        SPACES[tile.memory_space],
        tile.memref.byte_offset,
        rows,
        cols,
        valid[0],
        valid[1],
        cast("SimpleDType", tile.dtype),
        tile.get_effective_tile_view().compact is CompactMode.normal,
    )


def constant(dims: Dims, what: str, span: Span, *, hint: str | None = None) -> tuple[int, ...]:
    """Return dimensions as integers.

    Args:
        dims: Extents, offsets or strides.
        what: Beginning of the message, as "The shape of a tile".
        span: Where the error is shown.
        hint: What can be written instead.

    Raises:
        IRTypeError: When one is not a constant.
    """
    values = constant_dims(dims)
    if values is None:
        message = f"{what} must be constant, not symbolic"
        raise IRTypeError(message, span, hint=hint)
    return values


def space_name(value: Expr) -> str:
    """Return the memory of a tile, as the language calls it."""
    space = cast("TileType", value.type).memory_space
    return space.name if space is not None else "no memory"
