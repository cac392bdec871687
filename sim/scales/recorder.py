"""Keeping the boxes that the mads of a run find in the scale buffers."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from ...codegen.isa.scale_unit import START
from ...codegen.isa.vocabulary import ElementType
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS, GROUP
from ..datapaths.kernels import SPACE
from .feed import Surroundings, feed
from .stream import PLACES, ScaleStream

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...ir.target import Target
    from ..datapaths.kernels import Memory

    Bits = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]


class ScaleRecorder:
    """Keeps the boxes of the mads of a run.

    Args:
        target: The machine, for which a scale-decode unit must be built.
    """

    def __init__(self, target: Target) -> None:
        self.task = 0
        """Number of the task whose mads come next."""
        self._target = target
        self._mads = array("q")
        self._shapes: dict[tuple[int, ...], int] = {}
        self._sides = (_Boxes(), _Boxes())

    def add(self, memory: Memory, op: Line, instruction: int) -> None:
        """Keep the boxes that a mad finds in the scale buffers.

        Args:
            memory: The memories of the core.
            op: Operands of the mad in the order of `actions.ACTIONS`.
            instruction: Index of the mad in its kernel.
        """
        a, b, m, k, n = (int(op[place]) for place in (1, 2, 4, 5, 6))
        step = self._target.mad_k_elements(ElementType(int(op[7])).bits)
        rows, columns, groups = -(-m // BOX_ROWS), -(-n // BOX_ROWS), -(-k // GROUP)
        start = rows, columns, groups, int(step > GROUP)
        shape = self._shapes.setdefault(start, len(self._shapes))
        blocks = -(-groups // BOX_GROUPS)
        places = (
            side.keep(_scales(memory, space, address, tiles * blocks))
            for side, space, address, tiles in zip(
                self._sides, (SPACE.scale_a, SPACE.scale_b), (a, b), (rows, columns), strict=True
            )
        )
        self._mads.extend((self.task, instruction, *places, shape))

    def finish(self) -> ScaleStream:
        """Return what was kept."""
        around = Surroundings.of(self._target)
        shapes = np.array(list(self._shapes), np.uint16).reshape(-1, len(START))
        return ScaleStream(
            around,
            shapes,
            tuple(feed(shape[None], around) for shape in shapes),
            np.array(self._mads, np.int64).reshape(-1, len(PLACES)),
            *(side.boxes() for side in self._sides),
        )


class _Boxes:
    """Runs of boxes, each kept once."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._known: dict[bytes, int] = {}

    def keep(self, run: bytes) -> int:
        """Return the number of the first box of a run that is kept now or was before."""
        name = blake2b(run, digest_size=16).digest()
        place = self._known.get(name)
        if place is None:
            place = self._known[name] = len(self._bytes) // BOX_BYTES
            self._bytes += run
        return place

    def boxes(self) -> Bits:
        return np.frombuffer(bytes(self._bytes), np.uint8).reshape(-1, BOX_BYTES)


def _scales(memory: Memory, space: int, address: int, boxes: int) -> bytes:
    """Return boxes that stand in a scale buffer beside an operand at an L0 address."""
    begin = int(memory.bases[space]) + (address >> 4)
    return memory.local[begin : begin + boxes * BOX_BYTES].tobytes()
