"""The fixpipe with its whole datapath: out of the accumulator, multiplied, through the ReLU, rounded.

The jitted loop checks bounds by the functions that end in `_ok`, in the form of `kernels`; the rest
works on whole tiles in numpy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.vocabulary import FixConvert, FixScale, Sums, VectorType
from ...ir.dtypes import BFloat16, DType, Float16
from ...ir.jit import inner
from ...ir.numerics.cast import CastMode, cast_codes
from ...ir.numerics.functions import Binary, Unary, binary, codes_of, unary
from ..faultcodes import UNWRITTEN
from ..vector.plan import DTYPES
from ..vector.tiles import WRITTEN
from .actions import UNSCALED, Action
from .drain import accumulator_ok
from .kernels import (
    BASE,
    BITS,
    DIMS,
    OFFSET,
    REPORT,
    SPACE,
    STRIDES,
    TRACK,
    UNIT,
    Memory,
    local_ok,
    window_ok,
)
from .l0 import load_accumulator

if TYPE_CHECKING:
    import numpy.typing as npt

    Codes = npt.NDArray[np.unsignedinteger[Any]]
    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

_STORED_BYTES: Final = np.array([each.bits // 8 for each in FixConvert])
_BOX_ROWS: Final = 16
_BOX_BYTES: Final = 512
_COLUMNS: Final = int(FixScale.COLUMNS)
_NUMBER_BYTES: Final = 4
_NUMBER_MASK: Final = 0xFFFFFFFF


@inner
def _sums_ok(memory: Memory, op: Line, fault: Line) -> bool:
    """Return whether the sums, and the numbers of their columns, lie inside their memories."""
    if op[7] == _COLUMNS and not local_ok(memory, SPACE.fixp, op[8], op[3] * 4, fault):
        return False
    return accumulator_ok(memory, op[1], op[2], op[3], op[4], fault)


@inner
def fix_to_gm_ok(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Return whether a window and an accumulator tile lie inside their memories; see `kernels`."""
    view = views[op[0]]
    if not (window_ok(view, 0, r0, op[2], fault) and window_ok(view, 1, r1, op[3], fault)):
        return False
    return _sums_ok(memory, op, fault)


@inner
def fix_to_nz_ok(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Return whether a window of boxes and an accumulator tile lie inside their memories."""
    view = views[op[0]]
    columns, rows = -(-op[3] // view[DIMS + 4]), -(-op[2] // _BOX_ROWS)
    if not (window_ok(view, 1, r0, columns, fault) and window_ok(view, 2, r1, rows, fault)):
        return False
    return _sums_ok(memory, op, fault)


@inner
def fix_to_ub_ok(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Return whether a tile in UB and an accumulator tile lie inside their memories."""
    size = (op[2] - 1) * op[12] * UNIT + op[3] * _STORED_BYTES[op[5]]
    return local_ok(memory, SPACE.ub, op[0], size, fault) and _sums_ok(memory, op, fault)


@inner
def fix_to_l1_ok(
    memory: Memory, views: Table, op: Line, r0: int, r1: int, fault: Line, mode: int
) -> bool:
    """Return whether boxes in L1 and an accumulator tile lie inside their memories."""
    columns = -(-op[3] * _STORED_BYTES[op[5]] // UNIT)
    size = (columns - 1) * op[11] * _BOX_BYTES + op[2] * UNIT
    return local_ok(memory, SPACE.l1, op[0], size, fault) and _sums_ok(memory, op, fault)


def store(
    memory: Memory,
    views: Table,
    action: Action,
    op: Line,
    registers: tuple[int, int],
    fault: Line,
    mode: int,
) -> bool:
    """Store accumulator elements, converted, to where an action says; bounds have been checked.

    Args:
        memory: The memories.
        views: The bound views.
        action: One of the `FIX_TO_` actions.
        op: Operands in the order of `actions.ACTIONS`.
        registers: Where the window begins in a view; elsewhere the first one has the number that
            sums are multiplied by, an FP32 code in its low bits.
        fault: Receives the place of a never-written element.
        mode: As for a kernel.

    Returns:
        Whether it was done; not where something that is read was never written.
    """
    if action not in (Action.FIX_TO_GM, Action.FIX_TO_NZ):
        op = op.copy()
        op[10] = registers[0] & _NUMBER_MASK
    codes = _converted(memory, op, fault, report=mode >= REPORT)
    if codes is None:
        return False
    match action:
        case Action.FIX_TO_GM:
            _to_gm(memory, views[op[0]].tolist(), codes, *registers, mode)
        case Action.FIX_TO_NZ:
            _to_nz(memory, views[op[0]].tolist(), codes, *registers, mode)
        case Action.FIX_TO_UB:
            _to_ub(memory, op, codes, mode)
        case _:
            _to_l1(memory, op, codes, mode)
    return True


def _to_gm(memory: Memory, view: list[int], codes: Codes, r0: int, r1: int, mode: int) -> None:
    """Write codes to a window of a view."""
    width = view[BITS] // 8
    strides = view[STRIDES] * width, view[STRIDES + 1] * width
    first = view[BASE] + view[OFFSET] * width + r0 * strides[0] + r1 * strides[1]
    _put_gm(memory, codes, first, strides, mode)


def _to_nz(memory: Memory, view: list[int], codes: Codes, r0: int, r1: int, mode: int) -> None:
    """Write codes to boxes of a view."""
    width, wide = view[BITS] // 8, view[DIMS + 4]
    across, down = view[STRIDES + 1] * width, view[STRIDES + 2] * width
    first = view[BASE] + view[OFFSET] * width + r0 * across + r1 * down
    for column in range(0, codes.shape[1], wide):
        for row in range(0, codes.shape[0], _BOX_ROWS):
            box = codes[row : row + _BOX_ROWS, column : column + wide]
            at = first + column // wide * across + row // _BOX_ROWS * down
            _put_gm(memory, box, at, (wide * width, width), mode)


def _to_ub(memory: Memory, op: Line, codes: Codes, mode: int) -> None:
    """Write codes to a tile in UB."""
    width = codes.dtype.itemsize
    first = int(memory.bases[SPACE.ub + int(op[11])]) + int(op[0])
    strides = int(op[12]) * UNIT, width
    np.ndarray(codes.shape, codes.dtype, memory.local, first, strides)[:] = codes
    if mode >= TRACK:
        masks = np.ndarray(codes.shape, codes.dtype, memory.written, first, strides)
        masks[:] = WRITTEN[width]


def _to_l1(memory: Memory, op: Line, codes: Codes, mode: int) -> None:
    """Write codes to boxes in L1."""
    rows, cols = codes.shape
    wide = UNIT // codes.dtype.itemsize
    columns = -(-cols // wide)
    whole = np.zeros((rows, columns * wide), codes.dtype)
    whole[:, :cols] = codes
    lines = whole.view(np.uint8).reshape(rows, columns, UNIT).transpose(1, 0, 2)
    first = int(memory.bases[SPACE.l1]) + int(op[0])
    strides = int(op[11]) * _BOX_BYTES, UNIT, 1
    np.ndarray(lines.shape, np.uint8, memory.local, first, strides)[:] = lines
    if mode >= TRACK:
        np.ndarray(lines.shape, np.uint8, memory.written, first, strides)[:] = WRITTEN[1]


def _put_gm(memory: Memory, codes: Codes, first: int, strides: tuple[int, int], mode: int) -> None:
    """Write codes to GM, from byte `first` on, `strides` bytes apart along either axis."""
    kind, shape = codes.dtype, codes.shape
    np.ndarray(shape, kind, memory.gm, first, strides)[:] = codes
    hidden = first - memory.gm_written_base
    if mode >= TRACK and 0 <= hidden < len(memory.gm_written):
        masks = np.ndarray(shape, kind, memory.gm_written, hidden, strides)
        masks[:] = WRITTEN[kind.itemsize]


def _converted(memory: Memory, op: Line, fault: Line, *, report: bool) -> Codes | None:
    """Return codes [rows, cols] of the converted type, or None and a fault."""
    rows, cols, boxes, convert = int(op[2]), int(op[3]), int(op[4]), FixConvert(int(op[5]))
    words = np.empty((rows, cols), np.uint32)
    if not load_accumulator(memory, int(op[1]), boxes * _BOX_ROWS, words, fault, report):
        return None
    if convert is FixConvert.INT32:
        return words
    factor = _factor(memory, op, fault, report=report)
    if factor is None:
        return None
    if op[9] == Sums.INT32:
        words = words.view(np.int32).astype(np.float32).view(np.uint32)
    if factor.shape != (1,) or factor[0] != UNSCALED:
        made = binary(Binary.MUL, words, factor, DType.Float32)
        words = made.astype(np.uint32)
    if op[6]:
        words = unary(Unary.RELU, words, DType.Float32).astype(np.uint32)
    match convert:
        case FixConvert.FP32:
            return codes_of(words.view(np.float32), DType.Float32)
        case FixConvert.BF16:
            return codes_of(words.view(np.float32), BFloat16)
        case FixConvert.FP16:
            return codes_of(words.view(np.float32), Float16)
        case _:
            dtype = DTYPES[VectorType[convert.name]]
            return cast_codes(words, DType.Float32, dtype, CastMode.rint)


def _factor(
    memory: Memory, op: Line, fault: Line, *, report: bool
) -> npt.NDArray[np.uint32] | None:
    """Return the FP32 codes that the sums are multiplied by, [1] or [cols], or None and a fault."""
    match FixScale(int(op[7])):
        case FixScale.NONE:
            return np.array([UNSCALED], np.uint32)
        case FixScale.NUMBER:
            return np.array([op[10]], np.uint32)
        case FixScale.COLUMNS:
            first, size = int(memory.bases[SPACE.fixp]) + int(op[8]), int(op[3]) * _NUMBER_BYTES
            holes = np.flatnonzero(memory.written[first : first + size] != WRITTEN[1])
            if report and holes.size:
                at = int(holes[0]) // _NUMBER_BYTES
                fault[0], fault[1], fault[2] = UNWRITTEN, SPACE.fixp, op[8] + at * _NUMBER_BYTES
                fault[3], fault[4] = 0, at
                return None
            return memory.local[first : first + size].view(np.uint32)
