"""The quantiser of the vector core on tiles in UB, jitted around that of `ir.numerics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..codegen.isa.vocabulary import ElementType
from ..ir.dtypes.boxes import GROUP
from ..ir.numerics.fast_quantize import quantize_row, recipe_from
from .jit import compiled
from .vector_places import mark, part, place, ready
from .vector_plan import COLS, FLAG, OP, PITCH, ROWS, TYPE
from .vector_rows import load_floats

if TYPE_CHECKING:
    import numpy.typing as npt

    from .kernels import Memory

    Line = npt.NDArray[np.int64]
    Recipes = npt.NDArray[np.float64]

_E2M1 = int(ElementType.E2M1)


@compiled
def quantise(memory: Memory, line: Line, recipes: Recipes, mode: int) -> bool:
    """Quantise the rows of a tile.

    Returns:
        Whether it was done; not where something that is read was never written.
    """
    if not ready(memory, line, 2, mode):
        return False
    recipe = recipe_from(recipes[line[OP], line[FLAG]])
    cols = part(line, 2, COLS)
    groups = cols // GROUP
    codes_at, scales_at = place(memory, line, 0), place(memory, line, 1)
    at = place(memory, line, 2)
    bits, codes = np.empty(cols, np.uint32), np.empty(cols, np.uint8)
    for row in range(part(line, 2, ROWS)):
        load_floats(memory.local, at + row * part(line, 2, PITCH), line[TYPE], bits)
        first = scales_at + row * part(line, 1, PITCH)
        scales = memory.local[first : first + groups]
        there = codes_at + row * part(line, 0, PITCH)
        if line[OP] == _E2M1:
            quantize_row(bits, GROUP, recipe, codes, scales)
            packed = memory.local[there : there + cols // 2]
            for i in range(cols // 2):
                packed[i] = codes[2 * i] | codes[2 * i + 1] << np.uint8(4)
        else:
            quantize_row(bits, GROUP, recipe, memory.local[there : there + cols], scales)
    mark(memory, line, 0, mode)
    mark(memory, line, 1, mode)
    return True
