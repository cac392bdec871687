"""Which instruction wrote an element: the way back from a wrong number to a line of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.isa.asm import format_instruction
from ..traces.compare import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from ..codegen.executable import Executable, Kernel, Task, TaskGraph, View
    from ..sim.report import SimResult, TaskRun

STORE = "l0c_to_gm"
"""The instruction that writes into outputs."""


@dataclass(frozen=True)
class Store:
    """A store that a run executed: its window of an output, and where it comes from.

    Attributes:
        output: Name of the output.
        view: The output as the kernel looks at it, in elements of memory order.
        row: First row of the window, in the view.
        col: First column.
        rows: How many rows.
        cols: How many columns.
        origin: The instruction and its line of source.
    """

    output: str
    view: View
    row: int
    col: int
    rows: int
    cols: int
    origin: Origin

    def covers(self, position: int) -> bool:
        """Whether the element at a position of memory order lies in the window."""
        (row_stride, col_stride), inside = self.view.strides, position - self.view.offset
        if row_stride >= col_stride:
            row, rest = divmod(inside, max(1, row_stride))
            col, odd = divmod(rest, max(1, col_stride))
        else:
            col, rest = divmod(inside, max(1, col_stride))
            row, odd = divmod(rest, max(1, row_stride))
        in_rows = self.row <= row < self.row + self.rows
        return odd == 0 and in_rows and self.col <= col < self.col + self.cols


@dataclass(frozen=True)
class Origins:
    """The stores of a run."""

    executable: Executable
    entry: str
    scalars: Mapping[str, int]
    simulation: SimResult

    def of(self, output: str, shape: tuple[int, ...], index: tuple[int, ...]) -> Origin | None:
        """Return the last store into the element of an output, or None if there was none."""
        position = int(np.ravel_multi_index(index, shape)) if index else 0
        for store in reversed(self.stores):
            if store.output == output and store.covers(position):
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
        task = graph.tasks[run.index]
        kernel = self.executable.kernels[task.kernel]
        outputs = {buffer: name for name, buffer in graph.outputs.items()}
        buffers = _buffers(kernel, task)
        for static, each in enumerate(kernel.program):
            if each.mnemonic != STORE:
                continue
            view = kernel.views[each["view"]]
            output = outputs.get(buffers[view.param])
            if output is None:
                continue
            span = kernel.span(static)
            text = " ".join(format_instruction(each).split())
            origin = Origin(text, str(span) if span.is_known else None)
            for record in np.flatnonzero(run.stream.static == static):
                row, col = (int(v) for v in run.stream.registers[record][:2])
                yield Store(output, view, row, col, each["rows"], each["cols"], origin)


def _buffers(kernel: Kernel, task: Task) -> dict[int, str]:
    """Return index of a tensor parameter to the buffer that a task hands to it."""
    tensors = [index for index, param in enumerate(kernel.params) if param.is_tensor]
    return dict(zip(tensors, task.buffers, strict=True))


class Outputs(dict[str, "npt.NDArray[Any]"]):
    """The outputs of a run by name; they know what wrote them, and `compare` asks them."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], origins: Origins) -> None:
        super().__init__(arrays)
        self._origins = origins

    def producer(self, output: str, index: tuple[int, ...], /) -> Origin | None:
        """Return the instruction that wrote the element of an output last, or None."""
        return self._origins.of(output, self[output].shape, index)

    def tile(self, output: str, /) -> tuple[int, ...] | None:
        """Return the shape of the tiles in which an output was stored, if they have one shape."""
        extents = self._origins.tile(output)
        return extents if extents is not None and self[output].ndim == len(extents) else None
