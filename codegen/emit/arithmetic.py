"""Emission of scalar expressions into registers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..isa.program import row_of
from ..scalars.exprs import Binary, BinaryOp, Const, Variable

if TYPE_CHECKING:
    from ...ir.errors import Span
    from ..isa.program import ProgramBuilder
    from ..scalars.exprs import Scalar
    from .registers import Registers

IDENTITIES = {"tile.get_block_idx": "block_idx", "tile.get_block_num": "block_num"}
"""The instruction that reads what an op of the IR, as the name of a variable, asks for."""

_COMMUTATIVE = frozenset(
    {
        BinaryOp.ADD,
        BinaryOp.MUL,
        BinaryOp.MIN,
        BinaryOp.MAX,
        BinaryOp.AND,
        BinaryOp.OR,
        BinaryOp.XOR,
        BinaryOp.EQ,
        BinaryOp.NE,
    }
)


@dataclass(frozen=True)
class Tag:
    """What goes with an instruction into the executable: its source, a remark, and its tiles."""

    span: Span
    note: str = ""
    tiles: tuple[tuple[str, tuple[str, str]], ...] = ()


@dataclass
class Arithmetic:
    """Emits scalar expressions.

    Attributes:
        builder: Where instructions go.
        registers: Which registers are free.
        params: The number of each scalar parameter.
        homes: The register of each variable that has one; a parameter without is read at each use.
    """

    builder: ProgramBuilder[Tag]
    registers: Registers
    params: dict[str, int]
    homes: dict[str, int] = field(default_factory=dict[str, int])

    def value(self, scalar: Scalar, tag: Tag, held: list[int]) -> int:
        """Return a register with the value of `scalar`; if it must be given back, it joins `held`."""
        match scalar:
            case Variable(name) if name in self.homes:
                return self.homes[name]
            case Const(value):
                register = self._constant(value, tag)
            case _:
                register = self.fresh(scalar, tag)
        held.append(register)
        return register

    def fresh(self, scalar: Scalar, tag: Tag) -> int:
        """Return a register of its own that gets the value of `scalar`."""
        target = self.registers.take(tag.span)
        self.into(target, scalar, tag)
        return target

    def into(self, target: int, scalar: Scalar, tag: Tag) -> None:
        """Give `target`, which holds no operand, the value of `scalar`."""
        match scalar:
            case Const(value):
                self.builder.emit("movi", tag, xd=target, imm=value)
            case Variable(name) if name in self.homes:
                self.builder.emit("addi", tag, xd=target, xa=self.homes[name], imm=0)
            case Variable(name) if name in IDENTITIES:
                self.builder.emit(IDENTITIES[name], tag, xd=target)
            case Variable(name):
                self.builder.emit("ldparam", tag, xd=target, index=self.params[name])
            case Binary():
                self._binary(target, scalar, tag)

    def keep(self, value: int, tag: Tag) -> None:
        """Put a constant into a register for later, if there is room."""
        if self.registers.room_for_constants:
            self.registers.give(self._constant(value, tag))

    def release(self, held: list[int]) -> None:
        """Give registers back."""
        for register in held:
            self.registers.give(register)
        held.clear()

    def _constant(self, value: int, tag: Tag) -> int:
        known = self.registers.constant(value)
        if known is not None:
            return known
        register = self.registers.take(tag.span)
        self.builder.emit("movi", tag, xd=register, imm=value)
        self.registers.keep_constant(value, register)
        return register

    def _binary(self, target: int, scalar: Binary, tag: Tag) -> None:
        held: list[int] = []
        op, left, right = scalar.op, scalar.left, scalar.right
        if op in _COMMUTATIVE and isinstance(left, Const):
            left, right = right, left
        if isinstance(right, Const) and _immediate(op, right.value):
            operand = self._operand(target, left, tag, held)
            self.builder.emit(f"{op.value}i", tag, xd=target, xa=operand, imm=right.value)
        elif _depth(left) >= _depth(right):
            a = self._operand(target, left, tag, held)
            b = self.value(right, tag, held)
            self.builder.emit(op.value, tag, xd=target, xa=a, xb=b)
        else:
            b = self._operand(target, right, tag, held)
            a = self.value(left, tag, held)
            self.builder.emit(op.value, tag, xd=target, xa=a, xb=b)
        self.release(held)

    def _operand(self, target: int, scalar: Scalar, tag: Tag, held: list[int]) -> int:
        """Return a register with an operand, `target` itself if it must be computed."""
        if isinstance(scalar, Binary):
            self.into(target, scalar, tag)
            return target
        return self.value(scalar, tag, held)


def _immediate(op: BinaryOp, number: int) -> bool:
    """Whether the operator has a form that holds `number` on its right."""
    row = row_of(f"{op.value}i")
    return row.fields[row.column("imm")].complaint(number) is None


def _depth(scalar: Scalar) -> int:
    """Return how many registers an expression needs, its result included."""
    if not isinstance(scalar, Binary):
        return 0 if isinstance(scalar, Variable) else 1
    left, right = _depth(scalar.left), _depth(scalar.right)
    return max(left, right, 1) + (1 if left == right and left > 0 else 0)
