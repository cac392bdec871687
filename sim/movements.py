"""The loop of a cube core: all that compiled code does for it, record by record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..ir.jit import compiled
from .datapaths.actions import Action
from .datapaths.cube import Cube, mad_boxes
from .datapaths.drain import l0c_to_gm
from .datapaths.fixpipe import fix_to_gm_ok, fix_to_l1_ok, fix_to_nz_ok, fix_to_ub_ok
from .datapaths.kernels import CHECK, Memory
from .datapaths.l0 import DIRTY, FAILED, mad_ok
from .datapaths.l1 import (
    gm_to_l1_boxes,
    gm_to_l1_nz,
    gm_to_l1_nz_boxes,
    gm_to_l1_row,
    gm_to_l1_scales,
    l1_to_l0_boxes,
    l1_to_scale,
    l1_to_table,
)
from .datapaths.plain import plain_mad_ok
from .datapaths.tails import l1_fill, l1_to_l0a_row, l1_to_scale_row
from .datapaths.turned import l1_to_l0_turned
from .faultcodes import PADDED

if TYPE_CHECKING:
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_NZ, _ROW, _BOXES = (
    int(action) for action in (Action.GM_TO_L1_NZ, Action.GM_TO_L1_ROW, Action.GM_TO_L1_BOXES)
)
_NZ_BOXES, _SCALE_ROWS = int(Action.GM_TO_L1_NZ_BOXES), int(Action.GM_TO_L1_SCALES)
_L0_BOXES, _L0_TURNED, _TABLE = (
    int(action) for action in (Action.L1_TO_L0_BOXES, Action.L1_TO_L0_TURNED, Action.L1_TO_TABLE)
)
_SCALE, _DRAIN, _MAD = (
    int(action) for action in (Action.L1_TO_SCALE, Action.L0C_TO_GM, Action.MAD_MX)
)
_L1_FILL, _L0A_ROW, _SCALE_ROW = (
    int(action) for action in (Action.L1_FILL, Action.L1_TO_L0A_ROW, Action.L1_TO_SCALE_ROW)
)
_PLAIN_MAD, _MAD_IF = int(Action.MAD), int(Action.MAD_IF)
_FIX_TO_GM, _FIX_TO_NZ, _FIX_TO_UB, _FIX_TO_L1 = (
    int(action)
    for action in (Action.FIX_TO_GM, Action.FIX_TO_NZ, Action.FIX_TO_UB, Action.FIX_TO_L1)
)


@compiled
def new_accesses(static: Line, registers: Table, action_of: Line) -> Line:
    """Return the records that touch memory, but for those that do again what they did last.

    Args:
        static: The instruction of each record, int64 [d].
        registers: What its registers held, int64 [d, 2].
        action_of: The action of each instruction, int64 [n]; 0 for none.
    """
    found = np.empty(len(static), np.int64)
    last = np.full(len(action_of), -1, np.int64)
    used = 0
    for record in range(len(static)):
        item = static[record]
        if action_of[item] == 0:
            continue
        before = last[item]
        last[item] = record
        if (
            before >= 0
            and registers[before, 0] == registers[record, 0]
            and registers[before, 1] == registers[record, 1]
        ):
            continue
        found[used] = record
        used += 1
    return found[:used]


@compiled
def run_movements(
    order: Line,
    place: int,
    stop: int,
    static: Line,
    registers: Table,
    action_of: Line,
    operands: Table,
    views: Table,
    gm: npt.NDArray[np.uint8],
    gm_written: npt.NDArray[np.uint8],
    gm_written_base: int,
    local: npt.NDArray[np.uint8],
    words: npt.NDArray[np.uint32],
    written: npt.NDArray[np.uint8],
    bases: Line,
    sizes: Line,
    cube: Cube,
    fault: Line,
    mode: int,
) -> int:
    """Execute records from `order[place]` on.

    Returns:
        Where it ended: at `stop`, at a fault, at an instruction that Python executes, or at a mad that
        was executed and saw padding, which `fault[PADDED]` tells.
    """
    memory = Memory(gm, gm_written, gm_written_base, local, words, written, bases, sizes)
    while place < stop:
        record = order[place]
        item = static[record]
        action, op = action_of[item], operands[item]
        r0, r1 = registers[record, 0], registers[record, 1]
        if action == _MAD and mode != CHECK:
            if not cube.ready:
                return place
            outcome = mad_boxes(memory, cube, op, fault, mode)
            good = outcome != FAILED
            if outcome == DIRTY:
                fault[PADDED] = 1
                return place
        elif action >= _PLAIN_MAD and mode != CHECK:
            return place
        elif action == _MAD:
            good = mad_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _NZ:
            good = gm_to_l1_nz(memory, views, op, r0, r1, fault, mode)
        elif action == _BOXES:
            good = gm_to_l1_boxes(memory, views, op, r0, r1, fault, mode)
        elif action == _NZ_BOXES:
            good = gm_to_l1_nz_boxes(memory, views, op, r0, r1, fault, mode)
        elif action == _ROW:
            good = gm_to_l1_row(memory, views, op, r0, r1, fault, mode)
        elif action == _SCALE_ROWS:
            good = gm_to_l1_scales(memory, views, op, r0, r1, fault, mode)
        elif action == _L0_BOXES:
            good = l1_to_l0_boxes(memory, views, op, r0, r1, fault, mode)
        elif action == _L0_TURNED:
            good = l1_to_l0_turned(memory, views, op, r0, r1, fault, mode)
        elif action == _SCALE:
            good = l1_to_scale(memory, views, op, r0, r1, fault, mode)
        elif action == _TABLE:
            good = l1_to_table(memory, views, op, r0, r1, fault, mode)
        elif action == _DRAIN:
            good = l0c_to_gm(memory, views, op, r0, r1, fault, mode)
        elif action == _L1_FILL:
            good = l1_fill(memory, views, op, r0, r1, fault, mode)
        elif action == _L0A_ROW:
            good = l1_to_l0a_row(memory, views, op, r0, r1, fault, mode)
        elif action == _SCALE_ROW:
            good = l1_to_scale_row(memory, views, op, r0, r1, fault, mode)
        elif action in (_PLAIN_MAD, _MAD_IF):
            good = plain_mad_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _FIX_TO_GM:
            good = fix_to_gm_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _FIX_TO_NZ:
            good = fix_to_nz_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _FIX_TO_UB:
            good = fix_to_ub_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _FIX_TO_L1:
            good = fix_to_l1_ok(memory, views, op, r0, r1, fault, mode)
        else:
            good = True
        if not good:
            return place
        place += 1
    return place
