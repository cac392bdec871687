"""The words of the instruction set: pipes, memory spaces and the enums that fields hold.

Every enum that stands in an instruction word is an `IntEnum` whose values are the encoding; in
assembler text its members appear by name, in lower case.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class Pipe(IntEnum):
    """An in-order pipe of a core; `ALL` stands for every pipe, in a barrier only."""

    S = 0
    V = 1
    M = 2
    MTE1 = 3
    MTE2 = 4
    MTE3 = 5
    FIX = 6
    ALL = 7


class Space(IntEnum):
    """A memory that instructions address in bytes, except `GM`, which views describe."""

    GM = 0
    L1 = 1
    L0A = 2
    L0B = 3
    L0C = 4
    BIAS = 5
    SCALE_A = 6
    SCALE_B = 7
    UB = 8


ADDRESS_BITS = {
    Space.L1: 24,
    Space.L0A: 18,
    Space.L0B: 18,
    Space.L0C: 20,
    Space.BIAS: 14,
    Space.SCALE_A: 14,
    Space.SCALE_B: 14,
    Space.UB: 20,
}
"""Width of a byte address per space: the largest memory that a machine file may describe."""

ADDRESS_MULTIPLE = {
    Space.L1: 32,
    Space.L0A: 512,
    Space.L0B: 512,
    Space.L0C: 32,
    Space.BIAS: 32,
    Space.SCALE_A: 32,
    Space.SCALE_B: 32,
    Space.UB: 32,
}
"""What a byte address is a multiple of; 512 in L0A and L0B keeps address >> 4 on a scale box."""


class ElementType(IntEnum):
    """The element type of a cube operand."""

    E4M3 = 0
    E5M2 = 1
    E2M1 = 2
    E1M2 = 3

    @property
    def bits(self) -> int:
        """Width of one element in bits."""
        return 8 if self in (ElementType.E4M3, ElementType.E5M2) else 4


class ElementBits(IntEnum):
    """The width of one element in bits; the encoding is the width."""

    B4 = 4
    B8 = 8


class MadInit(IntEnum):
    """What the accumulator starts from: +0, its own contents, or the bias row."""

    ZERO = 0
    ACC = 1
    BIAS = 2


class Convert(IntEnum):
    """The type that an FP32 accumulator is stored as, rounded to nearest even."""

    FP32 = 0
    BF16 = 1
    FP16 = 2


class FieldKind(Enum):
    """How a field's bits are read and how assembler text shows them."""

    REG = "reg"
    """A scalar register, x0 to x31."""
    IMM = "imm"
    """An unsigned number."""
    SIMM = "simm"
    """A signed number, two's complement."""
    ADDR = "addr"
    """An unsigned byte address in the field's space."""
    VIEW = "view"
    """An index into the kernel's table of views."""
    PARAM = "param"
    """An index among the kernel's scalar parameters."""
    ENUM = "enum"
    """A member of the field's enum."""
    TARGET = "target"
    """A signed distance in instructions from this instruction to the next one run."""


class Flow(Enum):
    """Which instruction the scalar unit takes next."""

    NEXT = "next"
    """The following one."""
    BRANCH = "branch"
    """The following one or the target."""
    JUMP = "jump"
    """The target."""
    HALT = "halt"
    """None; the kernel ends when the queues are empty."""


class TimingClass(Enum):
    """Which formula of the machine file gives an instruction's busy cycles."""

    SCALAR = "scalar"
    BRANCH = "branch"
    FLAG = "flag"
    BARRIER = "barrier"
    GM_LOAD = "gm_load"
    L0A_LOAD = "l0a_load"
    L0B_LOAD = "l0b_load"
    SCALE_LOAD = "scale_load"
    BIAS_LOAD = "bias_load"
    MAD = "mad"
    DRAIN = "drain"
