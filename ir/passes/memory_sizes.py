"""Which field of the machine record gives the size of each memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import MemorySpace

if TYPE_CHECKING:
    from ..target import Target

#: The machine's own name for each memory, and the field with its size.
MEMORIES: dict[MemorySpace, tuple[str, str]] = {
    MemorySpace.Vec: ("UB", "ub_bytes"),
    MemorySpace.Mat: ("L1", "l1_bytes"),
    MemorySpace.Left: ("L0A", "l0a_bytes"),
    MemorySpace.Right: ("L0B", "l0b_bytes"),
    MemorySpace.Acc: ("L0C", "l0c_bytes"),
    MemorySpace.Bias: ("the bias table", "bias_bytes"),
    MemorySpace.LeftScale: ("the left scale buffer", "scale_a_bytes"),
    MemorySpace.RightScale: ("the right scale buffer", "scale_b_bytes"),
}


def memory_bytes(target: Target, space: MemorySpace) -> int:
    """Return the size in bytes of a memory of the machine."""
    return getattr(target, MEMORIES[space][1])
