"""Which instruction wrote an element: the way back from a wrong number to a line of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.isa.asm import format_instruction
from ..ir.dtypes.boxes import BOX_GROUPS, BOX_ROWS
from ..ir.given import NamedArrays
from ..traces.compare import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from ..codegen.executable import Executable, Kernel, Task, TaskGraph, View
    from ..sim.report import CoreRun, SimResult, TaskRun

_WINDOW, _BOXES = ("rows", "cols", 1), ("ni", "nj", BOX_ROWS * BOX_GROUPS)
STORES = {
    "l0c_to_gm": _WINDOW,
    "l0c_to_gm_fix": _WINDOW,
    "l0c_to_gm_quant": _WINDOW,
    "ub_to_gm": _WINDOW,
    "ub_to_gm_boxes": _BOXES,
}
"""The instructions that write into outputs: the fields that say how many rows and columns a window
has, and how many elements stand at each place of it: one, or a whole box of scales."""


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
        unit: How many elements stand at each place of the window, one after the other.
        origin: The instruction and its line of source.
    """

    output: str
    view: View
    row: int
    col: int
    rows: int
    cols: int
    unit: int
    origin: Origin

    def covers(self, position: int) -> bool:
        """Whether the element at a position of memory order lies in the window."""
        row_stride, col_stride = self._strides
        inside = position - self.view.offset
        if row_stride >= col_stride:
            row, rest = divmod(inside, max(1, row_stride))
            col, odd = divmod(rest, max(1, col_stride))
        else:
            col, rest = divmod(inside, max(1, col_stride))
            row, odd = divmod(rest, max(1, row_stride))
        in_rows = self.row <= row < self.row + self.rows
        return odd < self.unit and in_rows and self.col <= col < self.col + self.cols

    def mark(self, written: npt.NDArray[np.bool_]) -> None:
        """Set the elements of the window in `written`, which holds an output in memory order."""
        row_stride, col_stride = self._strides
        begin = self.view.offset + self.row * row_stride + self.col * col_stride
        shape, strides = (self.rows, self.cols, self.unit), (row_stride, col_stride, 1)
        np.ndarray(shape, np.bool_, written, begin, strides)[...] = True  # a byte an element

    @property
    def _strides(self) -> tuple[int, int]:
        """Elements from row to row and from column to column; of a view [1, P, Q, 16, 2], of boxes."""
        strides = self.view.strides
        return (strides[0], strides[1]) if self.unit == 1 else (strides[1], strides[2])


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

    def tile(self, output: str, shape: tuple[int, ...]) -> tuple[int, int] | None:
        """Return the extents that all stores into an output share, or None.

        What is stored by another shape than its own, as boxes of scales are, has no tiles.
        """
        stores = [store for store in self.stores if store.output == output]
        if any(store.view.dims != shape for store in stores):
            return None
        extents = {(store.rows, store.cols) for store in stores}
        return extents.pop() if len(extents) == 1 else None

    def unwritten(self, output: str, shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
        """Return the places of an output, in memory order, that no store reached."""
        written = np.zeros(shape, np.bool_).reshape(-1)
        for store in self.stores:
            if store.output == output:
                store.mark(written)
        return np.flatnonzero(~written)

    @cached_property
    def stores(self) -> tuple[Store, ...]:
        """Every store into an output, in the order of tasks and instructions."""
        graph = self.executable.expand(self.entry, self.scalars)
        return tuple(s for r in self.simulation.tasks for s in self._of_task(graph, r))

    def _of_task(self, graph: TaskGraph, run: TaskRun) -> Iterator[Store]:
        for part in run.cores:
            yield from self._of_core(graph, graph.tasks[run.index], part)

    def _of_core(self, graph: TaskGraph, task: Task, part: CoreRun) -> Iterator[Store]:
        kernel = part.decoded.kernel
        outputs = {buffer: name for name, buffer in graph.outputs.items()}
        buffers = _buffers(kernel, task)
        for static, each in enumerate(kernel.program):
            if each.mnemonic not in STORES:
                continue
            rows, cols, unit = STORES[each.mnemonic]
            view = kernel.views[each["view"]]
            output = outputs.get(buffers[view.param])
            if output is None:
                continue
            span = kernel.span(static)
            text = " ".join(format_instruction(each).split())
            origin = Origin(text, str(span) if span.is_known else None)
            for record in np.flatnonzero(part.stream.static == static):
                row, col = (int(v) for v in part.stream.registers[record][:2])
                yield Store(output, view, row, col, each[rows], each[cols], unit, origin)


def _buffers(kernel: Kernel, task: Task) -> dict[int, str]:
    """Return index of a tensor parameter to the buffer that a task hands to it."""
    tensors = [index for index, param in enumerate(kernel.params) if param.is_tensor]
    return dict(zip(tensors, task.buffers, strict=True))


class Outputs(NamedArrays):
    """The outputs of a run by name; they know what wrote them, and `compare` asks them."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], origins: Origins) -> None:
        super().__init__(arrays)
        self._origins = origins

    def producer(self, output: str, index: tuple[int, ...], /) -> Origin | None:
        """Return the instruction that wrote the element of an output last, or None."""
        return self._origins.of(output, self[output].shape, index)

    def tile(self, output: str, /) -> tuple[int, ...] | None:
        """Return the shape of the tiles in which an output was stored, if they have one shape."""
        return self._origins.tile(output, self[output].shape)

    def unwritten(self, output: str, /) -> npt.NDArray[np.intp]:
        """Return the flat places of an output's elements that no instruction wrote."""
        return self._origins.unwritten(output, self[output].shape)
