"""Which instruction wrote an element: the way back from a wrong number to a line of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..codegen.isa.asm import format_instruction
from ..traces.compare import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..codegen.executable import Executable, Task, TaskGraph
    from ..sim.report import SimResult, TaskRun

STORE = "l0c_to_gm"


@dataclass(frozen=True)
class Store:
    """A store that a run executed: its window of an output, and where it comes from."""

    output: str
    row: int
    col: int
    rows: int
    cols: int
    origin: Origin

    def covers(self, index: tuple[int, ...]) -> bool:
        """Whether the element at a rank-2 index lies in the window."""
        row, col = index
        return self.row <= row < self.row + self.rows and self.col <= col < self.col + self.cols


@dataclass(frozen=True)
class Origins:
    """The stores of a run; calling it names the one that wrote an element last."""

    executable: Executable
    entry: str
    scalars: Mapping[str, int]
    simulation: SimResult

    def __call__(self, output: str, index: tuple[int, ...]) -> Origin | None:
        """Return the last store into the element of an output, or None if there was none."""
        if len(index) != 2:
            return None
        for store in reversed(self.stores):
            if store.output == output and store.covers(index):
                return store.origin
        return None

    def tile(self, output: str) -> tuple[int, int] | None:
        """Return the extents that all stores into an output share, or None."""
        extents = {(s.rows, s.cols) for s in self.stores if s.output == output}
        return extents.pop() if len(extents) == 1 else None

    @cached_property
    def stores(self) -> tuple[Store, ...]:
        """Every store into an output, in the order of tasks and instructions."""
        graph = self.executable.expand(self.entry, self.scalars)
        return tuple(s for r in self.simulation.tasks for s in self._of_task(graph, r))

    def _of_task(self, graph: TaskGraph, run: TaskRun) -> Iterator[Store]:
        task: Task = graph.tasks[run.index]
        kernel = self.executable.kernels[task.kernel]
        buffer_of = {
            number: task.buffers[position]
            for position, number in enumerate(
                i for i, param in enumerate(kernel.params) if param.is_tensor
            )
        }
        outputs = {buffer: name for name, buffer in graph.outputs.items()}
        for static, each in enumerate(kernel.program):
            if each.mnemonic != STORE:
                continue
            output = outputs.get(buffer_of[kernel.views[each["view"]].param])
            if output is None:
                continue
            span = kernel.span(static)
            origin = Origin(format_instruction(each), str(span) if span.is_known else "")
            for record in np.flatnonzero(run.stream.static == static):
                row, col = (int(v) for v in run.stream.registers[record][:2])
                yield Store(output, row, col, each["rows"], each["cols"], origin)
