"""What tensors and tiles are while a program runs on numpy.

A tensor is a buffer of codes in memory order and a way to look at it; two views of one buffer share
their bytes. A tile is the codes of its valid region, in logical order: what stands beyond does not
exist here, so it can never matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..placement import Positions, axis_positions, code_type
from ..types import TensorLayout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from ..dtypes import DType
    from ..expr import Call, Type
    from ..types import Dims
    from .row import CallSite


@dataclass(frozen=True, eq=False)
class TensorValue:
    """A tensor in global memory.

    Attributes:
        buffer: Codes in memory order, one item an element, shared by all views.
        dtype: What the codes mean.
        shape: Extents.
        layout: Order of the elements in `buffer`.
        stride: Strides in elements; empty for a packed tensor.
    """

    buffer: npt.NDArray[Any]
    dtype: DType
    shape: tuple[int, ...]
    layout: TensorLayout = TensorLayout.ND
    stride: tuple[int, ...] = ()

    @property
    def positions(self) -> Positions:
        """What each coordinate of each axis adds to an element's place in `buffer`."""
        return axis_positions(self.layout, self.shape, self.stride, bits=self.dtype.bits)


@dataclass(frozen=True, eq=False)
class TileValue:
    """The valid region of a tile in on-chip memory, in logical order.

    Floating accumulators (Float32) are codes too: uint32 bit patterns.
    """

    codes: npt.NDArray[Any]
    dtype: DType

    @property
    def floats(self) -> npt.NDArray[np.float32]:
        """The values of a Float32 tile."""
        return self.codes.view(np.float32)


#: The TASK_ID that names no launch.
NO_TASK = 0


@dataclass
class Progress:
    """Where a running program stands.

    Attributes:
        block: Which block of the grid runs.
        blocks: How many blocks the grid has.
        tasks: How many launches got a TASK_ID; they are numbered from 1.
    """

    block: int = 0
    blocks: int = 1
    tasks: int = NO_TASK

    def new_task(self) -> int:
        """Return the TASK_ID of one more launch."""
        self.tasks += 1
        return self.tasks


@dataclass(frozen=True)
class Evaluation:
    """A call that is being run, as the meanings see it.

    Attributes:
        site: Where errors are told; `site.kwargs` are the call's attributes.
        call: The call.
        extents: Turns dimensions into integers, with the values that variables have now.
        sum: The order of summation, `"group"` or `"sequential"`.
        progress: Where the program stands.
    """

    site: CallSite
    call: Call
    extents: Callable[[Dims], tuple[int, ...]]
    sum: str
    progress: Progress = field(default_factory=Progress)

    @property
    def result_type(self) -> Type:
        """The type of the call's result."""
        return self.call.type


def empty_buffer(shape: Sequence[int], dtype: DType) -> npt.NDArray[Any]:
    """Return a buffer of zero bytes for a packed tensor."""
    count = 1
    for dim in shape:
        count *= dim
    return np.zeros(count, dtype=code_type(dtype))
