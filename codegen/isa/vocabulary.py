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
    """A memory that instructions address in bytes, except `GM`, which views describe.

    `FIXP` holds the parameters of the fixpipe: one FP32 number a column.
    """

    GM = 0
    L1 = 1
    L0A = 2
    L0B = 3
    L0C = 4
    BIAS = 5
    SCALE_A = 6
    SCALE_B = 7
    FIXP = 8
    UB = 9


ADDRESS_BITS = {
    Space.L1: 24,
    Space.L0A: 18,
    Space.L0B: 18,
    Space.L0C: 20,
    Space.BIAS: 14,
    Space.SCALE_A: 14,
    Space.SCALE_B: 14,
    Space.FIXP: 14,
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
    Space.FIXP: 32,
    Space.UB: 32,
}
"""What a byte address is a multiple of; 512 in L0A and L0B keeps address >> 4 on a scale box."""

ADDRESS_UNIT = {Space.FIXP: 32, Space.UB: 32}
"""Bytes that one step of an encoded address counts; 1 where a space is missing."""


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
    B16 = 16
    B32 = 32


class PlainType(IntEnum):
    """The element type of a cube operand without scales."""

    FP16 = 0
    BF16 = 1
    FP32 = 2
    E4M3 = 3
    E5M2 = 4
    INT8 = 5

    @property
    def bits(self) -> int:
        """Width of one element in bits."""
        match self:
            case PlainType.FP32:
                return 32
            case PlainType.FP16 | PlainType.BF16:
                return 16
            case PlainType.E4M3 | PlainType.E5M2 | PlainType.INT8:
                return 8


class VectorType(IntEnum):
    """The element type of a tile in UB; a mask is `UINT8`, 1 where it holds."""

    FP32 = 0
    FP16 = 1
    BF16 = 2
    INT8 = 3
    UINT8 = 4
    INT16 = 5
    UINT16 = 6
    INT32 = 7
    UINT32 = 8
    INT64 = 9
    E4M3 = 10
    E5M2 = 11
    E2M1 = 12

    @property
    def bits(self) -> int:
        """Width of one element in bits."""
        match self:
            case VectorType.E2M1:
                return 4
            case VectorType.INT8 | VectorType.UINT8 | VectorType.E4M3 | VectorType.E5M2:
                return 8
            case VectorType.FP16 | VectorType.BF16 | VectorType.INT16 | VectorType.UINT16:
                return 16
            case VectorType.FP32 | VectorType.INT32 | VectorType.UINT32:
                return 32
            case VectorType.INT64:
                return 64


class FloatType(IntEnum):
    """Those of `VectorType` that can be quantised."""

    FP32 = 0
    FP16 = 1
    BF16 = 2


class VectorUnary(IntEnum):
    """A function of one element."""

    EXP = 0
    LOG = 1
    SQRT = 2
    RSQRT = 3
    RECIP = 4
    SIN = 5
    COS = 6
    NEG = 7
    ABS = 8
    RELU = 9


class VectorBinary(IntEnum):
    """A function of two elements a and b; `EXPDIF` is exp(a - b), `SECOND` is b."""

    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    REM = 4
    MAXIMUM = 5
    MINIMUM = 6
    EXPDIF = 7
    SECOND = 8


class VectorComparison(IntEnum):
    """A comparison of two elements; one with a NaN is false, but for `NE`."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5


class VectorReduction(IntEnum):
    """What is made of all elements of a row or a column."""

    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3


class Axis(IntEnum):
    """Whether something goes by rows or by columns of a tile."""

    ROW = 0
    COL = 1


class Rounding(IntEnum):
    """How a cast rounds what the new type cannot hold."""

    NONE = 0
    RINT = 1
    ROUND = 2
    FLOOR = 3
    CEIL = 4
    TRUNC = 5
    ODD = 6


class QuantRule(IntEnum):
    """How the scale of a group is chosen: the device's "OCP" floor or its round-up "NV" rule."""

    FLOOR = 0
    NV = 1


class CoreKind(Enum):
    """What kind of core of a cluster a kernel is for: the cube core or a vector core."""

    AIC = "aic"
    AIV = "aiv"

    @property
    def first(self) -> ClusterCore:
        """The core that runs a kernel for this kind: of the vector cores the first one."""
        return ClusterCore.AIC if self is CoreKind.AIC else ClusterCore.AIV0


class ClusterCore(IntEnum):
    """A core of a cluster: the cube core or one of the two vector cores."""

    AIC = 0
    AIV0 = 1
    AIV1 = 2

    @property
    def kind(self) -> CoreKind:
        """Whether it is the cube core or a vector core."""
        return CoreKind.AIC if self is ClusterCore.AIC else CoreKind.AIV


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

    @property
    def bits(self) -> int:
        """Width of one stored element in bits."""
        return FixConvert[self.name].bits


class FixConvert(IntEnum):
    """The type that a fixpipe with its whole datapath stores an accumulator as.

    `INT32` is the accumulator of INT8 operands as it stands; all else comes from FP32.
    """

    FP32 = 0
    BF16 = 1
    FP16 = 2
    INT32 = 3
    E4M3 = 4
    E5M2 = 5
    INT8 = 6
    UINT8 = 7

    @property
    def bits(self) -> int:
        """Width of one stored element in bits."""
        match self:
            case FixConvert.FP32 | FixConvert.INT32:
                return 32
            case FixConvert.BF16 | FixConvert.FP16:
                return 16
            case FixConvert.E4M3 | FixConvert.E5M2 | FixConvert.INT8 | FixConvert.UINT8:
                return 8


class FixScale(IntEnum):
    """What the fixpipe multiplies sums by: nothing, one number, or one number a column."""

    NONE = 0
    NUMBER = 1
    COLUMNS = 2


class Sums(IntEnum):
    """What an accumulator holds: FP32 numbers, or the integers of INT8 operands."""

    FP32 = 0
    INT32 = 1


class ScaleRows(IntEnum):
    """How scales stand in global memory that are in no boxes yet, two groups of a row together.

    A is the left operand with M rows and G groups, B the right one with N columns and G groups. By
    bytes they are `A_ND` [M, G], `A_DN` [G/2, M, 2], `B_ND` [G/2, N, 2] and `B_DN` [N, G].
    """

    A_ND = 0
    A_DN = 1
    B_ND = 2
    B_DN = 3

    @property
    def by_rows(self) -> bool:
        """Whether a view has the rows outside and the pairs of groups inside."""
        return self in (ScaleRows.A_ND, ScaleRows.B_DN)


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
    L1_FILL = "l1_fill"
    L0A_LOAD = "l0a_load"
    L0B_LOAD = "l0b_load"
    SCALE_LOAD = "scale_load"
    BIAS_LOAD = "bias_load"
    MAD = "mad"
    PLAIN_MAD = "plain_mad"
    DRAIN = "drain"
    UB_STORE = "ub_store"
    UB_TO_L1 = "ub_to_l1"
    VECTOR = "vector"
