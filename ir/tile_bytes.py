"""How many bytes a tile takes in its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dtypes.boxes import BOX_GROUPS, BOX_ROWS
from .errors import IRValueError
from .types import MemorySpace, TileLayout, static_dims

if TYPE_CHECKING:
    from .types import TileType

FRACTAL_ROWS = 16
FRACTAL_BYTES = 32
_TILE_RANK = 2

#: What addresses in each memory are multiples of. An L0 data tile at a multiple of 512 has its scales
#: at a multiple of 32, a whole scale box.
ALIGNMENT: dict[MemorySpace, int] = {
    MemorySpace.Vec: 32,
    MemorySpace.Mat: 512,
    MemorySpace.Left: 512,
    MemorySpace.Right: 512,
    MemorySpace.Acc: 1024,
    MemorySpace.Bias: 64,
    MemorySpace.LeftScale: 32,
    MemorySpace.RightScale: 32,
}


def round_up(value: int, unit: int) -> int:
    """Return the smallest multiple of `unit` that is not below `value`."""
    return -(-value // unit) * unit


def c0_elements(bits: int) -> int:
    """Return the elements in 32 bytes: the width of a box of the operand arrangement."""
    return FRACTAL_BYTES * 8 // bits


def tile_bytes(tile: TileType) -> int:
    """Return the bytes of a placed tile, partial boxes counted whole.

    In Mat all operands lie in boxes of 16 rows, also those that a transposed tensor came from: they are
    turned on their way, and once more on the way to Right.

    Raises:
        IRValueError: For a tile of another rank than 2, without a memory, or of symbolic shape.
    """
    shape = static_dims(tile.shape, "A tile that gets a buffer")
    if len(shape) != _TILE_RANK:
        message = f"A tile that gets a buffer must have rank 2, not {len(shape)}"
        raise IRValueError(message)
    if tile.memory_space is None:
        message = "A tile that gets a buffer must have a memory space"
        raise IRValueError(message)
    rows, cols = shape
    bits = tile.dtype.bits
    view = tile.get_effective_tile_view()
    match view.arrangement:
        case (TileLayout.row_major, TileLayout.row_major, 32):
            return round_up(rows, BOX_ROWS) * round_up(cols, BOX_GROUPS)
        case (TileLayout.col_major, TileLayout.col_major, 32):
            return round_up(rows, BOX_GROUPS) * round_up(cols, BOX_ROWS)
        case (_, slayout, _) if slayout is TileLayout.row_major or (
            slayout is TileLayout.col_major and tile.memory_space is MemorySpace.Mat
        ):
            wide = FRACTAL_ROWS if tile.memory_space is MemorySpace.Acc else c0_elements(bits)
            return round_up(rows, FRACTAL_ROWS) * round_up(cols, wide) * bits // 8
        case (_, TileLayout.col_major, _):
            return round_up(rows, c0_elements(bits)) * round_up(cols, FRACTAL_ROWS) * bits // 8
        case (TileLayout.col_major, TileLayout.none_box, _):
            return cols * round_up(-(-rows * bits // 8), FRACTAL_BYTES)
        case _:
            return rows * round_up(-(-cols * bits // 8), FRACTAL_BYTES)
