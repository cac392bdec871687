"""The scalar unit: registers, arithmetic and branches, run ahead of the pipes.

Nothing that a pipe does can change a register, so the whole instruction stream of a kernel follows
from its scalar arguments. It is resolved here once, into one record per instruction that reaches a
pipe; timing and execution then read the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ..ir.jit import compiled, inner
from .decode import ScalarOp
from .faultcodes import BUDGET, DIVISION, new_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from .decode import Decoded

    Line = npt.NDArray[np.int64]
    Table = npt.NDArray[np.int64]

REGISTERS: Final = 32
DEFAULT_MAX_INSTRUCTIONS: Final = 1 << 24
_FIRST_CHUNK: Final = 1 << 12
_LARGEST_CHUNK: Final = 1 << 20

_PC, _EXECUTED, _CYCLES, _STATE, _CURSOR_WORDS = 0, 1, 2, 3, 4
_RUNNING, _HALTED, _FAULTED = 0, 1, 2

_ISSUE, _HALT, _MOVI, _LDPARAM = (
    int(op) for op in (ScalarOp.ISSUE, ScalarOp.HALT, ScalarOp.MOVI, ScalarOp.LDPARAM)
)
_JUMP, _BEQZ, _BNEZ, _BLT = (
    int(op) for op in (ScalarOp.JUMP, ScalarOp.BEQZ, ScalarOp.BNEZ, ScalarOp.BLT)
)
_ADD, _SUB, _MUL, _DIV, _MOD, _MIN, _MAX = (
    int(op)
    for op in (
        ScalarOp.ADD,
        ScalarOp.SUB,
        ScalarOp.MUL,
        ScalarOp.FLOORDIV,
        ScalarOp.FLOORMOD,
        ScalarOp.MIN,
        ScalarOp.MAX,
    )
)
_AND, _OR, _XOR, _SHL, _SHR = (
    int(op) for op in (ScalarOp.AND, ScalarOp.OR, ScalarOp.XOR, ScalarOp.SHL, ScalarOp.SHR)
)
_EQ, _NE, _LT, _LE, _GT = (
    int(op)
    for op in (ScalarOp.CMPEQ, ScalarOp.CMPNE, ScalarOp.CMPLT, ScalarOp.CMPLE, ScalarOp.CMPGT)
)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The instructions of one run that reach a pipe, in program order; d of them.

    Attributes:
        static: Index of the instruction in the kernel, int64 [d].
        gap: Scalar cycles from the previous record to this one, its own issue included, int64 [d].
        registers: Values of the two register operands, int64 [d, 2].
        tail: Scalar cycles after the last record.
        executed: Instructions executed in all, scalar ones included.
        reached: Which instructions of the kernel were executed at all, bool [n].
    """

    static: Line
    gap: Line
    registers: Table
    tail: int
    executed: int
    reached: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.static)


class ScalarFault(Exception):  # noqa: N818 - turned into a SimulationFault by who knows the kernel
    """Carries the fault record of a scalar instruction."""

    def __init__(self, record: Line) -> None:
        super().__init__()
        self.record = record


def resolve(
    decoded: Decoded,
    arguments: Sequence[int],
    *,
    block: int = 0,
    blocks: int = 1,
    scalar_cycles: int = 1,
    branch_cycles: int = 2,
    max_instructions: int = DEFAULT_MAX_INSTRUCTIONS,
) -> Stream:
    """Run the scalar unit through a kernel.

    Args:
        decoded: The kernel.
        arguments: Signed 64-bit scalar arguments, in order.
        block: Number of the block that runs.
        blocks: Blocks of its grid.
        scalar_cycles: Cycles of an instruction.
        branch_cycles: Cycles of a taken branch.
        max_instructions: Executed instructions allowed.

    Raises:
        ScalarFault: For a division by zero or when the allowance is used up.
    """
    registers = np.zeros(REGISTERS, np.int64)
    cursor = np.zeros(_CURSOR_WORDS, np.int64)
    params = np.array([*arguments, block, blocks], np.int64)
    costs = np.array([scalar_cycles, branch_cycles, max_instructions], np.int64)
    reached = np.zeros(len(decoded), np.bool_)
    fault = new_fault()
    chunks: list[Table] = []
    size = _FIRST_CHUNK
    while cursor[_STATE] == _RUNNING:
        chunk = np.empty((size, 4), np.int64)
        used = run_scalar(decoded.scalar, params, costs, registers, cursor, reached, chunk, fault)
        chunks.append(chunk[:used])
        size = min(size * 4, _LARGEST_CHUNK)
    if cursor[_STATE] == _FAULTED:
        raise ScalarFault(fault)
    records = np.concatenate(chunks)
    return Stream(
        np.ascontiguousarray(records[:, 0]),
        np.ascontiguousarray(records[:, 1]),
        np.ascontiguousarray(records[:, 2:]),
        int(cursor[_CYCLES]),
        int(cursor[_EXECUTED]),
        reached,
    )


@compiled
def run_scalar(
    code: Table,
    params: Line,
    costs: Line,
    registers: Line,
    cursor: Line,
    reached: npt.NDArray[np.bool_],
    out: Table,
    fault: Line,
) -> int:
    """Execute until `out` is full, the kernel halts or a fault; return the records written.

    All state stands in `registers` and `cursor`, so the next call goes on where this one ended.
    What it reaches is marked in `reached`.
    """
    scalar_cycles, branch_cycles, limit = costs[0], costs[1], costs[2]
    pc, executed, cycles = cursor[_PC], cursor[_EXECUTED], cursor[_CYCLES]
    state, used = _RUNNING, 0
    while state == _RUNNING and used < out.shape[0]:
        if executed == limit:
            fault[0], fault[1], fault[2] = BUDGET, pc, executed
            state = _FAULTED
            break
        executed += 1
        reached[pc] = True
        op, target, left, right, number = code[pc]
        a = int(registers[left]) if left >= 0 else 0
        b = int(registers[right]) if right >= 0 else int(number)
        taken = False
        if op == _ISSUE:
            out[used, 0], out[used, 1] = pc, cycles + scalar_cycles
            out[used, 2], out[used, 3] = a, b
            used += 1
            cycles = -scalar_cycles
        elif op >= _ADD:
            if op in (_DIV, _MOD) and b == 0:
                fault[0], fault[1] = DIVISION, pc
                state = _FAULTED
                break
            registers[target] = _arithmetic(op, a, b)
        elif op == _MOVI:
            registers[target] = number
        elif op == _LDPARAM:
            registers[target] = params[number]
        elif op == _HALT:
            state = _HALTED
        elif op == _JUMP:
            taken = True
        elif op == _BEQZ:
            taken = a == 0
        elif op == _BNEZ:
            taken = a != 0
        elif op == _BLT:
            taken = a < b
        cycles += branch_cycles if taken else scalar_cycles
        pc += number if taken else 1
    cursor[_PC], cursor[_EXECUTED], cursor[_CYCLES], cursor[_STATE] = pc, executed, cycles, state
    return used


@inner
def _arithmetic(op: int, a: int, b: int) -> int:
    """Return `a op b`, wrapped to 64 bits; the divisor is not zero."""
    if op == _ADD:
        return a + b
    if op == _SUB:
        return a - b
    if op == _MUL:
        return a * b
    if op == _DIV:
        return -a if b == -1 else a // b
    if op == _MOD:
        return 0 if b == -1 else a % b
    if op == _MIN:
        return min(a, b)
    if op == _MAX:
        return max(a, b)
    if op == _AND:
        return a & b
    if op == _OR:
        return a | b
    if op == _XOR:
        return a ^ b
    if op == _SHL:
        return a << (b & 63)
    if op == _SHR:
        return a >> (b & 63)
    if op == _EQ:
        return int(a == b)
    if op == _NE:
        return int(a != b)
    if op == _LT:
        return int(a < b)
    if op == _LE:
        return int(a <= b)
    if op == _GT:
        return int(a > b)
    return int(a >= b)
