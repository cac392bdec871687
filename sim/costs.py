"""What an instruction moves and how long it keeps its pipe: one closed form per timing class.

Everything that has a number comes from the machine record. Times are whole cycles, rounded up once
at the end of each formula.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

import numpy as np

from ..codegen.isa.vocabulary import (
    Convert,
    ElementType,
    FixConvert,
    PlainType,
    Space,
    TimingClass,
)
from ..ir.dtypes.boxes import BOX_BYTES
from ..ir.errors import ExecutableError
from .scales.supply import starved_cycles
from .vector.costs import vector_cycles
from .windows import window_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..codegen.executable import Kernel
    from ..codegen.isa.program import Instruction
    from ..ir.target import Target

    Line = npt.NDArray[np.int64]

CUBE: Final = 16
"""Rows and columns of the result that a cube step works on."""

OPERAND_BOX_BYTES: Final = 512
"""A box of 16 rows by 32 bytes."""

_MADS: Final = (TimingClass.MAD, TimingClass.PLAIN_MAD)


def mad_cycles(target: Target, *, m: int, k: int, n: int, bits: int) -> int:
    """Return the cycles of an m x k x n mad on operands of `bits` bits.

    They are head, steps, and the cycles in which a step waits for its scales.
    """
    starved = mad_starved_cycles(target, m=m, k=k, n=n, bits=bits)
    return target.mad_head_cycles + mad_steps(target, m=m, k=k, n=n, bits=bits) + starved


def mad_steps(target: Target, *, m: int, k: int, n: int, bits: int) -> int:
    """Return the cube steps of an m x k x n mad, one a cycle."""
    return ceil(m / CUBE) * ceil(n / CUBE) * ceil(k / target.mad_k_elements(bits))


def mad_starved_cycles(target: Target, *, m: int, k: int, n: int, bits: int) -> int:
    """Return the cycles of a mad in which the cube waits for scales; none with a wide beat."""
    tiles = ceil(m / CUBE) * ceil(n / CUBE)
    return starved_cycles(target, tiles=tiles, k=k, bits=bits)


def plain_mad_cycles(target: Target, *, m: int, k: int, n: int, bits: int) -> int:
    """Return the cycles of an m x k x n mad without scales on operands of `bits` bits."""
    return target.mad_head_cycles + plain_mad_steps(target, m=m, k=k, n=n, bits=bits)


def plain_mad_steps(target: Target, *, m: int, k: int, n: int, bits: int) -> int:
    """Return the cube steps of an m x k x n mad without scales, one a cycle, in all passes."""
    depth, passes = target.mad_8bit_k_elements, 1
    if bits == PlainType.FP16.bits:
        depth = target.mad_16bit_k_elements
    elif bits == PlainType.FP32.bits:
        depth, passes = target.mad_32bit_k_elements, target.mad_32bit_passes
    return passes * ceil(m / CUBE) * ceil(n / CUBE) * ceil(k / depth)


def gm_load_cycles(target: Target, *, size_bytes: int, rows: int) -> int:
    """Return how long a load keeps the GM port; its latency comes on top, and overlaps.

    A store from UB keeps it as long.

    Args:
        target: The machine.
        size_bytes: Bytes of the window.
        rows: Its runs of bytes that follow one another in GM (`Window.runs`).
    """
    return ceil(gm_transfer_time(target, size_bytes=size_bytes, rows=rows))


def gm_transfer_time(target: Target, *, size_bytes: int, rows: int) -> float:
    """Return the same before it is rounded up: the bytes at the port, and what their rows take."""
    return size_bytes / target.gm_port_bytes_per_cycle + rows * target.gm_row_cycles


def l1_load_cycles(target: Target, *, size_bytes: int, to: Space) -> int:
    """Return the cycles of a transfer from L1 into the buffer `to` beside the cube."""
    return ceil(target.mte1_instruction_cycles + size_bytes / l1_rate(target, to))


def l1_rate(target: Target, to: Space) -> float:
    """Return the bytes a cycle from L1 into the buffer `to` beside the cube."""
    match to:
        case Space.L0A:
            return target.l1_to_l0a_bytes_per_cycle
        case Space.L0B:
            return target.l1_to_l0b_bytes_per_cycle
        case Space.BIAS | Space.FIXP:
            return target.l1_to_bias_bytes_per_cycle
        case _:
            return target.l1_to_scale_bytes_per_cycle


def drain_cycles(target: Target, *, rows: int, cols: int) -> int:
    """Return the cycles of a store of rows x cols FP32 numbers from L0C.

    Rows that do not count a power of two of the units in which they are aligned take longer.
    """
    units = ceil(4 * cols / target.drain_c0_bytes)
    odd = units // (units & -units)
    row = drain_row_cycles(target, cols=cols) + target.drain_misalignment_cycles * (odd - 1)
    return ceil(target.drain_fixed_cycles + rows * row)


def drain_row_cycles(target: Target, *, cols: int) -> float:
    """Return the cycles of an aligned row: its least time or that of its bytes, the longer one."""
    return max(target.drain_row_cycles, 4 * cols / target.drain_bytes_per_cycle)


def launch_cycles(target: Target) -> int:
    """Return the cycles from the host's call to the first instruction."""
    return ceil(target.launch_seconds * target.clock_hz)


def occupancy(kernel: Kernel, target: Target) -> Line:
    """Return how long each instruction keeps its pipe, cycles, int64 [n]; 0 for flags and barriers.

    Raises:
        ExecutableError: If a mad multiplies a pair of types that the machine does not.
    """
    return np.array(
        [_cycles(kernel, index, target) for index in range(len(kernel.program))], np.int64
    )


def starved(kernel: Kernel, target: Target) -> Line:
    """Return the cycles that each instruction waits for scales, part of its occupancy, int64 [n]."""
    return np.array(
        [
            mad_starved_cycles(
                target, m=each["m"], k=each["k"], n=each["n"], bits=ElementType(each["a_type"]).bits
            )
            if each.row.timing is TimingClass.MAD
            else 0
            for each in kernel.program
        ],
        np.int64,
    )


def moved_bytes(kernel: Kernel) -> Line:
    """Return the bytes that each instruction moves, int64 [n]; 0 for what moves none."""
    return np.array([_bytes(kernel, instruction) for instruction in kernel.program], np.int64)


def macs(kernel: Kernel) -> Line:
    """Return the multiplications of each instruction, int64 [n]; those of a mad are m · k · n."""
    return np.array(
        [
            each["m"] * each["k"] * each["n"] if each.row.timing in _MADS else 0
            for each in kernel.program
        ],
        np.int64,
    )


def path_of(instruction: Instruction) -> str | None:
    """Return from where to where an instruction moves bytes, as "L1->L0A", or None."""
    row = instruction.row
    if row.timing in (*_MADS, TimingClass.VECTOR) or not row.writes or not row.reads:
        return None
    return f"{row.reads[0].name}->{row.writes[0].name}"


def _cycles(kernel: Kernel, index: int, target: Target) -> int:
    each = kernel.program[index]
    size = _bytes(kernel, each)
    match each.row.timing:
        case TimingClass.GM_LOAD | TimingClass.UB_STORE:
            rows = window_of(each, kernel.views[each["view"]]).runs
            return gm_load_cycles(target, size_bytes=size, rows=rows)
        case (
            TimingClass.L0A_LOAD
            | TimingClass.L0B_LOAD
            | TimingClass.SCALE_LOAD
            | TimingClass.BIAS_LOAD
        ):
            return l1_load_cycles(target, size_bytes=size, to=each.row.writes[0])
        case TimingClass.MAD:
            bits = _checked_pair(kernel, index, target)
            return mad_cycles(target, m=each["m"], k=each["k"], n=each["n"], bits=bits)
        case TimingClass.PLAIN_MAD:
            bits = PlainType(each["a_type"]).bits
            return plain_mad_cycles(target, m=each["m"], k=each["k"], n=each["n"], bits=bits)
        case TimingClass.DRAIN:
            return drain_cycles(target, rows=each["rows"], cols=each["cols"])
        case TimingClass.L1_FILL:
            return ceil(size / target.l1_fill_bytes_per_cycle)
        case TimingClass.UB_TO_L1:
            return ceil(size / target.ub_to_l1_bytes_per_cycle)
        case TimingClass.VECTOR:
            return vector_cycles(target, each)
        case TimingClass.SCALAR | TimingClass.BRANCH | TimingClass.FLAG | TimingClass.BARRIER:
            return 0


def _bytes(kernel: Kernel, each: Instruction) -> int:
    match each.row.timing:
        case TimingClass.UB_TO_L1 | TimingClass.L1_FILL if each.row.has("units"):
            return each["lines"] * each["units"] * BOX_BYTES
        case TimingClass.UB_TO_L1:
            return each["rows"] * each["cols"] * each["bits"] // 8
        case TimingClass.GM_LOAD | TimingClass.UB_STORE:
            return window_of(each, kernel.views[each["view"]]).size_bytes
        case TimingClass.L0A_LOAD if each.row.has("units"):
            return each["units"] * BOX_BYTES
        case TimingClass.L0A_LOAD | TimingClass.L0B_LOAD if each.row.has("row_boxes"):
            return each["row_boxes"] * each["col_boxes"] * OPERAND_BOX_BYTES
        case TimingClass.L0A_LOAD | TimingClass.L0B_LOAD:
            along_k = ceil(each["k"] * each["bits"] / 256)
            across = each["n" if each.row.has("n") else "m"]
            return along_k * ceil(across / CUBE) * OPERAND_BOX_BYTES
        case TimingClass.SCALE_LOAD if each.row.has("groups"):
            return each["groups"]
        case TimingClass.SCALE_LOAD:
            return each["row_boxes"] * each["col_boxes"] * BOX_BYTES
        case TimingClass.BIAS_LOAD:
            return each["bytes"]
        case TimingClass.DRAIN if each.row.has("relu"):
            return each["rows"] * each["cols"] * FixConvert(each["convert"]).bits // 8
        case TimingClass.DRAIN:
            return each["rows"] * each["cols"] * Convert(each["convert"]).bits // 8
        case _:
            return 0


def _checked_pair(kernel: Kernel, index: int, target: Target) -> int:
    """Return the width of a mad's elements, in bits."""
    each = kernel.program[index]
    a_type, b_type = ElementType(each["a_type"]), ElementType(each["b_type"])
    if (a_type.name, b_type.name) in target.mad_pairs:
        return a_type.bits
    pairs = ", ".join(f"{a} x {b}" for a, b in target.mad_pairs)
    message = (
        f"Instruction {index} (mad_mx) of kernel {kernel.name!r} must multiply a pair of types "
        f"that the machine {target.name!r} has, not {a_type.name} x {b_type.name}."
    )
    raise ExecutableError(message, kernel.span(index), hint=f"valid here: {pairs}")
