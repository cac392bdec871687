"""One core at work: its memories, and the instructions that move and multiply what they hold.

Data movements run in one jitted loop; it comes back to Python for a mad, whose engine may be
anything, and for a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..ir.numerics.elements import Summation
from . import plain, vector
from .decode import OPERANDS, Action
from .drain import l0c_to_gm
from .faultcodes import UNWRITTEN, new_fault
from .jit import compiled, inner
from .kernels import (
    CHECK,
    MOVE,
    REPORT,
    SPACE,
    TRACK,
    UNIT,
    Memory,
    gm_to_l1_boxes,
    gm_to_l1_nz,
    gm_to_l1_nz_boxes,
    gm_to_l1_row,
    l1_to_bias,
    l1_to_l0a,
    l1_to_l0b,
    l1_to_scale,
    local_ok,
)
from .l0 import mad_ok
from .matmul import mad_mx
from .memory import LocalMemory
from .plain import fix_to_gm_ok, fix_to_ub_ok, plain_mad_ok
from .tiles import MAX_TILES
from .ub import gm_to_ub, ub_to_gm, ub_to_gm_boxes, ub_to_l1, ub_to_l1_nz

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from ..ir.target import Target
    from .decode import Decoded
    from .matmul import CubeEngine
    from .memory import GlobalMemory
    from .scalar import Stream
    from .scale_recorder import ScaleRecorder

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_NZ, _ROW, _BOXES = (
    int(action) for action in (Action.GM_TO_L1_NZ, Action.GM_TO_L1_ROW, Action.GM_TO_L1_BOXES)
)
_NZ_BOXES = int(Action.GM_TO_L1_NZ_BOXES)
_L0A, _L0B, _BIAS = (
    int(action) for action in (Action.L1_TO_L0A, Action.L1_TO_L0B, Action.L1_TO_BIAS)
)
_SCALE, _DRAIN, _MAD = (
    int(action) for action in (Action.L1_TO_SCALE, Action.L0C_TO_GM, Action.MAD_MX)
)
_GM_TO_UB, _UB_TO_GM, _UB_TO_GM_BOXES, _UB_TO_L1, _UB_TO_L1_NZ = (
    int(action)
    for action in (
        Action.GM_TO_UB,
        Action.UB_TO_GM,
        Action.UB_TO_GM_BOXES,
        Action.UB_TO_L1,
        Action.UB_TO_L1_NZ,
    )
)
_PLAIN_MAD, _FIX_TO_GM, _FIX_TO_UB, _VECTOR, _VECTOR_AT = (
    int(action)
    for action in (
        Action.MAD,
        Action.FIX_TO_GM,
        Action.FIX_TO_UB,
        Action.VECTOR,
        Action.VECTOR_AT,
    )
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that an instruction did: a fault record, and the record of the stream."""

    record: int
    fault: tuple[int, ...]
    padding: bool = False
    """Non-zero padding beyond K, which is only a warning, rather than what `fault[0]` says."""


class Core:
    """One cube core.

    Args:
        target: The machine.
        gm: The global memory.
        engine: Who multiplies.
        scales: Who keeps the scales of every mad, if anyone.
        order: The order in which products without scales meet the accumulator.
    """

    def __init__(
        self,
        target: Target,
        gm: GlobalMemory,
        engine: CubeEngine,
        scales: ScaleRecorder | None = None,
        *,
        order: Summation = Summation.GROUP,
    ) -> None:
        self.order = order
        self.local = LocalMemory(target)
        self.engine = engine
        self.scales = scales
        self.memory = Memory(
            gm.data,
            gm.written,
            gm.written_base,
            self.local.data,
            self.local.data.view(np.uint32),
            self.local.written,
            self.local.bases,
            self.local.sizes,
        )

    def check_bounds(self, decoded: Decoded, stream: Stream, views: Table) -> Problem | None:
        """Return the first access of the stream, in program order, that leaves its memory."""
        found: list[Problem] = []
        order = np.arange(len(stream), dtype=np.int64)
        self._run(decoded, stream, views, order, CHECK, found.append)
        return found[0] if found else None

    def execute(
        self,
        decoded: Decoded,
        stream: Stream,
        views: Table,
        order: Line,
        *,
        track: bool,
        on_problem: Callable[[Problem], None],
    ) -> None:
        """Execute records of the stream.

        Args:
            decoded: The kernel.
            stream: Its resolved instructions, whose bounds have been checked.
            views: Its bound views.
            order: Which records, in which order, int64.
            track: Whether to look for reads of what was never written.
            on_problem: Told of every problem; if it returns, the instruction is executed with
                what the memory happens to hold.
        """
        self._run(decoded, stream, views, order, REPORT if track else MOVE, on_problem)

    def _run(
        self,
        decoded: Decoded,
        stream: Stream,
        views: Table,
        order: Line,
        mode: int,
        on_problem: Callable[[Problem], None],
    ) -> None:
        fault, place, quiet = new_fault(), 0, False
        while place < len(order):
            record = int(order[place])
            operands = decoded.operands[stream.static[record]]
            now = TRACK if quiet else mode
            if mode != CHECK and decoded.action[stream.static[record]] == Action.MAD_MX:
                outcome = mad_mx(self.memory, operands, self.engine, fault, now)
                done = outcome.done
                if done and self.scales is not None:
                    self.scales.add(self.memory, operands, int(stream.static[record]))
                if outcome.padding:
                    on_problem(Problem(record, tuple(fault.tolist()), padding=True))
                place += done
            elif mode != CHECK and decoded.action[stream.static[record]] >= Action.MAD:
                done = self._apply(decoded, stream, views, record, fault, now)
                place += done
            else:
                stop = place + 1 if quiet else len(order)
                last = place
                place = run_movements(
                    order,
                    place,
                    stop,
                    stream.static,
                    stream.registers,
                    decoded.action,
                    decoded.operands,
                    views,
                    *self.memory,
                    fault,
                    now,
                )
                done = fault[0] == 0
                assert place > last or not done or not quiet, "a movement is done or refused"
            quiet = False
            if not done:
                problem = Problem(int(order[place]), tuple(fault.tolist()))
                fault[:] = 0
                on_problem(problem)
                if mode == CHECK:
                    return
                assert problem.fault[0] == UNWRITTEN, "only such reads can be passed over"
                quiet = True

    def _apply(
        self, decoded: Decoded, stream: Stream, views: Table, record: int, fault: Line, mode: int
    ) -> bool:
        """Execute a record whose meaning is numpy's; return whether it was done."""
        item = int(stream.static[record])
        operands = decoded.operands[item]
        registers: list[int] = stream.registers[record].tolist()
        match Action(int(decoded.action[item])):
            case Action.MAD:
                return plain.mad(self.memory, operands, self.order, fault, mode)
            case Action.FIX_TO_GM:
                r0, r1 = registers
                return plain.fix_to_gm(self.memory, views, operands, r0, r1, fault, mode)
            case Action.FIX_TO_UB:
                return plain.fix_to_ub(self.memory, operands, fault, mode)
            case _:
                each = decoded.kernel.program[item]
                return vector.execute(self.memory, each, registers, fault, mode)


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
    fault: Line,
    mode: int,
) -> int:
    """Execute records from `order[place]` on; return where a mad, a fault or `stop` ended it."""
    memory = Memory(gm, gm_written, gm_written_base, local, words, written, bases, sizes)
    while place < stop:
        record = order[place]
        item = static[record]
        action, op = action_of[item], operands[item]
        r0, r1 = registers[record, 0], registers[record, 1]
        if (action == _MAD or action >= _PLAIN_MAD) and mode != CHECK:
            return place
        if action == _MAD:
            good = mad_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _NZ:
            good = gm_to_l1_nz(memory, views, op, r0, r1, fault, mode)
        elif action == _BOXES:
            good = gm_to_l1_boxes(memory, views, op, r0, r1, fault, mode)
        elif action == _NZ_BOXES:
            good = gm_to_l1_nz_boxes(memory, views, op, r0, r1, fault, mode)
        elif action == _ROW:
            good = gm_to_l1_row(memory, views, op, r0, r1, fault, mode)
        elif action == _L0A:
            good = l1_to_l0a(memory, views, op, r0, r1, fault, mode)
        elif action == _L0B:
            good = l1_to_l0b(memory, views, op, r0, r1, fault, mode)
        elif action == _SCALE:
            good = l1_to_scale(memory, views, op, r0, r1, fault, mode)
        elif action == _BIAS:
            good = l1_to_bias(memory, views, op, r0, r1, fault, mode)
        elif action == _DRAIN:
            good = l0c_to_gm(memory, views, op, r0, r1, fault, mode)
        elif action == _GM_TO_UB:
            good = gm_to_ub(memory, views, op, r0, r1, fault, mode)
        elif action == _UB_TO_GM:
            good = ub_to_gm(memory, views, op, r0, r1, fault, mode)
        elif action == _UB_TO_GM_BOXES:
            good = ub_to_gm_boxes(memory, views, op, r0, r1, fault, mode)
        elif action == _UB_TO_L1:
            good = ub_to_l1(memory, views, op, r0, r1, fault, mode)
        elif action == _UB_TO_L1_NZ:
            good = ub_to_l1_nz(memory, views, op, r0, r1, fault, mode)
        elif action == _PLAIN_MAD:
            good = plain_mad_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _FIX_TO_GM:
            good = fix_to_gm_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _FIX_TO_UB:
            good = fix_to_ub_ok(memory, views, op, r0, r1, fault, mode)
        elif action == _VECTOR:
            good = _tiles_ok(memory, op, 0, 0, fault)
        elif action == _VECTOR_AT:
            good = _tiles_ok(memory, op, r1, r0, fault)
        else:
            good = True
        if not good:
            return place
        place += 1
    return place


@inner
def _tiles_ok(memory: Memory, op: Line, first: int, second: int, fault: Line) -> bool:
    """Return whether the tiles of a vector instruction lie inside UB.

    The first one lies `first` units further than it says, the second one `second` units.
    """
    for tile in range(MAX_TILES):
        address, size = op[OPERANDS + 2 * tile], op[OPERANDS + 2 * tile + 1]
        if tile == 0:
            address += first * UNIT
        elif tile == 1:
            address += second * UNIT
        if size and not local_ok(memory, SPACE.ub, address, size, fault):
            return False
    return True
