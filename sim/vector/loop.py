"""The loop of a vector core: moves to and from UB, and the bounds of what pipe V does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.jit import compiled, lean
from ..datapaths.actions import Action
from ..datapaths.kernels import CHECK, SPACE, Memory, local_ok
from ..datapaths.ub import gm_to_ub, ub_to_gm, ub_to_gm_boxes, ub_to_l1, ub_to_l1_nz
from .plan import PITCH, ROWS, SIZE, START, TILE_WORDS, TILES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_GM_TO_UB, _UB_TO_GM, _UB_TO_GM_BOXES, _UB_TO_L1, _UB_TO_L1_NZ, _VECTOR, _VECTOR_AT = (
    int(action)
    for action in (
        Action.GM_TO_UB,
        Action.UB_TO_GM,
        Action.UB_TO_GM_BOXES,
        Action.UB_TO_L1,
        Action.UB_TO_L1_NZ,
        Action.VECTOR,
        Action.VECTOR_AT,
    )
)


@compiled
def run_vectors(
    order: Line,
    place: int,
    stop: int,
    static: Line,
    registers: Table,
    action_of: Line,
    operands: Table,
    lines: Table,
    views: Table,
    gm: Bytes,
    gm_written: Bytes,
    gm_written_base: int,
    local: Bytes,
    words: npt.NDArray[np.uint32],
    written: Bytes,
    bases: Line,
    sizes: Line,
    fault: Line,
    mode: int,
) -> int:
    """Execute records from `order[place]` on.

    Returns:
        Where it ended: at `stop`, at a fault, or at an instruction of pipe V that is to be executed.
    """
    memory = Memory(gm, gm_written, gm_written_base, local, words, written, bases, sizes)
    while place < stop:
        record = order[place]
        item = static[record]
        action, op = action_of[item], operands[item]
        r0, r1 = registers[record, 0], registers[record, 1]
        if action == _GM_TO_UB:
            good = gm_to_ub(memory, views, op, r0, r1, fault, mode)
        elif action == _UB_TO_GM:
            good = ub_to_gm(memory, views, op, r0, r1, fault, mode)
        elif action == _UB_TO_GM_BOXES:
            good = ub_to_gm_boxes(memory, views, op, r0, r1, fault, mode)
        elif action == _UB_TO_L1:
            good = ub_to_l1(memory, views, op, r0, r1, fault, mode)
        elif action == _UB_TO_L1_NZ:
            good = ub_to_l1_nz(memory, views, op, r0, r1, fault, mode)
        elif action in (_VECTOR, _VECTOR_AT) and mode != CHECK:
            return place
        elif action == _VECTOR:
            good = _tiles_ok(memory, lines[item], 0, 0, fault)
        elif action == _VECTOR_AT:
            good = _tiles_ok(memory, lines[item], r1, r0, fault)
        else:
            good = True
        if not good:
            return place
        place += 1
    return place


@lean
def _tiles_ok(memory: Memory, line: Line, first: int, second: int, fault: Line) -> bool:
    """Return whether the tiles of an instruction lie inside UB.

    The first one lies `first` bytes further than it says, the second one `second` bytes.
    """
    for start in range(TILES, len(line), TILE_WORDS):
        address, rows = line[start + START], line[start + ROWS]
        extent = (rows - 1) * line[start + PITCH] + line[start + SIZE]
        if start == TILES:
            address += first
        elif start == TILES + TILE_WORDS:
            address += second
        if rows and not local_ok(memory, SPACE.ub, address, extent, fault):
            return False
    return True
