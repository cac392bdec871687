"""The quantiser of the vector core on tiles in UB, jitted around that of `ir.numerics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.vocabulary import ElementType
from ...ir.dtypes.boxes import GROUP
from ...ir.jit import compiled, inner
from ...ir.numerics.fast_quantize import quantize_row, recipe_from
from ..datapaths.moves import copy_bytes
from .places import mark, part, place, ready
from .plan import COLS, FLAG, OP, PITCH, ROWS, SIZE, TYPE
from .rows import load_floats

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..datapaths.kernels import Memory

    Bytes = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]
    Recipes = npt.NDArray[np.float64]

_E2M1 = int(ElementType.E2M1)
_AT_ONCE = 4096
"""As many elements of short rows are quantised together, which the nearest cache holds."""


@compiled
def quantise(memory: Memory, line: Line, recipes: Recipes, mode: int) -> bool:
    """Quantise the rows of a tile.

    Returns:
        Whether it was done; not where something that is read was never written.
    """
    if not ready(memory, line, 2, mode):
        return False
    recipe = recipe_from(recipes[line[OP], line[FLAG]])
    at, pitch = place(memory, line, 2), part(line, 2, PITCH)
    rows, cols = part(line, 2, ROWS), part(line, 2, COLS)
    groups, is_packed = cols // GROUP, line[OP] == _E2M1
    several = max(1, _AT_ONCE // cols)
    bits, codes = np.empty(several * cols, np.uint32), np.empty(several * cols, np.uint8)
    scales = np.empty(several * groups, np.uint8)
    for first in range(0, rows, several):
        count = min(several, rows - first)
        size, joined = count * cols, count if pitch == part(line, 2, SIZE) else 1
        for i in range(0, count, joined):
            here = at + (first + i) * pitch
            load_floats(memory.local, here, line[TYPE], bits[i * cols : (i + joined) * cols])
        # Rows are whole groups: to the quantiser some of them are a longer one.
        quantize_row(bits[:size], GROUP, recipe, codes[:size], scales[: count * groups])
        if is_packed:
            for i in range(size // 2):
                codes[i] = codes[2 * i] | codes[2 * i + 1] << np.uint8(4)
        _put(memory, line, 0, first, count, codes, cols // 2 if is_packed else cols)
        _put(memory, line, 1, first, count, scales, groups)
    mark(memory, line, 0, mode)
    mark(memory, line, 1, mode)
    return True


@inner
def _put(
    memory: Memory, line: Line, tile: int, first: int, count: int, rows: Bytes, size: int
) -> None:
    """Write `count` rows of bytes into a tile, from its row `first` on."""
    pitch, local = part(line, tile, PITCH), memory.local
    at = place(memory, line, tile) + first * pitch
    if pitch == size:
        copy_bytes(local, at, rows, 0, count * size)
        return
    for row in range(count):
        copy_bytes(local, at + row * pitch, rows, row * size, size)
