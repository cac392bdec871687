"""The box streams of a run: what the scale-decode unit consumed in every mad, and how it went.

A stream is small beside the wires that it stands for. A mad is its start word and the boxes that it
found in the scale buffers, each once however often the unit asked for it, and the same boxes are kept
once however many mads found them. The handshakes of a mad follow from its start word, so they are kept
once for all mads that are alike. Idle time between mads is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.scale_unit import request_order
from ...ir.dtypes.boxes import BOX_GROUPS
from .feed import Handshakes, Surroundings
from .wires import trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Bits = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]

CHUNK_CYCLES: Final = 1 << 15
"""About so many cycles are made into wires at a time."""

PLACES: Final = ("task", "instruction", "a_box", "b_box", "shape")
"""Columns of the mads: the task, the instruction of its kernel, where the boxes of either side begin,
tile by tile and block by block within each, and the shape."""

TASK, INSTRUCTION, A_BOX, B_BOX, SHAPE = range(len(PLACES))


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some mads of a stream as wires.

    Attributes:
        first_cycle: The cycles of the mads before it.
        trace: All wires, as `wires` has them.
    """

    first_cycle: int
    trace: dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class ScaleStream:
    """The box streams of a run.

    Attributes:
        around: What the unit stood among.
        shapes: The different start words, uint16 [shapes, fields].
        handshakes: What went over the wires in a mad of each shape.
        mads: int64 [mads, PLACES].
        a_boxes: Boxes of the left side, uint8 [boxes, BOX_BYTES].
        b_boxes: Boxes of the right side.
    """

    around: Surroundings
    shapes: npt.NDArray[np.uint16]
    handshakes: tuple[Handshakes, ...]
    mads: Line
    a_boxes: Bits
    b_boxes: Bits

    @property
    def mad_cycles(self) -> Line:
        """The cycles of every mad, int64 [mads]."""
        each: Line = np.array([len(known.given) for known in self.handshakes], np.int64)
        return each[self.mads[:, SHAPE]] if len(self.mads) else np.zeros(0, np.int64)

    @property
    def cycles(self) -> int:
        """The cycles of all mads."""
        return int(self.mad_cycles.sum())

    def chunks(self, *, cycles: int = CHUNK_CYCLES) -> Iterator[Chunk]:
        """Yield the wires of the mads, of a few at a time.

        Args:
            cycles: A chunk ends with the mad that brings it to so many.
        """
        of_mad = self.mad_cycles
        before: Line = np.cumsum(of_mad) - of_mad
        first = 0
        while first < len(of_mad):
            last = max(first + 1, int(np.searchsorted(before, int(before[first]) + cycles)))
            yield Chunk(int(before[first]), self._wires(first, last))
            first = last

    def mad_at(self, cycle: int) -> tuple[int, int]:
        """Return the number of the mad to which a cycle belongs, and the cycle since its start."""
        ends = np.cumsum(self.mad_cycles)
        mad = int(np.searchsorted(ends, cycle, side="right"))
        return mad, cycle - (int(ends[mad - 1]) if mad else 0)

    def _wires(self, first: int, last: int) -> dict[str, npt.NDArray[Any]]:
        lines = self.mads[first:last]
        shapes: list[int] = lines[:, SHAPE].tolist()
        known = [self.handshakes[shape] for shape in shapes]
        whole = Handshakes(
            np.concatenate([each.given for each in known]),
            np.concatenate([each.answered for each in known]),
            len(known),
        )
        orders = {shape: _order(self.shapes[shape]) for shape in set(shapes)}
        a_places = np.concatenate([line[A_BOX] + orders[line[SHAPE]][0] for line in lines.tolist()])
        b_places = np.concatenate([line[B_BOX] + orders[line[SHAPE]][1] for line in lines.tolist()])
        return trace_of(
            whole,
            self.shapes[lines[:, SHAPE]],
            self.a_boxes[a_places],
            self.b_boxes[b_places],
            beat_bytes=self.around.beat_bytes,
        )


def _order(shape: npt.NDArray[np.uint16]) -> tuple[Line, Line]:
    """Return the places of the boxes that a mad asks for among those of its sides, in order."""
    row_tiles, column_tiles, groups = (int(value) for value in shape[:3])
    asked = np.array(list(request_order(row_tiles, column_tiles, groups)), np.int64)
    blocks = -(-groups // BOX_GROUPS)
    return asked[:, 0] * blocks + asked[:, 2], asked[:, 1] * blocks + asked[:, 2]
