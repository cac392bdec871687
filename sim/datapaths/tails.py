"""The datapaths of operands that do not fill their boxes, in the form of `kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.jit import inner
from .kernels import CHECK, SPACE, UNIT, Memory, clear, copy_local, local_ok

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]


@inner
def l1_fill(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Set lines of L1 to zero."""
    address, lines, size, pitch = op[0], op[1], op[2] * UNIT, op[3] * UNIT
    if not local_ok(memory, SPACE.l1, address, (lines - 1) * pitch + size, fault):
        return False
    if mode == CHECK:
        return True
    first = memory.bases[SPACE.l1] + address
    for line in range(lines):
        clear(memory, first + line * pitch, size, mode)
    return True


@inner
def l1_to_l0a_row(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy one row from L1 into the first lines of boxes in L0A."""
    source, target, units = op[0] + r0 * UNIT, op[1], op[2]
    if not local_ok(memory, SPACE.l1, source, units * UNIT, fault):
        return False
    if not local_ok(memory, SPACE.l0a, target, (units - 1) * 512 + UNIT, fault):
        return False
    if mode == CHECK:
        return True
    source += memory.bases[SPACE.l1]
    target += memory.bases[SPACE.l0a]
    for unit in range(units):
        copy_local(memory, source + unit * UNIT, target + unit * 512, UNIT, mode)
    return True


@inner
def l1_to_scale_row(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Copy the scales of one row from L1 into the first rows of scale boxes."""
    source, target, groups = op[0] + r0 * UNIT, op[1], op[2]
    if not local_ok(memory, SPACE.l1, source, groups, fault):
        return False
    size = (groups - 1) // 2 * UNIT + (groups - 1) % 2 + 1
    if not local_ok(memory, SPACE.scale_a, target, size, fault):
        return False
    if mode == CHECK:
        return True
    source += memory.bases[SPACE.l1]
    target += memory.bases[SPACE.scale_a]
    for group in range(groups):
        copy_local(memory, source + group, target + group // 2 * UNIT + group % 2, 1, mode)
    return True
