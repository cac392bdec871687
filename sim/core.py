"""The cores of a cluster at work: their memories, and the instructions that change what they hold.

Data movements and the mads of the default engine run in one jitted loop; it comes back to Python for
a mad whose engine may be anything, for what numpy does, and for a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ..codegen.isa.vocabulary import CoreKind
from ..ir.numerics.elements import Summation
from .datapaths import fixpipe, plain
from .datapaths.actions import Action
from .datapaths.cube import new_cube
from .datapaths.kernels import CHECK, MOVE, REPORT, TRACK, Memory
from .faultcodes import PADDED, UNWRITTEN, new_fault
from .matmul import NumericsCube, mad_mx
from .memory import LocalMemory
from .movements import new_accesses, run_movements
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

_MAD, _PLAIN_MAD, _VECTOR = int(Action.MAD_MX), int(Action.MAD), int(Action.VECTOR)
_MOST_VIEWS = 64
"""Tables of views that are kept, each of which belongs to a program and its buffers."""


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
        is_ours = isinstance(engine, NumericsCube) and scales is None
        self.cube = new_cube(
            target, engine.order if isinstance(engine, NumericsCube) else order, ready=is_ours
        )
        self.gm = gm
        self._placed: dict[int, tuple[Table, Table]] = {}
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

    def is_compiled(self, decoded: Decoded) -> bool:
        """Return whether compiled code does all that a kernel does."""
        is_cube = decoded.kernel.core is CoreKind.AIC
        return is_cube and self.cube.ready and decoded.action.max(initial=0) < _PLAIN_MAD

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
        if mode != CHECK:
            views = self._places_of(views)
        while place < len(order):
            record = int(order[place])
            operands = decoded.operands[stream.static[record]]
            now = TRACK if quiet else mode
            action = int(decoded.action[stream.static[record]])
            if mode != CHECK and action == _MAD and not self.cube.ready:
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
                if fault[PADDED]:
                    fault[PADDED] = 0
                    on_problem(Problem(int(order[place]), tuple(fault.tolist()), padding=True))
                    place += 1
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

    def _places_of(self, views: Table) -> Table:
        """Return views with places in GM for addresses; blocks of a grid come with the same ones."""
        found = self._placed.get(id(views))
        if found is None or found[0] is not views:
            if len(self._placed) >= _MOST_VIEWS:
                self._placed.clear()
            found = self._placed[id(views)] = views, self.gm.placed(views)
        return found[1]

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
            return run_movements(*records, *tables, *self.memory, self.cube, fault, mode)
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
        r0, r1 = stream.registers[record].tolist()
        match action := Action(int(decoded.action[item])):
            case Action.MAD:
                return plain.mad(self.memory, operands, self.order, fault, mode)
            case Action.MAD_IF:
                begun = plain.begun(operands, anew=r0 != 0)
                return plain.mad(self.memory, begun, self.order, fault, mode)
            case _:
                return fixpipe.store(self.memory, views, action, operands, (r0, r1), fault, mode)

    def _apply_vector(
        self, decoded: Decoded, stream: Stream, record: int, fault: Line, mode: int
    ) -> bool:
        """Execute a record of pipe V; return whether it was done."""
        item = int(stream.static[record])
        registers: list[int] = stream.registers[record].tolist()
        if vector.execute_compiled(self.memory, self._plan(decoded)[item], registers, mode):
            return True
        return vector.execute(self.memory, decoded.kernel.program[item], registers, fault, mode)
