"""The cube without scales.

The jitted loop checks bounds by `plain_mad_ok`, in the form of `kernels`; the rest works on whole tiles
in numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.vocabulary import MadInit, PlainType, VectorType
from ...ir.jit import inner
from ...ir.numerics.plain_matmul import matmul_plain
from ..faultcodes import UNWRITTEN
from ..vector.plan import DTYPES
from ..vector.tiles import first_hole
from .kernels import REPORT, SPACE, Memory, local_ok
from .l0 import BIAS_INIT, load_accumulator, load_bias, store_tile

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...ir.dtypes import SimpleDType
    from ...ir.numerics.elements import Summation

    Codes = npt.NDArray[np.unsignedinteger[Any]]
    Bytes = npt.NDArray[np.uint8]
    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_OPERAND_BYTES: Final = np.array([each.bits // 8 for each in PlainType])
_SEGMENT: Final = 32
_CUBE: Final = 16


@inner
def plain_mad_ok(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Return whether all that a `mad` touches lies inside its memories; see `kernels`."""
    c, a, b, bias, m, k, n = op[0], op[1], op[2], op[3], op[4], op[5], op[6]
    width = _OPERAND_BYTES[op[7]]
    boxes_m, boxes_n, boxes_k = -(-m // _CUBE), -(-n // _CUBE), -(-k * width // _SEGMENT)
    if op[9] == BIAS_INIT and not local_ok(memory, SPACE.bias, bias, n * 4, fault):
        return False
    return (
        local_ok(memory, SPACE.l0a, a, boxes_m * boxes_k * 512, fault)
        and local_ok(memory, SPACE.l0b, b, boxes_n * boxes_k * 512, fault)
        and local_ok(memory, SPACE.l0c, c, boxes_m * boxes_n * 1024, fault)
    )


def mad(memory: Memory, op: Line, order: Summation, fault: Line, mode: int) -> bool:
    """Execute one `mad` whose bounds have been checked.

    Args:
        memory: The memories.
        op: Operands in the order of `actions.ACTIONS`.
        order: The order in which products meet the accumulator.
        fault: Receives the place of a never-written operand.
        mode: As for a kernel.
    """
    c, a_at, b_at, bias, m, k, n = (int(value) for value in op[:7])
    a_type, b_type, init = PlainType(int(op[7])), PlainType(int(op[8])), MadInit(int(op[9]))
    report = mode >= REPORT
    a = _read(memory, SPACE.l0a, a_at, a_type.bits // 8, -(-m // _CUBE), (m, k), fault, report)
    b = _read(memory, SPACE.l0b, b_at, b_type.bits // 8, -(-n // _CUBE), (n, k), fault, report)
    start, good = np.zeros((m, n), np.uint32), True
    match init:
        case MadInit.ACC:
            tall = -(-m // _CUBE) * _CUBE
            good = load_accumulator(memory, c, tall, start, fault, report)
        case MadInit.BIAS:
            good = load_bias(memory, bias, start, fault, report)
        case MadInit.ZERO:
            pass
    if a is None or b is None or not good:
        return False
    result = matmul_plain(
        a, b.T, a_dtype=_dtype(a_type), b_dtype=_dtype(b_type), start=start, sum=order
    )
    store_tile(memory, c, np.ascontiguousarray(result))
    return True


def begun(op: Line, *, anew: bool) -> Line:
    """Return the operands of a `mad_if` as those of a `mad`, whose sums begin as a register says."""
    operands = op.copy()
    operands[9] = MadInit.ZERO if anew else MadInit.ACC
    return operands


def _dtype(kind: PlainType) -> SimpleDType:
    """Return what a type is; tiles in UB have a type of every such name."""
    return DTYPES[VectorType[kind.name]]


def _boxes(flat: Bytes, width: int, tall: int) -> Codes:
    """Return boxes of `tall` lines of 32 bytes as a matrix [tall, elements of `width` bytes]."""
    lines = flat.view(f"u{width}").reshape(-1, tall, _SEGMENT // width)
    return lines.transpose(1, 0, 2).reshape(tall, -1)


def _read(
    memory: Memory,
    space: int,
    address: int,
    width: int,
    boxes: int,
    shape: tuple[int, int],
    fault: Line,
    report: bool,
) -> Codes | None:
    """Return an operand [rows, k], or None and a fault for a never-written element."""
    rows, depth = shape
    tall, columns = boxes * _CUBE, -(-depth * width // _SEGMENT)
    first = int(memory.bases[space]) + address
    place = slice(first, first + columns * tall * _SEGMENT)
    if report:
        masks = _boxes(memory.written[place], width, tall)[:rows, :depth]
        hole = first_hole(masks)
        if hole is not None:
            row, k = hole
            column, inside = divmod(k, _SEGMENT // width)
            fault[0], fault[1], fault[3], fault[4] = UNWRITTEN, space, row, k
            fault[2] = address + (column * tall + row) * _SEGMENT + inside * width
            return None
    return _boxes(memory.local[place], width, tall)[:rows, :depth]
