"""Which instruction wrote an element: the way back from a wrong number to a line of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
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
    from ..codegen.isa.program import Instruction
    from ..sim.report import CoreRun, SimResult, TaskRun


class Window(Enum):
    """How an instruction that writes into an output has its elements there."""

    PLAIN = "a window of rows and columns"
    SCALE_BOXES = "a window of boxes of scales, each in one piece"
    BOXES = "a window of boxes of 16 rows by 32 bytes, the last of which may be full in part"


STORES = {
    "l0c_to_gm": Window.PLAIN,
    "l0c_to_gm_fix": Window.PLAIN,
    "l0c_to_gm_quant": Window.PLAIN,
    "l0c_to_gm_columns": Window.PLAIN,
    "l0c_to_gm_nz": Window.BOXES,
    "ub_to_gm": Window.PLAIN,
    "ub_to_gm_boxes": Window.SCALE_BOXES,
}
"""The instructions that write into outputs."""


@dataclass(frozen=True)
class Store:
    """A store that a run executed: its window of an output, and where it comes from.

    Attributes:
        output: Name of the output.
        view: The output as the kernel looks at it, in elements of memory order.
        begin: Where the window begins, in elements of memory order.
        strides: Elements from row to row and from column to column of the window.
        rows: How many rows.
        cols: How many columns.
        unit: How many elements stand at each place of the window, one after the other.
        origin: The instruction and its line of source.
    """

    output: str
    view: View
    begin: int
    strides: tuple[int, int]
    rows: int
    cols: int
    unit: int
    origin: Origin

    def covers(self, position: int) -> bool:
        """Whether the element at a position of memory order lies in the window."""
        row_stride, col_stride = self.strides
        inside = position - self.begin
        if inside < 0:
            return False
        if row_stride >= col_stride:
            row, rest = divmod(inside, max(1, row_stride))
            col, odd = divmod(rest, max(1, col_stride))
        else:
            col, rest = divmod(inside, max(1, col_stride))
            row, odd = divmod(rest, max(1, row_stride))
        return odd < self.unit and row < self.rows and col < self.cols

    def mark(self, written: npt.NDArray[np.bool_]) -> None:
        """Set the elements of the window in `written`, which holds an output in memory order."""
        shape, strides = (self.rows, self.cols, self.unit), (*self.strides, 1)
        np.ndarray(shape, np.bool_, written, self.begin, strides)[...] = True  # a byte an element


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
        if any(store.unit != 1 or store.view.dims != shape for store in stores):
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
            view = kernel.views[each["view"]]
            output = outputs.get(buffers[view.param])
            if output is None:
                continue
            span = kernel.span(static)
            text = " ".join(format_instruction(each).split())
            origin = Origin(text, str(span) if span.is_known else None)
            for record in np.flatnonzero(part.stream.static == static):
                first, second = (int(v) for v in part.stream.registers[record][:2])
                for begin, strides, shape in pieces(each, view, first, second):
                    yield Store(output, view, begin, strides, *shape, origin)


def pieces(
    store: Instruction, view: View, first: int, second: int
) -> Iterator[tuple[int, tuple[int, int], tuple[int, int, int]]]:
    """Yield the parts of a store's window: begin, strides, and rows, columns and unit, as a Store has them.

    Args:
        store: The instruction.
        view: The output as the kernel looks at it.
        first: What its first register says, a row or a box.
        second: What the second one says, a column or a box.
    """
    along = view.strides
    match STORES[store.mnemonic]:
        case Window.PLAIN:
            begin = view.offset + first * along[0] + second * along[1]
            yield begin, (along[0], along[1]), (store["rows"], store["cols"], 1)
        case Window.SCALE_BOXES:
            begin = view.offset + first * along[1] + second * along[2]
            unit = BOX_ROWS * BOX_GROUPS
            yield begin, (along[1], along[2]), (store["ni"], store["nj"], unit)
        case Window.BOXES:
            wide = view.dims[4]
            whole, part = divmod(store["cols"], wide)
            for row in range(0, store["rows"], BOX_ROWS):
                begin = view.offset + first * along[1] + (second + row // BOX_ROWS) * along[2]
                rows = min(BOX_ROWS, store["rows"] - row)
                if whole:
                    yield begin, (along[1], along[3]), (whole, rows, wide)
                if part:
                    yield begin + whole * along[1], (along[1], along[3]), (1, rows, part)


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
