"""The cores of a cluster at work: their memories, and the instructions that change what they hold.

Data movements run in one jitted loop; it comes back to Python for a mad, whose engine may be
anything, and for a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ..codegen.isa.vocabulary import CoreKind
from ..ir.numerics.elements import Summation
from .datapaths import fixpipe, plain
from .datapaths.actions import Action
from .datapaths.drain import l0c_to_gm
from .datapaths.fixpipe import fix_to_gm_ok, fix_to_l1_ok, fix_to_nz_ok, fix_to_ub_ok
from .datapaths.kernels import CHECK, MOVE, REPORT, TRACK, Memory
from .datapaths.l0 import mad_ok
from .datapaths.l1 import (
    gm_to_l1_boxes,
    gm_to_l1_nz,
    gm_to_l1_nz_boxes,
    gm_to_l1_row,
    gm_to_l1_scales,
    l1_to_l0_boxes,
    l1_to_l0_turned,
    l1_to_scale,
    l1_to_table,
)
from .datapaths.plain import plain_mad_ok
from .datapaths.tails import l1_fill, l1_to_l0a_row, l1_to_scale_row
from .faultcodes import UNWRITTEN, new_fault
from .jit import compiled
from .matmul import mad_mx
from .memory import LocalMemory
from .vector import effects as vector
from .vector.loop import run_vectors
from .vector.plan import plan

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from ..ir.target import Target
    from .decode import Decoded
    from .matmul import CubeEngine
    from .memory import GlobalMemory
    from .scalar import Stream
    from .scales.recorder import ScaleRecorder

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
_PLAIN_MAD, _MAD_IF, _VECTOR = (
    int(action) for action in (Action.MAD, Action.MAD_IF, Action.VECTOR)
)
_FIX_TO_GM, _FIX_TO_NZ, _FIX_TO_UB, _FIX_TO_L1 = (
    int(action)
    for action in (Action.FIX_TO_GM, Action.FIX_TO_NZ, Action.FIX_TO_UB, Action.FIX_TO_L1)
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that an instruction did: a fault record, and the record of the stream."""

    record: int
    fault: tuple[int, ...]
    padding: bool = False
    """Non-zero padding beyond K, which is only a warning, rather than what `fault[0]` says."""


class Core:
    """The memories of a cluster, and who executes the instructions of its cores on them.

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
        order = new_accesses(stream.static, stream.registers, decoded.action)
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
            action = int(decoded.action[stream.static[record]])
            if mode != CHECK and action == _MAD:
                outcome = mad_mx(self.memory, operands, self.engine, fault, now)
                done = outcome.done
                if done and self.scales is not None:
                    self.scales.add(self.memory, operands, int(stream.static[record]))
                if outcome.padding:
                    on_problem(Problem(record, tuple(fault.tolist()), padding=True))
                place += done
            elif mode != CHECK and action >= _VECTOR:
                done = self._apply_vector(decoded, stream, record, fault, now)
                place += done
            elif mode != CHECK and action >= _PLAIN_MAD:
                done = self._apply(decoded, stream, views, record, fault, now)
                place += done
            else:
                stop = place + 1 if quiet else len(order)
                last = place
                place = self._advance(decoded, stream, views, order, place, stop, fault, now)
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

    def _advance(
        self,
        decoded: Decoded,
        stream: Stream,
        views: Table,
        order: Line,
        place: int,
        stop: int,
        fault: Line,
        mode: int,
    ) -> int:
        """Execute records in the loop of the kernel's kind of core; return where it ended."""
        records = order, place, stop, stream.static, stream.registers
        if decoded.kernel.core is CoreKind.AIC:
            tables = decoded.action, decoded.operands, views
            return run_movements(*records, *tables, *self.memory, fault, mode)
        tables = decoded.action, decoded.operands, self._plan(decoded), views
        return run_vectors(*records, *tables, *self.memory, fault, mode)

    def _plan(self, decoded: Decoded) -> Table:
        """Return the lines of a kernel's vector instructions, made once a kernel."""
        lines = decoded.kernel.kept.get(plan)
        if lines is None:
            lines = decoded.kernel.kept[plan] = plan(decoded.kernel.program)
        assert isinstance(lines, np.ndarray), "what is kept under this name"
        return cast("Table", lines)

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
            case Action.MAD_IF:
                begun = plain.begun(operands, anew=registers[0] != 0)
                return plain.mad(self.memory, begun, self.order, fault, mode)
            case Action.FIX_TO_GM:
                r0, r1 = registers
                return fixpipe.fix_to_gm(self.memory, views, operands, r0, r1, fault, mode)
            case Action.FIX_TO_NZ:
                r0, r1 = registers
                return fixpipe.fix_to_nz(self.memory, views, operands, r0, r1, fault, mode)
            case Action.FIX_TO_UB:
                scaled = fixpipe.with_number(operands, registers[0])
                return fixpipe.fix_to_ub(self.memory, scaled, fault, mode)
            case _:
                scaled = fixpipe.with_number(operands, registers[0])
                return fixpipe.fix_to_l1(self.memory, scaled, fault, mode)

    def _apply_vector(
        self, decoded: Decoded, stream: Stream, record: int, fault: Line, mode: int
    ) -> bool:
        """Execute a record of pipe V; return whether it was done."""
        item = int(stream.static[record])
        registers: list[int] = stream.registers[record].tolist()
        if vector.execute_compiled(self.memory, self._plan(decoded)[item], registers, mode):
            return True
        return vector.execute(self.memory, decoded.kernel.program[item], registers, fault, mode)


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
