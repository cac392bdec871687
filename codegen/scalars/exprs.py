"""What an expression over scalars is made of: signed 64-bit words that wrap, as on the device."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ...ir.errors import IRValueError


class BinaryOp(Enum):
    """What a :class:`Binary` computes; comparisons give 1 or 0."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    FLOORDIV = "floordiv"
    FLOORMOD = "floormod"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHL = "shl"
    SHR = "shr"
    EQ = "cmpeq"
    NE = "cmpne"
    LT = "cmplt"
    LE = "cmple"
    GT = "cmpgt"
    GE = "cmpge"


@dataclass(frozen=True, slots=True)
class Const:
    """A number, signed 64-bit."""

    value: int

    def __post_init__(self) -> None:
        if not -(1 << 63) <= self.value < 1 << 63:
            message = f"A host constant must be a signed 64-bit integer, not {self.value}."
            raise IRValueError(message)


@dataclass(frozen=True, slots=True)
class Variable:
    """A scalar parameter, a loop variable or an assigned name."""

    name: str


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands and what becomes of them."""

    op: BinaryOp
    left: Scalar
    right: Scalar


Scalar: TypeAlias = Const | Variable | Binary
